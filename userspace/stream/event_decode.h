/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one place that checks an event's bytes before they are used.
 */
#ifndef STREAM_EVENT_DECODE_H
#define STREAM_EVENT_DECODE_H

#include <stdbool.h>
#include <stddef.h>

#include <sysprof/event.h>
#include <sysprof/event_handler.h>

#define EVENT_CPU_LIMIT 65536u /* CPU numbers are below this */

/* Is the size in its header possible? */
bool event_size_is_sound(const struct event_header *event);

/*
 * Is this event, of which `available` bytes can be read at an address aligned to 8, whole and
 * consistent? 0, or -EBADMSG. Events of unknown types pass if their size is possible.
 */
int event_check(const struct event_header *event, size_t available);

/*
 * Check an event (its own size bytes must be readable) and hand it to its callback. 0 for unknown
 * types and for callbacks that are NULL; -EBADMSG; else what the callback returned.
 */
int event_decode(const struct event_header *event, const struct event_handler *handler);

#endif
