/* SPDX-License-Identifier: BSD-2-Clause */
/* One file of the symbol cache, in memory: made from answers, or read and checked. */
#ifndef SYMBOLIZE_SYMBOL_ANSWERS_H
#define SYMBOLIZE_SYMBOL_ANSWERS_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbolizer.h>

#define SYMBOL_BUILD_ID_MAX 64

/* The module that a file is about. The file contains it and is accepted for no other. */
struct symbol_file_id {
	uint64_t debug_id;
	uint8_t build_id_size;
	uint8_t build_id[SYMBOL_BUILD_ID_MAX];
};

struct symbol_answers;

struct symbol_answers *symbol_answers__new(size_t size_limit); /* of the file; NULL: no memory */
/*
 * Takes `data` over (malloced), whatever it returns. 0; -EBADMSG: damaged, of another version or
 * another module; -ENOMEM.
 */
int symbol_answers__open(void *data, size_t size, const struct symbol_file_id *id,
			 struct symbol_answers **answers);
void symbol_answers__free(struct symbol_answers *a);

/* A later answer for the same address counts. 0; -EFBIG: the file would be too large; -ENOMEM. */
int symbol_answers__add(struct symbol_answers *a, uint64_t address,
			const struct symbol_result *result);
/* Add what `a` does not have yet, as far as there is room. 0, -ENOMEM. */
int symbol_answers__merge(struct symbol_answers *a, struct symbol_answers *from);

/* NULL: there is none. Valid until the next call of any function of these answers. */
const struct symbol_result *symbol_answers__find(struct symbol_answers *a, uint64_t address);

/* Bytes in memory, nearly. */
size_t symbol_answers__size(const struct symbol_answers *a);

/* The file's bytes, which stay these answers'; valid as a result is. */
void symbol_answers__encode(struct symbol_answers *a, const struct symbol_file_id *id,
			    const void **data, size_t *size);

#endif
