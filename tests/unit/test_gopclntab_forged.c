/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function table that is known byte by byte (tests/fixtures/go/table.S), read as it is, and then
 * with one thing changed that a hostile file could have changed.
 */
#include <elf.h>

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

/* The one of the running test. */
static struct {
	unsigned char *data;
	size_t size;
	struct elf_file *file;
	struct gopclntab *table;
	int fd;
	/* the symbol that is sought */
	const char *wanted;
	uint64_t address;
} c = {.fd = -1};

static int free_copy(void **state)
{
	(void)state;
	gopclntab__free(c.table);
	elf_file__free(c.file);
	if (c.fd >= 0)
		close(c.fd);
	free(c.data);
	c = (__typeof__(c)){.fd = -1};
	return 0;
}

static void given_copy(const char *name)
{
	free_copy(NULL);
	c.data = read_scratch(name, &c.size);
	write_scratch("copy", c.data, c.size);
}

static int take_object(void *context, const struct elf_symbol *symbol)
{
	(void)context;
	if (strcmp(symbol->name, c.wanted))
		return 0;
	c.address = symbol->address;
	return 1;
}

static uint64_t address_of(const char *symbol)
{
	int fd = open_scratch("copy", O_RDONLY);
	struct elf_file *file;

	c.wanted = symbol;
	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(elf_file__each_object(file, false, take_object, NULL), 1);
	elf_file__free(file);
	close(fd);
	return c.address;
}

/* The bytes at a symbol of the copy. */
static unsigned char *at(const char *symbol)
{
	uint64_t address = address_of(symbol), offset;
	int fd = open_scratch("copy", O_RDONLY);
	struct elf_file *file;

	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(elf_file__offset_of_address(file, address, &offset), 0);
	assert_true(offset < c.size);
	elf_file__free(file);
	close(fd);
	return c.data + offset;
}

static void put32(const char *symbol, size_t word, uint32_t value)
{
	memcpy(at(symbol) + word * sizeof(value), &value, sizeof(value));
}

static void put64(const char *symbol, size_t word, uint64_t value)
{
	memcpy(at(symbol) + word * sizeof(value), &value, sizeof(value));
}

