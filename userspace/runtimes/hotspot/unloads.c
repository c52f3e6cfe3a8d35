/* SPDX-License-Identifier: BSD-2-Clause */
/* PerfMemory: a header, and entries that follow one another, each with its name. All of it is the process's to forge. */
#include "runtimes/hotspot/unloads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"

#define COUNTERS_MAX  4096u
#define PERF_SIZE_MAX (1u << 20)

#define PERF_MAGIC    0xc0c0feca

struct perf_header {
	uint32_t magic;
	uint8_t byte_order, major, minor, accessible;
	int32_t used, overflow;
	int64_t modified;
	uint32_t entry_offset, entries;
};

struct perf_entry {
	uint32_t size, name_offset, vector_length;
	uint8_t type, flags, unit, variability;
	uint32_t data_offset;
};

static uint64_t find_entry(const unsigned char *bytes, uint64_t size, const char *name)
{
	const struct perf_header *h = (const void *)bytes;
	uint64_t at = h->entry_offset, length = strlen(name) + 1;

	for (uint32_t i = 0; i < h->entries && i < COUNTERS_MAX; i++) {
		struct perf_entry e;

		if (at > size || size - at < sizeof(e))
			return 0;
		memcpy(&e, bytes + at, sizeof(e));
		if (e.size < sizeof(e) || e.size > size - at)
			return 0;
		if (e.name_offset <= e.size && length <= e.size - e.name_offset &&
		    !memcmp(bytes + at + e.name_offset, name, length) && e.data_offset <= e.size &&
		    e.size - e.data_offset >= sizeof(uint64_t))
			return at + e.data_offset;
		at += e.size;
	}
	return 0;
}

int hotspot_counter__find(const struct hotspot_layout *layout, struct target_memory *memory,
			  const char *name, uint64_t *address)
{
	_cleanup_free_ unsigned char *bytes = NULL;
	uint64_t start, top, size, at;
	int err;

	if (!layout->can[HOTSPOT_CAN_COUNT])
		return -ENOENT;
	err = target_memory__word(memory, &start, layout->at[HOTSPOT_PERF_START]);
	if (!err)
		err = target_memory__word(memory, &top, layout->at[HOTSPOT_PERF_TOP]);
	if (err)
		return err;
	size = top - start;
	if (top < start || size < sizeof(struct perf_header))
		return -ENOENT;
	size = min_u64(size, PERF_SIZE_MAX);
	bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	err = target_memory__read(memory, bytes, size, start);
	if (err)
		return err;
	at = ((const struct perf_header *)bytes)->magic == PERF_MAGIC
		     ? find_entry(bytes, size, name)
		     : 0;
	*address = start + at;
	return at ? 0 : -ENOENT;
}

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
