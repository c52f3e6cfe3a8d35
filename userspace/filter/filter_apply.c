/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each row of samples gets a verdict: the line of the books that drops it, or KEPT. Kept rows are
 * copied, with the new numbers of their stacks (filter_rows.c). Then tables get rid of rows that
 * nothing uses, and references their new numbers (filter_tables.c).
 */
#include "filter/filter_apply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "filter/filter_apply_private.h"
#include "filter/filter_rows.h"
#include "filter/filter_tables.h"

void *profile_filter__take(struct apply *a, size_t count, size_t size)
{
	void *block = calloc(count + 1, size);

	if (!block || vec_push(&a->out->blocks, block)) {
		free(block);
		note_error(a, -ENOMEM);
		return NULL;
	}
	return block;
}

struct string_id profile_filter__add_string(struct apply *a, char *text)
{
	if (!text || vec_push(&a->out->blocks, text)) {
		free(text);
		note_error(a, -ENOMEM);
		return (struct string_id){0};
	}
	if (vec_push(&a->strings, text))
		note_error(a, -ENOMEM);
	return (struct string_id){(uint32_t)a->strings.count - 1};
}

/* The kind that marks_idle may add. */
static void list_idle(struct apply *a)
{
	size_t count = a->p->sample_type_count;
	struct profile_sample_type *types;

	for (size_t i = 0; i < count; i++)
		if (a->p->sample_types[i].kind == SAMPLE_IDLE)
			return;
	types = a->marks_idle ? profile_filter__take(a, count + 1, sizeof(*types)) : NULL;
	if (!types)
		return;
	memcpy(types, a->p->sample_types, count * sizeof(*types));
	types[count] = (struct profile_sample_type){
		SAMPLE_IDLE, profile_filter__add_string(a, strdup("idle")),
		profile_filter__add_string(a, strdup("nanoseconds"))};
	a->to->sample_types = types;
	a->to->sample_type_count = count + 1;
}

/* Behind the books of the profile, if it is filtered already. */
static void begin_books(struct apply *a)
{
	const struct profile_filter *filter = a->filter;
	size_t before = a->p->clause_count;
	struct profile_clause *books;

	a->slice_line = a->cpu_line = a->state_line = NO_LINE;
	books = profile_filter__take(a, before + filter->count, sizeof(*books));
	if (!books)
		return;
	if (before)
		memcpy(books, a->p->clauses, before * sizeof(*books));
	a->to->clauses = books;
	a->books = books + before;
	for (size_t i = 0; i < filter->count;) {
		size_t end = i + profile_filter__group(filter, i);
		uint8_t line = (uint8_t)a->line_count++;
		enum filter_kind kind = filter->clauses[i].kind;

		a->books[line].text = profile_filter__add_string(
			a, profile_filter__print_clauses(filter, i, end - i));
		if (kind == FILTER_SLICE)
			a->slice_line = line;
		if (kind == FILTER_CPU)
			a->cpu_line = line;
		if (kind == FILTER_STATE)
			a->state_line = line;
		while (i < end)
			a->line_of_clause[i++] = line;
	}
}

static int resolve_slice(struct apply *a, const struct filter_clause *clause,
			 struct failure *failure)
{
	struct slice_range whole = {a->p->start, a->p->start};
	slice_ranges ranges = {};
	int err = slice__resolve(&clause->slice, clause->text, a->p, &ranges, failure)
			  ?: slice_ranges__intersect(&a->slices, &ranges);

	if (ranges.count)
		whole = (struct slice_range){ranges.data[0].from,
					     ranges.data[ranges.count - 1].until};
	a->slice.from = max_u64(a->slice.from, whole.from);
	a->slice.until = min_u64(a->slice.until, whole.until);
	vec_free(&ranges);
	return err;
}

static int resolve_slices(struct apply *a, struct failure *failure)
{
	int err;

	a->slice = (struct slice_range){0, UINT64_MAX};
	err = vec_push(&a->slices, a->slice);
	for (size_t i = 0; i < a->filter->count && !err; i++)
		if (a->filter->clauses[i].kind == FILTER_SLICE)
			err = resolve_slice(a, &a->filter->clauses[i], failure);
	return err;
}

/* "None" would be wrong if samples lack what a clause is about. */
static int check_data(const struct profile_filter *filter, const struct profile *p,
		      struct failure *failure)
{
	bool has_waits = p->visits.hz, has_cpus = !p->sample_count;
	uint32_t states = 0;

