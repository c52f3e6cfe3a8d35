/* SPDX-License-Identifier: BSD-2-Clause */
/* One process or thread, as /proc shows it. */
#ifndef BASE_PROC_TASK_H
#define BASE_PROC_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/proc_parse.h"

#define PROC_COMM_SIZE 16

enum proc_state {
	PROC_NONE, /* no such process */
	PROC_ALIVE,
	PROC_ZOMBIE, /* ended; no thread of it runs any more */
	PROC_KERNEL, /* a kernel thread */
	PROC_HIDDEN, /* it exists, but /proc does not show it (hidepid) */
};

struct proc_identity {
	pid_t tgid; /* differs from the requested pid if that is a thread of another process */
	pid_t ppid;
	uint64_t start_time; /* CLOCK_MONOTONIC ns, 10 ms grain */
	char comm[PROC_COMM_SIZE];
};

/* The state of a process or thread. `identity` may be NULL; it is filled unless NONE or HIDDEN. */
enum proc_state proc_process_state(pid_t pid, struct proc_identity *identity);

/* Its real uid, in our user namespace. 0, -ESRCH, … */
int proc_real_uid(pid_t pid, uid_t *uid);

/* ---- the parts of it ------------------------------------------------------------------------- */

/* The directory of a process below /proc: a descriptor, or negative errno. */
int proc_open_process(int proc_fd, pid_t pid);
/* Bytes read (at most size), or negative errno. */
ssize_t proc_read_small(int dir, const char *path, char *buffer, size_t size);
/* The stat of a process or thread: `path` is "stat" or "task/TID/stat". 0 or negative errno. */
int proc_read_stat(int dir, const char *path, struct proc_stat *stat);
/* It has exited, whether or not its parent has waited for it. */
bool proc_stat__is_dead(const struct proc_stat *stat);
/* The name that perf calls the task by. */
void proc_stat__comm(const struct proc_stat *stat, char comm[PROC_COMM_SIZE]);

/* How far CLOCK_MONOTONIC has fallen behind the time since boot, by suspending, ns. */
uint64_t proc_suspended_ns(void);
/* Ticks since boot to CLOCK_MONOTONIC ns. */
uint64_t proc_start_time(uint64_t ticks, uint64_t tick_ns, uint64_t suspended);

#endif