static int open_copy(void)
{
	write_scratch("changed", c.data, c.size);
	c.fd = open_scratch("changed", O_RDONLY);
	assert_int_equal(elf_file__open(c.fd, &c.file), 0);
	return gopclntab__open(c.file, &c.table);
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

static void assert_depths(size_t number, int expected, const char *depths)
{
	char text[256] = "";

	assert_int_equal(gopclntab__each_depth(c.table, number, add_depth, text), expected);
	assert_string_equal(text, depths);
}

/* "name file:line (start) < …", innermost first. */
static void assert_frames(uint64_t offset, const char *expected)
{
	struct symbol_frame frames[GO_MAX_FRAMES];
	struct go_function function;
	uint64_t until = UINT64_MAX;
	char text[512] = "";
	int count;

	assert_int_equal(gopclntab__function(c.table, MAIN, &function), 0);
	count = gopclntab__frames(c.table, MAIN, function.start + offset, frames, &until);
	assert_true(count > 0 && count <= GO_MAX_FRAMES);
	for (int i = 0; i < count && i < 4; i++) {
		size_t length = strlen(text);

		snprintf(text + length, sizeof(text) - length, "%s%s %s:%u (%u)", i ? " < " : "",
			 frames[i].function, frames[i].file ? frames[i].file : "?", frames[i].line,
			 frames[i].definition_line);
	}
	assert_string_equal(text, expected);
}

static void assert_functions(void)
{
	struct go_function function;
	uint64_t text = address_of("text");
	size_t number;

	assert_int_equal(gopclntab__count(c.table), COUNT);
	assert_int_equal(gopclntab__function(c.table, MAIN, &function), 0);
	assert_true(function.start == text && function.end == text + 32);
	assert_string_equal(function.name, "main.main");
	assert_true(!function.id && !function.writes_sp && !function.is_top);
	assert_int_equal(gopclntab__function(c.table, MCALL, &function), 0);
	assert_true(function.start == text + 32 && function.end == text + 48);
	assert_string_equal(function.name, "runtime.mcall");
	assert_true(function.id == 12 && function.writes_sp && !function.is_top);
	assert_int_equal(gopclntab__find(c.table, text + 31, &number), 0);
	assert_int_equal(number, MAIN);
	assert_int_equal(gopclntab__find(c.table, text + 32, &number), 0);
	assert_int_equal(number, MCALL);
	assert_int_equal(gopclntab__find(c.table, text + 48, &number), -ENOENT);
	assert_int_equal(gopclntab__find(c.table, text - 1, &number), -ENOENT);
	assert_depths(MAIN, 0, "0-4:0 4-28:24 28-32:0 ");
	assert_depths(MCALL, 0, "");
}

TEST(a_go_120_table_gives_frames_with_start_lines)
{
	static const char *const forms[] = {"go120", "shared"};

	for (size_t i = 0; i < 2; i++) {
		struct symbol_frame frames[GO_MAX_FRAMES];
		uint64_t until = UINT64_MAX;
		struct go_function function;

		given_copy(forms[i]);
		assert_int_equal(open_copy(), 0);
		assert_functions();
		assert_frames(0, "main.main /src/a.go:10 (10)");
		assert_frames(7, "main.main /src/a.go:10 (10)");
		assert_frames(8, "main.inner /src/b.go:100 (99) < main.outer /src/b.go:100 (50) < "
				 "main.main /src/a.go:10 (10)");
		assert_frames(15, "main.outer /src/b.go:100 (50) < main.main /src/a.go:10 (10)");
		assert_frames(31, "main.main /src/a.go:20 (10)");
		assert_string_equal(gopclntab__file(c.table, MAIN), "/src/a.go");
		assert_null(gopclntab__file(c.table, MCALL));
		assert_null(gopclntab__file(c.table, COUNT));
		assert_int_equal(gopclntab__function(c.table, MCALL, &function), 0);
		assert_int_equal(gopclntab__frames(c.table, MAIN, function.start, frames, &until),
				 -EBADMSG);
		assert_int_equal(gopclntab__frames(c.table, MCALL, function.start, frames, &until),
				 1);
		assert_true(!frames[0].file && !frames[0].line && frames[0].definition_line == 30);
	}
}

TEST(start_lines_are_missing_in_go_118_tables)
{
	static const char *const forms[] = {"go118", "shared118"};

	for (size_t i = 0; i < 2; i++) {
		given_copy(forms[i]);
		assert_int_equal(open_copy(), 0);
		assert_functions();
		assert_frames(8, "main.inner /src/b.go:100 (0) < main.outer /src/b.go:100 (0) < "
				 "main.main /src/a.go:10 (0)");
		assert_frames(31, "main.main /src/a.go:20 (0)");
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

static void drop_sections(void)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)c.data;

	header->e_shoff = header->e_shnum = header->e_shstrndx = 0;
}

TEST(a_table_is_found_without_sections)
{
	static const char *const forms[] = {"go120", "go118", "shared", "shared118"};

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		given_copy(forms[i]);
		drop_sections();
		assert_int_equal(open_copy(), 0);
		assert_functions();
	}
}

/* What begins like a table and is none does not keep the real one from being found. */
TEST(a_decoy_does_not_hide_the_table)
{
	given_copy("go120");
	memcpy(at("gofunc") - 8, at("table"), 8);
	drop_sections();
	assert_int_equal(open_copy(), 0);
	assert_functions();
}

/* A file without a table that claims to be endless is not read to its end. */
TEST(an_endless_file_is_too_big_to_search)
{
	Elf64_Phdr *segments;
	Elf64_Ehdr *header;

	given_copy("go120");
	header = (Elf64_Ehdr *)c.data;
	segments = (Elf64_Phdr *)(c.data + header->e_phoff);
	put64("table", 0, 0);
	drop_sections();
	for (size_t i = 0; i < header->e_phnum; i++) {
		if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_W)
			segments[i].p_filesz = segments[i].p_memsz = 1ull << 32;
	}
	write_scratch("endless", c.data, c.size);
	c.fd = open_scratch("endless", O_RDWR);
	assert_int_equal(ftruncate(c.fd, 1ll << 33), 0);
	assert_int_equal(elf_file__open(c.fd, &c.file), 0);
	assert_int_equal(gopclntab__open(c.file, &c.table), -EFBIG);
}

