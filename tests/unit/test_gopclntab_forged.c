/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function table that is known byte by byte (tests/fixtures/go/table.S), read as it is, and then
 * with one thing changed that a hostile file could have changed.
 */
#include <elf.h>

#include "text_cases.h"
#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "elf/elf_symbols.h"
#include "elf/gopclntab.h"
#include "symbolize/module.h"

#include "elf/gopclntab_open.h"
#include "unit/tools.h"

#define FIXTURE "tests/fixtures/go/table.S"

static void build_fixtures(void)
{
	_cleanup_free_ char *fixture = realpath(FIXTURE, NULL);

	assert_non_null(fixture);
	make_scratch();
	run("cc='%s'; as() { ${CC:-cc} -nostdlib \"$@\" $cc; }; "
	    "for v in 118 120 126 127; do as -static -no-pie -DGO$v -o go$v && "
	    "as -shared -DSHARED -DGO$v -o shared$v || exit 1; done",
	    fixture);
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

static void free_opened(void)
{
	gopclntab__free(c.table);
	elf_file__free(c.file);
	if (c.fd >= 0)
		close(c.fd);
	c.table = NULL;
	c.file = NULL;
	c.fd = -1;
}

static void free_copy(void)
{
	free_opened();
	free(c.data);
	c = (__typeof__(c)){.fd = -1};
}

static void given_copy(const char *name)
{
	if (!*scratch)
		build_fixtures();
	free_copy();
	c.data = read_scratch(name, &c.size);
	write_scratch("copy", c.data, c.size);
}

static int take_object(void *context, const struct elf_symbol *symbol)
{
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

static void drop_sections(void)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)c.data;

	header->e_shoff = header->e_shnum = header->e_shstrndx = 0;
}

/* ---- testdata/gopclntab_forged.txt ----------------------------------------------------------- */

#define MAIN  0
#define MCALL 1

static int add_depth(void *context, uint64_t start, uint64_t end, int32_t depth)
{
	char *text = context;
	size_t length = strlen(text);

	snprintf(text + length, 256 - length, "%s%llu-%llu:%d", length ? " " : "",
		 (unsigned long long)start % 0x1000, (unsigned long long)end % 0x1000, depth);
	return 0;
}

static void put_depths(FILE *out)
{
	char text[256] = "";
	int err = gopclntab__each_depth(c.table, MAIN, add_depth, text);

	fprintf(out, "%s%s", text, *text && err ? " " : "");
	if (err)
		text_put_error(out, err);
}

/* "NAME START-END ID", as offsets in the text. */
static void put_function(FILE *out, size_t number)
{
	const uint64_t text = address_of("text");
	struct go_function f;
	int err = gopclntab__function(c.table, number, &f);

	if (err)
		text_put_error(out, err);
	else
		fprintf(out, "%s %d-%d%s%s%s", *f.name ? f.name : "no name", (int)(f.start - text),
			(int)(f.end - text),
			f.id == 12 ? " mcall"
			: f.id	   ? " special"
				   : "",
			f.writes_sp ? " writes sp" : "", f.is_top ? " top" : "");
}

/* Which function an offset in the text is of. */
static void put_found(FILE *out, int64_t offset)
{
	size_t number;
	int err = gopclntab__find(c.table, address_of("text") + (uint64_t)offset, &number);

	if (err)
		text_put_error(out, err);
	else
		fprintf(out, "%zu", number);
}

/* "NAME FILE:LINE (START LINE) < …", innermost first, at an offset in the text. */
static void put_frames(FILE *out, size_t function, uint64_t offset)
{
	struct symbol_frame frames[GO_MAX_FRAMES];
	uint64_t until = UINT64_MAX;
	int count = gopclntab__frames(c.table, function, address_of("text") + offset, frames,
				      &until);

	assert_true(count <= GO_MAX_FRAMES);
	if (count < 0)
		text_put_error(out, count);
	for (int i = 0; i < count && i < 4; i++)
		fprintf(out, "%s%s %s:%u (%u)", i ? " < " : "", frames[i].function,
			frames[i].file ? frames[i].file : "?", frames[i].line,
			frames[i].definition_line);
	if (gopclntab__left(c.table))
		fputs(" (left)", out);
}

