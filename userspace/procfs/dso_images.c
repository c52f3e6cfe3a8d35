/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Images: files in the state in which they were opened.
 *
 * There are two caps, each with a list in order of last use. At the cap of descriptors the least recently
 * used image is closed. It stays known by its build-id; its next mapping, or a request, opens it again. At
 * the cap of images the image is forgotten with everything that refers to it, and its slot is reused.
 * Images that are held are in neither list.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "procfs/dso_opener_private.h"

static uint64_t hash_build_id(const struct build_id *id)
{
	return hash_bytes(id->bytes, id->size);
}

static bool image_has_build_id(const void *owner, uint32_t index, const void *key)
{
	const struct dso_opener *o = owner;

	return build_id_equal(&o->images.data[index].build_id, key);
}

struct inode_key {
	dev_t device;
	ino_t inode;
};

static uint64_t hash_inode(const struct inode_key *key)
{
	return hash_combine(hash_u64(key->device), hash_u64(key->inode));
}

static bool image_has_inode(const void *owner, uint32_t index, const void *key)
{
	const struct image *image = &((const struct dso_opener *)owner)->images.data[index];
	const struct inode_key *k = key;

	return image->device == k->device && image->inode == k->inode;
}

void dso_images__init(struct dso_opener *o)
{
	hashmap__init(&o->by_build_id, image_has_build_id, o);
	hashmap__init(&o->by_inode, image_has_inode, o);
	lru__init(&o->image_order);
	lru__init(&o->fd_order);
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
	const struct image *image = &o->images.data[index];

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

/* ---- descriptors ----------------------------------------------------------------------------- */

void dso_images__close(struct dso_opener *o, uint32_t index)
{
	struct image *image = &o->images.data[index];

	if (image->fd < 0 || image->held)
		return;
	lru__remove(&o->fd_order, index);
	close(image->fd);
	image->fd = -1;
	o->fds--;
}

bool dso_images__make_fd_room(struct dso_opener *o)
{
	while (o->fds >= o->caps.fds_max) {
		uint32_t index = lru__idle(&o->fd_order, o->now, o->caps.idle);

		if (index == LRU_NONE)
			return false;
		log_debug(LOG_PROCFS, "closed %s: not used for a while",
			  o->images.data[index].path ? o->images.data[index].path : "a file");
		dso_images__close(o, index);
		o->evicted++;
	}
	return true;
}

static bool same_content(const struct image *image, const struct stat *st)
{
	return image->size == st->st_size && image->modified.tv_sec == st->st_mtim.tv_sec &&
	       image->modified.tv_nsec == st->st_mtim.tv_nsec;
}

bool dso_images__is_unchanged(const struct dso_opener *o, uint32_t index)
{
	const struct image *image = &o->images.data[index];
	struct stat st;

	return image->fd >= 0 && !fstat(image->fd, &st) && same_content(image, &st);
}

/* The found file is the image, which owns the descriptor from now on and drops an earlier one. */
static void set_file(struct dso_opener *o, struct image *image, const struct found *found)
{
	image->size = found->st.st_size;
	image->modified = found->st.st_mtim;
	if (image->fd < 0) {
		image->fd = found->fd;
		o->fds++;
		return;
	}
	/* under the same number, which a pending answer may refer to */
	dup3(found->fd, image->fd, O_CLOEXEC);
	close(found->fd);
}

/* Keeps the found file, or closes it if there is no room. */
static void keep_file(struct dso_opener *o, struct image *image, const struct found *found)
{
	if (image->fd >= 0 || dso_images__make_fd_room(o))
		set_file(o, image, found);
	else
		close(found->fd);
}

/* ---- images come and go ---------------------------------------------------------------------- */

uint32_t dso_images__with_build_id(const struct dso_opener *o, const struct build_id *id)
{
	return hashmap__find(&o->by_build_id, hash_build_id(id), id);
}

static uint32_t image_with_inode(const struct dso_opener *o, const struct inode_key *key)
{
	return hashmap__find(&o->by_inode, hash_inode(key), key);
}

/* The known image of this file, or HASHMAP_NONE. */
static uint32_t known_image(const struct dso_opener *o, const struct found *found)
{
	struct inode_key key = {found->st.st_dev, found->st.st_ino};
	uint32_t index;

	if (found->build_id.size > 0)
		return dso_images__with_build_id(o, &found->build_id);
	index = image_with_inode(o, &key);
	if (index == HASHMAP_NONE || !same_content(&o->images.data[index], &found->st))
		return HASHMAP_NONE;
	return index;
}

static int index_image(struct dso_opener *o, uint32_t index)
{
	const struct image *image = &o->images.data[index];
	struct inode_key key = {image->device, image->inode};

	if (image->build_id.size > 0)
		return hashmap__add(&o->by_build_id, hash_build_id(&image->build_id), index);
	hashmap__remove(&o->by_inode, hash_inode(&key), &key); /* as it was before */
	return hashmap__add(&o->by_inode, hash_inode(&key), index);
}

static void unindex_image(struct dso_opener *o, uint32_t index)
{
	const struct image *image = &o->images.data[index];
	struct inode_key key = {image->device, image->inode};

	if (image->build_id.size > 0)
		hashmap__remove(&o->by_build_id, hash_build_id(&image->build_id), &image->build_id);
	else if (image_with_inode(o, &key) == index) /* not if it was written over since */
		hashmap__remove(&o->by_inode, hash_inode(&key), &key);
}

static void set_root(struct dso_opener *o, struct image *image, int root)
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
	struct image *image = &o->images.data[index];
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
	struct image *image = &o->images.data[index];

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
	o->forgotten++;
}

