/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel finds common frames in a loop of its own: in forged states and stacks its result is that of the whole walk, or
 * it leaves the frame to it.
 */

/* its surroundings of the walk */
#include "unit.h"
#include "unwind/unwind.c"

#define CODE	   0x400000u
#define CODE_SIZE  0x10000u
#define MADE	   0x900000u
#define STACK	   0x7f0000000000ull
#define STACK_SIZE 0x4000u
#define ROUNDS	   400000u

static unsigned char stack[STACK_SIZE];

static int read_stack(void *context, void *to, size_t size, uint64_t address)
{
	if (address - STACK > STACK_SIZE - size)
		return -1;
	memcpy(to, stack + (address - STACK), size);
	return 0;
}

/* Code without tables; rules are given by hand. */
static const struct unwind_range RANGES[] = {
	{.start = CODE, .end = CODE + CODE_SIZE, .instead = UNWIND_NO_TABLE},
	{.start = MADE, .end = MADE + CODE_SIZE, .instead = UNWIND_NO_TABLE},
};

static const struct unwind_space SPACE = {.ranges = RANGES, .count = 2, .read = read_stack};

static uint64_t random_below(uint64_t limit)
{
	return (uint64_t)random() % limit;
}

/* Return addresses of both mappings, and what is none. */
static uint64_t random_word(void)
{
	switch (random_below(8)) {
	case 0:
		return 0;
	case 1:
		return (uint64_t)random() << 30;
	case 2:
		return MADE + random_below(CODE_SIZE);
	case 3:
		return STACK + random_below(STACK_SIZE / 8) * 8;
	default:
		return CODE + random_below(CODE_SIZE + 4);
	}
}

static void random_stack(void)
{
	for (size_t i = 0; i < STACK_SIZE; i += 8) {
		uint64_t word = random_word();

		memcpy(stack + i, &word, sizeof(word));
	}
}

static struct unwind_rule random_rule(void)
{
	static const int16_t OFFSETS[] = {-8, -16, -24, -32, 8, -12};

	return (struct unwind_rule){
		.cfa = random_below(8) ? UNWIND_CFA_SP + random_below(2) : random_below(6),
		.cfa_register = random_below(3) ? UNWIND_X86_RSP : 3 + random_below(4),
		.cfa_offset =
			(int32_t)(random_below(16) ? random_below(40) * 8 : random_below(9000)) - 8,
		.fp = random_below(4),
		.rbx = random_below(3),
		.ra = random_below(8) ? UNWIND_RA_AT_CFA : random_below(3),
		.fp_offset = OFFSETS[random_below(6)],
		.ra_offset = OFFSETS[random_below(8) ? 0 : random_below(6)],
		.cfa_addend = OFFSETS[random_below(6)],
	};
}

/* A frame that has made a call; the window may be empty, or end anywhere in its page. */
static void random_state(struct walk *w)
{
	struct unwind_state *s = &w->state;

	memset(w, 0, sizeof(*w));
	w->space = &SPACE;
	unwind_begin(s, false);
	s->sp = STACK + random_below(STACK_SIZE / 8) * 8;
	s->fp = random_below(4) ? s->sp + random_below(64) * 8 : random_word();
	s->ip = CODE + 1 + random_below(CODE_SIZE);
	s->general[UNWIND_X86_RBX] = random_word();
	s->rbx_known = random_below(2);
	s->fp_lost = !random_below(4);
	s->all_known = false;
	s->after_call = true;
	s->kind = FRAME_POINTER;
	assert_true(unwind_in_mapping(s, s->ip - 1));
	if (random_below(4))
		unwind_read_pair(s, s->sp & ~(uint64_t)random_below(64), &s->low, &s->high);
}

