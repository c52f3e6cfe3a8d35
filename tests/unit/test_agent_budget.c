/* SPDX-License-Identifier: BSD-2-Clause */
/* The controller against simulated loads: the part that is over its share sheds first, it does not flap, and comes back. */
#include "unit.h"
#include "agent/budget.h"

#define TICK 10000000000ull

/* What the agent would cost: what a step saves, and a part that follows the rate. Shares of a CPU. */
struct load {
	double by_step[BUDGET_STEP_COUNT]; /* of those that are no rates */
	double fixed, by_hz;		   /* by_hz: at 97; both of the programs in the kernel */
	uint64_t memory;
};

/* Of the running test. */
static struct run {
	struct budget *budget;
	uint64_t now;
	unsigned int changes, downs, backs;
	unsigned int least_hz;
} run;

static const enum budget_part PART_OF[BUDGET_STEP_COUNT] = {
#define X(id, part, ...) [BUDGET_STEP_##id] = BUDGET_PART_##part,
	BUDGET_STEPS(X)
#undef X
};

static void tear_down(void)
{
	budget__free(run.budget);
	run.budget = NULL;
}

static void start_with(const struct budget_options *options)
{
	tear_down();
	run = (struct run){.budget = budget__new(options), .now = TICK, .least_hz = ~0u};
	assert_non_null(run.budget);
}

static void start(double cpu, uint64_t memory, unsigned int hz)
{
	start_with(&(struct budget_options){.cpu = cpu, .memory = memory, .hz = hz});
}

static struct budget_state current(void)
{
	struct budget_state state;

	budget__state(run.budget, &state);
	return state;
}

static enum budget_change take(const struct budget_usage *usage, enum budget_step *step)
{
	enum budget_change change = budget__measure(run.budget, usage, step);
	struct budget_state state = current();

	run.now += TICK;
	run.changes += change != BUDGET_SAME;
	run.downs += change == BUDGET_DOWN;
	run.backs += change == BUDGET_BACK;
	if (state.hz < run.least_hz)
		run.least_hz = state.hz;
	return change;
}

/* CPU time by parts, and memory. */
static enum budget_change take_parts(const double *cpu_by, uint64_t memory)
{
	struct budget_usage usage = {.time = run.now, .memory = memory};
	enum budget_step step;

	for (int part = 0; part < BUDGET_PART_COUNT; part++) {
		usage.cpu_by[part] = cpu_by[part];
		usage.cpu += cpu_by[part];
	}
	return take(&usage, &step);
}
#define TAKE(...) take_parts((const double[BUDGET_PART_COUNT]){__VA_ARGS__}, 0)

/* All of it is of the programs in the kernel. */
static enum budget_change measure(double cpu, uint64_t memory)
{
	return take_parts((const double[BUDGET_PART_COUNT]){[BUDGET_PART_TICKS] = cpu}, memory);
}

static struct budget_usage cost(const struct load *load)
{
	struct budget_state state = current();
	struct budget_usage usage = {.time = run.now, .memory = load->memory};

	usage.cpu_by[BUDGET_PART_TICKS] = load->fixed + load->by_hz * state.hz / 97;
	for (int i = 0; i < BUDGET_STEP_COUNT; i++)
		if (state.allowed[i])
			usage.cpu_by[PART_OF[i]] += load->by_step[i];
	for (int i = 0; i < BUDGET_PART_COUNT; i++)
		usage.cpu += usage.cpu_by[i];
	return usage;
}

static void live_with(const struct load *load, unsigned int seconds)
{
	for (unsigned int i = 0; i < seconds / 10; i++) {
		const struct budget_usage usage = cost(load);
		enum budget_step step;

		take(&usage, &step);
	}
}

