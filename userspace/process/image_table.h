/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything that processes have mapped, each file once. An image outlives the processes that mapped it, and
 * the windows. In a profile it becomes a dso.
 *
 * Tenants decide how many files there are, so a live session admits them by user; all files that are not admitted are
 * one image (EVENT_LEFT), whose code has addresses only.
 */
#ifndef PROCESS_IMAGE_TABLE_H
#define PROCESS_IMAGE_TABLE_H

#include <stdbool.h>

#include <sysprof/event.h>
#include <sysprof/mapping.h>
#include <sysprof/profile.h>

#include "base/outside_books.h"

struct image_table;

/* As struct profile_dso; the table owns the strings. */
struct image {
	enum dso_kind kind;
	const char *path; /* as mapped, without " (deleted)" */
	const char *name; /* last component of path */
	bool is_library;
	bool deleted;
	enum file_state file_state;
	uint8_t build_id_size;
	uint8_t build_id[BUILD_ID_SIZE];
	uint32_t major, minor;
	uint64_t inode, inode_generation;
	bool unshared; /* EVENT_UNSHARED */
};

struct image_table *image_table__new(void); /* NULL: no memory */
void image_table__free(struct image_table *t);

/*
 * The image of a mapping. A known image is updated if its file could be opened this time. 0: out of memory.
 */
struct image_id image_table__add(struct image_table *t, const struct mmap_event *event);

/* Other limits than those of the table (QUOTA_IMAGES), before any image: of a user, of all but root, and what a user may have in any case. */
void image_table__limit(struct image_table *t, size_t user, size_t all, size_t least);

/* Is it known what this maps? */
bool image_table__has(const struct image_table *t, const struct mmap_event *event);
/*
 * The user has mapped a new file: add its image, which counts for the user. False: a limit is reached, which *refusal
 * names.
 */
bool image_table__admit(struct image_table *t, const struct mmap_event *event, uint32_t user,
			enum outside_reason *refusal);

/* Valid until the next image_table__forget(). */
const struct image *image_table__get(const struct image_table *t, struct image_id id);

/*
 * Freeing images, in two steps: mark those that are still mapped, then free those that were not marked this
 * time and the last. Their ids are reused. `may_forget` (NULL: yes, if there is no room for them) is called for each; `full`: room is
 * wanted. Returns how many were freed.
 */
void image_table__mark(struct image_table *t, struct image_id id);
typedef bool (*image_forget_fn)(void *context, struct image_id id, bool full);
size_t image_table__forget(struct image_table *t, bool full, image_forget_fn may_forget,
			   void *context);

size_t image_table__count(const struct image_table *t); /* of images that are known */

#endif
