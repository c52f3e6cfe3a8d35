/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Callers of code without a description, in forged memory: what follows a call is taken, what does not is not, and
 * no stack makes it look at more than a few words.
 */
#include "unit.h"
#include "unwind/unwind.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* The file: one bucket of code at virtual address 0x1000, mapped at CODE. */
#define BASE	    0x1000u
#define CODE	    0x10000u
#define CODE_SIZE   UNWIND_BUCKET_SIZE
#define JIT	    0x20000u /* memory without a file */
#define STACK	    0x70000u
#define STACK_SIZE  0x4000u
#define FRAMES_MAX  64
#define RULES_MAX   8
#define READS_A_MAX 120 /* reads that a frame may take */

/* Offsets in the file. */
#define DESCRIBED  0x00 /* 0x40 bytes: whoever called it is the root */
#define FOLLOWED   0x40 /* its return address is at the stack pointer */
#define IN_VAIN	   0x60 /* it was followed, and nothing is known */
#define NOTHING	   0x80 /* not looked at */
#define SOMEWHERE  0xc0 /* the canonical frame address is in memory */
#define DESCRIBED2 0xe0

struct table {
	struct unwind_rule dictionary[RULES_MAX];
	uint32_t index[2];
	uint8_t numbers[RULES_MAX];
	uint8_t addresses[RULES_MAX + UNWIND_SLACK];
};

static struct table table;
static struct unwind_table head;
static unsigned char code[CODE_SIZE], jit[CODE_SIZE];
static uint64_t stack[STACK_SIZE / 8];
static unsigned long reads;

static const struct {
	uint8_t at;
	struct unwind_rule rule;
} ROWS[] = {
	{DESCRIBED, {.cfa = UNWIND_CFA_ROOT}},
	{FOLLOWED,
	 {.cfa = UNWIND_CFA_SP,
	  .cfa_register = UNWIND_X86_RSP,
	  .cfa_offset = 8,
	  .ra = UNWIND_RA_INFERRED,
	  .ra_offset = -8}},
	{IN_VAIN, {.ra = UNWIND_RA_INFERRED}},
	{NOTHING, {}},
	{SOMEWHERE,
	 {.cfa = UNWIND_CFA_DEREF,
	  .cfa_register = UNWIND_X86_RSP,
	  .cfa_addend = 8,
	  .ra = UNWIND_RA_INFERRED,
	  .ra_offset = -8}},
	{DESCRIBED2, {.cfa = UNWIND_CFA_ROOT}},
};

static void setup(void)
{
	memset(code, 0x90, sizeof(code));
	memset(jit, 0x90, sizeof(jit));
	memset(stack, 0, sizeof(stack));
	reads = 0;
	table = (struct table){.index = {1, 1 + COUNT(ROWS)}};
	for (size_t i = 0; i < COUNT(ROWS); i++) {
		table.dictionary[i + 1] = ROWS[i].rule;
		table.numbers[i + 1] = i + 1;
		table.addresses[i + 1] = ROWS[i].at;
	}
	head = (struct unwind_table){
		.base = BASE,
		.buckets = 1,
		.dictionary = offsetof(struct table, dictionary),
		.index = offsetof(struct table, index),
		.numbers = offsetof(struct table, numbers),
		.addresses = offsetof(struct table, addresses),
		.number_size = 1,
	};
}

static int copy_from(const void *memory, uint64_t start, uint64_t all, void *to, size_t size,
		     uint64_t address)
{
	if (address < start || address - start > all || size > all - (address - start))
		return -1;
	memcpy(to, (const char *)memory + (address - start), size);
	return 0;
}

static int read_memory(void *context, void *to, size_t size, uint64_t address)
{
	reads++;
	return copy_from(code, CODE, sizeof(code), to, size, address) &&
			       copy_from(jit, JIT, sizeof(jit), to, size, address)
		       ? copy_from(stack, STACK, sizeof(stack), to, size, address)
		       : 0;
}

struct walked {
	uint64_t frames[FRAMES_MAX];
	size_t count;
	enum stack_end end;
};

static struct walked walk(uint64_t ip, uint64_t sp, uint64_t fp)
{
	const struct unwind_range ranges[] = {
		{.start = CODE,
		 .end = CODE + CODE_SIZE,
		 .bias = CODE - BASE,
		 .table = &head,
		 .segment = &table},
		{.start = JIT, .end = JIT + CODE_SIZE, .instead = UNWIND_NO_TABLE},
	};
	const struct unwind_space space = {
		.ranges = ranges, .count = COUNT(ranges), .read = read_memory};
	uint64_t registers[UNWIND_REGISTERS] = {};
	struct walked w;

	registers[UNWIND_X86_RA] = ip;
	registers[UNWIND_X86_RSP] = sp;
	registers[UNWIND_X86_RBP] = fp;
	w.end = unwind_stack(&space, registers, false, w.frames, FRAMES_MAX, &w.count);
	return w;
}

