/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that make the system calls which a tenant can hold up: opening, reading, asking about what is his.
 *
 * A file system may be served by a user's program (FUSE, also below an overlayfs) or by a machine far away: a
 * call into it can sleep for ever, and SIGKILL does not end it. So such a call is made by a reader: a forked
 * process with one socket. It gets a request, answers it, and takes the next one. If it does not answer within
 * the deadline it is left behind: killed, never waited for, and replaced. A user (an owner, see below) whose
 * requests have left behind a few readers is not read any more.
 *
 * Readers are forked by a keeper, which is forked first, by reader_pool__new(): early, while there is one thread,
 * little memory and no file that matters. Nobody waits for a reader; whoever is stuck is left to init.
 *
 * One thread uses a pool. An answer comes through the callback of its request, exactly once, within
 * reader_pool__step(), reader_pool__settle(), reader_pool__end() or reader_pool__free(), never within reader_pool__ask().
 */
#ifndef READERS_READER_POOL_H
#define READERS_READER_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fd_message.h"
#include "base/outside_books.h"

#define READER_REQUEST_MAX 8192 /* bytes */
#define READER_ANSWER_MAX  8192
#define READER_FDS_MAX	   FD_MESSAGE_MAX

struct reader_pool;

/* ---- in a reader ----------------------------------------------------------------------------- */

/* A request, and the room for its answer. */
struct reader_job {
	const void *request;
	size_t request_size;
	const int *fds; /* closed by the reader's loop */
	size_t fd_count;
	void *answer; /* READER_ANSWER_MAX bytes, zeroed */
	size_t answer_size;
	int answer_fds[READER_FDS_MAX]; /* sent, then closed */
	size_t answer_fd_count;
};

/* Serves one request. What is in it comes from the pool's owner: it is as it was told to reader_pool__ask(). */
typedef void (*reader_serve_fn)(struct reader_job *job);

/* ---- the pool -------------------------------------------------------------------------------- */

struct reader_pool_options {
	const reader_serve_fn *services; /* outlive the pool */
	unsigned int service_count;
	const char *name;     /* of the processes: 15 bytes */
	unsigned int readers; /* at a time, 1 to 8; 0: 2 */
	uint64_t deadline;    /* ns of a request; 0: a second */
	unsigned int hangs;   /* that an owner may cause; 0: 2 */
	uint64_t credit; /* ns of readers' CPU time that an owner may have at once; 0: a second */
	struct outside_books *books; /* where requests without an answer are counted, or NULL */
	const enum outside_thing *things; /* of the services; NULL: files */
	uint64_t
		patience; /* ns that an owner may hold up others at once; 0: 100 ms. All together: three times that */
};

/* Why a request has no answer; 0: it has one. */
enum reader_refusal {
	READER_ANSWERED,
	READER_HUNG,	    /* it did not answer within the deadline, or died */
	READER_BANNED,	    /* so did earlier ones of this owner */
	READER_OVER_BUDGET, /* the owner's requests take too much CPU time, or too many wait */
	READER_LATE, /* others wait for it, and have waited enough for this owner's; ask again later */
	READER_ENDED, /* the pool has ended */
};

struct reader_answer {
	enum reader_refusal refusal; /* then all of the rest is 0 */
	const void *data;
	size_t size;
	/* The callee's to keep: what it takes it sets to -1; the others are closed. */
	int *fds;
	size_t fd_count;
};

/* May ask again, and must not free the pool. */
typedef void (*reader_answer_fn)(void *context, const struct reader_answer *answer);

struct reader_request {
	unsigned int service; /* which of the pool's */
	uint64_t owner;	      /* on whose account: see reader_owner.h */
	bool holds;	      /* others wait for the answer, see reader_pool__set_hurry() */
	const void *data;
	size_t size;	/* at most READER_REQUEST_MAX */
	const int *fds; /* the caller's; a copy is sent */
	size_t fd_count;
	reader_answer_fn answer;
	void *context;
};

struct reader_pool_stats {
	uint64_t asked, answered;
	uint64_t hung;	  /* readers that were left behind */
	uint64_t refused; /* requests of owners that had them hang, or over their budget */
	uint64_t late;	  /* requests that others could not wait for */
	uint64_t owners_banned;
	uint64_t cpu_ns; /* of readers, serving */
};

/*
 * Forks the keeper, which forks the readers: the caller must have one thread. 0 or negative errno.
 */
int reader_pool__new(const struct reader_pool_options *options, struct reader_pool **pool);
/* Ends the readers. Requests without an answer get READER_ENDED, as all that come later. Waits for the keeper alone. */
void reader_pool__end(struct reader_pool *pool);
/* The same, and the pool is gone. NULL is fine. */
void reader_pool__free(struct reader_pool *pool);

/* 0: there will be an answer. -EINVAL, -ENOMEM: there will be none. */
int reader_pool__ask(struct reader_pool *pool, const struct reader_request *request);

/*
 * In a hurry, requests that hold up others are on their owner's account when they take more than some milliseconds: who
 * has used up his patience gets READER_LATE. Owner 0, who is trusted, does not.
 */
void reader_pool__set_hurry(struct reader_pool *pool, bool hurry);

/* Takes answers that have come, looks at deadlines, hands out what waits. Does not sleep. */
void reader_pool__step(struct reader_pool *pool);
/* The same until nothing waits for an answer, or for this long (ns). True: nothing waits. */
bool reader_pool__settle(struct reader_pool *pool, uint64_t patience);

/* For poll(): readable when reader_pool__step() has something to do, but for deadlines. */
int reader_pool__fd(const struct reader_pool *pool);
size_t reader_pool__waiting(const struct reader_pool *pool);
/* Does any of them wait for a reader? Those that have one are not handed out any more. */
bool reader_pool__queues(const struct reader_pool *pool);

void reader_pool__stats(const struct reader_pool *pool, struct reader_pool_stats *stats);

#endif
