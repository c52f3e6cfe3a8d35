/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/sections.h"

#include "base/wire.h"

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
