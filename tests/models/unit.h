/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests of a program, which add themselves before main() runs. See unit/unit.h. */
#ifndef TESTS_MODELS_UNIT_H
#define TESTS_MODELS_UNIT_H

#include <stdbool.h>

struct unit_fixtures {
	void (*before_all)(void);
	void (*after_all)(void);
	void (*before_each)(void);
	void (*after_each)(void);
};

extern struct unit_fixtures unit_fixtures;

void add_unit_test(const char *name, void (*body)(void **state), void (*set_up)(void),
		   void (*tear_down)(void));

bool has_unit_tests(void);
/* Runs them; 0: none has failed. */
int run_unit_tests(void);

#endif
