/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kernel addresses whose code changes within a window: BPF programs come and go, and one may lie
 * where another one was. An address is a location for each of its versions, as of JIT code.
 */
#ifndef WORLD_KERNEL_CHANGES_H
#define WORLD_KERNEL_CHANGES_H

#include <stdint.h>

#include "base/vec.h"

struct kernel_range {
	uint64_t start, end;
	uint32_t version; /* the number of the change, from 1 on */
};

/* Zero-initialised. */
struct kernel_changes {
	VEC(struct kernel_range) ranges; /* ascending, without overlaps */
	VEC(uint64_t) times;		 /* of each change, in order */
	uint64_t left;			 /* changes over a limit: their code is as it was before */
};

void kernel_changes__fini(struct kernel_changes *c);
/* The code in the range is another one from `time` on. 0 or -ENOMEM. */
int kernel_changes__add(struct kernel_changes *c, uint64_t start, uint64_t end, uint64_t time);
/* The last change that concerned the address; 0: none. */
uint32_t kernel_changes__version(const struct kernel_changes *c, uint64_t address);

#endif
