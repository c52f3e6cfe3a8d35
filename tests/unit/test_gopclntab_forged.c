/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function table that is known byte by byte (tests/fixtures/go/table.S), read as it is, and then
 * with one thing changed that a hostile file could have changed.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"
#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "elf/elf_symbols.h"
#include "elf/gopclntab.h"
#include "symbolize/module.h"

#include "elf/gopclntab_open.h"
#include "unit/tools.h"

#define FIXTURE "tests/fixtures/go/table.S"

static int setup(void **state)
{
	_cleanup_free_ char *fixture = realpath(FIXTURE, NULL);

	(void)state;
	if (!fixture || make_scratch())
		return -1;
	run("cc='%s'; as() { ${CC:-cc} -nostdlib \"$@\" $cc; }; "
	    "as -static -no-pie -o go120 && as -static -no-pie -DGO118 -o go118 && "
	    "as -shared -DSHARED -o shared && as -shared -DSHARED -DGO118 -o shared118",
	    fixture);
	return 0;
}

/* ---- a changed copy -------------------------------------------------------------------------- */

struct copy {
	unsigned char *data;
	size_t size;
	struct elf_file *file;
	struct gopclntab *table;
	int fd;
	/* the symbol that is sought */
	const char *wanted;
	uint64_t address;
};

static struct copy copy_of(const char *name)
{
	struct copy c = {.fd = -1};

	c.data = read_scratch(name, &c.size);
	write_scratch("copy", c.data, c.size);
	return c;
}

static int take_object(void *context, const struct elf_symbol *symbol)
{
	struct copy *c = context;

	if (strcmp(symbol->name, c->wanted))
		return 0;
	c->address = symbol->address;
	return 1;
}

static uint64_t address_of(struct copy *c, const char *symbol)
{
	int fd = open_scratch("copy", O_RDONLY);
	struct elf_file *file;

	c->wanted = symbol;
	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(elf_file__each_object(file, false, take_object, c), 1);
	elf_file__free(file);
	close(fd);
	return c->address;
}

/* The bytes at a symbol of the copy. */
static unsigned char *at(struct copy *c, const char *symbol)
{
	uint64_t address = address_of(c, symbol), offset;
	int fd = open_scratch("copy", O_RDONLY);
	struct elf_file *file;

	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(elf_file__offset_of_address(file, address, &offset), 0);
	assert_true(offset < c->size);
	elf_file__free(file);
	close(fd);
	return c->data + offset;
}

static void put32(struct copy *c, const char *symbol, size_t word, uint32_t value)
{
	memcpy(at(c, symbol) + word * sizeof(value), &value, sizeof(value));
}

static void put64(struct copy *c, const char *symbol, size_t word, uint64_t value)
{
	memcpy(at(c, symbol) + word * sizeof(value), &value, sizeof(value));
}

static int open_copy(struct copy *c)
{
	write_scratch("changed", c->data, c->size);
	c->fd = open_scratch("changed", O_RDONLY);
	assert_int_equal(elf_file__open(c->fd, &c->file), 0);
	return gopclntab__open(c->file, &c->table);
}

static void free_copy(struct copy *c)
{
	gopclntab__free(c->table);
	elf_file__free(c->file);
	close(c->fd);
	free(c->data);
}

/* ---- as it is -------------------------------------------------------------------------------- */

#define MAIN  0
#define MCALL 1
#define COUNT 2

static int add_depth(void *context, uint64_t start, uint64_t end, int32_t depth)
{
	char *text = context;
	size_t length = strlen(text);

	snprintf(text + length, 256 - length, "%llu-%llu:%d ", (unsigned long long)start % 0x1000,
		 (unsigned long long)end % 0x1000, depth);
	return 0;
}

static void assert_depths(const struct copy *c, size_t number, int expected, const char *depths)
{
	char text[256] = "";

	assert_int_equal(gopclntab__each_depth(c->table, number, add_depth, text), expected);
	assert_string_equal(text, depths);
}

