/* SPDX-License-Identifier: BSD-2-Clause */
/* The arrays of unwind_table.h in the collector: live/capture/ allocates them, unwind/ fills them. */
#ifndef SYSPROF_UNWIND_MEMORY_H
#define SYSPROF_UNWIND_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/unwind_table.h>

struct unwind_memory {
	uint64_t *processes;	     /* UNWIND_PROCESSES */
	struct unwind_table *tables; /* UNWIND_TABLES */
	uint64_t *used; /* UNWIND_TABLES: the value of *epoch when a table was last used */
	uint32_t *epoch;
	unsigned char *places; /* UNWIND_PLACES_SIZE bytes */
	size_t segment_size;
	unsigned int segment_limit; /* number of segments at most, up to UNWIND_SEGMENTS */
	/* Allocates segment `number`; the kernel shares *bytes from then on. 0, -ENOMEM, … */
	int (*add_segment)(void *context, unsigned int number, unsigned char **bytes);
	/* Waits until every program run that was under way has ended. 0 or negative errno. */
	int (*wait_for_programs)(void *context);
	void *context;
};

#endif
