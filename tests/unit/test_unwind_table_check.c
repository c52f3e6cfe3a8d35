/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables from elsewhere: those that are built pass, and every field is wrong once, in each of the ways that it can be.
 */
#include <link.h>

#include "unit.h"
#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "models/unwind_find.h"
#include "unwind/unwind_table.h"
#include "unwind/unwind_table_check.h"

#define LIMIT (UINT64_C(64) << 20)

/* ---- a small one ----------------------------------------------------------------------------- */

#define BUCKETS 3
#define ROWS	7
#define RULES	3

struct small {
	struct unwind_rule rules[RULES];
	uint32_t index[BUCKETS + 1];
	uint8_t numbers[ROWS], addresses[ROWS];
	uint8_t slack[640 - 16 * RULES - 4 * (BUCKETS + 1) - 2 * ROWS];
};

_Static_assert(sizeof(struct small) == 640, "a multiple of 64, with the slack");

struct table {
	struct small small __attribute__((aligned(64)));
	struct unwind_table_image image;
};

static const struct unwind_rule BY_SP = {
	.cfa = UNWIND_CFA_SP,
	.cfa_register = UNWIND_X86_RSP,
	.cfa_offset = 16,
	.fp = UNWIND_FP_AT_CFA,
	.fp_offset = -16,
	.ra = UNWIND_RA_AT_CFA,
	.ra_offset = -8,
};

/* Row 0, two rows in the first bucket, none in the second, four in the third. */
static void make(struct table *t)
{
	*t = (struct table){
		.small = {.rules = {BY_SP, {}, {.cfa = UNWIND_CFA_ROOT}},
			  .index = {1, 3, 3, ROWS},
			  .numbers = {1, 0, 1, 0, 2, 0, 1},
			  .addresses = {0, 0, 200, 7, 8, 9, 255}},
		.image = {.table = {.base = 0x1000,
				    .buckets = BUCKETS,
				    .index = offsetof(struct small, index),
				    .numbers = offsetof(struct small, numbers),
				    .addresses = offsetof(struct small, addresses),
				    .number_size = 1},
			  .size = sizeof(struct small),
			  .rows = ROWS},
	};
	t->image.bytes = &t->small;
}

TEST(a_small_valid_table_passes)
{
	struct table t;

	make(&t);
	assert_int_equal(unwind_table_image__check(&t.image), 0);
}

