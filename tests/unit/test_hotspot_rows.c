/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules from instructions, of the shapes that HotSpot's code has. */
#include "unit.h"
#include "models/hotspot_rows.h"

#define RAX 0
#define RDX 2
#define RBX 3
#define R13 13

struct code {
	uint8_t bytes[512];
	uint32_t size;
};

#define PUT(c, text) put((c), (text), sizeof(text) - 1)

/* Where it begins. */
static uint32_t put(struct code *c, const char *bytes, size_t size)
{
	uint32_t at = c->size;

	assert_true(size <= sizeof(c->bytes) - c->size);
	memcpy(c->bytes + at, bytes, size);
	c->size += size;
	return at;
}

static struct hotspot_rows decode(const struct code *c, const struct hotspot_shape *shape)
{
	struct hotspot_rows rows = {};

	assert_int_equal(hotspot_decode(c->bytes, c->size, shape, &rows), 0);
	assert_true(rows.list.count && !rows.list.data[0].start);
	for (size_t i = 1; i < rows.list.count; i++)
		assert_true(rows.list.data[i].start > rows.list.data[i - 1].start &&
			    rows.list.data[i].start < c->size);
	return rows;
}

/* The caller's rbp: 0, in rbp; else at CFA - saved. */
static void assert_by_sp(const struct hotspot_rows *rows, uint32_t at, int32_t depth, int32_t saved)
{
	const struct hotspot_rule *r = hotspot_rows__find(rows, at);

	assert_int_equal(r->cfa, HOTSPOT_CFA_SP);
	assert_int_equal(r->cfa_offset, depth);
	assert_int_equal(r->ra, HOTSPOT_RA_AT_CFA);
	assert_int_equal(r->fp, saved ? HOTSPOT_FP_AT_CFA : HOTSPOT_FP_SAME);
	assert_int_equal(r->fp_offset, -saved);
}

static void assert_by_fp(const struct hotspot_rows *rows, uint32_t at, int32_t depth)
{
	const struct hotspot_rule *r = hotspot_rows__find(rows, at);

	assert_int_equal(r->cfa, HOTSPOT_CFA_FP);
	assert_int_equal(r->cfa_offset, depth);
	assert_int_equal(r->fp, HOTSPOT_FP_AT_CFA);
	assert_int_equal(r->fp_offset, -depth);
}

#define BANG	   "\x89\x84\x24\x00\xc0\xfe\xff" /* mov [rsp-0x14000],eax */
#define PUSH_RBP   "\x55"
#define POP_RBP	   "\x5d"
#define SUB_0X20   "\x48\x83\xec\x20"
#define ADD_0X20   "\x48\x83\xc4\x20"
#define POLL	   "\x49\x3b\x67\x28" /* cmp rsp,[r15+0x28] */
#define CALL	   "\xe8\x00\x10\x00\x00"
#define RET	   "\xc3"
#define EVEX	   "\x62\xf2\x7d\x48\x55\xc9" /* vpopcntd: 0x55 is no push */
#define VEX	   "\xc5\xf8\x77"	      /* vzeroupper */
#define UNVERIFIED "\x45\x3b\x50\x08"	      /* cmp r10d,[r8+8] */

static const struct hotspot_shape SIX_WORDS = {
	.entry = 8, .entry_ra = -1, .words = 6, .is_nmethod = true};

TEST(rules_follow_the_prologue_and_the_epilogue)
{
	struct code c = {};
	struct hotspot_shape shape = SIX_WORDS;
	struct hotspot_rows rows;
	uint32_t bang, push, sub, body, add, pop, poll, branch, ret, stub;

	PUT(&c, UNVERIFIED "\x0f\x85\x00\x10\x00\x00"); /* to where other nmethods are */
	bang = PUT(&c, BANG);
	push = PUT(&c, PUSH_RBP);
	sub = PUT(&c, SUB_0X20);
	body = PUT(&c, EVEX VEX CALL);
	add = PUT(&c, ADD_0X20);
	pop = PUT(&c, POP_RBP);
	poll = PUT(&c, POLL);
	branch = PUT(&c, "\x0f\x87\x01\x00\x00\x00"); /* ja, over the ret */
	ret = PUT(&c, RET);
	stub = PUT(&c, "\x49\xba\x00\x00\x00\x00\x00\x00\x00\x00\x4d\x89\x97\x00\x04\x00\x00"
		       "\xe9\x00\x10\x00\x00");
	shape.verified = bang;
	rows = decode(&c, &shape);
	assert_by_sp(&rows, 0, 8, 0);
	assert_by_sp(&rows, bang, 8, 0);
	assert_by_sp(&rows, push, 8, 0);
	assert_by_sp(&rows, sub, 16, 16);
	assert_by_sp(&rows, body, 48, 16);
	assert_by_sp(&rows, body + 1, 48, 16);
	assert_by_sp(&rows, add, 48, 16);
	assert_by_sp(&rows, pop, 16, 16);
	assert_by_sp(&rows, poll, 8, 0);
	assert_by_sp(&rows, branch, 8, 0);
	assert_by_sp(&rows, ret, 8, 0);
	/* the frame is gone there, too */
	assert_by_sp(&rows, stub, 8, 0);
	assert_by_sp(&rows, c.size - 1, 8, 0);
	hotspot_rows__fini(&rows);
}