/* "name file:line (start) < …", innermost first. */
static void assert_frames(const struct copy *c, uint64_t offset, const char *expected)
{
	struct symbol_frame frames[GO_MAX_FRAMES];
	struct go_function function;
	uint64_t until = UINT64_MAX;
	char text[512] = "";
	int count;

	assert_int_equal(gopclntab__function(c->table, MAIN, &function), 0);
	count = gopclntab__frames(c->table, MAIN, function.start + offset, frames, &until);
	assert_true(count > 0 && count <= GO_MAX_FRAMES);
	for (int i = 0; i < count && i < 4; i++) {
		size_t length = strlen(text);

		snprintf(text + length, sizeof(text) - length, "%s%s %s:%u (%u)", i ? " < " : "",
			 frames[i].function, frames[i].file ? frames[i].file : "?", frames[i].line,
			 frames[i].definition_line);
	}
	assert_string_equal(text, expected);
}

static void assert_functions(struct copy *c)
{
	struct go_function function;
	uint64_t text = address_of(c, "text");
	size_t number;

	assert_int_equal(gopclntab__count(c->table), COUNT);
	assert_int_equal(gopclntab__function(c->table, MAIN, &function), 0);
	assert_true(function.start == text && function.end == text + 32);
	assert_string_equal(function.name, "main.main");
	assert_true(!function.id && !function.writes_sp && !function.is_top);
	assert_int_equal(gopclntab__function(c->table, MCALL, &function), 0);
	assert_true(function.start == text + 32 && function.end == text + 48);
	assert_string_equal(function.name, "runtime.mcall");
	assert_true(function.id == 12 && function.writes_sp && !function.is_top);
	assert_int_equal(gopclntab__find(c->table, text + 31, &number), 0);
	assert_int_equal(number, MAIN);
	assert_int_equal(gopclntab__find(c->table, text + 32, &number), 0);
	assert_int_equal(number, MCALL);
	assert_int_equal(gopclntab__find(c->table, text + 48, &number), -ENOENT);
	assert_int_equal(gopclntab__find(c->table, text - 1, &number), -ENOENT);
	assert_depths(c, MAIN, 0, "0-4:0 4-28:24 28-32:0 ");
	assert_depths(c, MCALL, 0, "");
}

TEST(a_go_120_table_gives_frames_with_start_lines)
{
	static const char *const forms[] = {"go120", "shared"};

	for (size_t i = 0; i < 2; i++) {
		struct copy c = copy_of(forms[i]);
		struct symbol_frame frames[GO_MAX_FRAMES];
		uint64_t until = UINT64_MAX;
		struct go_function function;

		assert_int_equal(open_copy(&c), 0);
		assert_functions(&c);
		assert_frames(&c, 0, "main.main /src/a.go:10 (10)");
		assert_frames(&c, 7, "main.main /src/a.go:10 (10)");
		assert_frames(&c, 8,
			      "main.inner /src/b.go:100 (99) < main.outer /src/b.go:100 (50) < "
			      "main.main /src/a.go:10 (10)");
		assert_frames(&c, 15,
			      "main.outer /src/b.go:100 (50) < main.main /src/a.go:10 (10)");
		assert_frames(&c, 31, "main.main /src/a.go:20 (10)");
		assert_string_equal(gopclntab__file(c.table, MAIN), "/src/a.go");
		assert_null(gopclntab__file(c.table, MCALL));
		assert_null(gopclntab__file(c.table, COUNT));
		assert_int_equal(gopclntab__function(c.table, MCALL, &function), 0);
		assert_int_equal(gopclntab__frames(c.table, MAIN, function.start, frames, &until),
				 -EBADMSG);
		assert_int_equal(gopclntab__frames(c.table, MCALL, function.start, frames, &until),
				 1);
		assert_true(!frames[0].file && !frames[0].line && frames[0].definition_line == 30);
		free_copy(&c);
	}
}

TEST(start_lines_are_missing_in_go_118_tables)
{
	static const char *const forms[] = {"go118", "shared118"};

	for (size_t i = 0; i < 2; i++) {
		struct copy c = copy_of(forms[i]);

		assert_int_equal(open_copy(&c), 0);
		assert_functions(&c);
		assert_frames(&c, 8,
			      "main.inner /src/b.go:100 (0) < main.outer /src/b.go:100 (0) < "
			      "main.main /src/a.go:10 (0)");
		assert_frames(&c, 31, "main.main /src/a.go:20 (0)");
		free_copy(&c);
	}
}

