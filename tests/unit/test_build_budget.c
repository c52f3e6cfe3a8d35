/* SPDX-License-Identifier: BSD-2-Clause */
/* What building a table may take: each limit ends it before it is exceeded, and says that it was that. */
#include <elf.h>

#include "unit.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "unit/forge_dwarf.h"
#include "unwind/unwind_rows.h"
#include "unwind/unwind_table.h"
#include "unwind/unwind_table_check.h"

#define LIMIT	  (UINT64_C(64) << 20)
#define FUNCTIONS 20000
#define CODE	  0x10000

/* Functions of 16 bytes with two rows each, in order or the other way round. */
static int forge_functions(bool descending, size_t *size)
{
	static const uint8_t CIE[] = "\0\0\0\0\1zR\0\1\x78\x10\1\0\x0c\7\x08\x90\1";
	struct forged_section section = {".eh_frame", {}, 0};
	struct forge *f = &section.content;
	int fd;

	forge_number(f, sizeof(CIE) - 1, 4);
	forge_bytes(f, CIE, sizeof(CIE) - 1);
	for (uint64_t i = 0; i < FUNCTIONS; i++) {
		forge_number(f, 4 + 8 + 8 + 1 + 3, 4);
		forge_number(f, f->size, 4);
		forge_number(f, CODE + 16 * (descending ? FUNCTIONS - i : i), 8);
		forge_number(f, 16, 8);
		forge_number(f, 0, 1);
		forge_bytes(f, (const uint8_t[]){DW_CFA_advance_loc | 8, DW_CFA_def_cfa_offset, 16},
			    3);
	}
	*size = f->size;
	fd = forge_elf(&section, 1, ET_DYN);
	forge_free(f);
	return fd;
}

static int build(int fd, const struct build_limits *limits, enum table_refusal *refusal)
{
	struct unwind_table_image image;
	struct elf_file *file;
	int err;

	assert_int_equal(elf_file__open(fd, &file), 0);
	err = unwind_table__build_within(file, LIMIT, limits, &image, refusal);
	elf_file__free(file);
	if (!err) {
		assert_int_equal(image.rows, 2 * FUNCTIONS + 2);
		unwind_table_image__fini(&image);
	}
	return err;
}

static void assert_refused(int fd, struct build_limits limits, enum table_refusal expected)
{
	enum table_refusal refusal = TABLE_REFUSAL_NONE;

	assert_int_equal(build(fd, &limits, &refusal), -EFBIG);
	assert_int_equal(refusal, expected);
	assert_true(*table_refusal_text(refusal));
}

TEST(input_rows_and_time_have_limits_of_their_own)
{
	struct build_limits limits = BUILD_LIMITS;
	enum table_refusal refusal = TABLE_REFUSAL_TIME;
	size_t size, rows = 2 * FUNCTIONS + 1;
	_cleanup_close_ int fd = forge_functions(false, &size);

	assert_int_equal(build(fd, &limits, &refusal), 0);
	assert_int_equal(refusal, TABLE_REFUSAL_NONE);
	limits.input = size - 1;
	assert_refused(fd, limits, TABLE_REFUSAL_INPUT);
	limits.input = size;
	limits.rows = rows - 1;
	assert_refused(fd, limits, TABLE_REFUSAL_ROWS);
	limits.rows = rows;
	assert_int_equal(build(fd, &limits, &refusal), 0);
	limits.cpu_ns = 0;
	assert_refused(fd, limits, TABLE_REFUSAL_TIME);
}

/* The section, 24 bytes a function and 12 a row; sorting takes the functions a second time. */
TEST(the_memory_limit_counts_section_functions_and_rows)
{
	for (int descending = 0; descending < 2; descending++) {
		size_t size, least;
		_cleanup_close_ int fd = forge_functions(descending, &size);
		struct build_limits limits = BUILD_LIMITS;
		enum table_refusal refusal;

		least = size + 24 * FUNCTIONS;
		least += descending ? 24 * FUNCTIONS + 200 : 12 * (2 * FUNCTIONS + 1);
		limits.memory = least + 1000;
		if (descending) /* the rows come when that is over */
			limits.memory = size + (24 + 24 + 2) * FUNCTIONS;
		assert_int_equal(build(fd, &limits, &refusal), 0);
		limits.memory = least - 1000;
		assert_refused(fd, limits, TABLE_REFUSAL_MEMORY);
		limits.memory = size - 1;
		assert_refused(fd, limits, TABLE_REFUSAL_MEMORY);
		limits.memory = 0;
		assert_refused(fd, limits, TABLE_REFUSAL_MEMORY);
	}
}

