/* SPDX-License-Identifier: BSD-2-Clause */
#include "window/hot_code.h"

#include <errno.h>
#include <string.h>

#include "base/map.h"
#include "base/order.h"
#include "stream/code_events.h"

#define SOURCES_PART 4

void hot_code__fini(struct hot_code *h)
{
	vec_free(&h->bytes);
	vec_free(&h->functions);
	vec_free(&h->sources);
	vec_free(&h->roots);
	vec_free(&h->texts);
}

/* Does a function begin with this event? */
static bool begins(const struct event_header *event)
{
	return event->type == EVENT_CODE_TEXT && !((const struct code_text_event *)event)->offset;
}

int hot_code__add(struct hot_code *h, struct dso_id dso, const void *events, size_t size)
{
	size_t first = h->bytes.count;
	int err = vec_append(&h->bytes, (const char *)events, size);

	for (size_t at = first; at < h->bytes.count && !err;) {
		struct event_header *event = (void *)(h->bytes.data + at);
		struct hot_function f = {event->time, h->functions.count, at, 0};

		if (begins(event))
			err = vec_push(&h->functions, f);
		if (event->type == EVENT_CODE_TEXT)
			((struct code_text_event *)event)->dso = dso.v;
		else if (event->type == EVENT_CODE_LINES)
			((struct code_lines_event *)event)->dso = dso.v;
		if (h->functions.count)
			h->functions.data[h->functions.count - 1].size += event->size;
		at += event->size;
	}
	return err;
}

int hot_code__add_source(struct hot_code *h, const struct symbolizer_source *source, bool is_script)
{
	size_t path_size = strlen(source->path) + 1;
	struct hot_source s = {.path = h->texts.count,
			       .text = h->texts.count + path_size,
			       .size = source->size,
			       .state = source->state,
			       .root_fd = source->root_fd,
			       .is_script = is_script};

	return vec_append(&h->texts, source->path, path_size)
		       ?: vec_append(&h->texts, source->text ?: "", source->size)
		       ?: vec_push(&h->sources, s);
}

/* ---- roots ----------------------------------------------------------------------------------- */

/* What a path is in all roots with a number. */
struct numbered_source {
	const char *path;
	uint8_t root;
	const struct hot_source *source;
};

static uint64_t hash_numbered(const struct numbered_source *n)
{
	return hash_combine(hash_string(n->path), n->root);
}

static bool equal_numbered(const struct numbered_source *a, const struct numbered_source *b)
{
	return a->root == b->root && !strcmp(a->path, b->path);
}

DEFINE_MAP_OF(numbered_map, struct numbered_source, hash_numbered, equal_numbered);

static struct numbered_source numbered(const struct hot_code *h, const struct hot_source *s,
				       uint8_t root)
{
	return (struct numbered_source){h->texts.data + s->path, root, s};
}

static bool same_contents(const struct hot_code *h, const struct hot_source *a,
			  const struct hot_source *b)
{
	return a->size == b->size && a->state == b->state &&
	       !memcmp(h->texts.data + a->text, h->texts.data + b->text, a->size);
}

/* Would all paths of the root be one text each with this number? */
static bool fits(const struct hot_code *h, const struct numbered_map *known, int root_fd,
		 uint8_t number)
{
	for (size_t i = 0; i < h->sources.count; i++) {
		const struct hot_source *s = &h->sources.data[i];
		const struct numbered_source wanted = numbered(h, s, number);
		const struct numbered_source *other;

		if (s->root_fd != root_fd || s->is_script)
			continue;
		other = numbered_map__find(known, &wanted);
		if (other && !same_contents(h, s, other->source))
			return false;
	}
	return true;
}

/* Roots beyond the last number have no texts. */
static int number_root(struct hot_code *h, struct numbered_map *known, int root_fd)
{
	uint8_t number = 0;
	int err = 0;

	while (number < SOURCE_ROOT_NONE && !fits(h, known, root_fd, number))
		number++;
	for (size_t i = 0; i < h->sources.count && !err; i++) {
		struct hot_source *s = &h->sources.data[i];
		const struct numbered_source entry = numbered(h, s, number);

		if (s->root_fd != root_fd || s->is_script)
			continue;
		s->root = number;
		if (!numbered_map__need(known, &entry, NULL))
			err = -ENOMEM;
	}
	return err ?: vec_push(&h->roots, ((struct hot_root){root_fd, number}));
}

static bool has_number(const struct hot_code *h, int root_fd)
{
	return any_of(h->roots.data, h->roots.count, r, r->fd == root_fd);
}

