/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of code from its instructions: pieces of code, the C library against its own description, hostile ones. */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "unit.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "elf/elf_sections.h"
#include "models/unwind_find.h"
#include "unwind/code_flow.h"
#include "unwind/undescribed.h"
#include "unwind/unwind_table.h"

#define START	   0x401000
#define OUTSIDE	   0x402000
#define TEXT_LIMIT (UINT64_C(64) << 20)
#define WORK	   (UINT64_C(64) << 20)

struct row {
	uint64_t address;
	struct unwind_rule rule;
};

struct rows {
	VEC(struct row) rows;
};

static bool outside(void *context, uint64_t address, struct unwind_rule *rule)
{
	(void)context;
	*rule = (struct unwind_rule){.cfa = UNWIND_CFA_SP,
				     .cfa_register = UNWIND_X86_RSP,
				     .cfa_offset = 8,
				     .ra = UNWIND_RA_AT_CFA,
				     .ra_offset = -8};
	return address == OUTSIDE;
}

static int keep_row(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct rows *r = context;

	assert_true(!r->rows.count || address > r->rows.data[r->rows.count - 1].address);
	if (rule->cfa != UNWIND_CFA_NONE)
		assert_int_equal(rule->ra, UNWIND_RA_INFERRED);
	return vec_push(&r->rows, (struct row){address, *rule});
}

/* Returns the number of bytes that were left. */
static uint64_t follow_within(const void *code, size_t size, size_t piece, uint64_t *work,
			      struct rows *rows)
{
	uint64_t left = 0;
	const struct code_flow flow = {.code = code,
				       .start = START,
				       .size = size,
				       .outside = outside,
				       .row = keep_row,
				       .context = rows,
				       .piece = piece,
				       .work = work,
				       .left = &left};

	*rows = (struct rows){};
	assert_int_equal(code_flow__follow(&flow), 0);
	return left;
}

static uint64_t follow(const void *code, size_t size, struct rows *rows)
{
	uint64_t work = WORK;

	return follow_within(code, size, CODE_FLOW_PIECE, &work, rows);
}

static struct unwind_rule rule_at(const struct rows *r, uint64_t offset)
{
	struct unwind_rule rule = {};

	for (size_t i = 0; i < r->rows.count && r->rows.data[i].address <= START + offset; i++)
		rule = r->rows.data[i].rule;
	return rule;
}

/* At each offset the rule's kind, offset (of the frame pointer, too, where it is saved: 0: it is the same). */
struct wanted {
	uint64_t at;
	enum unwind_cfa cfa;
	int register_number, offset;
	int fp; /* SAME, LOST, or where it is saved */
};
#define SAME 0
#define LOST 1
#define SP   UNWIND_X86_RSP

static void check(const char *code, size_t size, const struct wanted *wanted, size_t count)
{
	struct rows rows;

	follow(code, size, &rows);
	for (size_t i = 0; i < count; i++) {
		struct unwind_rule rule = rule_at(&rows, wanted[i].at);
		int fp = rule.fp == UNWIND_FP_SAME     ? SAME
			 : rule.fp == UNWIND_FP_AT_CFA ? rule.fp_offset
						       : LOST;

		if (rule.cfa != wanted[i].cfa)
			fail_msg("at %#lx: rule %u, not %u", wanted[i].at, rule.cfa, wanted[i].cfa);
		if (rule.cfa == UNWIND_CFA_NONE)
			continue;
		assert_int_equal(rule.cfa_register, wanted[i].register_number);
		assert_int_equal(rule.cfa_offset, wanted[i].offset);
		assert_int_equal(rule.ra_offset, -8);
		assert_int_equal(fp, wanted[i].fp);
	}
	vec_free(&rows.rows);
}
#define CHECK(code, ...)                                                                           \
	check(code, sizeof(code) - 1, (const struct wanted[]){__VA_ARGS__},                        \
	      sizeof((const struct wanted[]){__VA_ARGS__}) / sizeof(struct wanted))

