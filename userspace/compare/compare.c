/* SPDX-License-Identifier: BSD-2-Clause */
#include "compare/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/list_column.h"
#include "base/order.h"
#include "compare/comparison.h"
#include "compare/merged_profile.h"
#include "compare/tests.h"
#include "compare/verdicts.h"

#define POWER_Z	  1.2815515655446004 /* of 9 in 10 */
#define STRIPPED  0.5 /* more unnamed samples of a file than this share: another build */
#define NEAR_SIZE 3.0 /* functions of similar size: a third to three times */

const char *compare_verdict_name(enum compare_verdict verdict)
{
	static const char *const names[] = {COMPARE_VERDICTS(SECOND_COLUMN)};

	return names[verdict];
}

const char *compare_view_name(enum compare_view view)
{
	static const char *const names[] = {COMPARE_VIEWS(SECOND_COLUMN)};

	return names[view];
}

const char *compare_doubt_text(enum compare_doubt doubt)
{
	static const char *const texts[] = {COMPARE_DOUBTS(THIRD_COLUMN)};

	return texts[doubt];
}

struct comparison *comparison__new(void)
{
	struct comparison *c = calloc(1, sizeof(*c));

	if (c && merged__init(&c->merged)) {
		comparison__free(c);
		return NULL;
	}
	return c;
}

void comparison__free(struct comparison *c)
{
	if (!c)
		return;
	comparison__free(c->waiting);
	if (c->has_series)
		series__fini(&c->series);
	merged__fini(&c->merged);
	vec_free(&c->tests);
	vec_free(&c->rows);
	free(c->total_test);
	free(c->self_test);
	free(c);
}

/* Waits are compared as well if all files have some. */
static int add_waits(struct comparison *c, enum compare_side side, const char *path,
		     const struct profile *p)
{
	if (!p->visits.hz)
		return 0;
	if (!c->waiting) {
		c->waiting = comparison__new();
		if (!c->waiting)
			return -ENOMEM;
		c->waiting->merged.is_waiting = true;
	}
	return merged__add(&c->waiting->merged, side, path, p);
}

static int fail_uncounted(const char *path, struct failure *failure)
{
	return fail(failure, -EDOM,
		    "no verdict: the numbers of %s are weights, so how many samples it has is "
		    "unknown, and any difference may be chance",
		    path);
}

int comparison__add(struct comparison *c, enum compare_side side, const char *path,
		    const struct profile *p, struct failure *failure)
{
	if (c->merged.files.count >= COMPARE_FILES_MAX)
		return fail(failure, -E2BIG, "cannot compare: more than %d files",
			    COMPARE_FILES_MAX);
	if (p->uncounted)
		return fail_uncounted(path, failure);
	if (merged__add(&c->merged, side, path, p) || add_waits(c, side, path, p))
		return fail(failure, -ENOMEM, "cannot compare: out of memory");
	if (!c->merged.files.data[c->merged.files.count - 1].facts.ticks)
		return fail(failure, -ENODATA, "cannot compare %s: it has no sample%s", path,
			    p->is_slice	      ? " in that time"
			    : p->clause_count ? " that the filter keeps"
					      : "");
	return 0;
}

int comparison__add_window(struct comparison *c, enum compare_side side, const char *path,
			   const struct profile *p, const struct merged_window *window,
			   struct failure *failure)
{
	if (p && p->uncounted)
		return fail_uncounted(path, failure);
	if (p && p->event.v)
		return fail(failure, -EINVAL,
			    "cannot compare %s: a window of an agent counts ticks, this one %s",
			    path, profile__event(p));
	if (window->is_first && c->merged.files.count >= COMPARE_FILES_MAX)
		return fail(failure, -E2BIG, "cannot compare: more than %d spans of time",
			    COMPARE_FILES_MAX);
	if (merged__add_window(&c->merged, side, path, p, window))
		return fail(failure, -ENOMEM, "cannot compare: out of memory");
	return 0;
}

/* ---- can they be compared? ------------------------------------------------------------------- */

/* CPU clocks are comparable with each other. */
static bool is_clock(const char *event)
{
	return !*event || !strcmp(event, "cpu-clock") || !strcmp(event, "task-clock");
}

