/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of recordings, whose fixed parts are shorter: in an older format, and of a type with a
 * field that is never in a recording (struct mmap_event).
 */
#ifndef STREAM_EVENT_WIDEN_H
#define STREAM_EVENT_WIDEN_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>

#define EVENT_WIDEN_MAX (EVENT_LIVE_MAX + 2 * EVENT_ALIGN)

/*
 * The event of a recording in format `version`, as it is now: `event` itself if it has not changed,
 * or a copy in `buffer` (EVENT_WIDEN_MAX bytes, aligned) with the new fields 0. `event` has at least
 * `available` bytes, and may be damaged: then so is the result.
 */
struct event_header *event_widen(struct event_header *event, size_t available, uint32_t version,
				 void *buffer);

/* The event as a recording has it, into `buffer`, which has event->size bytes. Returns its size. */
size_t event_narrow(const struct event_header *event, void *buffer);

#endif