/* They are of all dsos. */
static int settle_scripts(struct hot_code *h, size_t *several)
{
	struct numbered_map known = {};
	int err = 0;

	for (size_t i = 0; i < h->sources.count && !err; i++) {
		struct hot_source *s = &h->sources.data[i];
		struct numbered_source entry = numbered(h, s, SOURCE_ROOT_ALL), *other;

		if (!s->is_script)
			continue;
		s->root = SOURCE_ROOT_ALL;
		other = numbered_map__need(&known, &entry, NULL);
		err = other ? 0 : -ENOMEM;
		if (err || !other->source || same_contents(h, s, other->source))
			continue;
		(*several)++;
		other->source = NULL;
	}
	for (size_t i = 0; i < h->sources.count && !err; i++) {
		struct hot_source *s = &h->sources.data[i];
		const struct numbered_source entry = numbered(h, s, SOURCE_ROOT_ALL);

		if (s->is_script && !numbered_map__find(&known, &entry)->source)
			s->size = 0;
	}
	numbered_map__fini(&known);
	return err;
}

int hot_code__number_roots(struct hot_code *h, size_t *several)
{
	struct numbered_map known = {};
	int err = settle_scripts(h, several);

	for (size_t i = 0; i < h->sources.count && !err; i++) {
		struct hot_source *s = &h->sources.data[i];

		if (s->is_script)
			continue;
		if (s->root_fd < 0)
			s->root = SOURCE_ROOT_ALL;
		else if (!has_number(h, s->root_fd))
			err = number_root(h, &known, s->root_fd);
	}
	numbered_map__fini(&known);
	return err;
}

uint8_t hot_code__root(const struct hot_code *h, int root_fd)
{
	for (size_t i = 0; i < h->roots.count; i++)
		if (h->roots.data[i].fd == root_fd)
			return h->roots.data[i].number;
	return 0;
}

/* ---- emitting -------------------------------------------------------------------------------- */

DEFINE_ORDER(compare_functions, struct hot_function, DESCENDING(samples) ?: ASCENDING(number));

static int emit_function(const struct hot_code *h, const struct hot_function *f, uint64_t time,
			 event_push_fn push, void *context)
{
	int err = 0;

	for (size_t at = f->first; at < f->first + f->size && !err;) {
		struct event_header *event = (void *)(h->bytes.data + at);

		event->time = time;
		if (event->type != EVENT_SOURCE) /* a request, see symbolize/module_code.h */
			err = push(context, event);
		at += event->size;
	}
	return err;
}

static int emit_sources(const struct hot_code *h, uint64_t limit, uint64_t time, event_push_fn push,
			void *context, struct hot_code_counts *counts)
{
	struct numbered_map emitted = {};
	int err = 0;

	for (size_t i = 0; i < h->sources.count && !err; i++) {
		const struct hot_source *s = &h->sources.data[i];
		const struct numbered_source entry = numbered(h, s, s->root);
		bool is_new;
		const struct source_text source = {.path = h->texts.data + s->path,
						   .text = h->texts.data + s->text,
						   .size = s->size,
						   .state = s->state,
						   .root = s->root};

		if (!s->size || s->root == SOURCE_ROOT_NONE)
			continue;
		if (!numbered_map__need(&emitted, &entry, &is_new))
			err = -ENOMEM;
		if (err || !is_new)
			continue;
		counts->sources++;
		if (s->size > limit - counts->bytes) {
			counts->left_sources++;
			counts->left_bytes += s->size;
			continue;
		}
		counts->bytes += s->size;
		err = source_text__emit(&source, time, push, context);
	}
	numbered_map__fini(&emitted);
	return err;
}

/* A part of the room is the sources', as far as they fit in: code is often larger. */
static uint64_t room_of_code(const struct hot_code *h, uint64_t limit)
{
	const uint64_t part = limit / SOURCES_PART;
	uint64_t sources = 0;

	for (size_t i = 0; i < h->sources.count; i++)
		if (h->sources.data[i].size <= part - sources)
			sources += h->sources.data[i].size;
	return limit - sources;
}

int hot_code__emit(struct hot_code *h, uint64_t limit, uint64_t time, event_push_fn push,
		   void *context, struct hot_code_counts *counts)
{
	const uint64_t room = room_of_code(h, limit);
	int err = 0;

	vec_sort(&h->functions, compare_functions);
	for (size_t i = 0; i < h->functions.count && !err; i++) {
		const struct hot_function *f = &h->functions.data[i];

		if (f->size > room - counts->bytes) {
			counts->left_functions++;
			counts->left_bytes += f->size;
			continue;
		}
		counts->functions++;
		counts->bytes += f->size;
		err = emit_function(h, f, time, push, context);
	}
	return err ?: emit_sources(h, limit, time, push, context, counts);
}
