/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/sealed_shares.h"

#include <stdlib.h>

#include "base/minmax.h"

#define SECOND_NS UINT64_C(1000000000) /* the grain of a limit: less is nothing */
#define ROOT	  0

void sealed_shares__fini(struct sealed_shares *s)
{
	vec_free(&s->accounts);
}

int sealed_shares__open(struct sealed_shares *s, uint32_t user, uint32_t *account)
{
	for (uint32_t i = 0; i < s->accounts.count; i++) {
		*account = i;
		if (s->accounts.data[i].user == user)
			return 0;
	}
	*account = (uint32_t)s->accounts.count;
	return vec_push(&s->accounts, (struct sealed_account){.user = user});
}

static bool is_root(const struct sealed_shares *s, uint32_t account)
{
	return s->accounts.data[account].user == ROOT;
}

static uint64_t left_of(const struct sealed_account *a, uint64_t limit, bool with_set_aside)
{
	uint64_t taken = a->used + (with_set_aside ? a->set_aside : 0);

	return taken < limit ? limit - taken : 0;
}

static uint64_t left_for(const struct sealed_shares *s, uint32_t account, bool with_set_aside)
{
	const struct sealed_account *a = &s->accounts.data[account];

	if (is_root(s, account))
		return UINT64_MAX;
	return min_u64(left_of(a, s->user_limit, with_set_aside),
		       left_of(&s->others, s->others_limit, with_set_aside));
}

bool sealed_shares__has_some(const struct sealed_shares *s, uint32_t account)
{
	return left_for(s, account, true) >= SECOND_NS;
}

unsigned int sealed_shares__begin(struct sealed_shares *s, uint32_t account, unsigned int seconds)
{
	struct sealed_account *a = &s->accounts.data[account];
	uint64_t left = left_for(s, account, true) / SECOND_NS;
	unsigned int granted = (unsigned int)min_u64(seconds, left);

	if (!granted)
		return 0;
	a->running++;
	a->set_aside += granted * SECOND_NS;
	if (!is_root(s, account))
		s->others.set_aside += granted * SECOND_NS;
	return granted;
}

void sealed_shares__end(struct sealed_shares *s, uint32_t account, unsigned int seconds,
			uint64_t used)
{
	struct sealed_account *a = &s->accounts.data[account];

	a->running--;
	a->set_aside -= seconds * SECOND_NS;
	a->used += used;
	if (is_root(s, account))
		return;
	s->others.set_aside -= seconds * SECOND_NS;
	s->others.used += used;
}

bool sealed_shares__is_used_up(const struct sealed_shares *s, uint32_t account, bool *by_all)
{
	const struct sealed_account *a = &s->accounts.data[account];

	*by_all = left_of(a, s->user_limit, false) >= SECOND_NS;
	return left_for(s, account, false) < SECOND_NS;
}

size_t sealed_shares__running(const struct sealed_shares *s, uint32_t account)
{
	return s->accounts.data[account].running;
}
