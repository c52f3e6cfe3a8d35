/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loops of compiled code. All blocks that lead to one another are a loop; without the block that it is
 * entered at, those that still do are a loop in it.
 */
#ifndef RUNTIMES_HOTSPOT_LOOPS_H
#define RUNTIMES_HOTSPOT_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

struct hotspot_debug;

/* Is the byte of the code in the innermost loop that a place is in? False: or it is not known. */
bool hotspot_loop__has(const struct hotspot_debug *d, uint32_t at, int32_t place);

#endif
