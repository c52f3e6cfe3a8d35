/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Images: files in the state in which they were opened.
 *
 * There are two caps, each with a list in order of last use. At the cap of descriptors the least recently
 * used image is closed. It stays known by its build-id; its next mapping, or a request, opens it again. At
 * the cap of images the image is forgotten with everything that refers to it, and its slot is reused.
 * Images that are held are in neither list.
 *
 * Any file can contain any build-id. So a build-id identifies a file only if only the administrator can have put it
 * there; such files with the same one are one image, in all containers. Every other file is an image of its own:
 * device, inode, size and times.
 *
 * A file that a user's program serves is kept as a copy in memory (file_search.c). Copies have a limit for each user and one
 * for all; those that were not used for a while are closed to make room.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/log.h"
#include "base/minmax.h"
#include "procfs/dso_opener_private.h"

static uint64_t hash_build_id(const struct build_id *id)
{
	return hash_bytes(id->bytes, id->size);
}

static uint64_t hash_inode(uint64_t device, uint64_t inode)
{
	return hash_combine(hash_u64(device), hash_u64(inode));
}

void dso_images__init(struct dso_opener *o)
{
	lru__init(&o->image_order);
	lru__init(&o->fd_order);
	quota__init(&o->copies.quota, QUOTA_FILE_COPIES);
	if (o->caps.copies_user)
		o->copies.quota.user.limit = o->caps.copies_user;
	if (o->caps.copies_all)
		o->copies.quota.all.limit = o->caps.copies_all;
	o->vdso = HASHMAP_NONE;
}

void dso_images__fini(struct dso_opener *o)
{
	for (size_t i = 0; i < o->images.count; i++) {
		if (o->images.data[i].fd >= 0)
			close(o->images.data[i].fd);
		free(o->images.data[i].path);
	}
	vec_free(&o->images);
	hashmap__fini(&o->by_build_id);
	hashmap__fini(&o->by_inode);
	lru__fini(&o->image_order);
	lru__fini(&o->fd_order);
}

/* ---- use ------------------------------------------------------------------------------------- */

void dso_images__use(struct dso_opener *o, uint32_t index)
{
	const struct dso_image *image = &o->images.data[index];

	dso_roots__use(o, image->root);
	if (image->held)
		return;
	lru__use(&o->image_order, index, o->now);
	if (image->fd >= 0)
		lru__use(&o->fd_order, index, o->now);
}

void dso_images__hold(struct dso_opener *o, uint32_t index)
{
	if (o->images.data[index].held++ > 0)
		return;
	lru__remove(&o->image_order, index);
	lru__remove(&o->fd_order, index);
}

void dso_images__unhold(struct dso_opener *o, uint32_t index)
{
	if (--o->images.data[index].held == 0)
		dso_images__use(o, index);
}

/* ---- copies in memory ------------------------------------------------------------------------- */

static void count_copy(struct dso_opener *o, struct dso_image *image, const struct found *found)
{
	quota__take(&o->copies.quota, found->user, found->copied, 0);
	image->copied = found->copied;
	image->copied_for = found->user;
}

