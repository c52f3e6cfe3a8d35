/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From addresses to names: written ELF files for the rules, this process and its libraries beside
 * dladdr and nm, and damaged files.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include <sysprof/symbolizer.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "symbolize/demangle.h"
#include "symbolize/module.h"

/* ---- a sink that keeps what it is told ------------------------------------------------------- */

struct answer {
	char name[256]; /* "" none */
	uint64_t elf_address, address, size;
};

struct answers {
	struct answer *data;
	size_t count, stop_at;
};

static int keep_answer(void *context, size_t index, const struct symbol_result *result)
{
	struct answers *a = context;
	struct answer *answer = &a->data[index];

	assert_int_equal(index, a->count); /* once for each, in order */
	a->count++;
	answer->elf_address = result->elf_address;
	answer->name[0] = '\0';
	if (result->frame_count) {
		/* the outermost is the function that symbol tables know */
		const struct symbol_frame *f = &result->frames[result->frame_count - 1];

		assert_true(f->function && *f->function);
		assert_true(result->elf_address >= f->function_address);
		assert_true(!f->function_size ||
			    result->elf_address - f->function_address < f->function_size);
		snprintf(answer->name, sizeof(answer->name), "%s", f->function);
		answer->address = f->function_address;
		answer->size = f->function_size;
	}
	return a->count == a->stop_at ? -ECANCELED : 0;
}

static enum symbol_state resolve(struct symbolizer *s, enum dso_kind kind, int fd,
				 const uint64_t *addresses, size_t count, struct answer *answers)
{
	struct symbolizer_dso dso = {.kind = kind, .fd = fd, .root_fd = -1, .path = "test"};
	struct answers a = {.data = answers};
	enum symbol_state state = SYMBOL_STATE_COUNT;

	assert_int_equal(symbolizer__resolve(s, &dso, addresses, count, keep_answer, &a, &state),
			 0);
	assert_int_equal(a.count, count);
	assert_true(state < SYMBOL_STATE_COUNT);
	return state;
}

/* From symbol tables alone: what nm and dladdr know. */
static enum symbol_state resolve_symbols(int fd, const uint64_t *offsets, size_t count,
					 struct answer *answers)
{
	const struct module_files files = {
		.kind = DSO_FILE, .elf_fd = fd, .debug_fd = -1, .alt_fd = -1, .symbols_only = true};
	struct answers a = {.data = answers};
	struct module_report report;

	assert_int_equal(module_resolve(&files, offsets, count, keep_answer, &a, &report), 0);
	assert_int_equal(a.count, count);
	assert_int_equal(report.dwarf, DWARF_STATE_NONE);
	assert_int_equal(report.with_lines, 0);
	return report.state;
}

/* ---- written ELF files ----------------------------------------------------------------------- */

enum {
	TEXT_OFFSET = 0x1000,
	TEXT_ADDRESS = 0x401000,
	TEXT_SIZE = 0x1000, /* .text, … */
	OTHER_SIZE = 0x200, /* … and .other right behind it, in one segment */
	TABLES_OFFSET = 0x3000,
	IMAGE_SIZE = 0x8000,
};

enum { SECTION_NULL, SECTION_TEXT, SECTION_OTHER, SECTION_SYMTAB, SECTION_STRTAB, SECTION_COUNT };

struct test_symbol {
	const char *name;
	uint64_t address, size;
	unsigned char binding, type;
};

struct image {
	unsigned char bytes[IMAGE_SIZE];
};

