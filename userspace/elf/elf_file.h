/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Segments, sections, notes and symbols of an open ELF file.
 *
 * The file is untrusted. It is read with pread, never mapped. Fixed limits and the file's real size
 * bound every count, offset and size in it. libelf only converts the byte order of what was read.
 * Of a damaged file the readable parts are returned.
 */
#ifndef ELF_FILE_H
#define ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct elf_file;

/*
 * `fd` stays the caller's and must outlive the object. 0; -ENOEXEC: not ELF, or too short;
 * -EBADMSG: damaged beyond use; -ENOMEM; -EIO. Any class and byte order is read.
 */
int elf_file__open(int fd, struct elf_file **file);
/* An ELF file inside another, from offset `base` to its end. Offsets are relative to `base`. */
int elf_file__open_at(int fd, uint64_t base, struct elf_file **file);
void elf_file__free(struct elf_file *file);
/* Call before closing the descriptor: nothing is read after this. The segments stay available. */
void elf_file__detach(struct elf_file *file);
/* Has a limit left out headers, symbols or names, of those that were read? */
bool elf_file__left(const struct elf_file *file);

/* elf_read_build_id() of this file; -ENOENT also if it has changed and is no valid ELF any more. */
int elf_file__build_id(struct elf_file *file, uint8_t *id, size_t size);

/* File offset to virtual address by PT_LOAD, and back. -ENOENT: no segment covers it. */
int elf_file__address_of_offset(const struct elf_file *file, uint64_t offset, uint64_t *address);
int elf_file__offset_of_address(const struct elf_file *file, uint64_t address, uint64_t *offset);
/* The PT_LOADs in search order: the first that covers an offset counts. */
typedef int (*elf_load_fn)(void *context, uint64_t offset, uint64_t size, uint64_t address);
int elf_file__each_load(const struct elf_file *file, elf_load_fn visit, void *context);
/* The file offset at which the segment that covers `offset` ends; 0: none covers it. */
uint64_t elf_file__segment_end(const struct elf_file *file, uint64_t offset);

/*
 * A mapping consists of whole pages, but linkers let segments share a page, and a program may map
 * any part of a file. So an executable mapping is divided into runs of one executable segment each.
 */
struct elf_code {
	uint64_t address; /* virtual, of the run's first byte; may have wrapped */
	uint64_t end;	  /* file offset at which the run ends: behind `offset`, `end` at most */
};

/*
 * The run that begins at `offset` of a mapping that ends at file offset `end` > `offset`. Code in
 * it has the addresses of elf_file__address_of_offset(). If no executable segment covers `offset`
 * or begins in the mapping, any PT_LOAD that covers `offset` is used. -ENOENT: there is none.
 */
int elf_file__code_at(const struct elf_file *file, uint64_t offset, uint64_t end,
		      struct elf_code *code);

/* Reads at a virtual address, up to the end of its segment. Bytes; -ENOENT: not mapped; -EIO. */
ssize_t elf_file__read_at(const struct elf_file *file, uint64_t address, void *bytes, size_t size);
/* ET_REL: an object file, whose sections have no addresses yet, or a dwz file. */
bool elf_file__is_relocatable(const struct elf_file *file);
/* ET_EXEC. Programs that are loaded at any address are ET_DYN, as libraries are. */
bool elf_file__is_program(const struct elf_file *file);

bool elf_file__is_x86_64(const struct elf_file *file);
bool elf_file__is_arm64(const struct elf_file *file);
/* The entry point, a virtual address; 0: none. */
uint64_t elf_file__entry(const struct elf_file *file);

struct elf_section {
	uint64_t address, offset, size; /* as the header claims; not bounded by the file */
	uint64_t flags;			/* SHF_* */
	uint32_t type; /* SHT_*; SHT_NOBITS: no bytes in the file (removed by strip) */
};

/* Raw bytes of a section from `offset` on. How many (fewer at its end or the file's), or -errno. */
ssize_t elf_file__read_section(const struct elf_file *file, const struct elf_section *section,
			       uint64_t offset, void *bytes, size_t size);

struct elf_symbol {
	const char *name; /* as in the file; versions ("@@GLIBC_2.2.5") cut off */
	size_t name_length;
	uint64_t address, size;
	uint64_t section_end;  /* end address of the section that defines it; 0: unknown */
	uint8_t type, binding; /* STT_*, STB_* */
	bool dynamic;	       /* from .dynsym */
	bool partial;	       /* the file has no .symtab: only exported functions are there */
};

/*
 * Visits the defined, named functions (STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE in executable sections)
 * of .symtab and .dynsym, or without section headers of the dynamic segment. Names are valid until
 * the file is freed, or elf_file__forget_dynamic_names(). Nonzero from `visit` stops and is
 * returned. 0; -ENODATA: no symbol table; -EBADMSG: damaged (readable symbols were visited);
 * -ENOMEM; -EIO.
 */
typedef int (*elf_symbol_fn)(void *context, const struct elf_symbol *symbol);
/*
 * The same for symbols that `wanted` accepts. It is called before the name is read, which takes
 * most of the time: name is NULL and section_end 0.
 */
typedef bool (*elf_symbol_wanted_fn)(void *context, const struct elf_symbol *symbol);

/*
 * One function's code by .eh_frame, if the file has an .eh_frame_hdr with a table. False: no FDE
 * covers the address. `next` is set in any case: where the code of the next FDE begins, UINT64_MAX:
 * there is none.
 */
struct elf_frame {
	uint64_t start, end, next;
};

/* The links of an ELF file to its debug information. */

/*
 * Symbols of .dynsym by name, through DT_GNU_HASH like the dynamic linker. A look-up reads some ten
 * small pieces of the file, however many symbols it has.
 */

/* DT_GNU_HASH; offsets in the file. */
struct elf_gnu_hash {
	uint64_t buckets, chains;
	uint32_t bucket_count;
	uint32_t first; /* number of the first hashed symbol, which has the first chain word */
};

struct elf_exports {
	struct elf_file *file; /* the caller's; must live as long */
	uint64_t symbols, strings, strings_size;
	struct elf_gnu_hash hash;
};

#endif
