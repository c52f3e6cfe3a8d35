/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue: order, stability, late events, the memory limit, pushing from within a sink. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "base/vec.h"
#include "stream/event_queue.h"

/* A sample that says when it was pushed. */
struct numbered {
	struct sample_event sample;
	uint64_t padding[64];
};

struct output {
	uint64_t count;
	uint64_t last_time;
	uint64_t samples;
	bool ordered;
	VEC(uint64_t) numbers;
	VEC(struct lost_event) lost;
	uint64_t fail_at;   /* event number to fail at, 0 none */
	uint64_t wait_at;   /* event number that has to wait, 0 none */
	uint64_t refuse_at; /* that the stage refuses, 0 none */
	size_t requested;   /* times that the stage was */
	struct event_queue *push_into;
	uint64_t pushes_left;
};

static void output_init(struct output *out)
{
	memset(out, 0, sizeof(*out));
	out->ordered = true;
}

static void output_fini(struct output *out)
{
	vec_free(&out->numbers);
	vec_free(&out->lost);
}

static void push_sized(struct event_queue *q, uint64_t time, uint64_t number, size_t size)
{
	struct numbered event = {};

	event.sample.header.size = size;
	event.sample.header.type = EVENT_SAMPLE;
	event.sample.header.time = time;
	event.sample.cpu_time = number;
	assert_int_equal(event_queue__push(q, &event.sample.header), 0);
}

static void push(struct event_queue *q, uint64_t time, uint64_t number)
{
	push_sized(q, time, number, sizeof(struct sample_event));
}

/* Number 5 becomes another event. */
static int settle(void *context, const struct event_header **event)
{
	static struct sample_event other;
	struct output *out = context;
	const struct sample_event *sample = (const struct sample_event *)*event;

	if (sample->header.type != EVENT_SAMPLE)
		return 0;
	out->requested++;
	if (out->wait_at && sample->cpu_time == out->wait_at)
		return STAGE_WAIT;
	if (sample->cpu_time == out->refuse_at)
		return out->refuse_at ? -ECANCELED : 0;
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
	struct output *out = context;

	if (event->time < out->last_time)
		out->ordered = false;
	out->last_time = event->time;
	out->count++;
	if (event->type == EVENT_LOST) {
		assert_int_equal(vec_push(&out->lost, *(const struct lost_event *)event), 0);
	} else if (event->type == EVENT_SAMPLE) {
		out->samples++;
		assert_int_equal(
			vec_push(&out->numbers, ((const struct sample_event *)event)->cpu_time), 0);
	}
	if (out->push_into && out->pushes_left > 0) {
		out->pushes_left--;
		push(out->push_into, event->time + 1, 1000 + out->pushes_left);
		push_sized(out->push_into, event->time + 1000000, 1, sizeof(struct numbered));
	}
	return out->fail_at == out->count ? -EIO : 0;
}

TEST(order_is_by_time_and_stable)
{
	struct event_queue *q = event_queue__new(0);
	struct output out;
	uint64_t number = 0;

	output_init(&out);
	push(q, 30, number++);
	push(q, 10, number++);
	push(q, 20, number++);
	push(q, 10, number++);
	push(q, 20, number++);
	push(q, 10, number++);
	assert_int_equal(event_queue__release(q, 20, take, &out), 0);
	assert_int_equal(out.samples, 3); /* those of time 20 are not older than 20 */
	assert_int_equal(event_queue__release(q, 21, take, &out), 0);
	assert_int_equal(out.samples, 5);
	assert_int_equal(event_queue__flush(q, take, &out), 0);
	assert_int_equal(out.samples, 6);
	const uint64_t expected[] = {1, 3, 5, 2, 4, 0};
	assert_memory_equal(out.numbers.data, expected, sizeof(expected));
	assert_int_equal(out.lost.count, 0);
	output_fini(&out);
	event_queue__free(q);
}

TEST(a_burst_comes_out_in_order)
{
	enum { COUNT = 200000 };
	struct event_queue *q = event_queue__new(0);
	struct event_queue_stats stats;
	struct output out;
	bool *seen = calloc(COUNT, sizeof(*seen));

	output_init(&out);
	srand(7);
	for (uint64_t i = 0; i < COUNT; i++)
		push_sized(q, 1000 + rand() % 100000, i,
			   sizeof(struct sample_event) + 8 * (rand() % 60));
	for (uint64_t until = 1000; until < 90000; until += 10000)
		assert_int_equal(event_queue__release(q, until, take, &out), 0);
	assert_int_equal(event_queue__flush(q, take, &out), 0);
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
	free(seen);
	output_fini(&out);
	event_queue__free(q);
}

