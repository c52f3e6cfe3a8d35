/* SPDX-License-Identifier: BSD-2-Clause */
#include "tenants/quota.h"

#include <stdatomic.h>

#include "base/minmax.h"

#define ROOT_ACCOUNT   0 /* where QUOTA_ROOT's search begins */
#define SHARED_ACCOUNT (QUOTA_OWNERS - 1)
#define OUTSIDE_NONE   OUTSIDE_THING_COUNT

/* The words for limits in QUOTAS(). */
#define NONE			      ((struct quota_limit){})
#define HELD(limit)		      ((struct quota_limit){limit, 0, false, false})
#define OTHERS(limit)		      ((struct quota_limit){limit, 0, false, true})
#define RATE(limit, period)	      ((struct quota_limit){limit, period, false, false})
#define RATE_OF_OTHERS(limit, period) ((struct quota_limit){limit, period, false, true})
#define GROWS(limit, period)	      ((struct quota_limit){limit, period, true, false})

static const struct quota_row rows[QUOTA_THING_COUNT] = {
#define X(id, unit, each, user, all, policy, books, text)                                          \
	[QUOTA_##id] = {text, QUOTA_##unit, QUOTA_##policy, OUTSIDE_##books, each, user, all},
	QUOTAS(X)
#undef X
};

const struct quota_row *quota_row(enum quota_thing thing)
{
	return &rows[thing];
}

/* ---- one account ----------------------------------------------------------------------------- */

static uint64_t scaled(uint64_t value, uint64_t by, uint64_t divisor)
{
	return (uint64_t)((unsigned __int128)value * by / divisor);
}

/* The amount returned since. */
static int64_t given_again(const struct meter *m, const struct quota_limit *l, uint64_t now)
{
	return l->period && now > m->as_of
		       ? (int64_t)min_u64(scaled(now - m->as_of, l->limit, l->period), INT64_MAX)
		       : 0;
}

int64_t meter__left(const struct meter *m, const struct quota_limit *l, uint64_t now)
{
	int64_t used = m->used - given_again(m, l, now);

	if (!l->limit)
		return INT64_MAX;
	return (int64_t)l->limit - (used < 0 && !l->grows ? 0 : used);
}

/* A rest of less than one unit stays due. */
static void settle(struct meter *m, const struct quota_limit *l, uint64_t now)
{
	int64_t given = given_again(m, l, now);

	if (!l->limit || !l->period || l->grows)
		return;
	if (m->used <= given) {
		m->used = 0;
		m->as_of = max_u64(m->as_of, now);
	} else {
		m->used -= given;
		m->as_of += scaled((uint64_t)given, l->period, l->limit);
	}
}

void meter__take(struct meter *m, const struct quota_limit *l, uint64_t amount, uint64_t now)
{
	settle(m, l, now);
	m->used += (int64_t)amount;
}

static bool is_over(int64_t left, uint64_t amount)
{
	return left < 0 || amount > (uint64_t)left;
}

bool meter__spend(struct meter *m, const struct quota_limit *l, uint64_t amount, uint64_t now)
{
	if (is_over(meter__left(m, l, now), amount))
		return false;
	meter__take(m, l, amount, now);
	return true;
}

/* ---- accounts of owners ---------------------------------------------------------------------- */

void quota__init(struct quota *q, enum quota_thing thing)
{
	*q = (struct quota){
		.each = rows[thing].each, .user = rows[thing].user, .all = rows[thing].all};
}

void quota__begin(struct quota *q, uint64_t now)
{
	q->began = q->total.as_of = q->accounts[SHARED_ACCOUNT].meter.as_of = now;
}

void quota__continue(struct quota *q, const struct quota *old)
{
	struct quota own = {.user = q->user, .all = q->all, .shared = q->shared};

	*q = *old;
	q->user = own.user;
	q->all = own.all;
	q->shared = own.shared;
	for (uint32_t i = 0; i < QUOTA_OWNERS; i++)
		q->accounts[i].meter.used = (int64_t)min_u64((uint64_t)q->accounts[i].meter.used,
							     INT64_MAX / 2);
}

/* A new account is as empty as one that has given everything back. */
static bool is_vacant(const struct quota *q, const struct quota_account *a, uint64_t now)
{
	return !a->key ||
	       (!q->user.grows && a->meter.used <= given_again(&a->meter, &q->user, now));
}

/* The account of the owner, or the shared one. *vacant: an account that it may have. */
static uint32_t find(const struct quota *q, uint64_t owner, uint64_t now, uint32_t *vacant)
{
	uint32_t first = (uint32_t)((owner * 0x9e3779b97f4a7c15ull) >> 32);

	*vacant = SHARED_ACCOUNT;
	for (uint32_t i = 0; i < SHARED_ACCOUNT; i++) {
		uint32_t at = (first + i) % SHARED_ACCOUNT;
		const struct quota_account *a = &q->accounts[at];

		if (at == ROOT_ACCOUNT && owner != QUOTA_ROOT)
			continue;
		if (a->key == owner + 1)
			return at;
		if (*vacant == SHARED_ACCOUNT && is_vacant(q, a, now))
			*vacant = at;
		if (!a->key)
			break;
	}
	return SHARED_ACCOUNT;
}

/* Without an account: nothing, or the shared account's if no account is vacant. */
static struct meter meter_of(const struct quota *q, uint64_t owner, uint64_t now)
{
	uint32_t vacant, at = find(q, owner, now, &vacant);

	if (owner == QUOTA_NOBODY || (at == SHARED_ACCOUNT && vacant != SHARED_ACCOUNT))
		return (struct meter){.as_of = q->began};
	return q->accounts[at].meter;
}

static struct meter total_of(const struct quota *q)
{
	return q->shared ? (struct meter){.used = *q->shared, .as_of = q->began} : q->total;
}

static bool is_spared(const struct quota *q, uint64_t owner)
{
	return owner == QUOTA_ROOT && q->all.spares_root;
}

static int64_t left_for_all(const struct quota *q, uint64_t owner, uint64_t now)
{
	const struct meter total = total_of(q);

	return is_spared(q, owner) ? INT64_MAX : meter__left(&total, &q->all, now);
}

static int64_t left_for_user(const struct quota *q, uint64_t owner, uint64_t now)
{
	const struct meter own = meter_of(q, owner, now);

	return owner == QUOTA_NOBODY ? INT64_MAX : meter__left(&own, &q->user, now);
}

int64_t quota__left(const struct quota *q, uint64_t owner, uint64_t now)
{
	int64_t user = left_for_user(q, owner, now), all = left_for_all(q, owner, now);

	return user < all ? user : all;
}

enum outside_reason quota__refusal(const struct quota *q, uint64_t owner, uint64_t amount,
				   uint64_t now)
{
	if (is_over(left_for_user(q, owner, now), amount))
		return OUTSIDE_BY_USER;
	return is_over(left_for_all(q, owner, now), amount) ? OUTSIDE_BY_ALL : OUTSIDE_REASON_COUNT;
}

enum outside_reason quota__scarcest(const struct quota *q, uint64_t owner)
{
	return left_for_user(q, owner, 0) <= left_for_all(q, owner, 0) ? OUTSIDE_BY_USER
								       : OUTSIDE_BY_ALL;
}

static void take_for_all(struct quota *q, uint64_t owner, int64_t amount, uint64_t now)
{
	if (is_spared(q, owner))
		return;
	if (q->shared)
		atomic_fetch_add(q->shared, amount);
	else
		meter__take(&q->total, &q->all, (uint64_t)amount, now);
}

static void take_for_user(struct quota *q, uint64_t owner, uint64_t amount, uint64_t now)
{
	uint32_t vacant, at = find(q, owner, now, &vacant);

	if (owner == QUOTA_NOBODY)
		return;
	if (at == SHARED_ACCOUNT && vacant != SHARED_ACCOUNT) {
		at = vacant;
		q->accounts[at] = (struct quota_account){.key = owner + 1, .meter.as_of = q->began};
	}
	meter__take(&q->accounts[at].meter, &q->user, amount, now);
}

void quota__take(struct quota *q, uint64_t owner, uint64_t amount, uint64_t now)
{
	take_for_all(q, owner, (int64_t)amount, now);
	take_for_user(q, owner, amount, now);
}

/* Amounts taken while there was no account for the owner are in the shared one. */
void quota__give(struct quota *q, uint64_t owner, uint64_t amount)
{
	uint32_t vacant, at = find(q, owner, 0, &vacant);
	uint64_t given = min_u64(amount, (uint64_t)q->accounts[at].meter.used);
	struct meter *shared = &q->accounts[SHARED_ACCOUNT].meter;

	if (owner == QUOTA_NOBODY) {
		take_for_all(q, owner, -(int64_t)amount, 0);
		return;
	}
	q->accounts[at].meter.used -= (int64_t)given;
	if (given < amount) {
		amount = min_u64(amount - given, (uint64_t)shared->used);
		shared->used -= (int64_t)amount;
		given += amount;
	}
	take_for_all(q, owner, -(int64_t)given, 0);
}

uint64_t quota__used(const struct quota *q, uint64_t owner)
{
	return (uint64_t)meter_of(q, owner, 0).used;
}

static uint64_t claimant(const struct quota *q, const struct quota_claim *c)
{
	return c->user_of && meter__left(c->all, &q->all, c->now) <= c->scarce
		       ? c->user_of(c->context, c->pid)
		       : QUOTA_NOBODY;
}

enum outside_reason quota__claim_refusal(const struct quota *q, const struct quota_claim *c,
					 uint64_t amount)
{
	uint64_t user = claimant(q, c);

	if (is_over(meter__left(c->process, &q->each, c->now), amount))
		return OUTSIDE_BY_ITSELF;
	if (is_over(left_for_user(q, user, c->now), amount))
		return OUTSIDE_BY_USER;
	return !is_spared(q, user) && is_over(meter__left(c->all, &q->all, c->now), amount)
		       ? OUTSIDE_BY_ALL
		       : OUTSIDE_REASON_COUNT;
}

void quota__claim(struct quota *q, const struct quota_claim *c, uint64_t amount)
{
	uint64_t user = claimant(q, c);

	take_for_user(q, user, amount, c->now);
	meter__take(c->process, &q->each, amount, c->now);
	if (!is_spared(q, user))
		meter__take(c->all, &q->all, amount, c->now);
}

uint32_t quota__most(const struct quota *q, uint64_t owner, uint64_t amount)
{
	uint64_t most = quota__used(q, owner) + amount;
	uint32_t found = QUOTA_OWNERS;

	for (uint32_t i = 0; i < QUOTA_OWNERS; i++) {
		if ((uint64_t)q->accounts[i].meter.used <= most)
			continue;
		most = (uint64_t)q->accounts[i].meter.used;
		found = i;
	}
	return found;
}

bool quota__is_of(const struct quota *q, uint32_t account, uint64_t owner)
{
	uint32_t vacant;

	return account < SHARED_ACCOUNT ? q->accounts[account].key == owner + 1
					: account == find(q, owner, 0, &vacant);
}

/* ---- turns ----------------------------------------------------------------------------------- */

bool turns__is_before(const struct turns *t, uint64_t owner, uint64_t other)
{
	if (owner == other)
		return false;
	if (owner == QUOTA_ROOT || other == QUOTA_ROOT)
		return (owner == QUOTA_ROOT) == t->tenants;
	return owner - t->last_tenant - 1 < other - t->last_tenant - 1;
}

void turns__take(struct turns *t, uint64_t owner)
{
	t->tenants = owner != QUOTA_ROOT;
	if (t->tenants)
		t->last_tenant = owner;
}
