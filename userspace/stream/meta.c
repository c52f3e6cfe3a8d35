/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream/meta.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/utf8.h"

int meta_event__emit(event_push_fn push, void *context, uint64_t time, const char *key,
		     const char *value)
{
	size_t key_length = strlen(key), length = utf8_cut(value, META_VALUE_MAX);
	size_t size = sizeof(struct meta_event) + key_length + 1 + length + 1;
	_cleanup_free_ struct meta_event *event = NULL;

	if (key_length == 0 || key_length >= META_KEY_MAX)
		return -EINVAL;
	size = event_aligned(size);
	event = calloc(1, size);
	if (!event)
		return -ENOMEM;
	event->header = (struct event_header){.size = size, .type = EVENT_META, .time = time};
	memcpy(event->text, key, key_length);
	memcpy(event->text + key_length + 1, value, length);
	return push(context, &event->header);
}

int outside_books__report(struct outside_books *books, event_push_fn push, void *context,
			  uint64_t time)
{
	struct outside_row row;
	int err = 0;

	while (!err && outside_books__take(books, &row)) {
		struct outside_event event = {
			.header = {.size = sizeof(event), .type = EVENT_OUTSIDE, .time = time},
			.user = row.user,
			.thing = row.thing,
			.reason = row.reason,
			.count = row.count,
			.since = min_u64(row.since, time),
		};

		err = push(context, &event.header);
	}
	return err;
}
