/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requests of a pool: their order, and each owner's quotas of CPU time, waiting requests, time
 * for which the stream waits, and hangs. For tenants/pool.c only.
 */
#ifndef TENANTS_REQUESTS_H
#define TENANTS_REQUESTS_H

#include "tenants/child.h"
#include "tenants/pool.h"
#include "tenants/quota.h"

#define REQUEST_SLOW 20000000ull /* ns without an answer: the request is slow */

struct request {
	struct request *next;
	uint64_t service, owner, time, ticket;
	enum helper_refusal refusal; /* decided when it was made */
	bool for_all;		     /* refused by a limit on all owners */
	bool holds, answered;	     /* answered: its callback has been called */
	helper_answer_fn answer;     /* NULL: the caller has forgotten it */
	void *context;
	int fds[MESSAGE_FDS_MAX];
	size_t fd_count, size;
	_Alignas(8) char data[];
};

struct requests {
	struct request *first, **last; /* requests that wait for a helper */
	size_t unanswered;	       /* these, and those being served */
	struct turns turns;
	struct quota cpu, holding, count, hangs;
	struct quota_limit holding_of_all;
	struct meter held_by_all; /* except the trusted owner */
	bool hurry;
	uint64_t last_step, elapsed; /* ns between the last two */
	struct outside_books *books;
	const enum outside_thing *things;
	struct helper_pool_stats stats;
};

/* `r` must be zeroed. */
void requests__init(struct requests *r, const struct helper_pool_options *options);

/* `refusal`: refuse it in any case. 0, -ENOMEM, or the error of copying a descriptor. */
int requests__add(struct requests *r, const struct helper_request *from,
		  enum helper_refusal refusal);
/* The oldest request of the owner whose turn it is; not of `slow` owners. NULL: none. */
struct request *requests__next(struct requests *r, const uint64_t *slow, size_t slow_count,
			       uint64_t now);

/* The one that was taken last is the oldest again. */
void requests__put_back(struct requests *r, struct request *request);

/* ---- a request that was taken from the list -------------------------------------------------- */

/* Calls back, closes the descriptors that the callee did not keep, frees the request. */
void request__end(struct requests *r, struct request *request, struct helper_answer *answer);
void request__refuse(struct requests *r, struct request *request, enum helper_refusal refusal,
		     uint64_t cpu_ns);
/* Of one being served: refuses it now if its owner has held up others for too long. */
void request__release_late(struct requests *r, struct request *request, uint64_t now);

/* ---- owners ---------------------------------------------------------------------------------- */

void requests__charge_cpu(struct requests *r, uint64_t owner, uint64_t ns, uint64_t now);
void requests__note_hang(struct requests *r, uint64_t owner);
/*
 * Charges owners for holding up others since the last step. Of the time that helpers and this
 * thread `waited` for a CPU in it they are charged half: their own programs may keep the CPUs busy.
 * `serving` may have NULLs.
 */
void requests__charge_step(struct requests *r, struct request *const *serving, size_t count,
			   uint64_t waited, uint64_t now);
/* Refuses waiting requests that cannot be served any more; `ended`: all of them. */
void requests__refuse_hopeless(struct requests *r, bool ended, uint64_t now);

#endif
