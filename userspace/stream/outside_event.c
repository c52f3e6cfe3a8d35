/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream/outside_event.h"

#include "base/minmax.h"

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
