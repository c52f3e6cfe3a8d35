/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All use of libelf: segments, notes, symbols of an open file.
 *
 * The file is untrusted: everything is read with pread (never mmap), and every count, offset and size that it claims
 * is bounded by the file's real size and by fixed limits. libelf converts class and byte order of the bytes that were
 * read; it never reads the file itself. Of a damaged file the readable parts are returned.
 */
#ifndef ELF_FILE_H
#define ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct elf_file;

/*
 * `fd` stays the caller's and must outlive the object. 0; -ENOEXEC: not ELF (or too short to be); -EBADMSG: ELF, but
 * damaged beyond use; -ENOMEM; -EIO. Any class and byte order is read.
 */
int elf_file__open(int fd, struct elf_file **file);
/* The same for one that lies in another file, from offset `base` to its end. All offsets are its own. */
int elf_file__open_at(int fd, uint64_t base, struct elf_file **file);
void elf_file__free(struct elf_file *file);
/* The descriptor is about to be closed: nothing is read any more. The segments stay available. */
void elf_file__detach(struct elf_file *file);

/* Size of the build-id (1..BUILD_ID bytes, longer ones are cut at `size`), or -ENOENT. */
int elf_file__build_id(struct elf_file *file, uint8_t *id, size_t size);

/* File offset -> virtual address by PT_LOAD, and back. -ENOENT: no segment covers it. */
int elf_file__address_of_offset(const struct elf_file *file, uint64_t offset, uint64_t *address);
int elf_file__offset_of_address(const struct elf_file *file, uint64_t address, uint64_t *offset);
/* The PT_LOADs in the order in which they are searched: the first that covers an offset counts. */
typedef int (*elf_load_fn)(void *context, uint64_t offset, uint64_t size, uint64_t address);
int elf_file__each_load(const struct elf_file *file, elf_load_fn visit, void *context);
/* The file offset at which the segment of this one ends; 0: no segment covers it. */
uint64_t elf_file__segment_end(const struct elf_file *file, uint64_t offset);

/*
 * An executable mapping has whole pages of the file, and so more than its segment's bytes: linkers
 * let segments share a page. The first page may begin with the end of another segment, and a
 * mapping that a program made by itself may hold any part of the file. So a mapping is taken apart
 * into runs that belong to one executable segment each.
 */
struct elf_code {
	uint64_t address; /* virtual, of the run's first byte; may have wrapped */
	uint64_t end;	  /* file offset at which the run ends: behind `offset`, `end` at most */
};

/*
 * The run that begins at `offset` of a mapping that ends at file offset `end`, which is larger. The code in it has
 * the addresses that elf_file__address_of_offset() returns. Without an executable segment another one stands in;
 * -ENOENT: none of them covers `offset`.
 */
int elf_file__code_at(const struct elf_file *file, uint64_t offset, uint64_t end,
		      struct elf_code *code);

/*
 * Reads up to `size` bytes of the file at a virtual address, fewer if its segment ends there. Their number; -ENOENT:
 * no segment covers it; -EIO.
 */
ssize_t elf_file__read_at(const struct elf_file *file, uint64_t address, void *bytes, size_t size);
/* An object file, whose sections have no addresses yet (ET_REL); a dwz file has that type as well. */
bool elf_file__is_relocatable(const struct elf_file *file);

/* Code of 64-bit x86. */
bool elf_file__is_x86_64(const struct elf_file *file);
/* The entry point, a virtual address; 0: none. */
uint64_t elf_file__entry(const struct elf_file *file);

struct elf_section {
	uint64_t address, offset, size; /* as the header claims; not bounded by the file */
	uint64_t flags;			/* SHF_* */
	uint32_t type; /* SHT_*; of SHT_NOBITS (removed by strip) the file has no bytes */
};

/* The first section of this name. 0, -ENOENT, -EBADMSG (the names are damaged), -ENOMEM, -EIO. */
int elf_file__find_section(struct elf_file *file, const char *name, struct elf_section *section);

/*
 * The bytes of the first section of this name, with a NUL behind them that does not count; the
 * caller frees. -ENOENT: there is none, or not in this file; -ENOTSUP: it is compressed; -EFBIG:
 * larger than `limit`; -EBADMSG: cut short, or the names are damaged; -ENOMEM; -EIO.
 */
int elf_file__section_data(struct elf_file *file, const char *name, size_t limit, void **data,
			   size_t *size);

/*
 * Up to `size` bytes of a section from `offset` on, as they are in the file; fewer where either ends. How many, or
 * negative errno.
 */
ssize_t elf_file__read_section(const struct elf_file *file, const struct elf_section *section,
			       uint64_t offset, void *bytes, size_t size);

/*
 * Bytes of the sections that no program needs (DWARF, mostly), inflated: the sum that the headers claim, UINT64_MAX
 * at most.
 */
