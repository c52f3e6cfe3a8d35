/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ELF files with DWARF, written byte by byte: corner cases need no compiler, and every field can be
 * wrong on purpose. Everything is little-endian and of the 32-bit DWARF format, version 4.
 */
#ifndef FORGE_DWARF_H
#define FORGE_DWARF_H

#include <dwarf.h>
#include <elf.h>

struct forge {
	unsigned char *data;
	size_t size, capacity;
};

static inline void forge_bytes(struct forge *f, const void *data, size_t size)
{
	if (f->size + size > f->capacity) {
		f->capacity = (f->size + size) * 2;
		f->data = realloc(f->data, f->capacity);
		assert_non_null(f->data);
	}
	if (size)
		memcpy(f->data + f->size, data, size);
	f->size += size;
}

static inline void forge_number(struct forge *f, uint64_t value, unsigned int size)
{
	forge_bytes(f, &value, size);
}

static inline void forge_uleb(struct forge *f, uint64_t value)
{
	do {
		forge_number(f, (value & 0x7f) | (value > 0x7f ? 0x80 : 0), 1);
		value >>= 7;
	} while (value);
}

static inline void forge_text(struct forge *f, const char *text)
{
	forge_bytes(f, text, strlen(text) + 1);
}

static inline void forge_patch(struct forge *f, size_t at, uint64_t value, unsigned int size)
{
	assert_true(at + size <= f->size);
	memcpy(f->data + at, &value, size);
}

static inline void forge_free(struct forge *f)
{
	free(f->data);
	*f = (struct forge){};
}

/* ---- sections -------------------------------------------------------------------------------- */

struct forged_section {
	const char *name;
	struct forge content;
	uint64_t flags;
};

/* A file in memory; -1 cannot happen. */
static inline int forge_elf(const struct forged_section *sections, size_t count, Elf64_Half type)
{
	Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					 ELFDATA2LSB, EV_CURRENT},
			     .e_type = type,
			     .e_machine = EM_X86_64,
			     .e_version = EV_CURRENT,
			     .e_ehsize = sizeof(header),
			     .e_phentsize = sizeof(Elf64_Phdr),
			     .e_phnum = 1,
			     .e_phoff = sizeof(header),
			     .e_shentsize = sizeof(Elf64_Shdr),
			     .e_shnum = count + 2,
			     .e_shstrndx = count + 1};
	/* file offsets are addresses */
	Elf64_Phdr load = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 1 << 20};
	struct forge f = {}, names = {}, table = {};
	Elf64_Shdr none = {}, entry;
	int fd;

	forge_text(&names, "");
	forge_bytes(&f, &header, sizeof(header));
	forge_bytes(&f, &load, sizeof(load));
	forge_bytes(&table, &none, sizeof(none));
	for (size_t i = 0; i < count; i++) {
		entry = (Elf64_Shdr){.sh_name = names.size,
				     .sh_type = SHT_PROGBITS,
				     .sh_flags = sections[i].flags,
				     .sh_addr = sections[i].flags & SHF_EXECINSTR ? f.size : 0,
				     .sh_offset = f.size,
				     .sh_size = sections[i].content.size,
				     .sh_addralign = 1};
		forge_text(&names, sections[i].name);
		forge_bytes(&table, &entry, sizeof(entry));
		forge_bytes(&f, sections[i].content.data, sections[i].content.size);
	}
	entry = (Elf64_Shdr){.sh_name = names.size, .sh_type = SHT_STRTAB, .sh_offset = f.size};
	forge_text(&names, ".shstrtab");
	entry.sh_size = names.size;
	forge_bytes(&table, &entry, sizeof(entry));
	forge_bytes(&f, names.data, names.size);
	forge_patch(&f, offsetof(Elf64_Ehdr, e_shoff), f.size, 8);
	forge_bytes(&f, table.data, table.size);
	fd = memfd_create("forged", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, f.data, f.size), f.size);
	forge_free(&f);
	forge_free(&names);
	forge_free(&table);
	return fd;
}

/* ---- DWARF ----------------------------------------------------------------------------------- */

enum forged_section_number { INFO, ABBREV, LINE, STR, RANGES, FORGED_SECTIONS };

struct forged_dwarf {
	struct forged_section sections[FORGED_SECTIONS];
	size_t unit; /* where the length of the unit at hand is */
};

/* What the DIEs here are made of: abbreviation codes. */
enum forged_die {
	UNIT = 1,     /* name, comp_dir, low_pc, high_pc (size), stmt_list; children */
	FUNCTION,     /* name, decl_line, low_pc, high_pc (size); children */
	INLINED,      /* abstract_origin (ref4), low_pc, high_pc (size), call_line; children */
	ABSTRACT,     /* name, decl_file, decl_line; no children */
	BLOCK,	      /* nothing; children */
	LEAF_INLINED, /* as INLINED, no children */
	REFERRING,    /* abstract_origin (ref4); no children */
	FAR_STRING,   /* name (strp), low_pc, high_pc (size); no children */
	RANGED,	      /* name, ranges (sec_offset); no children */
	RANGED_UNIT,  /* name, low_pc, ranges (sec_offset); children */
	BARE_UNIT,    /* name; children */
};