TEST(rules_follow_the_stack_effects_of_instructions)
{
	/* xor; 1: dec; jg 1b; ret */
	CHECK("\x31\xc0\x48\xff\xcf\x7f\xfb\xc3", {0, UNWIND_CFA_SP, SP, 8, SAME},
	      {5, UNWIND_CFA_SP, SP, 8, SAME}, {7, UNWIND_CFA_SP, SP, 8, SAME});
	/* test edi,edi; je 1f; push rbp; mov rsp,rbp; leave; 1: ret */
	CHECK("\x85\xff\x74\x05\x55\x48\x89\xe5\xc9\xc3", {0, UNWIND_CFA_SP, SP, 8, SAME},
	      {4, UNWIND_CFA_SP, SP, 8, SAME}, {5, UNWIND_CFA_SP, SP, 16, -16},
	      {8, UNWIND_CFA_FP, UNWIND_X86_RBP, 16, -16}, {9, UNWIND_CFA_SP, SP, 8, SAME});
	/* push rbx; push rbp; xor ebp,ebp; pop rbp; pop rbx; ret */
	CHECK("\x53\x55\x31\xed\x5d\x5b\xc3", {0, UNWIND_CFA_SP, SP, 8, SAME},
	      {1, UNWIND_CFA_SP, SP, 16, SAME}, {2, UNWIND_CFA_SP, SP, 24, -24},
	      {4, UNWIND_CFA_SP, SP, 24, -24}, {5, UNWIND_CFA_SP, SP, 16, SAME},
	      {6, UNWIND_CFA_SP, SP, 8, SAME});
	/* sub $0x18,rsp; mov rbp,8(rsp); xor ebp,ebp; mov 8(rsp),rbp; add $0x18,rsp; ret */
	CHECK("\x48\x83\xec\x18\x48\x89\x6c\x24\x08\x31\xed\x48\x8b\x6c\x24\x08\x48\x83\xc4\x18\xc3",
	      {0, UNWIND_CFA_SP, SP, 8, SAME}, {4, UNWIND_CFA_SP, SP, 32, SAME},
	      {9, UNWIND_CFA_SP, SP, 32, -24}, {16, UNWIND_CFA_SP, SP, 32, SAME},
	      {20, UNWIND_CFA_SP, SP, 8, SAME});
	/* push rbp; mov rsp,rbp; and $-32,rsp; leave; ret */
	CHECK("\x55\x48\x89\xe5\x48\x83\xe4\xe0\xc9\xc3", {0, UNWIND_CFA_SP, SP, 8, SAME},
	      {1, UNWIND_CFA_SP, SP, 16, -16}, {4, UNWIND_CFA_FP, UNWIND_X86_RBP, 16, -16},
	      {8, UNWIND_CFA_FP, UNWIND_X86_RBP, 16, -16}, {9, UNWIND_CFA_SP, SP, 8, SAME});
	/* mov rsp,r11; and $-32,rsp; sub $0x40,rsp; nop; mov r11,rsp; ret */
	CHECK("\x49\x89\xe3\x48\x83\xe4\xe0\x48\x83\xec\x40\x90\x4c\x89\xdc\xc3",
	      {0, UNWIND_CFA_SP, SP, 8, SAME}, {3, UNWIND_CFA_REGISTER, 11, 8, SAME},
	      {11, UNWIND_CFA_REGISTER, 11, 8, SAME}, {15, UNWIND_CFA_SP, SP, 8, SAME});
	/* mov rsp,rax; sub $0x60,rsp; and $-32,rsp; mov rax,0x50(rsp); xor eax,eax; mov 0x50(rsp),rsp; ret */
	CHECK("\x48\x89\xe0\x48\x83\xec\x60\x48\x83\xe4\xe0\x48\x89\x44\x24\x50\x31\xc0\x48\x8b\x64\x24\x50\xc3",
	      {0, UNWIND_CFA_SP, SP, 8, SAME}, {7, UNWIND_CFA_REGISTER, 0, 8, SAME},
	      {16, UNWIND_CFA_DEREF, SP, 0x50, SAME}, {23, UNWIND_CFA_SP, SP, 8, SAME});
	/* call on; on: pop rax; ret: it asks where it is */
	CHECK("\xe8\x00\x00\x00\x00\x58\xc3", {0, UNWIND_CFA_SP, SP, 8, SAME},
	      {5, UNWIND_CFA_SP, SP, 16, SAME}, {6, UNWIND_CFA_SP, SP, 8, SAME});
	/* push rbx; jmp *rax; pop rbx; ret: what a table leads to */
	CHECK("\x53\xff\xe0\x5b\xc3", {0, UNWIND_CFA_SP, SP, 8, SAME},
	      {1, UNWIND_CFA_SP, SP, 16, SAME}, {3, UNWIND_CFA_SP, SP, 16, SAME});
	/* push rbp; mov rsp,rbp; push rbx; mov 0(rbp),rbp; add $0x10,rsp; ret */
	CHECK("\x55\x48\x89\xe5\x53\x48\x8b\x6d\x00\x48\x83\xc4\x10\xc3",
	      {1, UNWIND_CFA_SP, SP, 16, -16}, {5, UNWIND_CFA_SP, SP, 24, -16},
	      {9, UNWIND_CFA_SP, SP, 24, SAME}, {13, UNWIND_CFA_SP, SP, 8, SAME});
	/* the same from r13, and from elsewhere: another's frame pointer */
	CHECK("\x49\x8b\x6d\x00\xc3", {0, UNWIND_CFA_SP, SP, 8, LOST});
	CHECK("\x48\x8b\x6d\x08\xc3", {0, UNWIND_CFA_SP, SP, 8, LOST});
	/* pop rbx; jmp to a function that is described */
	CHECK("\x5b\xe9\xfa\x0f\x00\x00", {0, UNWIND_CFA_SP, SP, 16, SAME},
	      {1, UNWIND_CFA_SP, SP, 8, SAME});
}