TEST(a_table_larger_than_its_limit_is_refused)
{
	size_t size;
	_cleanup_close_ int fd = forge_functions(false, &size);
	struct unwind_table_image image;
	enum table_refusal refusal;
	struct elf_file *file;

	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(unwind_table__build_within(file, 84000, &BUILD_LIMITS, &image, &refusal),
			 -EFBIG);
	assert_int_equal(refusal, TABLE_REFUSAL_SIZE);
	elf_file__free(file);
}

/* More functions in the unwind information of one piece of JIT code than are kept of all of them. */
TEST(a_piece_with_too_many_functions_is_refused)
{
	enum { PIECE_FUNCTIONS = 5000000, SIZE = 28 };
	static const uint8_t CIE[] = "\x10\0\0\0\0\0\0\0\1\0\1\x78\x10\x0c\7\x08\x90\1\0\0";
	const size_t size = sizeof(CIE) - 1 + (size_t)PIECE_FUNCTIONS * SIZE;
	_cleanup_free_ uint8_t *data = calloc(1, size);
	_cleanup_(unwind_table_image__fini) struct unwind_table_image image = {};
	struct unwind_piece piece = {
		.start = CODE,
		.end = CODE + PIECE_FUNCTIONS,
		.section = {.data = data, .size = size, .is_eh_frame = true},
	};

	assert_non_null(data);
	memcpy(data, CIE, sizeof(CIE) - 1);
	for (uint32_t i = 0; i < PIECE_FUNCTIONS; i++) {
		uint32_t at = sizeof(CIE) - 1 + i * SIZE;
		const uint32_t head[] = {SIZE - 4, at + 4};
		const uint64_t code[] = {CODE + i, 1};

		memcpy(data + at, head, sizeof(head));
		memcpy(data + at + sizeof(head), code, sizeof(code));
	}
	assert_int_equal(unwind_table__build_pieces(&piece, 1, LIMIT, &image), -EFBIG);
	piece.section.size = sizeof(CIE) - 1 + 1000 * SIZE;
	assert_int_equal(unwind_table__build_pieces(&piece, 1, LIMIT, &image), 0);
	assert_int_equal(image.counts.functions, 1000);
	assert_int_equal(unwind_table_image__check(&image), 0);
}

/* Code that is not followed is counted; the table has all the rest. The program's start has no CFI. */
TEST(code_that_is_not_followed_is_counted_as_left)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct build_limits limits = BUILD_LIMITS;
	struct unwind_table_image image;
	enum table_refusal refusal;
	struct elf_file *file;
	uint64_t rows;

	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(unwind_table__build_within(file, LIMIT, &limits, &image, &refusal), 0);
	assert_int_equal(image.left, 0);
	rows = image.rows;
	unwind_table_image__fini(&image);
	limits.code_steps = 1;
	assert_int_equal(unwind_table__build_within(file, LIMIT, &limits, &image, &refusal), 0);
	assert_int_equal(refusal, TABLE_REFUSAL_NONE);
	assert_true(image.left >= 32 && image.left < 4096);
	assert_true(image.rows < rows && image.rows > rows / 2);
	unwind_table_image__fini(&image);
	elf_file__free(file);
}

/* This program, with a .text that has `size` bytes by its header. */
static int with_text_of(uint64_t size)
{
	int fd = memfd_create("text", MFD_CLOEXEC);
	_cleanup_free_ char *data = NULL;
	const Elf64_Ehdr *header;
	Elf64_Shdr *sections;
	const char *names;
	size_t length;

	assert_true(fd >= 0);
	assert_int_equal(read_file_at(AT_FDCWD, "/proc/self/exe", LIMIT, &data, &length), 0);
	header = (const void *)data;
	sections = (void *)(data + header->e_shoff);
	names = data + sections[header->e_shstrndx].sh_offset;
	for (int i = 0; i < header->e_shnum; i++)
		if (!strcmp(names + sections[i].sh_name, ".text"))
			sections[i].sh_size = size;
	assert_int_equal(write_full(fd, data, length), 0);
	return fd;
}

