/* SPDX-License-Identifier: BSD-2-Clause */
/* How much is read of whose files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "jitwatch/jit_ledger.h"

#define BEGAN  7000000000ull
#define MINUTE 60000000000ull

static void bytes_test(void **state)
{
	struct jit_ledger l = {.began = BEGAN};

	(void)state;
	jit_ledger__charge(&l, 1, JIT_USER_BYTES - 1);
	assert_int_equal(jit_ledger__ask(&l, 1, BEGAN), JIT_FILE_STATE_FOLLOWED);
	jit_ledger__charge(&l, 1, 1);
	assert_int_equal(jit_ledger__ask(&l, 1, BEGAN), JIT_FILE_STATE_USER_LIMIT);
	assert_int_equal(jit_ledger__ask(&l, 2, BEGAN), JIT_FILE_STATE_FOLLOWED);
	jit_ledger__charge(&l, 2, JIT_ALL_BYTES - JIT_USER_BYTES);
	assert_int_equal(jit_ledger__ask(&l, 3, BEGAN), JIT_FILE_STATE_LIMIT);
	/* as much again in ten minutes */
	assert_int_equal(jit_ledger__ask(&l, 1, BEGAN + MINUTE), JIT_FILE_STATE_FOLLOWED);
	jit_ledger__charge(&l, 1, JIT_USER_BYTES);
	assert_int_equal(jit_ledger__ask(&l, 1, BEGAN + 9 * MINUTE), JIT_FILE_STATE_USER_LIMIT);
	assert_int_equal(jit_ledger__ask(&l, 1, BEGAN + 11 * MINUTE), JIT_FILE_STATE_FOLLOWED);
}

static void files_test(void **state)
{
	struct jit_ledger l = {.began = BEGAN};

	(void)state;
	for (unsigned int i = 0; i < JIT_USER_FILES; i++)
		assert_true(jit_ledger__add_file(&l, 1));
	assert_false(jit_ledger__add_file(&l, 1));
	assert_true(jit_ledger__add_file(&l, 2));
	jit_ledger__drop_file(&l, 1);
	assert_true(jit_ledger__add_file(&l, 1));
	jit_ledger__drop_file(&l, 3);
	assert_true(jit_ledger__add_file(&l, 3));
}

static void deny_test(void **state)
{
	struct jit_ledger l = {.began = BEGAN};

	(void)state;
	jit_ledger__deny(&l, 1);
	assert_int_equal(jit_ledger__ask(&l, 1, BEGAN), JIT_FILE_STATE_HUNG);
	assert_int_equal(jit_ledger__ask(&l, 2, BEGAN), JIT_FILE_STATE_FOLLOWED);
	/* who is not denied keeps an account of its own, however many there are */
	for (uint32_t user = 3; user < 5000; user++)
		jit_ledger__charge(&l, user, JIT_USER_BYTES);
	assert_int_equal(jit_ledger__ask(&l, 2, BEGAN), JIT_FILE_STATE_LIMIT);
	assert_int_equal(jit_ledger__ask(&l, 1, BEGAN), JIT_FILE_STATE_HUNG);
	assert_int_equal(jit_ledger__ask(&l, 4999, BEGAN), JIT_FILE_STATE_USER_LIMIT);
}

/* The sums of a watcher that hangs are those of the next; what it has nonsense in is bounded. */
static void go_on_test(void **state)
{
	static struct jit_ledger old = {.began = BEGAN}, l;

	(void)state;
	jit_ledger__charge(&old, 1, JIT_USER_BYTES);
	jit_ledger__charge(&old, 2, JIT_USER_BYTES - 1);
	jit_ledger__deny(&old, 3);
	for (unsigned int i = 0; i < JIT_USER_FILES; i++)
		assert_true(jit_ledger__add_file(&old, 2));
	jit_ledger__go_on(&l, &old);
	assert_int_equal(jit_ledger__ask(&l, 1, BEGAN), JIT_FILE_STATE_USER_LIMIT);
	assert_int_equal(jit_ledger__ask(&l, 2, BEGAN), JIT_FILE_STATE_FOLLOWED);
	assert_int_equal(jit_ledger__ask(&l, 3, BEGAN), JIT_FILE_STATE_HUNG);
	assert_true(jit_ledger__add_file(&l, 2)); /* the new watcher's own */
	jit_ledger__charge(&l, 2, 1);
	assert_int_equal(jit_ledger__ask(&l, 2, BEGAN), JIT_FILE_STATE_USER_LIMIT);
	assert_int_equal(jit_ledger__ask(&l, 4, BEGAN), JIT_FILE_STATE_LIMIT);
	old.count = ~0u;
	jit_ledger__go_on(&l, &old);
	assert_int_equal(l.count, JIT_ACCOUNTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_test),
		cmocka_unit_test(files_test),
		cmocka_unit_test(deny_test),
		cmocka_unit_test(go_on_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
