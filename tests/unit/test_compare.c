/* SPDX-License-Identifier: BSD-2-Clause */
/* time-limit: 300 */
/*
 * Comparisons of profiles with a known truth: what differs is found, what does not raises no alarm, and code that has
 * moved is not called slower. Seeds are fixed, so a run is as the one before.
 */
#include "base/hashmap.h"
#include "compare/compare.h"
#include "compare/merged.h"
#include "compare/statistics.h"

#include "export_support.h"

#include <errno.h>
#include <math.h>

#define PARTS_MAX 400

/* ---- names ----------------------------------------------------------------------------------- */

static void test_names(void **state)
{
	static const char *const same[][2] = {
		{"parse", "parse"},
		{"parse.isra.0", "parse"},
		{"parse.constprop.0.isra.1", "parse"},
		{"parse.part.3.cold", "parse"},
		{"parse.cold", "parse"},
		{"parse.llvm.1234567890", "parse"},
		{"parse.lto_priv.0", "parse"},
		{"parse(int) [clone .isra.0]", "parse(int)"},
		{"a::b::h0123456789abcdef", "a::b"},
		{"a::{closure#3}::h0123456789abcdef", "a::{closure#}"},
		{"run()::{lambda(int)#2}::operator()(int) const",
		 "run()::{lambda(int)#}::operator()(int) const"},
		{"run()::$_0::operator()", "run()::$_::operator()"},
		{"main.run.func1", "main.run.func"},
		{"main.run.func1.2", "main.run.func"},
		{"a.B$$Lambda$14/0x00007f1234.run", "a.B$$Lambda$.run"},
		{"a.B$$Lambda/0x00007f1234.run", "a.B$$Lambda.run"},
		{"java.lang.invoke.LambdaForm$MH/0x7f12.invoke",
		 "java.lang.invoke.LambdaForm$MH.invoke"},
		{"jdk.GeneratedMethodAccessor12.invoke", "jdk.GeneratedMethodAccessor.invoke"},
		{"bpf_prog_0123456789abcdef_filter", "bpf_prog_filter"},
		{"[libfoo.so.1.2.3]", "[libfoo.so]"},
		{"[libfoo-1.2.so]", "[libfoo.so]"},
		{"entry+0x1f", "entry"},
		{"0x7f1234", "[JIT code without a name]"},
		{"", "[unknown]"},
		/* what looks like it and is not */
		{".cold", ".cold"},
		{"foo.1", "foo.1"},
		{"main.run", "main.run"},
		{"a.b.isra", "a.b"},
		{"operator+", "operator+"},
		{"a::hash", "a::hash"},
		{"sha256", "sha256"},
		{"main.function12", "main.function12"},
		{"run.func1x", "run.func1x"},
		{"/0x", "/0x"},
		{"#", "#"},
	};
	char name[256], again[256], small[8];

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
		stable_name(name, sizeof(name), same[i][0]);
		assert_string_equal(name, same[i][1]);
		stable_name(again, sizeof(again), name);
		assert_string_equal(again, name);
	}
	stable_name(small, sizeof(small), "parse_the_header.cold");
	assert_string_equal(small, "parse_t");
}

/* No bytes make it write outside of its room; the room is exact, so a sanitizer sees it. */
static void test_names_of_any_bytes(void **state)
{
	static const char alphabet[] = ".cold.isra0[]so-+0x/h:#$_lambda func1 bpf_prog_";
	unsigned int seed = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		size_t size = (size_t)rand_r(&seed) % 40;
		char *name = malloc(size + 1), *out = malloc(size + 26);

		for (size_t j = 0; j < size; j++)
			name[j] = alphabet[(size_t)rand_r(&seed) % (sizeof(alphabet) - 1)];
		name[size] = '\0';
		stable_name(out, size + 26, name);
		assert_true(*out && strlen(out) <= size + 25);
		free(name);
		free(out);
	}
}

/* ---- distributions --------------------------------------------------------------------------- */

