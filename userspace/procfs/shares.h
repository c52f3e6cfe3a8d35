/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who has how much of a table that is full: room for somebody who has less is taken from who has the most, though that
 * may be in use. So nobody keeps others out by having very much of it.
 */
#ifndef PROCFS_SHARES_H
#define PROCFS_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct share {
	uint64_t owner; /* readers/reader_owner.h */
	size_t count;	/* of entries, 1 at least */
};

/* Zero-initialised. */
struct shares {
	VEC(struct share) all;
};

void shares__fini(struct shares *s);

/* An entry more. 0 or -ENOMEM. */
int shares__add(struct shares *s, uint64_t owner);
/* An entry less; one that was added. */
void shares__drop(struct shares *s, uint64_t owner);

/* Who has the most, if that is more than `owner` would have with another one. False: it is he, or all have the same. */
bool shares__most(const struct shares *s, uint64_t owner, uint64_t *most);

#endif
