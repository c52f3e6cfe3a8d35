/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Comparisons of profiles with a known truth: what differs is found, what does not raises no alarm, and code that has
 * moved is not called slower. Seeds are fixed, so a run is as the one before.
 */
#include "base/cleanup.h"
#include "compare/output_text.h"
#include "compare/rules.h"
#include "compare/tests.h"
#include "compare_support.h"
#include "filter/filter_apply.h"

/*
 * Seeds are fixed: how often something is found does not depend on the build. The sanitizers look at memory, and a bare
 * system at libraries (tests/distros.sh): a few pairs have it all.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(TEST_REPEATED)
#define PAIRS(n)  10
#define IS_JUDGED false
#else
#define PAIRS(n)  n
#define IS_JUDGED true
#endif

/* ---- no false alarms, and what was planted ----------------------------------------------------- */

static unsigned int alarms(unsigned int pairs, size_t files, const struct recording *r,
			   const struct compare_options *options)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < pairs; i++) {
		compare(&base, &base, files, r, options);
		count += has_alarm();
	}
	return count;
}

TEST(comparing_a_program_with_itself_raises_few_alarms)
{
	static const struct compare_options second = {.view = COMPARE_SECOND};
	const struct recording plain = {.samples = 6000}, phases = {.samples = 12000, .run = 40};
	const struct recording counts = {.samples = 60000, .untimed = true};
	const struct recording noisy = {.samples = 3000, .noise = 0.08};
	const struct recording timed = {.samples = 60000, .untimed = true, .has_cpu = true};
	const struct compare_options work = {.view = COMPARE_WORK, .work = {1, 1}};
	unsigned int found[6];

	random_state = 88172645463325252u;
	found[0] = alarms(PAIRS(200), 1, &plain, &sampling_only);
	found[1] = alarms(PAIRS(200), 1, &phases, &sampling_only);
	found[2] = alarms(PAIRS(1000), 1, &counts, &sampling_only);
	found[3] = alarms(PAIRS(100), 4, &noisy, &second);
	found[4] = alarms(PAIRS(100), 4, &noisy, &sampling_only);
	found[5] = alarms(PAIRS(1000), 1, &timed, &work);
	print_message(
		"alarms: %u of 200, %u of 200 in phases, %u of 1000 counted, %u of 1000 per unit of "
		"work, %u and %u of 100 with noise of runs\n",
		found[0], found[1], found[2], found[5], found[3], found[4]);
	assert_true(!IS_JUDGED || (found[0] <= 10 && found[1] <= 10 && found[2] <= 50 &&
				   found[3] <= 5 && found[4] <= 5 && found[5] <= 50));
}

/* Hundreds of small functions, as in a compiler: some have almost the same count in each of a few files. */
TEST(hundreds_of_small_functions_raise_few_alarms)
{
	static char paths[PARTS_MAX][24];
	static struct program program = {.count = PARTS_MAX};
	const struct recording small = {.samples = 4000, .untimed = true};
	unsigned int found[2] = {0};

	random_state = 2463534242u;
	for (size_t i = 0; i < PARTS_MAX; i++) {
		snprintf(paths[i], sizeof(paths[i]), "main;part%zu", i);
		program.parts[i] = (struct part){paths[i], 1};
	}
	for (unsigned int i = 0; i < PAIRS(200); i++) {
		compare(&program, &program, 3 + i % 2, &small, &sampling_only);
		found[i % 2] += has_alarm();
	}
	print_message("many functions: alarms with three files %u of 100, with four %u of 100\n",
		      found[0], found[1]);
	assert_true(!IS_JUDGED ||
		    found[0] + found[1] <= 2); /* without the least variance, that of samples: 5 */
}

