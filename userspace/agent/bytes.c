/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/bytes.h"

#include <errno.h>
#include <string.h>

#include "base/gzip.h"
#include "base/vec.h"
#include "base/wire.h"

int bytes__add(struct bytes *b, const void *data, size_t size)
{
	return size > SIZE_MAX - b->count ? -ENOMEM : vec_append(b, data, size);
}

int bytes__write(int (*write)(void *context, FILE *out), void *context, struct bytes *out)
{
	char *data = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&data, &size);
	int err = memory ? write(context, memory) : -ENOMEM;

	if (memory && fclose(memory) && !err)
		err = -ENOMEM;
	*out = (struct bytes){.data = (uint8_t *)data, .count = size, .capacity = size};
	return err;
}

int bytes__gzip(const struct bytes *in, const uint32_t *path, size_t depth, struct bytes *out)
{
	sections found = {};
	uint8_t *data;
	size_t size;
	int err = sections__find(in->data, in->count, path, depth, &found);

	if (!err) /* requests are far below its limit */
		err = gzip_bytes(in->data, in->count, found.data, found.count, &data, &size);
	vec_free(&found);
	if (err)
		return -ENOMEM;
	*out = (struct bytes){.data = data, .count = size, .capacity = size};
	return 0;
}

#define LEAST 2000 /* bytes of a section: the description of a code is 60 to 90 */

struct finding {
	const uint8_t *start;
	sections *found;
};

static int note(struct finding *f, const uint8_t *at)
{
	const sections *found = f->found;
	size_t offset = (size_t)(at - f->start);
	size_t last = found->count ? found->data[found->count - 1] : 0;

	return offset < last + LEAST ? 0 : vec_push(f->found, offset);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the path */
static int look_into(struct finding *f, const uint8_t *message, size_t size, const uint32_t *path,
		     size_t depth)
{
	struct wire w = {.start = message, .at = message, .end = message + size};
	uint32_t before = 0;
	int err = 0;

	while (!err) {
		const uint8_t *begin = w.at;

		if (wire_next(&w) <= 0)
			return 0;
		if (!depth && w.number != before)
			err = note(f, begin);
		before = w.number;
		if (depth && w.number == *path && w.type == WIRE_BYTES)
			err = look_into(f, w.bytes, w.size, path + 1, depth - 1);
	}
	return err;
}

int sections__find(const uint8_t *message, size_t size, const uint32_t *path, size_t depth,
		   sections *found)
{
	struct finding f = {message, found};

	return look_into(&f, message, size, path, depth);
}
