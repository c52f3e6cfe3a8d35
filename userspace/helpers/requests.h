/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requests of a pool: their order, and what is left to each owner of CPU time, places in the list, time for which
 * the stream waits, and hangs. For helpers/pool.c alone.
 */
#ifndef HELPERS_REQUESTS_H
#define HELPERS_REQUESTS_H

#include "base/quota.h"
#include "helpers/child.h"
#include "helpers/pool.h"

#define REQUEST_SLOW 20000000ull /* ns: a request without an answer by then is slow */

/* A request that has no answer yet. */
struct request {
	struct request *next;
	uint64_t service, owner, time, ticket;
	enum helper_refusal refusal; /* decided when it was made */
	bool for_all;		     /* not its owner's requests are too many, but all */
	bool holds, answered;	     /* the latter: its callback has been called */
	helper_answer_fn answer;     /* NULL: no caller waits for it any more */
	void *context;
	int fds[MESSAGE_FDS_MAX];
	size_t fd_count, size;
	_Alignas(8) char data[];
};

struct requests {
	struct request *first, **last; /* that wait for a helper */
	size_t unanswered;	       /* those that are being served, too */
	struct turns turns;
	struct quota cpu, holding, count, hangs;
	struct quota_limit holding_of_all;
	struct meter held_by_all; /* but the trusted owner */
	bool hurry;
	uint64_t last_step, elapsed; /* ns between the last two */
	struct outside_books *books;
	const enum outside_thing *things;
	struct helper_pool_stats stats;
};

/* Zeroed before. */
void requests__init(struct requests *r, const struct helper_pool_options *options);

/* `refusal`: what the request gets in any case. 0, -ENOMEM, or the error of copying a descriptor. */
int requests__add(struct requests *r, const struct helper_request *from,
		  enum helper_refusal refusal);
/* The oldest one of the owner whose turn it is; `slow`: owners that have to wait. NULL: none. */
struct request *requests__next(struct requests *r, const uint64_t *slow, size_t slow_count,
			       uint64_t now);

/* ---- a request that is in no list any more ---------------------------------------------------- */

/* Calls back, closes the descriptors that were not taken, and frees the request. */
void request__end(struct requests *r, struct request *request, struct helper_answer *answer);
void request__refuse(struct requests *r, struct request *request, enum helper_refusal refusal,
		     uint64_t cpu_ns);
/* It is being served: calls back all the same if its owner has held up others for too long. */
void request__release_late(struct requests *r, struct request *request, uint64_t now);

/* ---- owners ----------------------------------------------------------------------------------- */

/* CPU time that a helper took for a request. */
void requests__charge_cpu(struct requests *r, uint64_t owner, uint64_t ns, uint64_t now);
/* Its request had a helper hang. */
void requests__note_hang(struct requests *r, uint64_t owner);
/* Charges owners for the time since the last step in which others waited for them; `serving` has `count` requests or NULL. */
void requests__charge_step(struct requests *r, struct request *const *serving, size_t count,
			   uint64_t now);
/* Refuses those in the list whose answer is known; `ended`: all of them. */
void requests__refuse_hopeless(struct requests *r, bool ended, uint64_t now);

/* A helper of a pool, whose options are its data: sends its pid, then serves requests. */
int pool_helper__run(const struct child_self *self);

#endif
