/* SPDX-License-Identifier: BSD-2-Clause */
/* Return addresses that uretprobes have replaced are put back into what the walk reads of a stack. */

/* its surroundings of the walk */
#include "unit.h"
#include "unwind/unwind.c"

#define TRAMPOLINE UINT64_C(0x7fffffffe000)
#define STACK	   UINT64_C(0x7f0000000000)
#define PAGES	   3
#define CODE	   UINT64_C(0x400000)
#define WORD_COUNT (PAGES * UNWIND_WINDOW / 8)

static uint64_t stack[WORD_COUNT];

static int read_stack(void *context, void *to, size_t size, uint64_t address)
{
	if (address - STACK > sizeof(stack) - size)
		return -1;
	memcpy(to, (char *)stack + (address - STACK), size);
	return 0;
}

static const struct unwind_range CODE_RANGE = {
	.start = CODE, .end = CODE + 0x1000, .instead = UNWIND_NO_TABLE};
static const struct unwind_space SPACE = {.ranges = &CODE_RANGE, .count = 1, .read = read_stack};

static struct walk walk;

static struct unwind_replaced *begin(void)
{
	memset(&walk, 0, sizeof(walk));
	memset(stack, 0, sizeof(stack));
	walk.space = &SPACE;
	unwind_begin(&walk.state, false);
	walk.state.replaced.trampoline = TRAMPOLINE;
	return &walk.state.replaced;
}

static void replace(struct unwind_replaced *r, size_t word, uint64_t address)
{
	r->of[r->count].at = STACK + word * 8;
	r->of[r->count++].address = address;
	stack[word] = TRAMPOLINE;
}

static void assert_pair(size_t word, uint64_t low, uint64_t high)
{
	__u64 pair[2];

	assert_int_equal(unwind_read_pair(&walk.state, STACK + word * 8, &pair[0], &pair[1]), 0);
	assert_int_equal(pair[0], low);
	assert_int_equal(pair[1], high);
}

/* The first and last words of a page, and both words of a pair that straddles two. */
TEST(put_back)
{
	struct unwind_replaced *r = begin();
	const size_t page = UNWIND_WINDOW / 8;

	replace(r, 3, CODE + 1);
	replace(r, page - 1, CODE + 2);
	replace(r, page, CODE + 3);
	replace(r, WORD_COUNT - 1, CODE + 4);
	assert_pair(2, 0, CODE + 1);
	assert_pair(3, CODE + 1, 0);
	assert_pair(page - 2, 0, CODE + 2);
	assert_pair(page - 1, CODE + 2, CODE + 3);
	assert_pair(page, CODE + 3, 0);
	assert_pair(WORD_COUNT - 2, 0, CODE + 4);
}

/* A word that is another one by now, one that is listed nowhere, and what is behind the list. */
TEST(left_alone)
{
	struct unwind_replaced *r = begin();

	replace(r, 4, CODE + 1);
	stack[4] = CODE + 7;
	stack[5] = TRAMPOLINE;
	replace(r, 6, CODE + 2);
	r->count--;
	assert_pair(4, CODE + 7, TRAMPOLINE);
	assert_pair(6, TRAMPOLINE, 0);
}

TEST(as_many_as_there_may_be)
{
	struct unwind_replaced *r = begin();

	for (size_t i = 0; i < UNWIND_REPLACED_MAX; i++)
		replace(r, 2 * i, CODE + i);
	for (size_t i = 0; i < UNWIND_REPLACED_MAX; i++)
		assert_pair(2 * i, CODE + i, 0);
}

/* In memory of which a part is a copy of the stack: what is around it stays. */
TEST(within_its_room)
{
	struct unwind_replaced *r = begin();
	uint64_t bytes[8], copy[8];

	replace(r, 10, CODE + 1);
	r->of[r->count].at = STACK + 10 * 8 + 4; /* where no word is */
	r->of[r->count++].address = CODE + 2;
	for (uint64_t first = 0; first < 32; first++)
		for (uint32_t size = 0; size <= 4; size++) {
			for (size_t i = 0; i < 8; i++)
				bytes[i] = copy[i] = TRAMPOLINE;
			for (uint32_t i = 0; i < r->count; i++)
				unwind_put_back(r, i, bytes, sizeof(bytes), 16, size * 8,
						STACK + first * 8);
			if (first <= 10 && 10 < first + size)
				copy[2 + 10 - first] = CODE + 1;
			assert_memory_equal(bytes, copy, sizeof(bytes));
		}
}
