/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names that were found before, in memory, for one symbolizer that is asked window after window.
 *
 * Samples of a running program hit the same functions again and again, but hardly ever the same instructions. So what
 * is kept is how far an answer holds (symbol_result.same_until). Only answers without lines have that; the cache on
 * disk keeps the others, by address.
 */
#ifndef SYMBOLIZE_ANSWER_MEMORY_H
#define SYMBOLIZE_ANSWER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbolizer.h>

struct answer_memory;

/* Whose answers these are: as struct symbol_cache_key. Zeroed before it is filled in. */
struct answer_key {
	uint8_t build_id[BUILD_ID_SIZE];
	uint64_t build_id_size;
	uint64_t identity;     /* of its files, as debug_file_identity() */
	uint64_t symbols_only; /* 1: no debug information was read */
};

/* So many bytes at most: what was not used for longest goes first. NULL: no memory. */
struct answer_memory *answer_memory__new(size_t limit);
void answer_memory__free(struct answer_memory *m);

/* Is anything known of this module? */
bool answer_memory__has(struct answer_memory *m, const struct answer_key *key);

/*
 * Calls the sink for the addresses (ascending) that are known and whose known[i] is 0, and sets that. *state and *lines_lost become
 * what was told with the last answers that were added. 0, or what the sink returned.
 */
int answer_memory__read(struct answer_memory *m, const struct answer_key *key,
			const uint64_t *addresses, size_t count, unsigned char *known,
			symbol_sink_fn sink, void *context, enum symbol_state *state,
			const char **lines_lost);

/* An answer, if it holds for more than its address. `lines_lost` is not copied. 0 or -ENOMEM. */
int answer_memory__add(struct answer_memory *m, const struct answer_key *key, uint64_t address,
		       const struct symbol_result *result, enum symbol_state state,
		       const char *lines_lost);

/* Bytes that are kept now. */
size_t answer_memory__bytes(const struct answer_memory *m);

#endif
