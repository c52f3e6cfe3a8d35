/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The places of a table whose elements are elsewhere (in a vector): which are free, the owner of
 * each other, and their order of last use. A place that is held is in use, and not in the order.
 *
 * Times are CLOCK_MONOTONIC ns and never go back. A use within LRU_GRAIN of the noted one changes
 * nothing, so that what is used a thousand times a second is moved once: the order is that coarse.
 */
#ifndef FILES_LRU_H
#define FILES_LRU_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "tenants/quota.h"

#define LRU_NONE  UINT32_MAX
#define LRU_GRAIN 1000000000ull /* ns */

/* Several tables have one. */
struct lru_clock {
	uint64_t now;
	uint64_t idle; /* ns: a place is idle if it was not used for so long, LRU_GRAIN at least */
};

struct lru_place {
	uint64_t used, owner;
	uint32_t held; /* so often */
	uint32_t newer,
		older; /* places, or LRU_NONE; `older` of a free place is the next free one */
	bool in_order;
};

struct lru {
	VEC(struct lru_place) places;
	uint32_t newest, oldest, first_free;
	size_t count,
		max; /* places taken; lru__make_room() sees to it that there are fewer than `max` */
	const struct lru_clock *clock;
	struct quota owned; /* places taken, by owner */
};

void lru__init(struct lru *l, const struct lru_clock *clock, size_t max);
void lru__fini(struct lru *l);

/* A free place, which is not in the order yet. 0 or -ENOMEM. */
int lru__take(struct lru *l, uint64_t owner, uint32_t *place);
/* The place is free. Takes it out of the order, if it is there. */
void lru__release(struct lru *l, uint32_t place);

/* The same, and the element of that place exists in a VEC. */
#define lru__take_in(l, vec, owner, place)                                                         \
	({                                                                                         \
		int lru_err_ = lru__take((l), (owner), (place));                                   \
                                                                                                   \
		if (!lru_err_ && vec_reserve((vec), (size_t) * (place) + 1)) {                     \
			lru__release((l), *(place));                                               \
			lru_err_ = -ENOMEM;                                                        \
		}                                                                                  \
		if (!lru_err_ && (vec)->count == *(place))                                         \
			(vec)->count++;                                                            \
		lru_err_;                                                                          \
	})

/*
 * Instead of lru__take() and lru__release(), for an order over the places of another table: all
 * below `count` exist and are taken by number. 0 or -ENOMEM.
 */
int lru__reserve(struct lru *l, size_t count);
void lru__take_place(struct lru *l, uint32_t place, uint64_t owner);
void lru__leave_place(struct lru *l, uint32_t place);

/* Make it the newest, unless it is held. */
void lru__use(struct lru *l, uint32_t place);
/* Take it out of the order: lru__idle() will not find it. */
void lru__remove(struct lru *l, uint32_t place);
/* While held, a place is not in the order. The end of the last hold is a use and returns true. */
void lru__hold(struct lru *l, uint32_t place);
bool lru__unhold(struct lru *l, uint32_t place);

/* The least recently used place, if it is idle; else LRU_NONE. */
uint32_t lru__idle(const struct lru *l);
/* The next one after that, from the least recently used on. */
uint32_t lru__next_idle(const struct lru *l, uint32_t place);
/*
 * The place to evict for one more of this owner's: the least recently used one if idle, else that
 * of the owner with the most. LRU_NONE: all are in use, and no owner has more than this one.
 */
uint32_t lru__to_evict(const struct lru *l, uint64_t owner);
/* Evicts until there is room for one more of this owner's; `forget` releases the place. */
bool lru__make_room(struct lru *l, uint64_t owner, void (*forget)(void *context, uint32_t place),
		    void *context);

static inline bool lru__is_held(const struct lru *l, uint32_t place)
{
	return l->places.data[place].held > 0;
}

static inline uint64_t lru__owner(const struct lru *l, uint32_t place)
{
	return l->places.data[place].owner;
}

#endif
