/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sightings: which image a mapping shows, by what the kernel reports of it: below which root, under which name,
 * and the build-id, or without one the numbers. While an image is open its inode cannot be reused. The file can be
 * overwritten in place, so size and modification time are compared each time.
 *
 * A sighting is removed with its image, or when the table is full and it was not used for a while.
 */
#include <errno.h>
#include <stdlib.h>

#include "procfs/dso_opener_private.h"

/* Without the root and the generation, which rarely differ: they are compared afterwards. */
static uint64_t hash_numbers(const char *path, size_t path_length, const struct build_id *build_id,
			     uint64_t inode, uint32_t major, uint32_t minor)
{
	uint64_t hash = hash_combine(hash_bytes(path, path_length),
				     hash_bytes(build_id->bytes, build_id->size));

	return hash_combine(hash, hash_combine(hash_u64(inode), (uint64_t)major << 32 | minor));
}

static uint64_t hash_wanted(const struct wanted *w)
{
	return hash_numbers(w->path, w->path_length, &w->build_id, w->inode, w->major, w->minor);
}

static bool has_numbers(const struct sighting *s, const struct wanted *w)
{
	return s->inode == w->inode && s->major == w->major && s->minor == w->minor &&
	       build_id_equal(&s->build_id, &w->build_id) &&
	       !strncmp(s->path, w->path, w->path_length) && s->path[w->path_length] == '\0';
}

/* A generation of 0 equals any. */
static uint32_t find_sighting(const struct dso_opener *o, const struct wanted *w, uint64_t root)
{
	uint32_t index;

	hashmap_each(&o->by_numbers, hash_wanted(w), index)
	{
		const struct sighting *s = &o->sightings.data[index];

		if (s->root == root && has_numbers(s, w) &&
		    (s->generation == w->generation || s->generation == 0 || w->generation == 0))
			break;
	}
	return index;
}

void dso_sightings__init(struct dso_opener *o)
{
	lru__init(&o->sighting_order);
}

void dso_sightings__fini(struct dso_opener *o)
{
	for (size_t i = 0; i < o->sightings.count; i++)
		free(o->sightings.data[i].path);
	vec_free(&o->sightings);
	hashmap__fini(&o->by_numbers);
	lru__fini(&o->sighting_order);
}

/* ---- coming and going ------------------------------------------------------------------------ */

static void link_to_image(struct dso_opener *o, uint32_t index, uint32_t image)
{
	struct sighting *s = &o->sightings.data[index];
	uint32_t *first = &o->images.data[image].sightings;

	s->image = image;
	s->previous = LRU_NONE;
	s->next = *first;
	if (s->next != LRU_NONE)
		o->sightings.data[s->next].previous = index;
	*first = index;
}

static void unlink_from_image(struct dso_opener *o, uint32_t index)
{
	const struct sighting *s = &o->sightings.data[index];

	if (s->previous == LRU_NONE)
		o->images.data[s->image].sightings = s->next;
	else
		o->sightings.data[s->previous].next = s->next;
	if (s->next != LRU_NONE)
		o->sightings.data[s->next].previous = s->previous;
}

static void unindex_sighting(struct dso_opener *o, uint32_t index)
{
	const struct sighting *s = &o->sightings.data[index];

	hashmap__erase(
		&o->by_numbers,
		hash_numbers(s->path, strlen(s->path), &s->build_id, s->inode, s->major, s->minor),
		index);
}

static void forget_sighting(struct dso_opener *o, uint32_t index)
{
	struct sighting *s = &o->sightings.data[index];

	unlink_from_image(o, index);
	unindex_sighting(o, index);
	free(s->path);
	s->path = NULL;
	lru__release(&o->sighting_order, index);
}

void dso_sightings__forget_image(struct dso_opener *o, uint32_t image)
{
	while (o->images.data[image].sightings != LRU_NONE)
		forget_sighting(o, o->images.data[image].sightings);
}

static bool make_sighting_room(struct dso_opener *o)
{
	while (o->sighting_order.count >= o->caps.sightings_max) {
		uint32_t index = lru__idle(&o->sighting_order, o->now, o->caps.idle);

		if (index == LRU_NONE)
			return false;
		forget_sighting(o, index);
	}
	return true;
}

static int make_sighting(struct dso_opener *o, const struct sighting *sighting, uint64_t hash,
			 uint32_t *index)
{
	int err = lru__take_in(&o->sighting_order, &o->sightings, index);

	if (err)
		return err;
	o->sightings.data[*index] = *sighting;
	err = hashmap__add(&o->by_numbers, hash, *index);
	if (err) {
		o->sightings.data[*index].path = NULL;
		lru__release(&o->sighting_order, *index);
	}
	return err;
}

int dso_sightings__add(struct dso_opener *o, const struct wanted *w, int root, uint32_t image)
{
	struct sighting sighting = {
		.root = dso_roots__serial(o, root),
		.build_id = w->build_id,
		.major = w->major,
		.minor = w->minor,
		.inode = w->inode,
		.generation = w->generation,
	};
	uint32_t index = find_sighting(o, w, sighting.root);
	int err;

	if (index != HASHMAP_NONE) { /* the file was overwritten, or closed meanwhile */
		unlink_from_image(o, index);
	} else {
		if (!make_sighting_room(o))
			return 0;
		sighting.path = strndup(w->path, w->path_length);
		err = sighting.path ? make_sighting(o, &sighting, hash_wanted(w), &index) : -ENOMEM;
		if (err) {
			free(sighting.path);
			return err;
		}
	}
	link_to_image(o, index, image);
	lru__use(&o->sighting_order, index, o->now);
	return 0;
}

/* ---- look-ups -------------------------------------------------------------------------------- */

uint32_t dso_sightings__image(struct dso_opener *o, const struct wanted *w, int root,
			      uint64_t *generation)
{
	uint32_t index = find_sighting(o, w, dso_roots__serial(o, root));
	const struct sighting *s;

	if (index == HASHMAP_NONE)
		return HASHMAP_NONE;
	lru__use(&o->sighting_order, index, o->now);
	s = &o->sightings.data[index];
	/* what was closed is opened again if there is room for it, and else known all the same */
	if (o->images.data[s->image].fd < 0 && w->build_id.size &&
	    !dso_images__make_fd_room(o, o->images.data[s->image].owner))
		return s->image;
	if (!dso_images__is_unchanged(o, s->image))
		return HASHMAP_NONE;
	*generation = s->generation;
	return s->image;
}

uint32_t dso_sightings__image_by_identity(struct dso_opener *o, const struct wanted *w)
{
	uint32_t index;

	hashmap_each(&o->by_numbers, hash_wanted(w), index)
	{
		const struct sighting *s = &o->sightings.data[index];

		if (s->generation != w->generation || !has_numbers(s, w))
			continue;
		lru__use(&o->sighting_order, index, o->now);
		return s->image;
	}
	return HASHMAP_NONE;
}
