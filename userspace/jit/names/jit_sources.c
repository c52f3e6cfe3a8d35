/* SPDX-License-Identifier: BSD-2-Clause */
#include "jit/names/jit_sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/map.h"
#include "stream/clock.h"
#include "tenants/quota.h"

#define ROOM_ROUNDS 16	       /* files that room is made in, at most, for one piece */
#define FILES_MAX   (1u << 16) /* at one time; the others are left out */

DEFINE_MAP_BY(source_map, struct jit_source, uint32_t, file);

struct jit_sources {
	struct source_map files;
	struct quota memory;
	struct clock clock; /* of jitdumps that use the TSC */
	bool keeps_text;
};

struct jit_sources *jit_sources__new(void)
{
	struct jit_sources *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	quota__init(&s->memory, QUOTA_JIT_NAMES);
	return s;
}

void jit_sources__limit(struct jit_sources *s, uint64_t user, uint64_t all)
{
	s->memory.user.limit = user;
	s->memory.all.limit = all;
}

void jit_sources__keep_text(struct jit_sources *s)
{
	s->keeps_text = true;
}

static void free_source(struct jit_source *source)
{
	jit_code__free(source->code);
	free(source->path);
}

void jit_sources__free(struct jit_sources *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->files.count; i++)
		free_source(&s->files.data[i]);
	source_map__fini(&s->files);
	free(s);
}

/* ---- budgets --------------------------------------------------------------------------------- */

/* Its present size. */
static void charge(struct jit_sources *s, struct jit_source *source, uint64_t memory)
{
	quota__give(&s->memory, source->user, source->memory);
	quota__take(&s->memory, source->user, memory, 0);
	source->memory = memory;
}

/* Does its user have all that a user gets, or all together? FOLLOWED: neither. */
static enum jit_file_state limit_of(const struct jit_sources *s, const struct jit_source *source)
{
	switch (quota__refusal(&s->memory, source->user, 1, 0)) {
	case OUTSIDE_BY_USER:
		return JIT_FILE_STATE_USER_LIMIT;
	case OUTSIDE_BY_ALL:
		return JIT_FILE_STATE_LIMIT;
	default:
		return JIT_FILE_STATE_FOLLOWED;
	}
}

/* ---- files ----------------------------------------------------------------------------------- */

struct jit_source *jit_sources__get(struct jit_sources *s, uint32_t file)
{
	return source_map__find(&s->files, file);
}

/* NULL: no memory, or too many. */
static struct jit_source *add_source(struct jit_sources *s, uint32_t file, int *err)
{
	struct jit_source *source = jit_sources__get(s, file);

	*err = 0;
	if (source || s->files.count >= FILES_MAX)
		return source;
	source = source_map__need(&s->files, &(struct jit_source){.file = file}, NULL);
	*err = source ? 0 : -ENOMEM;
	return source;
}

static int add_file(struct jit_sources *s, const struct jit_file_event *e)
{
	int err;
	struct jit_source *source = add_source(s, e->file, &err);

	if (!source)
		return err;
	if (*e->path) {
		char *path = strdup(e->path);

		if (!path)
			return -ENOMEM;
		free(source->path);
		source->path = path;
	}
	source->state = e->state;
	if (source->code && e->kind == JIT_FILE_DUMP && e->state != JIT_FILE_STATE_FOLLOWED)
		return jit_code__lose(source->code, 0, UINT64_MAX); /* it is not read any more */
	if (!source->code)
		source->user = e->user;
	if (!jit_file_state_is_followed(e->state) || source->code)
		return 0;
	source->code = jit_code__new(e->kind == JIT_FILE_DUMP ? JIT_CODE_DUMP : JIT_CODE_MAP);
	if (source->code && s->keeps_text)
		jit_code__keep_text(source->code);
	return source->code ? 0 : -ENOMEM;
}

void jit_sources__keep(struct jit_sources *s, const uint32_t *files, size_t count, uint32_t last)
{
	_cleanup_free_ bool *keep = calloc(s->files.count + 1, sizeof(*keep));
	size_t kept = 0;

	if (!keep)
		return; /* all of them, until the next window */
	for (size_t i = 0; i < count; i++) {
		const struct jit_source *source = jit_sources__get(s, files[i]);

		if (source)
			keep[source - s->files.data] = true;
	}
	for (size_t i = 0; i < s->files.count; i++) {
		struct jit_source *source = &s->files.data[i];

		if (source->file > last || keep[i]) {
			s->files.data[kept++] = *source;
			continue;
		}
		charge(s, source, 0);
		free_source(source);
	}
	s->files.count = kept;
	source_map__reindex(&s->files);
}

static uint64_t tsc_to_monotonic(void *context, uint64_t tsc)
{
	const struct jit_sources *s = context;

	return s->clock.count ? clock__to_monotonic(&s->clock, tsc) : UINT64_MAX;
}

/* ---- room ------------------------------------------------------------------------------------ */