static void write_headers(struct image *image, size_t symbol_bytes, size_t string_bytes)
{
	Elf64_Ehdr ehdr = {.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT};
	Elf64_Phdr phdr = {.p_type = PT_LOAD,
			   .p_flags = PF_R | PF_X,
			   .p_offset = TEXT_OFFSET,
			   .p_vaddr = TEXT_ADDRESS,
			   .p_filesz = TEXT_SIZE + OTHER_SIZE,
			   .p_memsz = TEXT_SIZE + OTHER_SIZE,
			   .p_align = 0x1000};
	Elf64_Shdr sections[SECTION_COUNT] = {
		[SECTION_TEXT] = {.sh_type = SHT_PROGBITS,
				  .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				  .sh_addr = TEXT_ADDRESS,
				  .sh_offset = TEXT_OFFSET,
				  .sh_size = TEXT_SIZE},
		[SECTION_OTHER] = {.sh_type = SHT_PROGBITS,
				   .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				   .sh_addr = TEXT_ADDRESS + TEXT_SIZE,
				   .sh_offset = TEXT_OFFSET + TEXT_SIZE,
				   .sh_size = OTHER_SIZE},
		[SECTION_SYMTAB] = {.sh_type = SHT_SYMTAB,
				    .sh_offset = TABLES_OFFSET,
				    .sh_size = symbol_bytes,
				    .sh_link = SECTION_STRTAB,
				    .sh_info = 1,
				    .sh_entsize = sizeof(Elf64_Sym)},
		[SECTION_STRTAB] = {.sh_type = SHT_STRTAB,
				    .sh_offset = TABLES_OFFSET + symbol_bytes,
				    .sh_size = string_bytes},
	};

	memcpy(ehdr.e_ident, ELFMAG, SELFMAG);
	ehdr.e_ident[EI_CLASS] = ELFCLASS64;
	ehdr.e_ident[EI_DATA] = ELFDATA2LSB;
	ehdr.e_ident[EI_VERSION] = EV_CURRENT;
	ehdr.e_ehsize = sizeof(ehdr);
	ehdr.e_phoff = sizeof(ehdr);
	ehdr.e_phentsize = sizeof(phdr);
	ehdr.e_phnum = 1;
	ehdr.e_shoff = 0x200;
	ehdr.e_shentsize = sizeof(sections[0]);
	ehdr.e_shnum = symbol_bytes ? SECTION_COUNT : SECTION_SYMTAB;
	memcpy(image->bytes, &ehdr, sizeof(ehdr));
	memcpy(image->bytes + ehdr.e_phoff, &phdr, sizeof(phdr));
	memcpy(image->bytes + ehdr.e_shoff, sections, sizeof(sections));
}

static void write_image(struct image *image, const struct test_symbol *symbols, size_t count)
{
	size_t symbol_bytes = count ? (count + 1) * sizeof(Elf64_Sym) : 0, string_bytes = 1;
	unsigned char *tables = image->bytes + TABLES_OFFSET;

	memset(image, 0, sizeof(*image));
	for (size_t i = 0; i < count; i++) {
		const struct test_symbol *from = &symbols[i];
		Elf64_Sym symbol = {
			.st_name = (Elf64_Word)string_bytes,
			.st_info = ELF64_ST_INFO(from->binding, from->type),
			.st_shndx = from->address < TEXT_ADDRESS + TEXT_SIZE ? SECTION_TEXT
									     : SECTION_OTHER,
			.st_value = from->address,
			.st_size = from->size,
		};

		memcpy(tables + (i + 1) * sizeof(symbol), &symbol, sizeof(symbol));
		strcpy((char *)tables + symbol_bytes + string_bytes, from->name);
		string_bytes += strlen(from->name) + 1;
		assert_true(TABLES_OFFSET + symbol_bytes + string_bytes + 64 < IMAGE_SIZE);
	}
	write_headers(image, symbol_bytes, string_bytes);
}

static int memory_file(const void *data, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, data, size, 0), (ssize_t)size);
	return fd;
}

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

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void test_ranges(void **state)
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
		{0x401020, "", 0, 0}, /* a gap belongs to nobody */
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

	(void)state;
	assert_answers_any_order(symbols, COUNT(symbols), expected, COUNT(expected));
}

static void test_which_name(void **state)
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

	(void)state;
	assert_answers_any_order(symbols, COUNT(symbols), expected, COUNT(expected));
}