/* Six files of OLD, one or two of NEW: the noise of runs is measured by the six. */
TEST(run_noise_is_measured_on_the_larger_side)
{
	const struct compare_options views[] = {{.view = COMPARE_SECOND, .run_noise = -1},
						{.view = COMPARE_SHARE, .run_noise = -1}};
	const struct recording noisy = {.samples = 2000, .noise = 0.08};
	const struct program slow = changed("main;run;parse;header", 4);
	unsigned int alarms_of[2] = {0}, found[2] = {0};
	double noise[2] = {0};

	random_state = 1804289383;
	for (int view = 0; view < 2; view++)
		for (unsigned int i = 0; i < PAIRS(100); i++) {
			const size_t files[] = {6, 1 + i % 2};

			compare_files(&base, &base, files, &noisy, &views[view]);
			assert_true(!t.result->noise_assumed && t.result->noise_files == 6);
			noise[view] += t.result->run_noise / 100;
			alarms_of[view] += has_alarm();
			compare_files(&base, &slow, files, &noisy, &views[view]);
			found[view] += row_of("header") != NULL;
		}
	print_message(
		"noise measured on one side: %.3f and %.3f, alarms %u and %u of 100, four times "
		"as slow found in %u and %u\n",
		noise[0], noise[1], alarms_of[0], alarms_of[1], found[0], found[1]);
	assert_true(!IS_JUDGED ||
		    (alarms_of[0] <= 5 && alarms_of[1] <= 5 && found[0] >= 80 && found[1] >= 90));
}

struct hits {
	unsigned int found;   /* slower, with its path */
	unsigned int covered; /* the interval has the truth */
	unsigned int ruled;   /* worse by a rule with its name */
	unsigned int single;  /* p of its own test is within the level: no method finds more */
};

/* Of a change of `header`. With CPU time, per unit of work: the samples of NEW are of less work. */
static struct hits hits(unsigned int pairs, double factor, const struct recording *r)
{
	struct compare_rule rule;
	const struct program slow = changed("main;run;parse;header", factor);
	const struct compare_options work = {.view = COMPARE_WORK, .work = {1, 1 / cost_of(&slow)}};
	struct hits h = {};

	for (unsigned int i = 0; i < pairs; i++) {
		const struct compare_test *test;
		const struct compare_row *row;
		uint32_t path[8];

		compare(&base, &slow, 1, r, r->has_cpu ? &work : &sampling_only);
		test = test_of("header");
		row = row_of("header");
		assert_int_equal(compare_rule__parse(&rule, "function header > 0.1%"), 0);
		h.ruled += compare_rule__apply(&rule, t.c, t.result).answer == COMPARE_WORSE;
		h.covered += test->relative_low <= factor - 1 && factor - 1 <= test->relative_high;
		h.single += test->p <= COMPARE_LEVEL;
		if (row && row->verdict == COMPARE_IS_SLOWER) {
			h.found++;
			assert_int_equal(comparison__path(t.c, row->node, path, 8), 4);
			assert_string_equal(comparison__name(t.c, path[2]), "parse");
		}
	}
	return h;
}

TEST(planted_changes_are_found_and_covered_by_intervals)
{
	/* The least that is found in 1,000: what the last run found, less three of its errors. */
	static const struct {
		const char *name;
		double factor;
		bool has_cpu;
		size_t samples;
		unsigned int found, ruled;
	} cases[] = {
		{"+10 %, shares", 1.10, false, 59940, 815, 915},
		{"+10 %, per unit of work", 1.10, true, 59940, 910, 940},
		{"+2 %, shares", 1.02, false, 1050000, 645, 795},
		{"+2 %, per unit of work", 1.02, true, 1050000, 815, 838},
		{"+20 %, shares", 1.20, false, 59940, 980, 980},
		{"nothing, shares", 1, false, 59940, 0, 0},
		{"nothing, per unit of work", 1, true, 59940, 0, 0},
	};

	random_state = 362436069362436069u;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct recording r = {
			.samples = cases[i].samples, .untimed = true, .has_cpu = cases[i].has_cpu};
		struct hits h = hits(PAIRS(1000), cases[i].factor, &r);

		print_message("%s of %zu samples: found in %u of 1000; a single test in %u; worse "
			      "by a rule with its name in %u; interval right in %u\n",
			      cases[i].name, cases[i].samples, h.found, h.single, h.ruled,
			      h.covered);
		if (!IS_JUDGED)
			continue;
		assert_true(h.found >= cases[i].found && h.ruled >= cases[i].ruled);
		assert_true(h.covered >= 930 && h.covered <= 970);
		if (cases[i].factor == 1)
			assert_true(h.found <= 20 && h.ruled <= 40);
	}
}

