/* SPDX-License-Identifier: BSD-2-Clause */
/* A filter that is being applied: shared by filter_apply.c, filter_rows.c and filter_tables.c. */
#ifndef FILTER_FILTER_APPLY_PRIVATE_H
#define FILTER_FILTER_APPLY_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/profile.h>

#include "base/vec.h"
#include "filter/filter.h"
#include "filter/filter_apply.h"
#include "filter/filter_frames.h"

#define KEPT	UINT8_MAX /* a verdict; others are lines of the books */
#define NO_LINE UINT8_MAX

struct filtered {
	struct profile profile;
	VEC(void *) blocks;
};

struct apply {
	const struct profile_filter *filter;
	const struct profile *p;
	struct filtered *out;
	struct profile *to; /* that of `out` */
	struct filter_frames frames;
	slice_ranges slices;
	struct slice_range slice;		  /* from the first one to the last */
	uint8_t slice_line, cpu_line, state_line; /* of the books; NO_LINE: no such clause */
	uint8_t line_of_clause[FILTER_CLAUSES_MAX];
	struct profile_clause *books; /* `line_count` */
	size_t line_count;
	VEC(const char *) strings;
	uint8_t *verdicts; /* scratch: of the rows in hand */
	bool marks_idle;   /* dropped CPU samples are known to be idle time */
	/* By old number: the new one; 0: dropped. */
	uint32_t *thread_number, *process_number, *stack_number, *location_number;
	bool *stack_used;
	uint64_t first_kept; /* the time of the earliest row */
	int error;
};

static inline void note_error(struct apply *a, int err)
{
	if (!a->error)
		a->error = err;
}

/* a * b / c, where b <= c */
static inline uint64_t scale(uint64_t a, uint64_t b, uint64_t c)
{
	return (uint64_t)((unsigned __int128)a * b / c);
}

/* Zeroed, and freed with the result; NULL: no memory, which is noted. */
void *profile_filter__take(struct apply *a, size_t count, size_t size);
/* Takes the text over. */
struct string_id profile_filter__add_string(struct apply *a, char *text);

#endif
