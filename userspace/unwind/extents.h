/* SPDX-License-Identifier: BSD-2-Clause */
/* Which parts of a stretch of memory are free: first fit, neighbours merged. Numbers only. */
#ifndef UNWIND_EXTENTS_H
#define UNWIND_EXTENTS_H

#include <stdint.h>

#include "base/vec.h"

struct extent {
	uint64_t start, size;
};

struct extents {
	VEC(struct extent) free; /* ascending */
};

/* 0 or -ENOMEM: what was to become free is not used again then. */
int extents__free(struct extents *e, uint64_t start, uint64_t size);
/* Where `size` was found, or -ENOSPC. */
int extents__take(struct extents *e, uint64_t size, uint64_t *start);
void extents__fini(struct extents *e);

#endif