static void put_bytes(unsigned char *to, const char *hex)
{
	for (unsigned int byte; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		*to++ = (unsigned char)byte;
}

/* A change of the copy. */
static bool take_change(const char *name, char *words)
{
	const char *symbol = text_word(&words), *word = text_word(&words);
	const size_t number = strtoul(word, NULL, 0);
	const uint64_t value = strtoull(words, NULL, 0);

	if (!strcmp(name, "copy"))
		given_copy(symbol);
	else if (!strcmp(name, "put32"))
		put32(symbol, number, (uint32_t)value);
	else if (!strcmp(name, "put64"))
		put64(symbol, number, value);
	else if (!strcmp(name, "bytes"))
		put_bytes(at(symbol), word);
	else if (!strcmp(name, "fill"))
		memset(at(symbol), 'x', (size_t)(at(word) - at(symbol)));
	else if (!strcmp(name, "endless-depths"))
		put32("main_record", 4, at("records") - at("values") - 1), at("records")[-1] = 2;
	else if (!strcmp(name, "decoy"))
		memcpy(at("gofunc") - 8, at("table"), 8);
	else if (!strcmp(name, "drop-sections"))
		drop_sections();
	else if (!strcmp(name, "move-entry"))
		((Elf64_Ehdr *)c.data)->e_entry += 1;
	else if (!strcmp(name, "machine"))
		((Elf64_Ehdr *)c.data)->e_machine = (Elf64_Half)strtoul(symbol, NULL, 10);
	else
		return false;
	return true;
}

static bool take_step(FILE *out, const char *name, char *words)
{
	char *rest = words;

	if (!strcmp(name, "open"))
		text_put_error(out, open_copy());
	else if (!strcmp(name, "functions"))
		fprintf(out, "%zu", gopclntab__count(c.table));
	else if (!strcmp(name, "trees"))
		fputs(gopclntab__has_trees(c.table) ? "trees" : "no trees", out);
	else if (!strcmp(name, "function"))
		put_function(out, strtoul(words, NULL, 10));
	else if (!strcmp(name, "find"))
		put_found(out, strtoll(words, NULL, 10));
	else if (!strcmp(name, "depths"))
		put_depths(out);
	else if (!strcmp(name, "file"))
		fputs(gopclntab__file(c.table, strtoul(words, NULL, 10)) ?: "no file", out);
	else if (!strcmp(name, "frames"))
		put_frames(out, MAIN, strtoul(words, NULL, 10));
	else if (!strcmp(name, "mcall-frames"))
		put_frames(out, MCALL, strtoul(words, NULL, 10));
	else
		return take_change(name, rest);
	return true;
}

/* Changes of the table of Go 1.20, and what is read of it then. */
static void run_steps(FILE *out, char *input)
{
	given_copy("go120");
	text_run_steps(out, input, take_step);
}

/* "WORD VALUE" in the table's header, with sections, and without. */
static void run_header(FILE *out, char *input)
{
	const size_t word = strtoul(text_word(&input), NULL, 0);

	given_copy("go120");
	put64("table", word, strtoull(input, NULL, 0));
	text_put_error(out, open_copy());
	given_copy("go120");
	put64("table", word, strtoull(input, NULL, 0));
	drop_sections();
	fputs(", ", out);
	text_put_error(out, open_copy());
}

/* All that a table says that is as it should be. */
static void run_whole(FILE *out, char *input)
{
	char all[] =
		"open; functions; function 0; function 1; find -1; find 31; find 32; find 48; depths";
	char frames[] = "frames 0; frames 7; frames 8; frames 15; frames 31";

	text_run_steps(out, input, take_step);
	text_run_steps(out, all, take_step);
	fputc('\n', out);
	text_run_steps(out, frames, take_step);
}

static const struct text_verb verbs[] = {
	{"steps", run_steps}, {"header", run_header}, {"whole", run_whole}, {}};

TEXT_TABLE("gopclntab_forged", verbs, NULL, free_copy);

/* ---- files of any size ----------------------------------------------------------------------- */

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

static int drop_result(void *context, size_t index, const struct symbol_result *result)
{
	return 0;
}

static struct module_report resolve_copy(void)
{
	struct module_files files = {.kind = DSO_FILE, .debug_fd = -1, .alt_fd = -1};
	const uint64_t address = 0x1000;
	struct module_report report;

	free_opened();
	open_copy();
	files.elf_fd = c.fd;
	assert_int_equal(module_resolve(&files, &address, 1, drop_result, NULL, &report), 0);
	return report;
}

TEST(a_version_of_go_that_is_not_read_is_marked)
{
	given_copy("go127");
	assert_int_equal(resolve_copy().dwarf, DWARF_STATE_NONE);
	put64("moduledata", 45, UINT64_MAX);
	assert_int_equal(resolve_copy().dwarf, DWARF_STATE_GO);
	put32("table", 0, 0xfffffff2);
	assert_int_equal(resolve_copy().dwarf, DWARF_STATE_GO);
	((Elf64_Ehdr *)c.data)->e_machine = EM_AARCH64; /* there no version is read */
	assert_int_equal(resolve_copy().dwarf, DWARF_STATE_NONE);
}

/* More functions than are read are left, and counted: the program's symbols may have fewer. */
TEST(a_table_of_too_many_functions_is_left_out)
{
	static const uint64_t counts[] = {(16u << 20) + 1, UINT32_MAX, UINT64_MAX / 8 + 1,
					  UINT64_MAX};

	for (size_t i = 0; i < 2 * sizeof(counts) / sizeof(counts[0]); i++) {
		given_copy("go120");
		put64("table", 1, counts[i / 2]);
		if (i % 2)
			drop_sections();
		assert_int_equal(open_copy(), -E2BIG);
		assert_int_equal(resolve_copy().left, 1u << OUTSIDE_DEBUG_INFO);
	}
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

EACH_TEST_WITH(NULL, free_copy);
ALL_TESTS_WITH(NULL, remove_scratch);
