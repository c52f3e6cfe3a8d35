/* SPDX-License-Identifier: BSD-2-Clause */
/* Filters: as text, their regular expressions, slices of time, and what is left of profiles. */
#include "import_support.h"

#include <time.h>

#include "base/cleanup.h"
#include "filter/filter_apply.h"
#include "profile/figures.h"
#include "profile/profile.h"
#include "profile/profile_check.h"

#define SLICED_START	(UINT64_C(1000) * 1000000000)
#define SLICED_REALTIME (UINT64_C(1795687200) * 1000000000) /* 2026-11-26 10:00:00 UTC */

static void parse_filter(FILE *out, char *input)
{
	_cleanup_(profile_filter__fini) struct profile_filter filter = {};
	struct failure failure = {};
	char *text;

	if (profile_filter__parse(&filter, input, &failure)) {
		fputs(failure.what, out);
	} else {
		text = profile_filter__print(&filter);
		fputs(text, out);
		free(text);
	}
}

/* "expression ~ text" */
static void match(FILE *out, char *input)
{
	struct failure failure = {};
	char *text = strstr(input, " ~ "), *expression;
	struct pattern *pattern;

	assert_non_null(text);
	expression = strndup(input, (size_t)(text - input)); /* so that a sanitizer sees its end */
	assert_non_null(expression);
	text += 3;
	pattern = pattern__new(expression, &failure);
	free(expression);
	if (pattern)
		fputs(pattern__matches(pattern, text, strlen(text)) ? "yes" : "no", out);
	else
		fputs(failure.what, out);
	pattern__free(pattern);
}

/* Of a profile of a minute. */
static void resolve_slice(FILE *out, char *input)
{
	static const struct profile p = {.start = SLICED_START,
					 .end = SLICED_START + UINT64_C(60000000000),
					 .start_realtime = SLICED_REALTIME};
	struct failure failure = {};
	slice_ranges ranges = {};
	struct slice slice;

	slice__parse(&slice, input);
	if (slice.is_of_markers)
		fputs("no time", out);
	else if (slice__resolve(&slice, input, &p, &ranges, &failure))
		fputs(failure.what, out);
	else if (ranges.data->until == UINT64_MAX)
		fprintf(out, "%.3f and on", (double)(ranges.data->from - SLICED_START) / 1e9);
	else
		fprintf(out, "%.3f to %.3f", (double)(ranges.data->from - SLICED_START) / 1e9,
			(double)(ranges.data->until - SLICED_START) / 1e9);
	vec_free(&ranges);
}

static struct slice_range resolved(const char *text, const struct profile *p)
{
	struct failure failure = {};
	struct slice_range range = {};
	slice_ranges ranges = {};
	struct slice slice;

	slice__parse(&slice, text);
	if (slice__resolve(&slice, text, p, &ranges, &failure))
		fail_msg("%s: %s", text, failure.what);
	range = ranges.data[0];
	vec_free(&ranges);
	return range;
}

/* Summer time ends on 2026-10-25 at 01:00 UTC, and begins on 2026-03-29 at 01:00 UTC. */
TEST(a_time_of_the_clock_is_right_on_days_of_23_and_25_hours)
{
	static const struct {
		uint64_t start; /* seconds since the epoch */
		const char *slice;
		uint64_t from, until; /* seconds */
	} cases[] = {
		{1792918800, "10:00:05-10:00:10", 5, 10},    /* 2026-10-25 09:00:00 UTC */
		{1774771200, "10:00:05-10:00:10", 5, 10},    /* 2026-03-29 08:00:00 UTC */
		{1792963800, "00:00-00:10", 5400, 6000},     /* 2026-10-25 21:30:00 UTC */
		{1792879200, "02:00Z-03:00Z", 14400, 18000}, /* 2026-10-24 22:00:00 UTC */
	};

	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct profile p = {.start = SLICED_START,
					  .end = SLICED_START + UINT64_C(86400000000000),
					  .start_realtime = cases[i].start * 1000000000};
		struct slice_range range = resolved(cases[i].slice, &p);

		assert_int_equal((range.from - SLICED_START) / 1000000000, cases[i].from);
		assert_int_equal((range.until - SLICED_START) / 1000000000, cases[i].until);
	}
	setenv("TZ", "UTC", 1);
	tzset();
}

