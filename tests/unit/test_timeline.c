/* SPDX-License-Identifier: BSD-2-Clause */
/* What is shown between two samples of a thread: gaps, their edges, and where the CPU time goes. */
#include "text_cases.h"
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
static void render(FILE *out, char *input)
{
	static const char *const kinds[] = {"start", "sample", "idle", "back", "end"};
	const uint64_t end = strtoull(input, &input, 10), tail = strtoull(input, &input, 10);
	struct timeline_idle idle;
	struct timeline t;
	struct timeline_entry e;
	struct fixture f;

	begin(&f, end, tail);
	for (char *word = strtok(input, " "); word; word = strtok(NULL, " ")) {
		if (!strncmp(word, "thread=", 7))
			f.thread.end = strtoull(word + 7, NULL, 10);
		else if (!strncmp(word, "period=", 7))
			f.p.period = strtoull(word + 7, NULL, 10);
		else
			sample(&f, strtoull(word, NULL, 10), strtoull(strchr(word, '+'), NULL, 10));
	}
	timeline__init(&t, &f.p, &f.thread);
	while (timeline__next(&t, &e))
		fprintf(out, "%s%s@%" PRIu64 "+%" PRIu64 "%s", e.kind == TIMELINE_START ? "" : " ",
			kinds[e.kind], e.time, e.cpu_delta, e.idle_after ? "!" : "");
	for (size_t i = 0; i <= f.thread.samples[SAMPLE_CPU].count; i++) {
		idle = timeline_idle_before(&f.p, &f.thread, i);
		if (idle.count)
			fprintf(out, "; %" PRIu64 " idle before %zu from %" PRIu64, idle.count, i,
				idle.first);
	}
}

static const struct text_verb verbs[] = {{"timeline", render}, {}};

TEXT_TABLE("timeline", verbs, NULL, NULL);

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
