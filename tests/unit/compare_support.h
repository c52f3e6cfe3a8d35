/* SPDX-License-Identifier: BSD-2-Clause */
/* Made-up programs, recordings of them, and what a comparison of these says. */
#ifndef TESTS_UNIT_COMPARE_SUPPORT_H
#define TESTS_UNIT_COMPARE_SUPPORT_H

#include "compare/compare.h"
#include "compare/merged.h"

#include "export_support.h"

#include <math.h>

#define PARTS_MAX 400

/* A path from the root, and how much of a unit of work it takes. */
struct part {
	const char *path;
	double cost;
};

struct program {
	struct part parts[PARTS_MAX];
	size_t count;
};

struct recording {
	size_t samples;
	size_t run;	    /* samples in a row that are in the same part; 0 counts as 1 */
	double noise;	    /* of this run: of each part's cost, relative standard deviation */
	double cut;	    /* share of the stacks that are cut */
	bool untimed;	    /* only counts, by the normal approximation where they are large */
	bool has_cpu;	    /* a tick is a millisecond of CPU time … */
	bool counts_cpu;    /* … which is what samples count */
	unsigned int every; /* ms between two samples; 0 counts as 1 */
	double lost;	    /* share of the ticks that are lost */
	double others;	    /* ticks of other programs, for each sample */
	const char *event, *kernel;
};

static uint64_t random_state;

