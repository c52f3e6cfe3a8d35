/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks from one stack to another, in forged memory: by each of the rules, and where what is found is not right. */
#include "unit.h"
#include "unwind/unwind.h"

/*
 * Code of 256 bytes is at CODE; functions of 32 bytes each. In each a call is at CALL, and the return
 * address behind it. Two stacks of 4 KB, the one that is gone to above the other, and a page of data.
 */
#define CODE	 0x400000ull
#define FUNCTION 32
#define CALL	 16
#define OLD	 0x10000ull
#define NEW	 0x20000ull
#define DATA	 0x30000ull
#define SIZE	 4096

enum function { START, CALLER, ACROSS, LEAF, INJECTED, OTHER, FUNCTIONS };

#define ENTRY(f)  (CODE + (f)*FUNCTION)
#define RETURN(f) (ENTRY(f) + CALL + 5)

struct segment {
	struct unwind_rule rules[FUNCTIONS + 2];
	uint32_t index[2];
	uint8_t numbers[FUNCTIONS + 3], addresses[FUNCTIONS + 3];
	uint8_t slack[UNWIND_SLACK];
};

struct world {
	struct segment segment;
	struct unwind_table table;
	struct unwind_range range;
	struct unwind_space space;
	uint8_t code[UNWIND_BUCKET_SIZE], old[SIZE], new[SIZE], data[SIZE];
	uint64_t registers[UNWIND_REGISTERS];
	uint64_t frames[64];
	size_t count;
};

static int read_world(void *context, void *to, size_t size, uint64_t address)
{
	struct world *w = context;
	const struct {
		uint64_t start, size;
		uint8_t *bytes;
	} parts[] = {{CODE, sizeof(w->code), w->code},
		     {OLD, SIZE, w->old},
		     {NEW, SIZE, w->new},
		     {DATA, SIZE, w->data}};

	for (size_t i = 0; i < 4; i++) {
		uint64_t at = address - parts[i].start;

		if (at < parts[i].size && parts[i].size - at >= size) {
			memcpy(to, parts[i].bytes + at, size);
			return 0;
		}
	}
	return -1;
}

static void put(struct world *w, uint64_t address, uint64_t value)
{
	uint8_t *part = address >= DATA ? w->data : address >= NEW ? w->new : w->old;

	memcpy(part + address % SIZE, &value, sizeof(value));
}

static void put_call(struct world *w, enum function from, enum function to)
{
	int32_t distance = (int32_t)(ENTRY(to) - RETURN(from));

	w->code[from * FUNCTION + CALL] = 0xe8;
	memcpy(&w->code[from * FUNCTION + CALL + 1], &distance, sizeof(distance));
}

static struct unwind_rule by_sp(int depth)
{
	return (struct unwind_rule){
		.cfa = UNWIND_CFA_SP,
		.cfa_register = UNWIND_X86_RSP,
		.cfa_offset = depth + 8,
		.ra = UNWIND_RA_AT_CFA,
		.ra_offset = -8,
	};
}

