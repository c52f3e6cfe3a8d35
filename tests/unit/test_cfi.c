/* SPDX-License-Identifier: BSD-2-Clause */
/* Call frame information that was forged: every form of a rule, and malformed ones. */
#include <dwarf.h>
#include <time.h>

#include "rule_text.h"
#include "base/cleanup.h"
#include "unit/forge_dwarf.h"
#include "unwind/cfi.h"

#define SECTION	 0x1000000
#define CODE	 0x400000
#define ROWS_MAX 64

struct reported {
	uint64_t address[ROWS_MAX];
	struct unwind_rule rule[ROWS_MAX];
	size_t count, all;
};

static int keep(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct reported *reported = context;

	if (reported->count < ROWS_MAX) {
		reported->address[reported->count] = address;
		reported->rule[reported->count++] = *rule;
	}
	reported->all++;
	return 0;
}

/* ---- a section ------------------------------------------------------------------------------- */

static void put_8(struct forge *f, uint8_t value)
{
	forge_bytes(f, &value, 1);
}

static void put_32(struct forge *f, uint32_t value)
{
	forge_bytes(f, &value, 4);
}

static void set_length(struct forge *f, size_t start)
{
	uint32_t length = f->size - start - 4;

	memcpy(f->data + start, &length, 4);
}

/* A CIE as compilers write it: CFA is rsp + 8, the return address below it. */
static size_t add_cie(struct forge *f, const char *augmentation, const void *more, size_t size)
{
	static const uint8_t INITIAL[] = {DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1};
	size_t start = f->size;

	put_32(f, 0);
	put_32(f, 0);
	put_8(f, 1);
	forge_bytes(f, augmentation, strlen(augmentation) + 1);
	put_8(f, 1);	/* code alignment */
	put_8(f, 0x78); /* data alignment: -8 */
	put_8(f, 16);	/* return address */
	put_8(f, 1);	/* of augmentation data */
	put_8(f, DW_EH_PE_pcrel | DW_EH_PE_sdata4);
	forge_bytes(f, INITIAL, sizeof(INITIAL));
	forge_bytes(f, more, size);
	set_length(f, start);
	return start;
}

static void add_fde(struct forge *f, size_t cie, uint64_t address, uint32_t length,
		    const void *instructions, size_t size)
{
	size_t start = f->size;

	put_32(f, 0);
	put_32(f, f->size - cie);
	put_32(f, address - (SECTION + f->size));
	put_32(f, length);
	put_8(f, 0);
	forge_bytes(f, instructions, size);
	set_length(f, start);
}

static uint64_t entry; /* of the program whose section it is */

static struct reported read_as(const struct forge *f, bool is_eh_frame, struct cfi_counts *counts)
{
	const struct cfi_section section = {
		.data = (const uint8_t *)f->data,
		.size = f->size,
		.address = SECTION,
		.is_eh_frame = is_eh_frame,
		.entry = entry,
	};
	struct reported reported = {};

	assert_int_equal(cfi_each_row(&section, keep, &reported, counts), 0);
	return reported;
}

static struct reported read_forged(const struct forge *f)
{
	struct cfi_counts counts;

	return read_as(f, true, &counts);
}

/* What one function's instructions make, after the CIE above. */
static void read_instructions(FILE *out, char *input)
{
	const char *augmentation = strsep(&input, " ");
	uint8_t instructions[256];
	size_t size = read_bytes(input, instructions);
	struct forge f = {};
	struct reported reported;

	add_fde(&f, add_cie(&f, augmentation, NULL, 0), CODE, 0x100, instructions, size);
	reported = read_forged(&f);
	for (size_t i = 0; i < reported.count; i++) {
		enum unwind_ra ra = reported.rule[i].ra;

		assert_true(ra == UNWIND_RA_AT_CFA || ra == UNWIND_RA_REGISTER ||
			    (ra == UNWIND_RA_NONE && !reported.rule[i].cfa_offset));
		fprintf(out, "%s%llx: ", i ? ", " : "",
			(unsigned long long)(reported.address[i] - CODE) & 0xfff);
		put_rule(out, &reported.rule[i]);
	}
	forge_free(&f);
}

static const struct text_verb verbs[] = {{"cfi", read_instructions}, {}};

TEXT_TABLE("cfi", verbs, NULL, NULL);

/* ---- rules ----------------------------------------------------------------------------------- */

static void assert_row(const struct reported *reported, size_t row, uint64_t address,
		       struct unwind_rule rule)
{
	assert_true(row < reported->count);
	assert_int_equal(reported->address[row], address);
	assert_memory_equal(&reported->rule[row], &rule, sizeof(rule));
}