TEST(code_without_a_certain_return_has_no_rule)
{
	/* je 1f; pop rbx; ret; 1: ret: two ways that cannot both be right */
	CHECK("\x74\x02\x5b\xc3\xc3", {0, UNWIND_CFA_NONE, 0, 0, 0},
	      {2, UNWIND_CFA_SP, SP, 16, SAME}, {4, UNWIND_CFA_SP, SP, 8, SAME});
	/* push rax; mov rdi,rsp; pop rbx; ret: another stack */
	CHECK("\x50\x48\x89\xfc\x5b\xc3", {0, UNWIND_CFA_NONE, 0, 0, 0},
	      {1, UNWIND_CFA_NONE, 0, 0, 0}, {4, UNWIND_CFA_SP, SP, 16, SAME});
	/* mov rsp,rdi; mov rdi,rsp; ret: that is the same one */
	CHECK("\x48\x89\xe7\x48\x89\xfc\xc3", {0, UNWIND_CFA_SP, SP, 8, SAME},
	      {3, UNWIND_CFA_REGISTER, 5, 8, SAME});
	/* mov rsp,r11; xor r11d,r11d; mov r11,rsp; ret */
	CHECK("\x49\x89\xe3\x45\x31\xdb\x4c\x89\xdc\xc3", {0, UNWIND_CFA_NONE, 0, 0, 0},
	      {3, UNWIND_CFA_NONE, 0, 0, 0}, {6, UNWIND_CFA_REGISTER, 11, 8, SAME});
	/* mov rbp,r11; xor ebp,ebp; mov r11,rbp; ret */
	CHECK("\x49\x89\xeb\x31\xed\x4c\x89\xdd\xc3", {3, UNWIND_CFA_SP, SP, 8, LOST},
	      {8, UNWIND_CFA_SP, SP, 8, SAME});
	/* push $1; ret: to where was pushed */
	CHECK("\x6a\x01\xc3", {0, UNWIND_CFA_NONE, 0, 0, 0});
	/* push rbx; call abort; nop; int3; leaf: ret */
	CHECK("\x53\xe8\x00\x10\x00\x00\x90\xcc\xc3", {0, UNWIND_CFA_NONE, 0, 0, 0},
	      {1, UNWIND_CFA_NONE, 0, 0, 0}, {8, UNWIND_CFA_SP, SP, 8, SAME});
	/* 1: jmp 1b */
	CHECK("\x48\xff\xc0\xeb\xfb", {0, UNWIND_CFA_NONE, 0, 0, 0});
	/* a byte that is no instruction, and code behind it */
	CHECK("\xc3\x06\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3",
	      {0, UNWIND_CFA_SP, SP, 8, SAME}, {1, UNWIND_CFA_NONE, 0, 0, 0},
	      {16, UNWIND_CFA_SP, SP, 8, SAME});
}