/* START calls CALLER, that calls ACROSS, which goes to the new stack and calls LEAF: it is there. */
static void make(struct world *w, struct unwind_rule across)
{
	*w = (struct world){
		.table = {.base = CODE, .buckets = 1, .number_size = 1},
		.range = {.start = CODE, .end = CODE + UNWIND_BUCKET_SIZE},
		.space = {.count = 1, .read = read_world},
	};
	w->table.index = offsetof(struct segment, index);
	w->table.numbers = offsetof(struct segment, numbers);
	w->table.addresses = offsetof(struct segment, addresses);
	w->space.ranges = &w->range;
	w->space.context = w;
	w->range.table = &w->table;
	w->range.segment = &w->segment;
	across.cfa_offset = (int32_t)ENTRY(ACROSS);
	w->segment.rules[START] = (struct unwind_rule){.cfa = UNWIND_CFA_ROOT};
	w->segment.rules[CALLER] = by_sp(24);
	w->segment.rules[ACROSS] = across;
	w->segment.rules[LEAF] = w->segment.rules[OTHER] = by_sp(0);
	w->segment.rules[INJECTED] = by_sp(0);
	w->segment.rules[INJECTED].ra = UNWIND_RA_INTERRUPTED;
	w->segment.index[0] = 1;
	w->segment.index[1] = FUNCTIONS + 1;
	w->segment.numbers[0] = FUNCTIONS;
	for (int i = 0; i < FUNCTIONS; i++) {
		w->segment.numbers[i + 1] = i;
		w->segment.addresses[i + 1] = i * FUNCTION;
	}
	put_call(w, START, CALLER);
	put_call(w, CALLER, ACROSS);
	put_call(w, ACROSS, LEAF);
	put_call(w, OTHER, OTHER);
	/* the old stack: CALLER's frame of 24 bytes between two return addresses */
	put(w, OLD + 0x100, RETURN(CALLER));
	put(w, OLD + 0x120, RETURN(START));
	/* the new one */
	put(w, NEW + 0x800, RETURN(ACROSS));
	w->registers[UNWIND_X86_RSP] = NEW + 0x800;
	w->registers[UNWIND_X86_RA] = ENTRY(LEAF);
}

static enum stack_end walk(struct world *w)
{
	return unwind_stack(&w->space, w->registers, false, w->frames, 64, &w->count);
}

static void assert_whole(struct world *w)
{
	const uint64_t expected[] = {
		frame_pack(FRAME_IP, ENTRY(LEAF)),
		frame_pack(FRAME_TABLE, RETURN(ACROSS)),
		frame_pack(FRAME_SWITCH, RETURN(CALLER)),
		frame_pack(FRAME_TABLE, RETURN(START)),
	};

	assert_int_equal(walk(w), STACK_END_ROOT);
	assert_int_equal(w->count, 4);
	assert_memory_equal(w->frames, expected, sizeof(expected));
}

/* A frame of ACROSS below its return address; the new stack is above the old one. */
static void make_switch(struct world *w)
{
	make(w, (struct unwind_rule){.cfa = UNWIND_CFA_SWITCH});
	put(w, OLD + 0xf8, 0x1234);
	w->registers[UNWIND_X86_RBP] = OLD + 0xf8;
}

TEST(a_frame_pointer_leads_to_the_old_stack)
{
	struct world w;

	make_switch(&w);
	assert_whole(&w);
	/* it called something else there: that is not its frame */
	put_call(&w, CALLER, OTHER);
	assert_int_equal(walk(&w), STACK_END_NO_CALLER);
	assert_int_equal(w.count, 2);
	make_switch(&w);
	w.code[CALLER * FUNCTION + CALL] = 0xe9;
	assert_int_equal(walk(&w), STACK_END_NO_CALLER);
	make_switch(&w);
	put(&w, OLD + 0x100, CODE + UNWIND_BUCKET_SIZE + 8); /* no code */
	assert_int_equal(walk(&w), STACK_END_NO_CALLER);
	make_switch(&w);
	w.registers[UNWIND_X86_RBP] = OLD + 0xf9;
	assert_int_equal(walk(&w), STACK_END_FAULT);
	w.registers[UNWIND_X86_RBP] = UINT64_MAX - 7;
	assert_int_equal(walk(&w), STACK_END_FAULT);
	w.registers[UNWIND_X86_RBP] = 0;
	assert_int_equal(walk(&w), STACK_END_FAULT);
}

/* A frame that leads to itself: a call of ACROSS in ACROSS. */
TEST(a_circle_of_frame_pointers_has_a_limit)
{
	struct world w;

	make_switch(&w);
	put_call(&w, ACROSS, ACROSS);
	put(&w, OLD + 0xf8, OLD + 0xf8);
	put(&w, OLD + 0x100, RETURN(ACROSS));
	assert_int_equal(walk(&w), STACK_END_NO_CALLER);
	assert_int_equal(w.count, 2 + 16);
}