/* ---- what is no change ----------------------------------------------------------------------- */

/* Neither the function nor its caller is called slower or faster. */
static void assert_moved_only(const struct program *old, const struct program *new,
			      const char *function, const char *caller)
{
	const struct recording minute = {.samples = 59940, .untimed = true};
	unsigned int slower = 0;

	for (int i = 0; i < 100; i++) {
		const struct compare_row *row, *above;

		compare(old, new, 1, &minute, &sampling_only);
		row = row_of(function);
		above = row_of(caller);
		slower += (row && row->verdict != COMPARE_IS_MOVED) ||
			  (above && above->verdict != COMPARE_IS_MOVED);
	}
	print_message("%s: not moved in %u of 100\n", function, slower);
	assert_true(slower <= 2);
}

TEST(inlined_or_renamed_code_is_moved_and_not_slower)
{
	struct program inlined = base, renamed = base, suffixed = base, between = base;

	random_state = 521288629521288629u;
	part_of(&inlined, "main;run;parse;header")->path = "main;run;parse";
	part_of(&renamed, "main;run;parse;header")->path = "main;run;parse;header_v2";
	part_of(&suffixed, "main;run;read;copy")->path = "main;run;read.isra.0;copy.constprop.1";
	part_of(&between, "main;run;read;copy")->path = "main;run;read;read_all;copy";
	assert_moved_only(&base, &inlined, "header", "parse");
	assert_moved_only(&inlined, &base, "header", "parse");
	assert_moved_only(&base, &renamed, "header", "header_v2");
	assert_moved_only(&base, &suffixed, "copy", "read");
	assert_moved_only(&base, &between, "read_all", "read");
}

TEST(one_slow_function_makes_no_other_faster)
{
	const struct program slow = changed("main;run;parse;header", 10);
	const struct recording minute = {.samples = 59940, .untimed = true};

	random_state = 1234567;
	compare(&base, &slow, 1, &minute, &sampling_only);
	assert_int_equal(t.result->row_count, 1);
	assert_int_equal(t.result->rows[0].verdict, COMPARE_IS_SLOWER);
	assert_non_null(row_of("header"));
	assert_near(t.result->tests[0].relative, 0.45, 0.1);
	assert_near(test_of("header")->relative, 9, 0.1);
}

TEST(added_and_removed_functions_are_new_and_gone)
{
	struct program more = base;
	const struct recording minute = {.samples = 59940, .untimed = true};

	random_state = 7654321;
	more.parts[more.count++] = (struct part){"main;run;verify", 0.10};
	compare(&base, &more, 1, &minute, &sampling_only);
	assert_non_null(row_of("verify"));
	assert_int_equal(row_of("verify")->verdict, COMPARE_IS_NEW);
	compare(&more, &base, 1, &minute, &sampling_only);
	assert_non_null(row_of("verify"));
	assert_int_equal(row_of("verify")->verdict, COMPARE_IS_GONE);
}

/* Four functions that call each other all take longer: of the circle one is a row. */
TEST(a_cycle_of_slower_functions_is_one_row)
{
	static const struct program old = {
		{{"main;a;b;c;d", 0.1},
		 {"main;b;c;d;a", 0.1},
		 {"main;c;d;a;b", 0.1},
		 {"main;d;a;b;c", 0.1},
		 {"main;rest", 0.6}},
		5,
	};
	static const struct compare_options second = {.view = COMPARE_SECOND, .run_noise = 0};
	const struct recording minute = {.samples = 20000};
	struct program slow = old;

	random_state = 314159;
	for (int i = 0; i < 4; i++)
		slow.parts[i].cost *= 2;
	compare(&old, &slow, 1, &minute, &second);
	assert_int_equal(t.result->row_count, 1);
	assert_int_equal(t.result->rows[0].verdict, COMPARE_IS_SLOWER);
}

