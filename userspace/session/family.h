/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whose child is whose, and which processes are targets: the userspace twin of the kernel's target
 * set, kept from fork records and /proc.
 *
 * Side-band records come from every process of the system, and in order within one CPU only. So
 * membership has a time: a process is a target from its fork until its number is given to another
 * one, and a record is judged by its own time. Records should come ordered by time.
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
 * `everyone`: every process is a target (parents are kept all the same). `exists` is asked before a
 * process whose leader has ended is forgotten, since its other threads may go on; NULL: none does.
 * NULL: no memory.
 */
struct family *family__new(bool everyone, bool inherit, bool (*exists)(pid_t pid));
void family__free(struct family *f);

/* A process that was asked for. 0, -ENOMEM. */
int family__add_target(struct family *f, pid_t pid);
/* A process that was there before: who its parent is. 0, -ENOMEM. */
int family__add_parent(struct family *f, pid_t pid, pid_t parent);
/* A fork record (threads are ignored). 0, -ENOMEM. */
int family__fork(struct family *f, const struct task_event *event);
/* An exit record. Once a leader has ended, nothing needs to be known of its process after a while. */
void family__exit(struct family *f, const struct task_event *event);

bool family__is_target(const struct family *f, pid_t pid, uint64_t time);
/* 0: unknown. */
pid_t family__parent(const struct family *f, pid_t pid);

/* Targets that have not ended, in no order, into a fresh array (caller frees). 0, -ENOMEM. */
int family__living_targets(const struct family *f, pid_t **pids, size_t *count);

#endif
