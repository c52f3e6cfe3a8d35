/* SPDX-License-Identifier: BSD-2-Clause */
/* The only code that checks an event's bytes before they are used. */
#ifndef STREAM_EVENT_DECODE_H
#define STREAM_EVENT_DECODE_H

#include <stdbool.h>
#include <stddef.h>

#include <sysprof/event.h>
#include <sysprof/event_handler.h>

#define EVENT_CPU_LIMIT	  65536u /* CPU numbers are below this, … */
#define EVENT_CPU_UNKNOWN (~0u)	 /* … or it is not known, or does not apply */

/* The size in its header is possible. */
bool event_size_is_sound(const struct event_header *event);

/*
 * 0 if the event is whole and consistent, else -EBADMSG. `available` bytes can be read, aligned to
 * 8. Events of unknown types pass if their size is possible.
 */
int event_check(const struct event_header *event, size_t available);

/*
 * Checks an event, whose size must be readable, and passes it to its callback. 0 for unknown types
 * and NULL callbacks; -EBADMSG; or the callback's result.
 */
int event_decode(const struct event_header *event, const struct event_handler *handler);

#endif
