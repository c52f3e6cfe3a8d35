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

/* Addresses and sizes in the dynamic segment; 0: not there. */
struct elf_dynamic {
	uint64_t symbols, strings, strings_size, hash, gnu_hash, relocations, relocations_size;
};

#endif
