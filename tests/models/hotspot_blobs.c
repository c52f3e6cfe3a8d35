/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All blobs, again and again. Nothing counts code that is freed, and a block of the same size in the same place leaves the
 * map as it was: so all headers are read each time, some at once, since they are close to one another.
 */
#include "models/hotspot_blobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"
#include "runtimes/hotspot/heap.h"

#define WINDOW 16384u

/* Memory near the last header that was read. */
struct window {
	uint64_t start, end;
	unsigned char bytes[WINDOW];
};

struct look {
	struct hotspot_code *code;
	struct target_memory *memory;
	struct window window;
	struct hotspot_blobs found;
};

static int read_header(struct look *l, const struct hotspot_heap *heap, uint64_t address,
		       const unsigned char **bytes)
{
	struct window *w = &l->window;
	uint32_t size = l->code->layout->header_size;

	if (address < w->start || address + size > w->end) {
		uint64_t part = min_u64(WINDOW, heap->committed - address);
		int err;

		w->start = w->end = 0;
		if (heap->committed < address || part < size)
			return -ENODATA;
		err = target_memory__read(l->memory, w->bytes, part, address);
		if (err)
			return err;
		w->start = address;
		w->end = address + part;
	}
	*bytes = w->bytes + (address - w->start);
	return 0;
}

/* One that is being made has no header yet: the next look finds it. */
static int take_blob(struct look *l, const struct hotspot_heap *heap, uint64_t address)
{
	const unsigned char *bytes;
	struct hotspot_blob blob;
	int err = read_header(l, heap, address, &bytes);

	if (!err)
		err = hotspot_code__take(l->code, l->memory, bytes, address, &blob);
	if (err == -ENODATA) {
		l->found.unreadable++;
		return 0;
	}
	return err ? err : vec_push(&l->found.list, blob);
}

static int look_at_heap(struct look *l, const struct hotspot_heap *heap)
{
	_cleanup_free_ unsigned char *map = malloc(heap->map_size);
	unsigned int shift = l->code->shift;
	int err;

	if (!map)
		return heap->map_size ? -ENOMEM : 0;
	err = target_memory__read(l->memory, map, heap->map_size, heap->map);
	for (uint64_t i = 0; i < heap->map_size && !err; i++) {
		if (map[i])
			continue;
		if (l->found.list.count == HOTSPOT_BLOBS_MAX)
			return -E2BIG;
		err = take_blob(l, heap,
				heap->low + (i << shift) +
					l->code->layout->at[HOTSPOT_HEAP_BLOCK_SIZE]);
	}
	return err;
}

static bool is_same(const struct hotspot_blob *a, const struct hotspot_blob *b)
{
	return a->address == b->address && a->compile_id == b->compile_id &&
	       a->method == b->method && a->size == b->size && a->name == b->name &&
	       a->code == b->code;
}

static int compare_lists(const struct hotspot_blobs *old, const struct hotspot_blobs *now,
			 struct hotspot_changes *changes)
{
	size_t i = 0, k = 0;
	int err = 0;

	while ((i < old->list.count || k < now->list.count) && !err) {
		const struct hotspot_blob *a = i < old->list.count ? &old->list.data[i] : NULL;
		const struct hotspot_blob *b = k < now->list.count ? &now->list.data[k] : NULL;

		if (a && b && is_same(a, b)) {
			i++;
			k++;
		} else if (a && (!b || a->address <= b->address)) {
			err = vec_push(&changes->gone, *a);
			i++;
		} else {
			err = vec_push(&changes->added, (uint32_t)k);
			k++;
		}
	}
	return err;
}

int hotspot_blobs__refresh(struct hotspot_blobs *b, struct hotspot_code *code,
			   struct target_memory *memory, struct hotspot_changes *changes)
{
	_cleanup_free_ struct look *l = calloc(1, sizeof(*l));
	struct hotspot_changes new_changes = {};
	int err = 0;

	if (!l)
		return -ENOMEM;
	l->code = code;
	l->memory = memory;
	for (unsigned int i = 0; i < code->count && !err; i++)
		err = look_at_heap(l, &code->heaps[i]);
	if (!err)
		err = compare_lists(b, &l->found, &new_changes);
	if (err) {
		hotspot_blobs__fini(&l->found);
		hotspot_changes__fini(&new_changes);
		return err;
	}
	hotspot_blobs__fini(b);
	hotspot_changes__fini(changes);
	*b = l->found;
	*changes = new_changes;
	return 0;
}

const struct hotspot_blob *hotspot_blobs__find(const struct hotspot_blobs *b, uint64_t address)
{
	size_t at = partition_point(b->list.data, b->list.count, blob, blob->address <= address);

	if (!at || address >= b->list.data[at - 1].address + b->list.data[at - 1].size)
		return NULL;
	return &b->list.data[at - 1];
}

void hotspot_blobs__fini(struct hotspot_blobs *b)
{
	vec_free(&b->list);
}

void hotspot_changes__fini(struct hotspot_changes *c)
{
	vec_free(&c->added);
	vec_free(&c->gone);
}