/* Of the user of `source`, or of the account with the most. NULL: none. */
static struct jit_source *largest_of(struct jit_sources *s, const struct jit_source *source,
				     bool of_user)
{
	uint32_t most = quota__most(&s->memory, QUOTA_NOBODY, 0);
	struct jit_source *largest = NULL;

	for (size_t i = 0; i < s->files.count; i++) {
		struct jit_source *other = &s->files.data[i];

		if (other->code && other->memory &&
		    (of_user ? other->user == source->user
			     : quota__is_of(&s->memory, most, other->user)) &&
		    (!largest || other->memory > largest->memory))
			largest = other;
	}
	return largest;
}

static void note_left(struct jit_source *source, enum jit_file_state why, uint64_t time)
{
	source->left = why;
	source->left_at = time;
}

/* Its machine code goes first, then a quarter of its memory. */
static int shrink(struct jit_sources *s, struct jit_source *source, enum jit_file_state why,
		  uint64_t time)
{
	size_t memory = source->memory - source->memory / 4;
	uint64_t living = 0;
	int err;

	if (jit_code__drop_text(source->code)) {
		charge(s, source, jit_code__memory(source->code));
		return 0;
	}
	note_left(source, why, time);
	err = jit_code__settle(source->code, tsc_to_monotonic, s)
		      ?: jit_code__shrink(source->code, memory, &living);

	log_debug(LOG_JIT,
		  "%s: over the limit of memory: %zu KB of %zu, %llu living functions forgotten",
		  source->path ? source->path : "a file", jit_code__memory(source->code) / 1024,
		  (size_t)source->memory / 1024, (unsigned long long)living);
	if (!err)
		charge(s, source, jit_code__memory(source->code));
	return err;
}

/* Where `source` is to grow. 0; 1: there is no room; -ENOMEM. */
static int make_room(struct jit_sources *s, const struct jit_source *source, uint64_t time)
{
	for (int round = 0; round < ROOM_ROUNDS; round++) {
		enum jit_file_state limit = limit_of(s, source);
		struct jit_source *largest;
		int err;

		if (limit == JIT_FILE_STATE_FOLLOWED)
			return 0;
		largest = largest_of(s, source, limit == JIT_FILE_STATE_USER_LIMIT);
		if (!largest)
			return 1;
		err = shrink(s, largest, limit, time);
		if (err)
			return err;
	}
	return limit_of(s, source) == JIT_FILE_STATE_FOLLOWED ? 0 : 1;
}

/* The piece is left out. */
static int lose(struct jit_sources *s, struct jit_source *source, const struct jit_piece *piece)
{
	enum jit_file_state why = limit_of(s, source);

	note_left(source, why == JIT_FILE_STATE_FOLLOWED ? JIT_FILE_STATE_TOO_BIG : why,
		  piece->after);
	return jit_code__lose(source->code, piece->after, piece->before);
}

/* The file has too many entries, or it is no jitdump. */
static int leave(struct jit_source *source, int why, uint64_t time)
{
	if (why == -ENOMEM)
		return why;
	source->state = why == -E2BIG ? JIT_FILE_STATE_TOO_BIG : JIT_FILE_STATE_BAD;
	if (why == -E2BIG)
		note_left(source, JIT_FILE_STATE_TOO_BIG, time);
	return 0;
}

static int add_bytes(struct jit_sources *s, const struct jit_bytes_event *e)
{
	const struct jit_piece piece = jit_piece_of(e);
	struct jit_source *source = jit_sources__get(s, e->file);
	int err;

	if (!source || !source->code)
		return 0;
	err = e->flags & JIT_BYTES_LOST ? 1 : make_room(s, source, piece.after);
	if (err)
		return err < 0 ? err : lose(s, source, &piece);
	err = jit_code__feed(source->code, &piece);
	if (err)
		return leave(source, err, piece.after);
	charge(s, source, jit_code__memory(source->code));
	return 0;
}

static int set_clock(struct jit_sources *s, const struct jit_clock_event *e)
{
	struct jit_source *source = jit_sources__get(s, e->file);

	if (source && source->code)
		jit_code__set_clock(source->code, e->ahead, e->known);
	return 0;
}

int jit_sources__event(struct jit_sources *s, const struct event_header *event)
{
	const void *e = event;

	switch (event->type) {
	case EVENT_CLOCK_ANCHOR:
		clock__observe(&s->clock, e);
		return 0;
	case EVENT_JIT_FILE:
		return add_file(s, e);
	case EVENT_JIT_BYTES:
		return add_bytes(s, e);
	case EVENT_JIT_CLOCK:
		return set_clock(s, e);
	default:
		return 0;
	}
}

int jit_sources__settle(struct jit_sources *s)
{
	int err = 0;

	for (size_t i = 0; i < s->files.count && !err; i++) {
		s->files.data[i].was_read = s->files.data[i].noted = false;
		if (s->files.data[i].code)
			err = jit_code__settle(s->files.data[i].code, tsc_to_monotonic, s);
	}
	return err;
}

int jit_sources__forget(struct jit_sources *s, uint64_t horizon)
{
	int err = jit_sources__settle(s);

	for (size_t i = 0; i < s->files.count && !err; i++) {
		struct jit_source *source = &s->files.data[i];

		if (source->left != JIT_FILE_STATE_NONE && source->left_at < horizon)
			source->left = JIT_FILE_STATE_NONE;
		if (!source->code)
			continue;
		err = jit_code__forget(source->code, horizon);
		if (!err)
			charge(s, source, jit_code__memory(source->code));
	}
	return err;
}