/* ---- finding it ------------------------------------------------------------------------------ */

#define WORD_TEXT     3
#define WORD_NAMES    4
#define WORD_RECORDS  8
#define MODULE_NAMES  1
#define MODULE_FIRST  20
#define MODULE_TEXT   22
#define MODULE_GOFUNC 40

static void drop_sections(struct copy *c)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)c->data;

	header->e_shoff = header->e_shnum = header->e_shstrndx = 0;
}

TEST(a_table_is_found_without_sections)
{
	static const char *const forms[] = {"go120", "go118", "shared", "shared118"};

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		struct copy c = copy_of(forms[i]);

		drop_sections(&c);
		assert_int_equal(open_copy(&c), 0);
		assert_functions(&c);
		free_copy(&c);
	}
}

/* What begins like a table and is none does not keep the real one from being found. */
TEST(a_decoy_does_not_hide_the_table)
{
	struct copy c = copy_of("go120");
	unsigned char *decoy = at(&c, "gofunc") - 8;

	memcpy(decoy, at(&c, "table"), 8);
	drop_sections(&c);
	assert_int_equal(open_copy(&c), 0);
	assert_functions(&c);
	free_copy(&c);
}

/* A file without a table that claims to be endless is not read to its end. */
TEST(an_endless_file_is_too_big_to_search)
{
	struct copy c = copy_of("go120");
	Elf64_Ehdr *header = (Elf64_Ehdr *)c.data;
	Elf64_Phdr *segments = (Elf64_Phdr *)(c.data + header->e_phoff);

	put64(&c, "table", 0, 0);
	drop_sections(&c);
	for (size_t i = 0; i < header->e_phnum; i++) {
		if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_W)
			segments[i].p_filesz = segments[i].p_memsz = 1ull << 32;
	}
	write_scratch("endless", c.data, c.size);
	c.fd = open_scratch("endless", O_RDWR);
	assert_int_equal(ftruncate(c.fd, 1ll << 33), 0);
	assert_int_equal(elf_file__open(c.fd, &c.file), 0);
	assert_int_equal(gopclntab__open(c.file, &c.table), -EFBIG);
	free_copy(&c);
}

TEST(the_text_is_located_without_moduledata)
{
	struct copy c = copy_of("go118");

	/* by the table's own pointer */
	put64(&c, "moduledata", 0, 0);
	assert_int_equal(open_copy(&c), 0);
	assert_functions(&c);
	assert_frames(&c, 0, "main.main /src/a.go:10 (0)");
	assert_frames(&c, 8, "main.main ?:0 (0)"); /* the tree is not to be had */
	free_copy(&c);
	/* by .text, at whose start there is a function where the program starts */
	c = copy_of("go120");
	put64(&c, "moduledata", 0, 0);
	assert_int_equal(open_copy(&c), 0);
	assert_functions(&c);
	free_copy(&c);
	/* or not */
	c = copy_of("go120");
	put64(&c, "moduledata", 0, 0);
	((Elf64_Ehdr *)c.data)->e_entry += 1;
	assert_int_equal(open_copy(&c), -EBADMSG);
	free_copy(&c);
}

TEST(a_table_with_only_false_moduledata_is_refused)
{
	static const struct {
		size_t word;
		uint64_t value;
	} lies[] = {
		{MODULE_NAMES, 0},
		{MODULE_NAMES + 1, 1},
		{MODULE_NAMES + 1, 1ull << 40},
		{MODULE_TEXT, 0x1000},
		{MODULE_TEXT, ~0ull},
		{MODULE_FIRST, 0},
		{MODULE_FIRST, ~0ull},
		{MODULE_FIRST + 1, 0},
		{MODULE_FIRST + 1, ~0ull},
		{MODULE_TEXT + 1, 1},
		{17, 2},
		{17, ~0ull},
		{13, 0},
		{MODULE_TEXT, 0},
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		struct copy c = copy_of("go120");

		put64(&c, "moduledata", lies[i].word, lies[i].value);
		((Elf64_Ehdr *)c.data)->e_entry += 1; /* nor does .text help */
		assert_int_equal(open_copy(&c), -EBADMSG);
		free_copy(&c);
	}
}