/* In one of five callers, and there alone, as much own code is gone as the function has more. It has not moved. */
TEST(a_function_slower_in_all_callers_is_not_moved)
{
	static const struct program old = {
		{{"main;p1;helper", 0.06},
		 {"main;p2;helper", 0.05},
		 {"main;p3;helper", 0.05},
		 {"main;p4;helper", 0.05},
		 {"main;p5;helper", 0.05},
		 {"main;p1", 0.14},
		 {"main;rest", 0.6}},
		7,
	};
	static const struct compare_options second = {.view = COMPARE_SECOND, .run_noise = 0};
	const struct recording minute = {.samples = 20000};
	struct program slow = old;

	random_state = 271828;
	for (int i = 0; i < 5; i++)
		slow.parts[i].cost *= 2;
	slow.parts[5].cost -= slow.parts[0].cost / 2;
	compare(&old, &slow, 1, &minute, &second);
	assert_non_null(row_of("helper"));
	assert_int_equal(row_of("helper")->verdict, COMPARE_IS_SLOWER);
}

static void assert_cannot_tell(void)
{
	struct compare_rule rule;

	assert_int_equal(compare_rule__parse(&rule, "total > 2%"), 0);
	assert_int_equal(compare_rule__apply(&rule, t.c, t.result).answer, COMPARE_CANNOT_TELL);
}

/* One in five stacks of one side is cut, or half of its samples are lost: no verdict. */
TEST(cut_stacks_or_lost_samples_prevent_a_verdict)
{
	static const struct {
		struct recording damaged;
		enum compare_doubt doubt;
	} cases[] = {{{.samples = 6000, .cut = 0.2}, COMPARE_DOUBT_CUT},
		     {{.samples = 3000, .lost = 0.5}, COMPARE_DOUBT_LOST}};
	const struct program slow = changed("main;run;parse;header", 10);
	const struct recording whole = {.samples = 6000};
	struct failure failure = {};

	random_state = 99;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		compare_two(&slow, &whole, &cases[i].damaged, &sampling_only, &failure);
		assert_non_null(t.result);
		assert_true(t.result->refused && t.result->refused_for == cases[i].doubt);
		for (size_t k = 0; k < t.result->row_count; k++)
			assert_int_equal(t.result->rows[k].verdict, COMPARE_IS_UNCLEAR);
		assert_cannot_tell();
	}
}

/* What a filter keeps of a profile. */
static void add_part(enum compare_side side, const char *text, const struct profile *p)
{
	_cleanup_(profile_filter__fini) struct profile_filter filter = {};
	struct filtered *part = NULL;
	struct failure failure = {};

	if (profile_filter__parse(&filter, text, &failure) ||
	    profile_filter__apply(&filter, p, &part, &failure) ||
	    comparison__add(t.c, side, "x", filtered__profile(part), &failure))
		fail_msg("%s: %s", text, failure.what);
	filtered__free(part);
}

static void finish_trial(enum compare_view view)
{
	const struct compare_options options = {.view = view};
	struct failure failure = {};

	if (comparison__finish(t.c, &options, &t.result, &failure))
		fail_msg("%s", failure.what);
}

TEST(losses_are_a_share_of_all_ticks_whatever_a_filter_keeps)
{
	static const struct recording run = {.samples = 6000, .lost = 0.02};

	random_state = 99;
	begin_trial();
	for (int side = 0; side < COMPARE_SIDES; side++) {
		_cleanup_fixture_ struct fixture f = {};

		add_part((enum compare_side)side, "--focus=header", record(&f, &base, &run));
	}
	finish_trial(COMPARE_SHARE);
	assert_false(t.result->refused);
	assert_true(fabs(t.result->side[COMPARE_NEW].doubt[COMPARE_DOUBT_LOST] - 0.02) < 0.001);
}

