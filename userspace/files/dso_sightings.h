/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sightings: the file that a mapping shows, by what the kernel reports: the root, the name, and the
 * numbers. If a process has ended, its root is unknown.
 *
 * A sighting is removed with its file, or when the table is full and it was not used for a while.
 */
#ifndef FILES_DSO_SIGHTINGS_H
#define FILES_DSO_SIGHTINGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/hashmap.h"
#include "base/vec.h"
#include "files/dso_roots.h"
#include "files/file_search.h"
#include "files/lru.h"

struct sighting {
	struct root_id root;
	struct file_numbers numbers;
	char *path; /* without " (deleted)"; NULL: a free place */
	uint32_t file;
};

struct dso_sightings {
	VEC(struct sighting) sightings;
	struct lru order;
	struct hashmap by_numbers, by_file;
};

void dso_sightings__init(struct dso_sightings *s, const struct lru_clock *clock, size_t max);
void dso_sightings__fini(struct dso_sightings *s);
/* With these numbers below this root; a generation of 0 equals any. NULL: there is none. */
const struct sighting *dso_sightings__find(struct dso_sightings *s,
					   const struct mmap_event *mapping, struct root_id root);
/* Note that these numbers show this file. 0, even if the table is full (no note); -ENOMEM. */
int dso_sightings__add(struct dso_sightings *s, const struct mmap_event *mapping,
		       struct root_id root, uint32_t file);
void dso_sightings__forget_file(struct dso_sightings *s, uint32_t file);

#endif