TEST(storing_rbp_completes_a_frame_made_at_once)
{
	struct code c = {};
	struct hotspot_rows rows;
	uint32_t store, body, load;

	PUT(&c, "\x48\x81\xec\x28\x00\x00\x00"); /* sub rsp,0x28 */
	store = PUT(&c, "\x48\x89\x6c\x24\x20"); /* mov [rsp+0x20],rbp */
	body = PUT(&c, "\x31\xed");		 /* rbp is a register like any other */
	load = PUT(&c, ADD_0X20);
	PUT(&c, POP_RBP RET);
	rows = decode(&c, &SIX_WORDS);
	assert_by_sp(&rows, 0, 8, 0);
	assert_by_sp(&rows, store, 48, 0);
	assert_by_sp(&rows, body, 48, 16);
	assert_by_sp(&rows, load, 48, 16);
	assert_by_sp(&rows, load + 4, 16, 16);
	assert_by_sp(&rows, load + 5, 8, 0);
	hotspot_rows__fini(&rows);
}

/* What comes behind a return is reached by a jump from above, or has the body's frame. */
TEST(a_jump_carries_its_depth_past_a_return)
{
	struct code c = {};
	struct hotspot_rows rows;
	uint32_t behind, barrier, trap;

	PUT(&c, PUSH_RBP SUB_0X20);
	PUT(&c, "\x50\x74\x0a\x58"); /* push rax; je barrier; pop rax */
	PUT(&c, ADD_0X20 POP_RBP RET);
	behind = PUT(&c, "\x90\x90\xcc");
	barrier = PUT(&c, CALL "\x58");
	trap = PUT(&c, CALL);
	rows = decode(&c, &SIX_WORDS);
	assert_by_sp(&rows, behind, 48, 16);
	assert_by_sp(&rows, barrier, 56, 16);
	assert_by_sp(&rows, barrier + 5, 56, 16);
	assert_by_sp(&rows, trap, 48, 16);
	hotspot_rows__fini(&rows);
}

TEST(a_call_stub_has_no_frame)
{
	struct code c = {};
	struct hotspot_rows rows;
	uint32_t stub;

	PUT(&c, PUSH_RBP SUB_0X20 CALL ADD_0X20 POP_RBP RET);
	stub = PUT(&c, "\x48\xbb\x00\x00\x00\x00\x00\x00\x00\x00\xe9\x00\x10\x00\x00");
	PUT(&c, "\x90");
	rows = decode(&c, &SIX_WORDS);
	assert_by_sp(&rows, stub, 8, 0);
	assert_by_sp(&rows, stub + 10, 8, 0);
	assert_by_sp(&rows, stub + 15, 48, 16);
	hotspot_rows__fini(&rows);
}

TEST(a_patched_entry_does_not_hide_the_prologue)
{
	struct hotspot_shape shape = SIX_WORDS;
	struct hotspot_rows rows;
	struct code c = {}, d = {};
	uint32_t entry;

	PUT(&c, UNVERIFIED "\x75\x7f\x90\x90");
	entry = PUT(&c, "\xe9\x00\x10\x00\x00\xfe\xff" PUSH_RBP SUB_0X20 "\x90");
	shape.verified = entry;
	rows = decode(&c, &shape);
	assert_by_sp(&rows, entry + 7, 8, 0);
	assert_by_sp(&rows, entry + 8, 16, 16);
	assert_by_sp(&rows, entry + 12, 48, 16);
	hotspot_rows__fini(&rows);
	PUT(&d, UNVERIFIED "\x75\x7f\x90\x90");
	PUT(&d, "\xe9\x00\x10\x00\x00\x00\x00\x48\x89\x6c\x24\x20\x90");
	rows = decode(&d, &shape);
	assert_by_sp(&rows, entry + 7, 48, 0);
	assert_by_sp(&rows, entry + 12, 48, 16);
	hotspot_rows__fini(&rows);
}

