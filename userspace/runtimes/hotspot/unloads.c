/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/hotspot/unloads.h"

#include "base/clocks.h"
#include "runtimes/hotspot/counter.h"

void hotspot_unloads__look(struct hotspot_unloads *u, const struct hotspot_layout *layout,
			   struct target_memory *memory)
{
	uint64_t count;

	if (!u->was_searched &&
	    hotspot_counter__find(layout, memory, "java.cls.unloadedClasses", &u->counter))
		u->counter = 0;
	u->was_searched = true;
	if (!u->counter || target_memory__word(memory, &count, u->counter)) {
		u->is_known = false;
		return;
	}
	if (u->is_known && u->count == count)
		return;
	u->is_known = true;
	u->count = count;
	u->since = monotonic_ns();
}

bool hotspot_unloads__none_since(const struct hotspot_unloads *u, uint64_t time)
{
	return u->is_known && time >= u->since;
}