TEST(a_saved_depth_leads_to_the_goroutine_stack)
{
	struct world w;

	make(&w, (struct unwind_rule){.cfa = UNWIND_CFA_GO_DEPTH, .fp_offset = 0x28});
	put(&w, NEW + 0x808 + 0x28, 0x700);
	put(&w, NEW + 0x808 + 0x30, DATA);
	put(&w, DATA + UNWIND_GO_STACK_TOP, OLD + 0x800);
	assert_whole(&w);
	put(&w, DATA + UNWIND_GO_STACK_TOP, OLD + 0x808);
	assert_int_equal(walk(&w), STACK_END_NO_CALLER); /* what is there is no return address */
	/* it stayed: the stack pointer itself */
	put(&w, NEW + 0x808 + 0x30, 0);
	put(&w, NEW + 0x808 + 0x28, OLD + 0x100);
	assert_whole(&w);
	put(&w, NEW + 0x808 + 0x30, 0x12345678);
	assert_int_equal(walk(&w), STACK_END_FAULT);
}

/* g at DATA + 0x100, m at DATA + 0x200, the goroutine at DATA + 0x300; the thread's base is DATA + 0x10. */
static void make_saved(struct world *w, enum unwind_cfa cfa)
{
	make(w, (struct unwind_rule){.cfa = cfa,
				     .fp_offset = -8,
				     .ra_offset = 0xb8,
				     .cfa_addend = UNWIND_GO_SAVED_BP});
	w->space.thread_base = DATA + 0x10;
	put(w, DATA + 8, DATA + 0x100);
	put(w, DATA + 0x100 + UNWIND_GO_THREAD, DATA + 0x200);
	put(w, DATA + 0x200 + 0xb8, DATA + 0x300);
	put(w, DATA + 0x300 + UNWIND_GO_THREAD, DATA + 0x200);
	put(w, DATA + 0x300 + UNWIND_GO_SAVED, OLD + (cfa == UNWIND_CFA_GO_CALLER ? 0x100 : 0x108));
	put(w, DATA + 0x300 + UNWIND_GO_SAVED + 8, RETURN(CALLER));
}

TEST(saved_registers_of_a_goroutine_lead_to_its_stack)
{
	static const enum unwind_cfa RULES[] = {UNWIND_CFA_GO_CALLER, UNWIND_CFA_GO_INTERRUPTED};
	struct world w;

	for (size_t i = 0; i < 2; i++) {
		make_saved(&w, RULES[i]);
		assert_whole(&w);
		/* a library's offset is in a word of its own */
		w.segment.rules[ACROSS].cfa_register = 1;
		w.segment.rules[ACROSS].fp_offset = DATA + 0x400;
		put(&w, DATA + 0x400, -8);
		assert_whole(&w);
		put(&w, DATA + 0x300 + UNWIND_GO_THREAD, DATA); /* another thread has it by now */
		assert_int_equal(walk(&w), STACK_END_ROOT);
		assert_int_equal(w.count, 2); /* a whole walk has 4 frames and the same end */
		make_saved(&w, RULES[i]);
		put(&w, DATA + 0x200 + 0xb8, 0); /* no stack is left */
		assert_int_equal(walk(&w), STACK_END_ROOT);
		assert_int_equal(w.count, 2);
		make_saved(&w, RULES[i]);
		put_call(&w, CALLER, START);
		assert_int_equal(walk(&w), i ? STACK_END_ROOT : STACK_END_NO_CALLER);
		assert_int_equal(w.count, 2);
		make_saved(&w, RULES[i]);
		w.space.thread_base = 0;
		assert_int_equal(walk(&w), STACK_END_FAULT);
	}
}

/* What is saved is of the last change of stacks: it says nothing of one before that. */
TEST(saved_registers_are_used_for_one_switch_only)
{
	struct world w;

	make_saved(&w, UNWIND_CFA_GO_CALLER);
	put_call(&w, ACROSS, ACROSS);
	put(&w, OLD + 0x100, RETURN(ACROSS));
	assert_int_equal(walk(&w), STACK_END_NO_RULE);
	assert_int_equal(w.count, 3);
}

