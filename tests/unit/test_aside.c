/* SPDX-License-Identifier: BSD-2-Clause */
/* Events that were set aside come out by their times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "session/aside.h"

struct numbered {
	struct event_header header;
	uint64_t number;
	char more[64]; /* as many of them as the size says */
};

struct received {
	uint64_t numbers[4096];
	size_t count;
	uint64_t refused; /* number at which an error is returned, 0 none */
};

static void add(struct aside *a, uint64_t time, uint64_t number)
{
	struct numbered event = {
		.header = {.size = offsetof(struct numbered, more) + 8 * (number % 8),
			   .type = EVENT_COMM,
			   .time = time},
		.number = number,
	};

	assert_int_equal(aside__add(a, &event.header), 0);
}

static int receive(void *context, struct event_header *event)
{
	const struct numbered *numbered = (const void *)event;
	struct received *h = context;

	assert_int_equal(event->size, offsetof(struct numbered, more) + 8 * (numbered->number % 8));
	h->numbers[h->count++] = numbered->number;
	return h->refused && numbered->number == h->refused ? -ECANCELED : 0;
}

static void order_test(void **state)
{
	struct aside a = {};
	struct received h = {};

	(void)state;
	add(&a, 30, 3);
	add(&a, 10, 1);
	add(&a, 20, 2);
	add(&a, 30, 4); /* as old as 3, and later */
	assert_int_equal(aside__release(&a, 30, receive, &h), 0);
	assert_int_equal(h.count, 2);
	add(&a, 25, 5);
	assert_int_equal(aside__release(&a, 31, receive, &h), 0);
	assert_int_equal(h.count, 5);
	assert_memory_equal(h.numbers, ((uint64_t[]){1, 2, 5, 3, 4}), 5 * sizeof(uint64_t));
	assert_int_equal(aside__release(&a, UINT64_MAX, receive, &h), 0);
	assert_int_equal(h.count, 5);
	aside__fini(&a);
}

static void error_test(void **state)
{
	struct aside a = {};
	struct received h = {.refused = 2};

	(void)state;
	for (uint64_t i = 1; i < 5; i++)
		add(&a, i, i);
	assert_int_equal(aside__release(&a, 100, receive, &h), -ECANCELED);
	assert_int_equal(h.count, 2);
	assert_int_equal(aside__release(&a, 100, receive, &h), 0);
	assert_int_equal(h.count, 4);
	aside__fini(&a);
}

static int receive_two(void *context, struct event_header *event)
{
	struct received *h = context;

	return h->count % 2 ? h->count++, ASIDE_LATER : receive(context, event);
}

/* Who has had enough gets the rest the next time. */
static void later_test(void **state)
{
	struct aside a = {};
	struct received h = {};

	(void)state;
	assert_int_equal(aside__oldest(&a), UINT64_MAX);
	for (uint64_t i = 1; i < 5; i++)
		add(&a, 10 * i, i);
	for (uint64_t i = 1; i < 5; i++) {
		assert_int_equal(aside__release(&a, 100, receive_two, &h), 0);
		assert_int_equal(h.count, 2 * i - (i == 4));
		assert_int_equal(h.numbers[2 * (i - 1)], i);
		assert_int_equal(aside__oldest(&a), i < 4 ? 10 * (i + 1) : UINT64_MAX);
	}
	aside__fini(&a);
}

/* Some stay each time, and none is lost, told twice or out of order. */
static void many_rounds_test(void **state)
{
	struct aside a = {};
	uint64_t seed = 1, number = 0, last = 0;

	(void)state;
	for (uint64_t round = 1; round < 200; round++) {
		struct received h = {};

		for (int i = 0; i < 20; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			number++;
			/* the time is in the number */
			add(&a, round * 1000 + (seed >> 33) % 1500,
			    (round * 1000 + (seed >> 33) % 1500) << 16 | (number & 0xffff));
		}
		assert_int_equal(aside__release(&a, round * 1000 + 1000, receive, &h), 0);
		for (size_t i = 0; i < h.count; i++) {
			assert_true(h.numbers[i] >> 16 < round * 1000 + 1000);
			assert_true(h.numbers[i] >> 16 >= last);
			last = h.numbers[i] >> 16;
		}
		number -= h.count;
	}
	assert_int_equal(number, a.order.count);
	aside__fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_test),
		cmocka_unit_test(error_test),
		cmocka_unit_test(later_test),
		cmocka_unit_test(many_rounds_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
