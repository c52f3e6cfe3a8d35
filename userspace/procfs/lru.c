/* SPDX-License-Identifier: BSD-2-Clause */
#include "procfs/lru.h"

#include <errno.h>

#include "base/minmax.h"

void lru__init(struct lru *l)
{
	*l = (struct lru){.newest = LRU_NONE, .oldest = LRU_NONE, .first_free = LRU_NONE};
}

void lru__fini(struct lru *l)
{
	vec_free(&l->places);
}

int lru__reserve(struct lru *l, size_t count)
{
	while (l->places.count < count)
		if (vec_push(&l->places, (struct lru_place){}))
			return -ENOMEM;
	return 0;
}

int lru__take(struct lru *l, uint32_t *place)
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
	l->places.data[*place] = (struct lru_place){};
	l->count++;
	return 0;
}

void lru__release(struct lru *l, uint32_t place)
{
	lru__remove(l, place);
	l->places.data[place].older = l->first_free;
	l->first_free = place;
	l->count--;
}

void lru__remove(struct lru *l, uint32_t place)
{
	struct lru_place *p = &l->places.data[place];

	if (!p->in_order)
		return;
	*(p->newer == LRU_NONE ? &l->newest : &l->places.data[p->newer].older) = p->older;
	*(p->older == LRU_NONE ? &l->oldest : &l->places.data[p->older].newer) = p->newer;
	p->in_order = false;
}

void lru__move(struct lru *l, uint32_t place, uint64_t now)
{
	lru__remove(l, place);
	l->places.data[place] = (struct lru_place){
		.used = now, .newer = LRU_NONE, .older = l->newest, .in_order = true};
	*(l->newest == LRU_NONE ? &l->oldest : &l->places.data[l->newest].newer) = place;
	l->newest = place;
}

static uint32_t if_idle(const struct lru *l, uint32_t place, uint64_t now, uint64_t idle)
{
	if (place == LRU_NONE || now - l->places.data[place].used <= max_u64(idle, LRU_GRAIN))
		return LRU_NONE;
	return place;
}

uint32_t lru__idle(const struct lru *l, uint64_t now, uint64_t idle)
{
	return if_idle(l, l->oldest, now, idle);
}

uint32_t lru__next_idle(const struct lru *l, uint32_t place, uint64_t now, uint64_t idle)
{
	return if_idle(l, l->places.data[place].newer, now, idle);
}

static uint64_t owner_at(const struct lru_owners *o, uint32_t place)
{
	return *(const uint64_t *)((const char *)o->elements + place * o->size + o->offset);
}

uint32_t lru__to_evict(const struct lru *l, uint64_t now, uint64_t idle, const struct quota *quota,
		       uint64_t owner, struct lru_owners owners)
{
	uint32_t place = lru__idle(l, now, idle), most;

	if (place != LRU_NONE)
		return place;
	most = quota__most(quota, owner, 1);
	place = most < QUOTA_OWNERS ? l->oldest : LRU_NONE;
	while (place != LRU_NONE && !quota__is_of(quota, most, owner_at(&owners, place)))
		place = l->places.data[place].newer;
	return place;
}
