/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Machine code and lines of functions that were read before, by the files they were made from: the
 * second recording of a program need not inflate its debug information again.
 *
 * Each module has a file in a directory of base/disk_cache: events of module__code(). A function is
 * in it once. If it would be too large, only the functions of the last recording are.
 */
#ifndef SYMBOLIZE_CODE_CACHE_H
#define SYMBOLIZE_CODE_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "stream/symbol_blob.h"
#include "symbolize/module_code.h"
#include "symbolize/symbol_answers.h"

#define CODE_CACHE_LIMIT (UINT64_C(128) << 20) /* bytes of all files on the disk */

struct code_cache;

/* In the directory `path`, or the user's (NULL). NULL: none possible; all works without. */
struct code_cache *code_cache__open(const char *path, uint64_t limit);
void code_cache__free(struct code_cache *c); /* NULL is fine */

/* What is requested of a module. */
struct code_question {
	const struct symbol_key *key;
	const struct code_address *addresses;
	size_t count;
	/* an answer for each address, whose symbol_answer.address is its index */
	const struct symbol_blob *names;
	uint32_t least; /* samples of a function */
};

/*
 * The events that module__code() would pass on; the caller frees them. 0; -ENOENT: not all of these
 * functions are known; -ENOMEM.
 */
int code_cache__read(struct code_cache *c, const struct code_question *question, char **events,
		     size_t *size);
/*
 * Writes what is new in checked events of module__code(). `names` as above if no debug information
 * was read for names: where they have lines, functions without lines are not written, because
 * reading them may have failed. NULL: it was read. 0, or negative errno: it was not written.
 */
int code_cache__add(struct code_cache *c, const struct symbol_key *key,
		    const struct symbol_blob *names, const void *events, size_t size);

#endif
