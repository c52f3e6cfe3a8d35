/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue: order, stability, late events, the memory limit, pushing from within a sink. */
#include "unit.h"
#include "story_text.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "stream/event_queue.h"

/* A sample that says when it was pushed. */
struct numbered {
	struct sample_event sample;
	uint64_t padding[64];
};

/* Of the running test. */
static struct event_queue *q;
static struct event_queue_stats stats;

static struct output {
	uint64_t count;
	uint64_t last_time;
	uint64_t samples;
	bool ordered;
	VEC(uint64_t) numbers;
	VEC(struct lost_event) lost;
	uint64_t fail_at;     /* event number to fail at, 0 none */
	uint64_t wait_at;     /* event number that has to wait, 0 none */
	uint64_t refuse_at;   /* that the stage refuses, 0 none */
	size_t requested;     /* times that the stage was */
	uint64_t pushes_left; /* into its own queue */
} out;

static void push_sized(uint64_t time, uint64_t number, size_t size)
{
	struct numbered event = {};

	event.sample.header.size = size;
	event.sample.header.type = EVENT_SAMPLE;
	event.sample.header.time = time;
	event.sample.cpu_time = number;
	assert_int_equal(event_queue__push(q, &event.sample.header), 0);
}

static void push(uint64_t time, uint64_t number)
{
	push_sized(time, number, sizeof(struct sample_event));
}

/* Number 5 becomes another event. */
static int settle(void *context, const struct event_header **event)
{
	static struct sample_event other;
	const struct sample_event *sample = (const struct sample_event *)*event;

	if (sample->header.type != EVENT_SAMPLE)
		return 0;
	out.requested++;
	if (out.wait_at && sample->cpu_time == out.wait_at)
		return STAGE_WAIT;
	if (sample->cpu_time == out.refuse_at)
		return out.refuse_at ? -ECANCELED : 0;
	if (sample->cpu_time == 5) {
		other = *sample;
		other.header.size = sizeof(other);
		other.cpu_time = 555;
		*event = &other.header;
	}
	return 0;
}

static int take(void *context, const struct event_header *event)
{
	if (event->time < out.last_time)
		out.ordered = false;
	out.last_time = event->time;
	out.count++;
	if (event->type == EVENT_LOST) {
		assert_int_equal(vec_push(&out.lost, *(const struct lost_event *)event), 0);
	} else if (event->type == EVENT_SAMPLE) {
		out.samples++;
		assert_int_equal(
			vec_push(&out.numbers, ((const struct sample_event *)event)->cpu_time), 0);
	}
	if (out.pushes_left > 0) {
		out.pushes_left--;
		push(event->time + 1, 1000 + out.pushes_left);
		push_sized(event->time + 1000000, 1, sizeof(struct numbered));
	}
	return out.fail_at == out.count ? -EIO : 0;
}

static void tear_down(void)
{
	vec_free(&out.numbers);
	vec_free(&out.lost);
	event_queue__free(q);
}

static void set_up(void)
{
	q = event_queue__new(0);
	out = (struct output){.ordered = true};
}

static void given(size_t limit)
{
	event_queue__free(q);
	q = event_queue__new(limit);
}

static void release(uint64_t until)
{
	assert_int_equal(event_queue__release(q, until, take, NULL), 0);
}

static void flush(void)
{
	assert_int_equal(event_queue__flush(q, take, NULL), 0);
}

/* Of the samples that came out. */
static void assert_numbers(const char *expected)
{
	struct story_text found = {};

	for (size_t i = 0; i < out.numbers.count; i++)
		add_item(&found, "%" PRIu64, out.numbers.data[i]);
	assert_string_equal(found.text, expected);
}

TEST(order_is_by_time_and_stable)
{
	uint64_t number = 0;

	push(30, number++);
	push(10, number++);
	push(20, number++);
	push(10, number++);
	push(20, number++);
	push(10, number++);
	release(20);
	assert_int_equal(out.samples, 3); /* those of time 20 are not older than 20 */
	release(21);
	assert_int_equal(out.samples, 5);
	flush();
	assert_int_equal(out.samples, 6);
	assert_numbers("1, 3, 5, 2, 4, 0");
	assert_int_equal(out.lost.count, 0);
}