#define AT_CFA_8 .ra = UNWIND_RA_AT_CFA, .ra_offset = -8
#define SP(offset)                                                                                 \
	(struct unwind_rule)                                                                       \
	{                                                                                          \
		.cfa = UNWIND_CFA_SP, .cfa_register = 7, .cfa_offset = offset, AT_CFA_8            \
	}
#define NONE                                                                                       \
	(struct unwind_rule)                                                                       \
	{                                                                                          \
	}
#define UNKNOWN                                                                                    \
	(struct unwind_rule)                                                                       \
	{                                                                                          \
		.cfa = UNWIND_CFA_UNKNOWN                                                          \
	}

TEST(a_restored_rbx_has_the_rule_of_its_cie)
{
	static const uint8_t INITIAL[] = {DW_CFA_offset | 3, 2}, OTHER[] = {DW_CFA_undefined, 3},
			     BODY[] = {DW_CFA_advance_loc | 4, DW_CFA_same_value, 3,
				       DW_CFA_advance_loc | 4, DW_CFA_restore | 3};
	struct unwind_rule rule = SP(8);
	struct cfi_section section = {.address = SECTION, .is_eh_frame = true, .tracks_rbx = true};
	struct cfi_counts counts;
	struct reported reported = {};
	struct forge f = {};

	add_fde(&f, add_cie(&f, "zR", INITIAL, sizeof(INITIAL)), CODE, 0x10, BODY, sizeof(BODY));
	add_fde(&f, add_cie(&f, "zR", OTHER, sizeof(OTHER)), CODE + 0x10, 0x10, NULL, 0);
	add_fde(&f, add_cie(&f, "zR", NULL, 0), CODE + 0x20, 0x10, BODY, sizeof(BODY));
	section.data = (const uint8_t *)f.data;
	section.size = f.size;
	assert_int_equal(cfi_each_row(&section, keep, &reported, &counts), 0);
	rule.rbx = UNWIND_RBX_AT_CFA;
	rule.cfa_addend = -16;
	assert_row(&reported, 0, CODE, rule);
	assert_row(&reported, 2, CODE + 8, rule);
	rule.rbx = UNWIND_RBX_SAME;
	rule.cfa_addend = 0;
	assert_row(&reported, 1, CODE + 4, rule);
	assert_row(&reported, 4, CODE + 0x20, rule);
	rule.rbx = UNWIND_RBX_UNTOLD;
	assert_row(&reported, 3, CODE + 0x10, rule);
	forge_free(&f);
}

TEST(the_entry_of_a_program_has_no_caller)
{
	static const uint8_t DEEP[] = {DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 32};
	struct forge f = {};
	struct reported reported;
	size_t cie;

	cie = add_cie(&f, "zR", NULL, 0);
	add_fde(&f, cie, CODE, 0x10, DEEP, sizeof(DEEP));
	add_fde(&f, cie, CODE + 0x10, 0x10, DEEP, sizeof(DEEP));
	entry = CODE + 0x10;
	reported = read_forged(&f);
	assert_int_equal(reported.count, 4);
	assert_row(&reported, 1, CODE + 4, SP(32));
	assert_row(&reported, 2, CODE + 0x10, (struct unwind_rule){.cfa = UNWIND_CFA_ROOT});
	assert_row(&reported, 3, CODE + 0x20, NONE);
	entry = 0;
	reported = read_forged(&f);
	assert_int_equal(reported.count, 5);
	assert_row(&reported, 2, CODE + 0x10, SP(8));
	forge_free(&f);
}

/* ---- functions ------------------------------------------------------------------------------- */

/* Out of order, with padding, with a gap, none of their own, twice. */
TEST(functions_are_sorted_and_overlapping_ones_counted)
{
	static const uint8_t DEEP[] = {DW_CFA_def_cfa_offset, 32};
	struct forge f = {};
	struct cfi_counts counts;
	struct reported reported;
	size_t cie;

	cie = add_cie(&f, "zR", NULL, 0);
	add_fde(&f, cie, CODE + 0x200, 0x10, DEEP, sizeof(DEEP));
	add_fde(&f, cie, CODE, 0x18, NULL, 0);
	put_32(&f, 0); /* an end in the middle */
	add_fde(&f, cie, CODE + 0x20, 0x20, DEEP, sizeof(DEEP));
	add_fde(&f, cie, CODE + 0x30, 0x20, NULL, 0);
	add_fde(&f, cie, CODE + 0x80, 0, DEEP, sizeof(DEEP));
	reported = read_as(&f, true, &counts);
	assert_int_equal(counts.functions, 3);
	assert_int_equal(counts.overlapping, 1);
	assert_int_equal(counts.damaged, 0);
	assert_int_equal(reported.count, 5);
	assert_row(&reported, 0, CODE, SP(8));
	assert_row(&reported, 1, CODE + 0x20, SP(32));
	assert_row(&reported, 2, CODE + 0x40, NONE);
	assert_row(&reported, 3, CODE + 0x200, SP(32));
	assert_row(&reported, 4, CODE + 0x210, NONE);
	forge_free(&f);
}

