/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pprof messages, written one after the other.
 *
 * system_name is the full name of a Java method, else empty: if it equals the name, pprof takes the
 * name for a mangled one and cuts off arguments and template arguments.
 */
#include "formats/out/pprof_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formats/out/describe.h"

struct pprof_writer {
	const struct profile *p;
	uint32_t depth_max;
	bool names_first;
	enum wall_state leaf;
	FILE *out;
	int error; /* the first one */
	struct code_tables *code;
	struct bytes message, comments; /* scratch; the latter: numbers of strings */
};

struct pprof_writer *pprof_writer__new(const struct profile *p,
				       const struct pprof_writer_options *options, FILE *out)
{
	struct pprof_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->p = p;
	w->depth_max = options->depth_max;
	w->names_first = options->names_first;
	w->out = out;
	w->code = code_tables__new(p, &options->code);
	if (!w->code) {
		free(w);
		return NULL;
	}
	return w;
}

void pprof_writer__free(struct pprof_writer *w)
{
	if (!w)
		return;
	code_tables__free(w->code);
	free(w->message.data);
	free(w->comments.data);
	free(w);
}

int pprof_writer__again(struct pprof_writer *w, uint32_t depth_max, FILE *out)
{
	w->depth_max = depth_max;
	w->out = out;
	w->error = 0;
	return code_tables__reset(w->code);
}

struct code_tables *pprof_writer__code(struct pprof_writer *w)
{
	return w->code;
}

int pprof_writer__error(const struct pprof_writer *w)
{
	return w->error ? w->error : code_tables__error(w->code);
}

static void note_error(struct pprof_writer *w, int err)
{
	if (!w->error)
		w->error = err;
}

/* ---- messages -------------------------------------------------------------------------------- */

static void write_bytes(struct pprof_writer *w, const void *bytes, size_t size)
{
	if (w->error || !size)
		return;
	errno = 0;
	if (fwrite(bytes, 1, size, w->out) != size)
		note_error(w, errno ? -errno : -EIO);
}

/* The header of a field with a length. */
static void write_header(struct pprof_writer *w, enum pprof_field field, size_t size)
{
	uint8_t header[16];

	write_bytes(w, header, wire_put_header(header, field, size));
}

/* The message that was put together becomes a field, and the next one begins. */
static void write_message(struct pprof_writer *w, enum pprof_field field)
{
	if (w->message.failed)
		note_error(w, -ENOMEM);
	write_header(w, field, w->message.count);
	write_bytes(w, w->message.data, w->message.count);
	w->message.count = 0;
}

/* ---- samples --------------------------------------------------------------------------------- */

static void put_value_type(struct pprof_writer *w, const char *type, const char *unit)
{
	struct pprof_value_type message = {.type = code_tables__text(w->code, type)};

	message.unit = code_tables__text(w->code, unit);
	bytes__numbers(&w->message, &message, sizeof(message));
}

void pprof_writer__sample_type(struct pprof_writer *w, const char *type, const char *unit)
{
	put_value_type(w, type, unit);
	write_message(w, PPROF_SAMPLE_TYPE);
}

static void put_location(struct pprof_writer *w, uint32_t location)
{
	bytes__varint(&w->message, location);
}

/* Of a stack that is too deep, the leaf's side below a root frame for the rest. */
static void put_path(struct pprof_writer *w, struct stack_id stack)
{
	const struct profile_stack *stacks = w->p->stacks;
	uint32_t left = stacks[stack.v].depth;
	uint32_t most = w->depth_max - (w->leaf && w->depth_max > 1);
	bool is_cut = w->depth_max && left > most;

	if (w->leaf)
		put_location(w, code_tables__waiting(w->code, w->leaf));
	if (!stack.v)
		return put_location(w, code_tables__location(w->code, (struct location_id){0}));
	if (is_cut)
		left = most - 1;
	for (; left && stack.v && !w->error; left--, stack = stacks[stack.v].parent)
		put_location(w, code_tables__location(w->code, stacks[stack.v].location));
	if (is_cut)
		put_location(w, code_tables__truncated(w->code));
}

static void put_label(struct bytes *m, const struct pprof_label *label)
{
	size_t at = m->count;

	bytes__numbers(m, label, sizeof(*label));
	bytes__wrap(m, PPROF_LABEL, at);
}

void pprof_writer__set_leaf(struct pprof_writer *w, enum wall_state state)
{
	w->leaf = state;
}

struct pprof_label pprof_writer__label(struct pprof_writer *w, const char *key, const char *text)
{
	struct code_tables *code = pprof_writer__code(w);

	return (struct pprof_label){.key = code_tables__text(code, key),
				    .text = code_tables__text(code, text)};
}

