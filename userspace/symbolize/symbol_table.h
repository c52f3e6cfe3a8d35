/* SPDX-License-Identifier: BSD-2-Clause */
/* Which symbol covers an address. */
#ifndef SYMBOLIZE_SYMBOL_TABLE_H
#define SYMBOLIZE_SYMBOL_TABLE_H

#include <stdbool.h>
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

/* One symbol table. */
struct symbol_source {
	struct elf_file *file;
	struct elf_file *rest; /* with the symbols that `file` lacks; NULL: it lacks none */
	struct elf_file *code; /* with code and .eh_frame; NULL: not available */
};

/*
 * matches[i] is the symbol that covers addresses[i]: ELF virtual addresses, sorted ascending.
 * 0; -ENODATA: the file has no symbols; -EBADMSG: its tables are damaged, what could be read was
 * used; -ENOMEM. `matches` is filled unless memory ran out.
 */
int symbol_table__match(const struct symbol_source *source, const uint64_t *addresses, size_t count,
			struct symbol_match *matches);

/*
 * The symbols whose ranges `wanted` accepts, for ascending searches, with the answers of
 * symbol_table__match(). Names are the files'. Errors as of match, or -EFBIG: too many; free
 * *ranges after an error, too.
 */
struct symbol_ranges;
typedef bool (*symbol_range_fn)(void *context, uint64_t start, uint64_t end);
int symbol_ranges__read(const struct symbol_source *source, symbol_range_fn wanted, void *context,
			struct symbol_ranges **ranges);
void symbol_ranges__free(struct symbol_ranges *r); /* NULL is fine */
/* No address may be below that of the last search. */
void symbol_ranges__find(struct symbol_ranges *r, uint64_t address, struct symbol_match *match);

#endif