TEST(a_burst_comes_out_in_order)
{
	enum { COUNT = 200000 };
	_cleanup_free_ bool *seen = calloc(COUNT, sizeof(*seen));

	srand(7);
	for (uint64_t i = 0; i < COUNT; i++)
		push_sized(1000 + rand() % 100000, i,
			   sizeof(struct sample_event) + 8 * (rand() % 60));
	for (uint64_t until = 1000; until < 90000; until += 10000)
		release(until);
	flush();
	assert_true(out.ordered);
	assert_int_equal(out.samples, COUNT);
	for (uint64_t i = 0; i < COUNT; i++) {
		assert_false(seen[out.numbers.data[i]]);
		seen[out.numbers.data[i]] = true;
	}
	event_queue__stats(q, &stats);
	assert_int_equal(stats.pushed, COUNT);
	assert_int_equal(stats.released, COUNT);
	assert_int_equal(stats.held, 0);
}

TEST(late_events_are_moved_and_counted)
{
	struct event_header early = {.size = sizeof(early), .type = EVENT_END, .time = 1};

	push(100, 0);
	release(200);
	push(70, 1);
	push(60, 2);
	push(100, 3); /* equal is not late */
	push(150, 4);
	release(200);
	assert_true(out.ordered);
	assert_int_equal(out.samples, 5);
	assert_numbers("0, 2, 1, 3, 4");
	assert_int_equal(out.lost.count, 1);
	assert_int_equal(out.lost.data[0].source, LOST_LATE);
	assert_int_equal(out.lost.data[0].count, 2);
	assert_int_equal(out.lost.data[0].since, 59); /* the range does not include it */
	assert_int_equal(out.lost.data[0].header.time, 150);
	/* nothing new: nothing reported */
	release(300);
	assert_int_equal(out.lost.count, 1);
	event_queue__stats(q, &stats);
	assert_int_equal(stats.late, 2);
	/* a reading may be late */
	assert_int_equal(event_queue__push_reading(q, &early), 0);
	release(300);
	assert_int_equal(out.lost.count, 1);
	assert_int_equal(out.last_time, 150);
}

TEST(events_beyond_the_limit_are_counted)
{
	enum { COUNT = 10000 };
	struct visit_account visit = {
		.header = {.size = sizeof(visit), .type = EVENT_VISIT, .time = 1000 + COUNT - 1}};
	uint64_t lost = 0;

	given(1 << 20);
	for (uint64_t i = 0; i < COUNT; i++)
		push_sized(1000 + i, i, sizeof(struct numbered));
	struct comm_event comm = {
		.header = {.size = sizeof(comm), .type = EVENT_COMM, .time = 500000}};
	for (int i = 0; i < 20000; i++)
		assert_int_equal(event_queue__push(q, &comm.header), 0);
	assert_int_equal(event_queue__push(q, &visit.header), 0); /* a sample, too */
	event_queue__stats(q, &stats);
	assert_true(stats.memory_peak <= 1 << 20);
	assert_true(stats.dropped > 0);
	/* the range of a loss is reported after its end, not before */
	release(1500);
	assert_int_equal(out.samples, 500);
	assert_int_equal(out.lost.count, 0);
	release(400000);
	assert_int_equal(out.lost.count, 1);
	assert_int_equal(out.lost.data[0].source, LOST_SAMPLES);
	assert_int_equal(out.lost.data[0].count + out.samples, COUNT + 1);
	assert_int_equal(out.lost.data[0].since, 1000 + out.samples - 1);
	assert_int_equal(out.lost.data[0].header.time, 1000 + COUNT - 1);
	flush();
	assert_true(out.ordered);
	for (size_t i = 0; i < out.lost.count; i++)
		lost += out.lost.data[i].count;
	event_queue__stats(q, &stats);
	assert_int_equal(stats.dropped, lost);
	assert_int_equal(out.lost.data[out.lost.count - 1].source, LOST_SIDEBAND);
	/* and there is room again */
	push(600000, 7);
	flush();
	assert_int_equal(out.numbers.data[out.numbers.count - 1], 7);
}

static int count_windows(void *context, const struct event_header *event)
{
	unsigned int *windows = context;

	*windows += event->type == EVENT_WINDOW;
	return 0;
}

