/* SPDX-License-Identifier: BSD-2-Clause */
/* Idle time of CPUs, and how it divides the ticks that did not run. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <time.h>
#include <unistd.h>

#include "capture/cpu_idle.h"

#define UNKNOWN UINT64_MAX

static void test_parse(void **state)
{
	static const char text[] = "cpu  9 9 9 999 9 0 0\n"
				   "cpu0 1 2 3 400 5 6 7 8 9 10\n"
				   "cpu1 1 2 3 0 0 0\n"
				   "cpu11 1 2 3 77 0 0\n"
				   "cpu12 1 2\n"
				   "intr 5\n";
	uint64_t tick = 1000000000u / sysconf(_SC_CLK_TCK);

	(void)state;
	assert_int_equal(cpu_idle_parse(text, 0), 405 * tick);
	assert_int_equal(cpu_idle_parse(text, 1), 0);
	assert_int_equal(cpu_idle_parse(text, 11), 77 * tick);
	assert_int_equal(cpu_idle_parse(text, 12), UNKNOWN); /* cut off */
	assert_int_equal(cpu_idle_parse(text, 2), UNKNOWN);
	assert_int_equal(cpu_idle_parse("", 0), UNKNOWN);
	assert_int_equal(cpu_idle_parse(NULL, 0), UNKNOWN);
}

static void split(const struct cpu_idle *idle, uint64_t period, uint64_t counted, uint64_t not_run,
		  struct books_event *books)
{
	*books = (struct books_event){.period = period};
	books->count[BOOK_IDLE] = counted;
	books->count[BOOK_NOT_RUN] = not_run;
	cpu_idle__split(idle, books);
	assert_int_equal(books->count[BOOK_IDLE], counted);
	assert_int_equal(books->count[BOOK_NOT_RUN] + books->count[BOOK_IDLE_NOT_RUN], not_run);
}

/* With periods of 1 ns any idleness of CPU 0 is enough; with periods of an hour none is. */
static void test_split(void **state)
{
	struct cpu_idle *idle = cpu_idle__new();
	const struct timespec nap = {.tv_nsec = 50000000};
	struct books_event books;

	(void)state;
	assert_non_null(idle);
	cpu_idle__start(idle);
	cpu_idle__read(idle);
	split(idle, 3600000000000ull, 0, 100, &books);
	assert_int_equal(books.count[BOOK_IDLE_NOT_RUN], 0);
	split(idle, 0, 0, 100, &books); /* not a clock event */
	assert_int_equal(books.count[BOOK_IDLE_NOT_RUN], 0);
	for (int i = 0; i < 200 && !books.count[BOOK_IDLE_NOT_RUN]; i++) {
		nanosleep(&nap, NULL);
		cpu_idle__read(idle);
		split(idle, 1, 5, 100, &books);
	}
	assert_int_equal(books.count[BOOK_IDLE_NOT_RUN], 100);
	assert_int_equal(books.count[BOOK_NOT_RUN], 0);
	split(idle, 1, UINT64_MAX / 2, 100, &books); /* all idleness is counted already */
	assert_int_equal(books.count[BOOK_IDLE_NOT_RUN], 0);
	cpu_idle__free(idle);
	cpu_idle__free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_split),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
