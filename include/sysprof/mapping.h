/* SPDX-License-Identifier: BSD-2-Clause */
/* The executable mappings of a process. */
#ifndef SYSPROF_MAPPING_H
#define SYSPROF_MAPPING_H

#include <stddef.h>
#include <stdint.h>

/* What is mapped: an ELF file, the vDSO, or memory with code; see process/image_table. 0: none. */
struct image_id {
	uint32_t v;
};

struct mapping {
	uint64_t start, end; /* [start, end) */
	uint64_t page_offset;
	struct image_id image;
	uint32_t read; /* private to mapping_table: the last reading of /proc that reported it */
};

/* The executable mappings of a process: sorted, without overlaps. */
struct mappings {
	const struct mapping *data;
	size_t count;
};

#endif
