/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Single symbols of .dynsym by their names, as the dynamic linker finds them: through DT_GNU_HASH. A look-up reads some
 * ten small pieces of the file, however many symbols it has; elf_file__each_object() refuses files that have many.
 */
#ifndef ELF_EXPORTS_H
#define ELF_EXPORTS_H

#include <stdint.h>

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

#endif