TEST(a_time_of_the_clock_far_in_the_future_is_not_known)
{
	static const struct profile p = {.start = SLICED_START,
					 .end = SLICED_START + UINT64_C(60000000000),
					 .start_realtime = UINT64_MAX - 5};
	struct failure failure = {};
	slice_ranges ranges = {};
	struct slice slice;

	slice__parse(&slice, "10:00-10:01");
	assert_int_equal(slice__resolve(&slice, "10:00-10:01", &p, &ranges, &failure), -ENODATA);
}

static struct filtered *apply(const char *text, const struct profile *p)
{
	struct profile_filter filter = {};
	struct filtered *filtered = NULL;
	struct failure failure = {};
	char why[256] = "";

	if (profile_filter__parse(&filter, text, &failure) ||
	    profile_filter__apply(&filter, p, &filtered, &failure))
		fail_msg("%s: %s", text, failure.what);
	if (profile_check(filtered__profile(filtered), why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	profile_filter__fini(&filter);
	return filtered;
}

/* The first line is a filter, the rest folded stacks, whose first field is the thread's name. */
static void filter_stacks(FILE *out, char *input)
{
	char *stacks = strchr(input, '\n'), *text;
	struct filtered *filtered;
	_cleanup_imported_ struct imported i = {};

	assert_non_null(stacks);
	*stacks++ = '\0';
	root_of_files = IMPORT_ROOT_THREAD;
	i = import_good(stacks);
	filtered = apply(input, i.p);
	text = export_text(&folded_exporter, filtered__profile(filtered), NULL);
	fputs(text, out);
	free(text);
	filtered__free(filtered);
}

static const struct text_verb verbs[] = {
	{"filter", parse_filter},
	{"match", match},
	{"slice", resolve_slice},
	{"stacks", filter_stacks},
	{},
};

/* ---- profiles of the golden tests ------------------------------------------------------------ */

static const char *const filters[] = {
	"--ignore=nothing-has-this-name",
	"--focus=nothing-has-this-name",
	"--focus=main",
	"--focus=.",
	"--ignore=main",
	"--hide=main",
	"--hide=.",
	"--show-from=main",
	"--collapse=a",
	"--collapse=dso",
	"--collapse=^.*$ --collapse=dso --hide=main --show-from=.",
	"--process=*a*",
	"--thread=1* --process=*",
	"--service=x",
	"--container=x",
	"--unit=*",
	"--cpu=0",
	"--cpu=0-65535",
	"--state=running",
	"--state=lock,disk,sleep",
	"--state=poll,runnable --focus=a",
	"@0s-1s",
	"@0.5s-",
	"@-0.001s",
	"@1000h-",
	"@0.002s-0.004s --focus=a --hide=main",
	"@0.002s-0.004s @0.003s-1s --state=sleep --collapse=.",
};

static uint64_t figure(const struct profile *p, enum figure_id id)
{
	struct figures f;

	figures__init(&f, p);
	return f.value[id];
}

static void check_sums(const char *what, const struct profile *all, const struct profile *part)
{
	static const enum figure_id pairs[][2] = {
		{FIGURE_SAMPLES, FIGURE_DROPPED_SAMPLES},
		{FIGURE_EVENTS, FIGURE_DROPPED_EVENTS},
		{FIGURE_CPU, FIGURE_DROPPED_CPU},
		{FIGURE_LIVED, FIGURE_DROPPED_WALL},
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		uint64_t whole = figure(all, pairs[i][0]);
		uint64_t sum = figure(part, pairs[i][0]) + figure(part, pairs[i][1]);

		if (sum != whole)
			fail_msg("%s: %s: %llu of %llu", what, figure_table[pairs[i][0]].key,
				 (unsigned long long)sum, (unsigned long long)whole);
	}
}

/* Samples of the golden profiles have no CPU. */
static bool lacks_data(const char *filter, const struct profile *p)
{
	bool needs_waits = strstr(filter, "--state") && !strstr(filter, "running");

	return (p->untimed && strchr(filter, '@')) ||
	       (p->sample_count && strstr(filter, "--cpu")) || (!p->visits.hz && needs_waits);
}

TEST(what_is_kept_and_what_is_dropped_add_up_to_the_whole)
{
	for (size_t i = 0; i < NAMED_PROFILES; i++)
		for (size_t k = 0; k < sizeof(filters) / sizeof(*filters); k++) {
			_cleanup_fixture_ struct fixture f = {};
			const struct profile *p = build_profile(&f, named_profiles[i].name);
			struct filtered *filtered;

			if (lacks_data(filters[k], p))
				continue;
			filtered = apply(filters[k], p);
			check_sums(filters[k], p, filtered__profile(filtered));
			filtered__free(filtered);
		}
}

TEST(every_format_can_be_written_of_every_part)
{
	static const struct exporter *const formats[] = {
		&firefox_exporter, &cpuprofile_exporter, &trace_exporter, &pprof_exporter,
		&folded_exporter,  &html_exporter,	 &text_exporter,
	};

	for (size_t i = 0; i < NAMED_PROFILES; i++)
		for (size_t k = 0; k < sizeof(filters) / sizeof(*filters); k++) {
			_cleanup_fixture_ struct fixture f = {};
			const struct profile *p = build_profile(&f, named_profiles[i].name);
			struct filtered *filtered;

			if (lacks_data(filters[k], p))
				continue;
			filtered = apply(filters[k], p);
			for (size_t e = 0; e < sizeof(formats) / sizeof(*formats); e++) {
				size_t size;

				free(export_bytes(formats[e], filtered__profile(filtered), NULL,
						  &size));
				assert_true(size > 0);
			}
			filtered__free(filtered);
		}
}

/* Adjacent slices: each sample is in one of them, and a wait over the border is divided. */
TEST(slices_that_touch_have_everything_once)
{
	for (size_t i = 0; i < NAMED_PROFILES; i++) {
		static const enum figure_id ids[] = {FIGURE_SAMPLES, FIGURE_EVENTS, FIGURE_CPU};
		_cleanup_fixture_ struct fixture f = {};
		const struct profile *p = build_profile(&f, named_profiles[i].name);
		struct filtered *before, *after;

		if (p->untimed)
			continue;
		before = apply("@0s-0.0035s", p);
		after = apply("@0.0035s-", p);
		for (size_t k = 0; k < sizeof(ids) / sizeof(*ids); k++)
			assert_int_equal(figure(filtered__profile(before), ids[k]) +
						 figure(filtered__profile(after), ids[k]),
					 figure(p, ids[k]));
		filtered__free(before);
		filtered__free(after);
	}
}

static uint64_t waited(const struct profile *p)
{
	uint64_t sum = 0;

	for (size_t i = 1; i < p->thread_count; i++)
		for (size_t k = 0; k < p->threads[i].samples[SAMPLE_WALL].count; k++)
			sum += p->threads[i].samples[SAMPLE_WALL].weight[k];
	return sum;
}

/* Two that overlap are one slice; an instant adds nothing; a wait over both slices is in both. */
TEST(slices_of_markers_are_those_of_their_times)
{
	for (size_t i = 0; i < NAMED_PROFILES; i++) {
		static const enum figure_id ids[] = {FIGURE_SAMPLES, FIGURE_EVENTS, FIGURE_CPU};
		_cleanup_fixture_ struct fixture f = {};
		struct profile p = *build_profile(&f, named_profiles[i].name);
		const struct string_id name = {(uint32_t)p.string_count};
		const struct profile_marker markers[] = {
			{{1}, name, p.start + 500000, p.start + 1500000},
			{{1}, name, p.start + 1000000, p.start + 2000000},
			{{1}, name, p.start + 2500000, p.start + 2500000},
			{{1}, name, p.start + 3000000, p.start + 3500000},
		};
		_cleanup_free_ const char **strings =
			malloc((p.string_count + 1) * sizeof(*strings));
		struct filtered *named, *first, *second;

		if (p.untimed || p.thread_count < 2 || p.end < p.start + 4000000)
			continue;
		assert_non_null(strings);
		memcpy(strings, p.strings, p.string_count * sizeof(*strings));
		strings[p.string_count++] = "phase";
		p.strings = strings;
		p.markers = markers;
		p.marker_count = sizeof(markers) / sizeof(*markers);
		named = apply("@ph*", &p);
		first = apply("@0.0005s-0.002s", &p);
		second = apply("@0.003s-0.0035s", &p);
		check_sums("@ph*", &p, filtered__profile(named));
		for (size_t k = 0; k < sizeof(ids) / sizeof(*ids); k++)
			assert_int_equal(figure(filtered__profile(named), ids[k]),
					 figure(filtered__profile(first), ids[k]) +
						 figure(filtered__profile(second), ids[k]));
		assert_int_equal(waited(filtered__profile(named)),
				 waited(filtered__profile(first)) +
					 waited(filtered__profile(second)));
		filtered__free(named);
		filtered__free(first);
		filtered__free(second);
	}
}

/* The visit that saw it first is before the slice. */
TEST(a_slice_is_as_long_as_requested_although_a_wait_began_before_it)
{
	_cleanup_fixture_ struct fixture f = {};
	struct thread_id thread;
	struct location_id code;
	const struct profile_samples *waits;
	struct filtered *filtered;
	const struct profile *p;

	fixture__init(&f, 100);
	f.process = add_process(&f, 500, "server", 0, 0);
	thread = add_thread(&f, f.process, 500, true, "server", 0);
	code = add_location(&f, f.program, 0x1100);
	profile_builder__sample(f.b, thread,
				&(struct profile_sample){.kind = SAMPLE_WALL,
							 .time = AT(5),
							 .weight = 88 * MS,
							 .stack = STACK(&f, code),
							 .comm = text(&f, "server"),
							 .state = WALL_SLEEP,
							 .since = AT(2),
							 .until = AT(90)});
	profile_builder__thread_wall(f.b, thread,
				     &(struct profile_wall){.since = AT(0),
							    .until = AT(100),
							    .blocked = 88 * MS,
							    .unvisited = 12 * MS});
	NAME(&f, code, {.function = "serve"});
	filtered = apply("@0.02s-0.05s", finish(&f));
	p = filtered__profile(filtered);
	waits = &p->threads[1].samples[SAMPLE_WALL];
	assert_int_equal(p->start, AT(20));
	assert_int_equal(p->end, AT(50));
	assert_int_equal(p->start_realtime, REALTIME + 20 * MS);
	assert_int_equal(waits->count, 1);
	assert_int_equal(waits->weight[0], 30 * MS);
	filtered__free(filtered);
}

TEST(a_filter_that_keeps_everything_changes_no_format)
{
	static const struct exporter *const text_formats[] = {&folded_exporter,
							      &cpuprofile_exporter, NULL};

	for (size_t i = 0; i < NAMED_PROFILES; i++)
		for (const struct exporter *const *e = text_formats; *e; e++) {
			_cleanup_fixture_ struct fixture f = {};
			const struct profile *p = build_profile(&f, named_profiles[i].name);
			struct filtered *filtered = apply("--ignore=nothing-has-this-name", p);
			struct profile bare = *filtered__profile(filtered);
			_cleanup_free_ char *whole = NULL, *part = NULL;

			bare.clause_count = 0;
			bare.idle_known = p->idle_known;
			whole = export_text(*e, p, NULL);
			part = export_text(*e, &bare, NULL);
			assert_string_equal(whole, part);
			filtered__free(filtered);
		}
}

static int refused(const char *text, const struct profile *p, struct failure *failure)
{
	struct profile_filter filter = {};
	struct filtered *filtered = NULL;
	int err;

	*failure = (struct failure){};
	assert_int_equal(profile_filter__parse(&filter, text, failure), 0);
	err = profile_filter__apply(&filter, p, &filtered, failure);
	profile_filter__fini(&filter);
	filtered__free(filtered);
	return err;
}

TEST(a_clause_about_cpus_or_states_needs_samples_that_have_them)
{
	_cleanup_imported_ struct imported folded = import_good("main;f 3\n");
	_cleanup_imported_ struct imported script = import_good(
		"app 10/10 [001] 1.000000: 1 cpu-clock:\n\t1000 f (/bin/app)\n\n"
		"app 10/10 [002] 2.000000: 1 cpu-clock:\n\t1000 f (/bin/app)\n\n");
	struct failure failure;

	assert_int_equal(refused("--cpu=0", folded.p, &failure), -ENODATA);
	assert_string_equal(failure.what, "its samples have no CPU");
	assert_int_equal(refused("--state=lock", script.p, &failure), -ENODATA);
	assert_string_equal(failure.what, "it has no waits");
	assert_int_equal(refused("--state=lock,running", script.p, &failure), 0);
	for (const char *const *cpus =
		     (const char *const[]){"--cpu=1", "--cpu=0-9", "--cpu=7", NULL};
	     *cpus; cpus++) {
		struct filtered *part = apply(*cpus, script.p);
		uint64_t kept = filtered__profile(part)->sample_count;

		check_sums(*cpus, script.p, filtered__profile(part));
		assert_int_equal(kept, !strcmp(*cpus, "--cpu=1")  ? 1
				       : strcmp(*cpus, "--cpu=7") ? 2
								  : 0);
		filtered__free(part);
	}
}

/*
 * A billion steps, which are counted in the same way in each build: the others do as many as show that they read no wrong
 * memory. See TEST_REPEATED in test_compare.c.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(TEST_REPEATED)
#define TEXT_SIZE 4096
#define TEXTS	  10
#define IS_SLOW	  false
#else
#define TEXT_SIZE (1 << 20)
#define TEXTS	  1000
#define IS_SLOW	  true
#endif

TEST(a_slow_expression_is_ended)
{
	struct failure failure = {};
	struct pattern *pattern = pattern__new("((a?){30}b?){30}(a|aa|aaa)*$x", &failure);
	_cleanup_free_ char *text = malloc(TEXT_SIZE);
	int err = 0;

	assert_non_null(pattern);
	assert_non_null(text);
	memset(text, 'a', TEXT_SIZE);
	for (int i = 0; i < TEXTS && !err; i++)
		err = pattern__matches(pattern, text, TEXT_SIZE);
	assert_int_equal(err, IS_SLOW ? -E2BIG : 0);
	pattern__begin(pattern);
	assert_int_equal(pattern__matches(pattern, "b", 1), 0);
	pattern__free(pattern);
}

static uint64_t hash_of(const char *filter)
{
	_cleanup_fixture_ struct fixture f = {};
	struct filtered *filtered = apply(filter, build_profile(&f, named_profiles[0].name));
	uint64_t hash = profile__filter_hash(filtered__profile(filtered));

	filtered__free(filtered);
	return hash;
}

TEST(the_hash_of_a_filter_is_that_of_its_clauses)
{
	assert_true(hash_of("--focus=a --process=x") == hash_of("--process=x --focus=a --focus=a"));
	assert_true(hash_of("--focus=a") != hash_of("--focus=b"));
	/* FNV-1a of the text: the same in every run and on every machine */
	assert_true(hash_of("--cpu=0") == UINT64_C(0x4e22d0451cd2fd96));
}

TEST(a_part_of_a_part_has_the_books_of_both)
{
	for (size_t i = 0; i < NAMED_PROFILES; i++) {
		_cleanup_fixture_ struct fixture f = {};
		const struct profile *p = build_profile(&f, named_profiles[i].name);
		struct filtered *first = apply("--ignore=main", p);
		struct filtered *second = apply("--thread=*", filtered__profile(first));

		check_sums("both", p, filtered__profile(second));
		assert_int_equal(filtered__profile(second)->clause_count, 2);
		filtered__free(second);
		filtered__free(first);
	}
}

int main(void)
{
	static const struct text_table table = {"filter", verbs, NULL, NULL};

	setenv("TZ", "UTC", 1);
	return text_run(&table);
}
