/* SPDX-License-Identifier: BSD-2-Clause */
/* How much of something each user has. Users have small numbers here, which are valid while they have some of it. */
#ifndef UNWIND_USER_SHARES_H
#define UNWIND_USER_SHARES_H

#include <stdint.h>

#include "base/vec.h"

#define USER_UNKNOWN (~0u)

struct user_share {
	uint32_t user; /* a uid, or USER_UNKNOWN */
	uint32_t things;
	uint64_t amount;
};

struct user_shares {
	VEC(struct user_share) all; /* those without things are free */
};

void user_shares__fini(struct user_shares *s);

/* The user has one thing more, of this amount. *number says who that is. 0 or -ENOMEM. */
int user_shares__add(struct user_shares *s, uint32_t user, uint64_t amount, uint32_t *number);
void user_shares__remove(struct user_shares *s, uint32_t number, uint64_t amount);
/* What the user has. */
uint64_t user_shares__of(const struct user_shares *s, uint32_t user);

#endif
