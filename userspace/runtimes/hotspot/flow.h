/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIMES_HOTSPOT_FLOW_H
#define RUNTIMES_HOTSPOT_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hotspot_around;
struct hotspot_blob;
struct hotspot_code;
struct hotspot_debug;
struct target_memory;

/* Reads the code: adds checks to the places, makes the blocks. 0; -ENOMEM; else as reading fails. */
int hotspot_flow__read(struct hotspot_code *code, struct target_memory *memory,
		       const struct hotspot_blob *blob, struct hotspot_debug *debug);
/* The number of the block that this byte of the code is in; that of all blocks: in none. */
size_t hotspot_flow__block(const struct hotspot_debug *d, uint32_t at);
/* False: it is not in the code. */
bool hotspot_flow__around(const struct hotspot_debug *d, uint32_t at,
			  struct hotspot_around *around);

#endif