static void test_symbols_without_size(void **state)
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

	(void)state;
	assert_answers_any_order(symbols, COUNT(symbols), expected, COUNT(expected));
}

/* Segments whose addresses go down while their offsets go up: answers still come in order. */
static void test_segments_out_of_order(void **state)
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

	(void)state;
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

/* One symbolizer, file after file: names of the one never come with the other. */
static void test_file_after_file(void **state)
{
	static const struct test_symbol one = {"name_one", 0x401000, 0x100, STB_GLOBAL, STT_FUNC};
	static const struct test_symbol two = {"name_two", 0x401000, 0x100, STB_GLOBAL, STT_FUNC};
	static const uint64_t offset = 0x1010;
	struct symbolizer *s = symbolizer__new();
	static struct image image;

	(void)state;
	for (int round = 0; round < 8; round++) {
		struct answer answer;
		int fd;

		write_image(&image, round % 2 ? &two : &one, 1);
		fd = memory_file(&image, sizeof(image));
		assert_int_equal(resolve(s, DSO_FILE, fd, &offset, 1, &answer),
				 SYMBOL_STATE_RESOLVED);
		assert_string_equal(answer.name, round % 2 ? "name_two" : "name_one");
		close(fd);
	}
	symbolizer__free(s);
}

/* ---- states ---------------------------------------------------------------------------------- */

static void test_files_without_names(void **state)
{
	static const char script[] =
		"#!/bin/sh\necho this is longer than the header of an ELF file\n";
	static const uint64_t offsets[] = {0, 0x1010, 0x1020};
	struct answer answers[COUNT(offsets)];
	struct symbolizer *s = symbolizer__new();
	static struct image image;
	enum symbol_state how;
	int fd;

	(void)state;
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

static void test_cut_files(void **state)
{
	static const struct test_symbol symbols[] = {
		{"first", 0x401000, 0x10, STB_GLOBAL, STT_FUNC},
		{"second", 0x401010, 0x10, STB_LOCAL, STT_FUNC},
	};
	static const uint64_t offsets[] = {0, 0x1000, 0x1010};
	struct symbolizer *s = symbolizer__new();
	struct answer answers[COUNT(offsets)];
	static struct image image;

	(void)state;
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

static void test_sink_stops(void **state)
{
	static const uint64_t addresses[] = {0x1000, 0x2000, 0x3000};
	struct symbolizer_dso dso = {.kind = DSO_FILE, .fd = -1, .root_fd = -1};
	struct symbolizer *s = symbolizer__new();
	struct answer answers[3];

	(void)state;
	for (int kind = DSO_FILE; kind <= DSO_KERNEL; kind++) {
		struct answers a = {.data = answers, .stop_at = 2};
		enum symbol_state how = SYMBOL_STATE_PENDING;

		dso.kind = (enum dso_kind)kind;
		assert_int_equal(symbolizer__resolve(s, &dso, addresses, 3, keep_answer, &a, &how),
				 -ECANCELED);
		assert_int_equal(a.count, 2);
		assert_int_equal(how, SYMBOL_STATE_PENDING);
	}
	symbolizer__free(s);
	symbolizer__free(NULL);
}

static void test_kernel(void **state)
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

	(void)state;
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

/* ---- this process ---------------------------------------------------------------------------- */

struct module_query {
	uintptr_t address;
	uint64_t offset, elf_address;
	uint64_t text_start, text_end; /* ELF addresses of the segment */
	uint64_t text_offset;
	bool found;
};

static int find_module(struct dl_phdr_info *info, size_t size, void *context)
{
	struct module_query *q = context;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type != PT_LOAD || q->address < start ||
		    q->address - start >= ph->p_filesz)
			continue;
		q->elf_address = q->address - info->dlpi_addr;
		q->offset = q->elf_address - ph->p_vaddr + ph->p_offset;
		q->text_start = ph->p_vaddr;
		q->text_end = ph->p_vaddr + ph->p_filesz;
		q->text_offset = ph->p_offset;
		q->found = true;
		return 1;
	}
	return 0;
}