/* What is overwritten on the stack, and what has left it. */
TEST(rules_end_where_a_stack_slot_is_overwritten)
{
	/* mov rsp,rax; and $-32,rsp; push rax; xor eax,eax; mov 0(rsp),rsp; ret */
	CHECK("\x48\x89\xe0\x48\x83\xe4\xe0\x50\x31\xc0\x48\x8b\x24\x24\xc3",
	      {0, UNWIND_CFA_SP, SP, 8, SAME}, {3, UNWIND_CFA_REGISTER, 0, 8, SAME},
	      {7, UNWIND_CFA_REGISTER, 0, 8, SAME}, {8, UNWIND_CFA_DEREF, SP, 0, SAME},
	      {14, UNWIND_CFA_SP, SP, 8, SAME});
	/* push $1; mov 0(rsp),rsp; ret */
	CHECK("\x6a\x01\x48\x8b\x24\x24\xc3", {0, UNWIND_CFA_NONE, 0, 0, 0},
	      {2, UNWIND_CFA_DEREF, SP, 0, SAME});
	/* push rsp; mov 0(rsp),rsp; ret */
	CHECK("\x54\x48\x8b\x24\x24\xc3", {0, UNWIND_CFA_NONE, 0, 0, 0},
	      {1, UNWIND_CFA_DEREF, SP, 0, SAME});
	/* mov rsp,8(rsp); mov 8(rsp),rsp; ret */
	CHECK("\x48\x89\x64\x24\x08\x48\x8b\x64\x24\x08\xc3", {0, UNWIND_CFA_NONE, 0, 0, 0},
	      {5, UNWIND_CFA_DEREF, SP, 8, SAME});
	/* sub $0x10,rsp; nop; mov 8(rsp),rsp; ret: what is loaded was below the stack pointer */
	CHECK("\x48\x83\xec\x10\x90\x48\x8b\x64\x24\x08\xc3", {0, UNWIND_CFA_NONE, 0, 0, 0},
	      {4, UNWIND_CFA_DEREF, SP, 8, SAME});
	/* push rbx; nop; pop rbp; ret: the caller's rbp was in rbx */
	CHECK("\x53\x90\x5d\xc3", {0, UNWIND_CFA_SP, SP, 8, LOST}, {1, UNWIND_CFA_SP, SP, 16, -16},
	      {3, UNWIND_CFA_SP, SP, 8, SAME});
	/* push rcx; mov rbx,0(rsp); pop rbp; ret */
	CHECK("\x51\x48\x89\x1c\x24\x5d\xc3", {0, UNWIND_CFA_SP, SP, 8, LOST},
	      {1, UNWIND_CFA_SP, SP, 16, LOST}, {5, UNWIND_CFA_SP, SP, 16, -16});
}

/* Where functions keep frame pointers, those will do for the rest; in hand-written code they will not. */
TEST(frame_pointers_serve_code_that_mostly_keeps_them)
{
	static const char FRAME[] =
		"\x55\x48\x89\xe5\xff\xe0\x0f\x0b"; /* push, mov; jmp *rax; ud2 */
	char code[64];
	struct rows rows;

	memset(code, 0xcc, sizeof(code));
	memcpy(code, FRAME, 8);
	code[16] = (char)0xc3;
	follow(code, sizeof(code), &rows);
	assert_int_equal(rule_at(&rows, 4).cfa, UNWIND_CFA_NONE);
	assert_int_equal(rule_at(&rows, 4).ra, UNWIND_RA_NONE);
	vec_free(&rows.rows);
	memset(code + 16, 0xc3, 8);
	follow(code, sizeof(code), &rows);
	assert_int_equal(rule_at(&rows, 4).cfa, UNWIND_CFA_NONE);
	assert_int_equal(rule_at(&rows, 4).ra, UNWIND_RA_INFERRED);
	vec_free(&rows.rows);
}

