/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/bytes.h"

#include <errno.h>
#include <string.h>

#include "agent/sections.h"
#include "base/gzip.h"
#include "base/vec.h"

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
