/* SPDX-License-Identifier: BSD-2-Clause */
#include "window/hot_code.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
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

struct placed_source {
	int root_fd;
	const char *path;
	struct hot_source *source;
};

DEFINE_ORDER(compare_placed, struct placed_source,
	     ASCENDING(source->is_script) ?: ASCENDING(root_fd) ?: strcmp(x->path, y->path)
		     ?: ASCENDING(source));

/* Its sources, which are in the order of their paths. */
struct placed_root {
	const struct placed_source *files;
	size_t count;
	const struct hot_source *hottest;
	uint8_t number;
	bool owns_number; /* is the first that has it */
};

DEFINE_ORDER(compare_roots, struct placed_root, ASCENDING(hottest));

static bool same_text(const struct hot_code *h, const struct hot_source *a,
		      const struct hot_source *b)
{
	return a->size == b->size &&
	       !memcmp(h->texts.data + a->text, h->texts.data + b->text, a->size);
}

/*
 * Have both roots the same paths, with one text each? A path that one of them alone has is not shared: a
 * program of the other may name it in code that is not hot.
 */
static bool same_files(const struct hot_code *h, const struct placed_root *a,
		       const struct placed_root *b)
{
	bool same = a->count == b->count;

	for (size_t i = 0; i < a->count && same; i++)
		same = !strcmp(a->files[i].path, b->files[i].path) &&
		       a->files[i].source->state == b->files[i].source->state &&
		       same_text(h, a->files[i].source, b->files[i].source);
	return same;
}

/* Of roots with one number the texts of the hottest are emitted. Those beyond the last number have none. */
static int number_root(struct hot_code *h, struct placed_root *roots, size_t i, uint8_t *next)
{
	struct placed_root *root = &roots[i];
	const struct placed_root *same = find_first(roots, i, r,
						    r->owns_number && same_files(h, r, root));

	root->owns_number = !same && *next <= SOURCE_ROOT_LAST;
	root->number = same ? same->number : root->owns_number ? (*next)++ : SOURCE_ROOT_NONE;
	for (size_t f = 0; f < root->count; f++) {
		root->files[f].source->root = root->number;
		if (same)
			root->files[f].source->size = 0;
	}
	return vec_push(&h->roots, ((struct hot_root){root->files->root_fd, root->number}));
}

/* The files of one root, or one script's. */
static size_t count_group(const struct placed_source *files, size_t count)
{
	size_t n = 1;

	while (n < count && files[n].source->is_script == files->source->is_script &&
	       (files->source->is_script ? !strcmp(files[n].path, files->path)
					 : files[n].root_fd == files->root_fd))
		n++;
	return n;
}

/*
 * The texts of one path in several roots: the first stays, in the worst state of all, or none if they
 * differ. That it could not be read in one of the roots may mean another text.
 */
static void join_script(const struct hot_code *h, const struct placed_source *files, size_t count,
			size_t *several)
{
	enum source_state worst = SOURCE_UNCHANGED;
	struct hot_source *first = NULL;
	bool differ = false;

	for (size_t i = 0; i < count; i++) {
		struct hot_source *s = files[i].source;

		if (s->size || s->root_fd >= 0)
			worst = max_u64(worst, s->size ? s->state : SOURCE_CHANGED);
		if (!s->size)
			continue;
		differ |= first && !same_text(h, s, first);
		if (first)
			s->size = 0;
		else
			first = s;
	}
	*several += differ;
	if (!first)
		return;
	first->state = worst;
	if (differ)
		first->size = 0;
}

static const struct hot_source *hottest_of(const struct placed_source *files, size_t count)
{
	const struct hot_source *hottest = files->source;

	for (size_t i = 1; i < count; i++)
		if (files[i].source < hottest)
			hottest = files[i].source;
	return hottest;
}

/* The sources are sorted, so that what belongs together is in one piece. */
static int number_sorted(struct hot_code *h, struct placed_source *all, size_t *several)
{
	VEC(struct placed_root) roots = {};
	uint8_t next = 0;
	int err = 0;

	for (size_t i = 0, n; i < h->sources.count && !err; i += n) {
		n = count_group(&all[i], h->sources.count - i);
		if (all[i].source->is_script)
			join_script(h, &all[i], n, several);
		else if (all[i].root_fd >= 0)
			err = vec_push(&roots,
				       ((struct placed_root){.files = &all[i],
							     .count = n,
							     .hottest = hottest_of(&all[i], n)}));
	}
	vec_sort(&roots, compare_roots);
	for (size_t i = 0; i < roots.count && !err; i++)
		err = number_root(h, roots.data, i, &next);
	vec_free(&roots);
	return err;
}

int hot_code__number_roots(struct hot_code *h, size_t *several)
{
	_cleanup_free_ struct placed_source *all = calloc(h->sources.count + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < h->sources.count; i++) {
		struct hot_source *s = &h->sources.data[i];

		s->root = s->is_script ? SOURCE_ROOT_SCRIPTS : SOURCE_ROOT_ALL;
		all[i] = (struct placed_source){s->is_script ? -1 : s->root_fd,
						h->texts.data + s->path, s};
	}
	qsort(all, h->sources.count, sizeof(*all), compare_placed);
	return number_sorted(h, all, several);
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
