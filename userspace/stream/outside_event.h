/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes EVENT_OUTSIDE of the entries of the books of the outside since the last report. */
#ifndef STREAM_OUTSIDE_EVENT_H
#define STREAM_OUTSIDE_EVENT_H

#include <stdint.h>

#include "base/outside_books.h"
#include "stream/event_queue.h"

/* An event of `time` for each row that has something new. 0 or what `push` returned. */
int outside_books__report(struct outside_books *books, event_push_fn push, void *context,
			  uint64_t time);

#endif