static double uniform(void)
{
	return ((double)(next_random(&random_state) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

static const struct program base = {
	{{"main;run;read;copy", 0.30},
	 {"main;run;read;check", 0.15},
	 {"main;run;parse;header", 0.05},
	 {"main;run;parse;body", 0.20},
	 {"main;run;parse", 0.05},
	 {"main;run;write", 0.15},
	 {"main;run;log", 0.06},
	 {"main;idle", 0.04}},
	8,
};

static double cost_of(const struct program *program)
{
	double sum = 0;

	for (size_t i = 0; i < program->count; i++)
		sum += program->parts[i].cost;
	return sum;
}

static struct part *part_of(struct program *program, const char *path)
{
	for (size_t i = 0; i < program->count; i++)
		if (!strcmp(program->parts[i].path, path))
			return &program->parts[i];
	fail_msg("no part %s", path);
	return NULL;
}

static struct program changed(const char *path, double factor)
{
	struct program program = base;

	part_of(&program, path)->cost *= factor;
	return program;
}

static struct stack_id stack_of(struct fixture *f, const char *path)
{
	struct stack_id stack = {0};
	char words[256], *rest = words;

	snprintf(words, sizeof(words), "%s", path);
	for (char *word; (word = strsep(&rest, ";"));) {
		struct location_id location = add_location(
			f, f->program, 0x1000 + 16 * (hash_stable(word, strlen(word)) % 1000003));

		if (!profile_builder__get_location(f->b, location)->line_count)
			NAME(f, location, {word, "/src/a.c", 1, 1, 1, 0, 0, NULL});
		stack = profile_builder__stack(f->b, stack, location);
	}
	return stack;
}

static size_t draw(const double *costs, size_t count, double whole)
{
	double at = uniform() * whole;
	size_t i = 0;

	while (i + 1 < count && at >= costs[i])
		at -= costs[i++];
	return i;
}

/* A row for each part, with its count. */
static void add_counts(struct fixture *f, struct thread_id thread, const struct recording *r,
		       const double *costs, double whole, const struct stack_id *stacks,
		       size_t count)
{
	double left = (double)r->samples, cost = whole;

	for (size_t i = 0; i < count; i++) {
		double p = fmin(costs[i] / cost, 1), ticks;
		struct profile_sample sample = {.kind = SAMPLE_CPU,
						.time = START + i + 1,
						.stack = stacks[i],
						.comm = text(f, "app")};

		ticks = i + 1 == count ? left
				       : round(left * p + sqrt(left * p * (1 - p)) * normal());
		sample.ticks = (uint64_t)fmax(ticks, 0);
		sample.weight = r->has_cpu ? sample.ticks * 1000000 : 0;
		sample.events = r->counts_cpu ? sample.weight : 0;
		left -= ticks;
		cost -= costs[i];
		if (sample.ticks)
			profile_builder__sample(f->b, thread, &sample);
	}
}

static void add_circumstances(struct fixture *f, const struct recording *r)
{
	struct profile_cpu_books books = {.received = r->samples};

	books.count[BOOK_DELIVERED] = r->samples;
	books.count[BOOK_FILTERED] = (uint64_t)((double)r->samples * r->others);
	books.count[BOOK_NOT_RUN] = (uint64_t)((double)r->samples * r->lost / (1 - r->lost));
	if (r->lost > 0)
		profile_builder__books(f->b, &books);
	if (r->event)
		profile_builder__meta(f->b, META_EVENT, r->event);
	if (r->kernel)
		profile_builder__meta(f->b, META_KERNEL_RELEASE, r->kernel);
}

static const struct profile *record(struct fixture *f, const struct program *program,
				    const struct recording *r)
{
	struct stack_id stacks[PARTS_MAX];
	struct thread_id thread;
	double costs[PARTS_MAX], whole = 0, period, every = r->every ? r->every : 1;
	size_t part = 0;

	for (size_t i = 0; i < program->count; i++) {
		costs[i] = program->parts[i].cost * (1 + r->noise * normal());
		whole += costs[i];
	}
	period = whole / cost_of(&base); /* ms: the same work takes longer if it costs more */
	fixture__init(f, (double)(r->samples + 1) * every);
	f->process = add_process(f, 100, "app", 0, 0);
	thread = add_thread(f, f->process, 100, true, "app", 0);
	for (size_t i = 0; i < program->count; i++)
		stacks[i] = stack_of(f, program->parts[i].path);
	profile_builder__session(f->b)->untimed = r->untimed;
	if (r->counts_cpu) {
		profile_builder__session(f->b)->event = text(f, EVENT_CPU);
		profile_builder__session(f->b)->event_unit = text(f, EVENT_CPU_UNIT);
	}
	if (r->untimed)
		add_counts(f, thread, r, costs, whole, stacks, program->count);
	for (size_t i = 0; i < r->samples && !r->untimed; i++) {
		bool cut = uniform() < r->cut;

		if (!r->run || i % r->run == 0)
			part = draw(costs, program->count, whole);
		add_cut_sample(f, thread, (1 + (double)i) * every, stacks[part], period * every,
			       "app", cut ? STACK_END_NO_FRAME : STACK_END_ROOT);
	}
	add_circumstances(f, r);
	return finish(f);
}

/* ---- comparing them -------------------------------------------------------------------------- */

/* The latest comparison. */
static struct {
	struct comparison *c;
	const struct compare_result *result;
} t;

static void free_trial(void)
{
	comparison__free(t.c);
	t.c = NULL;
	t.result = NULL;
}

static void begin_trial(void)
{
	free_trial();
	t.c = comparison__new();
	assert_non_null(t.c);
}

static const struct compare_options sampling_only = {.view = COMPARE_SHARE, .run_noise = 0};

static void compare_files(const struct program *old, const struct program *new,
			  const size_t files[COMPARE_SIDES], const struct recording *r,
			  const struct compare_options *options)
{
	struct failure failure = {};

	begin_trial();
	for (int side = 0; side < COMPARE_SIDES; side++)
		for (size_t i = 0; i < files[side]; i++) {
			struct fixture f;
			const struct profile *p = record(&f, side ? new : old, r);

			assert_int_equal(comparison__add(t.c, (enum compare_side)side, "made-up", p,
							 &failure),
					 0);
			profile_builder__free(f.b);
		}
	if (comparison__finish(t.c, options, &t.result, &failure))
		fail_msg("%s", failure.what);
}

/* One file a side. If it fails, there is no result. */
static void compare_two(const struct program *new, const struct recording *old_run,
			const struct recording *new_run, const struct compare_options *options,
			struct failure *failure)
{
	begin_trial();
	for (int side = 0; side < COMPARE_SIDES; side++) {
		struct fixture f;
		const struct profile *p = record(&f, side ? new : &base, side ? new_run : old_run);

		assert_int_equal(comparison__add(t.c, (enum compare_side)side, "x", p, failure), 0);
		profile_builder__free(f.b);
	}
	if (comparison__finish(t.c, options, &t.result, failure))
		t.result = NULL;
}

static void compare(const struct program *old, const struct program *new, size_t files,
		    const struct recording *r, const struct compare_options *options)
{
	const size_t both[COMPARE_SIDES] = {files, files};

	compare_files(old, new, both, r, options);
}

static const struct compare_test *test_of(const char *function)
{
	for (size_t i = 0; i < t.result->test_count; i++)
		if (!t.result->tests[i].is_self &&
		    !strcmp(comparison__name(t.c, t.result->tests[i].function), function))
			return &t.result->tests[i];
	fail_msg("%s is not tested", function);
	return NULL;
}

static const struct compare_row *row_of(const char *function)
{
	for (size_t i = 0; i < t.result->row_count; i++) {
		const struct compare_row *row = &t.result->rows[i];

		if (!strcmp(comparison__name(t.c, t.result->tests[row->test].function), function))
			return row;
	}
	return NULL;
}

static bool has_alarm(void)
{
	return t.result->row_count || t.result->tests[0].found;
}

#endif