/* Folded stacks, which are compared as if of a clock, name no event and have no CPU time. */
static bool names_no_event(const struct compare_file *f)
{
	return !*f->event && !f->cpu_ns;
}

static int refuse_events(const struct compare_file *a, const struct compare_file *b,
			 struct failure *failure)
{
	const struct compare_file *unnamed = names_no_event(a) ? a : b;
	const struct compare_file *other = unnamed == a ? b : a;

	if (names_no_event(unnamed))
		return fail(failure, -EINVAL,
			    "cannot compare: %s does not name its event, %s is of the event %s",
			    unnamed->path, other->path, other->event);
	return fail(failure, -EINVAL, "cannot compare: %s is of the event %s, %s of %s", a->path,
		    *a->event ? a->event : "cpu-clock", b->path,
		    *b->event ? b->event : "cpu-clock");
}

/* A file of CPU time is one of a clock, but without that time ticks have no common unit. */
static int check_times(const struct comparison *c, struct failure *failure)
{
	const struct compare_file *time = NULL, *other = NULL;

	for (size_t i = 0; i < c->merged.files.count; i++) {
		const struct compare_file *f = &c->merged.files.data[i].facts;

		if (f->counts_time)
			time = f;
		else if (!f->cpu_ns)
			other = f;
	}
	return time && other ? fail(failure, -EINVAL,
				    "cannot compare: %s counts CPU time, and %s has none",
				    time->path, other->path)
			     : 0;
}

static int check_events(const struct comparison *c, struct failure *failure)
{
	const struct compare_file *first = &c->merged.files.data[0].facts;

	for (size_t i = 1; i < c->merged.files.count; i++) {
		const struct compare_file *f = &c->merged.files.data[i].facts;

		if (strcmp(f->event, first->event) &&
		    !(is_clock(f->event) && is_clock(first->event)))
			return refuse_events(first, f, failure);
	}
	return check_times(c, failure);
}

/* Why the waits cannot be compared; NULL: they can. */
static const char *waits_missing(const struct comparison *c)
{
	if (c->waiting->merged.files.count < c->merged.files.count)
		return "not all files were recorded with --wall";
	for (size_t i = 0; i < c->waiting->merged.files.count; i++)
		if (!c->waiting->merged.files.data[i].facts.ticks)
			return c->waiting->merged.files.data[i].facts.side == COMPARE_OLD
				       ? "a file of OLD has no waits"
				       : "a file of NEW has no waits";
	return NULL;
}

/* Programs that hardly run can be compared by their waits. */
static int check_functions(const struct comparison *c, struct failure *failure)
{
	for (size_t i = 1; i < c->series.count; i++) {
		const struct series_function *f = &c->series.functions[i];

		if (f->total[COMPARE_OLD] && f->total[COMPARE_NEW])
			return 0;
	}
	if (c->waiting && !waits_missing(c))
		return 0;
	return fail(
		failure, -EINVAL,
		"cannot compare: OLD and NEW have no function in common (of those with %d samples "
		"or more)",
		SERIES_TICKS_MIN);
}

bool compare_test__is_doubtful(const struct compare_test *t, const struct compare_result *result)
{
	double whole = result->tests[0].side[COMPARE_OLD].value;

	for (int i = 0; i < COMPARE_DOUBT_COUNT; i++)
		if (result->doubt[i] > COMPARE_DOUBT_SEEN &&
		    fabs(t->difference.value) <= result->doubt[i] * whole)
			return true;
	return result->refused;
}

/* ---- the view -------------------------------------------------------------------------------- */

static bool has_cpu(const struct compare_file *f)
{
	return f->cpu_ns > 0;
}

static bool has_duration(const struct compare_file *f)
{
	return has_cpu(f) && !f->untimed && f->duration_ns > 0;
}

static bool is_run(const struct compare_file *f)
{
	return has_cpu(f) && f->is_command;
}

