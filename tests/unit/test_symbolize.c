/* SPDX-License-Identifier: BSD-2-Clause */
/* From addresses to names: the rules, on written ELF files and a written kallsyms. */
#include <elf.h>

#include <sysprof/symbolizer.h>

#include "unit.h"
#include "base/cleanup.h"

#include "unit/symbolize_support.h"

struct expectation {
	uint64_t address;
	const char *name;
	uint64_t start, size;
};

static void assert_answers(const struct test_symbol *symbols, size_t symbol_count,
			   const struct expectation *expected, size_t count)
{
	static struct image image;
	uint64_t offsets[64];
	struct answer answers[64];
	struct symbolizer *s = symbolizer__new();
	_cleanup_close_ int fd = -1;

	assert_non_null(s);
	write_image(&image, symbols, symbol_count);
	fd = memory_file(&image, sizeof(image));
	for (size_t i = 0; i < count; i++)
		offsets[i] = expected[i].address - TEXT_ADDRESS + TEXT_OFFSET;
	assert_int_equal(resolve(s, DSO_FILE, fd, offsets, count, answers), SYMBOL_STATE_RESOLVED);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(answers[i].name, expected[i].name);
		assert_int_equal(answers[i].elf_address, expected[i].address);
		if (*answers[i].name) {
			assert_int_equal(answers[i].address, expected[i].start);
			assert_int_equal(answers[i].size, expected[i].size);
		}
	}
	symbolizer__free(s);
}

/* The same expectations whatever the order of the symbols in the file. */
static void assert_answers_any_order(struct test_symbol *symbols, size_t symbol_count,
				     const struct expectation *expected, size_t count)
{
	for (size_t turn = 0; turn < symbol_count; turn++) {
		struct test_symbol first = symbols[0];

		memmove(symbols, symbols + 1, (symbol_count - 1) * sizeof(first));
		symbols[symbol_count - 1] = first;
		assert_answers(symbols, symbol_count, expected, count);
	}
	for (size_t i = 0; i < symbol_count / 2; i++) {
		struct test_symbol other = symbols[i];

		symbols[i] = symbols[symbol_count - 1 - i];
		symbols[symbol_count - 1 - i] = other;
	}
	assert_answers(symbols, symbol_count, expected, count);
}

TEST(an_address_has_the_innermost_symbol_that_covers_it)
{
	struct test_symbol symbols[] = {
		{"first", 0x401000, 0x10, STB_GLOBAL, STT_FUNC},
		{"second", 0x401010, 0x10, STB_LOCAL, STT_FUNC},
		{"outer", 0x401100, 0x100, STB_GLOBAL, STT_FUNC},
		{"inner", 0x401140, 0x20, STB_LOCAL, STT_FUNC},
		{"overlap", 0x4011f0, 0x20, STB_LOCAL, STT_FUNC},
		{"_ZN3foo3barEi.cold", 0x401300, 0x8, STB_LOCAL, STT_FUNC},
		{"endless", 0x401f00, UINT64_MAX, STB_GLOBAL, STT_FUNC},
	};
	static const struct expectation expected[] = {
		{0x401000, "first", 0x401000, 0x10},
		{0x40100f, "first", 0x401000, 0x10},
		{0x401010, "second", 0x401010, 0x10},
		{0x40101f, "second", 0x401010, 0x10},
		{0x401020, "", 0, 0}, /* a gap belongs to no symbol */
		{0x4010ff, "", 0, 0},
		{0x401100, "outer", 0x401100, 0x100},
		{0x401140, "inner", 0x401140, 0x20},
		{0x40115f, "inner", 0x401140, 0x20},
		{0x401160, "outer", 0x401100, 0x100},
		{0x4011ef, "outer", 0x401100, 0x100},
		{0x4011f0, "overlap", 0x4011f0, 0x20},
		{0x40120f, "overlap", 0x4011f0, 0x20},
		{0x401210, "", 0, 0},
		{0x401304, "foo::bar(int) [clone .cold]", 0x401300, 0x8},
		{0x401308, "", 0, 0},
		{0x401f80, "endless", 0x401f00, UINT64_MAX - 0x401f00},
	};

	assert_answers_any_order(symbols, COUNT(symbols), expected, COUNT(expected));
}