TEST(late_events_are_moved_and_counted)
{
	struct event_queue *q = event_queue__new(0);
	struct event_queue_stats stats;
	struct output out;

	output_init(&out);
	push(q, 100, 0);
	assert_int_equal(event_queue__release(q, 200, take, &out), 0);
	push(q, 70, 1);
	push(q, 60, 2);
	push(q, 100, 3); /* equal is not late */
	push(q, 150, 4);
	assert_int_equal(event_queue__release(q, 200, take, &out), 0);
	assert_true(out.ordered);
	const uint64_t expected[] = {0, 2, 1, 3, 4};
	assert_int_equal(out.samples, 5);
	assert_memory_equal(out.numbers.data, expected, sizeof(expected));
	assert_int_equal(out.lost.count, 1);
	assert_int_equal(out.lost.data[0].source, LOST_LATE);
	assert_int_equal(out.lost.data[0].count, 2);
	assert_int_equal(out.lost.data[0].since, 59); /* the range does not include it */
	assert_int_equal(out.lost.data[0].header.time, 150);
	/* nothing new: nothing reported */
	assert_int_equal(event_queue__release(q, 300, take, &out), 0);
	assert_int_equal(out.lost.count, 1);
	event_queue__stats(q, &stats);
	assert_int_equal(stats.late, 2);
	output_fini(&out);
	event_queue__free(q);
}

TEST(events_beyond_the_limit_are_counted)
{
	enum { COUNT = 10000 };
	struct event_queue *q = event_queue__new(1 << 20);
	struct visit_account visit = {
		.header = {.size = sizeof(visit), .type = EVENT_VISIT, .time = 1000 + COUNT - 1}};
	struct event_queue_stats stats;
	struct output out;
	uint64_t lost = 0;

	output_init(&out);
	for (uint64_t i = 0; i < COUNT; i++)
		push_sized(q, 1000 + i, i, sizeof(struct numbered));
	struct comm_event comm = {
		.header = {.size = sizeof(comm), .type = EVENT_COMM, .time = 500000}};
	for (int i = 0; i < 20000; i++)
		assert_int_equal(event_queue__push(q, &comm.header), 0);
	assert_int_equal(event_queue__push(q, &visit.header), 0); /* a sample, too */
	event_queue__stats(q, &stats);
	assert_true(stats.memory_peak <= 1 << 20);
	assert_true(stats.dropped > 0);
	/* the range of a loss is reported after its end, not before */
	assert_int_equal(event_queue__release(q, 1500, take, &out), 0);
	assert_int_equal(out.samples, 500);
	assert_int_equal(out.lost.count, 0);
	assert_int_equal(event_queue__release(q, 400000, take, &out), 0);
	assert_int_equal(out.lost.count, 1);
	assert_int_equal(out.lost.data[0].source, LOST_SAMPLES);
	assert_int_equal(out.lost.data[0].count + out.samples, COUNT + 1);
	assert_int_equal(out.lost.data[0].since, 1000 + out.samples - 1);
	assert_int_equal(out.lost.data[0].header.time, 1000 + COUNT - 1);
	assert_int_equal(event_queue__flush(q, take, &out), 0);
	assert_true(out.ordered);
	for (size_t i = 0; i < out.lost.count; i++)
		lost += out.lost.data[i].count;
	event_queue__stats(q, &stats);
	assert_int_equal(stats.dropped, lost);
	assert_int_equal(out.lost.data[out.lost.count - 1].source, LOST_SIDEBAND);
	/* and there is room again */
	push(q, 600000, 7);
	assert_int_equal(event_queue__flush(q, take, &out), 0);
	assert_int_equal(out.numbers.data[out.numbers.count - 1], 7);
	output_fini(&out);
	event_queue__free(q);
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
	struct event_queue *q = event_queue__new(1 << 20);
	struct event_header window = {.size = sizeof(window), .type = EVENT_WINDOW};
	struct event_queue_stats before, stats;
	unsigned int windows = 0;

	for (uint64_t i = 0; i < COUNT; i++)
		push_sized(q, 1000 + i, i, sizeof(struct numbered));
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
	event_queue__free(q);
}

