/* SPDX-License-Identifier: BSD-2-Clause */
/* Idle time of CPUs, and how it divides the ticks that did not run. */
#include "unit.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "live/capture/cpu_idle.h"

#define MS 1000000ull

static uint64_t idle_of_cpu_0(void)
{
	_cleanup_free_ char *text = NULL;
	size_t size;

	assert_int_equal(read_file_at(AT_FDCWD, "/proc/stat", 4u << 20, &text, &size), 0);
	return cpu_idle_parse(text, 0);
}

/* Waits until CPU 0 was idle for `ns`. False: it was busy for 2 s. */
static bool await_idle_time(uint64_t ns)
{
	uint64_t until = monotonic_ns() + 2000 * MS, end = idle_of_cpu_0() + ns;

	while (idle_of_cpu_0() < end) {
		if (monotonic_ns() > until) {
			print_message("CPU 0 was busy for 2 s: its idle time is not tested\n");
			return false;
		}
		usleep(10000);
	}
	return true;
}

static void check_move(uint64_t ticks, uint64_t idle, uint64_t not_run, uint64_t moved)
{
	struct books_event books = {};

	books.count[BOOK_IDLE] = idle;
	books.count[BOOK_NOT_RUN] = not_run;
	cpu_idle_move(&books, ticks);
	assert_int_equal(books.count[BOOK_IDLE], idle);
	assert_int_equal(books.count[BOOK_NOT_RUN], not_run - moved);
	assert_int_equal(books.count[BOOK_IDLE_NOT_RUN], moved);
}

TEST(ticks_not_run_become_idle_within_the_idle_time)
{
	check_move(50, 20, 100, 30);
	check_move(50, 0, 10, 10);  /* no more than there are */
	check_move(50, 50, 10, 0);  /* all idleness is counted already */
	check_move(50, 500, 10, 0); /* and more */
	check_move(0, 0, 10, 0);    /* never idle */
}

/* Whatever this machine does meanwhile, the sum stays. */
TEST(splitting_keeps_the_sum_of_ticks_not_run)
{
	struct cpu_idle *idle = cpu_idle__new();
	struct books_event books = {.period = 1}, no_clock = {};
	bool was_idle;

	assert_non_null(idle);
	books.count[BOOK_NOT_RUN] = 100;
	cpu_idle__split(idle, &books); /* nothing was read: nothing is known */
	assert_int_equal(books.count[BOOK_NOT_RUN], 100);
	cpu_idle__start(idle);
	was_idle = await_idle_time(20 * MS);
	cpu_idle__read(idle);
	cpu_idle__split(idle, &books);
	assert_int_equal(books.count[BOOK_NOT_RUN] + books.count[BOOK_IDLE_NOT_RUN], 100);
	assert_true(!was_idle || books.count[BOOK_IDLE_NOT_RUN] == 100);
	no_clock.count[BOOK_NOT_RUN] = 10;
	cpu_idle__split(idle, &no_clock); /* not a clock event: it has no period */
	assert_int_equal(no_clock.count[BOOK_NOT_RUN], 10);
	cpu_idle__free(idle);
	cpu_idle__free(NULL);
}

/* At another period idle time that was counted stays what it was, in ticks of its own; only what comes is counted anew. */
TEST(idle_ticks_never_decrease_when_the_period_changes)
{
	static const uint64_t PERIODS[] = {1000000, 10000000, 142857142, 1000000};
	struct cpu_idle *idle = cpu_idle__new();
	uint64_t moved = 0, least;
	bool was_idle;

	cpu_idle__start(idle);
	was_idle = await_idle_time(20 * MS);
	for (int i = 0; i < 24; i++) {
		struct books_event books = {.period = PERIODS[i / 6]};

		books.count[BOOK_NOT_RUN] = 1000000;
		usleep(5000);
		cpu_idle__read(idle);
		cpu_idle__split(idle, &books);
		assert_int_equal(books.count[BOOK_NOT_RUN] + books.count[BOOK_IDLE_NOT_RUN],
				 1000000);
		least = moved;
		assert_true(books.count[BOOK_IDLE_NOT_RUN] >= least);
		moved = books.count[BOOK_IDLE_NOT_RUN];
		assert_true(!was_idle || moved > 0);
	}
	/* a thousand a second at most, of a time that is no longer than this has run */
	assert_true(moved <= 60000);
	cpu_idle__free(idle);
}

TEST(ticks_reported_by_a_window_are_never_taken_back)
{
	struct cpu_idle *idle = cpu_idle__new();
	struct books_event window = {.cpu = 1, .period = 1}, books = {.cpu = 1, .period = 1};
	struct books_event other = {.cpu = 2, .period = 1};

	assert_non_null(idle);
	window.count[BOOK_NOT_RUN] = 60;
	window.count[BOOK_IDLE_NOT_RUN] = 40;
	assert_int_equal(cpu_idle__mark(idle, &window), 0);
	/* no idle time is known: by that all of them were losses */
	books.count[BOOK_NOT_RUN] = 110;
	cpu_idle__split(idle, &books);
	assert_int_equal(books.count[BOOK_NOT_RUN], 70);
	assert_int_equal(books.count[BOOK_IDLE_NOT_RUN], 40);
	assert_int_equal(cpu_idle__mark(idle, &books), 0);
	books.count[BOOK_NOT_RUN] = 10;
	books.count[BOOK_IDLE_NOT_RUN] = 110;
	cpu_idle__split(idle, &books);
	assert_int_equal(books.count[BOOK_NOT_RUN], 70);
	assert_int_equal(books.count[BOOK_IDLE_NOT_RUN], 50);
	other.count[BOOK_NOT_RUN] = 5;
	cpu_idle__split(idle, &other);
	assert_int_equal(other.count[BOOK_NOT_RUN], 5);
	cpu_idle__free(idle);
}

static uint64_t moved_of(struct cpu_idle *idle, uint32_t cpu)
{
	struct books_event books = {.cpu = cpu, .period = 1};

	books.count[BOOK_NOT_RUN] = UINT64_C(1) << 60;
	cpu_idle__read(idle);
	cpu_idle__split(idle, &books);
	return books.count[BOOK_IDLE_NOT_RUN];
}

TEST(a_cpu_that_returns_keeps_its_idle_time)
{
	struct cpu_idle *idle = cpu_idle__new();
	uint64_t before, after;
	bool was_idle;

	assert_non_null(idle);
	cpu_idle__start(idle);
	was_idle = await_idle_time(50 * MS);
	before = moved_of(idle, 0);
	assert_true(!was_idle || before > 0);
	assert_int_equal(cpu_idle__came(idle, 0), 0);
	after = moved_of(idle, 0);
	assert_true(after >= before);
	assert_int_equal(cpu_idle__came(idle, 0), 0);
	assert_true(moved_of(idle, 0) >= after);
	assert_int_equal(moved_of(idle, 9999), 0);
	assert_int_equal(cpu_idle__came(idle, 9999), 0);
	assert_int_equal(moved_of(idle, 9999), 0);
	cpu_idle__free(idle);
}
