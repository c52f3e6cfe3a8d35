/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which methods are inlined where: an nmethod has a list of places (PcDesc), each with a chain of
 * scopes from the innermost outwards. JDK 23 moved them from the code heap to a block of their own.
 */
#ifndef RUNTIMES_HOTSPOT_SCOPES_H
#define RUNTIMES_HOTSPOT_SCOPES_H

#include <stdint.h>

struct hotspot_blob;
struct hotspot_chain;
struct hotspot_code;
struct hotspot_debug;
struct hotspot_layout;
struct hotspot_scope_record;
struct target_memory;

void hotspot_debug__fini(struct hotspot_debug *debug);

/* The scopes of one place, of which all are sure; the nmethod's own method: it has none. */
int hotspot_place__read(const struct hotspot_layout *l, struct target_memory *memory,
			const struct hotspot_blob *blob, struct hotspot_debug *d, int32_t place,
			struct hotspot_chain *chain);

int hotspot_scope__read(const struct hotspot_layout *l, const struct hotspot_debug *d, uint32_t at,
			struct hotspot_scope_record *s);

/*
 * The methods at an address in an nmethod: the innermost frame's place, or the byte before a return
 * address, because what is described behind that returns there. If nothing is known of it: the
 * nmethod's own method, index -1. Reads `debug` (the caller's) once. -ENODATA: no nmethod; -ENOMEM.
 */
int hotspot_chain__read(struct hotspot_code *code, struct target_memory *memory,
			const struct hotspot_blob *blob, struct hotspot_debug *debug,
			uint64_t address, struct hotspot_chain *chain);

#endif
