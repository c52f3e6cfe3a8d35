/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/aside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void aside__fini(struct aside *a)
{
	vec_free(&a->bytes);
	vec_free(&a->spare);
	vec_free(&a->order);
}

int aside__add(struct aside *a, const struct event_header *event)
{
	struct aside_event entry = {event->time, a->bytes.count};
	int err = vec_reserve(&a->bytes, entry.offset + event->size);

	if (!err)
		err = vec_push(&a->order, entry);
	if (err)
		return err;
	memcpy(a->bytes.data + entry.offset, event, event->size);
	a->bytes.count += event->size;
	return 0;
}

static int compare_entries(const void *left, const void *right)
{
	const struct aside_event *a = left, *b = right;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static struct event_header *event_at(const struct aside *a, size_t i)
{
	return (void *)(a->bytes.data + a->order.data[i].offset);
}

/* Forgets the first `done`. */
static int keep_rest(struct aside *a, size_t done)
{
	size_t left = a->order.count - done, used = 0;
	struct aside old = *a;

	if (vec_reserve(&a->spare, left ? a->bytes.count : 0))
		return -ENOMEM;
	for (size_t i = 0; i < left; i++) {
		const struct event_header *event = event_at(a, done + i);

		memcpy(a->spare.data + used, event, event->size);
		a->order.data[i] = (struct aside_event){event->time, used};
		used += event->size;
	}
	a->order.count = left;
	a->bytes.data = a->spare.data;
	a->bytes.capacity = a->spare.capacity;
	a->bytes.count = used;
	a->spare.data = old.bytes.data;
	a->spare.capacity = old.bytes.capacity;
	return 0;
}

int aside__release(struct aside *a, uint64_t before, event_push_fn push, void *context)
{
	size_t count = a->order.count, i;
	int err = 0, keep_err;

	if (count)
		qsort(a->order.data, count, sizeof(*a->order.data), compare_entries);
	for (i = 0; i < count && a->order.data[i].time < before && !err; i++)
		err = push(context, event_at(a, i));
	if (err == ASIDE_LATER) {
		err = 0;
		i--;
	}
	keep_err = keep_rest(a, i);
	return err ? err : keep_err;
}

uint64_t aside__oldest(const struct aside *a)
{
	return a->order.count ? a->order.data[0].time : UINT64_MAX;
}