static void discount_copy(struct dso_opener *o, struct dso_image *image)
{
	quota__give(&o->copies.quota, image->copied_for, image->copied);
	image->copied = 0;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

void dso_images__close(struct dso_opener *o, uint32_t index)
{
	struct dso_image *image = &o->images.data[index];

	if (image->fd < 0 || image->held)
		return;
	lru__remove(&o->fd_order, index);
	quota__give(&o->fd_quota, image->owner, 1);
	close(image->fd);
	discount_copy(o, image);
	image->fd = -1;
	o->fds--;
}

static uint32_t image_to_evict(const struct dso_opener *o, const struct lru *order,
			       const struct quota *quota, uint64_t owner)
{
	return lru__to_evict(order, o->now, o->caps.idle, quota, owner, LRU_OWNERS(o->images));
}

bool dso_images__make_fd_room(struct dso_opener *o, uint64_t owner)
{
	while (o->fds >= o->caps.fds_max) {
		uint32_t index = image_to_evict(o, &o->fd_order, &o->fd_quota, owner);

		if (index == LRU_NONE)
			return false;
		log_debug(LOG_PROCFS, "closed %s: not used for a while",
			  o->images.data[index].path ? o->images.data[index].path : "a file");
		dso_images__close(o, index);
		o->evicted++;
	}
	return true;
}

static bool same_content(const struct dso_image *image, const struct stat *st)
{
	return image->size == st->st_size && image->modified.tv_sec == st->st_mtim.tv_sec &&
	       image->modified.tv_nsec == st->st_mtim.tv_nsec;
}

bool dso_images__is_unchanged(const struct dso_opener *o, uint32_t index)
{
	const struct dso_image *image = &o->images.data[index];
	struct stat st;

	return image->fd >= 0 && !fstat(image->fd, &st) && same_content(image, &st);
}

/* The found file is the image, which owns the descriptor from now on and drops an earlier one. */
static void set_file(struct dso_opener *o, struct dso_image *image, const struct found *found)
{
	struct stat st;

	/* a copy has times of its own */
	if (!fstat(found->fd, &st)) {
		image->size = st.st_size;
		image->modified = st.st_mtim;
	}
	discount_copy(o, image);
	count_copy(o, image, found);
	if (image->fd < 0) {
		image->fd = found->fd;
		o->fds++;
		quota__take(&o->fd_quota, image->owner, 1, 0);
		return;
	}
	/* under the same number, which a pending answer may refer to */
	dup3(found->fd, image->fd, O_CLOEXEC);
	close(found->fd);
}

/* Keeps the found file, or closes it if there is no room. */
static void keep_file(struct dso_opener *o, struct dso_image *image, const struct found *found)
{
	if (image->fd >= 0 || dso_images__make_fd_room(o, image->owner))
		set_file(o, image, found);
	else
		close(found->fd);
}

static uint64_t room_of(const struct dso_opener *o, uint32_t user)
{
	int64_t left = quota__left(&o->copies.quota, user, 0);

	return left > 0 ? (uint64_t)left : 0;
}

/* Closes the user's copies that were not used for a while, until there is so much room. */
static void evict_copies(struct dso_opener *o, uint32_t user, uint64_t bytes)
{
	uint32_t index = lru__idle(&o->fd_order, o->now, o->caps.idle);

	while (index != LRU_NONE && room_of(o, user) < bytes) {
		uint32_t next = lru__next_idle(&o->fd_order, index, o->now, o->caps.idle);
		const struct dso_image *image = &o->images.data[index];

		if (image->copied && image->copied_for == user) {
			dso_images__close(o, index);
			o->evicted++;
		}
		index = next;
	}
}

uint64_t dso_images__copy_room(struct dso_opener *o, uint32_t user, uint64_t wanted)
{
	evict_copies(o, user, wanted);
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

void dso_images__note_copy(struct dso_opener *o, uint32_t user, const struct file_finding *facts,
			   bool by_itself)
{
	const enum outside_reason reason = by_itself ? OUTSIDE_BY_ITSELF
						     : quota__scarcest(&o->copies.quota, user);

	if (!is_noted(o, facts))
		outside_books__add(o->caps.books, user, OUTSIDE_FILE_COPIES, reason, 1);
}

/* ---- images come and go ---------------------------------------------------------------------- */

uint32_t dso_images__with_build_id(const struct dso_opener *o, const struct build_id *id)
{
	uint32_t image;

	hashmap_each(&o->by_build_id, hash_build_id(id),
		     image) if (build_id_equal(&o->images.data[image].build_id, id)) break;
	return image;
}

static uint32_t image_with_inode(const struct dso_opener *o, uint64_t device, uint64_t inode)
{
	uint32_t image;

	hashmap_each(&o->by_inode, hash_inode(device, inode),
		     image) if (o->images.data[image].device == device &&
				o->images.data[image].inode == inode) break;
	return image;
}

/* The image of this file, if it has this state and build-id, or HASHMAP_NONE. */
static uint32_t image_in_state(const struct dso_opener *o, uint64_t device, uint64_t inode,
			       uint64_t state, const struct build_id *id)
{
	uint32_t index = image_with_inode(o, device, inode);

	if (index == HASHMAP_NONE || o->images.data[index].state != state ||
	    !build_id_equal(&o->images.data[index].build_id, id))
		return HASHMAP_NONE;
	return index;
}

/* A file is what it was as long as none of these has changed. */
static uint64_t hash_state(uint64_t size, const struct timespec *modified,
			   const struct timespec *changed)
{
	const uint64_t state[] = {size, modified->tv_sec, modified->tv_nsec, changed->tv_sec,
				  changed->tv_nsec};

	return hash_stable(state, sizeof(state)) | 1;
}

static uint64_t state_of(const struct file_finding *facts)
{
	return hash_state(facts->size, &facts->modified, &facts->changed);
}

/* Any file with a build-id that only the administrator can have put there: they are all the same. */
static bool stands_for_build_id(const struct file_finding *facts)
{
	return facts->shared && facts->build_id.size > 0;
}

/* The known image of this file, or HASHMAP_NONE. */
static uint32_t known_image(const struct dso_opener *o, const struct file_finding *facts)
{
	return stands_for_build_id(facts) ? dso_images__with_build_id(o, &facts->build_id)
					  : image_in_state(o, facts->device, facts->inode,
							   state_of(facts), &facts->build_id);
}

uint32_t dso_images__of_file(const struct dso_opener *o, const struct wanted *w)
{
	return image_in_state(o, makedev(w->major, w->minor), w->inode, w->generation,
			      &w->build_id);
}

void dso_images__report(const struct dso_opener *o, uint32_t index, struct mmap_event *event)
{
	const struct dso_image *image = &o->images.data[index];

	dso_event__set_build_id(event, &image->build_id);
	if (image->build_id.size == 0 || image->shared)
		return;
	event->header.flags |= EVENT_UNSHARED;
	event->major = major(image->device);
	event->minor = minor(image->device);
	event->inode = image->inode;
	event->inode_generation = image->state;
}

static int index_image(struct dso_opener *o, uint32_t index)
{
	const struct dso_image *image = &o->images.data[index];
	uint64_t hash = hash_inode(image->device, image->inode);
	uint32_t before;

	if (image->shared)
		return hashmap__add(&o->by_build_id, hash_build_id(&image->build_id), index);
	before = image_with_inode(o, image->device, image->inode);
	if (before != HASHMAP_NONE) /* the file has changed */
		hashmap__erase(&o->by_inode, hash, before);
	return hashmap__add(&o->by_inode, hash, index);
}

static void unindex_image(struct dso_opener *o, uint32_t index)
{
	const struct dso_image *image = &o->images.data[index];

	if (image->shared)
		hashmap__erase(&o->by_build_id, hash_build_id(&image->build_id), index);
	else if (image_with_inode(o, image->device, image->inode) ==
		 index) /* else it has changed since */
		hashmap__erase(&o->by_inode, hash_inode(image->device, image->inode), index);
}

static void set_root(struct dso_opener *o, struct dso_image *image, int root)
{
	if (image->root >= 0)
		o->roots.data[image->root].images--;
	image->root = root;
	if (root >= 0)
		o->roots.data[root].images++;
}

void dso_images__set_place(struct dso_opener *o, uint32_t index, int root, const char *path,
			   size_t path_length)
{
	struct dso_image *image = &o->images.data[index];
	char *copy = strndup(path, path_length);

	if (!copy)
		return;
	free(image->path);
	image->path = copy;
	set_root(o, image, root);
}

/* Sets its current path, if it has one. */
static void set_found_place(struct dso_opener *o, uint32_t index, const struct found *found)
{
	if (found->path)
		dso_images__set_place(o, index, found->root, found->path, found->path_length);
}

static void forget_image(struct dso_opener *o, uint32_t index)
{
	struct dso_image *image = &o->images.data[index];

	log_debug(LOG_PROCFS, "forgot %s", image->path ? image->path : "a file");
	dso_sightings__forget_image(o, index);
	if (image->archive)
		dso_archives__forget_image(o, index);
	dso_images__close(o, index);
	unindex_image(o, index);
	set_root(o, image, NO_ROOT);
	free(image->path);
	image->path = NULL;
	lru__release(&o->image_order, index);
	quota__give(&o->image_quota, image->owner, 1);
	o->forgotten++;
}

static int make_image_room(struct dso_opener *o, uint64_t owner)
{
	while (o->image_order.count >= o->caps.images_max) {
		uint32_t index = image_to_evict(o, &o->image_order, &o->image_quota, owner);

		if (index == LRU_NONE)
			return -ENOSPC;
		forget_image(o, index);
	}
	return 0;
}

/* A slot for it; does not take its descriptor. */
static int make_image(struct dso_opener *o, const struct found *found, uint32_t *result)
{
	struct dso_image image = {
		.fd = -1,
		.root = NO_ROOT,
		.build_id = found->facts.build_id,
		.shared = stands_for_build_id(&found->facts),
		.device = found->facts.device,
		.inode = found->facts.inode,
		.state = state_of(&found->facts),
		.archive = found->facts.archive,
		.sightings = LRU_NONE,
	};
	uint32_t index;
	int err;

	image.owner = image.shared ? 0 : found->owner;
	err = make_image_room(o, image.owner);

	if (!err)
		err = lru__take_in(&o->image_order, &o->images, &index);
	if (err)
		return err;
	o->images.data[index] = image;
	err = lru__reserve(&o->fd_order, (size_t)index + 1);
	if (!err)
		err = index_image(o, index);
	if (err) {
		lru__release(&o->image_order, index);
		return err;
	}
	quota__take(&o->image_quota, image.owner, 1, 0);
	*result = index;
	return 0;
}

static int add_image(struct dso_opener *o, const struct found *found, uint32_t *index)
{
	struct dso_image *image;
	int err = make_image(o, found, index);

	if (err) {
		close(found->fd);
		return err;
	}
	image = &o->images.data[*index];
	set_found_place(o, *index, found);
	if (!image->path)
		set_root(o, image, found->root);
	keep_file(o, image, found);
	return 0;
}

int dso_images__adopt(struct dso_opener *o, const struct found *found, uint32_t *index)
{
	struct dso_image *image;
	int err;

	*index = known_image(o, &found->facts);
	if (*index == HASHMAP_NONE) {
		err = add_image(o, found, index);
		if (err)
			return err;
	} else {
		image = &o->images.data[*index];
		if (image->fd < 0 || !image->path || image->root < 0)
			set_found_place(o, *index, found);
		if (dso_images__is_unchanged(o, *index))
			close(found->fd);
		else /* it was closed or overwritten, but this is the same file */
			keep_file(o, image, found);
	}
	dso_images__use(o, *index);
	return 0;
}

void dso_images__forget_root(struct dso_opener *o, int root)
{
	for (size_t i = 0; i < o->images.count; i++)
		if (o->images.data[i].root == root)
			set_root(o, &o->images.data[i], NO_ROOT);
}

/* ---- opening again --------------------------------------------------------------------------- */

int dso_images__reopen(struct dso_opener *o, uint32_t index, search_done_fn done, void *context)
{
	const struct dso_image *image = &o->images.data[index];
	struct wanted w = {
		.path = image->path,
		.path_length = image->path ? strlen(image->path) : 0,
		.build_id = image->build_id,
		.inode = image->inode,
	};

	if (!image->path || image->root < 0)
		return -ENOENT;
	return dso_searches__mapping(o, &w, image->root, done, context);
}

bool dso_images__reopened(struct dso_opener *o, uint32_t index, const struct found *found)
{
	struct dso_image *image = &o->images.data[index];
	bool same = image->shared ? stands_for_build_id(&found->facts)
				  : image->state == state_of(&found->facts);

	same = same && build_id_equal(&image->build_id, &found->facts.build_id);
	if (!same || image->fd >= 0) {
		close(found->fd);
		return same;
	}
	dso_images__make_fd_room(o, image->owner);
	set_file(o, image, found);
	return true;
}

void dso_images__locate(struct dso_opener *o, struct located *located,
			const struct build_id *build_id)
{
	struct build_id now;

	located->fd = o->images.data[located->image].fd;
	if (located->fd < 0) {
		located->fd = -EAGAIN;
	} else if (!dso_images__is_unchanged(o, located->image)) { /* written over in place */
		file_search__read_build_id(located->fd, located->base, &now);
		if (now.size == 0 || !build_id_equal(&now, build_id))
			located->fd = -ESTALE;
	}
	dso_images__use(o, located->image);
}