TEST(the_sink_may_push_into_its_own_queue)
{
	struct event_queue *q = event_queue__new(0);
	struct event_queue_stats stats;
	struct output out;

	output_init(&out);
	out.push_into = q;
	out.pushes_left = 5000;
	push(q, 10, 1);
	assert_int_equal(event_queue__release(q, 20000, take, &out), 0);
	assert_int_equal(out.samples, 5001);
	event_queue__stats(q, &stats);
	assert_int_equal(stats.held, 5000);
	assert_int_equal(event_queue__flush(q, take, &out), 0);
	assert_int_equal(out.samples, 10001);
	assert_true(out.ordered);
	output_fini(&out);
	event_queue__free(q);
}

TEST(an_error_of_the_sink_ends_the_release)
{
	struct event_queue *q = event_queue__new(0);
	struct output out;

	output_init(&out);
	out.fail_at = 2;
	for (uint64_t i = 0; i < 4; i++)
		push(q, i + 1, i);
	assert_int_equal(event_queue__flush(q, take, &out), -EIO);
	assert_int_equal(out.samples, 2);
	assert_int_equal(event_queue__flush(q, take, &out), 0);
	assert_int_equal(out.samples, 4); /* none twice */
	output_fini(&out);
	event_queue__free(q);
}

/* What has to wait stays, with all that is behind it, and is neither lost nor late. */
TEST(a_waiting_event_holds_all_that_is_behind_it)
{
	struct event_queue *q = event_queue__new(0);
	struct event_queue_stats stats;
	struct output out;

	output_init(&out);
	event_queue__set_stage(q, settle, &out);
	assert_int_equal(event_queue__oldest(q), UINT64_MAX);
	for (uint64_t i = 0; i < 6; i++)
		push(q, 10 * (i + 1), i);
	assert_int_equal(event_queue__oldest(q), 10);
	out.wait_at = 3;
	assert_int_equal(event_queue__release(q, 100, take, &out), 0);
	assert_int_equal(out.samples, 3);
	assert_int_equal(event_queue__oldest(q), 40);
	push(q, 35, 100); /* before the one that waits */
	assert_int_equal(event_queue__oldest(q), 35);
	assert_int_equal(event_queue__release(q, 100, take, &out), 0);
	assert_int_equal(out.samples, 4);
	push(q, 40, 101); /* as old as it, but it came later */
	assert_int_equal(event_queue__release(q, 100, take, &out), 0);
	assert_int_equal(out.samples, 4);
	out.wait_at = 0;
	assert_int_equal(event_queue__release(q, 100, take, &out), 0);
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
	output_fini(&out);
	event_queue__free(q);
}

TEST(an_event_refused_by_the_stage_is_not_released)
{
	struct event_queue *q = event_queue__new(0);
	struct output out;

	output_init(&out);
	out.refuse_at = 2;
	event_queue__set_stage(q, settle, &out);
	for (uint64_t i = 0; i < 4; i++)
		push(q, 10 * (i + 1), i);
	assert_int_equal(event_queue__flush(q, take, &out), -ECANCELED);
	assert_int_equal(out.samples, 2);
	assert_int_equal(event_queue__flush(q, take, &out), 0);
	assert_int_equal(out.samples, 3); /* it is gone */
	output_fini(&out);
	event_queue__free(q);
}

TEST(a_steady_stream_does_not_grow_the_queue)
{
	struct event_queue *q = event_queue__new(0);
	struct event_queue_stats stats;
	struct output out;

	output_init(&out);
	for (uint64_t i = 0; i < 200000; i++) {
		push_sized(q, i, i, sizeof(struct numbered));
		if (i % 100 == 99)
			assert_int_equal(event_queue__release(q, i - 50, take, &out), 0);
	}
	event_queue__stats(q, &stats);
	assert_true(stats.memory_peak <= 4u << 20);
	assert_true(out.ordered);
	output_fini(&out);
	event_queue__free(q); /* with events in it */
}

TEST(impossible_sizes_are_refused)
{
	const uint32_t sizes[] = {0, 8, 17, EVENT_SIZE_MAX + 8, UINT32_MAX};
	struct event_queue *q = event_queue__new(0);
	struct output out;
	char *big = calloc(1, EVENT_SIZE_MAX);
	struct event_header *event = (struct event_header *)big;

	output_init(&out);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		event->size = sizes[i];
		assert_int_equal(event_queue__push(q, event), -EBADMSG);
	}
	event->size = EVENT_SIZE_MAX;
	for (int i = 0; i < 10; i++)
		assert_int_equal(event_queue__push(q, event), 0);
	assert_int_equal(event_queue__flush(q, take, &out), 0);
	assert_int_equal(out.count, 10);
	free(big);
	output_fini(&out);
	event_queue__free(q);
	event_queue__free(NULL);
}
