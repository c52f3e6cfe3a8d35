/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Have classes been unloaded since a sample? If none was, a Method is the one that it was then: its memory is another one's
 * only after its class has gone, and the JVM has counted that before.
 */
#ifndef RUNTIMES_HOTSPOT_UNLOADS_H
#define RUNTIMES_HOTSPOT_UNLOADS_H

#include "runtimes/hotspot/layout.h"

/*
 * The address of a counter of a JVM's PerfMemory, which jstat reads: 8 bytes. That of "sun.ci.totalCompiles" grows with each
 * new nmethod but wrappers of native methods. 0; -ENOENT: it has none (-XX:-UsePerfData); else as reading fails.
 */
int hotspot_counter__find(const struct hotspot_layout *layout, struct target_memory *memory,
			  const char *name, uint64_t *address);

/* Begins as {}. */
struct hotspot_unloads {
	uint64_t counter; /* its address; 0: there is none */
	bool was_searched, is_known;
	uint64_t count;
	uint64_t since; /* CLOCK_MONOTONIC ns: so long it has been the same, at least */
};

/* Reads the counter. Where there is none nothing will be known. */
void hotspot_unloads__look(struct hotspot_unloads *u, const struct hotspot_layout *layout,
			   struct target_memory *memory);

/* For sure none between this time and the last look? */
bool hotspot_unloads__none_since(const struct hotspot_unloads *u, uint64_t time);

#endif