static struct module_query module_of(const void *address)
{
	struct module_query q = {.address = (uintptr_t)address};

	dl_iterate_phdr(find_module, &q);
	assert_true(q.found);
	return q;
}

static void test_own_functions(void **state)
{
	struct symbolizer *s = symbolizer__new();
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct module_query q = module_of(test_ranges);
	uint64_t offset = q.offset + 4;
	struct answer answer;

	(void)state;
	assert_int_equal(resolve(s, DSO_FILE, fd, &offset, 1, &answer), SYMBOL_STATE_RESOLVED);
	assert_string_equal(answer.name, "test_ranges");
	assert_int_equal(answer.address, q.elf_address);
	assert_int_equal(answer.elf_address, q.elf_address + 4);
	assert_true(answer.size > 4);
	symbolizer__free(s);
}

static void test_libc_beside_dladdr(void **state)
{
	static const char *const names[] = {"malloc", "free",  "qsort",	 "printf",
					    "fopen",  "fread", "getenv", "strtol"};
	struct symbolizer *s = symbolizer__new();
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

	(void)state;
	assert_non_null(libc);
	for (size_t i = 0; i < COUNT(names); i++) {
		char *function = dlsym(libc, names[i]);
		_cleanup_close_ int fd = -1;
		struct answer answer;
		uint64_t offset;
		Dl_info info;
		char *alias;

		assert_non_null(function);
		assert_int_not_equal(dladdr(function, &info), 0);
		offset = module_of(function).offset + 1;
		fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
		assert_int_equal(resolve(s, DSO_FILE, fd, &offset, 1, &answer),
				 SYMBOL_STATE_RESOLVED);
		assert_int_equal(answer.address, module_of(function).elf_address);
		if (i < 3)
			assert_string_equal(answer.name, names[i]);
		alias = dlsym(libc, answer.name);
		assert_true(!alias || alias == function);
	}
	dlclose(libc);
	symbolizer__free(s);
}

static void test_vdso(void **state)
{
	const char *image = (const char *)getauxval(AT_SYSINFO_EHDR); // NOLINT
	struct symbolizer *s = symbolizer__new();
	const size_t step = 16, size = 4096;
	_cleanup_close_ int fd = -1;
	uint64_t offsets[4096 / 16];
	struct answer answers[4096 / 16];
	size_t count = 0, clocks = 0;

	(void)state;
	if (!image) {
		symbolizer__free(s);
		print_message("skipped: this kernel gives no vDSO\n");
		skip();
	}
	fd = memfd_create("vdso", MFD_CLOEXEC);
	for (size_t at = 0; at < 16 * size; at += size) {
		/* The image's last page is not known here; write() says where reading ends. */
		if (pwrite(fd, image + at, size, (off_t)at) != (ssize_t)size)
			break;
	}
	for (size_t at = 0; at < size; at += step)
		offsets[count++] = at;
	assert_int_equal(resolve(s, DSO_VDSO, fd, offsets, count, answers), SYMBOL_STATE_RESOLVED);
	for (size_t i = 0; i < count; i++)
		clocks += strstr(answers[i].name, "clock_get") || strstr(answers[i].name, "time");
	assert_true(clocks > 0);
	symbolizer__free(s);
}

/* ---- beside nm ------------------------------------------------------------------------------- */

struct nm_symbol {
	uint64_t address, size;
	char *name;
};

struct nm_list {
	VEC(struct nm_symbol) symbols;
};

