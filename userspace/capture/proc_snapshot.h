/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What existed before we looked: processes, threads and mappings read from /proc, told as events.
 *
 * Everything may vanish at any time. A process that is gone is told as nothing, or as far as it
 * could be read, and that is no error: errors are -ENOMEM, what `push` returned, and /proc itself
 * missing. Events carry EVENT_FROM_PROC and the CLOCK_MONOTONIC of just before their process was
 * read.
 */
#ifndef CAPTURE_PROC_SNAPSHOT_H
#define CAPTURE_PROC_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/event_queue.h"

struct proc_snapshot;

/* 0, -ENOMEM, or why /proc cannot be opened. */
int proc_snapshot__new(struct proc_snapshot **snapshot);
void proc_snapshot__free(struct proc_snapshot *s);

/* One process: EVENT_PROCESS, EVENT_THREADs, EVENT_MMAPs, EVENT_MAPS_READ. Kernel threads have no
 * mappings and no EVENT_MAPS_READ. */
int proc_snapshot__process(struct proc_snapshot *s, pid_t pid, bool is_target, event_push_fn push,
			   void *context);

/* Every process of the system, kernel threads included. */
int proc_snapshot__all(struct proc_snapshot *s, bool is_target, event_push_fn push, void *context);

/* The mappings of a process alone: EVENT_MMAPs, EVENT_MAPS_READ (not if it is gone). */
int proc_snapshot__maps(struct proc_snapshot *s, pid_t pid, event_push_fn push, void *context);

/* EVENT_THREAD_CPU for every living thread of a process; time is that of each reading. */
int proc_snapshot__thread_cpu(struct proc_snapshot *s, pid_t pid, event_push_fn push,
			      void *context);
/* The same for every process of the system. */
int proc_snapshot__thread_cpu_all(struct proc_snapshot *s, event_push_fn push, void *context);

/*
 * All living descendants of `roots`, without the roots themselves, parents before children. Caller
 * frees *pids. A fork during the call may be missed: have the kernel follow forks first.
 */
int proc_snapshot__descendants(struct proc_snapshot *s, const pid_t *roots, size_t root_count,
			       pid_t **pids, size_t *count);

/* ---- one process ----------------------------------------------------------------------------- */

enum proc_state {
	PROC_NONE, /* no such process */
	PROC_ALIVE,
	PROC_ZOMBIE, /* ended; no thread of it runs any more */
	PROC_KERNEL, /* a kernel thread */
	PROC_HIDDEN, /* it exists, but /proc does not show it (hidepid) */
};

struct proc_identity {
	pid_t tgid; /* differs from the pid asked for where that is a thread of another process */
	pid_t ppid;
	uint64_t start_time; /* CLOCK_MONOTONIC ns, 10 ms grain */
	char comm[EVENT_COMM_SIZE];
};

/* How is process (or thread) `pid`? `identity` may be NULL; it is filled unless NONE or HIDDEN. */
enum proc_state proc_process_state(pid_t pid, struct proc_identity *identity);

/* ---- reading again --------------------------------------------------------------------------- */

/*
 * Mappings of processes that were asked for again because an address had no mapping. A process is
 * read at once the first time, then no sooner than 100 ms, 200 ms, … 12.8 s after the last; a
 * request that comes earlier waits.
 */
struct proc_reread;

/* Uses `s`, which must live longer. NULL: no memory. */
struct proc_reread *proc_reread__new(struct proc_snapshot *s, event_push_fn push, void *context);
void proc_reread__free(struct proc_reread *r);

/* Note the wish; reads nothing, so it may be called while events are handed on. Has the shape of
 * event_source_requests.reread_process. */
void proc_reread__request(void *reread, __u32 pid);
/* Read the processes whose turn it is. 0 or negative errno. Call it once a drain. */
int proc_reread__run(struct proc_reread *r);
/* The process exited or called execve: its waiting time starts anew. */
void proc_reread__forget(struct proc_reread *r, __u32 pid);

/* ---- parsers, on text alone ------------------------------------------------------------------ */

struct proc_stat {
	char comm[64]; /* NUL-terminated, any bytes: also ')', spaces and newlines */
	char state;
	pid_t ppid;
	uint32_t flags;
	uint64_t cpu_ticks;   /* utime + stime */
	uint64_t threads;     /* of the process */
	uint64_t start_ticks; /* clock ticks since boot */
};

#define PROC_FLAG_KTHREAD 0x00200000u

/* The whole text of /proc/PID/stat. 0 or -EBADMSG. */
int proc_parse_stat(const char *text, size_t size, struct proc_stat *stat);

struct proc_mapping {
	uint64_t start, end, offset, inode;
	uint32_t protection, map_flags; /* PROT_*, MAP_SHARED or MAP_PRIVATE */
	uint32_t major, minor;
	const char *path; /* into the line, NUL-terminated; "" for none */
	size_t path_size; /* without NUL */
	bool newline;	  /* the path has a "\012", which may be a newline or those four bytes */
};

/*
 * One line of /proc/PID/maps, `size` bytes without its newline; line[size] may be overwritten. The
 * path is decoded in place: the kernel writes a newline as "\012" and escapes nothing else. 0 or
 * -EBADMSG.
 */
int proc_parse_mapping(char *line, size_t size, struct proc_mapping *mapping);

#endif
