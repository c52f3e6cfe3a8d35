/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of a pool: what they are charged and refused for, at times of the test's choice. */
#include "unit.h"
#include "base/clocks.h"
#include "tenants/requests.h"

#define SECOND 1000000000ull
#define USER   1000

static struct requests of_test;
static unsigned int refused[(HELPER_ENDED + 1)], answered;

static void note_answer(void *context, const struct helper_answer *answer)
{
	refused[answer->refusal]++;
	answered++;
}

static void begin(void)
{
	const struct helper_pool_options options = {.service_count = 1};

	of_test = (struct requests){};
	requests__init(&of_test, &options);
	of_test.hurry = true;
	answered = 0;
	for (size_t i = 0; i < (HELPER_ENDED + 1); i++)
		refused[i] = 0;
}

static void end(void)
{
	requests__refuse_hopeless(&of_test, true, monotonic_ns());
}

static void add(struct requests *r)
{
	const struct helper_request request = {
		.owner = USER, .data = "x", .size = 1, .holds = true, .answer = note_answer};

	assert_int_equal(requests__add(r, &request, HELPER_ANSWERED), 0);
}

/* One step that began at this time, with one request that is being served. */
static void step(struct requests *r, struct request *serving, uint64_t now)
{
	requests__charge_step(r, &serving, 1, 0, now);
	if (serving)
		request__release_late(r, serving, now);
	requests__refuse_hopeless(r, false, now);
}

static int64_t held_by(const struct requests *r, uint64_t now)
{
	return (int64_t)r->holding.user.limit - quota__left(&r->holding, USER, now);
}

/* What a callback adds is younger than the step: it holds up nothing yet. */
TEST(added_in_a_step)
{
	struct requests *r = &of_test;
	uint64_t began = monotonic_ns() - SECOND;

	step(r, NULL, began);
	for (int i = 1; i <= 200; i++) { /* 50 ms a step, if they were charged */
		add(r);
		step(r, NULL, began + i);
	}
	assert_int_equal(answered, 0);
	assert_int_equal(held_by(r, began + 200), 0);
	assert_int_equal(r->stats.late, 0);
}

/* ... not even if its user has used up its CPU time: it waits for more. */
TEST(added_without_credit)
{
	struct requests *r = &of_test;
	uint64_t began = monotonic_ns() - SECOND;

	requests__charge_cpu(r, USER, r->cpu.user.limit, began);
	add(r);
	step(r, NULL, began);
	assert_int_equal(answered, 0);
	requests__charge_cpu(r, USER, r->cpu.user.limit, began + 4 * SECOND);
	step(r, NULL, began + 4 * SECOND); /* more than two seconds after it was added */
	assert_int_equal(refused[HELPER_OVER_BUDGET], 1);
}

/* ... and neither does one that a helper got at once. */
TEST(served_in_a_step)
{
	struct requests *r = &of_test;
	uint64_t began = monotonic_ns() - SECOND;
	struct request *serving;

	add(r);
	serving = requests__next(r, NULL, 0, began);
	assert_non_null(serving);
	for (int i = 0; i < 200; i++)
		step(r, serving, began + (uint64_t)i * 1000);
	assert_int_equal(answered, 0);
	assert_int_equal(held_by(r, began), 0);
	request__refuse(r, serving, HELPER_ENDED, 0);
}

/* One that is older than 20 ms holds up others: its user pays, and then the stream goes on. */
TEST(old_ones_are_charged)
{
	struct requests *r = &of_test;
	uint64_t now;

	add(r);
	now = monotonic_ns() + REQUEST_SLOW;
	for (int i = 0; i < 100 && !answered; i++)
		step(r, NULL, now += SECOND / 100);
	assert_int_equal(refused[HELPER_LATE], 1);
	assert_int_equal(answered, 1);
}

/* Time in which a helper or the pool waits for a CPU may be the doing of others, or the owner's. */
TEST(of_time_without_a_cpu_half_is_charged)
{
	struct requests *r = &of_test;
	struct request *none = NULL;
	uint64_t now;

	add(r);
	now = monotonic_ns() + REQUEST_SLOW;
	requests__charge_step(r, &none, 1, 0, now);
	requests__charge_step(r, &none, 1, SECOND / 400, now += SECOND / 100);
	assert_in_range(held_by(r, now), SECOND / 200, SECOND / 133);
	for (int i = 0; i < 10; i++)
		requests__charge_step(r, &none, 1, SECOND, now += SECOND / 100);
	assert_in_range(held_by(r, now), SECOND / 20, SECOND / 17);
	requests__refuse_hopeless(r, false, now);
	assert_int_equal(answered, 0);
	for (int i = 0; i < 100; i++) {
		requests__charge_step(r, &none, 1, SECOND, now += SECOND / 100);
		requests__refuse_hopeless(r, false, now);
	}
	assert_int_equal(answered, 1);
}

EACH_TEST_WITH(begin, end);
