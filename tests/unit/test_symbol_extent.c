/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbols without a size, as assembly leaves them: how far their names reach if the symbol table is
 * whole, if only exported symbols are left, and if the others are in .gnu_debugdata.
 */
#include "unit.h"
#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "elf/elf_frames.h"
#include "elf/elf_sections.h"
#include "symbolize/module.h"
#include "symbolize/module_index.h"
#include "symbolize/symbol_index.h"

#include "unit/tools.h"

/*
 * Exported functions with and without CFI, each followed by one that is not exported. Every `at_…`
 * is a place to request.
 */
static const char SOURCE[] = ".text\n"
			     ".globl plain; .type plain, @function\n"
			     "plain: test %edi, %edi\n"
			     "	jz 1f\n"
			     "at_plain: mov %edi, %eax\n"
			     "	ret\n"
			     "1:	xor %eax, %eax\n"
			     "at_plain_end: ret\n"
			     "at_padding: .fill 8, 1, 0xcc\n"
			     "hidden: mov %edi, %eax\n"
			     "	add $7, %eax\n"
			     "at_hidden: ret\n"
			     ".p2align 6\n"
			     ".globl described; .type described, @function\n"
			     "described: .cfi_startproc\n"
			     "	mov %edi, %eax\n"
			     "	jmp *table(%rip)\n"
			     "at_described: inc %eax\n"
			     "	ret\n"
			     "	.cfi_endproc\n"
			     "hidden_too: .cfi_startproc\n"
			     "	mov %edi, %eax\n"
			     "at_hidden_too: ret\n"
			     "	.cfi_endproc\n"
			     ".p2align 6\n"
			     ".globl leads_away; .type leads_away, @function\n"
			     "leads_away: test %edi, %edi\n"
			     "	{disp32} jz another\n"
			     "at_leads_away: jmp *table(%rip)\n"
			     "at_table: .quad plain - .\n"
			     "another: mov %edi, %eax\n"
			     "at_another: ret\n"
			     "sized: mov %edi, %eax\n"
			     "at_sized: ret\n"
			     ".size sized, . - sized\n"
			     ".data\n"
			     "table: .quad 0\n"
			     ".section .note.GNU-stack, \"\", @progbits\n";

static void setup(void)
{
	make_scratch();
	write_scratch("code.s", SOURCE, sizeof(SOURCE) - 1);
	run("${CC:-cc} -shared -nostdlib -o whole code.s 2>&1");
	/* functions alone, as a distribution would leave them */
	run("objcopy -w --strip-symbol='at_*' whole named && strip -o stripped named");
	run("nm -D stripped --format=posix --defined-only | awk '{ print $1 }' | sort >exported");
	run("nm named --format=posix --defined-only | awk '$2 == \"t\" { print $1 }' >keep");
	run("objcopy -S --keep-symbols=keep named mini && xz -k mini");
	run("objcopy --add-section .gnu_debugdata=mini.xz stripped fedora");
	run("objcopy --only-keep-debug named debug");
}

static uint64_t address_of(const char *label)
{
	char command[256];
	unsigned long long address = 0;
	FILE *nm;

	snprintf(command, sizeof(command), "nm %s/whole | grep ' %s$'", scratch, label);
	nm = popen(command, "r");
	assert_non_null(nm);
	assert_int_equal(fscanf(nm, "%llx", &address), 1);
	pclose(nm);
	return address;
}

static int keep_name(void *context, size_t index, const struct symbol_result *result)
{
	snprintf(context, 64, "%s", result->frame_count ? result->frames[0].function : "");
	return 0;
}

static void assert_index_says(const struct module_files *files, uint64_t offset, const char *name)
{
	struct symbol_answer answer;
	struct symbol_index *index;
	struct module *module;
	size_t size;
	void *data;

	assert_int_equal(module__open(files, &module), 0);
	assert_int_equal(module__index(module, &offset, 1, &data, &size), 0);
	module__free(module);
	assert_int_equal(symbol_index__open(data, size, &index), 0);
	assert_true(symbol_index__find(index, offset, &answer));
	assert_string_equal(answer.result.frame_count ? answer.frames[0].function : "", name);
	symbol_index__free(index);
}

struct expectation {
	const char *label, *name;
};

