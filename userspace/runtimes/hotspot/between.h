/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The methods at an address between described places: those of one that runs next, and how many of them
 * are sure, by the bytecodes on the ways from the places before to the ones behind.
 */
#ifndef RUNTIMES_HOTSPOT_BETWEEN_H
#define RUNTIMES_HOTSPOT_BETWEEN_H

struct hotspot_around;
struct hotspot_blob;
struct hotspot_chain;
struct hotspot_code;
struct hotspot_debug;
struct target_memory;

/* The methods between places: `around` the address. */
int hotspot_between__read(struct hotspot_code *code, struct target_memory *memory,
			  const struct hotspot_blob *blob, struct hotspot_debug *debug,
			  const struct hotspot_around *around, struct hotspot_chain *chain);

#endif
