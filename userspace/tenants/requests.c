/* SPDX-License-Identifier: BSD-2-Clause */
#include "tenants/requests.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/clocks.h"
#include "base/minmax.h"
#include "base/order.h"
#include "tenants/owner.h"

#define BUDGET_PATIENCE 2000000000ull /* ns that a request waits for its owner's CPU time */
#define STEP_MAX	50000000ull   /* ns: any more between two steps is the collector's fault */
#define CHARGED_MAX	64	      /* owners in one step */
#define TRUSTED		0	      /* the owner that may keep others waiting */

static void override(struct quota_limit *limit, uint64_t value)
{
	if (!value)
		return;
	if (limit->period)
		limit->period = limit->period / limit->limit * value;
	limit->limit = value;
}

void requests__init(struct requests *r, const struct helper_pool_options *options)
{
	r->last = &r->first;
	r->books = options->books;
	r->things = options->things;
	quota__init(&r->cpu, QUOTA_HELPER_CPU);
	quota__init(&r->holding, QUOTA_HOLDING);
	quota__init(&r->count, QUOTA_REQUESTS);
	override(&r->cpu.user, options->credit);
	if (options->any_cpu_time)
		r->cpu.user = (struct quota_limit){};
	r->hangs.user.limit = options->hangs;
	override(&r->holding.user, options->patience);
	override(&r->holding.all, 3 * options->patience);
	/* one charge a step for all owners together */
	r->holding_of_all = r->holding.all;
	r->holding.all = (struct quota_limit){};
}

/* ---- owners ---------------------------------------------------------------------------------- */

static bool has_credit(const struct requests *r, uint64_t owner, uint64_t now)
{
	return quota__left(&r->cpu, owner, now) > 0;
}

void requests__charge_cpu(struct requests *r, uint64_t owner, uint64_t ns, uint64_t now)
{
	quota__take(&r->cpu, owner, r->cpu.user.limit ? min_u64(ns, r->cpu.user.limit) : ns, now);
}

static bool is_banned(const struct requests *r, uint64_t owner)
{
	return quota__left(&r->hangs, owner, 0) <= 0;
}

void requests__note_hang(struct requests *r, uint64_t owner)
{
	if (is_banned(r, owner))
		return;
	quota__take(&r->hangs, owner, 1, 0);
	r->stats.owners_banned += is_banned(r, owner);
}

/* Callbacks of a step add requests that are younger than its `now`. */
static uint64_t age_of(const struct request *request, uint64_t now)
{
	return now > request->time ? now - request->time : 0;
}

static bool holds_up(const struct requests *r, const struct request *request, uint64_t now)
{
	return r->hurry && request->holds && !request->answered && request->owner != TRUSTED &&
	       age_of(request, now) > REQUEST_SLOW;
}

struct charged {
	uint64_t owners[CHARGED_MAX];
	size_t count;
};

/* Charges each owner once a step, however many requests it has. */
static void charge_request(struct requests *r, const struct request *request, uint64_t now,
			   struct charged *charged)
{
	uint64_t amount;

	if (!holds_up(r, request, now) || charged->count == CHARGED_MAX)
		return;
	amount = min_u64(r->elapsed, age_of(request, now) - REQUEST_SLOW);
	for (size_t i = 0; i < charged->count; i++)
		if (charged->owners[i] == request->owner)
			return;
	if (!charged->count)
		meter__take(&r->held_by_all, &r->holding_of_all, amount, now);
	charged->owners[charged->count++] = request->owner;
	quota__take(&r->holding, request->owner, amount, now);
}

void requests__charge_step(struct requests *r, struct request *const *serving, size_t count,
			   uint64_t waited, uint64_t now)
{
	struct charged charged = {};

	r->elapsed = r->last_step ? min_u64(now - r->last_step, STEP_MAX) : 0;
	/* half at most: an owner whose programs keep the CPUs busy is charged, too */
	r->elapsed -= min_u64(r->elapsed / 2, waited);
	r->last_step = now;
	for (const struct request *i = r->first; i && r->hurry; i = i->next)
		charge_request(r, i, now, &charged);
	for (size_t i = 0; i < count; i++)
		if (serving[i])
			charge_request(r, serving[i], now, &charged);
}