static void assert_near(double value, double wanted, double relative)
{
	if (fabs(value - wanted) > relative * fabs(wanted))
		fail_msg("%.12g instead of %.12g", value, wanted);
}

/* Values of scipy.stats. */
static void test_student(void **state)
{
	(void)state;
	assert_near(student_p(2, INFINITY), 0.04550026389635842, 1e-12);
	assert_near(student_p(2.776445105197793, 4), 0.05, 1e-9);
	assert_near(student_p(1, 1), 0.5, 1e-12);
	assert_near(student_p(-12, 3.7), 0.000426787399381, 1e-9);
	assert_near(student_t(0.05, INFINITY), 1.959963984540054, 1e-9);
	assert_near(student_t(0.05, 4), 2.7764451051977987, 1e-9);
	assert_near(student_t(0.001, 2), 31.599054576443616, 1e-9);
	assert_true(isinf(student_t(0, 3)));
	assert_near(student_p(0, 5), 1, 1e-12);
	assert_true(p_of((struct estimate){0, 0, INFINITY}) == 1);
	assert_true(p_of((struct estimate){1, 0, INFINITY}) == 0);
}

static void test_welch(void **state)
{
	struct estimate d = difference_of((struct estimate){10, 4, 3}, (struct estimate){12, 1, 5});

	(void)state;
	assert_true(d.value == 2 && d.variance == 5);
	assert_near(d.freedom, 25 / (16.0 / 3 + 1.0 / 5), 1e-12);
}

/* With equal weights, those of R's p.adjust(method = "BH"). */
static void test_false_discoveries(void **state)
{
	static const double p[] = {0.01, 0.04, 0.03, 0.5, 0.005};
	static const double wanted[] = {0.025, 0.05, 0.05, 0.5, 0.025};
	static const double equal[] = {3, 3, 3, 3, 3}, unequal[] = {1, 1, 1, 1, 6};
	double q[5];

	(void)state;
	assert_int_equal(false_discovery_rates(p, equal, q, 5), 0);
	for (int i = 0; i < 5; i++)
		assert_near(q[i], wanted[i], 1e-12);
	assert_int_equal(false_discovery_rates(p, unequal, q, 5), 0);
	assert_near(q[4], 0.005 * 10 / 6, 1e-12);
	assert_int_equal(false_discovery_rates(p, equal, q, 0), 0);
}

/* ---- made-up programs ------------------------------------------------------------------------ */

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
	bool has_cpu;	    /* a tick is a millisecond of CPU time */
	unsigned int every; /* ms between two samples; 0 counts as 1 */
	double lost;	    /* share of the ticks that are lost */
	const char *event, *kernel;
};

static uint64_t random_state;

