/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/publish_budget.h"

#define LARGE 1024 /* mappings */

void publish_budget__init(struct publish_budget *b)
{
	*b = (struct publish_budget){};
	quota__init(&b->users, QUOTA_PUBLISHING);
}

static const struct quota_limit *limit_of_process(void)
{
	return &quota_row(QUOTA_PUBLISHING)->each;
}

static const struct quota_limit *limit_of_all(void)
{
	return &quota_row(QUOTA_PUBLISHING_SIZE)->all;
}

static struct meter *meter_of_all(struct publish_budget *b, const struct publish_claim *claim)
{
	return &b->all[claim->mappings > LARGE];
}

/* QUOTA_NOBODY: users do not count now. */
static uint64_t owner_of(struct publish_budget *b, const struct publish_claim *claim)
{
	int64_t left = meter__left(meter_of_all(b, claim), limit_of_all(), claim->now);

	return claim->user_of && left <= (int64_t)limit_of_all()->limit / 2
		       ? claim->user_of(claim->context, claim->tgid)
		       : QUOTA_NOBODY;
}

bool publish_budget__allows(struct publish_budget *b, const struct publish_claim *claim)
{
	return meter__left(claim->process, limit_of_process(), claim->now) > 0 &&
	       meter__left(meter_of_all(b, claim), limit_of_all(), claim->now) > 0 &&
	       quota__left(&b->users, owner_of(b, claim), claim->now) > 0;
}

void publish_budget__spend(struct publish_budget *b, const struct publish_claim *claim,
			   uint64_t cost)
{
	quota__take(&b->users, owner_of(b, claim), cost, claim->now);
	meter__take(claim->process, limit_of_process(), cost, claim->now);
	meter__take(meter_of_all(b, claim), limit_of_all(), cost, claim->now);
}
