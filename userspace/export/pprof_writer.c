/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pprof messages, packed one after the other. The only file of this directory that uses protobuf-c.
 *
 * system_name is the full name of a Java method and else empty: where it equals the name, pprof takes the name for a
 * mangled one, and cuts arguments and template arguments off it.
 */
#include "export/pprof_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <pprof.pb-c.h>

#include "base/vec.h"
#include "base/wire.h"
#include "export/describe.h"

struct pprof_writer {
	const struct profile *p;
	uint32_t depth_max;
	bool names_first;
	enum wall_state leaf;
	FILE *out;
	int error; /* the first one */
	struct code_tables *code;
	VEC(uint8_t) packed;
	VEC(uint64_t) path; /* scratch, as those below */
	VEC(Pprof__Label) labels;
	VEC(Pprof__Label *) label_list;
	VEC(Pprof__Line) lines;
	VEC(Pprof__Line *) line_list;
	VEC(int64_t) comments; /* strings */
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
	vec_free(&w->packed);
	vec_free(&w->path);
	vec_free(&w->labels);
	vec_free(&w->label_list);
	vec_free(&w->lines);
	vec_free(&w->line_list);
	vec_free(&w->comments);
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

static void pack_message(struct pprof_writer *w, const ProtobufCMessage *message)
{
	size_t size = protobuf_c_message_get_packed_size(message);

	w->packed.count = 0;
	if (vec_reserve(&w->packed, size))
		return note_error(w, -ENOMEM);
	w->packed.count = protobuf_c_message_pack(message, w->packed.data);
}

static void write_message(struct pprof_writer *w, enum pprof_field field,
			  const ProtobufCMessage *message)
{
	pack_message(w, message);
	if (w->error)
		return;
	write_header(w, field, w->packed.count);
	write_bytes(w, w->packed.data, w->packed.count);
}

/* ---- samples --------------------------------------------------------------------------------- */

static void fill_value_type(struct pprof_writer *w, Pprof__ValueType *message, const char *type,
			    const char *unit)
{
	pprof__value_type__init(message);
	message->type = code_tables__text(w->code, type);
	message->unit = code_tables__text(w->code, unit);
}

void pprof_writer__sample_type(struct pprof_writer *w, const char *type, const char *unit)
{
	Pprof__ValueType message;

	fill_value_type(w, &message, type, unit);
	write_message(w, PPROF_SAMPLE_TYPE, &message.base);
}

static void add_to_path(struct pprof_writer *w, uint32_t location)
{
	if (vec_push(&w->path, location))
		note_error(w, -ENOMEM);
}

/* Of a stack that is too deep, the leaf's side below a root frame for the rest. */
static void collect_path(struct pprof_writer *w, struct stack_id stack)
{
	const struct profile_stack *stacks = w->p->stacks;
	uint32_t left = stacks[stack.v].depth;
	uint32_t most = w->depth_max - (w->leaf && w->depth_max > 1);
	bool is_cut = w->depth_max && left > most;

	w->path.count = 0;
	if (w->leaf)
		add_to_path(w, code_tables__waiting(w->code, w->leaf));
	if (!stack.v)
		return add_to_path(w, code_tables__location(w->code, (struct location_id){0}));
	if (is_cut)
		left = most - 1;
	for (; left && stack.v && !w->error; left--, stack = stacks[stack.v].parent)
		add_to_path(w, code_tables__location(w->code, stacks[stack.v].location));
	if (is_cut)
		add_to_path(w, code_tables__truncated(w->code));
}

static int fill_labels(struct pprof_writer *w, const struct pprof_label *labels, size_t count)
{
	w->labels.count = w->label_list.count = 0;
	if (vec_reserve(&w->labels, count) || vec_reserve(&w->label_list, count))
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		Pprof__Label *label = &w->labels.data[i];

		pprof__label__init(label);
		label->key = labels[i].key;
		label->str = labels[i].text;
		if (!labels[i].text) {
			label->num = labels[i].number;
			label->num_unit = labels[i].unit;
		}
		w->label_list.data[i] = label;
	}
	return 0;
}

