/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by code.c (processes and looks at them) and code_queries.c (questions about functions). */
#ifndef LIVE_CODE_PRIVATE_H
#define LIVE_CODE_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/event.h>

#include "base/map.h"
#include "base/vec.h"
#include "runtimes/ask/code.h"
#include "runtimes/ask/runtime_reader.h"
#include "runtimes/table.h"
#include "tenants/quota.h"

#define CODE_QUERIES_MAX 32768u /* of a process; then all are dropped and requested again */
#define CODE_QUERIES_ALL 262144u
#define CODE_WAITING_MAX 1024u /* of a process */
#define LOOKS		 11u   /* at a process, in one series */

/*
 * Files without a readable runtime. Each program is searched once, however many processes run it.
 * When the set is full, it is emptied.
 */

#define PLAIN_FILES_MAX 8192u

DEFINE_SET(file_set, uint64_t);

/* Identifies a mapped file; never 0. A build-id is not enough, if others can have written it. */
uint64_t plain_files__identity(const struct mmap_event *mapping);

/* The same, for a process of that owner (tenants/owner.h). */
uint64_t plain_files__of_owner(uint64_t file, uint64_t owner);

/* On lack of memory the file is searched again later. */
void plain_files__add(struct file_set *p, uint64_t file);

/* A question and its result: a changed answer is reported, an equal one is not. */
struct query {
	struct code_question question;
	uint64_t time, answer; /* answer: a hash of the last event */
	uint64_t read;	       /* when it was confirmed; 0: not confirmed */
	uint64_t open_since;   /* if is_open: its first sample since it was read */
	uint32_t window;       /* number of the window in which it was last sampled or reported */
	uint8_t tries;
	bool waits, confirmed, doubtful; /* doubtful: the reported answer is in doubt */
	bool is_open; /* sampled since it was read: to be read once more, whatever comes */
};

MAP_TYPE(query_map, struct query);

/* The slot of a process that may have a runtime. */
struct code_process {
	struct task *task;
	size_t index;		    /* in the part's list */
	uint32_t has;		    /* RUNTIME_… that the kernel has */
	uint64_t first, last;	    /* its first sample in this series of looks, and its last */
	uint64_t restarted, mapped; /* when the series restarted; when a runtime was last mapped */
	uint32_t looks;		    /* in this series */
	uint64_t samples, looked;   /* in this series, and those before its last look */
	/* of each runtime_memory(), as reported */
	uint8_t reported[RUNTIME_MEMORIES_MAX]; /* enum code_runtime_state */
	/* Its program's file, if only that may have a runtime, and that with the owner; else 0 */
	uint64_t program, plain_key;
	uint64_t device, inode; /* of `program`; inode 0: unknown */
	bool wanted, looked_at; /* a look is due; a look is under way */
	bool settled;		/* no more looks, until a runtime is mapped */
	bool writes_map;	/* it writes a perf map or jitdump */
	uint8_t listed;		/* how often its pieces of code were requested, notes apart */
	bool is_noted;		/* a note of code with pieces was sampled */
	uint32_t found;		/* RUNTIME_… of the last look */
	bool is_forked; /* it runs its parent's program: task->parent and task->since hold for it */
	bool inherits;	/* the kernel notes of it what its parent has: `info` */
	bool is_like_parent;	   /* … and it has nothing else */
	bool has_open;		   /* some questions are open */
	bool has_request;	   /* a request about its functions is under way */
	bool keeps_frame_pointers; /* its JIT code does, as far as known */
	struct runtime_info info;  /* the kernel's copy, while it `has` something, or inherits it */
	struct runtime_layout layout; /* for reading copies of its functions */
	struct query_map queries;
	VEC(uint32_t) waiting; /* numbers of `queries` */
	uint64_t closed;       /* when open questions were last looked for */
	uint64_t missed;       /* the first sample with a question that found no room; 0: none */
	struct meter events;   /* bytes of events about its functions */
};

/* A function in a sample of an unknown process, because forks are read after the samples. */
struct early_function {
	pid_t pid;
	unsigned int turns; /* for which it has waited */
	struct code_question question;
};

struct code_part {
	struct code_options options;
	VEC(struct code_process *) processes;
	struct file_set plain;
	struct note_table notes;
	uint32_t window;	/* windows that have ended */
	size_t query_count;	/* of all processes */
	size_t looking;		/* looks under way */
	bool maps_pause;	/* perf maps are not read */
	uint64_t met, begun;	/* code_part__met(), code_part__begun() */
	struct quota functions; /* bytes of events about functions */
	struct meter copies;	/* bytes */
	VEC(struct early_function) early;
	int err;
};

/* Notes that the process has data that will be lost with it. */
void code_begins(struct code_part *c, const struct code_process *process, uint64_t now);

/* A request under way. */
struct code_request {
	struct code_part *code;
	struct task_id id;
	uint64_t since;
};

/* The caller frees the request. 0 or negative errno: there will be no answer. */
int code_request(struct code_part *c, struct code_process *process,
		 const struct code_question *questions, size_t count, helper_answer_fn answer);
/* NULL: the program has ended. */
struct code_process *code_requested(const struct code_request *request);

#endif
