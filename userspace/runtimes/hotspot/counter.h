/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of a JVM in its PerfMemory, which jstat reads. */
#ifndef RUNTIMES_HOTSPOT_COUNTER_H
#define RUNTIMES_HOTSPOT_COUNTER_H

#include "runtimes/hotspot/layout.h"

/*
 * The address of a counter of PerfMemory, 8 bytes: that of "sun.ci.totalCompiles" grows with each new nmethod but wrappers
 * of native methods. 0; -ENOENT: it has none (-XX:-UsePerfData); else as reading fails.
 */
int hotspot_counter__find(const struct hotspot_layout *layout, struct target_memory *memory,
			  const char *name, uint64_t *address);

#endif
