/* SPDX-License-Identifier: BSD-2-Clause */
/* A walk by a table that was read, on a stack that says anything. */
#ifndef FUZZ_WALK_H
#define FUZZ_WALK_H

#include <string.h>

#include "fuzz.h"
#include "unwind/unwind.h"
#include "unwind/unwind_table.h"

#define FRAMES 16

static inline int no_memory(void *context, void *to, size_t size, uint64_t address)
{
	(void)context;
	memset(to, (int)(address >> 3), size);
	return 0;
}

static inline void walk(const struct unwind_table_image *image, uint64_t address)
{
	const struct unwind_range range = {.start = 0x1000,
					   .end = 1ull << 40,
					   .table = &image->table,
					   .segment = image->bytes};
	const struct unwind_space space = {.ranges = &range, .count = 1, .read = no_memory};
	uint64_t registers[UNWIND_REGISTERS] = {
		[UNWIND_X86_RSP] = 0x10000, [UNWIND_X86_RA] = address};
	uint64_t frames[FRAMES];
	size_t count;

	unwind_stack(&space, registers, false, frames, FRAMES, &count);
	MUST(count <= FRAMES);
}

#endif