/* call `to`, which ends there. */
static uint64_t put_call(uint64_t end, uint64_t to)
{
	int32_t distance = (int32_t)(to - end);

	code[end - CODE - 5] = 0xe8;
	memcpy(code + (end - CODE) - 4, &distance, 4);
	return end;
}

static void expect_caller(const struct walked *w, uint64_t caller, enum frame_kind kind)
{
	assert_true(w->count == 2);
	assert_int_equal(frame_kind(w->frames[1]), kind);
	assert_int_equal(frame_address(w->frames[1]), caller);
	assert_int_equal(w->end, STACK_END_ROOT);
}

static void expect_cut(const struct walked *w)
{
	assert_int_equal(w->count, 1);
	assert_int_not_equal(w->end, STACK_END_ROOT);
}

static const uint64_t SP0 = STACK + 0x800;

static uint64_t *word(int number)
{
	return &stack[0x800 / 8 + number];
}

/* ---- rules ----------------------------------------------------------------------------------- */

TEST(an_inferred_return_address_must_be_behind_a_call)
{
	struct walked w;

	*word(0) = put_call(CODE + 0x20, CODE + DESCRIBED2); /* a tail call has led on from there */
	w = walk(CODE + FOLLOWED + 4, SP0, 1);
	expect_caller(&w, CODE + 0x20, FRAME_INFERRED);
	code[0x20 - 5] = 0xe9; /* a jump */
	w = walk(CODE + FOLLOWED + 4, SP0, 1);
	expect_cut(&w);
	*word(0) = put_call(CODE + 0x20, CODE + FOLLOWED) + 1;
	w = walk(CODE + FOLLOWED + 4, SP0, 1);
	expect_cut(&w);
	*word(0) = 0; /* no root either */
	w = walk(CODE + FOLLOWED + 4, SP0, 1);
	expect_cut(&w);
	*word(0) = CODE; /* what is before it cannot be read */
	w = walk(CODE + FOLLOWED + 4, SP0, 1);
	expect_cut(&w);
}

TEST(indirect_calls_count_as_calls_jumps_do_not)
{
	static const struct {
		const char *bytes;
		size_t size;
		bool is_call;
	} FORMS[] = {
		{"\xff\xd0", 2, true},			       /* call *%rax */
		{"\x41\xff\xd7", 3, true},		       /* call *%r15 */
		{"\xff\x13", 2, true},			       /* call *(%rbx) */
		{"\xff\x50\x18", 3, true},		       /* call *0x18(%rax) */
		{"\x41\xff\x54\x24\x18", 5, true},	       /* call *0x18(%r12) */
		{"\xff\x14\xc3", 3, true},		       /* call *(%rbx,%rax,8) */
		{"\xff\x15\x01\x02\x03\x04", 6, true},	       /* call *0x4030201(%rip) */
		{"\xff\x93\x01\x02\x03\x04", 6, true},	       /* call *0x4030201(%rbx) */
		{"\x41\xff\x94\x24\x01\x02\x03\x04", 8, true}, /* call *0x4030201(%r12) */
		{"\xff\x14\xc5\x01\x02\x03\x04", 7, true},     /* call *0x4030201(,%rax,8) */
		{"\x3e\xff\xd0", 3, true},		       /* notrack */
		{"\xff\xe0", 2, false},			       /* jmp *%rax */
		{"\xff\x60\x18", 3, false},
		{"\xff\x25\x01\x02\x03\x04", 6, false},
		{"\xff\xd8", 2, false}, /* far calls have no such form */
		{"\xff\x34\xc3", 3, false},
		{"\xeb\x02", 2, false},
		{"\xc3", 1, false},
	};

	for (size_t i = 0; i < COUNT(FORMS); i++) {
		struct walked w;

		setup();
		memcpy(code + 0x20 - FORMS[i].size, FORMS[i].bytes, FORMS[i].size);
		*word(0) = CODE + 0x20;
		w = walk(CODE + FOLLOWED + 4, SP0, 1);
		if ((w.count == 2) != FORMS[i].is_call)
			fail_msg("form %zu", i);
	}
}

/* Where the canonical frame address is read from memory, anything may be. */
TEST(a_cfa_below_or_far_above_sp_is_rejected)
{
	struct walked w;

	*word(0) = SP0 + 0x100;
	stack[(0x900) / 8] = put_call(CODE + 0x20, CODE + SOMEWHERE);
	w = walk(CODE + SOMEWHERE, SP0, 1);
	expect_caller(&w, CODE + 0x20, FRAME_INFERRED);
	*word(0) = SP0 - 0x100;
	stack[(0x700) / 8] = CODE + 0x20;
	w = walk(CODE + SOMEWHERE, SP0, 1);
	expect_cut(&w);
	*word(0) = SP0 + (1 << 20);
	w = walk(CODE + SOMEWHERE, SP0, 1);
	expect_cut(&w);
	*word(0) = UINT64_MAX - 15;
	w = walk(CODE + SOMEWHERE, SP0, 1);
	expect_cut(&w);
}

/* ---- without rules --------------------------------------------------------------------------- */

