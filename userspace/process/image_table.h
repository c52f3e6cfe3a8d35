/* SPDX-License-Identifier: BSD-2-Clause */
/* Images: what the mappings of all processes map. The table owns them. One thread. */
#ifndef PROCESS_IMAGE_TABLE_H
#define PROCESS_IMAGE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/mapping.h>

#include "base/outside_books.h"
#include "process/world.h"

struct mmap_event;

struct image_table *image_table__new(void); /* NULL: no memory */
void image_table__free(struct image_table *t);

/* The image of a mapping. A known one is updated if its file was opened this time. 0: no memory. */
struct image_id image_table__add(struct image_table *t, const struct mmap_event *event);

/*
 * Limits other than those of QUOTA_IMAGES, set before any image is added: of a user, of all users
 * but root, and the number that each user may have in any case.
 */
void image_table__limit(struct image_table *t, size_t user, size_t all, size_t least);

/* Is it known what this maps? */
bool image_table__has(const struct image_table *t, const struct mmap_event *event);
/* A user has mapped a new file: add its image and charge the user. False: *refusal is the limit. */
bool image_table__admit(struct image_table *t, const struct mmap_event *event, uint32_t user,
			enum outside_reason *refusal);

/* Valid until the next image_table__forget(). */
const struct image *image_table__get(const struct image_table *t, struct image_id id);

/*
 * Freeing images, in two steps: mark those still mapped, then free those marked neither this time
 * nor the last. Their ids are reused. `full`: room is wanted. `may_forget` (NULL: yes, if `full`)
 * is called for each. Returns the number freed.
 */
void image_table__mark(struct image_table *t, struct image_id id);

size_t image_table__forget(struct image_table *t, bool full, image_forget_fn may_forget,
			   void *context);

size_t image_table__count(const struct image_table *t); /* of images that are known */

#endif