/* The steps that are taken while the load stays over the budget. */
static void expect_steps(const struct load *load, const enum budget_step *steps, size_t count)
{
	size_t taken = 0;

	start(0.005, 0, 97);
	for (int i = 0; i < 200; i++) {
		const struct budget_usage usage = cost(load);
		enum budget_step step;

		if (take(&usage, &step) != BUDGET_DOWN)
			continue;
		assert_true(taken < count);
		assert_int_equal(step, steps[taken++]);
	}
	assert_int_equal(taken, count);
}

#define EXPECT_STEPS(load, ...)                                                                    \
	expect_steps(load, (const enum budget_step[]){__VA_ARGS__},                                \
		     sizeof((const enum budget_step[]){__VA_ARGS__}) / sizeof(enum budget_step))

/* What costs goes first, the rate last, and not to 7 Hz for what is not its fault. */
TEST(only_steps_of_the_costliest_part_are_taken)
{
	const struct load symbols = {.by_step = {[BUDGET_STEP_NEW_FILES] = 0.002,
						 [BUDGET_STEP_DEBUG_INFO] = 0.002,
						 [BUDGET_STEP_RARE_NAMES] = 0.004,
						 [BUDGET_STEP_EARLY_TICKS] = 0.0005},
				     .by_hz = 0.003};
	const struct load runtimes = {
		.by_step = {[BUDGET_STEP_JIT_HISTORIES] = 0.004, [BUDGET_STEP_NEW_FILES] = 0.001},
		.by_hz = 0.003};

	const struct load builds = {.by_step = {[BUDGET_STEP_TABLE_BUILDS] = 0.006},
				    .by_hz = 0.003};

	EXPECT_STEPS(&builds, BUDGET_STEP_TABLE_BUILDS);
	EXPECT_STEPS(&symbols, BUDGET_STEP_NEW_FILES, BUDGET_STEP_DEBUG_INFO,
		     BUDGET_STEP_RARE_NAMES);
	EXPECT_STEPS(&runtimes, BUDGET_STEP_JIT_HISTORIES);
}

TEST(visits_are_reduced_to_one_before_the_rate)
{
	for (unsigned int visits = 0; visits <= 20; visits += 10) {
		const struct budget_options options = {.cpu = 0.005, .hz = 97, .visits = visits};
		unsigned int least = visits;

		start_with(&options);
		for (int i = 0; i < 50 && current().hz == 97; i++) {
			least = current().visits;
			TAKE([BUDGET_PART_TICKS] = 0.006, [BUDGET_PART_VISITS] = 0.0004 * least);
		}
		assert_true(current().hz < 97);
		assert_int_equal(least, visits ? 1 : 0);
		assert_int_equal(current().levels - current().level > 0, 1);
	}
}

TEST(collector_cost_lowers_the_rate_only_to_19_hz)
{
	start(0.005, 0, 97);
	for (int i = 0; i < 200; i++)
		TAKE([BUDGET_PART_COLLECTOR] = 0.019, [BUDGET_PART_TICKS] = 0.001);
	assert_int_equal(current().hz, 19);
	assert_false(current().allowed[BUDGET_STEP_EARLY_TICKS]);
	/* these would have saved nothing */
	assert_true(current().allowed[BUDGET_STEP_DEBUG_INFO]);
	assert_true(current().allowed[BUDGET_STEP_TABLE_BUILDS]);
	assert_true(current().allowed[BUDGET_STEP_JIT_HISTORIES]);
}

/* Whatever it costs: there are always 7 samples a second, and every further excess is counted. */
TEST(the_rate_never_falls_below_the_floor)
{
	static const unsigned int RATES[] = {7, 8, 19, 20, 97, 98, 999};
	struct budget_stats stats;

	for (size_t i = 0; i < sizeof(RATES) / sizeof(*RATES); i++) {
		start(0.005, 1000, RATES[i]);
		for (int k = 0; k < 500; k++)
			measure(100, 1u << 30);
		assert_true(run.least_hz >= 7);
		assert_int_equal(current().hz, 7);
		assert_true(current().over);
		budget__stats(run.budget, &stats);
		assert_true(stats.over_at_floor > 400);
		assert_int_equal(stats.measured, 500);
		assert_int_equal(stats.over, 500);
	}
}

