/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resolved locations on disk, by build-id: the second profile of a big binary is immediate.
 *
 * One file a module, in a directory of base/disk_cache. Each has a checksum and the format's version.
 */
#ifndef SYMBOLIZE_SYMBOL_CACHE_H
#define SYMBOLIZE_SYMBOL_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbolizer.h>

#define SYMBOL_CACHE_LIMIT	(UINT64_C(512) << 20) /* all files together */
#define SYMBOL_CACHE_FILE_LIMIT (UINT64_C(64) << 20)

struct symbol_cache;

/* NULL: no cache can be had (no home, foreign directory); everything works without. */
struct symbol_cache *symbol_cache__open(void);
/* The same in a directory of the caller's choice, which is made if it is not there (not what it is
 * in). */
struct symbol_cache *symbol_cache__open_at(const char *directory, uint64_t limit);
/* Writes what was put off. */
void symbol_cache__free(struct symbol_cache *c);

/*
 * For who asks again and again for the same: from now on files stay in memory, so many bytes of them, and commits are
 * put off until the cache is freed or answers take more than as many bytes again. They are read all the same.
 */
void symbol_cache__keep(struct symbol_cache *c, size_t bytes);

/*
 * What is known of this build-id. `debug_id` tells what the answers were made from, as
 * debug_file_identity() does: so a debug package installed later is not hidden by older answers.
 */
struct symbol_cache_key {
	const uint8_t *build_id;
	uint8_t build_id_size;
	uint64_t debug_id; /* 0: symbol tables alone */
};

/* Calls the sink for every address that is known, in order of the index; known[i] says for which.
 * 0, or what the sink returned. */
int symbol_cache__read(struct symbol_cache *c, const struct symbol_cache_key *key,
		       const uint64_t *addresses, size_t count, unsigned char *known,
		       symbol_sink_fn sink, void *context);
/* Add one answer; kept in memory until symbol_cache__commit writes all of this key. */
int symbol_cache__add(struct symbol_cache *c, const struct symbol_cache_key *key, uint64_t address,
		      const struct symbol_result *result);
/* Merge what was added with what is there, the new before the old. 0 or negative errno: nothing was
 * written; the added answers are forgotten all the same. symbol_cache__keep() puts it off. */
int symbol_cache__commit(struct symbol_cache *c, const struct symbol_cache_key *key);

#endif
