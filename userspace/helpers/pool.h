/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that do what the collector must not: system calls that a tenant can hold up (readers), and work on a tenant's
 * file with code that the file may take over (builders).
 *
 * A file system may be served by a user's program (FUSE, also below an overlayfs) or by a machine far away: a call into it
 * can sleep forever, and SIGKILL does not end it. A helper has one socket and one request at a time, so the request that
 * hangs is known, and no other request waits behind it. A helper that makes no progress is killed, not waited for, and
 * replaced. An owner whose requests had a few helpers hang is not served any more by this pool.
 *
 * A pool has helpers of one class and a keeper that forks them (helpers/keeper.h), started early by helper_pool__new().
 *
 * One thread uses a pool. An answer comes through the callback of its request, exactly once, within helper_pool__step(),
 * helper_pool__settle(), helper_pool__end() or helper_pool__free(), never within helper_pool__request().
 */
#ifndef HELPERS_POOL_H
#define HELPERS_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/outside_books.h"
#include "helpers/classes.h"
#include "helpers/message.h"

struct helper_pool;

/* ---- in a helper ----------------------------------------------------------------------------- */

/* A request, and the room for its answer. */
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

/* Serves one request. It comes from the pool's user and is as it was passed to helper_pool__request(). */
typedef void (*helper_serve_fn)(struct helper_job *job);

/* ---- the pool -------------------------------------------------------------------------------- */

struct helper_pool_options {
	enum helper_class_id class, keeper;
	const helper_serve_fn *services; /* outlive the pool */
	unsigned int service_count;
	/*
	 * A helper serves one request and ends; it enters the filter of its class once it has the request. One more waits
	 * for the next request.
	 */
	bool once;
	unsigned int
		at_once;   /* requests that are served at the same time, without slow ones; 0: 2 */
	unsigned int most; /* helpers, up to 8; 0: 8 */
	uint64_t silence,
		wall_time;  /* 0: those of its class; the latter in proportion to the former */
	unsigned int hangs; /* 0: those of its class */
	bool any_cpu_time;  /* owners' CPU time has no limit here: the caller has one */
	uint64_t
		credit; /* ns of helpers' CPU time that an owner may have at once; 0: QUOTA_HELPER_CPU */
	uint64_t
		patience; /* ns that an owner may hold up others at once; 0: QUOTA_HOLDING. All: three times that */
	struct outside_books *books; /* where requests without an answer are counted, or NULL */
	const enum outside_thing *things; /* of the services; NULL: files */
};

/* Why a request has no answer; 0: it has one. */
enum helper_refusal {
	HELPER_ANSWERED,
	HELPER_HUNG,   /* the helper made no progress, or took too long */
	HELPER_DIED,   /* the helper ended */
	HELPER_FORGED, /* the helper sent something else than an answer */
	HELPER_BANNED, /* this owner's requests had helpers hang */
	HELPER_OVER_BUDGET, /* the owner's requests take too much CPU time, too many wait, or no descriptor is left */
	HELPER_LATE, /* others wait for it, and have waited enough for this owner's; request it again later */
	HELPER_ENDED, /* the pool or its keeper has ended */
};

struct helper_answer {
	enum helper_refusal refusal; /* then only ticket and cpu_ns are set */
	uint64_t ticket;
	uint64_t cpu_ns; /* of the helper for this request, as the kernel counted it */
	const void *data;
	size_t size;
	/* The callee's to keep: what it takes it sets to -1; the others are closed. */
	int *fds;
	size_t fd_count;
};

/* May make requests, and must not free the pool. */
typedef void (*helper_answer_fn)(void *context, const struct helper_answer *answer);

struct helper_request {
	unsigned int service; /* which of the pool's */
	uint64_t
		owner; /* the owner that it is charged to: see helpers/owner.h; QUOTA_NOBODY: has no limits */
	bool holds; /* others wait for the answer, see helper_pool__set_hurry() */
	const void *data;
	size_t size;	/* 1 to MESSAGE_SIZE_MAX */
	const int *fds; /* the caller's; a copy is sent */
	size_t fd_count;
	helper_answer_fn answer;
	void *context;
	uint64_t ticket; /* the caller's number for it, repeated in the answer */
};

struct helper_pool_stats {
	uint64_t hung; /* helpers that were abandoned with a request */
	uint64_t late; /* requests that others could not wait for */
	uint64_t owners_banned;
};

/* Forks the keeper, which forks the helpers: the caller must have one thread. 0 or negative errno. */
int helper_pool__new(const struct helper_pool_options *options, struct helper_pool **pool);
/* Ends the helpers. Requests without an answer get HELPER_ENDED, as do all later ones. Waits for the keeper alone. */
void helper_pool__end(struct helper_pool *pool);
/* The same, and frees the pool. NULL is fine. */
void helper_pool__free(struct helper_pool *pool);

/* 0: there will be an answer. -EINVAL, -ENOMEM: there will be none. */
int helper_pool__request(struct helper_pool *pool, const struct helper_request *request);
/* Requests with this context get no answer any more. */
void helper_pool__forget(struct helper_pool *pool, const void *context);

/*
 * In a hurry, requests that hold up others are charged to their owner when they take more than some milliseconds: an owner
 * without time left gets HELPER_LATE. Owner 0 (root) is trusted and does not.
 */
void helper_pool__set_hurry(struct helper_pool *pool, bool hurry);

/* Takes answers that have come, looks for hangs, hands out requests that wait. Does not sleep. */
void helper_pool__step(struct helper_pool *pool);
/* The same until no request waits for an answer, or for this long (ns). True: none waits. */
bool helper_pool__settle(struct helper_pool *pool, uint64_t patience);

/* For poll(): readable when helper_pool__step() has something to do, but for hangs. */
int helper_pool__fd(const struct helper_pool *pool);
/* Requests without an answer. */
size_t helper_pool__waiting(const struct helper_pool *pool);
/* Does any request wait for a helper? */
bool helper_pool__queues(const struct helper_pool *pool);

void helper_pool__stats(const struct helper_pool *pool, struct helper_pool_stats *stats);

#endif