TEST(a_requested_rate_below_the_floor_is_kept)
{
	start(0.005, 0, 5);
	for (int i = 0; i < 100; i++)
		measure(1, 0);
	assert_int_equal(current().hz, 5);
	assert_int_equal(run.downs, 0);
}

/* All of it is names and lines. */
static enum budget_change measure_symbols(double cpu)
{
	return TAKE([BUDGET_PART_SYMBOLS] = cpu);
}

TEST(a_single_peak_counts_only_above_twice_the_budget)
{
	start(0.005, 0, 97);
	for (int i = 0; i < 100; i++)
		assert_int_equal(measure_symbols(i % 2 ? 0.004 : 0.0095), BUDGET_SAME);
	/* but one over twice of it is */
	assert_int_equal(measure_symbols(0.0101), BUDGET_DOWN);
	/* and what follows is not judged */
	assert_int_equal(measure_symbols(1), BUDGET_SAME);
	assert_int_equal(measure_symbols(1), BUDGET_DOWN);
}

/* Names of new programs, twice a minute and far over the budget: the rate has no part in that. */
TEST(peaks_of_symbol_cost_do_not_lower_the_rate)
{
	start(0.005, 0, 97);
	for (int i = 0; i < 100; i++)
		measure_symbols(i % 6 < 2 ? 0.1 : 0.002);
	assert_false(current().allowed[BUDGET_STEP_NEW_FILES]);
	assert_int_equal(run.least_hz, 97);
}

TEST(a_costly_first_minute_leaves_the_rate)
{
	start(0.005, 0, 97);
	for (int i = 0; i < 100; i++) {
		const double times = i < 6 ? 10 : 1;

		TAKE([BUDGET_PART_SYMBOLS] = 0.0012 * times,
		     [BUDGET_PART_RUNTIMES] = 0.0008 * times,
		     [BUDGET_PART_COLLECTOR] = 0.0012 * times,
		     [BUDGET_PART_TICKS] = 0.0012 * times);
	}
	assert_int_equal(run.least_hz, 97);
}

TEST(steps_are_undone_singly_once_the_load_is_light)
{
	const struct load heavy = {.by_hz = 0.05}, light = {.by_hz = 0.0005};
	struct budget_stats stats;
	unsigned int calm = 0;

	start(0.005, 0, 97);
	live_with(&heavy, 300);
	assert_int_equal(current().hz, 7);
	/* not before the average of a minute fits, and one step at a time */
	while (!run.backs) {
		live_with(&light, 10);
		calm += 10;
	}
	assert_true(calm >= 20 && calm <= 60);
	assert_int_equal(run.backs, 1);
	assert_int_equal(current().hz, 19);
	live_with(&light, 600);
	assert_int_equal(current().level, 0);
	assert_int_equal(current().hz, 97);
	for (int i = 0; i < BUDGET_STEP_COUNT; i++)
		assert_true(current().allowed[i]);
	budget__stats(run.budget, &stats);
	for (int i = 0; i < BUDGET_STEP_COUNT; i++)
		assert_int_equal(stats.down[i], stats.back[i]);
}

/* Most of the collector's cost is of processes that come and go: the rate comes back if the rest of it fits. */
TEST(the_rate_is_raised_only_as_the_budget_permits)
{
	start(0.005, 0, 97);
	for (int i = 0; i < 12; i++)
		TAKE([BUDGET_PART_TICKS] = 0.002, [BUDGET_PART_COLLECTOR] = 0.007);
	assert_int_equal(current().hz, 19);
	for (int i = 0; i < 360; i++) {
		double rate = current().hz / 19.0;

		assert_true(0.0007 * rate + 0.0021 < 0.005);
		TAKE([BUDGET_PART_TICKS] = 0.0003 * rate,
		     [BUDGET_PART_COLLECTOR] = 0.0016 + 0.0004 * rate,
		     [BUDGET_PART_SYMBOLS] = 0.0005);
		/* at 47 Hz it takes 76 % of the budget, at 97 it would be 113 % */
		assert_int_equal(current().hz, i < 30 ? current().hz : 47);
	}
}

