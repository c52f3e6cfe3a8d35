/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of unwind tables: the memory that the kernel would read them in. To be included after cmocka.h. */
#ifndef TESTS_UNIT_TABLE_MEMORY_H
#define TESTS_UNIT_TABLE_MEMORY_H

#include "unwind/table_store.h"

struct table_memory {
	struct unwind_memory shared;
	unsigned char *segments[UNWIND_SEGMENTS];
	unsigned int count;
	uint32_t epoch;
	unsigned int waits; /* for the programs, so far */
	bool cannot_wait;
};

static inline int add_memory_segment(void *context, unsigned int number, unsigned char **bytes)
{
	struct table_memory *m = context;

	assert_int_equal(number, m->count);
	*bytes = m->segments[m->count++] = calloc(1, m->shared.segment_size);
	return *bytes ? 0 : -ENOMEM;
}

static inline int wait_for_memory_readers(void *context)
{
	struct table_memory *m = context;

	m->waits++;
	return m->cannot_wait ? -EPERM : 0;
}

/* Stays where it is until it is freed. */
static inline void table_memory__init(struct table_memory *m, uint32_t segment_size,
				      unsigned int segment_limit)
{
	*m = (struct table_memory){
		.shared = {
			.processes = calloc(UNWIND_PROCESSES, sizeof(uint64_t)),
			.tables = calloc(UNWIND_TABLES, sizeof(struct unwind_table)),
			.places = calloc(1, UNWIND_PLACES_SIZE),
			.used = calloc(UNWIND_TABLES, sizeof(uint64_t)),
			.epoch = &m->epoch,
			.wait_for_programs = wait_for_memory_readers,
			.segment_size = segment_size,
			.segment_limit = segment_limit,
			.add_segment = add_memory_segment,
			.context = m,
		}};
	assert_true(m->shared.processes && m->shared.tables && m->shared.places && m->shared.used);
}

static inline void table_memory__fini(struct table_memory *m)
{
	free(m->shared.processes);
	free(m->shared.tables);
	free(m->shared.places);
	free(m->shared.used);
	for (unsigned int i = 0; i < m->count; i++)
		free(m->segments[i]);
}

#endif