static void read_nm(struct nm_list *list, const char *options, const char *path)
{
	char command[600], line[8192], demangled[DEMANGLED_SIZE];
	FILE *nm;

	snprintf(command, sizeof(command), "nm %s -S --defined-only %s 2>/dev/null", options, path);
	nm = popen(command, "r");
	assert_non_null(nm);
	while (fgets(line, sizeof(line), nm)) {
		unsigned long long address, size = 0;
		char type, *name;
		int end = 0;

		if (sscanf(line, "%llx %llx %c %n", &address, &size, &type, &end) != 3 || !end) {
			size = 0;
			if (sscanf(line, "%llx %c %n", &address, &type, &end) != 2)
				continue;
		}
		if (!strchr("TtWwiu", type))
			continue;
		name = line + end;
		name[strcspn(name, "@\n")] = '\0';
		demangle(name, demangled, sizeof(demangled));
		assert_int_equal(vec_push(&list->symbols,
					  (struct nm_symbol){address, size, strdup(demangled)}),
				 0);
	}
	pclose(nm);
}

static void assert_nm_agrees(const struct nm_list *nm, const struct answer *answer)
{
	bool named = false, covered = false;
	size_t length = strlen(answer->name);

	for (size_t i = 0; i < nm->symbols.count; i++) {
		const struct nm_symbol *symbol = &nm->symbols.data[i];
		bool covers = answer->elf_address - symbol->address < symbol->size;

		covered |= covers;
		if (!length || symbol->address != answer->address || symbol->size != answer->size)
			continue;
		/* Kept answers are cut at the test's own buffer. */
		named |= (covers || !symbol->size) &&
			 !strncmp(symbol->name, answer->name, sizeof(answer->name) - 1);
	}
	assert_int_equal(named, length > 0);
	assert_true(!covered || length);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void compare_with_nm(const char *path, const struct module_query *text, size_t count,
			    uint64_t seed)
{
	_cleanup_free_ uint64_t *offsets = calloc(count, sizeof(*offsets));
	_cleanup_free_ struct answer *answers = calloc(count, sizeof(*answers));
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct nm_list nm = {};
	size_t distinct = 0;

	read_nm(&nm, "", path);
	read_nm(&nm, "-D", path);
	assert_true(nm.symbols.count > 50);
	for (size_t i = 0; i < count; i++)
		offsets[i] = text->text_offset +
			     next_random(&seed) % (text->text_end - text->text_start);
	qsort(offsets, count, sizeof(*offsets), compare_u64);
	for (size_t i = 0; i < count; i++) {
		if (!i || offsets[i] != offsets[i - 1])
			offsets[distinct++] = offsets[i];
	}
	assert_int_equal(resolve_symbols(fd, offsets, distinct, answers), SYMBOL_STATE_RESOLVED);
	for (size_t i = 0; i < distinct; i++) {
		assert_int_equal(answers[i].elf_address,
				 offsets[i] - text->text_offset + text->text_start);
		assert_nm_agrees(&nm, &answers[i]);
	}
	for (size_t i = 0; i < nm.symbols.count; i++)
		free(nm.symbols.data[i].name);
	vec_free(&nm.symbols);
}

static void test_libraries_beside_nm(void **state)
{
	struct module_query text = module_of(dlsym(RTLD_DEFAULT, "qsort"));
	char own[4096];
	ssize_t length;
	void *library;
	Dl_info info;

	(void)state;
	assert_int_not_equal(dladdr(dlsym(RTLD_DEFAULT, "qsort"), &info), 0);
	compare_with_nm(info.dli_fname, &text, 20000, 0x1234567);
	library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	if (!library) {
		print_message("skipped in part: libstdc++ is not there\n");
		return;
	}
	assert_int_not_equal(dladdr(dlsym(library, "__cxa_throw"), &info), 0);
	text = module_of(dlsym(library, "__cxa_throw"));
	compare_with_nm(info.dli_fname, &text, 20000, 0x7654321);
	dlclose(library);
	text = module_of(compare_with_nm);
	length = readlink("/proc/self/exe", own, sizeof(own) - 1);
	assert_true(length > 0);
	own[length] = '\0';
	compare_with_nm(own, &text, 20000, 0xabcdef);
}

/* ---- hostile files --------------------------------------------------------------------------- */

static void mutate(struct image *image, uint64_t *seed)
{
	static const uint64_t nasty[] = {0,	     1,		 0x7f,	    0xff,      0xffff,
					 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX};

	for (uint64_t n = 1 + next_random(seed) % 6; n; n--) {
		/* Headers and tables, not the text. */
		size_t at = next_random(seed) % 2 ? next_random(seed) % 0x400
						  : TABLES_OFFSET + next_random(seed) % 0x200;
		size_t width = (size_t)1 << next_random(seed) % 4;
		uint64_t value = next_random(seed) % 3 ? nasty[next_random(seed) % COUNT(nasty)]
						       : next_random(seed);

		memcpy(image->bytes + (at & ~(width - 1)), &value, width);
	}
}

static void test_mutated_files(void **state)
{
	static const struct test_symbol symbols[] = {
		{"first", 0x401000, 0x10, STB_GLOBAL, STT_FUNC},
		{"second", 0x401010, 0x10, STB_LOCAL, STT_FUNC},
		{"_ZN3foo3barEi", 0x401020, 0x10, STB_WEAK, STT_FUNC},
		{"open", 0x401100, 0, STB_GLOBAL, STT_NOTYPE},
	};
	uint64_t offsets[64], seed = 0x9e3779b97f4a7c15;
	struct symbolizer *s = symbolizer__new();
	struct answer answers[COUNT(offsets)];
	size_t resolved = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(offsets); i++)
		offsets[i] = i * 0x88;
	for (int round = 0; round < 3000; round++) {
		static struct image image;
		_cleanup_close_ int fd = -1;

		write_image(&image, symbols, COUNT(symbols));
		mutate(&image, &seed);
		fd = memory_file(&image, sizeof(image));
		resolved += resolve(s, DSO_FILE, fd, offsets, COUNT(offsets), answers) ==
			    SYMBOL_STATE_RESOLVED;
	}
	assert_true(resolved > 0 && resolved < 3000);
	symbolizer__free(s);
}