/* A COMMAND that has ended, and a child of it. `end`: of the child; 0: it goes on. */
static const struct profile *record_command(struct fixture *f, double end)
{
	static const char *const names[] = {"app", "child"};

	fixture__init(f, 100);
	profile_builder__meta(f->b, META_TARGET, "-- app");
	for (uint32_t i = 0; i < 2; i++) {
		struct thread_id thread;

		f->process = add_process(f, 100 + i, names[i], 0, i ? end : 60);
		thread = add_thread(f, f->process, 100 + i, true, names[i], 0);
		for (int k = 1; k < 50; k++)
			add_sample(f, thread, k, stack_of(f, "main;run"), 1, names[i]);
	}
	return finish(f);
}

TEST(a_command_whose_child_goes_on_is_no_whole_one_although_a_filter_drops_the_child)
{
	static const struct {
		const char *filter;
		double end;
		enum compare_view view;
	} cases[] = {{"--process=*", 0, COMPARE_SECOND},     {"--process=app", 0, COMPARE_SECOND},
		     {"--process=child", 0, COMPARE_SECOND}, {"--process=*", 70, COMPARE_RUN},
		     {"--process=app", 70, COMPARE_RUN},     {"--process=child", 70, COMPARE_RUN}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		begin_trial();
		for (int side = 0; side < COMPARE_SIDES; side++) {
			_cleanup_fixture_ struct fixture f = {};

			add_part((enum compare_side)side, cases[i].filter,
				 record_command(&f, cases[i].end));
		}
		finish_trial(COMPARE_AUTO);
		assert_int_equal(t.result->view, cases[i].view);
	}
}

/* A tick that was not run is another program's as often as those that were: a service that mostly waits has few of them. */
TEST(a_mostly_idle_program_has_few_lost_ticks)
{
	const struct program slow = changed("main;run;parse;header", 10);
	const struct recording whole = {.samples = 6000};
	const struct recording quiet = {.samples = 6000, .lost = 0.35, .others = 60};
	struct failure failure = {};

	random_state = 99;
	compare_two(&slow, &whole, &quiet, &sampling_only, &failure);
	assert_non_null(t.result);
	assert_false(t.result->refused);
	assert_true(t.result->side[COMPARE_NEW].doubt[COMPARE_DOUBT_LOST] < 0.01);
}

/* A neighbour of NEW takes its caches: all of it takes a tenth longer. One run a side cannot show that it is the program. */
TEST(a_uniformly_slower_single_run_is_inconclusive)
{
	static const struct compare_options views[] = {{.view = COMPARE_SECOND, .run_noise = -1},
						       {.view = COMPARE_SHARE, .run_noise = -1}};
	const struct recording one = {.samples = 6000};
	struct program loaded = base;
	struct failure failure = {};
	unsigned int alarms_of[2] = {0};

	random_state = 31415926535u;
	for (size_t i = 0; i < loaded.count; i++)
		loaded.parts[i].cost *= 1.1;
	for (int view = 0; view < 2; view++)
		for (unsigned int i = 0; i < 100; i++) {
			compare_two(&loaded, &one, &one, &views[view], &failure);
			assert_non_null(t.result);
			alarms_of[view] += has_alarm();
			assert_cannot_tell();
		}
	print_message("a neighbour's load on one side: verdicts in %u and %u of 100\n",
		      alarms_of[0], alarms_of[1]);
	assert_true(alarms_of[0] <= 5 && alarms_of[1] <= 5);
}

/* ---- rules ----------------------------------------------------------------------------------- */

TEST(only_well_formed_rules_are_parsed)
{
	static const char *const bad[] = {
		"",	      "total",		"total > ",	"total > 2",
		"total < 2%", "total > -1%",	"totals > 1%",	"function > 1%",
		"function a", "functiona > 1%", "total > 2% x", "total > nan%"};
	struct compare_rule rule;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(compare_rule__parse(&rule, bad[i]), -EINVAL);
	assert_int_equal(compare_rule__parse(&rule, " total>2.5 % "), 0);
	assert_true(rule.is_total && rule.tolerance == 0.025);
	assert_int_equal(compare_rule__parse(&rule, "function std::pair<int, a> > 5%"), 0);
	assert_string_equal(rule.pattern, "std::pair<int, a>");
	assert_true(!rule.is_total && rule.tolerance == 0.05);
}

static enum compare_answer answer(const char *text)
{
	struct compare_rule rule;