TEST(a_false_inline_base_costs_only_inlined_calls)
{
	static const uint64_t lies[] = {0, ~0ull, 1ull << 63, 0x400000};

	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		struct copy c = copy_of("go120");

		put64(&c, "moduledata", MODULE_GOFUNC, lies[i]);
		assert_int_equal(open_copy(&c), 0);
		assert_frames(&c, 0, "main.main /src/a.go:10 (10)");
		if (lies[i] != 0x400000) /* there, something could look like a tree */
			assert_frames(&c, 8, "main.main ?:0 (10)");
		free_copy(&c);
	}
}

/* ---- the header ------------------------------------------------------------------------------ */

static void assert_not_opened(size_t word, uint64_t value, int error)
{
	struct copy c = copy_of("go120");

	put64(&c, "table", word, value);
	assert_int_equal(open_copy(&c), error);
	free_copy(&c);
	/* found or not, it is not taken */
	c = copy_of("go120");
	put64(&c, "table", word, value);
	drop_sections(&c);
	assert_int_equal(open_copy(&c), -ENOENT);
	free_copy(&c);
}

TEST(a_table_with_an_invalid_header_is_not_opened)
{
	assert_not_opened(0, 0x08010000fffffffb, -ENOTSUP); /* Go 1.2 */
	assert_not_opened(0, 0x08010000fffffffa, -ENOTSUP); /* Go 1.16 */
	assert_not_opened(0, 0x04010000fffffff1, -ENOTSUP); /* pointers of 4 bytes */
	assert_not_opened(0, 0x08040000fffffff1, -ENOTSUP); /* instructions of 4 */
	assert_not_opened(1, 0, -EBADMSG);
	assert_not_opened(1, 1000, -EBADMSG);
	assert_not_opened(1, 16u << 20, -EBADMSG);
	for (size_t word = WORD_NAMES; word <= WORD_RECORDS; word++) {
		assert_not_opened(word, 0, -EBADMSG);
		assert_not_opened(word, 1ull << 32, -EBADMSG);
		assert_not_opened(word, UINT64_MAX - 8, -EBADMSG);
	}
}

static int drop_result(void *context, size_t index, const struct symbol_result *result)
{
	(void)context;
	(void)index;
	(void)result;
	return 0;
}

/* More functions than are read are left, and counted: the program's symbols may have fewer. */
TEST(a_table_of_too_many_functions_is_left_out)
{
	static const uint64_t counts[] = {(16u << 20) + 1, UINT32_MAX, UINT64_MAX / 8 + 1,
					  UINT64_MAX};
	static const uint64_t address = 0x1000;

	for (size_t i = 0; i < 2 * sizeof(counts) / sizeof(counts[0]); i++) {
		struct copy c = copy_of("go120");
		struct module_files files = {.kind = DSO_FILE, .debug_fd = -1, .alt_fd = -1};
		struct module_report report;

		put64(&c, "table", 1, counts[i / 2]);
		if (i % 2)
			drop_sections(&c);
		assert_int_equal(open_copy(&c), -E2BIG);
		files.elf_fd = c.fd;
		assert_int_equal(module_resolve(&files, &address, 1, drop_result, NULL, &report),
				 0);
		assert_int_equal(report.left, 1u << OUTSIDE_DEBUG_INFO);
		free_copy(&c);
	}
}

TEST(functions_out_of_order_are_an_error)
{
	struct copy c = copy_of("go120");

	put32(&c, "records", 2, 64); /* behind the end */
	assert_int_equal(open_copy(&c), -EBADMSG);
	free_copy(&c);
	c = copy_of("go120");
	put32(&c, "records", 4, UINT32_MAX); /* the end, behind that of the text */
	assert_int_equal(open_copy(&c), -EBADMSG);
	free_copy(&c);
	c = copy_of("go120");
	put32(&c, "records", 0, 8); /* not as moduledata has it, and not as the record has it */
	assert_int_equal(open_copy(&c), -EBADMSG);
	free_copy(&c);
}

