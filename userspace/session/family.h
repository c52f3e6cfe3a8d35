/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parents of processes, and which processes are targets: the userspace copy of the kernel's target set,
 * maintained from fork records and /proc.
 *
 * Side-band records come from every process of the system and are ordered only within one CPU. So
 * membership has a time: a process is a target from its fork until its pid is reused, and a record is
 * checked against its own time. Records should come ordered by time.
 */
#ifndef SESSION_FAMILY_H
#define SESSION_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <sysprof/event.h>

struct family;

/*
 * `everyone`: every process is a target (parents are recorded as well). `exists` is called before a process
 * whose leader has ended is forgotten, since its other threads may still run; NULL: none does.
 * Returns NULL if out of memory.
 */
struct family *family__new(bool everyone, bool inherit, bool (*exists)(pid_t pid));
void family__free(struct family *f);

/* A requested process. 0, -ENOMEM. */
int family__add_target(struct family *f, pid_t pid);
/* The parent of a process that existed before the recording. 0, -ENOMEM. */
int family__add_parent(struct family *f, pid_t pid, pid_t parent);
/* A fork record (threads are ignored). 0, -ENOMEM. */
int family__fork(struct family *f, const struct task_event *event);
/* An exit record. Some time after its leader has ended a process is forgotten. */
void family__exit(struct family *f, const struct task_event *event);

bool family__is_target(const struct family *f, pid_t pid, uint64_t time);
/* 0: unknown. */
pid_t family__parent(const struct family *f, pid_t pid);

/* Targets that have not ended, unordered, in a new array (caller frees). 0, -ENOMEM. */
int family__living_targets(const struct family *f, pid_t **pids, size_t *count);

#endif