TEST(padding_alone_has_no_rules)
{
	struct rows rows;

	follow("\x90\x66\x90\xcc\xcc", 5, &rows);
	assert_int_equal(rows.rows.count, 0);
	follow("", 0, &rows);
	assert_int_equal(rows.rows.count, 0);
}

/* A budget that several stretches share: what it does not suffice for has no rules. */
TEST(code_beyond_the_budget_has_no_rules)
{
	static const char CODE[] = "\x53\x5b\xc3"; /* push, pop, ret */
	uint64_t work = 5;
	struct rows rows;

	assert_int_equal(follow_within(CODE, 3, CODE_FLOW_PIECE, &work, &rows), 0);
	assert_int_equal(work, 2);
	assert_int_equal(rule_at(&rows, 1).cfa, UNWIND_CFA_SP);
	vec_free(&rows.rows);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(follow_within(CODE, 3, CODE_FLOW_PIECE, &work, &rows), 3);
		assert_int_equal(work, 0);
		assert_int_equal(rows.rows.count, 1);
		assert_int_equal(rows.rows.data[0].rule.cfa, UNWIND_CFA_NONE);
		vec_free(&rows.rows);
	}
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Functions of push, call, nop, pop, ret, padded to 16 bytes. */
static void write_functions(unsigned char *code, size_t count, const char *padding)
{
	for (size_t i = 0; i < count; i++) {
		memset(code + 16 * i, 0xcc, 16);
		memcpy(code + 16 * i, "\x53\xe8\x00\x10\x00\x00", 6);
		memcpy(code + 16 * i + 6, padding, strlen(padding));
		memcpy(code + 16 * i + 6 + strlen(padding), "\x5b\xc3", 2);
	}
}

/* Code of many pieces: each function has its rules, wherever a piece ends. */
TEST(functions_have_the_same_rules_wherever_a_piece_ends)
{
	unsigned char code[16 * 64];
	struct rows rows;

	write_functions(code, 64, "");
	for (size_t piece = 40; piece < 90; piece++) {
		uint64_t work = WORK;

		assert_int_equal(follow_within(code, sizeof(code), piece, &work, &rows), 0);
		for (size_t i = 0; i < 64; i++) {
			assert_int_equal(rule_at(&rows, 16 * i).cfa_offset, 8);
			assert_int_equal(rule_at(&rows, 16 * i + 6).cfa_offset, 16);
			assert_int_equal(rule_at(&rows, 16 * i + 7).cfa_offset, 8);
		}
		vec_free(&rows.rows);
	}
}

/* A compiler that puts a nop behind each call, also where that ends at an aligned address. */
TEST(nops_behind_every_call_do_not_end_functions)
{
	unsigned char code[16 * 10];
	struct rows rows;

	write_functions(code, 10, "\x90");
	/* push; movabs; nop 3 bytes …; call; nop | pop; ret */
	memset(code + 16 * 8, 0xcc, 32);
	memcpy(code + 16 * 8, "\x53\x48\xb8\0\0\0\0\0\0\0\0\xff\xd0\x89\xc0\x90\x5b\xc3", 18);
	memcpy(code + 16 * 8 + 11, "\x89\xc0\xff\xd0\x90", 5);
	follow(code, sizeof(code), &rows);
	assert_int_equal(rule_at(&rows, 6).cfa_offset, 16);
	assert_int_equal(rule_at(&rows, 7).cfa_offset, 16);
	assert_int_equal(rule_at(&rows, 16 * 8).cfa_offset, 8);
	assert_int_equal(rule_at(&rows, 16 * 8 + 12).cfa_offset, 16);
	vec_free(&rows.rows);
	/* elsewhere the call does not return: what is behind the nop is a function */
	write_functions(code, 8, "");
	follow(code, sizeof(code), &rows);
	assert_int_equal(rule_at(&rows, 16 * 8).cfa, UNWIND_CFA_NONE);
	assert_int_equal(rule_at(&rows, 16 * 8 + 12).cfa, UNWIND_CFA_NONE);
	assert_int_equal(rule_at(&rows, 16 * 9).cfa_offset, 16);
	vec_free(&rows.rows);
}