TEST(a_table_cut_by_the_file_end_is_refused)
{
	struct copy c = copy_of("go120");
	size_t from = at(&c, "table") - c.data, to = at(&c, "main_record") - c.data, whole = c.size;

	for (size_t size = from; size < to; size += 4) {
		struct copy cut = copy_of("go120");

		cut.size = size;
		assert_true(size < whole && open_copy(&cut) < 0);
		free_copy(&cut);
	}
	free(c.data);
}

/* ---- records --------------------------------------------------------------------------------- */

enum { RECORD_NAME = 1, RECORD_DEPTHS = 4, RECORD_VALUE_TABLES = 7, RECORD_UNIT = 8 };

TEST(an_invalid_record_spoils_only_its_function)
{
	static const uint32_t offsets[] = {UINT32_MAX, UINT32_MAX - 40, 0x7fffffff, 8, 4096};
	struct symbol_frame frames[GO_MAX_FRAMES];
	uint64_t until = UINT64_MAX;
	struct go_function function;

	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
		struct copy c = copy_of("go120");

		put32(&c, "records", 1, offsets[i]);
		assert_int_equal(open_copy(&c), 0);
		assert_int_equal(gopclntab__function(c.table, MAIN, &function), -EBADMSG);
		assert_depths(&c, MAIN, -EBADMSG, "");
		assert_int_equal(
			gopclntab__frames(c.table, MAIN, address_of(&c, "text"), frames, &until),
			-EBADMSG);
		assert_int_equal(gopclntab__function(c.table, MCALL, &function), 0);
		free_copy(&c);
	}
}

TEST(names_outside_their_part_are_empty)
{
	struct go_function function;
	struct copy c = copy_of("go120");

	put32(&c, "main_record", RECORD_NAME, UINT32_MAX);
	assert_int_equal(open_copy(&c), 0);
	assert_int_equal(gopclntab__function(c.table, MAIN, &function), 0);
	assert_string_equal(function.name, "");
	free_copy(&c);
	/* no NUL up to the next part, which has some */
	c = copy_of("go120");
	memset(at(&c, "names"), 'x', at(&c, "units") - at(&c, "names"));
	assert_int_equal(open_copy(&c), 0);
	assert_int_equal(gopclntab__function(c.table, MAIN, &function), 0);
	assert_string_equal(function.name, "");
	free_copy(&c);
}

TEST(a_record_with_too_many_tables_is_an_error)
{
	struct go_function function;
	static const uint32_t counts[] = {UINT32_MAX, 1u << 30, 100};

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		struct copy c = copy_of("go120");

		put32(&c, "main_record", RECORD_VALUE_TABLES, counts[i]);
		assert_int_equal(open_copy(&c), 0);
		assert_int_equal(gopclntab__function(c.table, MAIN, &function), -EBADMSG);
		free_copy(&c);
	}
}

/* ---- values ---------------------------------------------------------------------------------- */

static void assert_changed_depths(const char *bytes, size_t size, int result, const char *depths)
{
	struct copy c = copy_of("go120");

	memcpy(at(&c, "main_depths"), bytes, size);
	assert_int_equal(open_copy(&c), 0);
	assert_depths(&c, MAIN, result, depths);
	free_copy(&c);
}