/* The first file for which `has` is false; NULL: none. */
static const struct compare_file *file_without(const struct comparison *c,
					       bool (*has)(const struct compare_file *))
{
	for (size_t i = 0; i < c->merged.files.count; i++)
		if (!has(&c->merged.files.data[i].facts))
			return &c->merged.files.data[i].facts;
	return NULL;
}

/* Samples are of a clock, so that they divide CPU time. */
static bool is_of_clock(const struct compare_file *f)
{
	return !f->counts_events;
}

static int choose_view(struct comparison *c, struct failure *failure)
{
	const struct compare_file *without = NULL, *of_event = file_without(c, is_of_clock);
	enum compare_view view = c->options.view;

	if (view == COMPARE_AUTO && of_event)
		view = COMPARE_SHARE;
	if (view != COMPARE_SHARE && of_event) {
		fail(failure, -EINVAL, "cannot compare CPU time: %s counts %s", of_event->path,
		     of_event->event);
		return fail_remedy(failure, -EINVAL, "compare shares: --view share");
	}
	if (view == COMPARE_AUTO)
		view = c->options.work[COMPARE_OLD] > 0 ? COMPARE_WORK
		       : !file_without(c, is_run)	? COMPARE_RUN
		       : !file_without(c, has_duration) ? COMPARE_SECOND
							: COMPARE_SHARE;
	if (view == COMPARE_SECOND)
		without = file_without(c, has_duration);
	else if (view != COMPARE_SHARE)
		without = file_without(c, has_cpu);
	if (without) {
		fail(failure, -EINVAL, "cannot compare CPU time per %s: %s has no %s",
		     view == COMPARE_WORK ? "unit of work" : compare_view_name(view), without->path,
		     has_cpu(without) ? "times" : "CPU time");
		return fail_remedy(failure, -EINVAL, "compare shares: --view share");
	}
	c->result.view = view;
	return 0;
}

/* ---- sums of the sides ----------------------------------------------------------------------- */

/*
 * Samples without a name that would have one if the file of code had as many names as on the other
 * side. A library that is stripped on both sides has about the same share of them on both.
 */
static double nameless_ticks(const struct comparison *c, enum compare_side side)
{
	double sum = 0;

	for (size_t i = 0; i < c->merged.dsos.count; i++) {
		const struct merged_dso *d = &c->merged.dsos.data[i];
		double ticks = (double)d->ticks[side][0], others = (double)d->ticks[!side][0], more;

		if (ticks <= 0 || others <= 0)
			continue;
		more = (double)d->unnamed[side][0] / ticks - (double)d->unnamed[!side][0] / others;
		if (more > STRIPPED)
			sum += more * ticks;
	}
	return sum;
}

static void sum_sides(struct comparison *c)
{
	double part[COMPARE_SIDES][COMPARE_DOUBT_COUNT] = {}, due[COMPARE_SIDES] = {};

	for (size_t i = 0; i < c->merged.files.count; i++) {
		const struct compare_file *f = &c->merged.files.data[i].facts;
		struct compare_side_sum *sum = &c->result.side[f->side];

		sum->files++;
		sum->samples += f->samples;
		sum->ticks += f->ticks;
		sum->cpu_ns += f->cpu_ns;
		sum->duration_ns += f->untimed ? 0 : f->duration_ns;
		sum->unnamed += f->unnamed;
		sum->unknown |= f->unknown;
		part[f->side][COMPARE_DOUBT_LOST] += (double)f->lost;
		part[f->side][COMPARE_DOUBT_CUT] += (double)f->cut;
		due[f->side] += (double)f->due;
	}
	for (int i = 0; i < COMPARE_SIDES; i++) {
		part[i][COMPARE_DOUBT_UNNAMED] = nameless_ticks(c, (enum compare_side)i);
		for (int doubt = 0; doubt < COMPARE_DOUBT_COUNT; doubt++) {
			double of = doubt == COMPARE_DOUBT_LOST ? due[i]
								: (double)c->result.side[i].ticks;

			c->result.side[i].doubt[doubt] = of > 0 ? part[i][doubt] / of : 0;
		}
	}
}

