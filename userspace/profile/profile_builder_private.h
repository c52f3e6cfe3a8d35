/* SPDX-License-Identifier: BSD-2-Clause */
/* What profile_builder.c fills and profile_finish.c completes. */
#ifndef PROFILE_PROFILE_BUILDER_PRIVATE_H
#define PROFILE_PROFILE_BUILDER_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/profile_builder.h>

#include "base/hashmap.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "profile/stack_table.h"

/* Later times become this one, which leaves room for times that count on from it. */
#define BUILDER_TIME_LIMIT (PROFILE_TIME_MAX / 2)

/* The samples of one kind of one thread. */
struct sample_columns {
	VEC(uint64_t) time;
	VEC(uint64_t) weight;
	VEC(struct stack_id) stack;
	VEC(struct string_id) comm;
	VEC(uint64_t) ticks; /* empty: one each */
	uint64_t weight_sum, tick_sum;
};

struct thread_columns {
	struct sample_columns by_kind[SAMPLE_KIND_COUNT];
};

struct profile_builder {
	int error;
	bool finished;
	struct profile profile;
	struct strtab *strings;

	VEC(struct profile_dso) dsos;
	VEC(struct profile_function) functions;
	VEC(struct profile_line) lines;
	VEC(struct profile_location) locations;
	struct hashmap dso_index, function_index, location_index;
	struct stack_table stacks;

	VEC(struct profile_sample_type) sample_types;
	VEC(struct profile_process) processes;
	VEC(struct profile_thread) threads;
	VEC(struct thread_columns) columns; /* by thread */
	VEC(struct profile_cpu_books) books;
	VEC(struct profile_jit) jits;
	VEC(struct profile_meta) meta;
	VEC(struct profile_lost_range) lost_ranges;
};

#endif
