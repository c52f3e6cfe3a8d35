/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames one after the other, their strings by number: the same few functions come again and again. */
#include "symbolize/result_store.h"

#include <errno.h>
#include <stdlib.h>

#include "base/strtab.h"
#include "base/vec.h"

struct stored_frame {
	struct symbol_frame frame;		  /* its strings are not valid … */
	uint32_t function, file, definition_file; /* … these are; 0: none */
};

struct stored_result {
	size_t index, first, count;
	uint64_t elf_address;
};

struct result_store {
	struct strtab *strings;
	VEC(struct stored_frame) frames;
	VEC(struct stored_result) results;
	size_t told;
	VEC(struct symbol_frame) out;
};

struct result_store *result_store__new(void)
{
	struct result_store *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->strings = strtab__new();
	if (!s->strings) {
		free(s);
		return NULL;
	}
	return s;
}

void result_store__free(struct result_store *s)
{
	if (!s)
		return;
	strtab__free(s->strings);
	vec_free(&s->frames);
	vec_free(&s->results);
	vec_free(&s->out);
	free(s);
}

static int keep_string(struct result_store *s, const char *text, uint32_t *number)
{
	int64_t id = text ? strtab__intern(s->strings, text) : 0;

	if (id < 0)
		return id;
	*number = id;
	return 0;
}

static int keep_frame(struct result_store *s, const struct symbol_frame *frame)
{
	struct stored_frame stored = {.frame = *frame};
	int err = keep_string(s, frame->function, &stored.function);

	if (!err)
		err = keep_string(s, frame->file, &stored.file);
	if (!err)
		err = keep_string(s, frame->definition_file, &stored.definition_file);
	return err ? err : vec_push(&s->frames, stored);
}

int result_store__keep(void *store, size_t index, const struct symbol_result *result)
{
	struct result_store *s = store;
	struct stored_result stored = {
		.index = index,
		.first = s->frames.count,
		.count = result->frame_count,
		.elf_address = result->elf_address,
	};

	for (size_t i = 0; i < result->frame_count; i++) {
		int err = keep_frame(s, &result->frames[i]);

		if (err)
			return err;
	}
	return vec_push(&s->results, stored);
}

static const char *string_of(const struct result_store *s, uint32_t number)
{
	return number ? strtab__get(s->strings, number) : NULL;
}

static int tell_result(struct result_store *s, const struct stored_result *stored,
		       symbol_sink_fn sink, void *context)
{
	struct symbol_result result = {.elf_address = stored->elf_address};

	s->out.count = 0;
	for (size_t i = 0; i < stored->count; i++) {
		const struct stored_frame *from = &s->frames.data[stored->first + i];
		struct symbol_frame frame = from->frame;
		int err;

		frame.function = strtab__get(s->strings, from->function);
		frame.file = string_of(s, from->file);
		frame.definition_file = string_of(s, from->definition_file);
		err = vec_push(&s->out, frame);
		if (err)
			return err;
	}
	result.frames = s->out.data;
	result.frame_count = s->out.count;
	return sink(context, stored->index, &result);
}

int result_store__tell(struct result_store *s, size_t end, symbol_sink_fn sink, void *context)
{
	int err = 0;

	while (!err && s->told < s->results.count && s->results.data[s->told].index < end)
		err = tell_result(s, &s->results.data[s->told++], sink, context);
	return err;
}