/* Each jump leads to the one before, so a pass finds out about one more: that is given up in time. */
TEST(analysis_of_hostile_code_ends_in_time)
{
	const size_t size = 4 << 20;
	unsigned char *code = malloc(size);
	double begin = seconds();
	struct rows rows;

	assert_non_null(code);
	code[0] = 0xc3;
	for (size_t i = 1; i + 1 < size; i += 2)
		memcpy(code + i, i == 1 ? "\xeb\xfd" : "\xeb\xfc", 2);
	code[size - 1] = 0x90;
	assert_true(follow(code, size, &rows) > size / 4);
	assert_int_equal(rule_at(&rows, 64).cfa, UNWIND_CFA_NONE);
	vec_free(&rows.rows);
	/* one function of several pieces */
	memset(code, 0xc3, size);
	assert_int_equal(follow(code, size, &rows), 0);
	assert_int_equal(rule_at(&rows, size - 1).cfa, UNWIND_CFA_SP);
	vec_free(&rows.rows);
	srandom(1);
	for (size_t i = 0; i < size; i++)
		code[i] = (unsigned char)random();
	follow(code, size, &rows);
	vec_free(&rows.rows);
	free(code);
	assert_true(seconds() - begin < 20);
}

/* ---- the C library --------------------------------------------------------------------------- */

struct comparison {
	const struct unwind_table_image *image;
	struct row last;
	uint64_t agreed, differing, unsaid;
};

static int take_c_library(struct dl_phdr_info *info, size_t size, void *context)
{
	int *fd = context;

	(void)size;
	if (*fd < 0 && strstr(info->dlpi_name, "/libc.so"))
		*fd = open(info->dlpi_name, O_RDONLY | O_CLOEXEC);
	return 0;
}

static void compare_byte(struct comparison *c, uint64_t address)
{
	const struct unwind_rule *said = unwind_table__find(c->image->bytes, &c->image->table,
							    address);
	const struct unwind_rule *followed = &c->last.rule;

	if (said->cfa != UNWIND_CFA_SP || said->ra != UNWIND_RA_AT_CFA)
		return;
	if (followed->cfa == UNWIND_CFA_NONE)
		c->unsaid++;
	else if (followed->cfa == UNWIND_CFA_SP && followed->cfa_offset == said->cfa_offset)
		c->agreed++;
	else
		c->differing++;
}

static int compare_row(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct comparison *c = context;

	for (uint64_t at = c->last.address; c->last.address && at < address; at++)
		compare_byte(c, at);
	c->last = (struct row){address, *rule};
	return 0;
}

/*
 * A compiler's code says the same by its instructions as by its CFI, but for calls that never return, behind which
 * another function or another part of this one lies.
 */
TEST(most_rules_for_libc_agree_with_its_cfi)
{
	_cleanup_close_ int fd = -1;
	_cleanup_free_ void *text = NULL;
	struct unwind_table_image image;
	struct comparison c = {.image = &image};
	struct elf_section section;
	struct elf_file *file;
	uint64_t work = WORK, left = 0;
	size_t size;
	double sum;

	dl_iterate_phdr(take_c_library, &fd);
	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(unwind_table__build(file, TEXT_LIMIT, &image), 0);
	assert_int_equal(elf_file__find_section(file, ".text", &section), 0);
	assert_int_equal(elf_file__section_data(file, ".text", TEXT_LIMIT, &text, &size), 0);
	assert_int_equal(code_flow__follow(&(struct code_flow){.code = text,
							       .start = section.address,
							       .size = size,
							       .outside = outside,
							       .row = compare_row,
							       .context = &c,
							       .piece = CODE_FLOW_PIECE,
							       .work = &work,
							       .left = &left}),
			 0);
	sum = (double)(c.agreed + c.differing + c.unsaid);
	print_message("%.0f bytes: %.2f %% agree, %.2f %% differ, of %.2f %% nothing is known\n",
		      sum, 100 * (double)c.agreed / sum, 100 * (double)c.differing / sum,
		      100 * (double)c.unsaid / sum);
	assert_true(sum > 500000);
	assert_true((double)c.agreed > 0.75 * sum && (double)c.differing < 0.03 * sum);
	unwind_table_image__fini(&image);
	elf_file__free(file);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
