/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/told_budget.h"

#include <stdlib.h>

void told_budget__fini(struct told_budget *b)
{
	vec_free(&b->users);
}

/* Without memory for another one he is the last that there is. NULL: there is none. */
static struct told_by_user *find_user(struct told_budget *b, uint32_t user)
{
	for (size_t i = 0; i < b->users.count; i++)
		if (b->users.data[i].user == user)
			return &b->users.data[i];
	if (b->users.count < TOLD_USERS)
		vec_push(&b->users, (struct told_by_user){.user = user});
	return b->users.count ? &b->users.data[b->users.count - 1] : NULL;
}

static bool is_over(size_t told, size_t bytes, size_t limit)
{
	return told >= limit || bytes > limit - told;
}

/* What forbids it: OUTSIDE_REASON_COUNT if nothing does. */
static enum outside_reason refusal(const struct told_budget *b,
				   const struct told_by_process *process,
				   const struct told_by_user *user, size_t bytes)
{
	if (is_over(process->bytes, bytes, TOLD_PROCESS))
		return OUTSIDE_BY_ITSELF;
	if (user && is_over(user->bytes, bytes, TOLD_USER))
		return OUTSIDE_BY_USER;
	return is_over(b->bytes, bytes, TOLD_ALL) ? OUTSIDE_BY_ALL : OUTSIDE_REASON_COUNT;
}

bool told_budget__spend(struct told_budget *b, struct told_by_process *process,
			struct outside_books *books, uint32_t pid, size_t bytes, uint64_t now)
{
	struct told_by_user *user = NULL;
	enum outside_reason reason;

	if (now > b->since + TOLD_TIME) {
		b->since = now;
		b->bytes = 0;
		b->users.count = 0;
	}
	if (now > process->since + TOLD_TIME)
		*process = (struct told_by_process){.since = now};
	if (books && b->bytes > TOLD_ALL / 4)
		user = find_user(b, outside_books__user_of(books, (pid_t)pid));
	reason = refusal(b, process, user, bytes);
	if (reason != OUTSIDE_REASON_COUNT) {
		if (books)
			outside_books__add(books, outside_books__user_of(books, (pid_t)pid),
					   OUTSIDE_FUNCTIONS, reason, 1);
		return false;
	}
	process->bytes += bytes;
	b->bytes += bytes;
	if (user)
		user->bytes += bytes;
	return true;
}

bool told_budget__may_read(struct told_budget *b, size_t bytes, uint64_t now)
{
	if (now > b->copies_since + COPIES_TIME) {
		b->copies_since = now;
		b->copied = 0;
	}
	if (is_over(b->copied, bytes, COPIES_ALL))
		return false;
	b->copied += bytes;
	return true;
}