static double uniform(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return ((double)(random_state >> 11) + 0.5) / 9007199254740992.0;
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

struct trial {
	struct comparison *c;
	const struct compare_result *result;
};

static const struct compare_options sampling_only = {.view = COMPARE_SHARE, .run_noise = 0};

static struct trial compare_files(const struct program *old, const struct program *new,
				  const size_t files[COMPARE_SIDES], const struct recording *r,
				  const struct compare_options *options)
{
	struct trial t = {.c = comparison__new()};
	struct failure failure = {};

	assert_non_null(t.c);
	for (int side = 0; side < COMPARE_SIDES; side++)
		for (size_t i = 0; i < files[side]; i++) {
			struct fixture f;
			const struct profile *p = record(&f, side ? new : old, r);

			assert_int_equal(comparison__add(t.c, (enum compare_side)side, "made-up", p,
							 NULL, &failure),
					 0);
			profile_builder__free(f.b);
		}
	if (comparison__finish(t.c, options, &t.result, &failure))
		fail_msg("%s", failure.what);
	return t;
}

/* One file a side. If it fails, there is no result. */
static struct trial compare_two(const struct program *new, const struct recording *old_run,
				const struct recording *new_run,
				const struct compare_options *options, struct failure *failure)
{
	struct trial t = {.c = comparison__new()};

	for (int side = 0; side < COMPARE_SIDES; side++) {
		struct fixture f;
		const struct profile *p = record(&f, side ? new : &base, side ? new_run : old_run);

		assert_int_equal(
			comparison__add(t.c, (enum compare_side)side, "x", p, NULL, failure), 0);
		profile_builder__free(f.b);
	}
	if (comparison__finish(t.c, options, &t.result, failure))
		t.result = NULL;
	return t;
}

static struct trial compare(const struct program *old, const struct program *new, size_t files,
			    const struct recording *r, const struct compare_options *options)
{
	const size_t both[COMPARE_SIDES] = {files, files};

	return compare_files(old, new, both, r, options);
}

static const struct compare_test *test_of(const struct trial *t, const char *function)
{
	for (size_t i = 0; i < t->result->test_count; i++)
		if (!t->result->tests[i].is_self &&
		    !strcmp(comparison__name(t->c, t->result->tests[i].function), function))
			return &t->result->tests[i];
	fail_msg("%s is not tested", function);
	return NULL;
}

static const struct compare_row *row_of(const struct trial *t, const char *function)
{
	for (size_t i = 0; i < t->result->row_count; i++) {
		const struct compare_row *row = &t->result->rows[i];

		if (!strcmp(comparison__name(t->c, t->result->tests[row->test].function), function))
			return row;
	}
	return NULL;
}

static bool has_alarm(const struct trial *t)
{
	return t->result->row_count || t->result->tests[0].found;
}

static unsigned int alarms(unsigned int pairs, size_t files, const struct recording *r,
			   const struct compare_options *options)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < pairs; i++) {
		struct trial t = compare(&base, &base, files, r, options);

		count += has_alarm(&t);
		comparison__free(t.c);
	}
	return count;
}

/* The same program twice: an alarm in at most one case of twenty. */
static void test_no_false_alarms(void **state)
{
	static const struct compare_options second = {.view = COMPARE_SECOND};
	const struct recording plain = {.samples = 6000}, phases = {.samples = 12000, .run = 40};
	const struct recording counts = {.samples = 60000, .untimed = true};
	const struct recording noisy = {.samples = 3000, .noise = 0.08};
	const struct recording timed = {.samples = 60000, .untimed = true, .has_cpu = true};
	const struct compare_options work = {.view = COMPARE_WORK, .work = {1, 1}};
	unsigned int found[6];

	(void)state;
	random_state = 88172645463325252u;
	found[0] = alarms(200, 1, &plain, &sampling_only);
	found[1] = alarms(200, 1, &phases, &sampling_only);
	found[2] = alarms(1000, 1, &counts, &sampling_only);
	found[3] = alarms(100, 4, &noisy, &second);
	found[4] = alarms(100, 4, &noisy, &sampling_only);
	found[5] = alarms(1000, 1, &timed, &work);
	print_message(
		"alarms: %u of 200, %u of 200 in phases, %u of 1000 counted, %u of 1000 per unit of "
		"work, %u and %u of 100 with noise of runs\n",
		found[0], found[1], found[2], found[5], found[3], found[4]);
	assert_true(found[0] <= 10 && found[1] <= 10 && found[2] <= 50 && found[3] <= 5 &&
		    found[4] <= 5 && found[5] <= 50);
}

/* Hundreds of small functions, as in a compiler: some have almost the same count in each of a few files. */
static void test_no_false_alarms_of_many(void **state)
{
	static char paths[PARTS_MAX][24];
	static struct program program = {.count = PARTS_MAX};
	const struct recording small = {.samples = 4000, .untimed = true};
	unsigned int found[2] = {0};

	(void)state;
	random_state = 2463534242u;
	for (size_t i = 0; i < PARTS_MAX; i++) {
		snprintf(paths[i], sizeof(paths[i]), "main;part%zu", i);
		program.parts[i] = (struct part){paths[i], 1};
	}
	for (unsigned int i = 0; i < 200; i++) {
		struct trial t = compare(&program, &program, 3 + i % 2, &small, &sampling_only);

		found[i % 2] += has_alarm(&t);
		comparison__free(t.c);
	}
	print_message("many functions: alarms with three files %u of 100, with four %u of 100\n",
		      found[0], found[1]);
	assert_true(found[0] + found[1] <= 2); /* without the least variance, that of samples: 5 */
}

