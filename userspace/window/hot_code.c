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
	enum source_state state; /* of a script: the worst, or TEXTS_DIFFER */
};

#define TEXTS_DIFFER SOURCE_STATE_COUNT

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
	return (struct numbered_source){.path = h->texts.data + s->path, .root = root, .source = s};
}

static bool same_text(const struct hot_code *h, const struct hot_source *a,
		      const struct hot_source *b)
{
	return a->size == b->size &&
	       !memcmp(h->texts.data + a->text, h->texts.data + b->text, a->size);
}

static bool is_in_root(const struct hot_source *s, int root_fd)
{
	return s->root_fd == root_fd && !s->is_script;
}

static size_t count_in_root(const struct hot_code *h, int root_fd)
{
	size_t count = 0;

	for (size_t i = 0; i < h->sources.count; i++)
		count += is_in_root(&h->sources.data[i], root_fd);
	return count;
}

/*
 * Have both roots the same paths, with one text each? A path that one of them alone has is not shared: a
 * program of the other may name it in code that is not hot.
 */
static bool fits(const struct hot_code *h, const struct numbered_map *known, int root_fd,
		 const struct hot_root *other)
{
	if (count_in_root(h, root_fd) != count_in_root(h, other->fd))
		return false;
	for (size_t i = 0; i < h->sources.count; i++) {
		const struct hot_source *s = &h->sources.data[i];
		const struct numbered_source wanted = numbered(h, s, other->number);
		const struct numbered_source *same;

		if (!is_in_root(s, root_fd))
			continue;
		same = numbered_map__find(known, &wanted);
		if (!same || s->state != same->source->state || !same_text(h, s, same->source))
			return false;
	}
	return true;
}

static uint8_t choose_number(const struct hot_code *h, const struct numbered_map *known,
			     int root_fd, uint8_t next)
{
	for (size_t i = 0; i < h->roots.count; i++)
		if (h->roots.data[i].number != SOURCE_ROOT_NONE &&
		    fits(h, known, root_fd, &h->roots.data[i]))
			return h->roots.data[i].number;
	return next <= SOURCE_ROOT_LAST ? next : SOURCE_ROOT_NONE;
}

/* Roots beyond the last number have no texts. *next: the first number that no root has. */
static int number_root(struct hot_code *h, struct numbered_map *known, int root_fd, uint8_t *next)
{
	const uint8_t number = choose_number(h, known, root_fd, *next);
	int err = 0;

	*next += number == *next;
	for (size_t i = 0; i < h->sources.count && !err; i++) {
		struct hot_source *s = &h->sources.data[i];
		const struct numbered_source entry = numbered(h, s, number);

		if (!is_in_root(s, root_fd))
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

/* The texts of one path in several roots. That it could not be read in one of them may mean another text. */
static void join_script(const struct hot_code *h, struct numbered_source *all,
			const struct hot_source *s, size_t *several)
{
	enum source_state state = s->size ? s->state : SOURCE_CHANGED;

	if (!s->size && s->root_fd < 0)
		return;
	if (s->size && !all->source)
		all->source = s;
	if (s->size && !same_text(h, s, all->source))
		state = TEXTS_DIFFER;
	*several += state == TEXTS_DIFFER && all->state != TEXTS_DIFFER;
	if (state > all->state)
		all->state = state;
}

static int settle_scripts(struct hot_code *h, size_t *several)
{
	struct numbered_map known = {};
	int err = 0;

	for (size_t i = 0; i < h->sources.count && !err; i++) {
		struct hot_source *s = &h->sources.data[i];
		struct numbered_source entry = numbered(h, s, SOURCE_ROOT_SCRIPTS), *all;

		if (!s->is_script)
			continue;
		s->root = SOURCE_ROOT_SCRIPTS;
		entry.source = NULL;
		all = numbered_map__need(&known, &entry, NULL);
		if (all)
			join_script(h, all, s, several);
		else
			err = -ENOMEM;
	}
	for (size_t i = 0; i < h->sources.count && !err; i++) {
		struct hot_source *s = &h->sources.data[i];
		const struct numbered_source entry = numbered(h, s, SOURCE_ROOT_SCRIPTS);

		if (!s->is_script)
			continue;
		s->state = numbered_map__find(&known, &entry)->state;
		if (s->state == TEXTS_DIFFER)
			s->size = 0;
	}
	numbered_map__fini(&known);
	return err;
}

/* Of several roots with one number the first one's text is emitted. */
static int drop_repeated(struct hot_code *h)
{
	struct numbered_map known = {};
	bool is_new = true;
	int err = 0;

	for (size_t i = 0; i < h->sources.count && !err; i++) {
		struct hot_source *s = &h->sources.data[i];
		const struct numbered_source entry = numbered(h, s, s->root);

		if (!s->size || s->root == SOURCE_ROOT_NONE)
			continue;
		if (!numbered_map__need(&known, &entry, &is_new))
			err = -ENOMEM;
		if (!is_new)
			s->size = 0;
	}
	numbered_map__fini(&known);
	return err;
}

int hot_code__number_roots(struct hot_code *h, size_t *several)
{
	struct numbered_map known = {};
	uint8_t next = 0;
	int err = settle_scripts(h, several);

	for (size_t i = 0; i < h->sources.count && !err; i++) {
		struct hot_source *s = &h->sources.data[i];

		if (s->is_script)
			continue;
		if (s->root_fd < 0)
			s->root = SOURCE_ROOT_ALL;
		else if (!has_number(h, s->root_fd))
			err = number_root(h, &known, s->root_fd, &next);
	}
	numbered_map__fini(&known);
	return err ?: drop_repeated(h);
}

uint8_t hot_code__root(const struct hot_code *h, int root_fd)
{
	for (size_t i = 0; i < h->roots.count; i++)
		if (h->roots.data[i].fd == root_fd)
			return h->roots.data[i].number;
	return h->roots.count ? SOURCE_ROOT_NONE : 0;
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
	int err = 0;

	for (size_t i = 0; i < h->sources.count && !err; i++) {
		const struct hot_source *s = &h->sources.data[i];
		const struct source_text source = {.path = h->texts.data + s->path,
						   .text = h->texts.data + s->text,
						   .size = s->size,
						   .state = s->state,
						   .root = s->root};

		if (!s->size)
			continue;
		counts->sources++;
		if (s->root == SOURCE_ROOT_NONE || s->size > limit - counts->bytes) {
			counts->left_sources++;
			counts->left_bytes += s->size;
			continue;
		}
		counts->bytes += s->size;
		err = source_text__emit(&source, time, push, context);
	}
	return err;
}

/* A part of the room is the sources', as far as they fit in: code is often larger. */
static uint64_t room_of_code(const struct hot_code *h, uint64_t limit)
{
	const uint64_t part = limit / SOURCES_PART;
	uint64_t sources = 0;

	for (size_t i = 0; i < h->sources.count; i++)
		if (h->sources.data[i].root != SOURCE_ROOT_NONE &&
		    h->sources.data[i].size <= part - sources)
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