TEST(of_symbols_at_one_address_the_best_is_chosen)
{
	struct test_symbol symbols[] = {
		{"__libc_malloc", 0x401000, 0x10, STB_GLOBAL, STT_FUNC},
		{"malloc", 0x401000, 0x10, STB_GLOBAL, STT_FUNC},
		{"weak", 0x401010, 0x10, STB_WEAK, STT_FUNC},
		{"a_global_name", 0x401010, 0x10, STB_GLOBAL, STT_FUNC},
		{"loc", 0x401010, 0x10, STB_LOCAL, STT_FUNC},
		{"lo", 0x401020, 0x10, STB_LOCAL, STT_FUNC},
		{"a_weak_name", 0x401020, 0x10, STB_WEAK, STT_FUNC},
		{"label", 0x401030, 0x10, STB_LOCAL, STT_NOTYPE},
		{"a_function", 0x401030, 0x10, STB_LOCAL, STT_FUNC},
		{"same_b", 0x401040, 0x10, STB_GLOBAL, STT_FUNC},
		{"same_a", 0x401040, 0x10, STB_GLOBAL, STT_GNU_IFUNC},
		{"unsized", 0x401050, 0, STB_GLOBAL, STT_FUNC},
		{"a_sized_local_name", 0x401050, 0x10, STB_LOCAL, STT_NOTYPE},
		{"wide", 0x401060, 0x20, STB_GLOBAL, STT_FUNC},
		{"wide", 0x401060, 0x10, STB_GLOBAL, STT_FUNC},
		{"small", 0x401080, 0x20, STB_GLOBAL, STT_FUNC},
		{"small", 0x401080, 0x10, STB_GLOBAL, STT_FUNC},
	};
	static const struct expectation expected[] = {
		{0x401000, "malloc", 0x401000, 0x10},
		{0x401010, "a_global_name", 0x401010, 0x10},
		{0x401020, "a_weak_name", 0x401020, 0x10},
		{0x401030, "a_function", 0x401030, 0x10},
		{0x401040, "same_a", 0x401040, 0x10},
		{0x401050, "a_sized_local_name", 0x401050, 0x10},
		{0x401060, "wide", 0x401060, 0x10},
		{0x401070, "wide", 0x401060, 0x20},
		{0x401080, "small", 0x401080, 0x10},
	};

	assert_answers_any_order(symbols, COUNT(symbols), expected, COUNT(expected));
}

TEST(unsized_symbols_end_at_the_next_symbol_or_section)
{
	struct test_symbol symbols[] = {
		{"open", 0x401000, 0, STB_GLOBAL, STT_FUNC},
		{"next_open", 0x401100, 0, STB_LOCAL, STT_NOTYPE},
		{"weak_alias", 0x401100, 0, STB_WEAK, STT_NOTYPE},
		{"$x.1", 0x401140, 0, STB_GLOBAL, STT_NOTYPE},
		{".L12", 0x401140, 0, STB_GLOBAL, STT_NOTYPE},
		{".annobin_a.c", 0x401150, 0, STB_GLOBAL, STT_NOTYPE},
		{"sized", 0x401200, 0x100, STB_LOCAL, STT_FUNC},
		{"label_within", 0x401280, 0, STB_GLOBAL, STT_NOTYPE},
		{"last", 0x401f00, 0, STB_GLOBAL, STT_FUNC},
		{"in_other", 0x402100, 0, STB_GLOBAL, STT_FUNC},
	};
	static const struct expectation expected[] = {
		{0x401000, "open", 0x401000, 0},
		{0x4010ff, "open", 0x401000, 0},
		{0x401100, "weak_alias", 0x401100, 0},
		{0x401180, "weak_alias", 0x401100, 0},
		{0x4011ff, "weak_alias", 0x401100, 0},
		{0x401200, "sized", 0x401200, 0x100},
		{0x401290, "sized", 0x401200, 0x100},
		{0x401300, "", 0, 0}, /* the label lies within what is sized */
		{0x401eff, "", 0, 0},
		{0x401fff, "last", 0x401f00, 0},
		{0x402000, "", 0, 0}, /* another section */
		{0x4020ff, "", 0, 0},
		{0x4021ff, "in_other", 0x402100, 0},
	};

	assert_answers_any_order(symbols, COUNT(symbols), expected, COUNT(expected));
}

TEST(answers_are_in_order_although_segments_are_not)
{
	static const struct test_symbol symbols[] = {
		{"upper", 0x401000, 0x100, STB_GLOBAL, STT_FUNC},
		{"lower", 0x201000, 0x100, STB_GLOBAL, STT_FUNC},
	};
	static const uint64_t offsets[] = {0x10, 0x1010, 0x1020, 0x1810, 0x1900, 0x2010};
	struct answer answers[COUNT(offsets)];
	struct symbolizer *s = symbolizer__new();
	static struct image image;
	_cleanup_close_ int fd = -1;
	Elf64_Phdr phdrs[2];

	write_image(&image, symbols, COUNT(symbols));
	memcpy(phdrs, image.bytes + sizeof(Elf64_Ehdr), sizeof(phdrs[0]));
	phdrs[0].p_filesz = phdrs[0].p_memsz = 0x800;
	phdrs[1] = phdrs[0];
	phdrs[1].p_offset = 0x1800;
	phdrs[1].p_vaddr = 0x201000;
	memcpy(image.bytes + sizeof(Elf64_Ehdr), phdrs, sizeof(phdrs));
	image.bytes[offsetof(Elf64_Ehdr, e_phnum)] = 2;
	fd = memory_file(&image, sizeof(image));
	assert_int_equal(resolve(s, DSO_FILE, fd, offsets, COUNT(offsets), answers),
			 SYMBOL_STATE_RESOLVED);
	assert_int_equal(answers[0].elf_address, PROFILE_UNKNOWN_ADDRESS);
	assert_string_equal(answers[0].name, "");
	assert_int_equal(answers[1].elf_address, 0x401010);
	assert_string_equal(answers[1].name, "upper");
	assert_string_equal(answers[2].name, "upper");
	assert_int_equal(answers[3].elf_address, 0x201010);
	assert_string_equal(answers[3].name, "lower");
	assert_string_equal(answers[4].name, "");
	assert_int_equal(answers[5].elf_address, PROFILE_UNKNOWN_ADDRESS);
	symbolizer__free(s);
}