/* Six files of OLD, one or two of NEW: the noise of runs is measured by the six. */
static void test_noise_of_one_side(void **state)
{
	const struct compare_options views[] = {{.view = COMPARE_SECOND, .run_noise = -1},
						{.view = COMPARE_SHARE, .run_noise = -1}};
	const struct recording noisy = {.samples = 2000, .noise = 0.08};
	const struct program slow = changed("main;run;parse;header", 4);
	unsigned int alarms_of[2] = {0}, found[2] = {0};
	double noise[2] = {0};

	(void)state;
	random_state = 1804289383;
	for (int view = 0; view < 2; view++)
		for (unsigned int i = 0; i < 100; i++) {
			const size_t files[] = {6, 1 + i % 2};
			struct trial t = compare_files(&base, &base, files, &noisy, &views[view]);

			assert_true(!t.result->noise_assumed && t.result->noise_files == 6);
			noise[view] += t.result->run_noise / 100;
			alarms_of[view] += has_alarm(&t);
			comparison__free(t.c);
			t = compare_files(&base, &slow, files, &noisy, &views[view]);
			found[view] += row_of(&t, "header") != NULL;
			comparison__free(t.c);
		}
	print_message(
		"noise measured on one side: %.3f and %.3f, alarms %u and %u of 100, four times "
		"as slow found in %u and %u\n",
		noise[0], noise[1], alarms_of[0], alarms_of[1], found[0], found[1]);
	assert_true(alarms_of[0] <= 5 && alarms_of[1] <= 5 && found[0] >= 80 && found[1] >= 90);
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
		struct trial t = compare(&base, &slow, 1, r, r->has_cpu ? &work : &sampling_only);
		const struct compare_test *test = test_of(&t, "header");
		const struct compare_row *row = row_of(&t, "header");
		uint32_t path[8];

		assert_int_equal(compare_rule__parse(&rule, "function header > 0.1%"), 0);
		h.ruled += compare_rule__apply(&rule, t.c, t.result).answer == COMPARE_WORSE;
		h.covered += test->relative_low <= factor - 1 && factor - 1 <= test->relative_high;
		h.single += test->p <= COMPARE_LEVEL;
		if (row && row->verdict == COMPARE_IS_SLOWER) {
			h.found++;
			assert_int_equal(comparison__path(t.c, row->node, path, 8), 4);
			assert_string_equal(comparison__name(t.c, path[2]), "parse");
		}
		comparison__free(t.c);
	}
	return h;
}

static void test_planted_changes(void **state)
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

	(void)state;
	random_state = 362436069362436069u;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct recording r = {
			.samples = cases[i].samples, .untimed = true, .has_cpu = cases[i].has_cpu};
		struct hits h = hits(1000, cases[i].factor, &r);

		print_message("%s of %zu samples: found in %u of 1000; a single test in %u; worse "
			      "by a rule with its name in %u; interval right in %u\n",
			      cases[i].name, cases[i].samples, h.found, h.single, h.ruled,
			      h.covered);
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
		struct trial t = compare(old, new, 1, &minute, &sampling_only);

		const struct compare_row *row = row_of(&t, function), *above = row_of(&t, caller);

		slower += (row && row->verdict != COMPARE_IS_MOVED) ||
			  (above && above->verdict != COMPARE_IS_MOVED);
		comparison__free(t.c);
	}
	print_message("%s: not moved in %u of 100\n", function, slower);
	assert_true(slower <= 2);
}