TEST(the_text_is_located_without_moduledata)
{
	given_copy("go118");
	/* by the table's own pointer */
	put64("moduledata", 0, 0);
	assert_int_equal(open_copy(), 0);
	assert_functions();
	assert_frames(0, "main.main /src/a.go:10 (0)");
	assert_frames(8, "main.main ?:0 (0)"); /* the tree is not to be had */
	/* by .text, at whose start there is a function where the program starts */
	given_copy("go120");
	put64("moduledata", 0, 0);
	assert_int_equal(open_copy(), 0);
	assert_functions();
	/* or not */
	given_copy("go120");
	put64("moduledata", 0, 0);
	((Elf64_Ehdr *)c.data)->e_entry += 1;
	assert_int_equal(open_copy(), -EBADMSG);
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
		given_copy("go120");
		put64("moduledata", lies[i].word, lies[i].value);
		((Elf64_Ehdr *)c.data)->e_entry += 1; /* nor does .text help */
		assert_int_equal(open_copy(), -EBADMSG);
	}
}

TEST(a_false_inline_base_costs_only_inlined_calls)
{
	static const uint64_t lies[] = {0, ~0ull, 1ull << 63, 0x400000};

	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		given_copy("go120");
		put64("moduledata", MODULE_GOFUNC, lies[i]);
		assert_int_equal(open_copy(), 0);
		assert_frames(0, "main.main /src/a.go:10 (10)");
		if (lies[i] != 0x400000) /* there, something could look like a tree */
			assert_frames(8, "main.main ?:0 (10)");
	}
}

/* ---- the header ------------------------------------------------------------------------------ */

static void assert_not_opened(size_t word, uint64_t value, int error)
{
	given_copy("go120");
	put64("table", word, value);
	assert_int_equal(open_copy(), error);
	/* found or not, it is not taken */
	given_copy("go120");
	put64("table", word, value);
	drop_sections();
	assert_int_equal(open_copy(), -ENOENT);
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
		struct module_files files = {.kind = DSO_FILE, .debug_fd = -1, .alt_fd = -1};
		struct module_report report;

		given_copy("go120");
		put64("table", 1, counts[i / 2]);
		if (i % 2)
			drop_sections();
		assert_int_equal(open_copy(), -E2BIG);
		files.elf_fd = c.fd;
		assert_int_equal(module_resolve(&files, &address, 1, drop_result, NULL, &report),
				 0);
		assert_int_equal(report.left, 1u << OUTSIDE_DEBUG_INFO);
	}
}

TEST(functions_out_of_order_are_an_error)
{
	given_copy("go120");
	put32("records", 2, 64); /* behind the end */
	assert_int_equal(open_copy(), -EBADMSG);
	given_copy("go120");
	put32("records", 4, UINT32_MAX); /* the end, behind that of the text */
	assert_int_equal(open_copy(), -EBADMSG);
	given_copy("go120");
	put32("records", 0, 8); /* not as moduledata has it, and not as the record has it */
	assert_int_equal(open_copy(), -EBADMSG);
}

TEST(a_table_cut_by_the_file_end_is_refused)
{
	size_t from, to, whole;

	given_copy("go120");
	from = at("table") - c.data;
	to = at("main_record") - c.data;
	whole = c.size;
	for (size_t size = from; size < to; size += 4) {
		given_copy("go120");
		c.size = size;
		assert_true(size < whole && open_copy() < 0);
	}
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
		given_copy("go120");
		put32("records", 1, offsets[i]);
		assert_int_equal(open_copy(), 0);
		assert_int_equal(gopclntab__function(c.table, MAIN, &function), -EBADMSG);
		assert_depths(MAIN, -EBADMSG, "");
		assert_int_equal(
			gopclntab__frames(c.table, MAIN, address_of("text"), frames, &until),
			-EBADMSG);
		assert_int_equal(gopclntab__function(c.table, MCALL, &function), 0);
	}
}