TEST(names_of_one_file_never_appear_in_another)
{
	static const struct test_symbol one = {"name_one", 0x401000, 0x100, STB_GLOBAL, STT_FUNC};
	static const struct test_symbol two = {"name_two", 0x401000, 0x100, STB_GLOBAL, STT_FUNC};
	static const uint64_t offset = 0x1010;
	struct symbolizer *s = symbolizer__new();
	static struct image image;

	for (int round = 0; round < 8; round++) {
		struct answer answer;
		_cleanup_close_ int fd = -1;

		write_image(&image, round % 2 ? &two : &one, 1);
		fd = memory_file(&image, sizeof(image));
		assert_int_equal(resolve(s, DSO_FILE, fd, &offset, 1, &answer),
				 SYMBOL_STATE_RESOLVED);
		assert_string_equal(answer.name, round % 2 ? "name_two" : "name_one");
	}
	symbolizer__free(s);
}

/* ---- states ---------------------------------------------------------------------------------- */

TEST(files_without_names_report_the_reason)
{
	static const char script[] =
		"#!/bin/sh\necho this is longer than the header of an ELF file\n";
	static const uint64_t offsets[] = {0, 0x1010, 0x1020};
	struct answer answers[COUNT(offsets)];
	struct symbolizer *s = symbolizer__new();
	static struct image image;
	enum symbol_state how;
	int fd;

	assert_int_equal(resolve(s, DSO_FILE, -1, offsets, 3, answers), SYMBOL_STATE_NO_FILE);
	assert_int_equal(answers[1].elf_address, PROFILE_UNKNOWN_ADDRESS);
	assert_int_equal(resolve(s, DSO_VDSO, -1, offsets, 3, answers), SYMBOL_STATE_NO_FILE);
	assert_int_equal(resolve(s, DSO_JIT, -1, offsets, 3, answers), SYMBOL_STATE_NO_SYMBOLS);

	fd = memory_file("", 0);
	assert_int_equal(resolve(s, DSO_FILE, fd, offsets, 3, answers), SYMBOL_STATE_NOT_ELF);
	close(fd);
	fd = memory_file(script, sizeof(script) - 1);
	assert_int_equal(resolve(s, DSO_FILE, fd, offsets, 3, answers), SYMBOL_STATE_NOT_ELF);
	assert_string_equal(answers[2].name, "");
	close(fd);

	/* Stripped to the segments: no names, but ELF addresses. */
	write_image(&image, NULL, 0);
	fd = memory_file(&image, sizeof(image));
	assert_int_equal(resolve(s, DSO_FILE, fd, offsets, 3, answers), SYMBOL_STATE_NO_SYMBOLS);
	assert_int_equal(answers[0].elf_address, PROFILE_UNKNOWN_ADDRESS);
	assert_int_equal(answers[1].elf_address, 0x401010);
	assert_string_equal(answers[1].name, "");
	assert_int_equal(resolve(s, DSO_FILE, fd, offsets, 0, answers), SYMBOL_STATE_NO_SYMBOLS);
	close(fd);

	/* A directory can be opened, but not read. */
	fd = open("/", O_RDONLY | O_CLOEXEC);
	how = resolve(s, DSO_FILE, fd, offsets, 3, answers);
	assert_true(how == SYMBOL_STATE_NOT_ELF || how == SYMBOL_STATE_DAMAGED);
	close(fd);
	symbolizer__free(s);
}

