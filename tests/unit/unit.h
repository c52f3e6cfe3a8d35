/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests: TEST(name) and a body for each, in the order in which they run. There is no list of them and no main(),
 * which is in models/unit_main.c. Includes cmocka, and of the C library what most tests use.
 */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#undef stop /* cmocka 2 has a macro of this name, which tests use for functions of their own */

#include "models/unit.h"

/* The name belongs to base/log.h. */
#undef fail
#undef fail_msg
#define fail_msg(...)                                                                              \
	(print_error("ERROR: " __VA_ARGS__), print_error("\n"), _fail(__FILE__, __LINE__))

static inline uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

#define AT_START(name) __attribute__((constructor)) static void name(void)

/* A test with a set-up and a tear-down of its own, which may be NULL. */
#define TEST_WITH(name, set_up, tear_down)                                                         \
	static void name(void **state);                                                            \
	AT_START(add_##name)                                                                       \
	{                                                                                          \
		add_unit_test(#name, name, set_up, tear_down);                                     \
	}                                                                                          \
	static void name(__attribute__((unused)) void **state)

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* Before and after each test of the file. */
#define EACH_TEST_WITH(set_up, tear_down)                                                          \
	AT_START(set_each)                                                                         \
	{                                                                                          \
		unit_fixtures.before_each = set_up;                                                \
		unit_fixtures.after_each = tear_down;                                              \
	}                                                                                          \
	_Static_assert(1, "")

/* Once, before the first test and after the last. */
#define ALL_TESTS_WITH(set_up, tear_down)                                                          \
	AT_START(set_all)                                                                          \
	{                                                                                          \
		unit_fixtures.before_all = set_up;                                                 \
		unit_fixtures.after_all = tear_down;                                               \
	}                                                                                          \
	_Static_assert(1, "")

#endif
