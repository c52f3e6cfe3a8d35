/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "models/unit.h"

struct unit_fixtures unit_fixtures;

static struct CMUnitTest tests[128];
static size_t test_count;

void add_unit_test(const char *name, void (*body)(void **state), int (*set_up)(void **state),
		   int (*tear_down)(void **state))
{
	if (test_count == sizeof(tests) / sizeof(tests[0]))
		abort();
	tests[test_count++] = (struct CMUnitTest){name, body, set_up, tear_down, NULL};
}

bool has_unit_tests(void)
{
	return test_count > 0;
}

int run_unit_tests(void)
{
	int failed;

	for (size_t i = 0; i < test_count; i++) {
		if (!tests[i].setup_func)
			tests[i].setup_func = unit_fixtures.before_each;
		if (!tests[i].teardown_func)
			tests[i].teardown_func = unit_fixtures.after_each;
	}
	failed = _cmocka_run_group_tests("tests", tests, test_count, unit_fixtures.before_all,
					 unit_fixtures.after_all);
	return failed != 0; /* as an exit status, a number could be that of a skipped test */
}
