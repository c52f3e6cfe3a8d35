/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One file a key in a directory of base/disk_cache. Two processes that write the same one leave one of
 * the two, whole: the loser's answers are missing, no more.
 *
 * Who asks again and again for the same modules keeps their files in memory, and writes what is new at the end or
 * when there is much of it: a file is written as a whole, so a few answers cost as much as all.
 */
#include "symbolize/symbol_cache.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/disk_cache.h"
#include "base/log.h"
#include "base/vec.h"
#include "symbolize/symbol_answers.h"

#define SUFFIX	  ".symbols"
#define NAME_SIZE (2 * SYMBOL_BUILD_ID_MAX + 1 + 16 + sizeof(SUFFIX))

_Static_assert(NAME_SIZE <= DISK_CACHE_NAME_SIZE, "names that the limit sees");

/* Answers to be written, of one key. */
struct pending {
	struct symbol_file_id id;
	struct symbol_answers *answers;
	bool committed; /* at least those that were added first */
};

/* A file that stays in memory. */
struct kept_image {
	struct symbol_file_id id;
	struct symbol_answers *image;
	size_t bytes;
	uint64_t used; /* the cache's count of uses then */
};

struct symbol_cache {
	struct disk_cache *files;
	VEC(struct pending) pending;
	size_t last; /* the pending one that was used last */
	VEC(struct kept_image) images;
	size_t kept_bytes; /* of images, and again of answers; 0: none are kept */
	uint64_t uses;
};

static struct symbol_cache *open_files(const char *path, uint64_t limit)
{
	const struct disk_cache_kind kind = {
		.directory = "symbols",
		.suffix = SUFFIX,
		.limit = limit,
		.file_limit = SYMBOL_CACHE_FILE_LIMIT,
	};
	struct symbol_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->files = path ? disk_cache__open_at(&kind, path) : disk_cache__open(&kind);
	if (c->files)
		return c;
	free(c);
	return NULL;
}

struct symbol_cache *symbol_cache__open(void)
{
	return open_files(NULL, SYMBOL_CACHE_LIMIT);
}

struct symbol_cache *symbol_cache__open_at(const char *path, uint64_t limit)
{
	return open_files(path, limit);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* false: nothing can be kept under such a key. */
static bool id_of_key(const struct symbol_cache_key *key, struct symbol_file_id *id)
{
	*id = (struct symbol_file_id){.debug_id = key->debug_id,
				      .build_id_size = key->build_id_size};
	if (!key->build_id_size || key->build_id_size > sizeof(id->build_id))
		return false;
	memcpy(id->build_id, key->build_id, key->build_id_size);
	return true;
}

static void file_name(const struct symbol_file_id *id, char name[NAME_SIZE])
{
	char *at = name;

	for (size_t i = 0; i < id->build_id_size; i++)
		at += snprintf(at, 3, "%02x", id->build_id[i]);
	snprintf(at, name + NAME_SIZE - at, "-%016llx" SUFFIX, (unsigned long long)id->debug_id);
}

/* What is known of a module. -ENOENT: nothing, or what there was has been thrown away; -ENOMEM. */
static int load_image(struct symbol_cache *c, const struct symbol_file_id *id,
		      struct symbol_answers **image)
{
	char name[NAME_SIZE];
	void *data = NULL;
	size_t size;
	int err;

	file_name(id, name);
	err = disk_cache__read(c->files, name, &data, &size);
	if (!err)
		err = symbol_answers__open(data, size, id, image);
	if (err == -EBADMSG) {
		log_debug(LOG_SYMBOLS, "cache: %s deleted: damaged, or of another version", name);
		disk_cache__delete(c->files, name);
	}
	return !err || err == -ENOMEM ? err : -ENOENT;
}

static bool same_id(const struct symbol_file_id *a, const struct symbol_file_id *b)
{
	return a->debug_id == b->debug_id && a->build_id_size == b->build_id_size &&
	       !memcmp(a->build_id, b->build_id, a->build_id_size);
}

/* ---- files in memory ------------------------------------------------------------------------- */

static void forget_image(struct symbol_cache *c, size_t number)
{
	symbol_answers__free(c->images.data[number].image);
	c->images.data[number] = c->images.data[--c->images.count];
}

static void forget_image_of(struct symbol_cache *c, const struct symbol_file_id *id)
{
	for (size_t i = 0; i < c->images.count; i++)
		if (same_id(&c->images.data[i].id, id)) {
			forget_image(c, i);
			return;
		}
}

static void keep_image_limit(struct symbol_cache *c)
{
	for (;;) {
		size_t sum = 0, oldest = 0;

		for (size_t i = 0; i < c->images.count; i++) {
			sum += c->images.data[i].bytes;
			if (c->images.data[i].used < c->images.data[oldest].used)
				oldest = i;
		}
		if (sum <= c->kept_bytes)
			return;
		forget_image(c, oldest);
	}
}

/*
 * What is known of a module: from memory, or its file. *borrowed: it stays the cache's, until the next call. As
 * load_image().
 */
static int find_image(struct symbol_cache *c, const struct symbol_file_id *id,
		      struct symbol_answers **image, bool *borrowed)
{
	struct kept_image kept = {.id = *id, .used = ++c->uses};
	int err;