/* Names are put off after the rate was lowered, and save enough for it: it does not wait for them to come back. */
TEST(the_rate_is_raised_while_names_stay_deferred)
{
	start(0.005, 0, 97);
	for (int i = 0; i < 200; i++) {
		struct budget_state state = current();
		double names = state.allowed[BUDGET_STEP_NEW_FILES] ? 0.005 : 0.0009;

		/* from the tenth minute on there are names, too */
		TAKE([BUDGET_PART_TICKS] = 0.004 * state.hz / 97,
		     [BUDGET_PART_SYMBOLS] = i >= 60 ? names : 0,
		     [BUDGET_PART_COLLECTOR] = i < 60 ? 0.0041 : 0);
		if (i == 59)
			assert_int_equal(current().hz, 19);
	}
	assert_false(current().allowed[BUDGET_STEP_NEW_FILES]);
	assert_int_equal(current().hz, 47);
}

/* It was too much several times: a higher rate waits for five minutes then, not for an hour. */
TEST(a_rate_lowered_often_is_raised_within_ten_minutes)
{
	const struct load heavy = {.by_hz = 0.02}, light = {.by_hz = 0.0005};
	unsigned int low = 0;

	start(0.005, 0, 97);
	for (int i = 0; i < 10; i++) {
		live_with(&heavy, 240);
		live_with(&light, 240);
	}
	live_with(&heavy, 240);
	assert_true(current().hz < 47);
	while (current().hz < 47) {
		live_with(&light, 10);
		low += 10;
	}
	assert_true(low <= 2 * 300);
}

/* A load that fits at 19 Hz and not at 47: it stays there. */
TEST(changes_are_rare_under_a_steady_load)
{
	for (double by_hz = 0.0005; by_hz < 0.2; by_hz *= 1.1) {
		const struct load load = {.fixed = 0.0005,
					  .by_hz = by_hz,
					  .by_step = {[BUDGET_STEP_DEBUG_INFO] = 0.0003}};
		unsigned int settled;

		start(0.005, 0, 97);
		live_with(&load, 600);
		settled = run.changes;
		live_with(&load, 24 * 3600);
		/* the one that costs nothing it may try again, seldomer and seldomer */
		assert_true(run.changes - settled <= 2 * 27);
		if (cost(&load).cpu > 0.005)
			assert_int_equal(current().hz, 7);
		assert_true(run.least_hz >= 7);
	}
}

/* What is shed was all that cost: each time it is taken up it is too much again. */
TEST(retries_of_a_costly_step_become_hourly)
{
	const struct load load = {.fixed = 0.0001, .by_step = {[BUDGET_STEP_NEW_FILES] = 0.02}};

	start(0.005, 0, 97);
	live_with(&load, 3600);
	assert_true(run.backs >= 2 && run.backs <= 6);
	run.backs = 0;
	live_with(&load, 24 * 3600);
	assert_in_range(run.backs, 20, 25); /* once an hour */
}

TEST(a_long_calm_resets_the_wait_of_a_step)
{
	const struct load heavy = {.by_step = {[BUDGET_STEP_NEW_FILES] = 0.02}},
			  light = {.fixed = 0.0001};

	start(0.005, 0, 97);
	for (int i = 0; i < 20; i++) {
		live_with(&heavy, 50);
		assert_int_equal(current().level, 1);
		live_with(&light, 1200);
		assert_int_equal(current().level, 0);
	}
	assert_int_equal(run.backs, 20);
}

TEST(memory_over_its_limit_takes_a_step)
{
	start(0, 100u << 20, 97);
	measure(5, 90u << 20);
	assert_false(current().over);
	measure(5, 101u << 20);
	assert_int_equal(measure(5, 101u << 20), BUDGET_DOWN);
	for (int i = 0; i < 100; i++)
		measure(5, 80u << 20);
	assert_int_equal(current().level, 1);
	for (int i = 0; i < 9; i++)
		measure(5, 70u << 20);
	assert_int_equal(current().level, 0);
}