static void set_doubts(struct compare_result *r)
{
	for (int i = 0; i < COMPARE_DOUBT_COUNT; i++) {
		double old = r->side[COMPARE_OLD].doubt[i], new = r->side[COMPARE_NEW].doubt[i];
		double worst = fabs(new - old);

		if (i == COMPARE_DOUBT_LOST && fmax(old, new) > COMPARE_LOSS_MAX)
			worst = fmax(old, new);
		r->doubt[i] = worst;
		if (worst > COMPARE_DOUBT_MAX && !r->refused) {
			r->refused = true;
			r->refused_for = (enum compare_doubt)i;
		}
	}
}

/* One side may have enough files. */
static int measure_run_noise(struct comparison *c)
{
	struct compare_result *r = &c->result;
	enum compare_side side = r->side[COMPARE_NEW].files > r->side[COMPARE_OLD].files;

	c->noise_freedom = INFINITY;
	if (r->runs_measured || c->options.run_noise >= 0 || r->side[side].files < COMPARE_RUNS_MIN)
		return 0;
	r->noise_files = r->side[side].files;
	r->noise_assumed = false;
	/* halved, because both sides use the same estimate */
	c->noise_freedom = (double)(r->noise_files - 1) / 2;
	return comparison__measure_noise(c, side, &r->run_noise);
}

/* Parts of one recording have no variance of runs. */
static bool is_one_run(const struct comparison *c)
{
	const char *first = c->merged.files.data[0].facts.path, *end = strrchr(first, '@');
	size_t size = end ? (size_t)(end - first) : 0;

	for (size_t i = 0; i < c->merged.files.count; i++) {
		const struct compare_file *f = &c->merged.files.data[i].facts;
		const char *at = strrchr(f->path, '@');

		if (!f->is_part || !at || (size_t)(at - f->path) != size ||
		    strncmp(first, f->path, size) != 0)
			return false;
	}
	return true;
}

static void set_run_noise(struct comparison *c)
{
	struct compare_result *r = &c->result;

	r->runs_measured = c->series.by_file;
	r->is_one_run = !r->runs_measured && c->options.run_noise < 0 && is_one_run(c);
	if (r->is_one_run)
		c->options.run_noise = 0;
	r->has_elapsed = c->series.by_file && !file_without(c, is_run);
	r->noise_assumed = !r->runs_measured && c->options.run_noise < 0;
	r->run_noise = r->runs_measured ? NAN
		       : c->options.run_noise < 0
			       ? (c->merged.is_waiting ? COMPARE_WAIT_NOISE : COMPARE_RUN_NOISE)
			       : c->options.run_noise;
}

/* ---- what could have been found -------------------------------------------------------------- */

DEFINE_ORDER(compare_numbers, double, order_of(*x, *y));

/* For a function of this share, from the errors of functions of similar size. */
static int find_detectable(const struct comparison *c, double share, double *detectable)
{
	_cleanup_free_ double *errors = malloc((c->tests.count + 1) * sizeof(*errors));
	double whole = c->tests.data[0].side[COMPARE_OLD].value;
	size_t count = 0;

	if (!errors)
		return -ENOMEM;
	for (size_t i = 0; i < c->tests.count; i++) {
		const struct compare_test *t = &c->tests.data[i];
		double size = t->side[COMPARE_OLD].value / whole;

		if (i && t->has_relative && size > share / NEAR_SIZE && size < share * NEAR_SIZE)
			errors[count++] = t->relative_error;
	}
	*detectable = NAN;
	if (!count)
		return 0;
	qsort(errors, count, sizeof(*errors), compare_numbers);
	*detectable = (student_t(comparison__level_of(c, share), INFINITY) + POWER_Z) *
		      errors[count / 2];
	return 0;
}

