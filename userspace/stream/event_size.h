/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STREAM_EVENT_SIZE_H
#define STREAM_EVENT_SIZE_H

#include <stddef.h>

#include <sysprof/event.h>

#include "base/align.h"

/* What an event of `size` bytes takes, so that the next one begins where an event may. */
static inline size_t event_aligned(size_t size)
{
	return align_up(size, EVENT_ALIGN);
}

#endif
