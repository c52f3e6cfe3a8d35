/* SPDX-License-Identifier: BSD-2-Clause */
#include "world/profile_symbols.h"

#include <errno.h>

#include <sysprof/profile_code.h>

#include "stream/symbol_blob.h"
#include "world/recorder.h"

void profile_symbols__init(struct profile_symbols *s, struct profile_builder *builder)
{
	*s = (struct profile_symbols){.builder = builder};
}

void profile_symbols__fini(struct profile_symbols *s)
{
	vec_free(&s->lines);
	vec_free(&s->code_bytes);
	vec_free(&s->code_rows);
	vec_free(&s->source_text);
}

static int on_symbol_dso(void *context, const struct symbol_dso_event *e)
{
	struct profile_symbols *s = context;

	s->dso = (struct dso_id){e->dso};
	if (e->state < SYMBOL_STATE_COUNT)
		profile_builder__dso_state(s->builder, s->dso, e->state);
	return 0;
}

static struct profile_line line_of(struct profile_symbols *s, const struct symbol_frame *frame)
{
	struct profile_function function = {
		.name = profile_builder__string(s->builder, frame->function),
		.dso = s->dso,
		.address = frame->function_address,
		.size = frame->function_size,
		.definition_line = frame->definition_line,
		.definition_column = frame->definition_column,
	};
	struct profile_line line = {
		.file = profile_builder__string(s->builder, frame->file),
		.line = frame->line,
		.column = frame->column,
	};

	function.definition_file = profile_builder__string(s->builder, frame->definition_file);
	if (function.name.v)
		line.function = profile_builder__function(s->builder, &function);
	return line;
}

static int on_symbol(void *context, const struct symbol_event *e)
{
	struct profile_symbols *s = context;
	struct location_id location = s->location;
	struct symbol_answer answer;

	if (!location.v)
		location = profile_builder__find_location(s->builder, s->dso, e->address);
	if (!location.v || symbol_event__decode(e, &answer))
		return 0;
	s->lines.count = 0;
	for (size_t i = 0; i < answer.result.frame_count; i++) {
		struct profile_line line = line_of(s, &answer.frames[i]);

		if (line.function.v && vec_push(&s->lines, line))
			return -ENOMEM;
	}
	profile_builder__resolve(s->builder, location, e->elf_address, s->lines.data,
				 s->lines.count);
	return profile_builder__error(s->builder);
}

/* ---- machine code and sources ---------------------------------------------------------------- */

/* Without all of its bytes it is left out. */
static void finish_code(struct profile_symbols *s)
{
	s->code.bytes = s->code_bytes.data;
	if (s->code.size && s->code_bytes.count == s->code.size)
		profile_builder__add_code(s->builder, &s->code, s->code_rows.data,
					  s->code_rows.count);
	s->code = (struct profile_code){};
	s->code_bytes.count = s->code_rows.count = 0;
}

static void finish_source(struct profile_symbols *s)
{
	s->source.text = s->source_text.data;
	if (s->source.size && s->source_text.count == s->source.size)
		profile_builder__add_source(s->builder, &s->source);
	s->source = (struct profile_source){};
	s->source_text.count = 0;
}

static int on_code_text(void *context, const struct code_text_event *e)
{
	struct profile_symbols *s = context;

	if (!e->offset) {
		finish_code(s);
		if (!e->dso || e->dso >= profile_builder__dso_count(s->builder))
			return 0;
		s->code = (struct profile_code){
			.dso = {e->dso},
			.process = {e->process},
			.version = e->version,
			.machine = e->machine,
			.address = e->address,
			.size = e->size,
		};
	}
	if (e->offset != s->code_bytes.count || e->size != s->code.size ||
	    e->address != s->code.address)
		return 0;
	return vec_append(&s->code_bytes, e->bytes, e->count);
}

static int on_code_lines(void *context, const struct code_lines_event *e)
{
	struct profile_symbols *s = context;
	const struct symbol_event *places = (const void *)&e->rows[e->count];
	struct symbol_answer answer;

	if (!s->code.size || e->dso != s->code.dso.v || e->address != s->code.address ||
	    symbol_event__decode(places, &answer))
		return 0;
	s->dso = s->code.dso;
	s->lines.count = 0;
	for (size_t i = 0; i < answer.result.frame_count; i++)
		if (vec_push(&s->lines, line_of(s, &answer.frames[i])))
			return -ENOMEM;
	for (size_t i = 0; i < e->count; i++) {
		const struct profile_line *place = &s->lines.data[e->rows[i].place];
		struct profile_code_row row = {
			.offset = e->rows[i].offset,
			.depth = e->rows[i].depth,
			.function = place->function,
			.file = place->file,
			.line = e->rows[i].line,
			.column = e->rows[i].column,
		};

		if (vec_push(&s->code_rows, row))
			return -ENOMEM;
	}
	return profile_builder__error(s->builder);
}

static int on_source(void *context, const struct source_event *e)
{
	struct profile_symbols *s = context;
	struct string_id path = profile_builder__string(s->builder, e->data);

	if (!e->offset) {
		finish_source(s);
		s->source = (struct profile_source){
			.path = path, .root = e->root, .state = e->state, .size = e->size};
	}
	if (e->offset != s->source_text.count || e->size != s->source.size ||
	    path.v != s->source.path.v)
		return 0;
	return vec_append(&s->source_text, e->data + e->path_size, e->count);
}

static int on_source_root(void *context, const struct source_root_event *e)
{
	struct profile_symbols *s = context;

	profile_builder__source_root(s->builder, (struct dso_id){e->dso}, (uint8_t)e->root);
	return profile_builder__error(s->builder);
}

static int on_symbols_end(void *context, const struct event_header *header)
{
	struct profile_symbols *s = context;

	(void)header;
	finish_code(s);
	finish_source(s);
	s->complete = true;
	profile_builder__session(s->builder)->finished_symbols = true;
	return 0;
}

static int on_meta(void *context, const char *key, const char *value)
{
	struct profile_symbols *s = context;

	profile_builder__meta(s->builder, key, value);
	return profile_builder__error(s->builder);
}

void outside_event__add_to(const struct outside_event *e, struct profile_builder *builder)
{
	const struct profile_outside row = {
		.user = e->user,
		.thing = e->thing,
		.reason = e->reason,
		.count = e->count,
		.since = e->since,
	};

	profile_builder__outside(builder, &row);
}

static int on_outside(void *context, const struct outside_event *e)
{
	struct profile_symbols *s = context;

	outside_event__add_to(e, s->builder);
	return profile_builder__error(s->builder);
}

struct event_handler profile_symbols__handler(struct profile_symbols *s)
{
	return (struct event_handler){
		.context = s,
		.symbol_dso = on_symbol_dso,
		.symbol = on_symbol,
		.code_text = on_code_text,
		.code_lines = on_code_lines,
		.source = on_source,
		.source_root = on_source_root,
		.symbols_end = on_symbols_end,
		.meta = on_meta,
		.outside = on_outside,
	};
}
