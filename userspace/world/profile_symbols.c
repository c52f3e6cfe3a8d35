/* SPDX-License-Identifier: BSD-2-Clause */
#include "world/profile_symbols.h"

#include <errno.h>

#include "stream/symbol_blob.h"
#include "world/recorder.h"

void profile_symbols__init(struct profile_symbols *s, struct profile_builder *builder)
{
	*s = (struct profile_symbols){.builder = builder};
}

void profile_symbols__fini(struct profile_symbols *s)
{
	vec_free(&s->lines);
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

static int on_symbols_end(void *context, const struct event_header *header)
{
	struct profile_symbols *s = context;

	(void)header;
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
		.symbols_end = on_symbols_end,
		.meta = on_meta,
		.outside = on_outside,
	};
}
