/* SPDX-License-Identifier: BSD-2-Clause */
/* All blobs of a JVM's code heaps, and what changed between two looks at them. */
#ifndef TESTS_MODELS_HOTSPOT_BLOBS_H
#define TESTS_MODELS_HOTSPOT_BLOBS_H

#include "runtimes/hotspot/heap.h"
#include "runtimes/hotspot/hotspot.h"

struct hotspot_blobs {
	VEC(struct hotspot_blob)
	list;		     /* ascending by address */
	uint64_t unreadable; /* at the last look: blobs that were being made, or are none */
};

/* Between two looks. What was replaced in its place is gone, and new. */
struct hotspot_changes {
	VEC(uint32_t)
	added; /* numbers in the list */
	VEC(struct hotspot_blob)
	gone;
};

/*
 * Looks again: the list is as it is now, and `changes` what is other than before. 0; -EDQUOT and others: nothing was
 * changed.
 */
int hotspot_blobs__refresh(struct hotspot_blobs *b, struct hotspot_code *code,
			   struct target_memory *memory, struct hotspot_changes *changes);
const struct hotspot_blob *hotspot_blobs__find(const struct hotspot_blobs *b, uint64_t address);
void hotspot_blobs__fini(struct hotspot_blobs *b);
void hotspot_changes__fini(struct hotspot_changes *c);

#endif