static void test_moved(void **state)
{
	struct program inlined = base, renamed = base, suffixed = base, between = base;

	(void)state;
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

/* A function that takes ten times as long makes all shares fall, and nothing faster. */
static void test_one_large_change(void **state)
{
	const struct program slow = changed("main;run;parse;header", 10);
	const struct recording minute = {.samples = 59940, .untimed = true};
	struct trial t;

	(void)state;
	random_state = 1234567;
	t = compare(&base, &slow, 1, &minute, &sampling_only);
	assert_int_equal(t.result->row_count, 1);
	assert_int_equal(t.result->rows[0].verdict, COMPARE_IS_SLOWER);
	assert_non_null(row_of(&t, "header"));
	assert_near(t.result->tests[0].relative, 0.45, 0.1);
	assert_near(test_of(&t, "header")->relative, 9, 0.1);
	comparison__free(t.c);
}

static void test_new_and_gone(void **state)
{
	struct program more = base;
	const struct recording minute = {.samples = 59940, .untimed = true};
	struct trial t;

	(void)state;
	random_state = 7654321;
	more.parts[more.count++] = (struct part){"main;run;verify", 0.10};
	t = compare(&base, &more, 1, &minute, &sampling_only);
	assert_non_null(row_of(&t, "verify"));
	assert_int_equal(row_of(&t, "verify")->verdict, COMPARE_IS_NEW);
	comparison__free(t.c);
	t = compare(&more, &base, 1, &minute, &sampling_only);
	assert_int_equal(row_of(&t, "verify")->verdict, COMPARE_IS_GONE);
	comparison__free(t.c);
}

/* Four functions that call each other all take longer: of the circle one is a row. */
static void test_circle_of_calls(void **state)
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
	struct trial t;

	(void)state;
	random_state = 314159;
	for (int i = 0; i < 4; i++)
		slow.parts[i].cost *= 2;
	t = compare(&old, &slow, 1, &minute, &second);
	assert_int_equal(t.result->row_count, 1);
	assert_int_equal(t.result->rows[0].verdict, COMPARE_IS_SLOWER);
	comparison__free(t.c);
}

/* In one of five callers, and there alone, as much own code is gone as the function has more. It has not moved. */
static void test_moved_in_one_place(void **state)
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
	struct trial t;

	(void)state;
	random_state = 271828;
	for (int i = 0; i < 5; i++)
		slow.parts[i].cost *= 2;
	slow.parts[5].cost -= slow.parts[0].cost / 2;
	t = compare(&old, &slow, 1, &minute, &second);
	assert_non_null(row_of(&t, "helper"));
	assert_int_equal(row_of(&t, "helper")->verdict, COMPARE_IS_SLOWER);
	comparison__free(t.c);
}

static void assert_cannot_tell(const struct trial *t)
{
	struct compare_rule rule;

	assert_int_equal(compare_rule__parse(&rule, "total > 2%"), 0);
	assert_int_equal(compare_rule__apply(&rule, t->c, t->result).answer, COMPARE_CANNOT_TELL);
}

/* One in five stacks of one side is cut, or half of its samples are lost: no verdict. */
static void test_doubt(void **state)
{
	static const struct {
		struct recording damaged;
		enum compare_doubt doubt;
	} cases[] = {{{.samples = 6000, .cut = 0.2}, COMPARE_DOUBT_CUT},
		     {{.samples = 3000, .lost = 0.5}, COMPARE_DOUBT_LOST}};
	const struct program slow = changed("main;run;parse;header", 10);
	const struct recording whole = {.samples = 6000};
	struct failure failure = {};

	(void)state;
	random_state = 99;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct trial t = compare_two(&slow, &whole, &cases[i].damaged, &sampling_only,
					     &failure);

		assert_non_null(t.result);
		assert_true(t.result->refused && t.result->refused_for == cases[i].doubt);
		for (size_t k = 0; k < t.result->row_count; k++)
			assert_int_equal(t.result->rows[k].verdict, COMPARE_IS_UNCLEAR);
		assert_cannot_tell(&t);
		comparison__free(t.c);
	}
}

