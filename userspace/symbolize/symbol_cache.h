/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers found before, by the files they were made from: so the second profile of a big binary is
 * immediate, and the next window of one symbolizer.
 *
 * On disk each module has a file of answers, and one for each index, in a directory of
 * base/disk_cache. In memory are answers that no file can have, those not written yet, and files
 * that were read. Samples of a running program hit the same functions repeatedly, but hardly the
 * same instructions. So an answer without lines serves all addresses for which it holds, and a
 * module whose reading has cost as much as an index gets one (symbol_index.h), for all addresses.
 * For a large module it is a slice; others follow, and at its limit the least recently used goes.
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
 * In the directory `path`, created if missing (its parents are not), or the user's (NULL), with so
 * many bytes of answers. NULL: none possible (no home, foreign directory); all works without.
 */
struct symbol_cache *symbol_cache__open(const char *path, uint64_t limit);
/* Writes what was deferred. NULL is fine. */
void symbol_cache__free(struct symbol_cache *c);

/*
 * From now on so many bytes of answers and indexes stay in memory, last used first, and writing is
 * deferred until a quarter as many are to be written. Without this there are no new indexes.
 */
void symbol_cache__keep(struct symbol_cache *c, size_t bytes);
/* Writes everything and looks for the directory again, which may be another one by now. */
void symbol_cache__reopen(struct symbol_cache *c);

/*
 * Calls the sink for every known address, in order, and sets known[i]. *state was added with the
 * answers. With key->symbols_only answers with lines come first; if there are others,
 * *without_lines is set. 0, or what the sink returned.
 */
int symbol_cache__read(struct symbol_cache *c, const struct symbol_key *key,
		       const uint64_t *addresses, size_t count, unsigned char *known,
		       symbol_sink_fn sink, void *context, enum symbol_state *state,
		       bool *without_lines);
/* Add one answer, to be written by symbol_cache__commit() if a file can have it. 0, -ENOMEM. */
int symbol_cache__add(struct symbol_cache *c, const struct symbol_key *key, uint64_t address,
		      const struct symbol_result *result, enum symbol_state state);
/* A process has answered for this module, in `cost` ns of CPU; `index_cost` as in its report. */
void symbol_cache__note_reading(struct symbol_cache *c, const struct symbol_key *key, uint64_t cost,
				uint64_t index_cost);
/* Has any of its addresses been answered for, with lines or without? */
bool symbol_cache__has_read(const struct symbol_cache *c, const struct symbol_key *key);
/* So many addresses were deferred, to save time. Returns their number since the last reading. */
size_t symbol_cache__put_off(struct symbol_cache *c, const struct symbol_key *key, size_t count);
/*
 * Is an index of this module worth making? If reading has cost as much since the last one, here or
 * in earlier processes (costs are in its file of answers): then both cost at most twice the better
 * one. After n readings in this process an n-th is enough, because a module read in each window
 * will be read again. An index that was not possible, or had no room, is not requested again.
 */
bool symbol_cache__wants_index(const struct symbol_cache *c, const struct symbol_key *key);
/*
 * Takes it over; NULL: not possible. `user`: of the file, 0: root. An index without any address for
 * which it was made is dropped; the next is worth making when reading has cost as much again.
 */
void symbol_cache__add_index(struct symbol_cache *c, const struct symbol_key *key, uint32_t user,
			     struct symbol_index *index, const uint64_t *addresses, size_t count);
/* Merge additions into files, new before old; keep to the limits. Drops what cannot be written. */
void symbol_cache__commit(struct symbol_cache *c);

/* Bytes that stay in memory now. */
size_t symbol_cache__bytes(const struct symbol_cache *c);

#endif
