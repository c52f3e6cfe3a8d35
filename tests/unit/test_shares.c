/* SPDX-License-Identifier: BSD-2-Clause */
/* Who gives way when a table is full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "procfs/shares.h"

static void add(struct shares *s, uint64_t owner, unsigned int count)
{
	while (count--)
		assert_int_equal(shares__add(s, owner), 0);
}

static void most_test(void **state)
{
	struct shares s = {};
	uint64_t most = 99;

	(void)state;
	assert_false(shares__most(&s, 1, &most)); /* nobody has anything */
	add(&s, 1, 10);
	assert_false(shares__most(&s, 1, &most)); /* he himself */
	assert_true(shares__most(&s, 2, &most));
	assert_int_equal(most, 1);
	add(&s, 2, 9);
	assert_false(shares__most(&s, 2, &most)); /* he would have as many */
	shares__drop(&s, 2);
	assert_true(shares__most(&s, 2, &most));
	add(&s, 3, 11);
	assert_true(shares__most(&s, 4, &most));
	assert_int_equal(most, 3);
	assert_false(shares__most(&s, 1, &most));
	for (unsigned int i = 0; i < 11; i++)
		shares__drop(&s, 3);
	shares__drop(&s, 3); /* has none */
	assert_true(shares__most(&s, 4, &most));
	assert_int_equal(most, 1);
	assert_int_equal(s.all.count, 2);
	shares__fini(&s);
}

/* However many one takes, another gets as much as he asks for, up to the half. */
static void full_test(void **state)
{
	struct shares s = {};
	uint64_t most;
	unsigned int got = 0;

	(void)state;
	add(&s, 7, 1000);
	while (shares__most(&s, 8, &most)) {
		assert_int_equal(most, 7);
		shares__drop(&s, most);
		add(&s, 8, 1);
		got++;
	}
	assert_in_range(got, 499, 500);
	shares__fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(most_test),
		cmocka_unit_test(full_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
