/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The code at an address at a time: entries of a perf map in file order, each with the two moments
 * between which it was written. Query the history of an address first, then a moment of it.
 *
 * A later entry ends every earlier one that it overlaps, as a whole: partly overwritten code cannot
 * be running. Between an entry's two moments the answer is that entry; it is ambiguous if another
 * function may have been there then.
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
 * Finds the entries of a chronological list that are valid at its end: those without a later entry
 * on any of their addresses. fresh[i] for each of `count`; O(n log n). 0 or -ENOMEM.
 */
int find_fresh(const struct code_range *ranges, size_t count, bool *fresh);

#define JIT_NO_ENTRY (~0u)
#define JIT_NOTHING  (~0u) /* as a name: the range has no code from now on */

struct jit_timeline;

/* NULL: no memory. */
struct jit_timeline *jit_timeline__new(void);
void jit_timeline__free(struct jit_timeline *t);

/*
 * Adds an entry that was written in (after, before] (CLOCK_MONOTONIC ns). Neither is older than
 * that of the previous entry; a new `after` is not older than the `before` of entries with other
 * ones. `name`: any number; equal ranges with equal names are one entry. Entries are numbered from
 * 0 on. 0, -ENOMEM, -E2BIG.
 */
int jit_timeline__add(struct jit_timeline *t, const struct code_range *range, uint64_t after,
		      uint64_t before, uint32_t name);
/*
 * Entries up to the end of the snapshot are all the code at `before`; the list before was valid at
 * `after`. The entries get these two moments. 0 or -ENOMEM.
 */
int jit_timeline__begin_snapshot(struct jit_timeline *t, uint64_t after, uint64_t before);
void jit_timeline__end_snapshot(struct jit_timeline *t);

/*
 * No query will be older than `horizon` (CLOCK_MONOTONIC ns): forgets entries that ended before,
 * which changes no later answer. UINT64_MAX: forgets all ended entries; earlier code is then
 * unknown. Renumbers the rest. 0 or -ENOMEM.
 */
int jit_timeline__forget(struct jit_timeline *t, uint64_t horizon);
/*
 * Forgets one of `part` entries, also living ones: least recently used first, of these the oldest.
 * Their code is then unknown. Renumbers the rest. 0 or -ENOMEM.
 */
int jit_timeline__shed(struct jit_timeline *t, size_t part);
/* The entry was used, later than those used before the last jit_timeline__forget(). */
void jit_timeline__use(struct jit_timeline *t, uint32_t entry);
/* Replaces every entry's name by the result of `rename`. */
typedef uint32_t (*jit_rename_fn)(void *context, uint32_t name);
void jit_timeline__rename(struct jit_timeline *t, jit_rename_fn rename, void *context);

size_t jit_timeline__count(const struct jit_timeline *t);
/* The moment after which the entry was written. */
uint64_t jit_timeline__after(const struct jit_timeline *t, uint32_t entry);
/* Memory in use, bytes. */
size_t jit_timeline__memory(const struct jit_timeline *t);
uint32_t jit_timeline__name(const struct jit_timeline *t, uint32_t entry);
struct code_range jit_timeline__range(const struct jit_timeline *t, uint32_t entry);

/* The code at an address changed in (after, before]. */
struct jit_change {
	uint64_t after, before;
	uint32_t entry; /* from then on; JIT_NO_ENTRY: no known code */
	bool vanished;	/* missing from a snapshot: it ended somewhere in between */
};

/* Of one address; all zero: it never had code. */
struct jit_history {
	VEC(struct jit_change) changes;
};

/*
 * Limits of the changes of one request: JIT_CHANGES_MAX, and JIT_CHANGES_FREE + JIT_CHANGES_EACH
 * for each entry and address, because few entries on few addresses make a product.
 */
#define JIT_CHANGES_MAX	 (16u << 20)
#define JIT_CHANGES_FREE (1u << 20)
#define JIT_CHANGES_EACH 64u

/*
 * The histories of `count` sorted, distinct addresses; the caller frees them, also after an error.
 * 0, -ENOMEM, -E2BIG.
 */
int jit_timeline__histories(struct jit_timeline *t, const uint64_t *addresses, size_t count,
			    struct jit_history *histories);
void jit_history__fini(struct jit_history *h);

/* Are two entries the same function? */
typedef bool (*jit_same_fn)(void *context, uint32_t entry, uint32_t other);

struct jit_answer {
	uint32_t entry; /* JIT_NO_ENTRY: no known code */
	bool ambiguous;
};

struct jit_answer jit_history__at(const struct jit_history *h, uint64_t time, jit_same_fn same,
				  void *context);

#endif
