/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/jit_sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vec.h"
#include "process/jit_piece.h"
#include "stream/clock.h"

#define FILES_MAX (1u << 16) /* at one time; more are those of a damaged recording */

struct jit_sources {
	VEC(struct jit_source) files; /* by number */
	struct clock clock;	      /* of jitdumps that use the TSC */
};

struct jit_sources *jit_sources__new(void)
{
	return calloc(1, sizeof(struct jit_sources));
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
	vec_free(&s->files);
	free(s);
}

size_t jit_sources__count(const struct jit_sources *s)
{
	return s->files.count;
}

/* Where the file of this number is, or would be. */
static size_t index_of(const struct jit_sources *s, uint32_t file)
{
	return partition_point(s->files.data, s->files.count, f, f->file < file);
}

struct jit_source *jit_sources__get(struct jit_sources *s, uint32_t file)
{
	size_t i = index_of(s, file);

	return i < s->files.count && s->files.data[i].file == file ? &s->files.data[i] : NULL;
}

/* NULL: no memory, or too many. */
static struct jit_source *add_source(struct jit_sources *s, uint32_t file, int *err)
{
	size_t i = index_of(s, file);

	*err = 0;
	if (i < s->files.count && s->files.data[i].file == file)
		return &s->files.data[i];
	if (s->files.count >= FILES_MAX)
		return NULL;
	*err = vec_push(&s->files, (struct jit_source){});
	if (*err)
		return NULL;
	memmove(&s->files.data[i + 1], &s->files.data[i],
		(s->files.count - 1 - i) * sizeof(*s->files.data));
	s->files.data[i] = (struct jit_source){.file = file};
	return &s->files.data[i];
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
	if (!jit_file_state_is_followed(e->state) || source->code)
		return 0;
	source->code = jit_code__new(e->kind == JIT_FILE_DUMP ? JIT_CODE_DUMP : JIT_CODE_MAP);
	return source->code ? 0 : -ENOMEM;
}

static bool is_among(const uint32_t *files, size_t count, uint32_t file)
{
	for (size_t i = 0; i < count; i++)
		if (files[i] == file)
			return true;
	return false;
}

void jit_sources__keep(struct jit_sources *s, const uint32_t *files, size_t count, uint32_t last)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->files.count; i++) {
		struct jit_source *source = &s->files.data[i];

		if (source->file > last || is_among(files, count, source->file))
			s->files.data[kept++] = *source;
		else
			free_source(source);
	}
	s->files.count = kept;
}

static int add_bytes(struct jit_sources *s, const struct jit_bytes_event *e)
{
	const struct jit_piece piece = jit_piece_of(e);
	struct jit_source *source = jit_sources__get(s, e->file);
	int err;

	if (!source || !source->code)
		return 0;
	err = jit_code__feed(source->code, &piece);
	if (err && err != -ENOMEM) {
		source->state = err == -E2BIG ? JIT_FILE_STATE_TOO_BIG : JIT_FILE_STATE_BAD;
		err = 0;
	}
	return err;
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
	default:
		return 0;
	}
}

static uint64_t tsc_to_monotonic(void *context, uint64_t tsc)
{
	const struct jit_sources *s = context;

	return clock__to_monotonic(&s->clock, tsc);
}

int jit_sources__settle(struct jit_sources *s)
{
	int err = 0;

	for (size_t i = 0; i < s->files.count && !err; i++)
		if (s->files.data[i].code)
			err = jit_code__settle(s->files.data[i].code, tsc_to_monotonic, s);
	return err;
}