	*borrowed = true;
	for (size_t i = 0; i < c->images.count; i++)
		if (same_id(&c->images.data[i].id, id)) {
			c->images.data[i].used = c->uses;
			*image = c->images.data[i].image;
			return 0;
		}
	err = load_image(c, id, image);
	if (!err) {
		kept.image = *image;
		kept.bytes = symbol_answers__size(*image) + sizeof(kept);
	}
	*borrowed = !err && kept.bytes <= c->kept_bytes && !vec_push(&c->images, kept);
	if (*borrowed)
		keep_image_limit(c); /* the newest is the last to go */
	return err;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* NULL: nothing was added under this key. */
static struct pending *find_pending(struct symbol_cache *c, const struct symbol_file_id *id)
{
	if (c->last < c->pending.count && same_id(&c->pending.data[c->last].id, id))
		return &c->pending.data[c->last];
	for (size_t i = 0; i < c->pending.count; i++) {
		if (same_id(&c->pending.data[i].id, id)) {
			c->last = i;
			return &c->pending.data[i];
		}
	}
	return NULL;
}

int symbol_cache__read(struct symbol_cache *c, const struct symbol_cache_key *key,
		       const uint64_t *addresses, size_t count, unsigned char *known,
		       symbol_sink_fn sink, void *context)
{
	struct symbol_answers *image = NULL;
	struct symbol_file_id id;
	struct pending *pending;
	bool borrowed;
	int err = 0;

	memset(known, 0, count);
	if (!id_of_key(key, &id))
		return 0;
	pending = find_pending(c, &id);
	if (pending && !pending->committed)
		pending = NULL;
	if (find_image(c, &id, &image, &borrowed)) /* what it cannot tell is found out again */
		image = NULL;
	for (size_t i = 0; i < count && !err; i++) {
		const struct symbol_result *result =
			pending ? symbol_answers__find(pending->answers, addresses[i]) : NULL;

		if (!result && image)
			result = symbol_answers__find(image, addresses[i]);
		if (!result)
			continue;
		known[i] = 1;
		err = sink(context, i, result);
	}
	if (!borrowed)
		symbol_answers__free(image);
	return err;
}

static struct pending *new_pending(struct symbol_cache *c, const struct symbol_file_id *id)
{
	struct pending pending = {.id = *id,
				  .answers = symbol_answers__new(SYMBOL_CACHE_FILE_LIMIT)};

	if (!pending.answers)
		return NULL;
	if (vec_push(&c->pending, pending)) {
		symbol_answers__free(pending.answers);
		return NULL;
	}
	c->last = c->pending.count - 1;
	return &c->pending.data[c->last];
}

int symbol_cache__add(struct symbol_cache *c, const struct symbol_cache_key *key, uint64_t address,
		      const struct symbol_result *result)
{
	struct symbol_file_id id;
	struct pending *pending;
	int err;

	if (!id_of_key(key, &id))
		return 0;
	pending = find_pending(c, &id);
	if (!pending)
		pending = new_pending(c, &id);
	if (!pending)
		return -ENOMEM;
	err = symbol_answers__add(pending->answers, address, result);
	return err == -EFBIG ? 0 : err; /* the cache is full, the answer is right all the same */
}

static int write_answers(struct symbol_cache *c, const struct symbol_file_id *id,
			 struct symbol_answers *answers)
{
	const void *data;
	struct symbol_answers *old;
	char name[NAME_SIZE];
	size_t size;
	int err = load_image(c, id, &old);

	if (!err) {
		err = symbol_answers__merge(answers, old);
		symbol_answers__free(old);
	}
	if (err && err != -ENOENT)
		return err;
	symbol_answers__encode(answers, id, &data, &size);
	file_name(id, name);
	err = disk_cache__write(c->files, name, data, size);
	log_debug(LOG_SYMBOLS, "cache: %s %s, %zu bytes", name, err < 0 ? "not written" : "written",
		  size);
	return err;
}

static int write_pending(struct symbol_cache *c, struct pending *pending)
{
	int err = write_answers(c, &pending->id, pending->answers);

	forget_image_of(c, &pending->id);
	symbol_answers__free(pending->answers);
	*pending = c->pending.data[--c->pending.count];
	return err;
}

/* Where answers are kept, so many of them that the rest is within the limit: those of whom there are most. */
static int write_most(struct symbol_cache *c)
{
	int err = 0;

	for (;;) {
		uint64_t sum = 0, most = 0;
		struct pending *largest = NULL;

		for (size_t i = 0; i < c->pending.count; i++) {
			uint64_t bytes = symbol_answers__size(c->pending.data[i].answers);

			sum += bytes;
			if (bytes > most && c->pending.data[i].committed) {
				most = bytes;
				largest = &c->pending.data[i];
			}
		}
		if (sum <= c->kept_bytes || !largest)
			return err;
		err = write_pending(c, largest);
	}
}

int symbol_cache__commit(struct symbol_cache *c, const struct symbol_cache_key *key)
{
	struct symbol_file_id id;
	struct pending *pending;

	if (!id_of_key(key, &id))
		return 0;
	pending = find_pending(c, &id);
	if (!pending)
		return 0;
	pending->committed = true;
	return c->kept_bytes ? write_most(c) : write_pending(c, pending);
}

/* ---- life ------------------------------------------------------------------------------------ */

void symbol_cache__keep(struct symbol_cache *c, size_t bytes)
{
	c->kept_bytes = bytes;
}

static void write_committed(struct symbol_cache *c)
{
	for (size_t i = c->pending.count; i-- > 0;)
		if (c->pending.data[i].committed)
			write_pending(c, &c->pending.data[i]);
}

void symbol_cache__free(struct symbol_cache *c)
{
	if (!c)
		return;
	write_committed(c);
	while (c->images.count)
		forget_image(c, c->images.count - 1);
	vec_free(&c->images);
	for (size_t i = 0; i < c->pending.count; i++)
		symbol_answers__free(c->pending.data[i].answers);
	vec_free(&c->pending);
	disk_cache__free(c->files);
	free(c);
}