TEST(an_interrupted_instruction_is_looked_up_itself)
{
	struct world w;

	make_switch(&w);
	w.registers[UNWIND_X86_RA] = ENTRY(INJECTED);
	put(&w, NEW + 0x800, ENTRY(LEAF)); /* the byte before belongs to ACROSS */
	put(&w, NEW + 0x808, RETURN(ACROSS));
	assert_int_equal(walk(&w), STACK_END_ROOT);
	assert_int_equal(w.count, 5);
	assert_int_equal(w.frames[1], frame_pack(FRAME_AFTER_SIGNAL, ENTRY(LEAF)));
	assert_int_equal(w.frames[2], frame_pack(FRAME_TABLE, RETURN(ACROSS)));
	assert_int_equal(w.frames[3], frame_pack(FRAME_SWITCH, RETURN(CALLER)));
}

/* A function that has taken its return address off the stack. */
TEST(a_return_address_in_a_register_is_followed)
{
	struct world w;

	make_switch(&w);
	w.segment.rules[LEAF].cfa_offset = 0;
	w.segment.rules[LEAF].ra = UNWIND_RA_REGISTER;
	w.segment.rules[LEAF].ra_offset = 12;
	w.registers[12] = RETURN(ACROSS);
	w.registers[UNWIND_X86_RSP] = NEW + 0x808;
	assert_whole(&w);
	w.segment.rules[LEAF].cfa_offset = -8;
	assert_int_equal(walk(&w), STACK_END_NO_CALLER);
}

/* ACROSS has noted the old stack's pointer on the new one, and its CFI reads it there. */
static void make_noted(struct world *w)
{
	make(w, (struct unwind_rule){});
	w->segment.rules[ACROSS] = (struct unwind_rule){.cfa = UNWIND_CFA_DEREF,
							.cfa_register = UNWIND_X86_RSP,
							.cfa_addend = 8,
							.ra = UNWIND_RA_AT_CFA,
							.ra_offset = -8};
	put(w, NEW + 0x808, OLD + 0x100);
}

/* ACROSS keeps the old stack's pointer in rbp. */
static void make_kept(struct world *w)
{
	make(w, (struct unwind_rule){});
	w->segment.rules[ACROSS] = (struct unwind_rule){.cfa = UNWIND_CFA_FP,
							.cfa_register = UNWIND_X86_RBP,
							.cfa_offset = 8,
							.ra = UNWIND_RA_AT_CFA,
							.ra_offset = -8};
	w->registers[UNWIND_X86_RBP] = OLD + 0x100;
}

/* ACROSS is an effect handler: the new stack has its fiber's parent, which has the old stack's pointer. */
static void make_noted_in_parent(struct world *w)
{
	make_noted(w);
	w->segment.rules[ACROSS].cfa = UNWIND_CFA_DEREF_TWICE;
	w->segment.rules[ACROSS].cfa_offset = unwind_two_offsets(56, -16);
	put(w, NEW + 0x808 + 56, DATA + 0x210);
	put(w, DATA + 0x200, OLD + 0x100);
}

/* ACROSS keeps it in rbx, as OCaml around calls of C. */
static void make_kept_in_rbx(struct world *w)
{
	make_kept(w);
	w->segment.rules[ACROSS].cfa = UNWIND_CFA_REGISTER;
	w->segment.rules[ACROSS].cfa_register = UNWIND_X86_RBX;
	w->segment.rules[LEAF].rbx = UNWIND_RBX_SAME;
	w->registers[UNWIND_X86_RBX] = OLD + 0x100;
}

/* The place on the new stack where ACROSS has noted it is in rbx. */
static void make_noted_at_rbx(struct world *w)
{
	make_noted(w);
	w->segment.rules[ACROSS].cfa_register = UNWIND_X86_RBX;
	w->segment.rules[ACROSS].cfa_offset = 8;
	w->segment.rules[LEAF].rbx = UNWIND_RBX_SAME;
	w->registers[UNWIND_X86_RBX] = NEW + 0x828;
	put(w, NEW + 0x830, OLD + 0x100);
}