uint64_t elf_file__debug_size(struct elf_file *file);

struct elf_symbol {
	const char *name; /* as in the file; versions ("@@GLIBC_2.2.5") cut off */
	size_t name_length;
	uint64_t address, size;
	uint64_t section_end;  /* where the section it is defined in ends; 0 unknown */
	uint8_t type, binding; /* STT_*, STB_* */
	bool dynamic;	       /* from .dynsym */
};

/*
 * Every function-like symbol (STT_FUNC, STT_GNU_IFUNC, and STT_NOTYPE in executable sections) that is defined and
 * named, from .symtab and .dynsym; without section headers, from the dynamic segment. Names are valid until the file
 * is freed. `visit` nonzero stops and is returned. 0 done; -ENODATA: no symbol table at all; -EBADMSG: a damaged one
 * (its readable symbols were visited).
 */
typedef int (*elf_symbol_fn)(void *context, const struct elf_symbol *symbol);
int elf_file__each_symbol(struct elf_file *file, elf_symbol_fn visit, void *context);
/*
 * The same for symbols that `wanted` accepts before the name is read (it is NULL, and section_end 0): names take most
 * of the time.
 */
typedef bool (*elf_symbol_wanted_fn)(void *context, const struct elf_symbol *symbol);
int elf_file__each_wanted_symbol(struct elf_file *file, elf_symbol_wanted_fn wanted,
				 elf_symbol_fn visit, void *context);
/*
 * Names of .dynsym are mostly names of .symtab as well, and as large. Does a reported name lie among them? Once none is
 * used any more they can be given back, and are read again when they are needed.
 */
bool elf_file__has_dynamic_name(const struct elf_file *file, const char *name);
void elf_file__forget_dynamic_names(struct elf_file *file);
/*
 * The same for data (STT_OBJECT). `exported`: from .dynsym, if there is one; -EFBIG: it has more symbols (65,536) or
 * longer names (1 MB in all) than files that have such objects, because the file's owner must not decide how long
 * this takes.
 */
int elf_file__each_object(struct elf_file *file, bool exported, elf_symbol_fn visit, void *context);

/* The links of an ELF file to its debug information. */

/*
 * .gnu_debuglink: a file's name and the CRC-32 of that whole file. On failure `name` may hold
 * anything. 0; -ENOENT: there is no such section; -ENAMETOOLONG; -EBADMSG; -ENOMEM; -EIO.
 */
int elf_file__debug_link(struct elf_file *file, char *name, size_t size, uint32_t *crc);

/*
 * .gnu_debugaltlink, as dwz writes it: a file's name and its build-id. The size of the build-id
 * (≥ 1), or the same errors; -EFBIG: the build-id is longer than `id_size`.
 */
int elf_file__alternate_link(struct elf_file *file, char *name, size_t size, uint8_t *id,
			     size_t id_size);

/*
 * Single symbols of .dynsym by their names, as the dynamic linker finds them: through DT_GNU_HASH. A look-up reads some
 * ten small pieces of the file, however many symbols it has; elf_file__each_object() refuses files that have many.
 */

struct elf_file;

/* DT_GNU_HASH; offsets in the file. */
struct elf_gnu_hash {
	uint64_t buckets, chains;
	uint32_t bucket_count;
	uint32_t first; /* number of the first hashed symbol, which has the first chain word */
};

struct elf_exports {
	const struct elf_file *file; /* the caller's; must live as long */
	uint64_t symbols, strings, strings_size;
	struct elf_gnu_hash hash;
};

/* 0; -ENODATA: the file exports nothing in this way; -EBADMSG: damaged; -ENOMEM; -EIO. */
int elf_exports__init(struct elf_exports *x, const struct elf_file *file);
/* Where a defined symbol is. 0; -ENOENT: there is none; -EBADMSG: a chain that does not end; -EIO. */
int elf_exports__find(const struct elf_exports *x, const char *name, uint64_t *address);
/* The 32 bits at a symbol, in this machine's byte order; where the file has no bytes for it (.bss) they are 0. As _find(). */
int elf_exports__u32(const struct elf_exports *x, const char *name, uint32_t *value);

/*
 * The build-id of the ELF file that begins at offset `base` of `fd`, at a bounded cost: at most 64 KB are read, whatever its
 * headers promise. For callers that need it of every mapped file. Its size (1..`size`, longer ones are cut). Looks
 * in PT_NOTE segments first, then in SHT_NOTE sections. -ENOENT: an ELF file that has none within these bounds;
 * -ENOEXEC: not ELF (or too short to be); -EBADMSG: ELF, but damaged beyond use; or an error of reading.
 */
int elf_read_build_id(int fd, uint64_t base, uint8_t *id, size_t size);

#endif
