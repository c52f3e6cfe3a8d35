/* SPDX-License-Identifier: BSD-2-Clause */
/* What is shown between two samples of a thread: gaps, their edges, and where the CPU time goes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "profile/timeline.h"

#define PERIOD	    1000u
#define SAMPLES_MAX 64

struct fixture {
	struct profile p;
	struct profile_thread thread;
	uint64_t time[SAMPLES_MAX], weight[SAMPLES_MAX];
	struct stack_id stack[SAMPLES_MAX];
	struct string_id comm[SAMPLES_MAX];
};

/* A thread that starts at 10000 and ends at `end`, with `tail` CPU after its last sample. */
static void begin(struct fixture *f, uint64_t end, uint64_t tail)
{
	memset(f, 0, sizeof(*f));
	f->p.period = PERIOD;
	f->p.start = 10000;
	f->p.end = end;
	f->thread = (struct profile_thread){
		.name = {9},
		.start = 10000,
		.cpu_tail = tail,
		.samples[SAMPLE_CPU] = {.time = f->time,
					.weight = f->weight,
					.stack = f->stack,
					.comm = f->comm},
	};
}

static void sample(struct fixture *f, uint64_t time, uint64_t cpu_delta)
{
	size_t i = f->thread.samples[SAMPLE_CPU].count++;

	f->time[i] = time;
	f->weight[i] = cpu_delta;
	f->stack[i].v = 100 + i;
	f->comm[i].v = 1 + i;
}

/* "start@10000+0! sample@11000+1000 …", "!" where idle time follows. */
static void render(const struct fixture *f, char *text, size_t size)
{
	static const char *const kinds[] = {"start", "sample", "idle", "back", "end"};
	struct timeline t;
	struct timeline_entry e;
	size_t used = 0;

	text[0] = '\0';
	timeline__init(&t, &f->p, &f->thread);
	while (timeline__next(&t, &e) && used < size)
		used += snprintf(text + used, size - used, "%s%s@%" PRIu64 "+%" PRIu64 "%s",
				 used ? " " : "", kinds[e.kind], e.time, e.cpu_delta,
				 e.idle_after ? "!" : "");
}

static void expect(const struct fixture *f, const char *wanted)
{
	char text[1024];

	render(f, text, sizeof(text));
	assert_string_equal(text, wanted);
}

static void expect_idle(const struct fixture *f, size_t i, uint64_t count, uint64_t first)
{
	struct timeline_idle idle = timeline_idle_before(&f->p, &f->thread, i);

	assert_int_equal(idle.count, count);
	if (count)
		assert_int_equal(idle.first, first);
}

TEST(a_busy_thread_has_no_gaps)
{
	struct fixture f;

	begin(&f, 13000, 900);
	sample(&f, 11000, 1000);
	sample(&f, 12100, 1090);
	expect(&f, "start@10000+0 sample@11000+1000 sample@12100+1090 end@13000+900");
	for (size_t i = 0; i <= 2; i++)
		expect_idle(&f, i, 0, 0);
}

TEST(a_lost_sample_is_no_gap)
{
	struct fixture f;

	begin(&f, 15000, 1000);
	sample(&f, 11000, 1000);
	sample(&f, 14000, 2900);
	expect(&f, "start@10000+0 sample@11000+1000 sample@14000+2900 end@15000+1000");
	expect_idle(&f, 1, 0, 0);
}

TEST(a_sleep_is_a_gap)
{
	struct fixture f;

	begin(&f, 22000, 1000);
	sample(&f, 11000, 1000);
	sample(&f, 21000, 801);
	expect(&f, "start@10000+0 sample@11000+1000 idle@11400+400! back@20599+0 "
		   "sample@21000+401 end@22000+1000");
	expect_idle(&f, 1, 9, 12000);
}

TEST(cpu_between_ticks_is_shown_in_the_gap)
{
	struct fixture f;

	begin(&f, 22000, 1000);
	sample(&f, 11000, 1000);
	sample(&f, 21000, 5000);
	expect(&f, "start@10000+0 sample@11000+1000 idle@12000+1000! back@20000+3000 "
		   "sample@21000+1000 end@22000+1000");
	expect_idle(&f, 1, 9, 12000);
}

TEST(lost_samples_are_not_idle)
{
	struct fixture f;

	/* half of twenty periods: that nineteen ticks missed it is not to be believed */
	begin(&f, 32000, 1000);
	sample(&f, 11000, 1000);
	sample(&f, 31000, 10300);
	expect(&f, "start@10000+0 sample@11000+1000 idle@12000+1000! back@30000+8300 "
		   "sample@31000+1000 end@32000+1000");
	expect_idle(&f, 1, 10, 21000);
}

TEST(a_gap_without_cpu_keeps_times_apart)
{
	struct fixture f;

	begin(&f, 13600, 0);
	sample(&f, 11000, 1000);
	sample(&f, 12501, 0);
	expect(&f, "start@10000+0 sample@11000+1000 idle@11001+0! back@12500+0 sample@12501+0 "
		   "end@13600+0");
	expect_idle(&f, 1, 1, 11501);
}

TEST(idle_before_the_first_and_after_the_last)
{
	struct fixture f;

	begin(&f, 20500, 300);
	sample(&f, 15500, 1400);
	expect(&f, "start@10000+0! back@14500+400 sample@15500+1000 idle@15800+300! end@20500+0");
	expect_idle(&f, 0, 5, 10500);
	expect_idle(&f, 1, 4, 16500);
}