void pprof_writer__sample(struct pprof_writer *w, struct stack_id stack, const int64_t *values,
			  size_t value_count, const struct pprof_label *labels, size_t label_count)
{
	struct bytes *m = &w->message;
	size_t at;

	put_path(w, stack);
	bytes__wrap(m, PPROF_LOCATION_ID, 0);
	at = m->count;
	for (size_t i = 0; i < value_count; i++)
		bytes__varint(m, (uint64_t)values[i]);
	bytes__wrap(m, PPROF_VALUE, at);
	for (size_t i = 0; i < label_count; i++)
		put_label(m, &labels[i]);
	write_message(w, PPROF_SAMPLE);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void put_line(struct bytes *m, const struct code_line *line)
{
	const struct pprof_line message = {line->function, line->line, line->column};
	size_t at = m->count;

	bytes__numbers(m, &message, sizeof(message));
	bytes__wrap(m, PPROF_LINE, at);
}

static void write_location(struct pprof_writer *w, uint32_t number)
{
	struct code_location l = code_tables__describe_location(w->code, number);
	const struct pprof_location message = {number, l.mapping, l.address};

	bytes__numbers(&w->message, &message, sizeof(message));
	for (size_t i = 0; i < l.line_count; i++)
		put_line(&w->message, &l.lines[i]);
	write_message(w, PPROF_LOCATION);
}

static void write_mapping(struct pprof_writer *w, uint32_t number)
{
	struct code_mapping m = code_tables__describe_mapping(w->code, number);
	const struct pprof_mapping message = {
		.id = number,
		.start = m.start,
		.limit = m.limit,
		.offset = m.file_offset,
		.filename = m.filename,
		.build_id = m.build_id,
		.has_functions = m.has_functions,
		.has_filenames = m.has_filenames,
		.has_line_numbers = m.has_line_numbers,
		.has_inline_frames = m.has_inline_frames,
	};

	bytes__numbers(&w->message, &message, sizeof(message));
	write_message(w, PPROF_MAPPING);
}

static void write_function(struct pprof_writer *w, uint32_t number)
{
	struct code_function f = code_tables__describe_function(w->code, number);
	const struct pprof_function message = {
		.id = number,
		.name = f.name,
		.system_name = f.full_name,
		.filename = f.filename,
		.start_line = f.start_line,
	};

	bytes__numbers(&w->message, &message, sizeof(message));
	write_message(w, PPROF_FUNCTION);
}

void pprof_writer__tables(struct pprof_writer *w)
{
	size_t locations = code_tables__location_count(w->code);

	for (uint32_t i = 1; i <= locations && !pprof_writer__error(w); i++)
		write_location(w, i);
	if (w->names_first)
		code_tables__number_names(w->code);
	for (uint32_t i = 1; i <= code_tables__mapping_count(w->code); i++)
		write_mapping(w, i);
	for (uint32_t i = 1; i <= code_tables__function_count(w->code); i++)
		write_function(w, i);
}

/* ---- the profile ----------------------------------------------------------------------------- */

static int add_comment(void *context, const char *text)
{
	struct pprof_writer *w = context;

	bytes__varint(&w->comments, code_tables__text(w->code, text));
	return w->comments.failed ? -ENOMEM : 0;
}

/* The fields that are not tables. */
void pprof_writer__facts(struct pprof_writer *w, const struct pprof_facts *facts)
{
	struct bytes *m = &w->message;
	size_t at;
	int err;

	w->comments.count = 0;
	err = facts->has_comments ? export_comments(w->p, add_comment, w) : 0;
	if (err)
		note_error(w, err);
	bytes__number(m, PPROF_TIME_NANOS, facts->time);
	bytes__number(m, PPROF_DURATION_NANOS, facts->duration);
	at = m->count;
	put_value_type(w, facts->period_type ? facts->period_type : "cpu",
		       facts->period_unit ? facts->period_unit : "nanoseconds");
	bytes__wrap(m, PPROF_PERIOD_TYPE, at);
	bytes__number(m, PPROF_PERIOD, facts->period);
	if (w->comments.count)
		bytes__field(m, PPROF_COMMENT, w->comments.data, w->comments.count);
	bytes__number(m, PPROF_DEFAULT_SAMPLE_TYPE,
		      code_tables__text(w->code, facts->default_sample_type));
	if (m->failed)
		note_error(w, -ENOMEM);
	write_bytes(w, m->data, m->count);
	m->count = 0;
}

int pprof_writer__finish(struct pprof_writer *w)
{
	size_t count;
	const char *const *strings = code_tables__strings(w->code, &count);

	for (size_t i = 0; i < count; i++) {
		size_t size = strlen(strings[i]);

		write_header(w, PPROF_STRING_TABLE, size);
		write_bytes(w, strings[i], size);
	}
	return pprof_writer__error(w);
}