TEST(a_truncated_header_is_damaged_or_not_elf)
{
	static const struct test_symbol symbols[] = {
		{"first", 0x401000, 0x10, STB_GLOBAL, STT_FUNC},
		{"second", 0x401010, 0x10, STB_LOCAL, STT_FUNC},
	};
	static const uint64_t offsets[] = {0, 0x1000, 0x1010};
	struct symbolizer *s = symbolizer__new();
	struct answer answers[COUNT(offsets)];
	static struct image image;

	write_image(&image, symbols, COUNT(symbols));
	for (size_t size = 0; size < TABLES_OFFSET + 200; size += size < 0x400 ? 1 : 41) {
		_cleanup_close_ int fd = memory_file(&image, size);
		enum symbol_state how = resolve(s, DSO_FILE, fd, offsets, 3, answers);

		assert_true(how == SYMBOL_STATE_NOT_ELF || how == SYMBOL_STATE_DAMAGED ||
			    how == SYMBOL_STATE_NO_SYMBOLS || how == SYMBOL_STATE_RESOLVED);
		assert_true(size >= sizeof(Elf64_Ehdr) || how == SYMBOL_STATE_NOT_ELF ||
			    how == SYMBOL_STATE_DAMAGED);
	}
	symbolizer__free(s);
}

TEST(a_cancelling_sink_gets_no_further_answers)
{
	static const uint64_t addresses[] = {0x1000, 0x2000, 0x3000};
	struct symbolizer_counts counts = {};
	struct symbolizer *s = symbolizer__new();
	struct answer answers[3];

	for (int kind = DSO_FILE; kind <= DSO_KERNEL; kind++) {
		struct answers a = {.data = answers, .stop_at = 2};
		struct symbolizer_job job = {
			.dso = {.kind = (enum dso_kind)kind, .fd = -1, .root_fd = -1},
			.addresses = addresses,
			.count = 3,
			.sink = keep_answer,
			.context = &a,
		};

		assert_int_equal(symbolizer__resolve_all(s, &job, 1, &(struct symbolizer_options){},
							 &counts),
				 -ECANCELED);
		assert_int_equal(a.count, 2);
	}
	symbolizer__free(s);
	symbolizer__free(NULL);
}

TEST(kernel_names_come_from_kallsyms_unless_it_hides_addresses)
{
	static const char text[] = "ffffffff81000000 T _stext\n"
				   "ffffffff81000000 T first\n"
				   "ffffffff81000100 t _RNvC6_123foo3bar\n"
				   "ffffffff81000200 T _etext\n";
	static const char hidden[] = "0000000000000000 T first\n";
	static const uint64_t addresses[] = {0x1000, 0xffffffff81000010, 0xffffffff81000100,
					     0xffffffff81000200};
	struct symbolizer *s = symbolizer__new();
	struct answer answers[4];

	assert_int_equal(resolve(s, DSO_KERNEL, -1, addresses, 4, answers),
			 SYMBOL_STATE_NO_SYMBOLS);
	assert_int_equal(symbolizer__add_kallsyms(s, hidden, sizeof(hidden) - 1), 0);
	assert_int_equal(resolve(s, DSO_KERNEL, -1, addresses, 4, answers), SYMBOL_STATE_HIDDEN);
	assert_string_equal(answers[1].name, "");
	assert_int_equal(symbolizer__add_kallsyms(s, text, sizeof(text) - 1), 0);
	assert_int_equal(resolve(s, DSO_KERNEL, -1, addresses, 4, answers), SYMBOL_STATE_RESOLVED);
	assert_string_equal(answers[0].name, "");
	assert_string_equal(answers[1].name, "first");
	assert_int_equal(answers[1].elf_address, 0xffffffff81000010);
	assert_int_equal(answers[1].address, 0xffffffff81000000);
	assert_int_equal(answers[1].size, 0x100);
	assert_string_equal(answers[2].name, "123foo::bar");
	assert_string_equal(answers[3].name, "");
	symbolizer__free(s);
}

/* The history of names is in test_kernel_history.c. */
TEST(unnamed_kernel_addresses_request_a_reading_and_reports_show_no_hidden_ones)
{
	static const char text[] = "ffffffff81000000 T first\n";
	static const uint64_t address = 0xffffffffc0100010;
	struct kallsyms_piece piece = {.text = "ffffffffc0100000 t program\t[bpf]\n", .size = 34};
	struct symbolizer *s = symbolizer__new();
	struct answer answer;

	assert_int_equal(symbolizer__change_kallsyms(s, &piece), 0);
	assert_int_equal(symbolizer__add_kallsyms(s, text, strlen(text)), 0);
	assert_int_equal(resolve(s, DSO_KERNEL, -1, &address, 1, &answer), SYMBOL_STATE_RESOLVED);
	assert_string_equal(answer.name, "");
	assert_true(symbolizer__end_window(s, 0));
	assert_int_equal(symbolizer__change_kallsyms(s, &piece), 0);
	assert_int_equal(resolve(s, DSO_KERNEL, -1, &address, 1, &answer), SYMBOL_STATE_RESOLVED);
	assert_string_equal(answer.name, "program [bpf]");
	assert_false(symbolizer__end_window(s, 0));
	symbolizer__free(s);
}
