/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/publish_budget.h"

#include <stdlib.h>

#include "base/minmax.h"

#define MS	    1000000ll
#define LARGE	    1024 /* mappings */
#define USERS_KNOWN 256

/* A hundredth of a CPU for a process, a fiftieth for a user, a twentieth for all of a size. */
static const struct rate {
	uint64_t divisor;
	int64_t limit;
} PROCESS = {100, 50 * MS}, USER = {50, 100 * MS}, ALL = {20, 200 * MS};

void publish_budget__fini(struct publish_budget *b)
{
	vec_free(&b->users);
}

static int64_t refill(struct credit *c, const struct rate *rate, uint64_t now)
{
	uint64_t more = now > c->as_of ? (now - c->as_of) / rate->divisor : 0;

	if (!c->as_of || more > (uint64_t)(rate->limit - c->left))
		c->left = rate->limit;
	else
		c->left += more;
	c->as_of = now;
	return c->left;
}

static struct credit *credit_of_all(struct publish_budget *b, const struct publish_claim *claim)
{
	return &b->all[claim->mappings > LARGE];
}

/* NULL: no memory, or the user does not count now. */
static struct credit *credit_of_user(struct publish_budget *b, const struct publish_claim *claim)
{
	struct user_credit *oldest = NULL;
	uint32_t user;

	if (!claim->user_of || credit_of_all(b, claim)->left > ALL.limit / 2)
		return NULL;
	user = claim->user_of(claim->context, claim->tgid);
	for (size_t i = 0; i < b->users.count; i++) {
		struct user_credit *u = &b->users.data[i];

		if (u->user == user)
			return &u->credit;
		if (!oldest || u->credit.as_of < oldest->credit.as_of)
			oldest = u;
	}
	if (b->users.count < USERS_KNOWN) {
		if (vec_push(&b->users, (struct user_credit){}))
			return NULL;
		oldest = &b->users.data[b->users.count - 1];
	}
	*oldest = (struct user_credit){.user = user};
	return &oldest->credit;
}

bool publish_budget__allows(struct publish_budget *b, const struct publish_claim *claim)
{
	struct credit *user;

	if (refill(claim->process, &PROCESS, claim->now) <= 0 ||
	    refill(credit_of_all(b, claim), &ALL, claim->now) <= 0)
		return false;
	user = credit_of_user(b, claim);
	return !user || refill(user, &USER, claim->now) > 0;
}

void publish_budget__spend(struct publish_budget *b, const struct publish_claim *claim,
			   uint64_t cost)
{
	struct credit *user = credit_of_user(b, claim);

	claim->process->left -= (int64_t)cost;
	credit_of_all(b, claim)->left -= (int64_t)cost;
	if (!user)
		return;
	refill(user, &USER, claim->now);
	user->left -= (int64_t)cost;
}
