/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOLIZE_SYMBOL_EXTENT_H
#define SYMBOLIZE_SYMBOL_EXTENT_H

#include <stdbool.h>
#include <stdint.h>

struct elf_file;
struct elf_symbol;

/* Where the symbol's code ends at the latest. */
uint64_t symbol_extent_limit(const struct elf_symbol *symbol);
/*
 * Where the code of a symbol at `start` ends, `limit` at the latest, but for the next symbol.
 * `whole`: the symbol table has all functions. `start`: unknown. `file` may be NULL.
 */
uint64_t symbol_extent_end(struct elf_file *file, bool whole, uint64_t start, uint64_t limit);

#endif
