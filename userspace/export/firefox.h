/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared tables of the Firefox format: firefox_tables.c collects and writes them. */
#ifndef EXPORT_FIREFOX_H
#define EXPORT_FIREFOX_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

#include "base/json_writer.h"
#include "base/vec.h"

#define FIREFOX_UNUSED UINT32_MAX

/* The used elements of one of the profile's tables, numbered in order of first use. */
struct firefox_index {
	uint32_t *number;   /* by element: its number in the file, or FIREFOX_UNUSED */
	VEC(uint32_t) used; /* by number: the element */
};

struct firefox_tables {
	const struct profile *p;
	uint32_t *stack_base;	 /* by stack: the outermost of its nodes in the file */
	uint32_t *frame_base;	 /* by location: the outermost of its frames in the file */
	uint32_t *source_file;	 /* by function: string of the file that its lines are in */
	uint32_t *same_function; /* by function: the first one that is shown in the same way */
	uint32_t stack_count, frame_count;
	struct firefox_index strings, functions, libs, natives, sources;
	VEC(const char *) texts; /* the string array: by number; has our own names, too */
	VEC(uint32_t) lib_names; /* by library: number of its display name */
};

/* Collect what the samples of these threads need. 0, -ENOMEM, -EOVERFLOW (more than 2^32 rows). */
int firefox_tables__init(struct firefox_tables *t, const struct profile *p, const uint32_t *threads,
			 size_t thread_count);
void firefox_tables__fini(struct firefox_tables *t);

/* The row of a whole stack in the stack table: its innermost node. */
uint32_t firefox_tables__stack(const struct firefox_tables *t, struct stack_id stack);

void firefox_tables__write_libs(const struct firefox_tables *t, struct json_writer *w);
void firefox_tables__write_shared(const struct firefox_tables *t, struct json_writer *w);

#endif
