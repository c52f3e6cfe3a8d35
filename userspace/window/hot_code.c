/* SPDX-License-Identifier: BSD-2-Clause */
#include "window/hot_code.h"

#include <string.h>

#include "base/order.h"
#include "stream/code_events.h"

void hot_code__fini(struct hot_code *h)
{
	vec_free(&h->bytes);
	vec_free(&h->functions);
	vec_free(&h->sources);
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

int hot_code__add_source(struct hot_code *h, const struct symbolizer_source *source)
{
	size_t path_size = strlen(source->path) + 1;
	struct hot_source s = {.path = h->texts.count,
			       .text = h->texts.count + path_size,
			       .size = source->size,
			       .state = source->state};

	return vec_append(&h->texts, source->path, path_size)
		       ?: vec_append(&h->texts, source->text, source->size)
		       ?: vec_push(&h->sources, s);
}

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
						   .state = s->state};

		if (s->size > limit - counts->bytes) {
			counts->left_sources++;
			counts->left_bytes += s->size;
			continue;
		}
		counts->bytes += s->size;
		err = source_text__emit(&source, time, push, context);
	}
	return err;
}

int hot_code__emit(struct hot_code *h, uint64_t limit, uint64_t time, event_push_fn push,
		   void *context, struct hot_code_counts *counts)
{
	int err = 0;

	vec_sort(&h->functions, compare_functions);
	for (size_t i = 0; i < h->functions.count && !err; i++) {
		const struct hot_function *f = &h->functions.data[i];

		if (f->size > limit - counts->bytes) {
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