/* Each is one assignment to a good table, after which it is none. */
#define WRONG(assignment)                                                                          \
	do {                                                                                       \
		struct table t;                                                                    \
		make(&t);                                                                          \
		assignment;                                                                        \
		if (unwind_table_image__check(&t.image) != -EBADMSG)                               \
			fail_msg("taken: %s", #assignment);                                        \
	} while (0)

#define RIGHT(assignment)                                                                          \
	do {                                                                                       \
		struct table t;                                                                    \
		make(&t);                                                                          \
		assignment;                                                                        \
		if (unwind_table_image__check(&t.image))                                           \
			fail_msg("refused: %s", #assignment);                                      \
	} while (0)

TEST(a_wrong_field_of_a_table_is_refused)
{
	WRONG(t.image.bytes = NULL);
	WRONG(t.image.bytes = (char *)t.image.bytes + 4);
	WRONG(t.image.size = 0);
	WRONG(t.image.size -= 64);
	WRONG(t.image.size += 64);
	WRONG(t.image.size += 1);
	WRONG(t.image.size += UINT64_C(1) << 32);
	WRONG(t.image.rows = 0);
	WRONG(t.image.rows = 1);
	WRONG(t.image.rows--);
	WRONG(t.image.rows++);
	WRONG(t.image.rows = UINT64_MAX);
	WRONG(t.image.rows += UINT64_C(1) << 32);
	WRONG(t.image.table.base++);
	WRONG(t.image.table.base = -(uint64_t)UNWIND_BUCKET_SIZE);
	RIGHT(t.image.table.base = -(uint64_t)UNWIND_BUCKET_SIZE * BUCKETS);
	WRONG(t.image.table.buckets = 0);
	WRONG(t.image.table.buckets--);
	WRONG(t.image.table.buckets++);
	WRONG(t.image.table.buckets = UINT32_MAX);
	WRONG(t.image.table.dictionary = 16);
	WRONG(t.image.table.index = 0);
	WRONG(t.image.table.index += 16);
	WRONG(t.image.table.index -= 16);
	WRONG(t.image.table.index++);
	WRONG(t.image.table.index = UINT32_MAX & ~15u);
	WRONG(t.image.table.numbers++);
	WRONG(t.image.table.numbers = UINT32_MAX);
	WRONG(t.image.table.addresses++);
	WRONG(t.image.table.addresses = 0);
	WRONG(t.image.table.segment = 1);
	WRONG(t.image.table.number_size = 0);
	WRONG(t.image.table.number_size = 2);
	WRONG(t.image.table.number_size = 3);
	WRONG(t.image.counts.functions = UINT64_MAX);
	WRONG(t.image.counts.damaged = UINT64_MAX);
	WRONG(t.image.counts.unsupported = UINT64_MAX);
	WRONG(t.image.counts.overlapping = UINT64_MAX);
	RIGHT(t.image.counts.functions = 1000000);
}

TEST(rows_out_of_order_or_range_are_refused)
{
	for (size_t i = 0; i <= BUCKETS; i++) {
		WRONG(t.small.index[i] = UINT32_MAX);
		WRONG(t.small.index[i] = ROWS + 1);
	}
	WRONG(t.small.index[0] = 0);
	WRONG(t.small.index[0]++);
	WRONG(t.small.index[1]++); /* its rows are not sorted any more */
	RIGHT(t.small.index[2]++); /* of the third bucket to the second */
	WRONG(t.small.index[2]--);
	WRONG(t.small.index[3]--);
	WRONG(t.small.index[1] = 1);	/* nothing in the first bucket */
	WRONG(t.small.index[2] = ROWS); /* … and in the last */
	RIGHT(t.small.index[1] = 2; t.small.addresses[2] = 3);
	WRONG(t.small.addresses[0] = 1);
	WRONG(t.small.addresses[1] = 201);
	WRONG(t.small.addresses[3] = 9);
	WRONG(t.small.addresses[5] = 7);
	WRONG(t.small.addresses[6] = 0);
	RIGHT(t.small.addresses[3] = 8);
	for (size_t i = 0; i < ROWS; i++) {
		WRONG(t.small.numbers[i] = RULES);
		WRONG(t.small.numbers[i] = UINT8_MAX);
	}
	WRONG(t.small.numbers[0] = 0); /* before the first row there is nothing */
	WRONG(t.small.slack[0] = 1);
	WRONG(t.small.slack[sizeof(t.small.slack) - 1] = 1);
}

TEST(rules_that_no_builder_writes_are_refused)
{
	WRONG(t.small.rules[0].cfa = UNWIND_CFA_NONE);
	WRONG(t.small.rules[0].cfa = UNWIND_CFA_STARTER + 1);
	WRONG(t.small.rules[0].cfa = UINT8_MAX);
	WRONG(t.small.rules[0].cfa_register = UNWIND_X86_RBP);
	WRONG(t.small.rules[0].cfa_register = 16);
	WRONG(t.small.rules[0].fp = UNWIND_FP_SAME); /* with an offset */
	WRONG(t.small.rules[0].fp = UNWIND_FP_UNKNOWN);
	WRONG(t.small.rules[0].fp = UNWIND_FP_UNKNOWN + 1);
	WRONG(t.small.rules[0].rbx = UNWIND_RBX_AT_CFA + 1);
	WRONG(t.small.rules[0].ra = UNWIND_RA_NONE);
	WRONG(t.small.rules[0].ra = UNWIND_RA_REGISTER); /* register -8 */
	WRONG(t.small.rules[0].ra = UNWIND_RA_REGISTER + 1);
	WRONG(t.small.rules[0].cfa_addend = 8);
	WRONG(t.small.rules[0].cfa = UNWIND_CFA_PLT);
	WRONG(t.small.rules[0].cfa = UNWIND_CFA_FP); /* by the stack pointer */
	RIGHT(t.small.rules[0].cfa_offset = INT32_MIN);
	RIGHT(t.small.rules[0].fp_offset = INT32_MAX);
	RIGHT(t.small.rules[0].ra = UNWIND_RA_INTERRUPTED);
	RIGHT(t.small.rules[0].ra = UNWIND_RA_INFERRED);
	WRONG(t.small.rules[0].ra = UNWIND_RA_INFERRED; t.small.rules[0].ra_offset = -16);
	RIGHT(t.small.rules[0].ra = UNWIND_RA_REGISTER; t.small.rules[0].ra_offset = 12);
	WRONG(t.small.rules[0].ra = UNWIND_RA_REGISTER; t.small.rules[0].ra_offset = 16);
	RIGHT(t.small.rules[0].rbx = UNWIND_RBX_AT_CFA; t.small.rules[0].cfa_addend = -24);
	RIGHT(t.small.rules[0].cfa = UNWIND_CFA_REGISTER; t.small.rules[0].cfa_register = 10);
	WRONG(t.small.rules[0].cfa = UNWIND_CFA_REGISTER; t.small.rules[0].cfa_register = 200);
	RIGHT(t.small.rules[0].cfa = UNWIND_CFA_DEREF; t.small.rules[0].cfa_addend = 8);
	WRONG(t.small.rules[0].cfa = UNWIND_CFA_DEREF; t.small.rules[0].rbx = UNWIND_RBX_AT_CFA);
	RIGHT(t.small.rules[0].cfa = UNWIND_CFA_DEREF_TWICE; t.small.rules[0].cfa_addend = 8);
	WRONG(t.small.rules[0].cfa = UNWIND_CFA_DEREF_TWICE;
	      t.small.rules[0].rbx = UNWIND_RBX_AT_CFA);
	RIGHT(t.small.rules[0].cfa = UNWIND_CFA_PLT; t.small.rules[0].cfa_offset = 11);
	WRONG(t.small.rules[0].cfa = UNWIND_CFA_PLT; t.small.rules[0].cfa_offset = -1);
}

TEST(fields_in_rules_of_kinds_without_any_are_refused)
{
	static const enum unwind_cfa BARE[] = {UNWIND_CFA_SIGNAL, UNWIND_CFA_ROOT,
					       UNWIND_CFA_UNKNOWN, UNWIND_CFA_LATER,
					       UNWIND_CFA_STARTER};

	for (size_t i = 0; i < sizeof(BARE) / sizeof(*BARE); i++) {
		RIGHT(t.small.rules[2].cfa = BARE[i]);
		for (size_t at = 1; at < sizeof(struct unwind_rule); at++)
			WRONG(t.small.rules[2].cfa = BARE[i];
			      ((unsigned char *)&t.small.rules[2])[at] = 1);
	}
	RIGHT(t.small.rules[2] = (struct unwind_rule){.ra = UNWIND_RA_INFERRED});
	WRONG(t.small.rules[2] = (struct unwind_rule){.ra = UNWIND_RA_AT_CFA});
	WRONG(t.small.rules[2] = (struct unwind_rule){.ra_offset = 1});
}

TEST(stack_switch_rules_with_wrong_fields_are_refused)
{
	const struct unwind_rule to_stack = {.cfa = UNWIND_CFA_SWITCH, .cfa_offset = 0x1000},
				 depth = {.cfa = UNWIND_CFA_GO_DEPTH,
					  .cfa_offset = 0x1000,
					  .fp_offset = 0x28},
				 saved = {.cfa = UNWIND_CFA_GO_CALLER,
					  .cfa_register = 1,
					  .cfa_offset = 0x1000,
					  .fp_offset = -8,
					  .ra_offset = 0xc0,
					  .cfa_addend = 0x60};

	RIGHT(t.small.rules[2] = to_stack);
	RIGHT(t.small.rules[2] = depth);
	RIGHT(t.small.rules[2] = saved);
	WRONG(t.small.rules[2] = to_stack; t.small.rules[2].cfa_offset = -1);
	WRONG(t.small.rules[2] = to_stack; t.small.rules[2].fp_offset = 8);
	WRONG(t.small.rules[2] = to_stack; t.small.rules[2].ra = 1);
	WRONG(t.small.rules[2] = depth; t.small.rules[2].fp_offset = -8);
	WRONG(t.small.rules[2] = depth; t.small.rules[2].cfa_addend = 8);
	WRONG(t.small.rules[2] = saved; t.small.rules[2].cfa_register = 2);
	WRONG(t.small.rules[2] = saved; t.small.rules[2].ra_offset = 0);
	WRONG(t.small.rules[2] = saved; t.small.rules[2].rbx = 1);
}

/* ---- whatever is flipped --------------------------------------------------------------------- */

static void search(const struct unwind_table_image *image)
{
	const struct unwind_table *t = &image->table;

	for (uint32_t b = 0; b < t->buckets; b++)
		for (unsigned int i = 0; i < UNWIND_BUCKET_SIZE; i++) {
			const char *rule = (const void *)unwind_table__find(
				image->bytes, t, t->base + ((uint64_t)b << UNWIND_BUCKET_BITS) + i);

			assert_true(rule >= (const char *)image->bytes);
			assert_true(rule + sizeof(struct unwind_rule) <=
				    (const char *)image->bytes + t->index);
		}
}

/* Every bit of the fields and of the bytes: what is taken all the same can be searched. */
TEST(tables_with_a_flipped_bit_are_refused_or_searchable)
{
	struct table t;
	size_t taken = 0, refused = 0;

	for (size_t bit = 0; bit < 8 * sizeof(t); bit++) {
		unsigned char *bytes = (void *)&t;
		size_t pointer = offsetof(struct table, image.bytes);

		if (bit / 8 >= pointer && bit / 8 < pointer + sizeof(void *))
			continue;
		make(&t);
		bytes[bit / 8] ^= 1 << bit % 8;
		if (unwind_table_image__check(&t.image)) {
			refused++;
			continue;
		}
		search(&t.image);
		taken++;
	}
	/* offsets, counts, the last bits of addresses */
	assert_true(refused > 4500 && taken > 50);
}

/* ---- those that are built -------------------------------------------------------------------- */

static int check_library(struct dl_phdr_info *info, size_t size, void *context)
{
	_cleanup_close_ int fd = open(*info->dlpi_name ? info->dlpi_name : "/proc/self/exe",
				      O_RDONLY | O_CLOEXEC);
	struct unwind_table_image image;
	unsigned int *checked = context;
	struct elf_file *file;

	if (fd < 0 || elf_file__open(fd, &file))
		return 0;
	if (!unwind_table__build(file, LIMIT, &image)) {
		assert_int_equal(unwind_table_image__check(&image), 0);
		++*checked;
		unwind_table_image__fini(&image);
	}
	elf_file__free(file);
	return 0;
}

TEST(built_tables_of_libraries_and_frames_pass)
{
	const struct made_frame frames[] = {
		{.start = 0x1000, .end = 0x1040, .size = 32, .ra_offset = -8},
		{.start = 0x1040, .end = 0x2080, .size = 64, .fp_offset = -16, .ra_offset = -8}};
	_cleanup_(unwind_table_image__fini) struct unwind_table_image image = {};
	unsigned int checked = 0;

	dl_iterate_phdr(check_library, &checked);
	assert_true(checked >= 3);
	assert_int_equal(unwind_table__build_frames(frames, 2, LIMIT, &image), 0);
	assert_int_equal(unwind_table_image__check(&image), 0);
}