struct shrinking {
	int fd;
	atomic_bool stop;
	const struct image *image;
};

static void *shrink_and_grow(void *context)
{
	struct shrinking *sh = context;
	uint64_t seed = 0x5555;

	while (!atomic_load(&sh->stop)) {
		if (ftruncate(sh->fd, (off_t)(next_random(&seed) % IMAGE_SIZE)))
			break;
		if (pwrite(sh->fd, sh->image, sizeof(*sh->image), 0) < 0)
			break;
	}
	return NULL;
}

static void test_truncated_while_read(void **state)
{
	static const struct test_symbol symbols[] = {
		{"first", 0x401000, 0x10, STB_GLOBAL, STT_FUNC},
	};
	static const uint64_t offsets[] = {0x1000, 0x1008};
	struct symbolizer *s = symbolizer__new();
	struct answer answers[COUNT(offsets)];
	static struct image image;
	struct shrinking sh = {.image = &image};
	pthread_t thread;

	(void)state;
	write_image(&image, symbols, COUNT(symbols));
	sh.fd = memory_file(&image, sizeof(image));
	assert_int_equal(pthread_create(&thread, NULL, shrink_and_grow, &sh), 0);
	for (int round = 0; round < 2000; round++) {
		resolve(s, DSO_FILE, sh.fd, offsets, COUNT(offsets), answers);
		/* What is beyond the end reads as zeros, so a name may be cut. */
		assert_memory_equal(answers[0].name, "first", strlen(answers[0].name));
	}
	atomic_store(&sh.stop, true);
	pthread_join(thread, NULL);
	close(sh.fd);
	symbolizer__free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_which_name),
		cmocka_unit_test(test_symbols_without_size),
		cmocka_unit_test(test_segments_out_of_order),
		cmocka_unit_test(test_file_after_file),
		cmocka_unit_test(test_files_without_names),
		cmocka_unit_test(test_cut_files),
		cmocka_unit_test(test_sink_stops),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_own_functions),
		cmocka_unit_test(test_libc_beside_dladdr),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_libraries_beside_nm),
		cmocka_unit_test(test_mutated_files),
		cmocka_unit_test(test_truncated_while_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
