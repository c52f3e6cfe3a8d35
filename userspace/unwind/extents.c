/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/place_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void remove_at(struct extents *e, size_t i)
{
	e->free.count--;
	memmove(&e->free.data[i], &e->free.data[i + 1],
		(e->free.count - i) * sizeof(*e->free.data));
}

int extents__free(struct extents *e, uint64_t start, uint64_t size)
{
	size_t i = 0;
	int err = vec_reserve(&e->free, e->free.count + 1);

	if (err)
		return err;
	while (i < e->free.count && e->free.data[i].start < start)
		i++;
	memmove(&e->free.data[i + 1], &e->free.data[i],
		(e->free.count - i) * sizeof(*e->free.data));
	e->free.data[i] = (struct extent){start, size};
	e->free.count++;
	if (i + 1 < e->free.count && start + size == e->free.data[i + 1].start) {
		e->free.data[i].size += e->free.data[i + 1].size;
		remove_at(e, i + 1);
	}
	if (i && e->free.data[i - 1].start + e->free.data[i - 1].size == start) {
		e->free.data[i - 1].size += e->free.data[i].size;
		remove_at(e, i);
	}
	return 0;
}

int extents__take(struct extents *e, uint64_t size, uint64_t *start)
{
	for (size_t i = 0; i < e->free.count; i++) {
		struct extent *extent = &e->free.data[i];

		if (extent->size < size)
			continue;
		*start = extent->start;
		extent->start += size;
		extent->size -= size;
		if (!extent->size)
			remove_at(e, i);
		return 0;
	}
	return -ENOSPC;
}

void extents__fini(struct extents *e)
{
	vec_free(&e->free);
}
