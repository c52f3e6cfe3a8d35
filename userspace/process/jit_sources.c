/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/jit_sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "stream/clock.h"

#define FILES_MAX (1u << 20) /* numbers above are those of a damaged recording */

struct jit_sources {
	VEC(struct jit_source) files; /* by number; 0 is a placeholder */
	struct clock clock;	      /* of jitdumps that use the TSC */
};

struct jit_sources *jit_sources__new(void)
{
	return calloc(1, sizeof(struct jit_sources));
}

void jit_sources__free(struct jit_sources *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->files.count; i++) {
		jit_code__free(s->files.data[i].code);
		free(s->files.data[i].path);
	}
	vec_free(&s->files);
	free(s);
}

struct jit_source *jit_sources__get(struct jit_sources *s, uint32_t file)
{
	return file && file < s->files.count ? &s->files.data[file] : NULL;
}

static int add_file(struct jit_sources *s, const struct jit_file_event *e)
{
	struct jit_source *source;

	if (e->file >= FILES_MAX)
		return 0;
	while (s->files.count <= e->file)
		if (vec_push(&s->files, (struct jit_source){}))
			return -ENOMEM;
	source = &s->files.data[e->file];
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

static int add_bytes(struct jit_sources *s, const struct jit_bytes_event *e)
{
	const struct jit_piece piece = {
		.bytes = e->bytes,
		.size = e->size,
		.after = e->after,
		.before = e->before,
		.begins_snapshot = e->flags & JIT_SNAPSHOT_BEGIN,
		.ends_snapshot = e->flags & JIT_SNAPSHOT_END,
	};
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
