/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The answers for all addresses of a module, in a small block of memory: those of a sandboxed child
 * from its symbol tables, DWARF and Go's table, without a child. The child makes it
 * (symbol_index_writer.c). It is checked once, so look-ups trust it and need no memory.
 *
 * The block, in the machine's own byte order:
 *
 *	header, segments, row blocks, files, blocks of names, functions, nodes, rows, names, strings
 *
 * A row has the first address of code with one answer, up to the next row. A block has ROWS_A_BLOCK
 * rows, the last one fewer: the first stands for itself, others for the difference. A row's answer
 * is a node and the executing place in it. A node is a function, called from a place in another
 * node, into which it was inlined. Node NOTHING has no function; NOT_COVERED means no answer.
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
 * Takes `data` over (malloced), whatever it returns. Reads all of it. 0; -EBADMSG: it is no index,
 * or a part of it leads out of it; -ENOMEM.
 */
int symbol_index__open(void *data, size_t size, struct symbol_index **index);
void symbol_index__free(struct symbol_index *x); /* NULL is fine */

size_t symbol_index__size(const struct symbol_index *x); /* bytes in memory */
/* For symbol_index__open(); they stay the index's. */
void symbol_index__bytes(const struct symbol_index *x, const void **data, size_t *size);
/* Does it have the answers for all addresses? */
bool symbol_index__is_whole(const struct symbol_index *x);
/* The module's; RESOLVED if it has lines. */
enum symbol_state symbol_index__state(const struct symbol_index *x);

/*
 * The answer for a file offset, as module_resolve() has it, except for same_until, which is 0, and
 * frames beyond SYMBOL_CHAIN_MAX. Strings are the index's, until the next look-up. False: not
 * covered, or names longer than 64 KB.
 */
bool symbol_index__find(const struct symbol_index *x, uint64_t offset,
			struct symbol_answer *answer);

#endif
