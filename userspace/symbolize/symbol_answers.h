/* SPDX-License-Identifier: BSD-2-Clause */
/* The content of a file of the symbol cache, in memory: made from answers, or read and checked. */
#ifndef SYMBOLIZE_SYMBOL_ANSWERS_H
#define SYMBOLIZE_SYMBOL_ANSWERS_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbolizer.h>

#define SYMBOL_BUILD_ID_MAX 64
#define SYMBOL_FILE_LIMIT   (UINT64_C(64) << 20) /* bytes */

/* The sources of answers. Compared as bytes: zeroed before it is filled in, and without padding. */
struct symbol_key {
	uint64_t
		identity; /* debug_file_identity(); differs if a debug package is installed later */
	uint32_t symbols_only;	/* 1: no debug information was read; such answers are in no file */
	uint32_t build_id_size; /* 0: no file can have them */
	uint8_t build_id[SYMBOL_BUILD_ID_MAX];
};

struct symbol_answers;

struct symbol_answers *symbol_answers__new(void); /* NULL: no memory */
/* Takes `data` over (malloced), whatever it returns. 0; -EBADMSG: these are no answers; -ENOMEM. */
int symbol_answers__open(void *data, size_t size, struct symbol_answers **answers);
void symbol_answers__free(struct symbol_answers *a); /* NULL is fine */

/* A later answer for the same address counts. 0; -EFBIG: the file would be too large; -ENOMEM. */
int symbol_answers__add(struct symbol_answers *a, uint64_t address,
			const struct symbol_result *result);
/* Add what `a` does not have yet, as far as there is room. 0, -ENOMEM. */
int symbol_answers__merge(struct symbol_answers *a, struct symbol_answers *from);

/*
 * The answer for this address, or for an earlier one if it holds (symbol_result.same_until). NULL:
 * none. Valid until the next call of any function of these answers.
 */
const struct symbol_result *symbol_answers__find(struct symbol_answers *a, uint64_t address);

/* Bytes in memory, nearly. */
size_t symbol_answers__size(const struct symbol_answers *a);

/* For symbol_answers__open(); they stay these answers', and are valid as a result is. */
void symbol_answers__bytes(const struct symbol_answers *a, const void **data, size_t *size);

#endif
