/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/dso_sightings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc_task.h"

/*
 * Without the root and the generation, which rarely differ: they are compared afterwards. A stored
 * path has lost its " (deleted)", so it is hashed as it is: a file's own name may end like that.
 */
static uint64_t hash_sighting(const struct sighting *s, size_t path_length)
{
	const struct file_numbers *n = &s->numbers;

	return hash_combine(hash_bytes(s->path, path_length),
			    hash_combine(hash_u64(n->inode), (uint64_t)n->major << 32 | n->minor));
}

static bool may_be_generation(uint64_t a, uint64_t b)
{
	return a == b || !a || !b;
}

/* The root of a process that is gone is unknown. Then the generation has to be the same. */
static bool may_be_root(const struct sighting *known, const struct sighting *seen)
{
	const uint64_t generation = seen->numbers.generation;

	return known->root.v == seen->root.v ||
	       (!seen->root.v && generation && known->numbers.generation == generation);
}

/* What a mapping shows; the path is that of the mapping. */
static struct sighting sighting_by(const struct mmap_event *mapping, struct root_id root)
{
	return (struct sighting){
		.root = root, .numbers = mapping_numbers(mapping), .path = (char *)mapping->path};
}

static uint32_t find(const struct dso_sightings *s, const struct mmap_event *mapping,
		     struct root_id root)
{
	const struct sighting seen = sighting_by(mapping, root);
	uint32_t i;

	hashmap_each (&s->by_numbers, hash_sighting(&seen, mapping_path_length(seen.path)), i) {
		const struct sighting *known = &s->sightings.data[i];

		if (may_be_root(known, &seen) && same_inode(&known->numbers, &seen.numbers) &&
		    mapping_has_path(mapping, known->path) &&
		    may_be_generation(known->numbers.generation, seen.numbers.generation))
			break;
	}
	return i;
}

void dso_sightings__init(struct dso_sightings *s, const struct lru_clock *clock, size_t max)
{
	*s = (struct dso_sightings){};
	lru__init(&s->order, clock, max);
}

void dso_sightings__fini(struct dso_sightings *s)
{
	vec_free_with(&s->sightings, sighting, free(sighting->path));
	hashmap__fini(&s->by_numbers);
	hashmap__fini(&s->by_file);
	lru__fini(&s->order);
}

/* ---- coming and going ------------------------------------------------------------------------ */

static void forget(void *sightings, uint32_t i)
{
	struct dso_sightings *s = sightings;
	struct sighting *known = &s->sightings.data[i];

	hashmap__erase(&s->by_numbers, hash_sighting(known, strlen(known->path)), i);
	hashmap__erase(&s->by_file, hash_u64(known->file), i);
	free(known->path);
	known->path = NULL;
	lru__release(&s->order, i);
}

static uint32_t sighting_of(const struct dso_sightings *s, uint32_t file)
{
	uint32_t i;

	hashmap_each (&s->by_file, hash_u64(file), i)
		if (s->sightings.data[i].file == file)
			break;
	return i;
}

void dso_sightings__forget_file(struct dso_sightings *s, uint32_t file)
{
	uint32_t i;

	while ((i = sighting_of(s, file)) != HASHMAP_NONE)
		forget(s, i);
}

/* Takes its path on success. */
static int add(struct dso_sightings *s, const struct sighting *sighting)
{
	const uint64_t hash = hash_sighting(sighting, strlen(sighting->path));
	uint32_t i;
	int err = lru__take_in(&s->order, &s->sightings, 0, &i);

	if (err)
		return err;
	s->sightings.data[i] = *sighting;
	err = hashmap__add(&s->by_numbers, hash, i);
	if (!err) {
		err = hashmap__add(&s->by_file, hash_u64(sighting->file), i);
		if (err)
			hashmap__erase(&s->by_numbers, hash, i);
	}
	if (err) {
		s->sightings.data[i].path = NULL;
		lru__release(&s->order, i);
		return err;
	}
	lru__use(&s->order, i);
	return 0;
}

int dso_sightings__add(struct dso_sightings *s, const struct mmap_event *mapping,
		       struct root_id root, uint32_t file)
{
	struct sighting sighting = sighting_by(mapping, root);
	uint32_t known = find(s, mapping, root);
	int err;

	if (known != HASHMAP_NONE) { /* the file was overwritten, or closed meanwhile */
		sighting.numbers = s->sightings.data[known].numbers;
		forget(s, known);
	}
	if (!lru__make_room(&s->order, 0, forget, s))
		return 0;
	sighting.file = file;
	sighting.path = strndup(mapping->path, mapping_path_length(mapping->path));
	err = sighting.path ? add(s, &sighting) : -ENOMEM;
	if (err)
		free(sighting.path);
	return err;
}

const struct sighting *dso_sightings__find(struct dso_sightings *s,
					   const struct mmap_event *mapping, struct root_id root)
{
	uint32_t i = find(s, mapping, root);

	if (i == HASHMAP_NONE)
		return NULL;
	lru__use(&s->order, i);
	return &s->sightings.data[i];
}
