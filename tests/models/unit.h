/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests of a program, which add themselves before main() runs. See unit/unit.h. */
#ifndef TESTS_MODELS_UNIT_H
#define TESTS_MODELS_UNIT_H

#include <stdbool.h>

struct unit_fixtures {
	int (*before_all)(void **state);
	int (*after_all)(void **state);
	int (*before_each)(void **state);
	int (*after_each)(void **state);
};

extern struct unit_fixtures unit_fixtures;

void add_unit_test(const char *name, void (*body)(void **state), int (*set_up)(void **state),
		   int (*tear_down)(void **state));

bool has_unit_tests(void);
/* Runs them; 0: none has failed. */
int run_unit_tests(void);

#endif
