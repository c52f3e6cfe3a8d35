/* SPDX-License-Identifier: BSD-2-Clause */
/* Which entries of a chronological list are still valid at its end. */
#ifndef JIT_FRESH_H
#define JIT_FRESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code_range {
	uint64_t start,
		end; /* [start, end); equal: a single address, which invalidates nothing else */
};

/*
 * An entry is stale as a whole if a later one has a part of its addresses: partly overwritten code cannot be running.
 * fresh[i] for each of `count`; O(n log n). 0 or -ENOMEM.
 */
int find_fresh(const struct code_range *ranges, size_t count, bool *fresh);

#endif