/* What a section header claims beyond the end of the file costs nothing, and is left. */
TEST(text_claimed_beyond_the_file_refuses_no_table)
{
	_cleanup_close_ int fd = with_text_of(UINT64_C(1) << 62);
	_cleanup_(unwind_table_image__fini) struct unwind_table_image image = {};
	enum table_refusal refusal;
	struct elf_file *file;

	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(unwind_table__build_within(file, LIMIT, &BUILD_LIMITS, &image, &refusal),
			 0);
	assert_int_equal(refusal, TABLE_REFUSAL_NONE);
	assert_int_equal(image.left, UINT32_MAX);
	elf_file__free(file);
}

TEST(rows_give_back_all_the_memory_they_took)
{
	static const struct unwind_rule RULES[] = {{.cfa = UNWIND_CFA_ROOT}, {}};
	struct build_limits limits = BUILD_LIMITS;
	struct build_budget budget;
	struct unwind_rows r;
	row_list more = {};

	limits.memory = 12 * 15;
	build_budget__start(&budget, &limits);
	unwind_rows__init(&r, LIMIT, &budget);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(unwind_rows__add(&r, 100 * i, &RULES[i % 2]), 0);
	for (uint64_t i = 0; i < 2; i++)
		assert_int_equal(unwind_rows__add_to(&r, &more, 100 * i + 50, &RULES[0]), 0);
	assert_int_equal(budget.memory, 12 * 12);
	assert_int_equal(unwind_rows__merge(&r, &more), 0);
	assert_int_equal(r.rows.count, 12);
	for (size_t i = 1; i < r.rows.count; i++)
		assert_true(r.rows.data[i - 1].address < r.rows.data[i].address);
	unwind_rows__drop(&r, &more);
	assert_int_equal(budget.memory, 12 * 12);
	assert_int_equal(budget.peak, 12 * 14);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(unwind_rows__add(&r, 2000 + i, &RULES[i % 2]), 0);
	assert_int_equal(unwind_rows__add(&r, 3000, &RULES[1]), -EFBIG);
	assert_int_equal(budget.refusal, TABLE_REFUSAL_MEMORY);
	unwind_rows__clear(&r);
	assert_int_equal(budget.memory, 0);
	unwind_rows__fini(&r);
	assert_int_equal(budget.memory, 0);
}

/* Of two rows for one address the one that says something stays, else the added one. */
TEST(a_merge_replaces_only_rows_without_a_cfa)
{
	static const struct unwind_rule SAYS = {.cfa = UNWIND_CFA_ROOT},
					WHY = {.ra = UNWIND_RA_INFERRED}, NONE = {};
	static const uint64_t ADDRESSES[] = {100, 150, 200, 300, 400, 500};
	_cleanup_(unwind_rows__fini) struct unwind_rows r = {};
	row_list more = {};

	unwind_rows__init(&r, LIMIT, NULL);
	for (uint64_t i = 1; i <= 4; i++)
		assert_int_equal(unwind_rows__add(&r, 100 * i, i % 2 ? &SAYS : &NONE), 0);
	assert_int_equal(unwind_rows__add_to(&r, &more, 150, &SAYS), 0);
	assert_int_equal(unwind_rows__add_to(&r, &more, 200, &WHY), 0);
	assert_int_equal(unwind_rows__add_to(&r, &more, 300, &WHY), 0);
	assert_int_equal(unwind_rows__add_to(&r, &more, 500, &SAYS), 0);
	assert_int_equal(unwind_rows__merge(&r, &more), 0);
	assert_int_equal(r.rows.count, 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(r.rows.data[i].address, ADDRESSES[i]);
	assert_true(unwind_rows__is_rule(&r, r.rows.data[2].rule, &WHY));
	assert_true(unwind_rows__is_rule(&r, r.rows.data[3].rule, &SAYS));
	unwind_rows__drop(&r, &more);
}
