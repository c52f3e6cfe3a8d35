/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/told_budget.h"

void told_budget__init(struct told_budget *b)
{
	*b = (struct told_budget){};
	quota__init(&b->functions, QUOTA_FUNCTIONS);
}

/* While three quarters of what all may have are left, users do not count. */
static uint64_t owner_of(const struct told_budget *b, struct outside_books *books, uint32_t pid,
			 uint64_t now)
{
	int64_t left = quota__left(&b->functions, QUOTA_NOBODY, now);

	return books && left < (int64_t)(b->functions.all.limit / 4 * 3)
		       ? outside_books__user_of(books, (pid_t)pid)
		       : QUOTA_NOBODY;
}

bool told_budget__spend(struct told_budget *b, struct meter *process, struct outside_books *books,
			uint32_t pid, size_t bytes, uint64_t now)
{
	const struct quota_limit *each = &quota_row(QUOTA_FUNCTIONS)->each;
	int64_t left = meter__left(process, each, now);
	uint64_t owner = owner_of(b, books, pid, now);
	enum outside_reason refusal = left <= 0 || bytes > (uint64_t)left
					      ? OUTSIDE_BY_ITSELF
					      : quota__refusal(&b->functions, owner, bytes, now);

	if (refusal != OUTSIDE_REASON_COUNT) {
		outside_books__add(books, outside_books__user_of(books, (pid_t)pid),
				   OUTSIDE_FUNCTIONS, refusal, 1);
		return false;
	}
	meter__take(process, each, bytes, now);
	quota__take(&b->functions, owner, bytes, now);
	return true;
}

bool told_budget__may_read(struct told_budget *b, size_t bytes, uint64_t now)
{
	const struct quota_limit *limit = &quota_row(QUOTA_CODE_COPIES)->all;
	int64_t left = meter__left(&b->copies, limit, now);

	if (left <= 0 || bytes > (uint64_t)left)
		return false;
	meter__take(&b->copies, limit, bytes, now);
	return true;
}