/* A neighbour of NEW takes its caches: all of it takes a tenth longer. One run a side cannot show that it is the program. */
static void test_neighbour(void **state)
{
	static const struct compare_options views[] = {{.view = COMPARE_SECOND, .run_noise = -1},
						       {.view = COMPARE_SHARE, .run_noise = -1}};
	const struct recording one = {.samples = 6000};
	struct program loaded = base;
	struct failure failure = {};
	unsigned int alarms_of[2] = {0};

	(void)state;
	random_state = 31415926535u;
	for (size_t i = 0; i < loaded.count; i++)
		loaded.parts[i].cost *= 1.1;
	for (int view = 0; view < 2; view++)
		for (unsigned int i = 0; i < 100; i++) {
			struct trial t = compare_two(&loaded, &one, &one, &views[view], &failure);

			assert_non_null(t.result);
			alarms_of[view] += has_alarm(&t);
			assert_cannot_tell(&t);
			comparison__free(t.c);
		}
	print_message("a neighbour's load on one side: verdicts in %u and %u of 100\n",
		      alarms_of[0], alarms_of[1]);
	assert_true(alarms_of[0] <= 5 && alarms_of[1] <= 5);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void test_rule_texts(void **state)
{
	static const char *const bad[] = {
		"",	      "total",		"total > ",	"total > 2",
		"total < 2%", "total > -1%",	"totals > 1%",	"function > 1%",
		"function a", "functiona > 1%", "total > 2% x", "total > nan%"};
	struct compare_rule rule;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(compare_rule__parse(&rule, bad[i]), -EINVAL);
	assert_int_equal(compare_rule__parse(&rule, " total>2.5 % "), 0);
	assert_true(rule.is_total && rule.tolerance == 0.025);
	assert_int_equal(compare_rule__parse(&rule, "function std::pair<int, a> > 5%"), 0);
	assert_string_equal(rule.pattern, "std::pair<int, a>");
	assert_true(!rule.is_total && rule.tolerance == 0.05);
}

static enum compare_answer answer(const struct trial *t, const char *text)
{
	struct compare_rule rule;

	assert_int_equal(compare_rule__parse(&rule, text), 0);
	return compare_rule__apply(&rule, t->c, t->result).answer;
}

static void test_rules(void **state)
{
	const struct program slow = changed("main;run;parse;header", 1.5);
	const struct recording minute = {.samples = 59940, .untimed = true};
	struct compare_ruling ruling;
	struct compare_rule rule;
	struct trial t;

	(void)state;
	random_state = 4242;
	t = compare(&base, &slow, 1, &minute, &sampling_only);
	assert_int_equal(answer(&t, "function header > 20%"), COMPARE_WORSE);
	assert_int_equal(answer(&t, "function head* > 20%"), COMPARE_WORSE);
	assert_int_equal(answer(&t, "function header > 80%"), COMPARE_NOT_WORSE);
	assert_int_equal(answer(&t, "function body > 10%"), COMPARE_NOT_WORSE);
	assert_int_equal(answer(&t, "function nothing > 10%"), COMPARE_CANNOT_TELL);
	assert_int_equal(answer(&t, "function header > 50%"), COMPARE_CANNOT_TELL);
	assert_int_equal(answer(&t, "total > 1%"), COMPARE_WORSE);
	assert_int_equal(answer(&t, "total > 5%"), COMPARE_NOT_WORSE);
	assert_int_equal(compare_rule__parse(&rule, "function body > 2%"), 0);
	ruling = compare_rule__apply(&rule, t.c, t.result);
	assert_int_equal(ruling.answer, COMPARE_CANNOT_TELL);
	assert_true(ruling.samples_needed > 59940 && ruling.runs_needed >= 3);
	comparison__free(t.c);
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
		struct fixture f;
		const struct profile *p = record(&f, side && path_new ? &other : &base, &few);

		comparison__add(c, (enum compare_side)side, "x", p, NULL, &failure);
		profile_builder__free(f.b);
	}
	assert_true(comparison__finish(c, options, &result, &failure) < 0);
	if (!strstr(failure.what, reason))
		fail_msg("%s", failure.what);
	comparison__free(c);
}

