/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The code at an address at a time: entries of perf maps in the order in which they were written, each with the two
 * moments between which that happened. It is queried when the recording has ended: first for the history of an
 * address, then for a moment of that history.
 *
 * A later entry ends every earlier one that it overlaps, as a whole: partly overwritten code cannot be running.
 * Between an entry's two moments the answer is that entry, and is ambiguous if another function may have been there
 * then.
 */
#ifndef JIT_JIT_TIMELINE_H
#define JIT_JIT_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct code_range {
	uint64_t start,
		end; /* [start, end); equal: a single address, which invalidates nothing else */
};

/*
 * Which entries of a chronological list are still valid at its end. An entry is stale as a whole if a later
 * one has a part of its addresses: partly overwritten code cannot be running. fresh[i] for each of `count`; O(n log n).
 * 0 or -ENOMEM.
 */
int find_fresh(const struct code_range *ranges, size_t count, bool *fresh);

#define JIT_NO_ENTRY (~0u)
#define JIT_NOTHING  (~0u) /* as a name: no code in the range from now on */

struct jit_timeline;

/* NULL: no memory. */
struct jit_timeline *jit_timeline__new(void);
void jit_timeline__free(struct jit_timeline *t);

/*
 * The next entry. It was written after `after` and not after `before` (CLOCK_MONOTONIC ns; neither
 * is older than that of the entry before it, and `after` is not older than the `before` of those
 * with another `after`). `name`: any number; equal ranges with equal names are one entry. Entries
 * are numbered from 0 on. 0, -ENOMEM, -E2BIG.
 */
int jit_timeline__add(struct jit_timeline *t, const struct code_range *range, uint64_t after,
		      uint64_t before, uint32_t name);
/*
 * The entries from here to the end of the snapshot are all code at `before`; the list before it was valid at `after`.
 * Its entries have these two moments. 0 or -ENOMEM.
 */
int jit_timeline__begin_snapshot(struct jit_timeline *t, uint64_t after, uint64_t before);
void jit_timeline__end_snapshot(struct jit_timeline *t);

/*
 * Nothing older than `horizon` (CLOCK_MONOTONIC ns) will be queried: entries that had ended before it are forgotten,
 * which changes no later result. UINT64_MAX: all that have ended by now are forgotten, and code that was there at an
 * earlier time is unknown. The entries left are renumbered. 0 or -ENOMEM.
 */
int jit_timeline__forget(struct jit_timeline *t, uint64_t horizon);
/*
 * Forgets a part of the entries, 1 of `part`, also living ones: the least recently used first, of these the oldest.
 * Their code is unknown then. The others are renumbered. 0 or -ENOMEM.
 */
int jit_timeline__shed(struct jit_timeline *t, size_t part);
/* The entry was used: later than all that were used before the last jit_timeline__forget(). */
void jit_timeline__use(struct jit_timeline *t, uint32_t entry);
/* Replaces every entry's name by the result of `rename`. */
typedef uint32_t (*jit_rename_fn)(void *context, uint32_t name);
void jit_timeline__rename(struct jit_timeline *t, jit_rename_fn rename, void *context);

size_t jit_timeline__count(const struct jit_timeline *t);
/* The entry was written after this moment. */
uint64_t jit_timeline__after(const struct jit_timeline *t, uint32_t entry);
/* Memory in use, bytes. */
size_t jit_timeline__memory(const struct jit_timeline *t);
uint32_t jit_timeline__name(const struct jit_timeline *t, uint32_t entry);
struct code_range jit_timeline__range(const struct jit_timeline *t, uint32_t entry);

/* The code at an address changed in (after, before]. */
struct jit_change {
	uint64_t after, before;
	uint32_t entry; /* from then on; JIT_NO_ENTRY: no known code */
	bool vanished;	/* a snapshot lacks the entry: it ended somewhere in between */
};

/* Of one address; all zero: there never was any code. */
struct jit_history {
	VEC(struct jit_change) changes;
};

/*
 * Changes of all addresses of one request: JIT_CHANGES_MAX, and no more than JIT_CHANGES_FREE and JIT_CHANGES_EACH
 * for each entry and address. A few entries that cover a few addresses make a product.
 */
#define JIT_CHANGES_MAX	 (16u << 20)
#define JIT_CHANGES_FREE (1u << 20)
#define JIT_CHANGES_EACH 64u

/*
 * The histories of `count` addresses, which are sorted and distinct. To be freed by the caller, also
 * after an error: -ENOMEM, -E2BIG.
 */
int jit_timeline__histories(struct jit_timeline *t, const uint64_t *addresses, size_t count,
			    struct jit_history *histories);
void jit_history__fini(struct jit_history *h);

/* Do two entries have the same function? */
typedef bool (*jit_same_fn)(void *context, uint32_t entry, uint32_t other);

struct jit_answer {
	uint32_t entry; /* JIT_NO_ENTRY: nothing that is known */
	bool ambiguous;
};

struct jit_answer jit_history__at(const struct jit_history *h, uint64_t time, jit_same_fn same,
				  void *context);

#endif
