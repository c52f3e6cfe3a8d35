/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by code.c (processes, and looking at them) and code_queries.c (questions about functions, and answers). */
#ifndef LIVE_CODE_PRIVATE_H
#define LIVE_CODE_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/event.h>

#include "base/map.h"
#include "base/quota.h"
#include "base/vec.h"
#include "jitwatch/runtime_reader.h"
#include "live/parts/code.h"

#define CODE_QUERIES_MAX 32768u /* about a process; then they are dropped and requested again */
#define CODE_QUERIES_ALL 262144u
#define CODE_WAITING_MAX 1024u /* of a process */
#define LOOKS		 11u   /* at a process, in a series */

/*
 * Files that have no runtime in them whose functions could be read: each program is looked into once, however many processes
 * run it. Bounded: when it is full all are forgotten, and looked into again.
 */

#define PLAIN_FILES_MAX 8192u

DEFINE_SET(file_set, uint64_t);

/* Which file it is that is mapped; never 0. A build-id that others than the administrator may have written is not enough. */
uint64_t plain_files__identity(const struct mmap_event *mapping);

/* The same, of a process on that account (helpers/owner.h). */
uint64_t plain_files__of_owner(uint64_t file, uint64_t owner);

/* Without memory for it the file is looked into again. */
void plain_files__add(struct file_set *p, uint64_t file);

/* A question, its time, and its result: a changed answer is reported, an equal one is not. */
struct query {
	struct code_question question;
	uint64_t time, answer; /* answer: a hash of the last event */
	uint64_t read;	       /* when it was confirmed; 0: it was not */
	uint64_t open_since;   /* its first sample since it was read, if it is_open */
	uint32_t window;       /* number of the window in which it was last sampled or reported */
	uint8_t tries;
	bool waits, confirmed, doubtful; /* doubtful: the reported answer is in doubt */
	bool is_open; /* it was sampled since it was read: it will be read once more, sampled again or not */
};

MAP_TYPE(query_map, struct query);

/* The slot of a process that may have a runtime. */
struct code_process {
	struct task *task;
	size_t index;	      /* in the part's list */
	uint32_t has;	      /* RUNTIME_… that the kernel has */
	uint64_t first, last; /* when it was first sampled, in this series of looks, and last */
	uint64_t restarted, mapped; /* the series, at a mapping; the last one of a runtime */
	uint32_t looks;		    /* in this series */
	/* of each runtime_memory(), as it was reported */
	uint8_t reported[RUNTIME_MEMORIES_MAX]; /* enum code_runtime_state */
	/* The file that it executes, if nothing but that may have a runtime in it, and that of this user; else 0 */
	uint64_t program, plain_key;
	bool wanted, looked_at; /* it is to be looked at; a look is under way */
	bool settled;		/* the last look was enough, until a runtime is mapped */
	bool writes_map;	/* it writes down its functions itself */
	uint8_t listed;		/* how often its pieces of code were requested */
	uint32_t found;		/* RUNTIME_… that it has, as of the last look */
	bool is_forked; /* it runs its parent's program: task->parent and task->since hold for it */
	bool inherits;	/* the kernel notes of it what its parent has: `info` */
	bool is_like_parent;	   /* … which is all that there is to be known */
	bool has_open;		   /* some of its questions are */
	bool has_request;	   /* a request about its functions is under way */
	bool keeps_frame_pointers; /* its JIT code, as far as it is known */
	struct runtime_info info;  /* the kernel's copy, while it `has` something, or inherits it */
	struct runtime_layout layout; /* what copies of its functions are read by */
	struct query_map queries;
	VEC(uint32_t) waiting; /* numbers of `queries` */
	uint64_t closed;       /* when those that were open were last looked for */
	struct meter events;   /* bytes of events about its functions */
};

/* A function in a sample of a process that is not known yet: forks are read after the samples. */
struct early_function {
	pid_t pid;
	unsigned int turns; /* that it has waited */
	struct code_question question;
};

struct code_part {
	struct code_options options;
	VEC(struct code_process *) processes;
	struct file_set plain;
	struct note_table notes;
	uint32_t window;	/* windows that have ended */
	size_t query_count;	/* of all processes */
	size_t looking;		/* requests that look at a process */
	bool maps_pause;	/* perf maps are not read */
	uint64_t met, begun;	/* code_part__met(), code_part__begun() */
	struct quota functions; /* bytes of events about them */
	struct meter copies;	/* bytes */
	VEC(struct early_function) early;
	int err;
};

/* NULL: it has none. */
struct code_process *code_find(const struct code_part *c, pid_t pid);
/* Something was met in it that it takes with it when it ends. */
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

/* ---- code_queries.c ------------------------------------------------------------------------------ */

/* The notes of a sample; `process` NULL: it is not known yet. 0 or -ENOMEM, as the next ones. */
int code_want_notes(struct code_part *c, struct code_process *process,
		    const struct sample_event *e);
/* Pieces of code that last as long as the process, of the runtimes that it has. */
int code_want_pieces(struct code_part *c, struct code_process *process, uint64_t now);
/* Those that came before their processes. */
int code_want_early(struct code_part *c);
/*
 * Functions that were sampled since their last reading. Their words may have been another function's at that time,
 * which only a later reading shows. `all`: also those read a moment ago, because there will be no later reading.
 */
int code_want_open(struct code_part *c, struct code_process *process, uint64_t now, bool all);
/* Requests that wait, as many as one message may have. 0 or negative errno. */
int code_send_queries(struct code_part *c, struct code_process *process, uint64_t now);
/*
 * Functions that were not sampled in the last windows are requested again when they are, because answers are not kept
 * for ever.
 */
int code_forget_outdated(struct code_part *c, struct code_process *process);
void code_free_questions(struct code_part *c, struct code_process *process);
/* live_part.reported: a function from its copy (EVENT_CODE_COPY). */
int code_reported(void *code, const struct event_header *event);

#endif
