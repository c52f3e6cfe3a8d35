/* SPDX-License-Identifier: BSD-2-Clause */
#include "window/hot_code.h"

#include "base/order.h"

void hot_code__fini(struct hot_code *h)
{
	vec_free(&h->bytes);
	vec_free(&h->functions);
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
		else
			((struct code_lines_event *)event)->dso = dso.v;
		if (h->functions.count)
			h->functions.data[h->functions.count - 1].size += event->size;
		at += event->size;
	}
	return err;
}

DEFINE_ORDER(compare_functions, struct hot_function, DESCENDING(samples) ?: ASCENDING(number));

static int emit_function(const struct hot_code *h, const struct hot_function *f, uint64_t time,
			 event_push_fn push, void *context)
{
	int err = 0;

	for (size_t at = f->first; at < f->first + f->size && !err;) {
		struct event_header *event = (void *)(h->bytes.data + at);

		event->time = time;
		err = push(context, event);
		at += event->size;
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
	return err;
}
