/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of live processes: parents, targets, and a slot for each part of the live stream.
 *
 * It is the userspace copy of the kernel's target set, from /proc and side-band records, which come
 * from every process and are ordered only within one CPU. So membership has a time: a process is a
 * target from its fork until its pid is reused, and a record is checked against its own time.
 * Records should come ordered by time.
 *
 * A sample may come before its process's fork record. So the first sample of an unknown pid makes
 * an entry, too; the fork record fills in the rest and leaves the slots alone.
 *
 * Slots are zero at first. execve and the leader's exit clear them, once, after the callback
 * `released`. An entry is kept for 2 s after the exit, because records may be in transit, and while
 * there are other threads. A sweep finds processes whose exit record was lost.
 *
 * Entries do not move, but tasks__sweep() frees them: references that outlive a call are task_ids.
 */
#ifndef LIVE_TASKS_H
#define LIVE_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <sysprof/event.h>

/* Entries without a fork record, at most; targets have no limit here. */
#define TASKS_UNKNOWN_MAX 65536u

/* A program in a process: the serial changes with each execve, exit and reuse of the pid. */
struct task_id {
	pid_t pid;
	uint64_t serial; /* never 0 */
};

struct code_process;

struct task {
	struct task_id id;
	struct task_id parent; /* pid 0: unknown; serial 0: unknown, or older than the recording */
	bool is_target, is_unknown;
	bool is_missed;	       /* not found by the last search: its last records may still come */
	bool has_threads;      /* it has started one since its fork */
	uint64_t since, until; /* it is a target in [since, until), CLOCK_MONOTONIC ns */
	uint64_t ended;	       /* UINT64_MAX while it lives */
	uint64_t execed;       /* the time of its last execve; 0: none is known */

#define FACTS_READ_ELSEWHERE UINT8_MAX
	/* Slots of the parts, until the process ends; those in `program` until the next execve. */
	struct task_slots {
		uint32_t samples; /* memory: since its last round */
		bool sampled;	  /* live */
		bool is_named;	  /* targets: by name, when it was looked for */
		bool rereads;	  /* reread: waits for another reading of /proc */
		struct task_program {
			uint32_t maps;	      /* live: records of its mappings */
			uint32_t maps_user;   /* live: the user, once there are many */
			bool has_no_memory;   /* memory: a kernel thread */
			uint64_t cgroup_next; /* memory, facts: next reading of its control group */
			uint8_t reread_times; /* reread: readings so far, up to a limit */
			uint64_t reread_next; /* reread: not before this time */
			/* helper_owner(), how long it is used, and until when, ns */
			uint64_t owner, owner_kept, owner_until;
			bool facts_reported;  /* facts: program and control group were reported */
			bool facts_waits;     /* facts: queued */
			uint8_t facts_looks;  /* facts: requests so far; FACTS_READ_ELSEWHERE */
			bool facts_answered;  /* facts: one of them was answered */
			uint64_t facts_first; /* facts: the time of the first request to a reader */
			bool has_jit;	      /* jit: followed */
			struct code_process
				*code; /* code: it may have a runtime; owned by the part */
		} program;
	} slots;
};

enum task_end {
	TASK_EXECED,
	TASK_EXITED,
	TASK_GONE, /* it has ended, without a record of that */
};

struct tasks_options {
	bool everyone; /* every process is a target */
	bool inherit;  /* children of targets are targets */
	/* Does a process have threads, or is it a zombie? NULL: none does. */
	bool (*exists)(pid_t pid);
	/* The slots are about to be cleared. NULL: nothing depends on them. */
	int (*released)(void *context, struct task *task, enum task_end how);
	void *context;
};

struct tasks;

/* NULL: out of memory. */
struct tasks *tasks__new(const struct tasks_options *options);
/* Calls no `released`. NULL is fine. */
void tasks__free(struct tasks *t);

/* NULL: it is not in the table. */
struct task *tasks__find(const struct tasks *t, pid_t pid);
/* NULL: the program has ended. */
struct task *tasks__get(const struct tasks *t, struct task_id id);
/* Adds an entry if there is none. NULL: out of memory, too many unknown entries, or pid 0. */
struct task *tasks__need(struct tasks *t, pid_t pid);
/* The same for a record of its present program. NULL also: it has executed another one since. */
struct task *tasks__need_program(struct tasks *t, pid_t pid, uint64_t time);

/* helper_owner() of the process at this time. */
uint64_t task__read_owner(struct task *task, uint64_t now);
/*
 * The same, up to a second old; of an owner that has stayed, up to 16. A process of root's that
 * becomes a user's is root's a moment longer; a user's hardly becomes root's without execve.
 */
uint64_t task__owner(struct task *task, uint64_t now);

/* Adds a requested process. 0, -ENOMEM. */
int tasks__add_target(struct tasks *t, pid_t pid);
/* Sets the parent of a process that existed before the recording. 0, -ENOMEM. */
int tasks__add_parent(struct tasks *t, pid_t pid, pid_t parent);

/* Side-band records; those of threads are ignored. 0, -ENOMEM, or the result of `released`. */
int tasks__fork(struct tasks *t, const struct task_event *event);
int tasks__exit(struct tasks *t, const struct task_event *event);
int tasks__exec(struct tasks *t, pid_t pid, uint64_t time);

/*
 * Frees entries that ended some time before `now`, and finds processes that ended without a record.
 * All older records must have been passed on. Does nothing within a second of the last call. 0, or
 * the result of `released`.
 */
int tasks__sweep(struct tasks *t, uint64_t now);

bool tasks__is_target(const struct tasks *t, pid_t pid, uint64_t time);
/* 0: unknown. */
pid_t tasks__parent(const struct tasks *t, pid_t pid);

/* Targets that have not ended, unordered, in a new array (caller frees). 0, -ENOMEM. */
int tasks__living_targets(const struct tasks *t, pid_t **pids, size_t *count);

#endif
