/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers that were found before, by the files they were made from: the second profile of a big binary is immediate, and
 * so is the next window of one symbolizer.
 *
 * On disk there is one file of answers a module, in a directory of base/disk_cache, and one an index. In memory are the
 * answers that no file can have, those that are not written yet, and files that were read. Samples of a running program
 * hit the same functions again and again, but hardly ever the same instructions: an answer without lines serves all the
 * addresses for which it holds, and a module whose reading has cost as much as an index would gets one
 * (symbol_index.h), which has the answers for all addresses. That of a large module is a slice; it gets others for further
 * parts, and the one that was not used for longest gives way when its module's limit is reached.
 */
#ifndef SYMBOLIZE_SYMBOL_CACHE_H
#define SYMBOLIZE_SYMBOL_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbolizer.h>

#include "symbolize/symbol_answers.h"

#define SYMBOL_CACHE_LIMIT (UINT64_C(512) << 20) /* bytes of all files on the disk */
#define SYMBOL_CACHE_KEPT  ((size_t)16 << 20)	 /* bytes in memory */

struct symbol_cache;
struct symbol_index;

/* In memory alone. NULL: no memory. */
struct symbol_cache *symbol_cache__new(void);
/*
 * In a directory of the caller's choice, which is created if it is missing (its parents are not), or that of the user
 * (NULL), with so many bytes of answers. NULL: there can be none (no home, foreign directory); everything works without.
 */
struct symbol_cache *symbol_cache__open(const char *path, uint64_t limit);
/* Writes what was put off. NULL is fine. */
void symbol_cache__free(struct symbol_cache *c);

/*
 * From now on so many bytes of answers and indexes stay in memory, those used last, and writing is deferred until a
 * quarter as many are to be written. Without this there are no new indexes.
 */
void symbol_cache__keep(struct symbol_cache *c, size_t bytes);
/* Writes everything and looks for the directory again, which may be another one by now. */
void symbol_cache__reopen(struct symbol_cache *c);

/*
 * Calls the sink for every address that is known, in order of the index; known[i] is set for them. *state is what was
 * added with the answers. With key->symbols_only answers with lines come first; if there are others, *without_lines is
 * set. 0, or what the sink returned.
 */
int symbol_cache__read(struct symbol_cache *c, const struct symbol_key *key,
		       const uint64_t *addresses, size_t count, unsigned char *known,
		       symbol_sink_fn sink, void *context, enum symbol_state *state,
		       bool *without_lines);
/* Add one answer, to be written by symbol_cache__commit() if a file can have it. 0, -ENOMEM. */
int symbol_cache__add(struct symbol_cache *c, const struct symbol_key *key, uint64_t address,
		      const struct symbol_result *result, enum symbol_state state);
/* A process has answered requests about this module, in `cost` ns of CPU time; `index_cost` as of its report. */
void symbol_cache__note_reading(struct symbol_cache *c, const struct symbol_key *key, uint64_t cost,
				uint64_t index_cost);
/* Has any of its addresses been answered for, with lines or without? */
bool symbol_cache__has_read(const struct symbol_cache *c, const struct symbol_key *key);
/* So many addresses were not looked for, to save time; returns how many there are since the module was read. */
size_t symbol_cache__put_off(struct symbol_cache *c, const struct symbol_key *key, size_t count);
/*
 * Is an index of this module worth making? When reading it has cost as much since the last one, in this process or in
 * earlier ones (costs are in the file of its answers), so both together cost no more than twice what the better one would
 * have. After the n-th reading in this process an n-th of that is enough: a module that is read in each window will be read
 * in the next ones. An index that the cache did not get, or has no room for, is not requested again.
 */
bool symbol_cache__wants_index(const struct symbol_cache *c, const struct symbol_key *key);
/*
 * Takes it over; NULL: it cannot be had. `user`: whose file it is, 0: root. An index that has none of the addresses for
 * which it was made is dropped; another one is worth making when reading has cost as much again.
 */
void symbol_cache__add_index(struct symbol_cache *c, const struct symbol_key *key, uint32_t user,
			     struct symbol_index *index, const uint64_t *addresses, size_t count);
/*
 * Merge what was added with the files, the new before the old, and keep to the limits. Answers that cannot be written
 * are dropped.
 */
void symbol_cache__commit(struct symbol_cache *c);

/* Bytes that stay in memory now. */
size_t symbol_cache__bytes(const struct symbol_cache *c);

#endif