TEST(a_thread_without_samples)
{
	struct fixture f;

	begin(&f, 13500, 200);
	expect(&f, "start@10000+0! end@13500+200");
	expect_idle(&f, 0, 3, 10000);

	begin(&f, 10000, 0);
	expect(&f, "start@10000+0");
	expect_idle(&f, 0, 0, 0);
}

TEST(a_thread_that_ends_with_its_last_sample)
{
	struct fixture f;

	begin(&f, 99000, 0);
	sample(&f, 11000, 1000);
	f.thread.end = 11000;
	expect(&f, "start@10000+0 sample@11000+1000");
	f.thread.cpu_tail = 7;
	expect(&f, "start@10000+0 sample@11000+1000 end@11001+7");
}

TEST(no_period_no_gaps)
{
	struct fixture f;

	begin(&f, 99000, 0);
	f.p.period = 0;
	sample(&f, 50000, 1000);
	expect(&f, "start@10000+0 sample@50000+1000 end@99000+0");
	expect_idle(&f, 0, 0, 0);
}

TEST(names_and_stacks_of_entries)
{
	struct fixture f;
	struct timeline t;
	struct timeline_entry e;

	begin(&f, 30000, 0);
	sample(&f, 15000, 100);
	sample(&f, 25000, 100);
	timeline__init(&t, &f.p, &f.thread);
	assert_true(timeline__next(&t, &e)); /* start: called as at its first sample */
	assert_int_equal(e.comm.v, 1);
	assert_int_equal(e.stack.v, 0);
	while (timeline__next(&t, &e) && e.kind != TIMELINE_IDLE_BEGIN)
		if (e.kind == TIMELINE_SAMPLE)
			assert_int_equal(e.stack.v, 100 + e.sample);
	assert_int_equal(e.comm.v, 1); /* of the sample before it */
	assert_int_equal(e.sample, 1);

	begin(&f, 30000, 0);
	timeline__init(&t, &f.p, &f.thread);
	assert_true(timeline__next(&t, &e));
	assert_int_equal(e.comm.v, 9); /* never sampled: its name */
}

/* ---- properties, over many random threads ---------------------------------------------------- */

static uint64_t seed;

static uint64_t random_below(uint64_t limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % limit;
}

static void random_thread(struct fixture *f, uint64_t period)
{
	uint64_t t = 10000, end;
	size_t count = random_below(6);

	begin(f, 0, 0);
	f->p.period = period;
	for (size_t i = 0; i < count; i++) {
		uint64_t length = 1 + random_below(6 * period);

		t += length;
		sample(f, t, random_below(length + 1));
	}
	end = t + random_below(6 * period);
	f->thread.end = end;
	f->thread.cpu_tail = random_below(end - t + 1);
	f->p.end = end + random_below(period);
}

static void check_entries(const struct fixture *f)
{
	struct timeline t;
	struct timeline_entry e;
	uint64_t last = 0, cpu = 0;
	size_t samples = 0;

	timeline__init(&t, &f->p, &f->thread);
	for (size_t i = 0; timeline__next(&t, &e); i++) {
		assert_int_equal(e.kind == TIMELINE_START, i == 0);
		if (i) {
			assert_true(e.time > last);
			assert_true(e.cpu_delta <= e.time - last);
		} else {
			assert_int_equal(e.time, f->thread.start);
			assert_int_equal(e.cpu_delta, 0);
		}
		if (e.kind == TIMELINE_SAMPLE) {
			assert_int_equal(e.time, f->time[samples]);
			assert_int_equal(e.sample, samples++);
		}
		last = e.time;
		cpu += e.cpu_delta;
	}
	assert_int_equal(samples, f->thread.samples[SAMPLE_CPU].count);
	assert_int_equal(cpu, profile_thread__cpu(&f->thread));
	assert_int_equal(last, timeline_end(&f->p, &f->thread));
	assert_false(timeline__next(&t, &e));
}

static void check_idle(const struct fixture *f)
{
	size_t n = f->thread.samples[SAMPLE_CPU].count;

	for (size_t i = 0; i <= n; i++) {
		struct timeline_idle idle = timeline_idle_before(&f->p, &f->thread, i);
		uint64_t from = i ? f->time[i - 1] + 1 : f->thread.start;
		uint64_t to = i < n ? f->time[i] : timeline_end(&f->p, &f->thread);

		if (!idle.count)
			continue;
		assert_true(idle.first >= from);
		assert_true(idle.first + (idle.count - 1) * f->p.period < to);
	}
}

TEST(properties_hold)
{
	seed = 1;
	for (int i = 0; i < 200000; i++) {
		struct fixture f;

		random_thread(&f, i % 3 ? 1 + random_below(6) : PERIOD);
		check_entries(&f);
		check_idle(&f);
	}
}

/* A thread that works 30 % of the time: idle samples are the ticks that missed it. */
TEST(idle_samples_are_the_missed_ticks)
{
	uint64_t idle = 0, samples = 0;

	seed = 7;
	for (int round = 0; round < 200; round++) {
		struct fixture f;
		uint64_t t = 10000;

		begin(&f, 0, 0);
		for (int k = 0; k < SAMPLES_MAX; k++) {
			uint64_t ticks = 1;

			while (random_below(10) >= 3)
				ticks++;
			t += ticks * PERIOD + random_below(100) - 50;
			sample(&f, t, ticks * PERIOD * 3 / 10);
			idle += k ? ticks - 1 : 0;
		}
		f.p.end = t;
		for (size_t i = 1; i < f.thread.samples[SAMPLE_CPU].count; i++)
			samples += timeline_idle_before(&f.p, &f.thread, i).count;
	}
	/* less those of a few long gaps, which look like losses */
	assert_true(samples <= idle && samples >= idle * 999 / 1000);
}
