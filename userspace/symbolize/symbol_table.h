/* SPDX-License-Identifier: BSD-2-Clause */
/* Which symbol of an ELF file covers an address: many at once, in one pass over its tables. */
#ifndef SYMBOLIZE_SYMBOL_TABLE_H
#define SYMBOLIZE_SYMBOL_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct elf_file;

struct symbol_match {
	const char
		*name; /* as in the file, until that is freed. NULL: no symbol covers the address */
	uint64_t address, size; /* size 0: the file does not say */
	/* the addresses from the requested one up to this one have the same answer */
	uint64_t until;
};

/*
 * matches[i] is the symbol that covers addresses[i]: ELF virtual addresses, sorted ascending.
 * 0; -ENODATA: the file has no symbols; -EBADMSG: its tables are damaged, what could be read was
 * used; -ENOMEM. `matches` is filled unless memory ran out.
 */
int symbol_table__match(struct elf_file *file, const uint64_t *addresses, size_t count,
			struct symbol_match *matches);

#endif