	for (size_t i = 1; i < p->thread_count; i++) {
		has_waits |= p->threads[i].samples[SAMPLE_WALL].count > 0;
		has_cpus |= p->threads[i].samples[SAMPLE_CPU].cpu != NULL;
	}
	for (size_t i = 0; i < filter->count; i++) {
		states |= filter->clauses[i].states;
		if (filter->clauses[i].kind == FILTER_CPU && !has_cpus)
			return fail(failure, -ENODATA, "its samples have no CPU");
	}
	return states && !(states & 1u << WALL_RUNNING) && !has_waits
		       ? fail(failure, -ENODATA, "it has no waits")
		       : 0;
}

static void make_numbers(struct apply *a)
{
	const struct profile *p = a->p;
	size_t stacks = max_u64(p->stack_count, a->frames.stacks.count);
	size_t locations = max_u64(p->location_count, a->frames.locations.count);

	a->thread_number = calloc(p->thread_count + 1, sizeof(*a->thread_number));
	a->process_number = calloc(p->process_count + 1, sizeof(*a->process_number));
	a->stack_number = calloc(stacks + 1, sizeof(*a->stack_number));
	a->location_number = calloc(locations + 1, sizeof(*a->location_number));
	a->stack_used = calloc(stacks + 1, sizeof(*a->stack_used));
	if (!a->thread_number || !a->process_number || !a->stack_number || !a->location_number ||
	    !a->stack_used)
		note_error(a, -ENOMEM);
}

/* The profile's strings and those that were added. */
static int set_strings(struct apply *a)
{
	if (vec_push(&a->out->blocks, NULL))
		return -ENOMEM;
	a->out->blocks.data[a->out->blocks.count - 1] = a->strings.data;
	a->to->strings = a->strings.data;
	a->to->string_count = a->strings.count;
	a->strings.data = NULL;
	return 0;
}

/* All clauses, those of the profile first. */
static void name_filter(struct apply *a)
{
	const char *before = profile__string(a->p, a->p->filter);
	_cleanup_free_ char *own = profile_filter__print(a->filter);
	char *text = NULL;

	if (!own || asprintf(&text, "%s%s%s", before, *before ? " " : "", own) < 0)
		return note_error(a, -ENOMEM);
	a->to->filter = profile_filter__add_string(a, text);
}

static void fill(struct apply *a)
{
	struct profile *to = a->to;

	*to = *a->p;
	memset(to->stack_ends, 0, sizeof(to->stack_ends));
	note_error(a, vec_append(&a->strings, a->p->strings, a->p->string_count));
	begin_books(a);
	name_filter(a);
	/* without a period, idle time is not inferred, so it has to be marked */
	a->marks_idle = !to->untimed && (to->idle_known || !to->period);
	to->idle_known |= a->marks_idle;
	make_numbers(a);
	list_idle(a);
	to->is_slice |= a->slice_line != NO_LINE;
	to->clause_count += a->line_count;
	if (!a->error)
		profile_filter__threads(a);
	if (!a->error)
		profile_filter__tables(a);
	if (!a->error)
		note_error(a, set_strings(a));
}

int profile_filter__apply(const struct profile_filter *filter, const struct profile *p,
			  struct filtered **filtered, struct failure *failure)
{
	struct filtered *out = calloc(1, sizeof(*out));
	struct apply a = {.filter = filter,
			  .p = p,
			  .out = out,
			  .to = out ? &out->profile : NULL,
			  .first_kept = UINT64_MAX};
	int err = out ? check_data(filter, p, failure)
				  ?: resolve_slices(&a, failure)
				  ?: filter_frames__init(&a.frames, filter, p, failure)
		      : -ENOMEM;

	if (!err) {
		fill(&a);
		err = a.error;
		filter_frames__fini(&a.frames);
	}
	vec_free(&a.slices);
	vec_free(&a.strings);
	free(a.verdicts);
	free(a.thread_number);
	free(a.process_number);
	free(a.stack_number);
	free(a.location_number);
	free(a.stack_used);
	if (err) {
		filtered__free(out);
		return err == -ENOMEM ? fail(failure, err, "out of memory") : err;
	}
	*filtered = out;
	return 0;
}

const struct profile *filtered__profile(const struct filtered *filtered)
{
	return &filtered->profile;
}

void filtered__free(struct filtered *filtered)
{
	if (!filtered)
		return;
	for (size_t i = 0; i < filtered->blocks.count; i++)
		free(filtered->blocks.data[i]);
	vec_free(&filtered->blocks);
	free(filtered);
}
