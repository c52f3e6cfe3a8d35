/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of ELF files: forge() writes a small one byte by byte, so that corner cases need no compiler
 * and every field can be wrong on purpose. To be included after cmocka.h.
 */
#ifndef TESTS_UNIT_FORGE_ELF_H
#define TESTS_UNIT_FORGE_ELF_H

#include <elf.h>

#include "base/io.h"
#include "elf/elf_file.h"

struct image {
	unsigned char bytes[4096];
	size_t size;
	bool is_64, big;
	/* where things are, for tests that break them */
	size_t program_headers, section_headers, notes, symbols, strings;
};

static const struct {
	bool is_64, big;
} variants[] = {{true, false}, {true, true}, {false, false}, {false, true}};

static inline void put(struct image *im, size_t offset, uint64_t value, size_t size)
{
	assert_true(offset + size <= sizeof(im->bytes));
	for (size_t i = 0; i < size; i++) {
		size_t shift = 8 * (im->big ? size - 1 - i : i);

		im->bytes[offset + i] = value >> shift;
	}
	if (offset + size > im->size)
		im->size = offset + size;
}

/* Fields one after the other; `word` fields are as wide as the class. */
struct cursor {
	struct image *im;
	size_t at;
};

static inline void half(struct cursor *c, uint64_t value)
{
	put(c->im, c->at, value, 2);
	c->at += 2;
}

static inline void word32(struct cursor *c, uint64_t value)
{
	put(c->im, c->at, value, 4);
	c->at += 4;
}

static inline void word(struct cursor *c, uint64_t value)
{
	size_t size = c->im->is_64 ? 8 : 4;

	put(c->im, c->at, value, size);
	c->at += size;
}

static inline void segment(struct cursor *c, uint32_t type, uint32_t flags, uint64_t offset,
			   uint64_t address, uint64_t size, uint64_t alignment)
{
	word32(c, type);
	if (c->im->is_64)
		word32(c, flags);
	word(c, offset);
	word(c, address);
	word(c, address);
	word(c, size);
	word(c, size);
	if (!c->im->is_64)
		word32(c, flags);
	word(c, alignment);
}

static inline void section(struct cursor *c, uint32_t type, uint64_t flags, uint64_t address,
			   uint64_t offset, uint64_t size, uint32_t link, uint64_t entry_size)
{
	word32(c, 0);
	word32(c, type);
	word(c, flags);
	word(c, address);
	word(c, offset);
	word(c, size);
	word32(c, link);
	word32(c, 0);
	word(c, 4);
	word(c, entry_size);
}

static inline void symbol(struct cursor *c, uint32_t name, unsigned int type,
			  uint32_t section_index, uint64_t value, uint64_t size)
{
	word32(c, name);
	if (!c->im->is_64) {
		word(c, value);
		word(c, size);
	}
	put(c->im, c->at++, ELF32_ST_INFO(STB_GLOBAL, type), 1);
	put(c->im, c->at++, 0, 1);
	half(c, section_index);
	if (c->im->is_64) {
		word(c, value);
		word(c, size);
	}
}

static inline void note(struct cursor *c, const char *name, uint32_t type, const char *content,
			size_t alignment)
{
	size_t length = strlen(content);

	word32(c, strlen(name) + 1);
	word32(c, length);
	word32(c, type);
	for (size_t i = 0; i <= strlen(name); i++)
		put(c->im, c->at++, name[i], 1);
	c->at = (c->at + alignment - 1) & ~(alignment - 1);
	for (size_t i = 0; i < length; i++)
		put(c->im, c->at++, content[i], 1);
	c->at = (c->at + alignment - 1) & ~(alignment - 1);
}

static inline void header(struct image *im, unsigned int segment_count, unsigned int section_count)
{
	struct cursor c = {im, EI_NIDENT};

	memcpy(im->bytes, ELFMAG, SELFMAG);
	im->bytes[EI_CLASS] = im->is_64 ? ELFCLASS64 : ELFCLASS32;
	im->bytes[EI_DATA] = im->big ? ELFDATA2MSB : ELFDATA2LSB;
	im->bytes[EI_VERSION] = EV_CURRENT;
	half(&c, ET_DYN);
	half(&c, EM_X86_64);
	word32(&c, EV_CURRENT);
	word(&c, 0);
	word(&c, im->program_headers);
	word(&c, im->section_headers);
	word32(&c, 0);
	half(&c, im->is_64 ? 64 : 52);
	half(&c, im->is_64 ? 56 : 32);
	half(&c, segment_count);
	half(&c, im->is_64 ? 64 : 40);
	half(&c, section_count);
	half(&c, 0);
}

#define BUILD_ID "0123456789abcdefghij"

static const char strings[] = "\0first\0second@@V1\0label\0$x\0.Llocal\0datum\0object\0undefined\0"
			      "ifunc\0@V2";

enum { FIRST = 1, SECOND = 7, LABEL = 18, DOLLAR = 24, LOCAL = 27, DATUM = 35, OBJECT = 41 };
enum { UNDEFINED = 48, IFUNC = 58, VERSION_ONLY = 64 };

