/* SPDX-License-Identifier: BSD-2-Clause */
/* Which words a walk reads of a stack that perf record has copied. */
#include "unit.h"
#include "session/copied_stacks.c"

#define START 0x7ffc00000ff8ull
#define WORDS 4

TEST(words)
{
	static const uint64_t STACK[WORDS] = {10, 20, 30, 40};
	static const struct {
		int64_t at; /* from START */
		size_t count;
		uint64_t read[WORDS + 1]; /* none: it is not readable */
	} CASES[] = {
		{0, 4, {10, 20, 30, 40}},
		{24, 1, {40}},
		{-8, 2, {UNKNOWN_WORD, 10}},
		{-8, 5, {UNKNOWN_WORD, 10, 20, 30, 40}},
		{-8, 1, {}},
		{-16, 3, {}},
		{24, 2, {}},
		{32, 1, {}},
	};
	char space[sizeof(struct stack_copy) + sizeof(STACK)] __attribute__((aligned(8))) = {};
	struct stack_copy *copy = (void *)space;
	struct walk w = {.copy = copy};

	copy->start = START;
	copy->size = sizeof(STACK);
	memcpy(copy->stack, STACK, sizeof(STACK));
	for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
		uint64_t read[WORDS + 1] = {};
		size_t size = CASES[i].count * sizeof(*read);
		int err = read_memory(&w, read, size, START + (uint64_t)CASES[i].at);

		assert_int_equal(err, CASES[i].read[0] ? 0 : -EFAULT);
		if (!err)
			assert_memory_equal(read, CASES[i].read, size);
	}
	assert_true(UNKNOWN_WORD & 7);
}