void pprof_writer__set_leaf(struct pprof_writer *w, enum wall_state state)
{
	w->leaf = state;
}

void pprof_writer__sample(struct pprof_writer *w, struct stack_id stack, const int64_t *values,
			  size_t value_count, const struct pprof_label *labels, size_t label_count)
{
	Pprof__Sample message = PPROF__SAMPLE__INIT;

	collect_path(w, stack);
	if (fill_labels(w, labels, label_count))
		return note_error(w, -ENOMEM);
	message.n_location_id = w->path.count;
	message.location_id = w->path.data;
	message.n_value = value_count;
	message.value = (int64_t *)values;
	message.n_label = label_count;
	message.label = w->label_list.data;
	write_message(w, PPROF_SAMPLE, &message.base);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int fill_lines(struct pprof_writer *w, const struct code_location *l)
{
	if (vec_reserve(&w->lines, l->line_count) || vec_reserve(&w->line_list, l->line_count))
		return -ENOMEM;
	for (size_t i = 0; i < l->line_count; i++) {
		Pprof__Line *line = &w->lines.data[i];

		pprof__line__init(line);
		line->function_id = l->lines[i].function;
		line->line = l->lines[i].line;
		line->column = l->lines[i].column;
		w->line_list.data[i] = line;
	}
	return 0;
}

static void write_location(struct pprof_writer *w, uint32_t number)
{
	struct code_location l = code_tables__describe_location(w->code, number);
	Pprof__Location message = PPROF__LOCATION__INIT;

	if (fill_lines(w, &l))
		return note_error(w, -ENOMEM);
	message.id = number;
	message.mapping_id = l.mapping;
	message.address = l.address;
	message.n_line = l.line_count;
	message.line = w->line_list.data;
	write_message(w, PPROF_LOCATION, &message.base);
}

static void write_mapping(struct pprof_writer *w, uint32_t number)
{
	struct code_mapping m = code_tables__describe_mapping(w->code, number);
	Pprof__Mapping message = PPROF__MAPPING__INIT;

	message.id = number;
	message.memory_start = m.start;
	message.memory_limit = m.limit;
	message.file_offset = m.file_offset;
	message.filename = m.filename;
	message.build_id = m.build_id;
	message.has_functions = m.has_functions;
	message.has_filenames = m.has_filenames;
	message.has_line_numbers = m.has_line_numbers;
	message.has_inline_frames = m.has_inline_frames;
	write_message(w, PPROF_MAPPING, &message.base);
}

static void write_function(struct pprof_writer *w, uint32_t number)
{
	struct code_function f = code_tables__describe_function(w->code, number);
	Pprof__Function message = PPROF__FUNCTION__INIT;

	message.id = number;
	message.name = f.name;
	message.system_name = f.full_name;
	message.filename = f.filename;
	message.start_line = f.start_line;
	write_message(w, PPROF_FUNCTION, &message.base);
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

	return vec_push(&w->comments, code_tables__text(w->code, text));
}

/* The fields that are not tables: a profile that has nothing else. */
void pprof_writer__facts(struct pprof_writer *w, const struct pprof_facts *facts)
{
	Pprof__Profile message = PPROF__PROFILE__INIT;
	Pprof__ValueType period_type;
	int err;

	w->comments.count = 0;
	err = facts->has_comments ? export_comments(w->p, add_comment, w) : 0;
	if (err)
		note_error(w, err);
	fill_value_type(w, &period_type, facts->period_type ? facts->period_type : "cpu",
			"nanoseconds");
	message.time_nanos = (int64_t)facts->time;
	message.duration_nanos = (int64_t)facts->duration;
	message.period_type = &period_type;
	message.period = (int64_t)facts->period;
	message.n_comment = w->comments.count;
	message.comment = w->comments.data;
	message.default_sample_type = code_tables__text(w->code, facts->default_sample_type);
	pack_message(w, &message.base);
	write_bytes(w, w->packed.data, w->packed.count);
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
