/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream/code_events.h"

#include <stdbool.h>
#include <string.h>

#include "base/minmax.h"
#include "base/utf8.h"

/* Strings of the places of an event: together with all rows they fit into it. */
#define PLACES_SIZE_MAX (32u * 1024)
#define LINE_DEPTH_MAX	UINT16_MAX

_Static_assert(sizeof(struct code_lines_event) + CODE_LINES_MAX * sizeof(struct code_line_row) +
			       PLACES_SIZE_MAX <=
		       EVENT_SIZE_MAX,
	       "an event of lines fits");
_Static_assert(sizeof(struct source_event) + EVENT_PATH_MAX + CODE_PIECE_BYTES <= EVENT_SIZE_MAX,
	       "a piece of a source fits");

/* Pads the event that ends at `end` with zeros, and passes it on. */
static int push_padded(struct event_header *event, char *end, event_push_fn push, void *context)
{
	size_t size = end - (char *)event;

	event->size = event_aligned(size);
	memset(end, 0, event->size - size);
	return push(context, event);
}

int code_text__emit(const struct code_text *text, uint64_t time, event_push_fn push, void *context)
{
	union {
		struct code_text_event event;
		char space[sizeof(struct code_text_event) + CODE_PIECE_BYTES + EVENT_ALIGN];
	} out;
	int err = 0;

	for (uint32_t at = 0; at < text->size && !err; at += out.event.count) {
		out.event = (struct code_text_event){
			.header = {.type = EVENT_CODE_TEXT, .time = time},
			.dso = text->dso,
			.process = text->process,
			.address = text->address,
			.version = text->version,
			.size = text->size,
			.offset = at,
			.count = min_u64(text->size - at, CODE_PIECE_BYTES),
			.machine = text->machine,
		};
		memcpy(out.event.bytes, text->bytes + at, out.event.count);
		err = push_padded(&out.event.header, (char *)out.event.bytes + out.event.count,
				  push, context);
	}
	return err;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int flush_lines(struct code_lines *l)
{
	union {
		struct code_lines_event event;
		char space[sizeof(struct code_lines_event) +
			   CODE_LINES_MAX * sizeof(struct code_line_row) + EVENT_SIZE_MAX];
	} out;
	struct symbol_event *places = (void *)&out.event.rows[l->row_count];
	const struct symbol_result result = {
		.elf_address = ~UINT64_C(0), .frames = l->places, .frame_count = l->place_count};

	if (!l->row_count)
		return 0;
	out.event = (struct code_lines_event){
		.header = {.type = EVENT_CODE_LINES, .time = l->time},
		.address = l->text->address,
		.dso = l->text->dso,
		.count = l->row_count,
	};
	memcpy(out.event.rows, l->rows, l->row_count * sizeof(l->rows[0]));
	symbol_event__encode(places, l->time, l->text->address, &result);
	out.event.header.size = (char *)places + places->header.size - (char *)&out.event;
	l->row_count = l->place_count = l->places_size = 0;
	return l->push(l->context, &out.event.header);
}

static bool is_same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool is_same_place(const struct symbol_frame *a, const struct symbol_frame *b)
{
	return a->function_address == b->function_address && a->function_size == b->function_size &&
	       is_same_text(a->function, b->function) && is_same_text(a->file, b->file) &&
	       is_same_text(a->definition_file, b->definition_file) &&
	       a->definition_line == b->definition_line &&
	       a->definition_column == b->definition_column;
}

/* The number of the place of a frame; after a flush if it has no room. */
static int need_place(struct code_lines *l, const struct symbol_frame *frame, uint16_t *place)
{
	const struct symbol_result one = {.frames = frame, .frame_count = 1};
	size_t size = symbol_blob__size_of(&one);
	int err = 0;

	/* the last places are the most likely ones */
	for (size_t i = l->place_count; i-- > 0;) {
		if (is_same_place(&l->places[i], frame)) {
			*place = i;
			return 0;
		}
	}
	if (l->place_count == SYMBOL_CHAIN_MAX || l->places_size + size > PLACES_SIZE_MAX)
		err = flush_lines(l);
	*place = l->place_count;
	l->places[l->place_count++] = *frame;
	l->places_size += size;
	return err;
}

int code_lines__add(struct code_lines *l, uint32_t offset, size_t depth,
		    const struct symbol_frame *frame)
{
	struct code_line_row row = {
		.offset = offset,
		.line = frame->line,
		.column = frame->column <= UINT16_MAX ? frame->column : 0,
		.depth = min_u64(depth, LINE_DEPTH_MAX),
	};
	const struct code_line_row *last;
	int err = l->row_count == CODE_LINES_MAX ? flush_lines(l) : 0;

	err = err ?: need_place(l, frame, &row.place);
	if (err)
		return err;
	last = l->row_count ? &l->rows[l->row_count - 1] : NULL;
	if (!last || last->line != row.line || last->column != row.column ||
	    last->place != row.place || last->depth != row.depth)
		l->rows[l->row_count++] = row;
	return 0;
}

int code_lines__end(struct code_lines *l)
{
	return flush_lines(l);
}

/* ---- sources --------------------------------------------------------------------------------- */

int source_text__emit(const struct source_text *source, uint64_t time, event_push_fn push,
		      void *context)
{
	union {
		struct source_event event;
		char space[sizeof(struct source_event) + EVENT_PATH_MAX + CODE_PIECE_BYTES +
			   EVENT_ALIGN];
	} out;
	size_t length = utf8_cut(source->path, EVENT_PATH_MAX);
	int err = 0;

	for (uint32_t at = 0; at < source->size && !err; at += out.event.count) {
		out.event = (struct source_event){
			.header = {.type = EVENT_SOURCE, .time = time},
			.size = source->size,
			.offset = at,
			.count = min_u64(source->size - at, CODE_PIECE_BYTES),
			.path_size = length + 1,
			.state = source->state,
			.root = source->root,
		};
		memcpy(out.event.data, source->path, length);
		out.event.data[length] = '\0';
		memcpy(out.event.data + length + 1, source->text + at, out.event.count);
		err = push_padded(&out.event.header, out.event.data + length + 1 + out.event.count,
				  push, context);
	}
	return err;
}
