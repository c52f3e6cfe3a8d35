/* SPDX-License-Identifier: BSD-2-Clause */
/* A blob of stream/symbol_blob.h. Each answer is checked once, when the blob is opened. */
#include "symbolize/symbol_answers.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/vec.h"
#include "stream/symbol_blob.h"

/* Bytes of code: a wrong size of a symbol is wrong no further than this. */
#define SPAN_MAX (UINT64_C(1) << 20)

/* Where the answer for an address is. */
struct answer_place {
	uint64_t address;
	size_t offset;
};

struct symbol_answers {
	struct symbol_blob blob;
	VEC(struct answer_place) places;
	bool sorted; /* and one place per address */
	struct symbol_answer found;
};

/* ---- making ---------------------------------------------------------------------------------- */

struct symbol_answers *symbol_answers__new(void)
{
	return calloc(1, sizeof(struct symbol_answers));
}

void symbol_answers__free(struct symbol_answers *a)
{
	if (!a)
		return;
	symbol_blob__fini(&a->blob);
	vec_free(&a->places);
	free(a);
}

int symbol_answers__add(struct symbol_answers *a, uint64_t address,
			const struct symbol_result *result)
{
	struct answer_place place = {.address = address, .offset = a->blob.bytes.count};
	int err;

	if (place.offset + symbol_blob__size_of(result) > SYMBOL_FILE_LIMIT)
		return -EFBIG;
	err = symbol_blob__add(&a->blob, address, result) ?: vec_push(&a->places, place);
	a->sorted = false;
	return err;
}

/* Of two answers for an address the later one comes first. */
DEFINE_ORDER(compare_places, struct answer_place, ASCENDING(address) ?: DESCENDING(offset));

static void sort_places(struct symbol_answers *a)
{
	size_t kept = 0;

	if (a->sorted)
		return;
	vec_sort(&a->places, compare_places);
	for (size_t i = 0; i < a->places.count; i++)
		if (!kept || a->places.data[kept - 1].address != a->places.data[i].address)
			a->places.data[kept++] = a->places.data[i];
	a->places.count = kept;
	a->sorted = true;
}

void symbol_answers__bytes(const struct symbol_answers *a, const void **data, size_t *size)
{
	*data = a->blob.bytes.data;
	*size = a->blob.bytes.count;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* 0, -EBADMSG, -ENOMEM. */
static int find_places(struct symbol_answers *a)
{
	size_t end = 0;
	int more, err = 0;

	do {
		struct answer_place place = {.offset = end};

		more = symbol_blob__next(a->blob.bytes.data, a->blob.bytes.count, &end, &a->found);
		place.address = a->found.address;
		if (more > 0)
			err = vec_push(&a->places, place);
	} while (more > 0 && !err);
	if (err)
		return err;
	sort_places(a);
	return more < 0 || end != a->blob.bytes.count ? -EBADMSG : 0;
}

int symbol_answers__open(void *data, size_t size, struct symbol_answers **answers)
{
	struct symbol_answers *a = symbol_answers__new();
	int err;

	if (!a) {
		free(data);
		return -ENOMEM;
	}
	a->blob.bytes.data = data;
	a->blob.bytes.count = a->blob.bytes.capacity = size;
	err = find_places(a);
	return finish_new(err, a, symbol_answers__free, answers);
}

size_t symbol_answers__size(const struct symbol_answers *a)
{
	size_t copies = a->blob.strings ? 2 : 1; /* most of the bytes are strings */

	return copies * a->blob.bytes.count + a->places.count * sizeof(*a->places.data);
}

/* NULL: there is none among the first `count` places, which are sorted. */
static const struct answer_place *find_place(const struct symbol_answers *a, size_t count,
					     uint64_t address)
{
	size_t i = partition_point(a->places.data, count, p, p->address < address);

	return i < count && a->places.data[i].address == address ? &a->places.data[i] : NULL;
}

static const struct symbol_result *read_place(struct symbol_answers *a,
					      const struct answer_place *place)
{
	size_t offset = place->offset;
	int found = symbol_blob__next(a->blob.bytes.data, a->blob.bytes.count, &offset, &a->found);

	return found > 0 ? &a->found.result : NULL;
}

/* How many bytes of code from its address on have this answer; lines are of one address alone. */
static uint64_t extent(const struct symbol_result *result)
{
	if (result->same_until <= result->elf_address || result->frame_count > 1 ||
	    (result->frame_count && (result->frames->file || result->frames->line)))
		return 1;
	return min_u64(result->same_until - result->elf_address, SPAN_MAX);
}

const struct symbol_result *symbol_answers__find(struct symbol_answers *a, uint64_t address)
{
	const struct symbol_result *result;
	uint64_t distance;
	size_t behind;

	sort_places(a);
	behind = partition_point(a->places.data, a->places.count, p, p->address <= address);
	if (!behind)
		return NULL;
	distance = address - a->places.data[behind - 1].address;
	if (distance >= SPAN_MAX)
		return NULL;
	result = read_place(a, &a->places.data[behind - 1]);
	if (!result || distance >= extent(result))
		return NULL;
	a->found.result.elf_address += distance;
	return result;
}

int symbol_answers__merge(struct symbol_answers *a, struct symbol_answers *from)
{
	size_t before;
	int err = 0;

	sort_places(a);
	sort_places(from);
	before = a->places.count;
	for (size_t i = 0; i < from->places.count && !err; i++) {
		const struct answer_place *place = &from->places.data[i];
		const struct symbol_result *result = read_place(from, place);

		if (result && !find_place(a, before, place->address))
			err = symbol_answers__add(a, place->address, result);
	}
	return err == -EFBIG ? 0 : err;
}
