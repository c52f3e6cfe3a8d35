/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranges that overlap, made into segments that do not.
 *
 * A sweep over the ranges by start, with a heap of the open ones, the one that counts on top. An
 * ended range is removed only on top, so each is pushed and popped once. There are at most twice as
 * many segments as ranges.
 */
#include "symbolize/range_map.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"

struct range {
	uint64_t start, end, rank;
	uint32_t value;
	uint32_t number; /* in the order they were added */
};

struct range_segment {
	uint64_t start, end;
	uint32_t value;
};

/* With what is compared: ranges are too many for the caches of a CPU. */
struct open_range {
	uint64_t rank;
	uint32_t number;
	uint32_t index; /* in the sorted ranges */
};

struct sweep {
	const struct range *ranges;
	struct open_range *heap;
	size_t open;
};

void range_map__fini(struct range_map *map)
{
	vec_free(&map->ranges);
	vec_free(&map->segments);
}

void range_map__clear(struct range_map *map)
{
	map->ranges.count = 0;
	map->segments.count = 0;
	map->last = 0;
}

int range_map__add(struct range_map *map, uint64_t start, uint64_t end, uint32_t value,
		   uint64_t rank)
{
	if (start >= end)
		return 0;
	if (map->ranges.count >= UINT32_MAX)
		return -ENOMEM;
	return vec_push(&map->ranges, (struct range){
					      .start = start,
					      .end = end,
					      .rank = rank,
					      .value = value,
					      .number = (uint32_t)map->ranges.count,
				      });
}

DEFINE_ORDER(compare_ranges, struct range, ASCENDING(start) ?: ASCENDING(number));

static bool counts_more(const struct open_range *x, const struct open_range *y)
{
	return x->rank != y->rank ? x->rank > y->rank : x->number > y->number;
}

static void swap_ranges(struct open_range *a, struct open_range *b)
{
	struct open_range kept = *a;

	*a = *b;
	*b = kept;
}

static void push_range(struct sweep *s, uint32_t range)
{
	size_t i = s->open++;

	s->heap[i] = (struct open_range){s->ranges[range].rank, s->ranges[range].number, range};
	while (i && counts_more(&s->heap[i], &s->heap[(i - 1) / 2])) {
		swap_ranges(&s->heap[i], &s->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
}

static void pop_range(struct sweep *s)
{
	size_t i = 0;

	s->heap[0] = s->heap[--s->open];
	for (;;) {
		size_t best = i, child = 2 * i + 1;

		if (child < s->open && counts_more(&s->heap[child], &s->heap[best]))
			best = child;
		if (child + 1 < s->open && counts_more(&s->heap[child + 1], &s->heap[best]))
			best = child + 1;
		if (best == i)
			return;
		swap_ranges(&s->heap[i], &s->heap[best]);
		i = best;
	}
}

static int emit_segment(struct range_map *map, uint64_t start, uint64_t end, uint32_t value)
{
	struct range_segment *last = map->segments.count
					     ? &map->segments.data[map->segments.count - 1]
					     : NULL;

	if (last && last->end == start && last->value == value) {
		last->end = end;
		return 0;
	}
	return vec_push(&map->segments, (struct range_segment){start, end, value});
}

static int sweep_ranges(struct range_map *map, struct sweep *s)
{
	const struct range *ranges = map->ranges.data;
	size_t next = 0, count = map->ranges.count;
	uint64_t at = 0;

	while (next < count || s->open) {
		const struct range *top;
		uint64_t end;
		int err;

		if (!s->open)
			at = ranges[next].start;
		while (next < count && ranges[next].start <= at)
			push_range(s, next++);
		while (s->open && ranges[s->heap[0].index].end <= at)
			pop_range(s);
		if (!s->open)
			continue;
		top = &ranges[s->heap[0].index];
		end = next < count && ranges[next].start < top->end ? ranges[next].start : top->end;
		err = emit_segment(map, at, end, top->value);
		if (err)
			return err;
		at = end;
	}
	return 0;
}

int range_map__build(struct range_map *map)
{
	_cleanup_free_ struct open_range *heap = NULL;
	struct sweep s = {};
	int err;

	map->segments.count = map->last = 0;
	if (!map->ranges.count)
		return 0;
	qsort(map->ranges.data, map->ranges.count, sizeof(*map->ranges.data), compare_ranges);
	heap = calloc(map->ranges.count, sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	s.ranges = map->ranges.data;
	s.heap = heap;
	err = sweep_ranges(map, &s);
	if (!err)
		vec_free(&map->ranges);
	return err;
}

bool range_map__find(struct range_map *map, uint64_t address, uint32_t *value, uint64_t *until)
{
	const struct range_segment *segments = map->segments.data;
	size_t count = map->segments.count;

	map->last = ascending_point(count, map->last, i, segments[i].start <= address);
	if (map->last < count)
		*until = min_u64(*until, segments[map->last].start);
	if (!map->last || address >= segments[map->last - 1].end)
		return false;
	*until = min_u64(*until, segments[map->last - 1].end);
	*value = segments[map->last - 1].value;
	return true;
}

int range_map__each(const struct range_map *map, range_map_fn visit, void *context)
{
	int err = 0;

	for (size_t i = 0; i < map->segments.count && !err; i++)
		err = visit(context, map->segments.data[i].start, map->segments.data[i].end);
	return err;
}
