/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of symbol tables: a sink that keeps its results, small ELF files written symbol by
 * symbol. To be included after cmocka.h.
 */
#ifndef TESTS_UNIT_SYMBOLIZE_SUPPORT_H
#define TESTS_UNIT_SYMBOLIZE_SUPPORT_H

#include <elf.h>

#include <sysprof/symbolizer.h>

#include "symbolize/module.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- a sink that keeps its results ------------------------------------------------------- */

struct answer {
	char name[256]; /* "" none */
	uint64_t elf_address, address, size;
};

struct answers {
	struct answer *data;
	size_t count, stop_at;
};

static inline int keep_answer(void *context, size_t index, const struct symbol_result *result)
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

static inline enum symbol_state resolve(struct symbolizer *s, enum dso_kind kind, int fd,
					const uint64_t *addresses, size_t count,
					struct answer *answers)
{
	const struct module_files files = {
		.kind = kind, .elf_fd = fd, .debug_fd = -1, .alt_fd = -1};
	struct answers a = {.data = answers};
	struct symbolizer_job job = {
		.dso = {.kind = kind, .fd = fd, .root_fd = -1, .path = "test"},
		.addresses = addresses,
		.count = count,
		.sink = keep_answer,
		.context = &a,
	};
	struct symbolizer_counts counts = {};
	struct module_report report;

	if (fd >= 0) { /* in this process */
		assert_int_equal(module_resolve(&files, addresses, count, keep_answer, &a, &report),
				 0);
		job.state = report.state;
	} else {
		assert_int_equal(symbolizer__resolve_all(s, &job, 1, &(struct symbolizer_options){},
							 &counts),
				 0);
	}
	assert_int_equal(a.count, count);
	assert_true(job.state < SYMBOL_STATE_COUNT);
	return job.state;
}

/* From symbol tables alone: what nm and dladdr know. */
static inline enum symbol_state resolve_symbols(int fd, const uint64_t *offsets, size_t count,
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

static inline void write_headers(struct image *image, size_t symbol_bytes, size_t string_bytes)
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

static inline void write_image(struct image *image, const struct test_symbol *symbols, size_t count)
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

static inline int memory_file(const void *data, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, data, size, 0), (ssize_t)size);
	return fd;
}

#endif
