/* SPDX-License-Identifier: BSD-2-Clause */
/* Which entries of a list in the order of time are still true at its end. */
#ifndef JIT_FRESH_H
#define JIT_FRESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code_range {
	uint64_t start,
		end; /* [start, end); equal: a single address, which makes nothing else untrue */
};

/*
 * An entry is stale, all of it, when a later one has a part of its addresses: what was overwritten in
 * part cannot be running. fresh[i] for each of `count`; O(n log n). 0 or -ENOMEM.
 */
int find_fresh(const struct code_range *ranges, size_t count, bool *fresh);

#endif