TEST(memory_use_neither_lowers_nor_holds_back_the_rate)
{
	struct load load = {.by_hz = 0.008, .memory = 85u << 20};

	start(0.005, 100u << 20, 97);
	live_with(&load, 600);
	assert_int_equal(current().hz, 47);
	load.by_hz = 0.001;
	live_with(&load, 600);
	assert_int_equal(current().hz, 97);
	assert_int_equal(current().level, 0);

	load.memory = 120u << 20;
	live_with(&load, 3600);
	assert_int_equal(run.least_hz, 47);
	assert_int_equal(current().hz, 97);
	assert_true(current().allowed[BUDGET_STEP_EARLY_TICKS]);
	assert_false(current().allowed[BUDGET_STEP_TABLE_BUILDS]);
	/* also while it is over its limit */
	load.by_hz = 0.008;
	live_with(&load, 600);
	assert_int_equal(current().hz, 47);
	load.by_hz = 0.001;
	live_with(&load, 600);
	assert_int_equal(current().hz, 97);
	assert_int_equal(current().level, 5);
}

TEST(steps_for_memory_and_cpu_are_independent)
{
	struct load load = {
		.by_hz = 0.1, .memory = 120u << 20, .by_step = {[BUDGET_STEP_NEW_FILES] = 0.004}};

	start(0.005, 100u << 20, 97);
	live_with(&load, 3600);
	assert_int_equal(current().hz, 7);
	assert_false(current().allowed[BUDGET_STEP_TABLE_BUILDS]);
	load = (struct load){.memory = 90u << 20};
	live_with(&load, 3600);
	assert_int_equal(current().hz, 97);
	assert_true(current().allowed[BUDGET_STEP_NEW_FILES]);
	assert_false(current().allowed[BUDGET_STEP_TABLE_BUILDS]);
	load.memory = 70u << 20;
	live_with(&load, 3600);
	assert_int_equal(current().level, 0);
}

TEST(memory_steps_are_taken_while_the_rate_waits)
{
	struct budget_stats stats;

	start(0.005, 100u << 20, 97);
	measure(0.008, 90u << 20);
	assert_int_equal(measure(0.008, 101u << 20), BUDGET_DOWN);
	assert_int_equal(current().hz, 97);
	measure(0.008, 90u << 20);
	measure(0.008, 90u << 20);
	assert_int_equal(measure(0.008, 90u << 20), BUDGET_SAME);
	budget__stats(run.budget, &stats);
	assert_int_equal(stats.over_at_floor, 0);
	assert_int_equal(measure(0.008, 90u << 20), BUDGET_DOWN);
	assert_int_equal(current().hz, 47);
}

TEST(without_limits_no_step_is_taken)
{
	start(0, 0, 97);
	for (int i = 0; i < 100; i++)
		assert_int_equal(measure(64, 1ull << 40), BUDGET_SAME);
}

TEST(changed_limits_do_not_raise_a_lowered_rate)
{
	const struct budget_options more = {.cpu = 0.05, .hz = 19},
				    less = {.cpu = 0.001, .hz = 199, .visits = 10};

	start(0.005, 0, 97);
	for (int i = 0; i < 100; i++)
		measure(0.04, 0);
	assert_int_equal(current().hz, 7);
	budget__set(run.budget, &more);
	assert_int_equal(current().level, 1);
	assert_int_equal(current().hz, 7);
	for (int i = 0; i < 100; i++)
		measure(0.001, 0);
	assert_int_equal(current().hz, 19);
	budget__set(run.budget, &less);
	assert_int_equal(current().hz, 199);
	assert_int_equal(current().levels, BUDGET_STEP_COUNT);
}

EACH_TEST_WITH(NULL, tear_down);
