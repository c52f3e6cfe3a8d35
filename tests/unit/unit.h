/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests: TEST(name) and a body for each, in the order in which they run, and a main() that returns
 * run_unit_tests(). Includes cmocka and what it needs.
 */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* The name belongs to base/log.h. */
#undef fail
#undef fail_msg
#define fail_msg(...)                                                                              \
	(print_error("ERROR: " __VA_ARGS__), print_error("\n"), _fail(__FILE__, __LINE__))

static struct CMUnitTest unit_tests[128];
static size_t unit_test_count;

static inline void add_test(const char *name, CMUnitTestFunction body, CMFixtureFunction set_up,
			    CMFixtureFunction tear_down)
{
	if (unit_test_count == sizeof(unit_tests) / sizeof(*unit_tests))
		abort();
	unit_tests[unit_test_count++] = (struct CMUnitTest){name, body, set_up, tear_down, NULL};
}

/* A test with a set-up and a tear-down of its own, which may be NULL. */
#define TEST_WITH(name, set_up, tear_down)                                                         \
	static void name(void **state);                                                            \
	__attribute__((constructor)) static void add_##name(void)                                  \
	{                                                                                          \
		add_test(#name, name, set_up, tear_down);                                          \
	}                                                                                          \
	static void name(__attribute__((unused)) void **state)

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* The functions run once, before the first test and after the last. */
static inline int run_unit_tests(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
	return _cmocka_run_group_tests("tests", unit_tests, unit_test_count, set_up, tear_down);
}

/* They run before and after each test. */
static inline int run_unit_tests_each(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
	for (size_t i = 0; i < unit_test_count; i++) {
		unit_tests[i].setup_func = set_up;
		unit_tests[i].teardown_func = tear_down;
	}
	return run_unit_tests(NULL, NULL);
}

#endif
