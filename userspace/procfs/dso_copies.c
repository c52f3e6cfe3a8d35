/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much memory copies of files take. A file that a user's program serves is kept as a copy (file_search.c), and he has
 * as many of them as he likes: so there is a sum for each user, and one for all. Copies that were not used for a while
 * make room; what finds none is left.
 */
#include <stdlib.h>

#include "base/minmax.h"
#include "procfs/dso_opener_private.h"

void dso_copies__init(struct dso_opener *o)
{
	quota__init(&o->copies.quota, QUOTA_FILE_COPIES);
	if (o->caps.copies_user)
		o->copies.quota.user.limit = o->caps.copies_user;
	if (o->caps.copies_all)
		o->copies.quota.all.limit = o->caps.copies_all;
}

static uint64_t room_of(const struct dso_opener *o, uint32_t user)
{
	int64_t left = quota__left(&o->copies.quota, user, 0);

	return left > 0 ? (uint64_t)left : 0;
}

/* Closes the user's copies that were not used for a while, until there is so much room. */
static void make_room(struct dso_opener *o, uint32_t user, uint64_t bytes)
{
	uint32_t index = lru__idle(&o->fd_order, o->now, o->caps.idle);

	while (index != LRU_NONE && room_of(o, user) < bytes) {
		uint32_t next = lru__next_idle(&o->fd_order, index, o->now, o->caps.idle);
		const struct image *image = &o->images.data[index];

		if (image->copied && image->copied_for == user) {
			dso_images__close(o, index);
			o->evicted++;
		}
		index = next;
	}
}

uint64_t dso_copies__room(struct dso_opener *o, uint32_t user, uint64_t wanted)
{
	make_room(o, user, wanted);
	return min_u64(room_of(o, user), wanted);
}

/* Has it been noted before? The last ones are known. */
static bool is_noted(struct dso_opener *o, const struct file_finding *facts)
{
	const uint64_t file[] = {facts->device, facts->inode, facts->size,
				 (uint64_t)facts->changed.tv_sec, (uint64_t)facts->changed.tv_nsec};
	uint64_t hash = hash_bytes(file, sizeof(file));

	for (size_t i = 0; i < COPIES_LEFT; i++)
		if (o->copies.left[i] == hash)
			return true;
	o->copies.left[o->copies.next_left++ % COPIES_LEFT] = hash;
	return false;
}

void dso_copies__note(struct dso_opener *o, uint32_t user, const struct file_finding *facts,
		      bool by_itself)
{
	const enum outside_reason reason = by_itself ? OUTSIDE_BY_ITSELF
						     : quota__scarcest(&o->copies.quota, user);

	if (!is_noted(o, facts))
		outside_books__add(o->caps.books, user, OUTSIDE_FILE_COPIES, reason, 1);
}

void dso_copies__add(struct dso_opener *o, struct image *image, const struct found *found)
{
	quota__take(&o->copies.quota, found->user, found->copied, 0);
	image->copied = found->copied;
	image->copied_for = found->user;
}

void dso_copies__remove(struct dso_opener *o, struct image *image)
{
	quota__give(&o->copies.quota, image->copied_for, image->copied);
	image->copied = 0;
}