TEST(a_leaf_without_rules_needs_a_direct_call)
{
	struct walked w;

	*word(0) = put_call(CODE + 0x20, CODE + NOTHING);
	w = walk(CODE + NOTHING + 8, SP0, 1);
	expect_caller(&w, CODE + 0x20, FRAME_INFERRED);
	put_call(CODE + 0x20, CODE + NOTHING + 9); /* behind where it is */
	w = walk(CODE + NOTHING + 8, SP0, 1);
	expect_cut(&w);
	put_call(CODE + 0x20, CODE + DESCRIBED2); /* another function */
	w = walk(CODE + NOTHING + 8, SP0, 1);
	expect_cut(&w);
	put_call(CODE + 0x20, CODE + FOLLOWED);
	w = walk(CODE + NOTHING + 8, SP0, 1);
	expect_cut(&w);
	memcpy(code + 0x20 - 5, "\x90\x90\x90\xff\xd0", 5); /* it does not show which */
	w = walk(CODE + NOTHING + 8, SP0, 1);
	expect_cut(&w);
}

TEST(only_words_next_to_the_stack_pointer_are_searched)
{
	struct walked w;

	put_call(CODE + 0x20, CODE + NOTHING);
	for (int at = 1; at < 20; at++) {
		memset(stack, 0, sizeof(stack));
		*word(at) = CODE + 0x20;
		w = walk(CODE + NOTHING + 8, SP0, 1);
		if (at < 16)
			expect_caller(&w, CODE + 0x20, FRAME_INFERRED);
		else
			expect_cut(&w);
	}
}

/* What was followed in vain may have room in which older calls of itself are left. */
TEST(code_followed_in_vain_needs_a_frame_pointer)
{
	struct walked w;

	for (int at = 0; at < 16; at++)
		*word(at) = put_call(CODE + 0x20, CODE + IN_VAIN);
	w = walk(CODE + IN_VAIN + 8, SP0, 1);
	expect_cut(&w);
	/* by frame pointer, if the call shows that it is one of this function */
	w = walk(CODE + IN_VAIN + 8, SP0, SP0 + 0x20);
	expect_caller(&w, CODE + 0x20, FRAME_POINTER);
	put_call(CODE + 0x20, CODE + DESCRIBED2); /* it is its caller's */
	w = walk(CODE + IN_VAIN + 8, SP0, SP0 + 0x20);
	expect_cut(&w);
	memcpy(code + 0x20 - 5, "\x90\x90\x90\xff\xd0", 5);
	w = walk(CODE + IN_VAIN + 8, SP0, SP0 + 0x20);
	expect_cut(&w);
}

TEST(outside_jit_code_a_frame_pointer_needs_a_call)
{
	struct walked w;

	*word(5) = CODE + 0x20;
	w = walk(CODE + NOTHING + 8, SP0, SP0 + 0x20);
	expect_cut(&w); /* no call */
	memcpy(code + 0x20 - 2, "\xff\xd0", 2);
	w = walk(CODE + NOTHING + 8, SP0, SP0 + 0x20);
	expect_caller(&w, CODE + 0x20, FRAME_POINTER);
	put_call(CODE + 0x20, CODE + DESCRIBED2);
	w = walk(CODE + NOTHING + 8, SP0, SP0 + 0x20);
	expect_cut(&w);
	/* code of no file, whose calls may look otherwise */
	memset(code, 0x90, sizeof(code));
	w = walk(JIT + 8, SP0, SP0 + 0x20);
	expect_caller(&w, CODE + 0x20, FRAME_POINTER);
}

/* ---- hostile --------------------------------------------------------------------------------- */

/* All words are return addresses, and right behind calls of the function that they return to. */
TEST(a_crafted_stack_takes_limited_reads_per_frame)
{
	static const uint8_t PLACES[] = {FOLLOWED + 16, IN_VAIN + 16, NOTHING + 16, SOMEWHERE + 16};

	for (size_t i = 0; i < COUNT(PLACES); i++) {
		uint64_t here = CODE + PLACES[i];

		for (int shift = 0; shift < 8; shift++) {
			struct walked w;

			put_call(here, here - 8 + (uint64_t)shift);
			for (size_t k = 0; k < COUNT(stack); k++)
				stack[k] = k % 3 == 2 && shift & 1 ? STACK + 8 * (k + 1) : here;
			reads = 0;
			w = walk(here, STACK, STACK);
			assert_true(w.count <= FRAMES_MAX);
			assert_true(reads <= READS_A_MAX * (w.count + 1));
		}
	}
}

TEST(an_unreadable_stack_has_no_caller)
{
	static const uint64_t STACKS[] = {
		0, 8, STACK + STACK_SIZE - 8, STACK + STACK_SIZE, UINT64_MAX - 7, UINT64_MAX - 0x7f,
		3};

	for (size_t i = 0; i < COUNT(STACKS); i++) {
		for (unsigned int at = 0; at < CODE_SIZE; at += 8) {
			struct walked w = walk(CODE + at, STACKS[i], STACKS[i]);

			assert_true(w.count == 1);
		}
	}
}

EACH_TEST_WITH(setup, NULL);
