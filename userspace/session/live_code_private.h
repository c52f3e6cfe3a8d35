/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by live_code.c, live_code_requests.c (requests) and live_code_kin.c (children of fork). */
#ifndef SESSION_LIVE_CODE_PRIVATE_H
#define SESSION_LIVE_CODE_PRIVATE_H

#include "base/map.h"
#include "base/quota.h"
#include "base/vec.h"
#include "jitwatch/code_reader.h"
#include "session/early_functions.h"
#include "session/live_code.h"
#include "session/plain_files.h"

#define LOOKS 11u /* at a process, in a series */
#define QUERIES_MAX                                                                                \
	32768u /* questions about one process; then all are dropped and requested again */
#define QUERIES_ALL 262144u /* about all of them */
#define TRIES	    6u	    /* for a question without an answer */

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

static inline uint64_t query_hash(const struct query *query)
{
	const struct code_question *q = &query->question;

	return hash_combine(hash_combine(hash_u64(q->function), hash_u64(q->check)),
			    hash_u64(q->address + q->kind));
}

static inline bool query_equal(const struct query *x, const struct query *y)
{
	const struct code_question *a = &x->question, *b = &y->question;

	return a->kind == b->kind && a->function == b->function && a->check == b->check &&
	       a->address == b->address;
}

DEFINE_MAP_OF(query_map, struct query, query_hash, query_equal);

/* The process that another one was forked from; life 0: none. */
struct forked_from {
	uint32_t pid;
	uint64_t life, time;
};

struct code_process {
	uint32_t pid;
	uint32_t has; /* RUNTIME_… that the kernel has */
	uint64_t life;
	uint64_t first, last; /* when it was first sampled, in this series of looks, and last */
	uint64_t restarted;
	uint32_t looks;
	/* of each runtime_memory(), as it was reported */
	uint8_t reported[RUNTIME_MEMORIES_MAX]; /* enum code_runtime_state */
	/* The file that it executes, if nothing but that may have a runtime in it, and that of this user; else 0 */
	uint64_t program, plain_key;
	bool wanted, looked_at; /* it is to be looked at; a look is under way */
	bool writes_map;	/* it writes down its functions itself */
	bool inherits;		/* the kernel notes of it what its parent has: `info` */
	bool is_like_parent;	/* … which is all that there is to be known */
	struct forked_from from;
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

/* Children that end before their functions are requested, by the last bits of their pids. */
#define ORPHANS 1024u /* a power of two */
struct gone_child {
	uint32_t pid;
	struct forked_from from;
};

MAP_TYPE(process_map, struct code_process *);

struct live_code {
	struct live_code_options options;
	struct process_map processes;
	struct plain_files plain;
	struct note_table notes;
	uint64_t lives, swept;
	uint32_t window;	/* windows that have ended */
	size_t query_count;	/* of all processes */
	size_t looking;		/* requests that look at a process */
	uint64_t met, begun;	/* live_code__met(), live_code__begun() */
	struct quota functions; /* bytes of events about them */
	struct meter copies;	/* bytes */
	struct early_functions early;
	struct gone_child gone[ORPHANS];
	int err;
};

/* NULL: it is not known. */
struct code_process *live_code_find(const struct live_code *c, uint32_t pid);
/* NULL: there was no such question. */
struct query *live_code_find_query(const struct code_process *process,
				   const struct code_question *question);

/* How long what is read of a function of this kind holds. */
enum code_lasting live_code_lasting(const struct live_code *c, uint32_t kind, uint64_t check);

/* Something was met in it that it takes with it when it ends. */
void live_code_begins(struct live_code *c, const struct code_process *process, uint64_t now);

/* ---- live_code_requests.c ------------------------------------------------------------------------- */

/* A request under way. */
struct code_request {
	struct live_code *code;
	uint32_t pid;
	uint64_t life, since;
};

/* NULL: no memory. The caller frees it. */
struct code_request *live_code_request(struct live_code *c, const struct code_process *process);
/* Requests that wait, as many as one message may have. 0 or negative errno. */
int live_code_send_queries(struct live_code *c, struct code_process *process, uint64_t now);

/* ---- live_code_kin.c ------------------------------------------------------------------------- */

/* It was forked at `time`. */
void live_code_inherit(struct code_process *child, const struct code_process *parent,
		       uint64_t time);
/* NULL: it is gone. */
struct code_process *live_code_parent(const struct live_code *c, const struct forked_from *from);
/* Was it read before the fork, of the parent or of its parents? Then it is known of the child as well. */
bool live_code_is_inherited(const struct live_code *c, struct forked_from from,
			    const struct code_question *question);

#endif