TEST(an_aligned_stack_has_a_rounded_depth_until_restored)
{
	struct code c = {};
	struct hotspot_rows rows;
	uint32_t back;

	PUT(&c, PUSH_RBP SUB_0X20 "\x50");	/* push rax */
	PUT(&c, "\x48\x83\xe4\xf0");		/* and rsp,-16 */
	back = PUT(&c, "\x90\x48\x8b\xe0\x90"); /* mov rsp,rax */
	rows = decode(&c, &SIX_WORDS);
	assert_by_sp(&rows, back, 64, 16);
	assert_by_sp(&rows, back + 4, 48, 16);
	hotspot_rows__fini(&rows);
}

TEST(stubs_with_a_frame_pointer_are_unwound_by_it)
{
	const struct hotspot_shape shape = {.entry = 8, .entry_ra = -1, .by_fp = true};
	struct hotspot_rows rows;
	struct code c = {};
	uint32_t entry, body, leave, next, cookie, frame;

	entry = PUT(&c, PUSH_RBP "\x48\x8b\xec");
	body = PUT(&c, "\xff\x30\x75\xfc\x48\x83\xe4\xf0\x90"); /* pushes in a loop; aligns */
	leave = PUT(&c, "\xc9");
	PUT(&c, RET);
	next = PUT(&c, "\x48\x8b\xc7\xc3\xcc\xcc");
	cookie = PUT(&c, "\x6a\xff");
	frame = PUT(&c, PUSH_RBP "\x48\x8b\xec\x90\xc9\x48\x83\xc4\x08\xc3");
	rows = decode(&c, &shape);
	assert_by_sp(&rows, entry, 8, 0);
	assert_by_sp(&rows, entry + 1, 16, 16);
	assert_by_fp(&rows, body, 16);
	assert_by_fp(&rows, body + 8, 16);
	assert_by_fp(&rows, leave, 16);
	assert_by_sp(&rows, leave + 1, 8, 0);
	assert_by_sp(&rows, next, 8, 0);
	assert_by_sp(&rows, cookie, 8, 0);
	assert_by_sp(&rows, frame, 16, 0);
	assert_by_fp(&rows, frame + 4, 24);
	assert_by_sp(&rows, frame + 6, 16, 0);
	assert_by_sp(&rows, frame + 10, 8, 0);
	hotspot_rows__fini(&rows);
}

/* The return address is taken from the stack, and put back. */
TEST(popped_return_addresses_are_in_registers_until_pushed)
{
	const struct hotspot_shape shape = {.entry = 8, .entry_ra = -1, .by_fp = true};
	const struct hotspot_rule *r;
	struct hotspot_rows rows;
	struct code c = {};

	PUT(&c, "\x58\x4c\x8b\xec\x48\x83\xec\x10\x50\xff\xe1"); /* pop rax … push rax; jmp rcx */
	rows = decode(&c, &shape);
	r = hotspot_rows__find(&rows, 4);
	assert_int_equal(r->ra, HOTSPOT_RA_REGISTER);
	assert_int_equal(r->ra_offset, RAX);
	assert_int_equal(r->cfa_offset, 0);
	r = hotspot_rows__find(&rows, 9);
	assert_int_equal(r->ra, HOTSPOT_RA_AT_SP);
	assert_int_equal(r->ra_offset, 0);
	assert_int_equal(r->cfa_offset, 24);
	hotspot_rows__fini(&rows);
}

TEST(a_jump_enters_with_its_return_in_a_register)
{
	const struct hotspot_shape shape = {.entry = 0, .entry_ra = RDX, .words = 6};
	struct hotspot_rows rows;
	struct code c = {};

	PUT(&c, "\x52" SUB_0X20 "\x48\x83\xec\x08\x48\x89\x6c\x24\x20" CALL); /* push rdx; … */
	assert_int_equal(hotspot_depth_at_call(c.bytes, c.size, 0), 48);
	assert_int_equal(hotspot_depth_at_call(c.bytes, c.size, 8), 56);
	assert_int_equal(hotspot_depth_at_call(c.bytes, 8, 8), -1);
	rows = decode(&c, &shape);
	assert_int_equal(hotspot_rows__find(&rows, 0)->ra, HOTSPOT_RA_REGISTER);
	assert_int_equal(hotspot_rows__find(&rows, 0)->ra_offset, RDX);
	assert_by_sp(&rows, 1, 8, 0);
	assert_by_sp(&rows, 9, 48, 0);
	assert_by_sp(&rows, 14, 48, 16);
	hotspot_rows__fini(&rows);
}

