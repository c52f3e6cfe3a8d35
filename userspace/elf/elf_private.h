/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of elf/. Tables are in the 64-bit form, whatever the file's class. */
#ifndef ELF_PRIVATE_H
#define ELF_PRIVATE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "base/vec.h"

struct elf_gnu_hash;

struct elf_name {
	uint64_t offset; /* in the table */
	char *text;
};
MAP_TYPE(elf_name_map, struct elf_name);

/*
 * The strings of .symtab or .dynsym: `size` bytes of the file and a NUL of ours; or, if `data` is
 * NULL, the single names that were read.
 */
struct elf_strings {
	char *data;
	uint64_t offset; /* in the file */
	size_t size;
	struct elf_name_map names;
};

#define MAX_CODE_SEGMENTS 64 /* linkers make one or two */

/* One page of a file in memory, and a budget of reads. */
struct elf_window {
	unsigned int reads; /* that are left */
	uint64_t start;	    /* in the descriptor's file */
	size_t size;
	uint8_t bytes[4096];
};

/* .eh_frame_hdr. */
struct elf_frames {
	bool tried;
	unsigned char *data;
	uint64_t address; /* of the header */
	size_t count;	  /* of FDEs in its table */
};

struct elf_file {
	int fd;
	struct elf_window *window; /* NULL: no budget */
	uint64_t base;		   /* offset of this ELF file in the descriptor's file */
	uint64_t size;		   /* from there to its end when it was opened */
	bool is_64;
	unsigned char encoding; /* ELFDATA2LSB, ELFDATA2MSB */
	Elf64_Ehdr header;
	VEC(Elf64_Phdr) segments;
	VEC(Elf64_Phdr) code;	  /* executable PT_LOADs, in search order */
	VEC(Elf64_Shdr) sections; /* read when first needed */
	bool sections_read;
	bool sections_damaged; /* the header claims more than there is */
	bool left;	       /* a limit left out headers, symbols or names */
	struct elf_strings symbol_names, dynamic_names;
	struct elf_strings section_names; /* read when first needed */
	struct elf_frames frames;	  /* read when first needed */
};

void elf_strings__fini(struct elf_strings *strings);

/* pread_full() at an offset of the ELF file. */
ssize_t elf_file__read(const struct elf_file *file, void *buffer, size_t size, uint64_t offset);
/* The same through a window, which is moved if the bytes are not in it. NULL: there is none. */
ssize_t elf_file__read_window(const struct elf_file *file, struct elf_window *window, void *buffer,
			      size_t size, uint64_t offset);

/* 0; -ENOEXEC: not ELF, or too short; -EBADMSG: unknown class or byte order; or a read error. */
int elf_file__read_header(struct elf_file *file);
/* Section 0 holds numbers that are too large for the ELF header. 0, -ENOENT, or a read error. */
int elf_file__read_first_section(const struct elf_file *file, Elf64_Shdr *section);
/* Unless the header claims tables and none can be read. `segments`: how many were read. */
bool elf_file__is_useful(const struct elf_file *file, size_t segments);

/* Bytes of one record of this type in the file. */
size_t elf_file__record_size(const struct elf_file *file, Elf_Type type);

/*
 * Reads up to `count` consecutive records (ELF_T_EHDR, PHDR, SHDR, SYM, DYN: Elf64_*; ELF_T_WORD:
 * uint32_t) at `offset`. How many the file has there, or negative errno.
 */
ssize_t elf_file__read_records(const struct elf_file *file, uint64_t offset, Elf_Type type,
			       void *records, size_t count);

/* Reads the section headers unless they were read. 0, -ENOMEM, or a read error. */
int elf_file__load_sections(struct elf_file *file);

/* Addresses and sizes in the dynamic segment; 0: not there. */
struct elf_dynamic {
	uint64_t symbols, strings, strings_size, hash, gnu_hash, relocations, relocations_size;
};
/* 0, -ENODATA: there is no such segment, -ENOMEM, … */
int elf_file__dynamic(const struct elf_file *file, struct elf_dynamic *dynamic);
/* Reads the table's header at this address. 0 or -EBADMSG. */
int elf_file__gnu_hash(const struct elf_file *file, uint64_t address, struct elf_gnu_hash *hash);

/* How many of `size` bytes from `offset` on are inside the file. */
uint64_t elf_file__available(const struct elf_file *file, uint64_t offset, uint64_t size);

#endif