static void assert_whole_by_cfi(struct world *w)
{
	const uint64_t expected[] = {
		frame_pack(FRAME_IP, ENTRY(LEAF)),
		frame_pack(FRAME_TABLE, RETURN(ACROSS)),
		frame_pack(FRAME_TABLE, RETURN(CALLER)),
		frame_pack(FRAME_TABLE, RETURN(START)),
	};

	assert_int_equal(walk(w), STACK_END_ROOT);
	assert_int_equal(w->count, 4);
	assert_memory_equal(w->frames, expected, sizeof(expected));
}

/* To a stack below; to one above it goes without saying. */
TEST(cfi_rules_lead_to_a_stack_below)
{
	static void (*const MAKE[])(struct world *) = {
		make_noted, make_noted_in_parent, make_noted_at_rbx, make_kept, make_kept_in_rbx};
	struct world w;

	for (size_t i = 0; i < 5; i++) {
		MAKE[i](&w);
		assert_whole_by_cfi(&w);
		w.code[CALLER * FUNCTION + CALL] = 0xe9; /* no call is before the address */
		assert_int_equal(walk(&w), STACK_END_NO_CALLER);
		assert_int_equal(w.count, 2);
		MAKE[i](&w);
		put(&w, OLD + 0x100, CODE + UNWIND_BUCKET_SIZE + 8);
		assert_int_equal(walk(&w), STACK_END_NO_CALLER);
		MAKE[i](&w);
		w.segment.rules[ACROSS].cfa_addend += i < 3 ? 4 : 0;
		w.segment.rules[ACROSS].cfa_offset += i < 3 ? 0 : 4;
		assert_int_equal(walk(&w), STACK_END_NO_CALLER);
	}
	make_noted(&w);
	put(&w, NEW + 0x808, DATA + SIZE + 0x100); /* no memory */
	assert_int_equal(walk(&w), STACK_END_FAULT);
	make_noted_in_parent(&w);
	put(&w, NEW + 0x808 + 56, DATA + SIZE + 0x100);
	assert_int_equal(walk(&w), STACK_END_FAULT);
	put(&w, NEW + 0x808 + 56, DATA + 0x210);
	put(&w, DATA + 0x200, DATA + SIZE + 0x100);
	assert_int_equal(walk(&w), STACK_END_FAULT);
	make_kept_in_rbx(&w);
	w.segment.rules[LEAF].rbx = UNWIND_RBX_UNTOLD; /* the callee changed it */
	assert_int_equal(walk(&w), STACK_END_NO_RULE);
	make_noted_at_rbx(&w);
	w.segment.rules[LEAF].rbx = UNWIND_RBX_UNTOLD;
	assert_int_equal(walk(&w), STACK_END_NO_RULE);
	/* the callee's stack pointer alone leads nowhere below */
	make_kept(&w);
	w.segment.rules[ACROSS] = by_sp(0);
	w.segment.rules[ACROSS].cfa_offset = (int32_t)(OLD + 0x108) - (int32_t)(NEW + 0x808);
	assert_int_equal(walk(&w), STACK_END_NO_CALLER);
}

TEST(cfi_that_leads_to_itself_ends_the_walk)
{
	struct world w;

	make_noted(&w);
	put_call(&w, ACROSS, ACROSS);
	put(&w, NEW + 0x808, NEW + 0x800);
	assert_int_equal(walk(&w), STACK_END_NO_CALLER);
	assert_int_equal(w.count, 2 + 16);
	make_noted_in_parent(&w);
	put_call(&w, ACROSS, ACROSS);
	put(&w, NEW + 0x808, RETURN(ACROSS));
	put(&w, DATA + 0x200, NEW + 0x800);
	put(&w, NEW + 0x800, RETURN(ACROSS));
	assert_int_equal(walk(&w), STACK_END_NO_CALLER);
	assert_int_equal(w.count, 2 + 16);
}
