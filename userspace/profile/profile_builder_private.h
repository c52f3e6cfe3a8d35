/* SPDX-License-Identifier: BSD-2-Clause */
/* The profile in the making: filled by profile_builder.c and profile_events.c, then finished. */
#ifndef PROFILE_PROFILE_BUILDER_PRIVATE_H
#define PROFILE_PROFILE_BUILDER_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/profile_builder.h>

#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "profile/profile.h"

/* Later times become this one, which leaves room for times that count on from it. */
#define BUILDER_TIME_LIMIT (PROFILE_TIME_MAX / 2)

/* Rows first .. end - 1. */
struct row_range {
	size_t first, end;
};

/*
 * The samples of one kind of one thread. `taken` are ranges of rows with weight 0, in order and
 * without overlaps: taking weights back passes over each in one step.
 */
struct sample_columns {
#define X(type, name) VEC(type) name;
	PROFILE_SAMPLE_COLUMNS(X)
#undef X
	VEC(struct row_range) taken;
	uint64_t weight_sum, tick_sum, event_sum;
};

struct thread_columns {
	struct sample_columns by_kind[SAMPLE_KIND_COUNT];
	VEC(struct profile_cut) cuts;
	VEC(struct profile_rename) renames;
};

struct memory_column {
	struct profile_memory memory; /* without its readings */
	VEC(struct profile_memory_reading) readings;
};

struct fact_set {
	uint32_t first, count; /* of `facts` */
};

MAP_TYPE(dso_table, struct profile_dso);
MAP_TYPE(function_table, struct profile_function);
MAP_TYPE(location_table, struct profile_location);
MAP_TYPE(stack_table, struct profile_stack); /* a caller has a smaller number than its callees */
MAP_TYPE(fact_set_table, struct fact_set);
MAP_TYPE(meta_table, struct profile_meta);
MAP_TYPE(books_table, struct profile_cpu_books);
MAP_TYPE(memory_table, struct memory_column);
MAP_TYPE(outside_table, struct profile_outside);
MAP_TYPE(source_table, struct profile_source);

struct profile_builder {
	int error;
	bool finished;
	struct profile profile;
	struct strtab *strings;

	struct dso_table dsos;
	struct function_table functions;
	VEC(struct profile_line) lines;
	struct location_table locations;
	struct stack_table stacks;

	VEC(struct profile_sample_type) sample_types;
	VEC(struct profile_process) processes;
	VEC(struct profile_fact) facts;
	VEC(struct profile_clause) clauses; /* of filtered profiles only */
	struct fact_set_table fact_sets;    /* each once: forks have the same ones */
	VEC(struct profile_thread) threads;
	VEC(struct thread_columns) columns; /* by thread */
	struct books_table books;	    /* by cpu once finished */
	VEC(struct profile_jit) jits;
	VEC(struct profile_runtime) runtimes;
	VEC(struct profile_gil) gils;
	struct meta_table meta;
	VEC(struct profile_lost_range) lost_ranges;
	struct outside_table outside; /* sorted once finished */
	VEC(uint32_t) outside_users;
	struct memory_table memory_columns;
	VEC(struct profile_memory) memories; /* once finished */
	VEC(struct profile_marker) markers;  /* sorted once finished */
	VEC(uint64_t) epochs;
	VEC(struct profile_code) codes; /* sorted once finished */
	VEC(struct profile_code_row) code_rows;
	struct source_table sources; /* the same */
	VEC(char *) texts;	     /* bytes of codes, texts of sources */
};

/* NULL: it has none like this. */
const struct profile_dso *builder_find_dso(const struct profile_builder *b,
					   const struct profile_dso *like);

/* Remember the first error; true if there is one. */
static inline bool builder_has_failed(struct profile_builder *b, int err)
{
	if (err && !b->error)
		b->error = err;
	return b->error != 0;
}

#endif
