/* SPDX-License-Identifier: BSD-2-Clause */
/* When the agent's windows end; how it starts after it has failed; what it reports to its manager. */
#include <sys/socket.h>
#include <sys/un.h>

#include "unit.h"
#include "agent/service_unit.h"
#include "agent/window_clock.h"

#define SECOND UINT64_C(1000000000)
#define LENGTH (15 * SECOND)

/* A machine whose clocks all run. */
struct machine {
	struct clock_readings now;
};

static void pass(struct machine *m, uint64_t ns)
{
	m->now.monotonic += ns;
	m->now.realtime += ns;
	m->now.boottime += ns;
}

static struct machine new_machine(void)
{
	return (struct machine){{1000 * SECOND, 1700000000 * SECOND + 123, 1000 * SECOND + 5}};
}

/* Until a window ends; how long that took. */
static uint64_t wait_for_end(struct window_clock *c, struct machine *m)
{
	for (uint64_t waited = 0; waited < 100 * SECOND; waited += SECOND / 10) {
		if (window_clock__ends(c, &m->now))
			return waited;
		pass(m, SECOND / 10);
	}
	fail_msg("no window ends");
	return 0;
}

TEST(windows_end_at_equal_intervals_without_drift)
{
	struct machine m = new_machine();
	struct window_clock c;
	uint64_t first;

	window_clock__init(&c, LENGTH, "0123", &m.now);
	first = wait_for_end(&c, &m);
	assert_true(first >= LENGTH / 2 && first <= LENGTH * 3 / 2 + SECOND / 10);
	for (int i = 0; i < 20; i++) {
		uint64_t end = c.end;

		assert_in_range(wait_for_end(&c, &m), LENGTH - SECOND / 5, LENGTH + SECOND / 5);
		/* no drift, whenever it was looked at */
		assert_int_equal(c.end - end, LENGTH);
	}
	assert_int_equal(c.steps + c.suspends, 0);
	window_clock__set_length(&c, 30 * SECOND);
	wait_for_end(&c, &m);
	assert_in_range(wait_for_end(&c, &m), 15 * SECOND, 46 * SECOND);
	assert_in_range(wait_for_end(&c, &m), 30 * SECOND - SECOND / 5, 30 * SECOND + SECOND / 5);
}

TEST(window_ends_of_a_fleet_spread_over_the_length)
{
	unsigned int parts[10] = {};

	for (int i = 0; i < 1000; i++) {
		struct machine m = new_machine();
		struct window_clock c;
		char id[33];

		snprintf(id, sizeof(id), "%032x", i);
		window_clock__init(&c, LENGTH, id, &m.now);
		parts[(c.end - m.now.monotonic) % LENGTH * 10 / LENGTH]++;
	}
	for (int i = 0; i < 10; i++)
		assert_in_range(parts[i], 50, 200);
}

TEST(large_clock_steps_and_suspends_end_a_window)
{
	struct machine m = new_machine();
	struct window_clock c;

	window_clock__init(&c, LENGTH, "", &m.now);
	wait_for_end(&c, &m);
	pass(&m, SECOND);
	m.now.realtime += SECOND / 2; /* NTP's slewing, or a small step */
	assert_false(window_clock__ends(&c, &m.now));
	m.now.realtime -= 3600 * SECOND;
	assert_true(window_clock__ends(&c, &m.now));
	assert_int_equal(c.steps, 1);
	assert_false(window_clock__ends(&c, &m.now));
	/* the machine sleeps for an hour: CLOCK_MONOTONIC stands still */
	m.now.realtime += 3600 * SECOND;
	m.now.boottime += 3600 * SECOND;
	assert_true(window_clock__ends(&c, &m.now));
	assert_int_equal(c.suspends, 1);
	assert_int_equal(c.steps, 1);
	/* 1970 */
	m.now.realtime = 5;
	assert_true(window_clock__ends(&c, &m.now));
	assert_in_range(wait_for_end(&c, &m), LENGTH / 2, LENGTH * 3 / 2 + SECOND / 5);
}

/* ---- starts ---------------------------------------------------------------------------------- */

static char directory[] = "/tmp/start-log-XXXXXX";

static void make_directory(void)
{
	assert_true(mkdtemp(directory));
}

static void remove_directory(void)
{
	(void)start_log__end(directory);
	assert_int_equal(rmdir(directory), 0);
}

static bool is_safe(uint64_t now)
{
	bool safe;

	assert_int_equal(start_log__begin(directory, now, &safe), 0);
	return safe;
}

TEST(starts_after_repeated_failures_are_safe_ones)
{
	uint64_t now = 1700000000 * SECOND;
	bool safe;

	for (int i = 0; i < 3; i++)
		assert_false(is_safe(now + i * SECOND));
	assert_true(is_safe(now + 3 * SECOND));
	/* ten minutes later it is tried again */
	assert_false(is_safe(now + START_LOG_NS + 10 * SECOND));
	assert_int_equal(start_log__end(directory), 0);
	for (int i = 0; i < 40; i++) {
		assert_false(is_safe(now + i));
		assert_int_equal(start_log__end(directory), 0);
	}
	for (int i = 0; i < 40; i++)
		assert_int_equal(is_safe(now + i), i >= 3);
	/* the clock was set back */
	assert_false(is_safe(now - 3600 * SECOND));
	assert_int_equal(start_log__begin("/nonexistent", now, &safe), -ENOENT);
}

TEST(a_damaged_start_log_counts_as_empty)
{
	char path[64];
	FILE *f;

	assert_int_equal(start_log__end(directory), 0);
	snprintf(path, sizeof(path), "%s/starts", directory);
	f = fopen(path, "w");
	assert_non_null(f);
	for (int i = 0; i < 5000; i++)
		fputc(i, f);
	fclose(f);
	assert_false(is_safe(SECOND));
	/* a path without a file is replaced or reported */
	assert_int_equal(start_log__end(directory), 0);
	assert_int_equal(symlink("/dev/full", path), 0);
	assert_false(is_safe(SECOND));
}

/* ---- the manager ----------------------------------------------------------------------------- */

TEST(notifications_reach_the_manager_and_never_block)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "\0sysprof-test-notify"};
	char name[64] = "@sysprof-test-notify", text[64];
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ssize_t size;

	assert_int_equal(bind(fd, (struct sockaddr *)&address,
			      offsetof(struct sockaddr_un, sun_path) + strlen(name)),
			 0);
	unsetenv("NOTIFY_SOCKET");
	notify_manager("READY=1");
	setenv("NOTIFY_SOCKET", name, 1);
	notify_manager("READY=1");
	size = recv(fd, text, sizeof(text), MSG_DONTWAIT);
	assert_int_equal(size, 7);
	assert_memory_equal(text, "READY=1", 7);
	/* a manager that does not read delays nothing */
	for (int i = 0; i < 10000; i++)
		notify_manager("WATCHDOG=1");
	close(fd);
	notify_manager("STOPPING=1");
	setenv("NOTIFY_SOCKET", "relative", 1);
	notify_manager("STOPPING=1");
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	assert_int_equal(notify_interval(), 0);
	setenv("WATCHDOG_USEC", "60000000", 1);
	assert_int_equal(notify_interval(), 30 * SECOND);
	setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(notify_interval(), 0);
	setenv("WATCHDOG_USEC", "-5", 1);
	assert_int_equal(notify_interval(), 0);
}

ALL_TESTS_WITH(make_directory, remove_directory);
