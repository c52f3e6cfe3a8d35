/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the names of an ELF file's addresses come from: a chain of sources, each asked for what
 * those before it left open.
 */
#ifndef SYMBOLIZE_SYMBOLIZE_H
#define SYMBOLIZE_SYMBOLIZE_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbolizer.h>

#include "symbolize/symbol_table.h"

struct elf_file;

/* The addresses of one file that some segment of it covers. */
struct symbol_query {
	const struct symbolizer_dso *dso;
	struct elf_file *file;
	const uint64_t *addresses; /* ELF virtual addresses, sorted ascending */
	size_t count;
	struct symbol_match *matches; /* name NULL: still open */
};

/*
 * Fill the matches that are open. 0; -ENODATA: nothing to read names from; -EBADMSG: it is damaged;
 * -ENOMEM. Names live as long as the query's file.
 */
typedef int (*symbol_source_fn)(const struct symbol_query *query);

#endif
