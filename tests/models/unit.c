/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "models/unit.h"

struct unit_fixtures unit_fixtures;

struct unit_test {
	void (*set_up)(void), (*tear_down)(void);
};

static struct CMUnitTest tests[128];
static struct unit_test fixtures[128];
static size_t test_count;

static int run_fixture(void (*fixture)(void))
{
	if (fixture)
		fixture();
	return 0;
}

static int before_all(void **state)
{
	(void)state;
	return run_fixture(unit_fixtures.before_all);
}

static int after_all(void **state)
{
	(void)state;
	return run_fixture(unit_fixtures.after_all);
}

static int before(void **state)
{
	return run_fixture(((const struct unit_test *)*state)->set_up ?: unit_fixtures.before_each);
}

static int after(void **state)
{
	return run_fixture(((const struct unit_test *)*state)->tear_down
				   ?: unit_fixtures.after_each);
}

void add_unit_test(const char *name, void (*body)(void **state), void (*set_up)(void),
		   void (*tear_down)(void))
{
	if (test_count == sizeof(tests) / sizeof(tests[0]))
		abort();
	fixtures[test_count] = (struct unit_test){set_up, tear_down};
	tests[test_count] = (struct CMUnitTest){name, body, before, after, &fixtures[test_count]};
	test_count++;
}

bool has_unit_tests(void)
{
	return test_count > 0;
}

int run_unit_tests(void)
{
	int failed = _cmocka_run_group_tests("tests", tests, test_count, before_all, after_all);

	return failed != 0; /* as an exit status, a number could be that of a skipped test */
}