static void assert_same(const struct unwind_state *common, const struct unwind_state *whole)
{
	assert_int_equal(common->ip, whole->ip);
	assert_int_equal(common->sp, whole->sp);
	assert_int_equal(common->fp, whole->fp);
	assert_int_equal(common->kind, whole->kind);
	assert_int_equal(common->fp_lost, whole->fp_lost);
	assert_int_equal(common->rbx_known, whole->rbx_known);
	if (whole->rbx_known)
		assert_int_equal(common->general[UNWIND_X86_RBX], whole->general[UNWIND_X86_RBX]);
	assert_int_equal(common->all_known, whole->all_known);
	assert_int_equal(common->after_call, whole->after_call);
	assert_memory_equal(&common->mapping, &whole->mapping, sizeof(whole->mapping));
}

/* What the whole walk starts from if the frame is left to it. */
static void assert_untouched(const struct unwind_state *after, const struct unwind_state *before)
{
	assert_int_equal(after->ip, before->ip);
	assert_int_equal(after->sp, before->sp);
	assert_int_equal(after->fp, before->fp);
	assert_int_equal(after->kind, before->kind);
	assert_int_equal(after->fp_lost, before->fp_lost);
	assert_int_equal(after->rbx_known, before->rbx_known);
	assert_int_equal(after->all_known, before->all_known);
	assert_memory_equal(after->general, before->general, sizeof(before->general));
}

static struct walk first, common, whole;

TEST(rules)
{
	unsigned int found = 0;

	srandom(1);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct unwind_rule rule = random_rule();
		int step;

		if (!(i & 1023))
			random_stack();
		random_state(&first);
		common = whole = first;
		step = unwind_by_common_rule(&common.state, &rule);
		if (step != UNWIND_STEP_ON) {
			assert_int_equal(step, UNWIND_NOT_COMMON);
			assert_untouched(&common.state, &first.state);
			continue;
		}
		found++;
		assert_int_equal(unwind_by_rule(&whole.state, &rule, whole.state.ip - 1),
				 UNWIND_STEP_ON);
		assert_same(&common.state, &whole.state);
	}
	assert_in_range(found, ROUNDS / 20, ROUNDS);
}

TEST(pointers)
{
	unsigned int found = 0;

	srandom(2);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		int step;

		if (!(i & 1023))
			random_stack();
		random_state(&first);
		common = whole = first;
		step = unwind_by_common_pointer(&common.state);
		if (step != UNWIND_STEP_ON) {
			assert_int_equal(step, UNWIND_NOT_COMMON);
			assert_untouched(&common.state, &first.state);
			continue;
		}
		found++;
		assert_int_equal(unwind_undescribed(&whole.state), UNWIND_STEP_ON);
		assert_same(&common.state, &whole.state);
	}
	assert_in_range(found, ROUNDS / 20, ROUNDS);
}

/* Only frames that have made a call and are within s->mapping. */
TEST(which)
{
	struct unwind_state *s = &first.state;

	random_state(&first);
	assert_true(unwind_may_be_common(s));
	s->after_call = false;
	assert_false(unwind_may_be_common(s));
	s->after_call = true;
	s->all_known = true;
	assert_false(unwind_may_be_common(s));
	s->all_known = false;
	s->ip = s->mapping.end;
	assert_true(unwind_may_be_common(s));
	s->ip = s->mapping.end + 1;
	assert_false(unwind_may_be_common(s));
	s->ip = s->mapping.start;
	assert_false(unwind_may_be_common(s));
}

#define COPY_SIZE 0x13e8u

static int read_copy(void *context, void *to, size_t size, uint64_t address)
{
	return address - STACK > COPY_SIZE - size ? -1 : read_stack(context, to, size, address);
}

/* A copied stack may end within a page. */
TEST(end_of_copy)
{
	const struct unwind_space copy = {.read = read_copy, .end = STACK + COPY_SIZE};
	__u64 low, high;

	random_stack();
	for (uint64_t at = 0; at < STACK_SIZE; at += 8) {
		struct walk walk = {.space = &copy};
		long err = unwind_read_pair(&walk.state, STACK + at, &low, &high);

		assert_int_equal(err, at + 16 <= COPY_SIZE ? 0 : -1);
		if (err)
			continue;
		assert_memory_equal(&low, stack + at, sizeof(low));
		assert_memory_equal(&high, stack + at + 8, sizeof(high));
	}
}
