/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A kept unwind table, behind the header of its file, of which every field may be anything: what is taken can be
 * searched, and walked by.
 */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "fuzz_walk.h"
#include "models/unwind_find.h"
#include "unwind/table_cache.h"
#include "unwind/unwind.h"

#define LIMIT	      (1u << 20)
#define IMAGE_SIZE    sizeof(struct unwind_table_image) /* at the end */
#define BUCKETS_TRIED 4096

/* A table as it is built, to begin with: five rows, two rules. */
static size_t make_good(uint8_t *to, size_t max_size)
{
	static struct {
		struct unwind_rule rules[2];
		uint32_t index[4];
		uint8_t numbers[6], addresses[6], rest[516];
	} table = {
		.rules = {{},
			  {.cfa = UNWIND_CFA_SP,
			   .cfa_register = UNWIND_X86_RSP,
			   .cfa_offset = 8,
			   .ra = UNWIND_RA_AT_CFA,
			   .ra_offset = -8}},
		.index = {1, 3, 3, 6},
		.numbers = {0, 1, 0, 1, 0, 1},
		.addresses = {0, 0, 200, 7, 8, 9},
	};
	struct unwind_table_image image = {
		.table = {.base = 0x1000,
			  .buckets = 3,
			  .index = 32,
			  .numbers = 48,
			  .addresses = 54,
			  .number_size = 1},
		.bytes = &table,
		.size = sizeof(table),
		.rows = 6,
	};
	size_t size;
	void *data;

	MUST(!table_cache__encode(&image, &data, &size));
	if (size > max_size)
		size = 0;
	else
		memcpy(to, data, size);
	free(data);
	return size;
}

/* What is too short becomes a good one; most changes go to the numbers of the image, and to its index. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	if (size < IMAGE_SIZE)
		return make_good(data, max_size);
	if (seed % 4 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	if (seed % 4 == 1)
		LLVMFuzzerMutate(data, size < 96 ? size : 96, size < 96 ? size : 96);
	else
		LLVMFuzzerMutate(data + size - IMAGE_SIZE, IMAGE_SIZE, IMAGE_SIZE);
	return size;
}

static void try_all(const struct unwind_table_image *image)
{
	const struct unwind_table *t = &image->table;

	fuzz_read(image->bytes, image->size);
	for (uint64_t i = 0; i < t->buckets && i < BUCKETS_TRIED; i++) {
		uint64_t address = t->base + (i << UNWIND_BUCKET_BITS) + (i & 255);
		const char *rule = (const void *)unwind_table__find(image->bytes, t, address);

		MUST(rule + sizeof(struct unwind_rule) <= (const char *)image->bytes + t->index);
		walk(image, address);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);
	struct unwind_table_image image;
	int err;

	MUST(copy);
	memcpy(copy, data, size);
	err = table_cache__decode(copy, size, LIMIT, &image);
	MUST(!err || err == -EBADMSG || err == -EFBIG);
	if (!err) {
		try_all(&image);
		unwind_table_image__fini(&image);
	}
	return 0;
}
