/* SPDX-License-Identifier: BSD-2-Clause */
/* One file of the symbol cache, in memory: made from answers, or read and verified. */
#ifndef SYMBOLIZE_SYMBOL_IMAGE_H
#define SYMBOLIZE_SYMBOL_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbolizer.h>

#define SYMBOL_IMAGE_BUILD_ID_MAX 64

/* What an image is of; it says so itself, and is taken for nothing else. */
struct symbol_image_id {
	uint64_t debug_id;
	uint8_t build_id_size;
	uint8_t build_id[SYMBOL_IMAGE_BUILD_ID_MAX];
};

/* ---- making ---------------------------------------------------------------------------------- */

struct symbol_answers;

struct symbol_answers *symbol_answers__new(uint64_t size_limit); /* of the image; NULL: no memory */
void symbol_answers__free(struct symbol_answers *a);

/* A later answer to the same address counts. 0; -EFBIG: the image would be too large; -ENOMEM. */
int symbol_answers__add(struct symbol_answers *a, uint64_t address,
			const struct symbol_result *result);

/* Bytes that the image would have, nearly. */
uint64_t symbol_answers__size(const struct symbol_answers *a);

/* 0, -ENOENT, -ENOMEM. The result is valid until the next call of any function of these answers. */
int symbol_answers__find(struct symbol_answers *a, uint64_t address, struct symbol_result *result);

/* The image's bytes; the caller frees. 0, -ENOMEM. */
int symbol_answers__encode(struct symbol_answers *a, const struct symbol_image_id *id, void **data,
			   size_t *size);

/* ---- reading --------------------------------------------------------------------------------- */

struct symbol_image;

/*
 * Takes `data` over (malloced), whatever it returns. 0; -EBADMSG: it is not what it should be in
 * some way or other; -ENOMEM.
 */
int symbol_image__open(void *data, size_t size, const struct symbol_image_id *id,
		       struct symbol_image **image);
void symbol_image__free(struct symbol_image *image);

/* 0, -ENOENT, -ENOMEM. The result is valid until the next call. */
int symbol_image__find(struct symbol_image *image, uint64_t address, struct symbol_result *result);

/* Add to `a` what it does not have yet, as far as there is room. 0, -ENOMEM. */
int symbol_image__merge(struct symbol_image *image, struct symbol_answers *a);

#endif