static void assert_names(const char *name, const char *debug, const struct expectation *expected)
{
	struct module_files files = {.kind = DSO_FILE, .debug_fd = -1, .alt_fd = -1};
	struct module_report report;
	struct elf_file *file;

	files.elf_fd = open_scratch(name, O_RDONLY);
	if (debug)
		files.debug_fd = open_scratch(debug, O_RDONLY);
	assert_int_equal(elf_file__open(files.elf_fd, &file), 0);
	for (; expected->label; expected++) {
		uint64_t address = address_of(expected->label), offset;
		char got[64] = "";

		assert_int_equal(elf_file__offset_of_address(file, address, &offset), 0);
		assert_int_equal(module_resolve(&files, &offset, 1, keep_name, got, &report), 0);
		if (strcmp(got, expected->name))
			fail_msg("%s, %s: %s, not %s", name, expected->label, got, expected->name);
		assert_index_says(&files, offset, expected->name);
	}
	elf_file__free(file);
	close(files.elf_fd);
	if (debug)
		close(files.debug_fd);
}

/* Every function has a symbol, so what follows one is its code. */
static const struct expectation of_all[] = {
	{"plain", "plain"},
	{"at_plain", "plain"},
	{"at_plain_end", "plain"},
	{"at_hidden", "hidden"},
	{"at_described", "described"},
	{"at_hidden_too", "hidden_too"},
	{"at_leads_away", "leads_away"},
	{"at_another", "another"},
	{"at_sized", "sized"},
	{},
};

TEST(names_reach_the_next_symbol_in_a_whole_table)
{
	assert_names("named", NULL, of_all);
	assert_names("stripped", "debug", of_all);
	assert_names("fedora", NULL, of_all);
}

TEST(exported_functions_end_where_cfi_or_code_ends)
{
	static const struct expectation expected[] = {
		{"plain", "plain"},
		{"at_plain", "plain"},
		{"at_plain_end", "plain"},
		{"at_padding", ""},
		{"hidden", ""},
		{"at_hidden", ""},
		{"described", "described"},
		{"at_described", "described"}, /* code alone ends at the jump before */
		{"hidden_too", ""},
		{"at_hidden_too", ""},
		{"at_leads_away", "leads_away"},
		{"at_table", ""}, /* a long jump leads elsewhere, perhaps */
		{"at_another", ""},
		{"at_sized", ""},
		{},
	};

	assert_names("stripped", NULL, expected);
}

/* A table of which somebody removed symbols: what CFI calls another function is another. */
TEST(cfi_ends_a_name_where_symbols_were_removed)
{
	static const struct expectation expected[] = {
		{"at_plain", "plain"},
		{"at_described", "described"},
		{"at_hidden_too", ""},
		{},
	};

	run("strip -K plain -K described -o few named");
	assert_names("few", NULL, expected);
}

/* An FDE that is damaged, or of other code, is none. */
TEST(no_frame_reaches_into_the_next_even_if_damaged)
{
	_cleanup_close_ int fd = open_scratch("stripped", O_RDONLY);
	uint64_t described = address_of("described"), seed = 0x2545f4914f6cdd1d;
	struct elf_section section;
	struct elf_frame frame;
	struct elf_file *file;
	size_t size;
	_cleanup_free_ unsigned char *bytes = read_scratch("stripped", &size);

	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_true(elf_file__find_frame(file, described, &frame));
	assert_int_equal(frame.start, described);
	assert_int_equal(frame.end, address_of("hidden_too"));
	assert_int_equal(frame.next, frame.end);
	assert_false(elf_file__find_frame(file, described - 1, &frame));
	assert_int_equal(frame.next, described);
	assert_false(elf_file__find_frame(file, address_of("leads_away"), &frame));
	assert_int_equal(frame.next, UINT64_MAX);
	assert_int_equal(elf_file__find_section(file, ".eh_frame", &section), 0);
	elf_file__free(file);
	for (int round = 0; round < 2000; round++) {
		size_t at = section.offset + next_random(&seed) % section.size;
		_cleanup_close_ int damaged = memfd_create("damaged", MFD_CLOEXEC);
		unsigned char was = bytes[at];

		bytes[at] ^= 1 << next_random(&seed) % 8;
		assert_int_equal(pwrite(damaged, bytes, size, 0), (ssize_t)size);
		bytes[at] = was;
		assert_int_equal(elf_file__open(damaged, &file), 0);
		elf_file__find_frame(file, described, &frame);
		assert_true(frame.end <= frame.next);
		elf_file__free(file);
	}
}

ALL_TESTS_WITH(setup, remove_scratch);
