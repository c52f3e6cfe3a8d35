/* SPDX-License-Identifier: BSD-2-Clause */
/* What publishing may cost: each process, each user, and all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>

#include "session/publish_budget.h"

#define MS     1000000ull
#define SECOND (1000 * MS)

static unsigned int asked;

/* Users have a thousand processes each. */
static uint32_t user_of(void *context, uint32_t tgid)
{
	(void)context;
	asked++;
	return tgid / 1000;
}

/* How much of `cost` at a time a process can spend at that time. */
static uint64_t spend_all(struct publish_budget *b, struct meter *credit, uint32_t tgid,
			  size_t mappings, uint64_t now, uint64_t cost)
{
	const struct publish_claim claim = {
		.process = credit,
		.mappings = mappings,
		.now = now,
		.user_of = user_of,
		.tgid = tgid,
	};
	uint64_t spent = 0;

	while (publish_budget__allows(b, &claim)) {
		publish_budget__spend(b, &claim, cost);
		spent += cost;
	}
	return spent;
}

static void process_test(void **state)
{
	static struct publish_budget b;
	struct meter one = {}, other = {};
	uint64_t now = SECOND, spent = 0;

	(void)state;
	publish_budget__init(&b);
	assert_int_equal(spend_all(&b, &one, 1000, 10, now, MS), 50 * MS);
	assert_int_equal(spend_all(&b, &one, 1000, 10, now, MS), 0);
	assert_int_equal(spend_all(&b, &other, 2000, 10, now, MS), 50 * MS);
	/* a hundredth of the time, however often it tries */
	for (int i = 0; i < 1000; i++)
		spent += spend_all(&b, &one, 1000, 10, now += 10 * MS, MS);
	assert_true(spent >= 99 * MS && spent <= 101 * MS);
	/* what one publication takes too much is paid back */
	now += 100 * SECOND;
	assert_int_equal(spend_all(&b, &one, 1000, 10, now, 500 * MS), 500 * MS);
	assert_int_equal(spend_all(&b, &one, 1000, 10, now + 40 * SECOND, MS), 0);
	assert_true(spend_all(&b, &one, 1000, 10, now + 50 * SECOND, MS) > 0);
}

/* Nobody is asked whose a process is as long as there is enough for all. */
static void user_test(void **state)
{
	enum { MANY = 1000 };
	static struct publish_budget b;
	struct meter credits[MANY] = {}, victim = {};
	uint64_t now = SECOND, spent = 0, until;

	(void)state;
	publish_budget__init(&b);
	asked = 0;
	assert_int_equal(spend_all(&b, &victim, 9000, 10, now, 10 * MS), 50 * MS);
	assert_int_equal(asked, 0);
	now += 10 * SECOND;
	for (until = now + 10 * SECOND; now < until; now += 10 * MS)
		for (int i = 0; i < MANY; i++)
			spent += spend_all(&b, &credits[i], 1000 + i, 10, now, MS);
	/* he may have all that comes in while nobody else wants any, and leaves half of what there was */
	assert_true(asked > 0);
	assert_true(spent <= (200 + 100) * MS + 10 * SECOND / 20);
	/* another user has enough */
	spent = 0;
	for (until = now + 10 * SECOND; now < until; now += 10 * MS) {
		for (int i = 0; i < MANY; i++)
			spend_all(&b, &credits[i], 1000 + i, 10, now, MS);
		spent += spend_all(&b, &victim, 9000, 10, now, MS / 10);
	}
	assert_true(spent >= 50 * MS + 10 * SECOND / 100 - 5 * MS);
}

/* A thousand users with large processes do not hold up those with small ones. */
static void size_test(void **state)
{
	enum { MANY = 1000 };
	static struct publish_budget b;
	struct meter credits[MANY] = {}, victim = {};
	uint64_t now = SECOND, spent = 0;

	(void)state;
	publish_budget__init(&b);
	for (int i = 0; i < MANY; i++)
		spent += spend_all(&b, &credits[i], 1000 * (i + 1), 50000, now, MS);
	assert_true(spent >= 200 * MS && spent < 202 * MS);
	assert_int_equal(spend_all(&b, &victim, 2000000, 50000, now, MS), 0);
	assert_int_equal(spend_all(&b, &victim, 2000000, 30, now, MS), 50 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process_test),
		cmocka_unit_test(user_test),
		cmocka_unit_test(size_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