TEST(codelets_have_own_rules_while_frames_are_incomplete)
{
	struct hotspot_rows rows = {};
	const struct hotspot_rule *r;
	struct code c = {};
	uint32_t at;

	/* mov rbx,[rbp-8]; leave; pop rsi; mov rsp,rbx; jmp rsi */
	PUT(&c, "\x90\x90\x48\x8b\x5d\xf8\xc9\x5e\x48\x8b\xe3\xff\xe6\x90\x90\x90\x90\x90");
	assert_int_equal(hotspot_decode_codelet(c.bytes, c.size, 100, false, &rows), 0);
	assert_memory_equal(hotspot_rows__find(&rows, 106), &hotspot_interpreted,
			    sizeof(hotspot_interpreted));
	r = hotspot_rows__find(&rows, 107);
	assert_int_equal(r->cfa_register, RBX);
	assert_int_equal(r->ra, HOTSPOT_RA_AT_SP);
	r = hotspot_rows__find(&rows, 108);
	assert_int_equal(r->ra, HOTSPOT_RA_REGISTER);
	assert_int_equal(r->ra_offset, 6);
	assert_int_equal(hotspot_rows__find(&rows, 112)->ra, HOTSPOT_RA_REGISTER);
	assert_memory_equal(hotspot_rows__find(&rows, 113), &hotspot_interpreted,
			    sizeof(hotspot_interpreted));
	hotspot_rows__fini(&rows);
	/* the same with a flag that is cleared behind leave; and a leave that is none of these */
	c.size = 0;
	PUT(&c, "\xc9\x41\xc6\x87\xbe\x03\x00\x00\x00\x5e\x48\x8b\xe3\xff\xe6\x90\xc9\xc3\x90");
	assert_int_equal(hotspot_decode_codelet(c.bytes, c.size, 0, false, &rows), 0);
	assert_int_equal(hotspot_rows__find(&rows, 1)->ra, HOTSPOT_RA_AT_SP);
	assert_int_equal(hotspot_rows__find(&rows, 9)->ra, HOTSPOT_RA_AT_SP);
	assert_int_equal(hotspot_rows__find(&rows, 10)->ra, HOTSPOT_RA_REGISTER);
	assert_memory_equal(hotspot_rows__find(&rows, 17), &hotspot_interpreted,
			    sizeof(hotspot_interpreted));
	hotspot_rows__fini(&rows);
	/* pop rax; push 0; push rax; push rbp; mov rbp,rsp; push r13; push rbx */
	c.size = 0;
	at = PUT(&c, "\x58\x6a\x00\x50\x55\x48\x8b\xec\x41\x55\x53\x90");
	assert_int_equal(hotspot_decode_codelet(c.bytes, c.size, 0, true, &rows), 0);
	r = hotspot_rows__find(&rows, at);
	assert_int_equal(r->cfa_register, R13);
	assert_int_equal(r->ra, HOTSPOT_RA_AT_SP);
	assert_int_equal(hotspot_rows__find(&rows, at + 1)->ra, HOTSPOT_RA_REGISTER);
	assert_int_equal(hotspot_rows__find(&rows, at + 3)->ra, HOTSPOT_RA_REGISTER);
	assert_int_equal(hotspot_rows__find(&rows, at + 4)->ra, HOTSPOT_RA_AT_SP);
	assert_int_equal(hotspot_rows__find(&rows, at + 4)->ra_offset, 0);
	r = hotspot_rows__find(&rows, at + 5);
	assert_int_equal(r->ra_offset, 8);
	assert_int_equal(r->fp, HOTSPOT_FP_AT_SP);
	r = hotspot_rows__find(&rows, at + 8);
	assert_int_equal(r->cfa, HOTSPOT_CFA_REGISTER);
	assert_int_equal(r->ra, HOTSPOT_RA_AT_FP);
	assert_memory_equal(hotspot_rows__find(&rows, at + 10), &hotspot_interpreted,
			    sizeof(hotspot_interpreted));
	hotspot_rows__fini(&rows);
}

TEST(random_bytes_give_sorted_rows_within_the_code)
{
	uint32_t seed = 12345;

	for (int round = 0; round < 2000; round++) {
		struct hotspot_shape shape = SIX_WORDS;
		struct hotspot_rows rows;
		struct code c = {.size = sizeof(c.bytes)};

		for (size_t i = 0; i < sizeof(c.bytes); i++)
			c.bytes[i] = (seed = seed * 1103515245 + 12345) >> 16;
		shape.by_fp = round & 1;
		shape.verified = round & 255;
		shape.words = round % 3 * 4;
		rows = decode(&c, &shape);
		assert_true(rows.list.count <= c.size);
		hotspot_rows__fini(&rows);
		assert_int_equal(hotspot_decode_codelet(c.bytes, c.size, 0, round & 2, &rows), 0);
		hotspot_rows__fini(&rows);
	}
}
