/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much memory copies of files take. A file that a user's program serves is kept as a copy (file_search.c), and he has
 * as many of them as he likes: so there is a sum for each user, and one for all. Copies that were not used for a while
 * make room; what finds none is left.
 */
#include <stdlib.h>

#include "base/minmax.h"
#include "procfs/dso_opener_private.h"

#define USER_MAX (256ull << 20) /* bytes */
#define ALL_MAX	 (512ull << 20)

void dso_copies__init(struct dso_opener *o)
{
	o->copies.user_max = o->caps.copies_user ? o->caps.copies_user : USER_MAX;
	o->copies.all_max = o->caps.copies_all ? o->caps.copies_all : ALL_MAX;
}

void dso_copies__fini(struct dso_opener *o)
{
	vec_free(&o->copies.users);
}

/* NULL: he has none. */
static struct copies_of_user *find_user(struct dso_opener *o, uint32_t user)
{
	for (size_t i = 0; i < o->copies.users.count; i++)
		if (o->copies.users.data[i].user == user)
			return &o->copies.users.data[i];
	return NULL;
}

static uint64_t left_of(uint64_t limit, uint64_t used)
{
	return used < limit ? limit - used : 0;
}

static uint64_t room_of(struct dso_opener *o, uint32_t user)
{
	const struct copies_of_user *u = find_user(o, user);

	return min_u64(left_of(o->copies.user_max, u ? u->bytes : 0),
		       left_of(o->copies.all_max, o->copies.bytes));
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

static enum outside_reason reason_of(struct dso_opener *o, uint32_t user)
{
	const struct copies_of_user *u = find_user(o, user);

	/* what there is least of is in the way */
	return left_of(o->copies.user_max, u ? u->bytes : 0) <=
			       left_of(o->copies.all_max, o->copies.bytes)
		       ? OUTSIDE_BY_USER
		       : OUTSIDE_BY_ALL;
}

void dso_copies__note(struct dso_opener *o, uint32_t user, const struct file_finding *facts,
		      bool by_itself)
{
	if (!is_noted(o, facts))
		outside_books__add(o->caps.books, user, OUTSIDE_FILE_COPIES,
				   by_itself ? OUTSIDE_BY_ITSELF : reason_of(o, user), 1);
}

void dso_copies__add(struct dso_opener *o, struct image *image, const struct found *found)
{
	struct copies_of_user *u = find_user(o, found->user);

	if (!found->copied)
		return;
	if (!u && vec_push(&o->copies.users, (struct copies_of_user){.user = found->user}))
		return; /* no memory: it is nobody's */
	u = u ? u : &o->copies.users.data[o->copies.users.count - 1];
	u->bytes += found->copied;
	o->copies.bytes += found->copied;
	image->copied = found->copied;
	image->copied_for = found->user;
}

void dso_copies__remove(struct dso_opener *o, struct image *image)
{
	struct copies_of_user *u = image->copied ? find_user(o, image->copied_for) : NULL;

	if (u) {
		u->bytes -= image->copied;
		o->copies.bytes -= image->copied;
		if (!u->bytes)
			*u = o->copies.users.data[--o->copies.users.count];
	}
	image->copied = 0;
}