static inline void forge_abbreviation(struct forge *f, enum forged_die code, unsigned int tag,
				      bool children, const unsigned char *pairs)
{
	forge_uleb(f, code);
	forge_uleb(f, tag);
	forge_number(f, children, 1);
	for (; *pairs; pairs += 2) {
		forge_uleb(f, pairs[0]);
		forge_uleb(f, pairs[1]);
	}
	forge_number(f, 0, 2);
}

static inline void forge_abbreviations(struct forge *f)
{
	static const unsigned char unit[] = {DW_AT_name,
					     DW_FORM_string,
					     DW_AT_comp_dir,
					     DW_FORM_string,
					     DW_AT_low_pc,
					     DW_FORM_addr,
					     DW_AT_high_pc,
					     DW_FORM_data8,
					     DW_AT_stmt_list,
					     DW_FORM_sec_offset,
					     0};
	static const unsigned char function[] = {DW_AT_name,	DW_FORM_string, DW_AT_decl_line,
						 DW_FORM_data4, DW_AT_low_pc,	DW_FORM_addr,
						 DW_AT_high_pc, DW_FORM_data8,	0};
	static const unsigned char inlined[] = {DW_AT_abstract_origin, DW_FORM_ref4,  DW_AT_low_pc,
						DW_FORM_addr,	       DW_AT_high_pc, DW_FORM_data8,
						DW_AT_call_line,       DW_FORM_data4, 0};
	static const unsigned char abstract[] = {DW_AT_name,
						 DW_FORM_string,
						 DW_AT_decl_file,
						 DW_FORM_data1,
						 DW_AT_decl_line,
						 DW_FORM_data4,
						 0};
	static const unsigned char nothing[] = {0};
	static const unsigned char referring[] = {DW_AT_abstract_origin, DW_FORM_ref4, 0};
	static const unsigned char far_string[] = {
		DW_AT_name, DW_FORM_strp, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data8,
		0};
	static const unsigned char ranged[] = {DW_AT_name, DW_FORM_string, DW_AT_ranges,
					       DW_FORM_sec_offset, 0};
	static const unsigned char ranged_unit[] = {DW_AT_name,
						    DW_FORM_string,
						    DW_AT_low_pc,
						    DW_FORM_addr,
						    DW_AT_ranges,
						    DW_FORM_sec_offset,
						    0};
	static const unsigned char bare_unit[] = {DW_AT_name, DW_FORM_string, 0};

	forge_abbreviation(f, UNIT, DW_TAG_compile_unit, true, unit);
	forge_abbreviation(f, FUNCTION, DW_TAG_subprogram, true, function);
	forge_abbreviation(f, INLINED, DW_TAG_inlined_subroutine, true, inlined);
	forge_abbreviation(f, ABSTRACT, DW_TAG_subprogram, false, abstract);
	forge_abbreviation(f, BLOCK, DW_TAG_lexical_block, true, nothing);
	forge_abbreviation(f, LEAF_INLINED, DW_TAG_inlined_subroutine, false, inlined);
	forge_abbreviation(f, REFERRING, DW_TAG_subprogram, false, referring);
	forge_abbreviation(f, FAR_STRING, DW_TAG_subprogram, false, far_string);
	forge_abbreviation(f, RANGED, DW_TAG_subprogram, false, ranged);
	forge_abbreviation(f, RANGED_UNIT, DW_TAG_compile_unit, true, ranged_unit);
	forge_abbreviation(f, BARE_UNIT, DW_TAG_compile_unit, true, bare_unit);
	forge_number(f, 0, 1);
}

static inline void forge_begin(struct forged_dwarf *d)
{
	*d = (struct forged_dwarf){.sections = {{".debug_info", {}, 0},
						{".debug_abbrev", {}, 0},
						{".debug_line", {}, 0},
						{".debug_str", {}, 0},
						{".debug_ranges", {}, 0}}};
	forge_abbreviations(&d->sections[ABBREV].content);
	forge_text(&d->sections[STR].content, "a string");
}

static inline struct forge *forge_info(struct forged_dwarf *d)
{
	return &d->sections[INFO].content;
}

static inline void forge_header(struct forged_dwarf *d)
{
	struct forge *f = forge_info(d);

	d->unit = f->size;
	forge_number(f, 0, 4); /* length, when the unit ends */
	forge_number(f, 4, 2); /* version */
	forge_number(f, 0, 4); /* abbreviations */
	forge_number(f, 8, 1); /* bytes of an address */
}

/* Where the next DIE will be, as a reference inside its unit. */
static inline uint32_t forge_here(struct forged_dwarf *d)
{
	return forge_info(d)->size - d->unit;
}

