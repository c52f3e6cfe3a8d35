/* SPDX-License-Identifier: BSD-2-Clause */
/* Where compiled code goes on from an address. Part of hotspot_names.h. */
#ifndef RUNTIMES_HOTSPOT_AHEAD_H
#define RUNTIMES_HOTSPOT_AHEAD_H

#include <stdint.h>

#include "runtimes/hotspot/heap.h"
#include "runtimes/target_memory.h"

enum hotspot_ahead {
	HOTSPOT_AHEAD_ON,      /* to the next place in memory, as far as it is known */
	HOTSPOT_AHEAD_AT,      /* it jumps to *target */
	HOTSPOT_AHEAD_LOOPS,   /* it is in a loop, which begins at *target */
	HOTSPOT_AHEAD_RETURNS, /* out of the compiled method */
};

/*
 * `distance` from the code, as hotspot_chain__read has it: of a return address, or one more than where the innermost frame is. `next`:
 * where the next place in memory is, in the same code. What cannot be read or understood leads on.
 */
enum hotspot_ahead hotspot_ahead(struct target_memory *memory, const struct hotspot_blob *blob,
				 uint32_t distance, uint32_t next, uint32_t *target);

#endif