TEST(names_outside_their_part_are_empty)
{
	struct go_function function;

	given_copy("go120");
	put32("main_record", RECORD_NAME, UINT32_MAX);
	assert_int_equal(open_copy(), 0);
	assert_int_equal(gopclntab__function(c.table, MAIN, &function), 0);
	assert_string_equal(function.name, "");
	/* no NUL up to the next part, which has some */
	given_copy("go120");
	memset(at("names"), 'x', at("units") - at("names"));
	assert_int_equal(open_copy(), 0);
	assert_int_equal(gopclntab__function(c.table, MAIN, &function), 0);
	assert_string_equal(function.name, "");
}

TEST(a_record_with_too_many_tables_is_an_error)
{
	struct go_function function;
	static const uint32_t counts[] = {UINT32_MAX, 1u << 30, 100};

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		given_copy("go120");
		put32("main_record", RECORD_VALUE_TABLES, counts[i]);
		assert_int_equal(open_copy(), 0);
		assert_int_equal(gopclntab__function(c.table, MAIN, &function), -EBADMSG);
	}
}

/* ---- values ---------------------------------------------------------------------------------- */

static void assert_changed_depths(const char *bytes, size_t size, int result, const char *depths)
{
	given_copy("go120");
	memcpy(at("main_depths"), bytes, size);
	assert_int_equal(open_copy(), 0);
	assert_depths(MAIN, result, depths);
}

TEST(depths_are_given_up_to_the_first_bad_value)
{
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
	given_copy("go120");
	put32("main_record", RECORD_DEPTHS, UINT32_MAX);
	assert_int_equal(open_copy(), 0);
	assert_depths(MAIN, 0, "");
	/* without an end: the next part is not taken for values */
	given_copy("go120");
	put32("main_record", RECORD_DEPTHS, at("records") - at("values") - 1);
	memset(at("records") - 1, 2, 1);
	assert_int_equal(open_copy(), 0);
	assert_depths(MAIN, -EBADMSG, "");
}

TEST(frames_with_a_bad_unit_have_no_file)
{
	static const uint32_t units[] = {UINT32_MAX, 1u << 30, 2};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		given_copy("go120");
		put32("main_record", RECORD_UNIT, units[i]);
		assert_int_equal(open_copy(), 0);
		assert_frames(31, "main.main ?:0 (10)");
	}
	given_copy("go120");
	put32("units", 0, UINT32_MAX);
	assert_int_equal(open_copy(), 0);
	assert_frames(31, "main.main ?:0 (10)");
	assert_frames(15, "main.outer /src/b.go:100 (50) < main.main ?:0 (10)");
	given_copy("go120");
	memcpy(at("main_lines"), "\1\40\0", 3); /* line -2 */
	assert_int_equal(open_copy(), 0);
	assert_frames(0, "main.main /src/a.go:0 (10)");
}

/* ---- inlined calls --------------------------------------------------------------------------- */

#define NODE_WORDS 4

static void assert_changed_tree(size_t node, size_t word, uint32_t value, uint64_t offset,
				const char *frames, bool is_endless)
{
	given_copy("go120");
	put32("tree", node * NODE_WORDS + word, value);
	assert_int_equal(open_copy(), 0);
	assert_frames(offset, frames);
	assert_int_equal(gopclntab__left(c.table), is_endless);
}

TEST(invalid_tree_nodes_are_not_followed)
{
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
	given_copy("go120");
	memcpy(at("main_inlines"), "\0\10\376\377\377\377\7\4\0", 9);
	assert_int_equal(open_copy(), 0);
	assert_frames(8, "main.main ?:0 (10)");
}

TEST(tables_of_other_machines_are_not_supported)
{
	given_copy("go120");
	((Elf64_Ehdr *)c.data)->e_machine = EM_AARCH64;
	assert_int_equal(open_copy(), -ENOTSUP);
}

EACH_TEST_WITH(NULL, free_copy);
ALL_TESTS_WITH(setup, tear_down_scratch);