/* In .debug_frame addresses are plain, and a common entry may come later. */
TEST(a_cie_of_a_debug_frame_may_come_later)
{
	static const uint8_t CIE[] = {
		0xff, 0xff, 0xff, 0xff, 3, 0, 1, 0x78, 16, DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16,
		1,
	};
	struct forge f = {};
	struct cfi_counts counts;
	uint64_t address = CODE, length = 0x40;
	struct reported reported;

	put_32(&f, 20);
	put_32(&f, 24);
	forge_bytes(&f, &address, 8);
	forge_bytes(&f, &length, 8);
	put_32(&f, sizeof(CIE));
	forge_bytes(&f, CIE, sizeof(CIE));
	reported = read_as(&f, false, &counts);
	assert_int_equal(counts.functions, 1);
	assert_row(&reported, 0, CODE, SP(8));
	assert_row(&reported, 1, CODE + 0x40, NONE);
	forge_free(&f);
}

/* ---- malformed -------------------------------------------------------------------------------- */

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* A million states to remember, a million functions of one huge common entry: no square of either. */
TEST(a_huge_section_takes_no_quadratic_time)
{
	enum { MANY = 1000000 };
	_cleanup_free_ uint8_t *many = malloc(MANY);
	struct forge f = {};
	struct cfi_counts counts;
	double begin = seconds();
	size_t cie;

	assert_non_null(many);
	memset(many, DW_CFA_remember_state, MANY);
	add_fde(&f, add_cie(&f, "zR", NULL, 0), CODE, 0x100, many, MANY);
	read_as(&f, true, &counts);
	assert_int_equal(counts.damaged, 1);
	forge_free(&f);

	memset(many, DW_CFA_nop, MANY);
	cie = add_cie(&f, "zR", many, MANY);
	for (uint64_t i = 0; i < 100000; i++)
		add_fde(&f, cie, CODE + 32 * i, 32, NULL, 0);
	assert_int_equal(read_as(&f, true, &counts).all, 100001);
	assert_int_equal(counts.functions, 100000);
	forge_free(&f);
	assert_true(seconds() - begin < 20); /* it takes a few hundredths */
}

/* Cut at every byte: never read beyond, never a row that is not ascending. */
TEST(a_truncated_section_has_no_descending_rows)
{
	static const uint8_t BODY[] = {DW_CFA_advance_loc | 1,
				       DW_CFA_def_cfa_offset,
				       16,
				       DW_CFA_offset | 6,
				       2,
				       DW_CFA_expression,
				       6,
				       2,
				       DW_OP_breg6,
				       0,
				       DW_CFA_def_cfa_expression,
				       3,
				       DW_OP_breg6,
				       0x78,
				       DW_OP_deref};
	struct forge f = {};
	size_t cie;

	cie = add_cie(&f, "zR", NULL, 0);
	add_fde(&f, cie, CODE, 0x40, BODY, sizeof(BODY));
	add_fde(&f, cie, CODE + 0x40, 0x40, BODY, sizeof(BODY));
	for (size_t size = 0; size < f.size; size++) {
		/* for ASan to guard: forge_bytes() would allocate twice the size */
		struct forge cut = {.data = malloc(size ? size : 1), .size = size};
		struct reported reported;

		assert_non_null(cut.data);
		memcpy(cut.data, f.data, size);
		reported = read_forged(&cut);
		for (size_t i = 1; i < reported.count; i++)
			assert_true(reported.address[i - 1] <= reported.address[i]);
		forge_free(&cut);
	}
	forge_free(&f);
}

/* A length that says that a long one follows, at the very end. */
TEST(a_truncated_long_length_keeps_the_function_before_it)
{
	for (size_t rest = 0; rest < 12; rest++) {
		struct forge f = {};
		struct reported reported;

		add_fde(&f, add_cie(&f, "zR", NULL, 0), CODE, 0x40, NULL, 0);
		put_32(&f, UINT32_MAX);
		for (size_t i = 0; i < rest; i++)
			put_8(&f, 0);
		reported = read_forged(&f);
		assert_row(&reported, 0, CODE, SP(8));
		forge_free(&f);
	}
}
