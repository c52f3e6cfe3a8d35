/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits how many files of a user a profile distinguishes. Mappings pass here when they leave the
 * queue. Those of files beyond the limit get EVENT_LEFT, so a replay, which has no users, leaves
 * out the same ones.
 */
#ifndef SESSION_IMAGE_GATE_H
#define SESSION_IMAGE_GATE_H

#include <sysprof/event.h>
#include "world/world.h"

struct image_gate {
	struct world *world; /* not owned, as the next one */
	struct outside_books *books;
	struct mmap_event_space marked;
};

/* May replace *event by a marked copy, which is valid until the next call. */
void image_gate__pass(struct image_gate *g, const struct event_header **event);

#endif
