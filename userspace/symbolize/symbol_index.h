/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The answers for all addresses of a module, in a small block of memory: what a sandboxed child would answer from its
 * symbol tables, DWARF and Go's table, without a child. The child makes it (symbol_index_writer.h) and it is checked
 * once, so a look-up trusts it and needs no memory.
 *
 * The block, in the machine's own byte order:
 *
 *	header, segments, row blocks, files, blocks of names, functions, nodes, rows, names, strings
 *
 * A row has the first address of a piece of code with one answer, which ends at the next row. A block has ROWS rows, of
 * which the first stands for itself and each other one for the difference. The answer of a row is a node, and the place
 * in it that is executed. A node is a function, called from a place in another node, which it was inlined into. Node
 * NOTHING has no function; of node NOT_COVERED the index has no answer.
 */
#ifndef SYMBOLIZE_SYMBOL_INDEX_H
#define SYMBOLIZE_SYMBOL_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbolizer.h>

#include "stream/symbol_blob.h"

#define SYMBOL_INDEX_MAX ((size_t)6 << 20) /* bytes; of one that is not of the whole module: */
#define SYMBOL_SLICE_MAX ((size_t)2 << 20)

struct symbol_index;

/*
 * Takes `data` over (malloced), whatever it returns. Reads all of it. 0; -EBADMSG: it is no index, or a part of it
 * leads out of it; -ENOMEM.
 */
int symbol_index__open(void *data, size_t size, struct symbol_index **index);
void symbol_index__free(struct symbol_index *x); /* NULL is fine */

size_t symbol_index__size(const struct symbol_index *x); /* bytes in memory */
uint64_t symbol_index__rows(const struct symbol_index *x);
/* For symbol_index__open(); they stay the index's. */
void symbol_index__bytes(const struct symbol_index *x, const void **data, size_t *size);
/* Does it have the answers for all addresses? */
bool symbol_index__is_whole(const struct symbol_index *x);
/* Of the module; of one with lines it is that names were found. */
enum symbol_state symbol_index__state(const struct symbol_index *x);

/*
 * The answer for an offset in the file, as module_resolve() has it but for same_until, which is 0, and for
 * frames beyond SYMBOL_CHAIN_MAX. Its strings are the index's, until the next look-up. False: it is not covered, or its
 * names are longer than 64 KB.
 */
bool symbol_index__find(const struct symbol_index *x, uint64_t offset,
			struct symbol_answer *answer);

#endif