static bool is_late(const struct requests *r, const struct request *request, uint64_t now)
{
	return holds_up(r, request, now) &&
	       (quota__left(&r->holding, request->owner, now) <= 0 ||
		meter__left(&r->held_by_all, &r->holding_of_all, now) <= 0);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void report_answer(struct requests *r, struct request *request, struct helper_answer *answer)
{
	if (request->answered)
		return;
	request->answered = true;
	answer->ticket = request->ticket;
	quota__give(&r->count, request->owner, 1);
	r->unanswered--;
	r->stats.late += answer->refusal == HELPER_LATE;
	if (request->answer)
		request->answer(request->context, answer);
}

void request__end(struct requests *r, struct request *request, struct helper_answer *answer)
{
	report_answer(r, request, answer);
	message__close_fds(answer->fds, answer->fd_count);
	message__close_fds(request->fds, request->fd_count);
	free(request);
}

static void count_refusal(const struct requests *r, const struct request *request,
			  enum helper_refusal refusal)
{
	static const enum outside_reason reasons[] = {
		[HELPER_HUNG] = OUTSIDE_BY_NO_ANSWER,	[HELPER_DIED] = OUTSIDE_BY_NO_ANSWER,
		[HELPER_FORGED] = OUTSIDE_BY_NO_ANSWER, [HELPER_BANNED] = OUTSIDE_BY_BANNED,
		[HELPER_OVER_BUDGET] = OUTSIDE_BY_USER, [HELPER_LATE] = OUTSIDE_BY_TOO_SLOW,
	};

	if (refusal != HELPER_ENDED)
		outside_books__add(r->books, helper_owner_user(request->owner),
				   r->things ? r->things[request->service] : OUTSIDE_FILES,
				   request->for_all ? OUTSIDE_BY_ALL : reasons[refusal], 1);
}

void request__refuse(struct requests *r, struct request *request, enum helper_refusal refusal,
		     uint64_t cpu_ns)
{
	struct helper_answer answer = {.refusal = refusal, .cpu_ns = cpu_ns};

	count_refusal(r, request, refusal);
	request__end(r, request, &answer);
}

void request__release_late(struct requests *r, struct request *request, uint64_t now)
{
	struct helper_answer late = {.refusal = HELPER_LATE};

	if (!is_late(r, request, now))
		return;
	count_refusal(r, request, HELPER_LATE);
	report_answer(r, request, &late);
}

/* ---- the list -------------------------------------------------------------------------------- */

static int copy_fds(struct request *to, const struct helper_request *from)
{
	for (size_t i = 0; i < from->fd_count; i++) {
		to->fds[i] = fcntl(from->fds[i], F_DUPFD_CLOEXEC, 0);
		if (to->fds[i] < 0)
			return -errno;
		to->fd_count++;
	}
	return 0;
}

static void decide(const struct requests *r, struct request *request)
{
	enum outside_reason over = quota__refusal(&r->count, request->owner, 1, 0);

	if (request->refusal)
		return;
	if (is_banned(r, request->owner))
		request->refusal = HELPER_BANNED;
	else if (over != OUTSIDE_REASON_COUNT)
		request->refusal = HELPER_OVER_BUDGET;
	request->for_all = request->refusal == HELPER_OVER_BUDGET && over == OUTSIDE_BY_ALL;
}

int requests__add(struct requests *r, const struct helper_request *from,
		  enum helper_refusal refusal)
{
	struct request *request = malloc(sizeof(*request) + from->size);
	int err;

	if (!request)
		return -ENOMEM;
	*request = (struct request){.service = from->service,
				    .owner = from->owner,
				    .refusal = refusal,
				    .holds = from->holds,
				    .time = monotonic_ns(),
				    .answer = from->answer,
				    .context = from->context,
				    .ticket = from->ticket,
				    .size = from->size};
	memcpy(request->data, from->data, from->size);
	decide(r, request);
	err = request->refusal ? 0 : copy_fds(request, from);
	if (err) {
		message__close_fds(request->fds, request->fd_count);
		request->fd_count = 0;
	}
	if (err == -EMFILE || err == -ENFILE) {
		request->refusal = HELPER_OVER_BUDGET;
		request->for_all = true;
	} else if (err) {
		free(request);
		return err;
	}
	quota__take(&r->count, request->owner, 1, 0);
	r->unanswered++;
	*r->last = request;
	r->last = &request->next;
	return 0;
}

static struct request *unlink_request(struct requests *r, struct request **link)
{
	struct request *request = *link;

	*link = request->next;
	if (!request->next)
		r->last = link;
	request->next = NULL;
	return request;
}

static bool is_among(uint64_t owner, const uint64_t *owners, size_t count)
{
	return any_of(owners, count, known, *known == owner);
}

struct request *requests__next(struct requests *r, const uint64_t *slow, size_t slow_count,
			       uint64_t now)
{
	uint64_t passed = QUOTA_NOBODY -
			  1; /* owner of the previous one: requests often come in long runs */
	struct request **next = NULL;

	for (struct request **link = &r->first; *link; link = &(*link)->next) {
		uint64_t owner = (*link)->owner;

		if (owner == passed || (*link)->refusal)
			continue;
		passed = owner;
		if (next && !turns__is_before(&r->turns, owner, (*next)->owner))
			continue;
		if (!is_among(owner, slow, slow_count) && has_credit(r, owner, now))
			next = link;
	}
	if (!next)
		return NULL;
	turns__take(&r->turns, (*next)->owner);
	return unlink_request(r, next);
}

void requests__put_back(struct requests *r, struct request *request)
{
	request->next = r->first;
	r->first = request;
	if (!request->next)
		r->last = &request->next;
}

static enum helper_refusal refusal_of(const struct requests *r, const struct request *request,
				      bool banned, uint64_t now)
{
	if (request->refusal)
		return request->refusal;
	if (banned)
		return HELPER_BANNED;
	if (age_of(request, now) > BUDGET_PATIENCE && !has_credit(r, request->owner, now))
		return HELPER_OVER_BUDGET;
	return is_late(r, request, now) ? HELPER_LATE : HELPER_ANSWERED;
}

/* Callbacks may add requests, so the refused ones are unlinked first. */
void requests__refuse_hopeless(struct requests *r, bool ended, uint64_t now)
{
	struct request **link = &r->first, *hopeless = NULL, **end = &hopeless;
	uint64_t owner = QUOTA_NOBODY;
	bool banned = false;

	while (*link) {
		if ((*link)->owner != owner)
			banned = is_banned(r, owner = (*link)->owner);
		(*link)->refusal = ended ? HELPER_ENDED : refusal_of(r, *link, banned, now);
		if (!(*link)->refusal) {
			link = &(*link)->next;
			continue;
		}
		*end = unlink_request(r, link);
		end = &(*end)->next;
	}
	while (hopeless) {
		struct request *next = hopeless->next;

		request__refuse(r, hopeless, hopeless->refusal, 0);
		hopeless = next;
	}
}