/* Text at 0x2000 (file offset 0x200 of a page-skewed segment), data at 0x5000. */
static inline void forge(struct image *im, bool is_64, bool big)
{
	size_t symbol_size = is_64 ? 24 : 16;
	struct cursor c = {im, 0};

	memset(im, 0, sizeof(*im));
	im->is_64 = is_64;
	im->big = big;
	im->program_headers = 64;
	im->notes = 0x180;
	c.at = im->notes;
	note(&c, "GNU", NT_GNU_ABI_TAG, "abi0tag1tag2tag3", 4);
	note(&c, "odd", 77, "x", 4);
	note(&c, "GNU", NT_GNU_BUILD_ID, BUILD_ID, 4);
	c.at = im->program_headers;
	segment(&c, PT_NOTE, PF_R, im->notes, 0x1180, 0x80, 4);
	segment(&c, PT_LOAD, PF_R, 0, 0x1000, 0x200, 0x1000);
	segment(&c, PT_LOAD, PF_R | PF_X, 0x200, 0x2200, 0x100, 0x1000);
	segment(&c, PT_LOAD, PF_R | PF_W, 0x300, 0x5300, 0x100, 0x1000);
	im->symbols = 0x400;
	c.at = im->symbols;
	symbol(&c, 0, STT_NOTYPE, SHN_UNDEF, 0, 0);
	symbol(&c, FIRST, STT_FUNC, 1, 0x2200, 0x10);
	symbol(&c, SECOND, STT_FUNC, 1, 0x2210, 0x20);
	symbol(&c, LABEL, STT_NOTYPE, 1, 0x2230, 0);
	symbol(&c, DOLLAR, STT_NOTYPE, 1, 0x2230, 0);
	symbol(&c, LOCAL, STT_NOTYPE, 1, 0x2234, 0);
	symbol(&c, DATUM, STT_NOTYPE, 2, 0x5300, 0);
	symbol(&c, OBJECT, STT_OBJECT, 2, 0x5308, 8);
	symbol(&c, UNDEFINED, STT_FUNC, SHN_UNDEF, 0, 0);
	symbol(&c, IFUNC, STT_GNU_IFUNC, 1, 0x2240, 4);
	symbol(&c, VERSION_ONLY, STT_FUNC, 1, 0x2250, 4);
	im->strings = c.at;
	memcpy(im->bytes + im->strings, strings, sizeof(strings));
	im->section_headers = 0x600;
	c.at = im->section_headers;
	section(&c, SHT_NULL, 0, 0, 0, 0, 0, 0);
	section(&c, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x2200, 0x200, 0x100, 0, 0);
	section(&c, SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x5300, 0x300, 0x100, 0, 0);
	section(&c, SHT_SYMTAB, 0, 0, im->symbols, im->strings - im->symbols, 4, symbol_size);
	section(&c, SHT_STRTAB, 0, 0, im->strings, sizeof(strings), 0, 0);
	section(&c, SHT_NOTE, 0, 0, im->notes, 0x80, 0, 0);
	header(im, 4, 6);
}

/* Offsets of header fields that tests falsify. */
static inline size_t field(const struct image *im, size_t at_64, size_t at_32)
{
	return im->is_64 ? at_64 : at_32;
}

#define E_PHNUM(im) field((im), offsetof(Elf64_Ehdr, e_phnum), offsetof(Elf32_Ehdr, e_phnum))
#define E_SHNUM(im) field((im), offsetof(Elf64_Ehdr, e_shnum), offsetof(Elf32_Ehdr, e_shnum))
#define E_PHOFF(im) field((im), offsetof(Elf64_Ehdr, e_phoff), offsetof(Elf32_Ehdr, e_phoff))
#define E_SHOFF(im) field((im), offsetof(Elf64_Ehdr, e_shoff), offsetof(Elf32_Ehdr, e_shoff))
#define E_SHENTSIZE(im)                                                                            \
	field((im), offsetof(Elf64_Ehdr, e_shentsize), offsetof(Elf32_Ehdr, e_shentsize))
#define WORD(im) ((im)->is_64 ? 8 : 4)

static inline size_t section_field(const struct image *im, unsigned int index, size_t at_64,
				   size_t at_32)
{
	return im->section_headers + index * (im->is_64 ? 64 : 40) + field(im, at_64, at_32);
}

#define SECTION(im, index, name)                                                                   \
	section_field((im), (index), offsetof(Elf64_Shdr, name), offsetof(Elf32_Shdr, name))

/* A descriptor with these bytes in it. */
static inline int make_file(const void *bytes, size_t size)
{
	int fd = memfd_create("forged", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, bytes, size), 0);
	return fd;
}

static inline struct elf_file *open_image(const struct image *im, int *fd)
{
	struct elf_file *file = NULL;

	*fd = make_file(im->bytes, im->size);
	assert_int_equal(elf_file__open(*fd, &file), 0);
	assert_non_null(file);
	return file;
}

static inline void close_image(struct elf_file *file, int fd)
{
	elf_file__free(file);
	close(fd);
}

#endif