static int make_image_room(struct dso_opener *o)
{
	while (o->image_order.count >= o->caps.images_max) {
		uint32_t index = lru__idle(&o->image_order, o->now, o->caps.idle);

		if (index == LRU_NONE)
			return -ENOSPC;
		forget_image(o, index);
	}
	return 0;
}

/* A slot for it; does not take its descriptor. */
static int make_image(struct dso_opener *o, const struct found *found, uint32_t *result)
{
	struct image image = {
		.fd = -1,
		.root = NO_ROOT,
		.build_id = found->build_id,
		.device = found->st.st_dev,
		.inode = found->st.st_ino,
		.size = found->st.st_size,
		.modified = found->st.st_mtim,
		.archive = found->archive,
		.sightings = LRU_NONE,
	};
	uint32_t index;
	int err = make_image_room(o);

	if (!err)
		err = lru__take(&o->image_order, &index);
	if (err)
		return err;
	err = vec_reserve(&o->images, (size_t)index + 1);
	if (!err)
		err = lru__reserve(&o->fd_order, (size_t)index + 1);
	if (!err) {
		if (o->images.count == index)
			o->images.count++;
		o->images.data[index] = image;
		err = index_image(o, index);
	}
	if (err) {
		lru__release(&o->image_order, index);
		return err;
	}
	*result = index;
	return 0;
}

static int add_image(struct dso_opener *o, const struct found *found, uint32_t *index)
{
	struct image *image;
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
	struct image *image;
	int err;

	*index = known_image(o, found);
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

/* Its path must still lead to the same file. */
static int reopen_image(struct dso_opener *o, uint32_t index)
{
	struct image *image = &o->images.data[index];
	struct wanted w = {
		.path = image->path,
		.path_length = image->path ? strlen(image->path) : 0,
		.build_id = image->build_id,
		.inode = image->inode,
	};
	struct found found;
	int err;

	if (!image->path || image->root < 0)
		return -ENOENT;
	err = dso_search__path(o, &w, image->root, image->path, &found);
	if (err)
		return err;
	if (image->build_id.size == 0 && !same_content(image, &found.st)) {
		close(found.fd);
		return -ESTALE;
	}
	dso_images__make_fd_room(o);
	set_file(o, image, &found);
	return image->fd;
}

void dso_images__locate(struct dso_opener *o, struct located *located,
			const struct build_id *build_id)
{
	struct build_id now;

	located->fd = o->images.data[located->image].fd;
	located->reopened = located->fd < 0;
	if (located->reopened) {
		located->fd = reopen_image(o, located->image);
	} else if (!dso_images__is_unchanged(o, located->image)) { /* written over in place */
		dso_search__read_build_id(located->fd, located->base, &now);
		if (now.size == 0 || !build_id_equal(&now, build_id))
			located->fd = -ESTALE;
	}
	dso_images__use(o, located->image);
}