static void test_refused(void **state)
{
	static const struct compare_options second = {.view = COMPARE_SECOND};

	(void)state;
	random_state = 5;
	assert_refused("other;program", &sampling_only, "no function in common");
	assert_refused(NULL, &second, "no CPU time");
}

/* Counts of another event are another quantity; clocks of a CPU tick alike. */
static void test_other_events(void **state)
{
	const struct recording clock = {.samples = 1000, .event = "cpu-clock"};
	const struct recording task = {.samples = 1000, .event = "task-clock"};
	const struct recording cycles = {.samples = 1000, .event = "cycles"};
	struct failure failure = {};
	struct trial t;

	(void)state;
	random_state = 6;
	t = compare_two(&base, &clock, &task, &sampling_only, &failure);
	assert_non_null(t.result);
	comparison__free(t.c);
	t = compare_two(&base, &clock, &cycles, &sampling_only, &failure);
	assert_null(t.result);
	if (!strstr(failure.what, "of the event cpu-clock") || !strstr(failure.what, "of cycles"))
		fail_msg("%s", failure.what);
	comparison__free(t.c);
}

/* A tenth of the rate: the same values, with larger errors. */
static void test_other_rates(void **state)
{
	static const struct compare_options run = {.view = COMPARE_RUN};
	const struct recording often = {.samples = 6000}, rare = {.samples = 600, .every = 10};
	struct failure failure = {};
	unsigned int found = 0;

	(void)state;
	random_state = 2718281828u;
	for (unsigned int i = 0; i < 200; i++) {
		struct trial t = compare_two(&base, &often, &rare, &run, &failure);

		assert_non_null(t.result);
		found += has_alarm(&t);
		assert_near(t.result->tests[0].side[COMPARE_NEW].value, 6e9, 1e-6);
		assert_near(test_of(&t, "body")->side[COMPARE_NEW].value, 1.2e9, 0.5);
		comparison__free(t.c);
	}
	print_message("999 Hz against 100 Hz: alarms %u of 200\n", found);
	assert_true(found <= 10);
}

/* Another kernel, and a recording that was cut short: said. */
static void test_notes(void **state)
{
	const struct recording old = {.samples = 1000, .kernel = "6.1.0"};
	const struct recording new = {.samples = 1000, .kernel = "6.12.0"};
	struct failure failure = {};
	struct trial t;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	random_state = 8;
	t = compare_two(&base, &old, &new, &sampling_only, &failure);
	assert_non_null(t.result);
	assert_int_equal(
		compare_write_text(
			&(struct compare_output){.comparison = t.c, .result = t.result, .top = 5},
			out),
		0);
	fclose(out);
	assert_non_null(strstr(text, "note: the kernels differ"));
	free(text);
	comparison__free(t.c);
}

/* Both sides as one profile have all samples and all CPU time of each file; a side's values add up to its whole. */
static void test_profile_of_both(void **state)
{
	const struct recording one = {.samples = 3000};
	struct trial t;

	(void)state;
	random_state = 7;
	for (size_t files = 1; files <= 3; files += 2) {
		struct profile_builder *b = profile_builder__new();
		const struct profile *p;
		double sum[COMPARE_SIDES] = {};

		t = compare(&base, &base, files, &one, &sampling_only);
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
		comparison__free(t.c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_names_of_any_bytes),
		cmocka_unit_test(test_student),
		cmocka_unit_test(test_welch),
		cmocka_unit_test(test_false_discoveries),
		cmocka_unit_test(test_no_false_alarms),
		cmocka_unit_test(test_no_false_alarms_of_many),
		cmocka_unit_test(test_noise_of_one_side),
		cmocka_unit_test(test_planted_changes),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_one_large_change),
		cmocka_unit_test(test_new_and_gone),
		cmocka_unit_test(test_circle_of_calls),
		cmocka_unit_test(test_moved_in_one_place),
		cmocka_unit_test(test_doubt),
		cmocka_unit_test(test_neighbour),
		cmocka_unit_test(test_other_events),
		cmocka_unit_test(test_other_rates),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_rule_texts),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_profile_of_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