TEST(depths_are_given_up_to_the_first_bad_value)
{
	struct copy c;

	/* a number of more than five bytes */
	assert_changed_depths("\2\4\377\377\377\377\377\1", 8, -EBADMSG, "0-4:0 ");
	/* the largest there is: up to the function's end, and no further */
	assert_changed_depths("\2\4\60\377\377\377\377\17\60\1", 10, 0, "0-4:0 4-32:24 ");
	/* values that wrap around: 24 steps back from the smallest, and twice the largest */
	assert_changed_depths("\376\377\377\377\17\4\376\377\377\377\17\4\0", 13, 0,
			      "0-4:2147483646 4-8:-3 ");
	/* steps that lead nowhere */
	assert_changed_depths("\2\0\2\0\2\0", 6, -EBADMSG, "");
	assert_changed_depths("\2\4\2\0\2\0", 6, -EBADMSG, "0-4:0 ");
	/* nothing at all */
	assert_changed_depths("\0\0", 2, -EBADMSG, "");
	/* outside of the part */
	c = copy_of("go120");
	put32(&c, "main_record", RECORD_DEPTHS, UINT32_MAX);
	assert_int_equal(open_copy(&c), 0);
	assert_depths(&c, MAIN, 0, "");
	free_copy(&c);
	/* without an end: the next part is not taken for values */
	c = copy_of("go120");
	put32(&c, "main_record", RECORD_DEPTHS, at(&c, "records") - at(&c, "values") - 1);
	memset(at(&c, "records") - 1, 2, 1);
	assert_int_equal(open_copy(&c), 0);
	assert_depths(&c, MAIN, -EBADMSG, "");
	free_copy(&c);
}

TEST(frames_with_a_bad_unit_have_no_file)
{
	static const uint32_t units[] = {UINT32_MAX, 1u << 30, 2};
	struct copy c;

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		c = copy_of("go120");
		put32(&c, "main_record", RECORD_UNIT, units[i]);
		assert_int_equal(open_copy(&c), 0);
		assert_frames(&c, 31, "main.main ?:0 (10)");
		free_copy(&c);
	}
	c = copy_of("go120");
	put32(&c, "units", 0, UINT32_MAX);
	assert_int_equal(open_copy(&c), 0);
	assert_frames(&c, 31, "main.main ?:0 (10)");
	assert_frames(&c, 15, "main.outer /src/b.go:100 (50) < main.main ?:0 (10)");
	free_copy(&c);
	c = copy_of("go120");
	memcpy(at(&c, "main_lines"), "\1\40\0", 3); /* line -2 */
	assert_int_equal(open_copy(&c), 0);
	assert_frames(&c, 0, "main.main /src/a.go:0 (10)");
	free_copy(&c);
}

/* ---- inlined calls --------------------------------------------------------------------------- */

#define NODE_WORDS 4

static void assert_changed_tree(size_t node, size_t word, uint32_t value, uint64_t offset,
				const char *frames, bool is_endless)
{
	struct copy c = copy_of("go120");

	put32(&c, "tree", node * NODE_WORDS + word, value);
	assert_int_equal(open_copy(&c), 0);
	assert_frames(&c, offset, frames);
	assert_int_equal(gopclntab__left(c.table), is_endless);
	free_copy(&c);
}

TEST(invalid_tree_nodes_are_not_followed)
{
	struct copy c;

	/* called by itself, by what it calls, and from outside of the function */
	assert_changed_tree(0, 2, 8, 8, "main.main ?:0 (10)", true);
	assert_changed_tree(1, 2, 8, 8, "main.main ?:0 (10)", true);
	assert_changed_tree(0, 2, 32, 8, "main.main ?:0 (10)", false);
	assert_changed_tree(0, 2, UINT32_MAX, 8, "main.main ?:0 (10)", false);
	/* names and lines that are none */
	assert_changed_tree(1, 1, UINT32_MAX, 12,
			    " /src/b.go:100 (50) < main.main /src/a.go:10 (10)", false);
	assert_changed_tree(1, 3, UINT32_MAX, 12,
			    "main.outer /src/b.go:100 (0) < main.main /src/a.go:10 (10)", false);
	/* a node far away: 1,073,741,823 */
	c = copy_of("go120");
	memcpy(at(&c, "main_inlines"), "\0\10\376\377\377\377\7\4\0", 9);
	assert_int_equal(open_copy(&c), 0);
	assert_frames(&c, 8, "main.main ?:0 (10)");
	free_copy(&c);
}

TEST(tables_of_other_machines_are_not_supported)
{
	struct copy c = copy_of("go120");

	((Elf64_Ehdr *)c.data)->e_machine = EM_AARCH64;
	assert_int_equal(open_copy(&c), -ENOTSUP);
	free_copy(&c);
}

ALL_TESTS_WITH(setup, tear_down_scratch);
