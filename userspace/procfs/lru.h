/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The places of a table whose elements live elsewhere (in a vector): which are free, and in which
 * order the others were last used.
 *
 * Times are CLOCK_MONOTONIC ns and never go back. A use within LRU_GRAIN of the noted one changes
 * nothing, so that what is used a thousand times a second is moved once: the order is that coarse.
 */
#ifndef PROCFS_LRU_H
#define PROCFS_LRU_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/quota.h"
#include "base/vec.h"

#define LRU_NONE  UINT32_MAX
#define LRU_GRAIN 1000000000ull /* ns */

struct lru_place {
	uint64_t used;
	uint32_t newer,
		older; /* places, or LRU_NONE; `older` of a free place is the next free one */
	bool in_order;
};

struct lru {
	VEC(struct lru_place) places;
	uint32_t newest, oldest, first_free;
	size_t count; /* places taken */
};

void lru__init(struct lru *l);
void lru__fini(struct lru *l);

/* A free place, which is not in the order yet. 0 or -ENOMEM. */
int lru__take(struct lru *l, uint32_t *place);
/* The place is free. Takes it out of the order, if it is there. */
void lru__release(struct lru *l, uint32_t place);

/* The same, and the element of that place exists in a VEC. */
#define lru__take_in(l, vec, place)                                                                \
	({                                                                                         \
		int lru_err_ = lru__take((l), (place));                                            \
                                                                                                   \
		if (!lru_err_ && vec_reserve((vec), (size_t) * (place) + 1)) {                     \
			lru__release((l), *(place));                                               \
			lru_err_ = -ENOMEM;                                                        \
		}                                                                                  \
		if (!lru_err_ && (vec)->count == *(place))                                         \
			(vec)->count++;                                                            \
		lru_err_;                                                                          \
	})

/* Instead of lru__take(), for an order over the places of another table: all below `count`. 0 or -ENOMEM. */
int lru__reserve(struct lru *l, size_t count);

/* Make it the newest, without regard to LRU_GRAIN. */
void lru__move(struct lru *l, uint32_t place, uint64_t now);
/* Take it out of the order: lru__idle() will not find it. */
void lru__remove(struct lru *l, uint32_t place);
/* The least recently used place, if that was more than `idle` ns ago (LRU_GRAIN at least); else LRU_NONE. */
uint32_t lru__idle(const struct lru *l, uint64_t now, uint64_t idle);
/* The next one after that, from the least recently used on. */
uint32_t lru__next_idle(const struct lru *l, uint32_t place, uint64_t now, uint64_t idle);

/* Where the elements of places have their owner, a uint64_t. */
struct lru_owners {
	const void *elements;
	size_t size, offset;
};

/* Elements of a VEC, which have a field `owner`. */
#define LRU_OWNERS(vec)                                                                            \
	((struct lru_owners){(vec).data, sizeof(*(vec).data),                                      \
			     offsetof(__typeof__(*(vec).data), owner)})

/*
 * The place to evict for one more of this owner's: the least recently used one if it is idle, else the least recently
 * used of the owner with the most. LRU_NONE: all are in use, and no owner has more than this one.
 */
uint32_t lru__to_evict(const struct lru *l, uint64_t now, uint64_t idle, const struct quota *quota,
		       uint64_t owner, struct lru_owners owners);

static inline uint32_t lru__newest(const struct lru *l)
{
	return l->newest;
}

static inline uint32_t lru__older(const struct lru *l, uint32_t place)
{
	return l->places.data[place].older;
}

static inline void lru__use(struct lru *l, uint32_t place, uint64_t now)
{
	const struct lru_place *p = &l->places.data[place];

	if (!p->in_order || now - p->used >= LRU_GRAIN)
		lru__move(l, place, now);
}

#endif
