/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of imported files as locations of a profile. */
#include "import/frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file_url.h"

struct frame_key {
	const struct frame *frame;
	const struct profile_line *lines;
	uint32_t line_count;
};

static bool same_frame(const struct frame *a, const struct frame *b)
{
	return a->dso.v == b->dso.v && a->category == b->category && a->process.v == b->process.v &&
	       a->address == b->address && a->elf_address == b->elf_address && a->tier == b->tier &&
	       a->ambiguous == b->ambiguous;
}

static bool frame_equal(const void *owner, uint32_t index, const void *key)
{
	const struct frames *f = owner;
	const struct known_frame *known = &f->known.data[index];
	const struct frame_key *k = key;

	return known->line_count == k->line_count && same_frame(&known->frame, k->frame) &&
	       (!k->line_count || !memcmp(&f->lines.data[known->first_line], k->lines,
					  k->line_count * sizeof(*k->lines)));
}

static uint64_t frame_hash(const struct frame_key *k)
{
	uint64_t hash =
		hash_combine(hash_u64(k->frame->address),
			     hash_u64((uint64_t)k->frame->dso.v << 32 | k->frame->process.v));

	return k->line_count
		       ? hash_combine(hash, hash_bytes(k->lines, k->line_count * sizeof(*k->lines)))
		       : hash;
}

void frames__init(struct frames *f, struct profile_builder *b)
{
	*f = (struct frames){.b = b};
	hashmap__init(&f->map, frame_equal, f);
}

void frames__fini(struct frames *f)
{
	vec_free(&f->known);
	vec_free(&f->lines);
	hashmap__fini(&f->map);
}

/* Is the address taken, by a frame with other lines? Then it is another version of it. */
static struct location_id new_location(struct frames *f, const struct frame *frame)
{
	size_t before = profile_builder__location_count(f->b);
	struct location_id id = profile_builder__location(f->b, frame->dso, frame->address,
							  frame->process, frame->category);

	if (!id.v || profile_builder__location_count(f->b) > before)
		return id;
	return profile_builder__version(f->b, id, ++f->versions);
}

static int remember(struct frames *f, const struct frame_key *key, uint64_t hash,
		    struct location_id location)
{
	struct known_frame known = {location, (uint32_t)f->lines.count, key->line_count,
				    *key->frame};
	int err = f->known.count >= HASHMAP_NONE || f->lines.count + key->line_count > UINT32_MAX
			  ? -ENOMEM
			  : 0;

	for (uint32_t i = 0; i < key->line_count && !err; i++)
		err = vec_push(&f->lines, key->lines[i]);
	if (!err)
		err = vec_push(&f->known, known);
	return err ? err : hashmap__add(&f->map, hash, (uint32_t)f->known.count - 1);
}

struct location_id frames__location(struct frames *f, const struct frame *frame,
				    const struct profile_line *lines, uint32_t line_count)
{
	const struct frame_key key = {frame, lines, line_count};
	uint64_t hash = frame_hash(&key);
	uint32_t found = hashmap__find(&f->map, hash, &key);
	struct location_id id;

	if (found != HASHMAP_NONE)
		return f->known.data[found].location;
	id = new_location(f, frame);
	if (!id.v || remember(f, &key, hash, id))
		return (struct location_id){0};
	profile_builder__resolve(f->b, id, frame->elf_address, lines, line_count);
	if (frame->tier != CODE_TIER_NONE || frame->ambiguous)
		profile_builder__code(f->b, id, frame->tier, frame->ambiguous);
	return id;
}

struct dso_id frames__dso(struct frames *f, enum dso_kind kind, const char *path, uint64_t number)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash && slash[1] ? slash + 1 : path;
	struct profile_dso dso = {
		.kind = kind,
		.path = profile_builder__string(f->b, path),
		.name = profile_builder__string(f->b, name),
		.is_library = strstr(name, ".so") != NULL,
		.file_state = FILE_STATE_UNOPENED,
		.symbol_state = SYMBOL_STATE_RESOLVED,
		.inode = number,
	};

	return profile_builder__dso(f->b, &dso);
}

struct function_id frames__function(struct frames *f, const char *name, struct dso_id dso,
				    struct string_id file, uint32_t line, uint32_t column)
{
	const struct profile_function function = {
		.name = profile_builder__string(f->b, *name ? name : "(anonymous)"),
		.dso = dso,
		.address = PROFILE_UNKNOWN_ADDRESS,
		.definition_file = file,
		.definition_line = line,
		.definition_column = column,
	};

	return profile_builder__function(f->b, &function);
}

struct string_id frames__file(struct frames *f, const char *url)
{
	_cleanup_free_ char *path = file_url_decode(url);

	return path ? profile_builder__string(f->b, path) : (struct string_id){0};
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void frames__set_build_id(struct profile_dso *dso, const char *text)
{
	size_t size = strlen(text) / 2;

	if (!size || size > BUILD_ID_SIZE || strlen(text) % 2)
		return;
	for (size_t i = 0; i < size; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return;
		dso->build_id[i] = (uint8_t)(high << 4 | low);
	}
	dso->build_id_size = (uint8_t)size;
}
