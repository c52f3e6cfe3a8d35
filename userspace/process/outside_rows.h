/* SPDX-License-Identifier: BSD-2-Clause */
/* A row of the books of the outside, from the stream into the profile. */
#ifndef PROCESS_OUTSIDE_ROWS_H
#define PROCESS_OUTSIDE_ROWS_H

#include <sysprof/event.h>
#include <sysprof/profile_builder.h>

static inline void outside_event__add_to(const struct outside_event *e,
					 struct profile_builder *builder)
{
	const struct profile_outside row = {
		.user = e->user,
		.thing = e->thing,
		.reason = e->reason,
		.count = e->count,
		.since = e->since,
	};

	profile_builder__outside(builder, &row);
}

#endif