/* Without its end a window would go on for ever. */
TEST(ends_of_windows_are_never_dropped)
{
	enum { COUNT = 20000, WINDOWS = 10000 };
	struct event_header window = {.size = sizeof(window), .type = EVENT_WINDOW};
	struct event_queue_stats before, stats;
	unsigned int windows = 0;

	given(1 << 20);
	for (uint64_t i = 0; i < COUNT; i++)
		push_sized(1000 + i, i, sizeof(struct numbered));
	event_queue__stats(q, &before);
	assert_true(before.dropped > 0);
	for (uint64_t i = 0; i < WINDOWS; i++) {
		window.time = 2000 + i;
		assert_int_equal(event_queue__push(q, &window), 0);
	}
	event_queue__stats(q, &stats);
	assert_int_equal(stats.dropped, before.dropped);
	assert_int_equal(event_queue__flush(q, count_windows, &windows), 0);
	assert_int_equal(windows, WINDOWS);
}

TEST(the_sink_may_push_into_its_own_queue)
{
	out.pushes_left = 5000;
	push(10, 1);
	release(20000);
	assert_int_equal(out.samples, 5001);
	event_queue__stats(q, &stats);
	assert_int_equal(stats.held, 5000);
	flush();
	assert_int_equal(out.samples, 10001);
	assert_true(out.ordered);
}

TEST(an_error_of_the_sink_ends_the_release)
{
	out.fail_at = 2;
	for (uint64_t i = 0; i < 4; i++)
		push(i + 1, i);
	assert_int_equal(event_queue__flush(q, take, NULL), -EIO);
	assert_int_equal(out.samples, 2);
	flush();
	assert_int_equal(out.samples, 4); /* none twice */
}

TEST(a_waiting_event_holds_all_that_is_behind_it)
{
	event_queue__set_stage(q, settle, NULL);
	assert_int_equal(event_queue__oldest(q), UINT64_MAX);
	for (uint64_t i = 0; i < 6; i++)
		push(10 * (i + 1), i);
	assert_int_equal(event_queue__oldest(q), 10);
	out.wait_at = 3;
	release(100);
	assert_int_equal(out.samples, 3);
	assert_int_equal(event_queue__oldest(q), 40);
	push(35, 100); /* before the one that waits */
	assert_int_equal(event_queue__oldest(q), 35);
	release(100);
	assert_int_equal(out.samples, 4);
	push(40, 101); /* as old as it, but it came later */
	release(100);
	assert_int_equal(out.samples, 4);
	out.wait_at = 0;
	release(100);
	event_queue__stats(q, &stats);
	assert_int_equal(out.samples, 8);
	assert_true(out.ordered);
	assert_int_equal(out.numbers.data[3], 100);
	assert_int_equal(out.numbers.data[4], 3);
	assert_int_equal(out.numbers.data[5], 101);
	assert_int_equal(out.numbers.data[7], 555); /* exchanged */
	assert_int_equal(out.requested, 8 + 3);
	assert_int_equal(stats.released, 8);
	assert_int_equal(stats.late, 0);
	assert_int_equal(stats.held, 0);
	assert_int_equal(event_queue__oldest(q), UINT64_MAX);
}

TEST(an_event_refused_by_the_stage_is_not_released)
{
	out.refuse_at = 2;
	event_queue__set_stage(q, settle, NULL);
	for (uint64_t i = 0; i < 4; i++)
		push(10 * (i + 1), i);
	assert_int_equal(event_queue__flush(q, take, NULL), -ECANCELED);
	assert_int_equal(out.samples, 2);
	flush();
	assert_int_equal(out.samples, 3); /* it is gone */
}

TEST(a_steady_stream_does_not_grow_the_queue)
{
	for (uint64_t i = 0; i < 200000; i++) {
		push_sized(i, i, sizeof(struct numbered));
		if (i % 100 == 99)
			release(i - 50);
	}
	event_queue__stats(q, &stats);
	assert_true(stats.memory_peak <= 4u << 20);
	assert_true(out.ordered);
}

TEST(impossible_sizes_are_refused)
{
	const uint32_t sizes[] = {0, 8, 17, EVENT_SIZE_MAX + 8, UINT32_MAX};
	_cleanup_free_ char *big = calloc(1, EVENT_SIZE_MAX);
	struct event_header *event = (struct event_header *)big;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		event->size = sizes[i];
		assert_int_equal(event_queue__push(q, event), -EBADMSG);
	}
	event->size = EVENT_SIZE_MAX;
	for (int i = 0; i < 10; i++)
		assert_int_equal(event_queue__push(q, event), 0);
	flush();
	assert_int_equal(out.count, 10);
	event_queue__free(NULL);
}

EACH_TEST_WITH(set_up, tear_down);
