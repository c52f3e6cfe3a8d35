/* SPDX-License-Identifier: BSD-2-Clause */
/* The executable mappings of a process. */
#ifndef SYSPROF_MAPPING_H
#define SYSPROF_MAPPING_H

#include <stddef.h>
#include <stdint.h>

/* A mapped object: an ELF file, the vDSO, or memory with code; see world/image_table. 0: none. */
struct image_id {
	uint32_t v;
};

struct mapping {
	uint64_t start, end; /* [start, end) */
	uint64_t page_offset;
	struct image_id image;
	uint32_t read; /* private to mapping_table: the last reading of /proc that reported it */
};

/* Adjacent elements of an array of mappings; at least one. */
struct mapping_run {
	const struct mapping *data;
	size_t count;
	uint64_t end; /* of the last one */
};

/* A process's executable mappings: sorted, disjoint, in short runs so that insertions move few. */
struct mappings {
	const struct mapping_run *runs;
	size_t run_count;
	size_t count; /* of mappings */
	/* Finds one mapping, if there are no runs (made only on request). NULL: there are runs. */
	const struct mapping *(*find)(const void *table, uint64_t address);
	const void *table;
};

/* The position of a walk over all mappings; {} is the beginning. */
struct mapping_cursor {
	size_t run, index;
};

/* The next mapping, or NULL. Needs runs. */
static inline const struct mapping *mappings__next(struct mappings maps, struct mapping_cursor *at)
{
	const struct mapping *m;

	if (at->run == maps.run_count)
		return NULL;
	m = &maps.runs[at->run].data[at->index++];
	if (at->index == maps.runs[at->run].count)
		*at = (struct mapping_cursor){.run = at->run + 1};
	return m;
}

/* The first mapping that ends behind the address. Needs runs, too. */
static inline struct mapping_cursor mappings__behind(struct mappings maps, uint64_t address)
{
	struct mapping_cursor at = {};
	size_t high = maps.run_count;

	while (at.run < high) {
		size_t middle = at.run + (high - at.run) / 2;

		if (maps.runs[middle].end <= address)
			at.run = middle + 1;
		else
			high = middle;
	}
	if (at.run == maps.run_count)
		return at;
	high = maps.runs[at.run].count;
	while (at.index < high) {
		size_t middle = at.index + (high - at.index) / 2;

		if (maps.runs[at.run].data[middle].end <= address)
			at.index = middle + 1;
		else
			high = middle;
	}
	return at;
}

/* The mapping of an address, or NULL. */
static inline const struct mapping *mappings__find(struct mappings maps, uint64_t address)
{
	struct mapping_cursor at;
	const struct mapping *m;

	if (maps.find)
		return maps.find(maps.table, address);
	at = mappings__behind(maps, address);
	m = mappings__next(maps, &at);
	return m && m->start <= address ? m : NULL;
}

#endif
