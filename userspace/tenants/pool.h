/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes for what the collector must not do: system calls that a tenant can hold up (readers),
 * and parsing of tenants' files, which might take over the parser (builders).
 *
 * A file system may be served by a user's program (FUSE, also below an overlayfs) or by a remote
 * machine. A call into it can sleep forever, and SIGKILL does not end it. A helper has one socket
 * and one request at a time, so the pool knows which request hangs, and none waits behind it. A
 * helper without progress is killed, not waited for, and replaced. A pool stops serving an owner
 * whose requests made a few helpers hang.
 *
 * A pool has helpers of one class and a keeper that forks them (tenants/keeper.h).
 *
 * One thread uses a pool. Each request's callback is called once, within helper_pool__step(),
 * __settle(), __end() or __free(), never within helper_pool__request().
 */
#ifndef TENANTS_POOL_H
#define TENANTS_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tenants/classes.h"
#include "tenants/message.h"
#include "tenants/outside_books.h"

struct helper_pool;

/* ---- in a helper ----------------------------------------------------------------------------- */

struct helper_job {
	const void *request;
	size_t request_size;
	const int *fds; /* closed after serve */
	size_t fd_count;
	void *answer; /* MESSAGE_SIZE_MAX bytes, zeroed */
	size_t answer_size;
	int answer_fds[MESSAGE_FDS_MAX]; /* sent, then closed */
	size_t answer_fd_count;
};

/* Serves one request, which is as it was passed to helper_pool__request(). */
typedef void (*helper_serve_fn)(struct helper_job *job);

/* ---- the pool -------------------------------------------------------------------------------- */

struct helper_pool_options {
	enum helper_class_id class, keeper;
	const helper_serve_fn *services; /* outlive the pool */
	unsigned int service_count;
	/* A helper enters its class's filter with its request, then ends; one is kept ready. */
	bool once;
	unsigned int at_once;	     /* requests served in parallel, not counting slow ones; 0: 2 */
	unsigned int most;	     /* helpers, up to 8; 0: 8 */
	uint64_t silence, wall_time; /* 0: the class's; wall_time 0: in proportion to `silence` */
	unsigned int hangs;	     /* 0: the class's */
	bool any_cpu_time;	     /* no limit on owners' CPU time here: the caller has one */
	uint64_t credit;   /* burst of helpers' CPU time per owner, ns; 0: QUOTA_HELPER_CPU */
	uint64_t patience; /* ns that an owner may hold up others; all: 3x; 0: QUOTA_HOLDING */
	struct outside_books *books;	  /* counts requests without an answer, or NULL */
	const enum outside_thing *things; /* of the services; NULL: files */
};

/* Why a request has no answer. */
enum helper_refusal {
	HELPER_ANSWERED,
	HELPER_HUNG,	    /* the helper made no progress, or took too long */
	HELPER_DIED,	    /* the helper ended */
	HELPER_FORGED,	    /* the helper sent an invalid message */
	HELPER_BANNED,	    /* this owner's requests made helpers hang */
	HELPER_OVER_BUDGET, /* too much CPU time, too many requests, or no descriptor left */
	HELPER_LATE,	    /* held up others for too long; request it again later */
	HELPER_ENDED,	    /* the pool or its keeper has ended */
};

struct helper_answer {
	enum helper_refusal refusal; /* then only ticket and cpu_ns are set */
	uint64_t ticket;
	uint64_t cpu_ns; /* of the helper for this request, by the kernel's count */
	const void *data;
	size_t size;
	/* The callee may keep descriptors: it sets those to -1; the others are closed. */
	int *fds;
	size_t fd_count;
};

/* May make requests, and must not free the pool. */
typedef void (*helper_answer_fn)(void *context, const struct helper_answer *answer);

struct helper_request {
	unsigned int service; /* index into the pool's services */
	uint64_t owner;	      /* charged for it, see tenants/owner.h; QUOTA_NOBODY: no limits */
	bool holds;	      /* others wait for the answer, see helper_pool__set_hurry() */
	const void *data;
	size_t size;	/* 1 to MESSAGE_SIZE_MAX */
	const int *fds; /* the caller's; a copy is sent */
	size_t fd_count;
	helper_answer_fn answer;
	void *context;
	uint64_t ticket; /* any number, repeated in the answer */
};

struct helper_pool_stats {
	uint64_t hung; /* helpers that were abandoned with a request */
	uint64_t late; /* requests refused with HELPER_LATE */
	uint64_t owners_banned;
};

/* Forks the keeper and first helpers. The caller must have one thread. 0 or negative errno. */
int helper_pool__new(const struct helper_pool_options *options, struct helper_pool **pool);
/* Ends the helpers, waits only for the keeper. Open and later requests get HELPER_ENDED. */
void helper_pool__end(struct helper_pool *pool);
/* helper_pool__end(), and frees the pool. NULL is fine. */
void helper_pool__free(struct helper_pool *pool);

/* 0: there will be an answer. -EINVAL, -ENOMEM or the error of copying a descriptor: none. */
int helper_pool__request(struct helper_pool *pool, const struct helper_request *request);
/* Requests with this context get no answer any more. */
void helper_pool__forget(struct helper_pool *pool, const void *context);

/*
 * In a hurry, an owner is charged for the time beyond 20 ms that its requests hold up others. If it
 * has no time left, they get HELPER_LATE. Owner 0 (root) is exempt.
 */
void helper_pool__set_hurry(struct helper_pool *pool, bool hurry);
/* Requests served in parallel from now on, as in the options. */
void helper_pool__set_at_once(struct helper_pool *pool, unsigned int at_once);

/* Receives answers, checks for hangs, hands out waiting requests. Does not sleep. */
void helper_pool__step(struct helper_pool *pool);
/* Steps until no request waits for an answer, for `patience` ns at most. True: none waits. */
bool helper_pool__settle(struct helper_pool *pool, uint64_t patience);

/* For poll(): readable when a helper has sent something; hangs do not show here. */
int helper_pool__fd(const struct helper_pool *pool);
/* Requests without an answer. */
size_t helper_pool__waiting(const struct helper_pool *pool);
/* A request waits for a helper. */
bool helper_pool__queues(const struct helper_pool *pool);

void helper_pool__stats(const struct helper_pool *pool, struct helper_pool_stats *stats);

#endif