	assert_int_equal(compare_rule__parse(&rule, text), 0);
	return compare_rule__apply(&rule, t.c, t.result).answer;
}

TEST(a_rule_near_the_measured_change_cannot_be_decided)
{
	const struct program slow = changed("main;run;parse;header", 1.5);
	const struct recording minute = {.samples = 59940, .untimed = true};
	struct compare_ruling ruling;
	struct compare_rule rule;

	random_state = 4242;
	compare(&base, &slow, 1, &minute, &sampling_only);
	assert_int_equal(answer("function header > 20%"), COMPARE_WORSE);
	assert_int_equal(answer("function head* > 20%"), COMPARE_WORSE);
	assert_int_equal(answer("function header > 80%"), COMPARE_NOT_WORSE);
	assert_int_equal(answer("function body > 10%"), COMPARE_NOT_WORSE);
	assert_int_equal(answer("function nothing > 10%"), COMPARE_CANNOT_TELL);
	assert_int_equal(answer("function header > 50%"), COMPARE_CANNOT_TELL);
	assert_int_equal(answer("total > 1%"), COMPARE_WORSE);
	assert_int_equal(answer("total > 5%"), COMPARE_NOT_WORSE);
	assert_int_equal(compare_rule__parse(&rule, "function body > 2%"), 0);
	ruling = compare_rule__apply(&rule, t.c, t.result);
	assert_int_equal(ruling.answer, COMPARE_CANNOT_TELL);
	assert_true(ruling.samples_needed > 59940 && ruling.runs_needed >= 3);
}

/* ---- what cannot be compared ----------------------------------------------------------------- */

static void assert_refused(const char *path_new, const struct compare_options *options,
			   const char *reason)
{
	const struct recording few = {.samples = 500, .untimed = true};
	struct program other = {{{path_new, 1}}, 1};
	struct comparison *c = comparison__new();
	const struct compare_result *result;
	struct failure failure = {};

	for (int side = 0; side < COMPARE_SIDES; side++) {
		_cleanup_fixture_ struct fixture f = {};
		const struct profile *p = record(&f, side && path_new ? &other : &base, &few);

		comparison__add(c, (enum compare_side)side, "x", p, &failure);
	}
	assert_true(comparison__finish(c, options, &result, &failure) < 0);
	if (!strstr(failure.what, reason))
		fail_msg("%s", failure.what);
	comparison__free(c);
}

TEST(incomparable_profiles_are_refused_with_a_reason)
{
	static const struct compare_options second = {.view = COMPARE_SECOND};

	random_state = 5;
	assert_refused("other;program", &sampling_only, "no function in common");
	assert_refused(NULL, &second, "no CPU time");
}

/* Counts of another event are another quantity; clocks of a CPU tick alike. */
TEST(different_events_are_refused_unless_both_are_clocks)
{
	const struct recording clock = {.samples = 1000, .event = "cpu-clock"};
	const struct recording task = {.samples = 1000, .event = "task-clock"};
	const struct recording cycles = {.samples = 1000, .event = "cycles"};
	struct failure failure = {};

	random_state = 6;
	compare_two(&base, &clock, &task, &sampling_only, &failure);
	assert_non_null(t.result);
	compare_two(&base, &clock, &cycles, &sampling_only, &failure);
	assert_null(t.result);
	if (!strstr(failure.what, "of the event cpu-clock") || !strstr(failure.what, "of cycles"))
		fail_msg("%s", failure.what);
}

