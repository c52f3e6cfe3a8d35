/* SPDX-License-Identifier: BSD-2-Clause */
/* EVENT_JIT_BYTES as the readers of JIT files take it. */
#ifndef PROCESS_JIT_PIECE_H
#define PROCESS_JIT_PIECE_H

#include <sysprof/event.h>

#include "jit/jit_code.h"

/* The bytes stay the event's. */
static inline struct jit_piece jit_piece_of(const struct jit_bytes_event *e)
{
	return (struct jit_piece){
		.bytes = e->bytes,
		.size = e->size,
		.after = e->after,
		.before = e->before,
		.begins_snapshot = e->flags & JIT_SNAPSHOT_BEGIN,
		.ends_snapshot = e->flags & JIT_SNAPSHOT_END,
	};
}

#endif
