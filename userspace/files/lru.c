/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/lru.h"

#include "base/minmax.h"

void lru__init(struct lru *l, const struct lru_clock *clock, size_t max)
{
	*l = (struct lru){.newest = LRU_NONE,
			  .oldest = LRU_NONE,
			  .first_free = LRU_NONE,
			  .max = max,
			  .clock = clock};
}

void lru__fini(struct lru *l)
{
	vec_free(&l->places);
}

/* ---- places ---------------------------------------------------------------------------------- */

int lru__reserve(struct lru *l, size_t count)
{
	while (l->places.count < count)
		if (vec_push(&l->places, (struct lru_place){}))
			return -ENOMEM;
	return 0;
}

void lru__take_place(struct lru *l, uint32_t place, uint64_t owner)
{
	l->places.data[place] = (struct lru_place){.owner = owner};
	quota__take(&l->owned, owner, 1, 0);
	l->count++;
}

void lru__leave_place(struct lru *l, uint32_t place)
{
	lru__remove(l, place);
	quota__give(&l->owned, l->places.data[place].owner, 1);
	l->count--;
}

int lru__take(struct lru *l, uint64_t owner, uint32_t *place)
{
	if (l->first_free == LRU_NONE) {
		int err = lru__reserve(l, l->places.count + 1);

		if (err)
			return err;
		*place = l->places.count - 1;
	} else {
		*place = l->first_free;
		l->first_free = l->places.data[*place].older;
	}
	lru__take_place(l, *place, owner);
	return 0;
}

void lru__release(struct lru *l, uint32_t place)
{
	lru__leave_place(l, place);
	l->places.data[place].older = l->first_free;
	l->first_free = place;
}

/* ---- their order ----------------------------------------------------------------------------- */

void lru__remove(struct lru *l, uint32_t place)
{
	struct lru_place *p = &l->places.data[place];

	if (!p->in_order)
		return;
	*(p->newer == LRU_NONE ? &l->newest : &l->places.data[p->newer].older) = p->older;
	*(p->older == LRU_NONE ? &l->oldest : &l->places.data[p->older].newer) = p->newer;
	p->in_order = false;
}

void lru__use(struct lru *l, uint32_t place)
{
	struct lru_place *p = &l->places.data[place];
	uint64_t now = l->clock->now;

	if (p->held || (p->in_order && now - p->used < LRU_GRAIN))
		return;
	lru__remove(l, place);
	p->used = now;
	p->newer = LRU_NONE;
	p->older = l->newest;
	p->in_order = true;
	*(l->newest == LRU_NONE ? &l->oldest : &l->places.data[l->newest].newer) = place;
	l->newest = place;
}

void lru__hold(struct lru *l, uint32_t place)
{
	lru__remove(l, place);
	l->places.data[place].held++;
}

bool lru__unhold(struct lru *l, uint32_t place)
{
	if (--l->places.data[place].held > 0)
		return false;
	lru__use(l, place);
	return true;
}

static uint32_t if_idle(const struct lru *l, uint32_t place)
{
	const uint64_t idle = max_u64(l->clock->idle, LRU_GRAIN);

	return place == LRU_NONE || l->clock->now - l->places.data[place].used <= idle ? LRU_NONE
										       : place;
}

uint32_t lru__idle(const struct lru *l)
{
	return if_idle(l, l->oldest);
}

uint32_t lru__next_idle(const struct lru *l, uint32_t place)
{
	return if_idle(l, l->places.data[place].newer);
}

uint32_t lru__to_evict(const struct lru *l, uint64_t owner)
{
	uint32_t place = lru__idle(l), most;

	if (place != LRU_NONE)
		return place;
	most = quota__most(&l->owned, owner, 1);
	place = most < QUOTA_OWNERS ? l->oldest : LRU_NONE;
	while (place != LRU_NONE && !quota__is_of(&l->owned, most, lru__owner(l, place)))
		place = l->places.data[place].newer;
	return place;
}

bool lru__make_room(struct lru *l, uint64_t owner, void (*forget)(void *context, uint32_t place),
		    void *context)
{
	while (l->count >= l->max) {
		uint32_t place = lru__to_evict(l, owner);

		if (place == LRU_NONE)
			return false;
		forget(context, place);
	}
	return true;
}
