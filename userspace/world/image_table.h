/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything that processes have mapped, each file once. An image outlives the processes that
 * mapped it, and the windows. In a profile it becomes a dso.
 *
 * Tenants decide how many files there are, so a live session admits them by user. All files that
 * are not admitted are one image (EVENT_LEFT), whose code has addresses only.
 *
 * The table owns the images. One thread.
 */
#ifndef WORLD_IMAGE_TABLE_H
#define WORLD_IMAGE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>
#include <sysprof/mapping.h>
#include <sysprof/profile.h>

#include "tenants/outside_books.h"

struct image_table;

struct image {
	struct profile_dso dso; /* without the numbers of its strings, which the table owns: */
	const char *path, *name;
	uint64_t file; /* as in struct mmap_event, of the latest mapping; 0 in a replay */
};

typedef bool (*image_forget_fn)(void *context, struct image_id id, bool full);

struct image_table *image_table__new(void); /* NULL: no memory */
void image_table__free(struct image_table *t);

/*
 * The image of a mapping. A known one is updated if its file was opened this time. A mapping whose
 * search was given up has the file of another one with its path and build-id. 0: no memory.
 */
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
/* A mapping of the image, by no process. */
void image__fill_event(const struct image *image, struct mmap_event_space *space);

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