/* A table with the rows (address, 10), (address + 16, 20) of file 1, up to address + size. */
static inline void forge_lines(struct forge *f, uint64_t address, uint64_t size)
{
	static const unsigned char lengths[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
	size_t start = f->size, header;

	forge_number(f, 0, 4);
	forge_number(f, 4, 2);
	header = f->size;
	forge_number(f, 0, 4);
	forge_number(f, 1, 1); /* bytes of an instruction */
	forge_number(f, 1, 1); /* operations in one */
	forge_number(f, 1, 1); /* is a statement */
	forge_number(f, (unsigned char)-5, 1);
	forge_number(f, 14, 1);
	forge_number(f, 13, 1);
	forge_bytes(f, lengths, sizeof(lengths));
	forge_text(f, "include");
	forge_number(f, 0, 1);
	forge_text(f, "../lib/file.c");
	forge_number(f, 0, 3);
	forge_text(f, "file.h");
	forge_number(f, 1, 1);
	forge_number(f, 0, 2);
	forge_number(f, 0, 1);
	forge_patch(f, header, f->size - header - 4, 4);
	forge_number(f, 0, 1);
	forge_uleb(f, 9);
	forge_number(f, DW_LNE_set_address, 1);
	forge_number(f, address, 8);
	forge_number(f, DW_LNS_advance_line, 1);
	forge_number(f, 9, 1);
	forge_number(f, DW_LNS_copy, 1);
	forge_number(f, DW_LNS_advance_pc, 1);
	forge_uleb(f, 16);
	forge_number(f, DW_LNS_advance_line, 1);
	forge_number(f, 10, 1);
	forge_number(f, DW_LNS_copy, 1);
	forge_number(f, DW_LNS_advance_pc, 1);
	forge_uleb(f, size - 16);
	forge_number(f, 0, 1);
	forge_number(f, 1, 1);
	forge_number(f, DW_LNE_end_sequence, 1);
	forge_patch(f, start, f->size - start - 4, 4);
}

static inline void forge_unit(struct forged_dwarf *d, uint64_t address, uint64_t size)
{
	struct forge *f;
	uint32_t lines = d->sections[LINE].content.size;

	forge_lines(&d->sections[LINE].content, address, size);
	forge_header(d);
	f = forge_info(d);
	forge_uleb(f, UNIT);
	forge_text(f, "unit.c");
	forge_text(f, "/work/./build");
	forge_number(f, address, 8);
	forge_number(f, size, 8);
	forge_number(f, lines, 4);
}

/* A unit whose code is where a list of ranges says. */
static inline void forge_ranged_unit(struct forged_dwarf *d, uint32_t ranges)
{
	forge_header(d);
	forge_uleb(forge_info(d), RANGED_UNIT);
	forge_text(forge_info(d), "unit.c");
	forge_number(forge_info(d), 0, 8);
	forge_number(forge_info(d), ranges, 4);
}

static inline void forge_function(struct forged_dwarf *d, const char *name, uint32_t line,
				  uint64_t address, uint64_t size)
{
	struct forge *f = forge_info(d);

	forge_uleb(f, FUNCTION);
	forge_text(f, name);
	forge_number(f, line, 4);
	forge_number(f, address, 8);
	forge_number(f, size, 8);
}

static inline void forge_inlined(struct forged_dwarf *d, enum forged_die code, uint32_t origin,
				 uint64_t address, uint64_t size, uint32_t call_line)
{
	struct forge *f = forge_info(d);

	forge_uleb(f, code);
	forge_number(f, origin, 4);
	forge_number(f, address, 8);
	forge_number(f, size, 8);
	forge_number(f, call_line, 4);
}

static inline uint32_t forge_abstract(struct forged_dwarf *d, const char *name, uint8_t file,
				      uint32_t line)
{
	struct forge *f = forge_info(d);
	uint32_t here = forge_here(d);

	forge_uleb(f, ABSTRACT);
	forge_text(f, name);
	forge_number(f, file, 1);
	forge_number(f, line, 4);
	return here;
}

/* The end of a list of children. */
static inline void forge_end(struct forged_dwarf *d)
{
	forge_number(forge_info(d), 0, 1);
}

static inline void forge_unit_end(struct forged_dwarf *d)
{
	struct forge *f = forge_info(d);

	forge_end(d);
	forge_patch(f, d->unit, f->size - d->unit - 4, 4);
}

/* A unit with a function of its own size and nothing else. */
static inline void forge_simple_unit(struct forged_dwarf *d, const char *name, uint64_t address)
{
	forge_unit(d, address, 0x100);
	forge_function(d, name, 7, address, 0x100);
	forge_end(d);
	forge_unit_end(d);
}

static inline int forge_finish(struct forged_dwarf *d)
{
	int fd = forge_elf(d->sections, FORGED_SECTIONS, ET_DYN);

	for (size_t i = 0; i < FORGED_SECTIONS; i++)
		forge_free(&d->sections[i].content);
	return fd;
}

#endif
