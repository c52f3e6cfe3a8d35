/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Instructions and the rules that follow from them: testdata/x86_code.txt, the C library against its own
 * description, hostile code.
 */
#include "rule_text.h"
#include "c_library.h"

#include <time.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "elf/elf_sections.h"
#include "elf/x86_code.h"
#include "models/unwind_find.h"
#include "unwind/code_flow.h"
#include "unwind/undescribed.h"
#include "unwind/unwind_table.h"

#define START	     0x401000
#define OUTSIDE	     0x402000
#define TEXT_LIMIT   (UINT64_C(64) << 20)
#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define WORK	     (UINT64_C(64) << 20)

struct row {
	uint64_t address;
	struct unwind_rule rule;
};

struct rows {
	VEC(struct row) rows;
};

static bool outside(void *context, uint64_t address, struct unwind_rule *rule)
{
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

/* ---- the table ------------------------------------------------------------------------------- */

static void follow_code(FILE *out, char *input)
{
	uint8_t code[256];
	struct rows rows;

	follow(code, read_bytes(input, code), &rows);
	for (size_t i = 0; i < rows.rows.count; i++) {
		fprintf(out, "%s%llu: ", i ? ", " : "",
			(unsigned long long)(rows.rows.data[i].address - START));
		put_rule(out, &rows.rows.data[i].rule);
	}
	fputs(rows.rows.count ? "" : "nothing", out);
	vec_free(&rows.rows);
}

static void decode(FILE *out, char *input)
{
	static const char *const effects[] = {
		[X86_PLAIN] = "plain",	   [X86_PADDING] = "padding",	  [X86_PUSH] = "push",
		[X86_POP] = "pop",	   [X86_ADD_SP] = "add sp",	  [X86_COPY_SP] = "copy sp",
		[X86_SET_SP] = "set sp",   [X86_LOAD_SP] = "load sp",	  [X86_LOAD] = "load",
		[X86_LOAD_FP] = "load fp", [X86_STORE] = "store",	  [X86_LEAVE] = "leave",
		[X86_LOSE_SP] = "lose sp", [X86_CALL] = "call",		  [X86_BRANCH] = "branch",
		[X86_JUMP] = "jump",	   [X86_JUMP_AWAY] = "jump away", [X86_RETURN] = "return",
		[X86_STOP] = "stop"};
	uint8_t code[256];
	static const char of_a_register[] = {X86_PUSH,	  X86_POP,     X86_COPY_SP,
					     X86_SET_SP,  X86_LOAD_SP, X86_LOAD,
					     X86_LOAD_FP, X86_STORE,   0};
	size_t size = read_bytes(input, code);
	struct x86_instruction in, part;

	if (!x86_decode(code, size, &in)) {
		fputs("unknown", out);
		return;
	}
	assert_true(in.size == size && in.effect < COUNT(effects));
	fprintf(out, "%u %s", in.size, effects[in.effect]);
	if (in.effect == X86_PUSH && in.reg == X86_NO_REGISTER)
		fputs(" a word", out);
	else if (in.effect && strchr(of_a_register, in.effect))
		fprintf(out, " r%u", in.reg);
	if (in.amount)
		fprintf(out, " %+d", in.amount);
	for (unsigned int i = 0; i < 16; i++)
		if (in.writes >> i & 1)
			fprintf(out, " >r%u", i);
	for (size_t cut = 0; cut < size; cut++) /* prefixes of prefixes may be one */
		assert_true(!x86_decode(code, cut, &part) || part.size <= cut);
}

/* Whatever it is, it ends within what there is, and within 15 bytes. */
TEST(a_decoded_instruction_ends_within_its_bytes)
{
	struct x86_instruction in;

	srandom(1);
	for (int i = 0; i < 300000; i++) {
		size_t size = (size_t)(random() % 20);
		/* a reader of more is seen by sanitizers */
		_cleanup_free_ uint8_t *exact = malloc(size + 1);

		assert_non_null(exact);
		for (size_t k = 0; k < size; k++)
			exact[k] = (uint8_t)random();
		if (x86_decode(exact, size, &in)) {
			assert_true(in.size && in.size <= size && in.size <= X86_SIZE_MAX);
			assert_true(in.effect <= X86_STOP && in.reg <= X86_NO_REGISTER);
		}
	}
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
	_cleanup_close_ int fd = open_c_library();
	_cleanup_free_ void *text = NULL;
	_cleanup_(unwind_table_image__fini) struct unwind_table_image image = {};
	struct comparison c = {.image = &image};
	struct elf_section section;
	struct elf_file *file;
	uint64_t work = WORK, left = 0;
	size_t size;
	double sum;

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
	elf_file__free(file);
}

static const struct text_verb verbs[] = {{"instruction", decode}, {"flow", follow_code}, {}};

TEXT_TABLE("x86_code", verbs, NULL, NULL);