/* Whether counts are in proportion to CPU time is chance: the same tool may write both. */
TEST(files_of_cpu_time_and_of_ticks_are_compared_as_cpu_time)
{
	const struct recording ticks = {.samples = 20000, .untimed = true, .has_cpu = true};
	const struct recording time = {
		.samples = 20000, .untimed = true, .has_cpu = true, .counts_cpu = true};
	const struct recording counts = {.samples = 20000, .untimed = true};
	const struct recording *const pairs[][COMPARE_SIDES] = {
		{&ticks, &ticks}, {&ticks, &time}, {&time, &ticks}, {&time, &time}};
	const struct program slower = changed("main;run;parse;body", 1.2);
	struct failure failure = {};
	struct compare_test first = {};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		const struct compare_test *body;

		random_state = 11;
		compare_two(&slower, pairs[i][0], pairs[i][1], &sampling_only, &failure);
		assert_non_null(t.result);
		body = test_of("body");
		first = i ? first : *body;
		for (int side = 0; side < COMPARE_SIDES; side++) {
			assert_near(body->side[side].value, first.side[side].value, 1e-9);
			assert_near(body->side[side].variance, first.side[side].variance, 1e-5);
			assert_int_equal(t.result->side[side].samples, 20000);
			assert_int_equal(t.result->side[side].ticks,
					 i ? t.result->side[side].cpu_ns : 20000);
		}
		assert_near(body->p, first.p, 1e-2);
		assert_true(!i == !t.result->event);
	}
	compare_two(&base, &time, &counts, &sampling_only, &failure);
	assert_null(t.result);
	if (!strstr(failure.what, "counts CPU time, and x has none"))
		fail_msg("%s", failure.what);
}

/* A tenth of the rate: the same values, with larger errors. */
TEST(a_lower_sampling_rate_gives_the_same_values)
{
	static const struct compare_options run = {.view = COMPARE_RUN};
	const struct recording often = {.samples = 6000}, rare = {.samples = 600, .every = 10};
	struct failure failure = {};
	unsigned int found = 0;

	random_state = 2718281828u;
	for (unsigned int i = 0; i < 200; i++) {
		compare_two(&base, &often, &rare, &run, &failure);
		assert_non_null(t.result);
		found += has_alarm();
		assert_near(t.result->tests[0].side[COMPARE_NEW].value, 6e9, 1e-6);
		assert_near(test_of("body")->side[COMPARE_NEW].value, 1.2e9, 0.5);
	}
	print_message("999 Hz against 100 Hz: alarms %u of 200\n", found);
	assert_true(found <= 10);
}

TEST(different_kernels_are_noted_in_the_output)
{
	const struct recording old = {.samples = 1000, .kernel = "6.1.0"};
	const struct recording new = {.samples = 1000, .kernel = "6.12.0"};
	struct failure failure = {};
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	random_state = 8;
	compare_two(&base, &old, &new, &sampling_only, &failure);
	assert_non_null(t.result);
	assert_int_equal(
		compare_write_text(
			&(struct compare_output){.comparison = t.c, .result = t.result, .top = 5},
			out),
		0);
	fclose(out);
	assert_non_null(strstr(text, "note: the kernels differ"));
}

/* Both sides as one profile have all samples and all CPU time of each file; a side's values add up to its whole. */
TEST(a_profile_of_both_sides_has_all_their_samples)
{
	const struct recording one = {.samples = 3000};

	random_state = 7;
	for (size_t files = 1; files <= 3; files += 2) {
		struct profile_builder *b = profile_builder__new();
		const struct profile *p;
		double sum[COMPARE_SIDES] = {};

		compare(&base, &base, files, &one, &sampling_only);
		assert_int_equal(comparison__build_profile(t.c, true, b), 0);
		assert_int_equal(profile_builder__finish(b, &p, NULL, 0), 0);
		assert_int_equal(p->thread_count, 2 * files + 1);
		for (size_t i = 0; i < 2 * files; i++) {
			const struct compare_file *f = comparison__file(t.c, i);
			const struct profile_samples *s = &p->threads[i + 1].samples[SAMPLE_CPU];
			uint64_t cpu = 0;

			for (size_t j = 0; j < s->count; j++)
				cpu += s->weight[j];
			assert_int_equal(s->tick_sum, f->samples);
			assert_int_equal(cpu, f->cpu_ns);
			assert_int_equal(p->threads[i + 1].process.v, f->side + 1);
			sum[f->side] += comparison__tick_value(t.c, i) * (double)f->samples;
		}
		for (int i = 0; i < COMPARE_SIDES; i++)
			assert_near(sum[i], t.result->tests[0].side[i].value, 1e-9);
		profile_builder__free(b);
	}
}

EACH_TEST_WITH(NULL, free_trial);