static int set_detectable(struct comparison *c)
{
	const struct compare_test *whole = &c->tests.data[0];
	int err = find_detectable(c, 0.05, &c->result.detectable[1])
			  ?: find_detectable(c, 0.01, &c->result.detectable[2]);

	c->result.detectable[0] =
		whole->relative_error > 0
			? (student_t(c->result.level, whole->difference.freedom) + POWER_Z) *
				  whole->relative_error
			: NAN;
	return err;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int compare(struct comparison *c, struct failure *failure)
{
	int err;

	c->result.level = COMPARE_LEVEL / (c->options.looks ? c->options.looks : 1);
	sum_sides(c);
	set_doubts(&c->result);
	err = choose_view(c, failure);
	if (err)
		return err;
	c->has_series = true;
	if (series__init(&c->series, &c->merged))
		return -ENOMEM;
	set_run_noise(c);
	err = measure_run_noise(c) ?: check_functions(c, failure) ?: comparison__test(c);
	c->result.tests = c->tests.data;
	c->result.test_count = c->tests.count;
	if (!err)
		err = comparison__judge(c);
	return err ? err : set_detectable(c);
}

/* In the same view. If the waits have nothing in common, the comparison still succeeds. */
static int compare_waits(struct comparison *c)
{
	struct compare_options options = c->options;
	struct failure failure = {};
	int err;

	if (!c->waiting)
		return 0;
	c->result.waiting_missing = waits_missing(c);
	if (c->result.waiting_missing)
		return 0;
	options.view = c->result.view;
	err = comparison__finish(c->waiting, &options, &c->result.waiting, &failure);
	if (err == -ENOMEM)
		return err;
	if (err) {
		c->result.waiting = NULL;
		c->result.waiting_missing =
			"OLD and NEW have no state and no function that waits in common";
	}
	return 0;
}

/* What ticks count. */
static void set_event(struct comparison *c)
{
	const struct compare_file *first = &c->merged.files.data[0].facts;

	c->result.sample_ticks = c->merged.sample_ticks;
	if (c->merged.is_waiting || (!first->counts_events && !first->counts_time))
		return;
	c->result.event = first->counts_time ? EVENT_CPU : first->event;
	c->result.event_unit = first->counts_time ? EVENT_CPU_UNIT : first->event_unit;
}

int comparison__finish(struct comparison *c, const struct compare_options *options,
		       const struct compare_result **result, struct failure *failure)
{
	int err;

	c->options = *options;
	c->result.is_waiting = c->merged.is_waiting;
	err = check_events(c, failure);
	if (err)
		return err;
	merged__unify(&c->merged);
	set_event(c);
	err = compare(c, failure) ?: compare_waits(c);
	if (err == -ENOMEM)
		return fail(failure, err, "cannot compare: out of memory");
	if (err)
		return err;
	c->result.rows = c->rows.data;
	c->result.row_count = c->rows.count;
	*result = &c->result;
	return 0;
}

size_t comparison__file_count(const struct comparison *c)
{
	return c->merged.files.count;
}

const struct compare_file *comparison__file(const struct comparison *c, size_t i)
{
	return &c->merged.files.data[i].facts;
}

int comparison__build_profile(const struct comparison *c, bool waits, struct profile_builder *b)
{
	return merged__build_profile(&c->merged,
				     waits && c->result.waiting ? &c->waiting->merged : NULL, b);
}

const struct comparison *comparison__waiting(const struct comparison *c)
{
	return c->waiting;
}

const char *comparison__name(const struct comparison *c, uint32_t function)
{
	return function == COMPARE_WHOLE ? "total" : strtab__get(c->merged.names, function);
}

uint32_t comparison__place(const struct comparison *c, uint32_t node)
{
	uint32_t place = COMPARE_WHOLE;

	for (; node != MERGED_ROOT; node = c->merged.nodes.data[node].parent) {
		uint32_t function = c->merged.nodes.data[node].function;
		enum profile_category category = c->merged.functions.data[function].category;

		if (category == CATEGORY_JIT)
			return function;
		if (category == CATEGORY_USER && place == COMPARE_WHOLE)
			place = function;
	}
	return place;
}

size_t comparison__path(const struct comparison *c, uint32_t node, uint32_t *functions, size_t max)
{
	size_t depth = 0, used = 0;

	for (uint32_t at = node; at != MERGED_ROOT; at = c->merged.nodes.data[at].parent)
		depth++;
	used = depth < max ? depth : max;
	for (size_t i = used; i-- > 0; node = c->merged.nodes.data[node].parent)
		functions[i] = c->merged.nodes.data[node].function;
	return used;
}
