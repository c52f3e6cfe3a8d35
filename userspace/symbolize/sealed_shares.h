/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much CPU time the sealed children of one user's files may take, and those of all users but root. A child has
 * a limit of its own, but he can have as many files as he likes. What a child may take is set aside when it starts, so that
 * many at once keep to the sum, too; what it has not used is given back when it has ended.
 */
#ifndef SYMBOLIZE_SEALED_SHARES_H
#define SYMBOLIZE_SEALED_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct sealed_account {
	uint32_t user;
	uint64_t used, set_aside; /* ns of CPU time */
	size_t running;		  /* children */
};

struct sealed_shares {
	uint64_t user_limit, others_limit; /* ns */
	VEC(struct sealed_account) accounts;
	struct sealed_account others; /* all but root */
};

void sealed_shares__fini(struct sealed_shares *s);

/* The user's account: a number that stays valid. 0 or -ENOMEM. */
int sealed_shares__open(struct sealed_shares *s, uint32_t user, uint32_t *account);

/* May a child start now? */
bool sealed_shares__has_some(const struct sealed_shares *s, uint32_t account);
/*
 * A child is to start. Seconds that it may take, at most those it wants; 0: there are none, now (others of the user
 * run) or any more (sealed_shares__is_used_up()).
 */
unsigned int sealed_shares__begin(struct sealed_shares *s, uint32_t account, unsigned int seconds);
/* It has ended, or was not started after all, and had so many seconds. */
void sealed_shares__end(struct sealed_shares *s, uint32_t account, unsigned int seconds,
			uint64_t used);

/* Nothing is left, whatever ends. *by_all: not for the user, but for all together. */
bool sealed_shares__is_used_up(const struct sealed_shares *s, uint32_t account, bool *by_all);
size_t sealed_shares__running(const struct sealed_shares *s, uint32_t account);

#endif
