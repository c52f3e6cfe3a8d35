/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/user_shares.h"

#include <errno.h>
#include <stdlib.h>

void user_shares__fini(struct user_shares *s)
{
	vec_free(&s->all);
}

/* Its number, that of a free one, or the count. */
static uint32_t find_user(const struct user_shares *s, uint32_t user)
{
	uint32_t free = s->all.count;

	for (uint32_t i = 0; i < s->all.count; i++) {
		if (s->all.data[i].things && s->all.data[i].user == user)
			return i;
		if (!s->all.data[i].things)
			free = i;
	}
	return free;
}

int user_shares__add(struct user_shares *s, uint32_t user, uint64_t amount, uint32_t *number)
{
	uint32_t i = find_user(s, user);
	int err = i == s->all.count ? vec_push(&s->all, (struct user_share){}) : 0;

	if (err)
		return err;
	s->all.data[i].user = user;
	s->all.data[i].things++;
	s->all.data[i].amount += amount;
	*number = i;
	return 0;
}

void user_shares__remove(struct user_shares *s, uint32_t number, uint64_t amount)
{
	s->all.data[number].things--;
	s->all.data[number].amount -= amount;
}

uint64_t user_shares__of(const struct user_shares *s, uint32_t user)
{
	uint32_t i = find_user(s, user);

	return i < s->all.count && s->all.data[i].things ? s->all.data[i].amount : 0;
}
