/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/annotation_json.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "formats/out/annotation.h"
#include "formats/out/annotation_code.h"
#include "formats/out/describe.h"
#include "formats/out/report.h"
#include "formats/out/report_json.h"
#include "profile/profile.h"

static void write_counts(struct json_writer *w, const struct profile *p,
			 const struct annotation_counts *counts)
{
	report_json__share(w, p, "self", counts->self, counts->self_square);
	report_json__share(w, p, "total", counts->total, counts->total_square);
}

static void write_place(struct json_writer *w, const struct profile *p, struct string_id file,
			uint32_t line)
{
	if (!line)
		return;
	json_key_string(w, "file", profile__string(p, file));
	json_key_uint(w, "line", line);
}

/* *lines: of the row before, often the same source. 0 or -ENOMEM. */
static int write_line(struct json_writer *w, const struct profile *p,
		      const struct annotation_line *row, struct source_lines *lines)
{
	const struct profile_source *source = row->file.v ? profile__source(p, row->dso, row->file)
							  : NULL;
	_cleanup_free_ char *text = NULL;
	int err = 0;

	if (source != lines->source) {
		source_lines__fini(lines);
		err = source_lines__init(lines, source);
	}
	if (err)
		return err;
	text = source_lines__text(lines, row->line);
	json_begin_object(w);
	write_counts(w, p, &row->counts);
	write_place(w, p, row->file, row->line);
	if (row->root && row->root != SOURCE_ROOT_ALL)
		json_key_uint(w, "source_root", row->root);
	if (text)
		json_key_string(w, "text", text);
	if (source)
		json_key_bool(w, "changed", source->state == SOURCE_CHANGED);
	json_end_object(w);
	return 0;
}

static void write_instruction(struct json_writer *w, const struct annotation_code *code, size_t i)
{
	const struct instruction *instruction = &code->text.data[i];
	const struct profile_code_row *row = code->rows[i];
	const struct profile *p = code->a->p;

	json_begin_object(w);
	json_key_uint(w, "self", code->counts[i].self);
	json_key_uint(w, "total", code->counts[i].total);
	json_key_uint(w, "address", code->address + instruction->offset);
	json_key_uint(w, "size", instruction->size);
	json_key_string(w, "text", disassembly__text(&code->text, i));
	if (instruction->target != DISASSEMBLY_NO_JUMP)
		json_key_uint(w, "target", instruction->target);
	if (row) {
		write_place(w, p, row->file, row->line);
		if (row->function.v)
			json_key_string(w, "function",
					profile__string(p, p->functions[row->function.v].name));
	}
	json_end_object(w);
}

static int write_instructions(struct json_writer *w, const struct annotation *a,
			      const struct annotation_copy *copy,
			      const struct report_options *options)
{
	_cleanup_(annotation_code__fini) struct annotation_code code;
	int err = annotation_code__init(&code, a, copy, options->syntax);

	if (code.problem)
		json_key_string(w, "no_instructions", code.problem);
	if (err || code.problem)
		return err;
	JSON_COLUMN(w, "instructions", code.text.count,
		    if (annotation_code__is_shown(&code, i)) write_instruction(w, &code, i));
	return 0;
}

static int write_copy(struct json_writer *w, const struct annotation *a,
		      const struct annotation_copy *copy, const struct report_options *options)
{
	const struct profile *p = a->p;
	int err = 0;

	json_begin_object(w);
	json_key_string(w, "function", profile__string(p, p->functions[copy->function].name));
	json_key_bool(w, "inlined", !annotation_copy__is_own(a, copy));
	json_key_string(w, "dso", dso_display_name(p, copy->dso));
	if (copy->process.v)
		json_key_uint(w, "pid", p->processes[copy->process.v].pid);
	json_key_uint(w, "version", copy->version);
	json_key_string(w, "tier", code_tier_text(copy->tier));
	if (copy->doubtful)
		json_key_uint(w, "doubtful", copy->doubtful);
	write_counts(w, p, &copy->counts);
	if (options->assembly)
		err = write_instructions(w, a, copy, options);
	json_end_object(w);
	return err;
}

static int write_copies(struct json_writer *w, const struct annotation *a,
			const struct report_options *options)
{
	int err = 0;

	json_key_object(w, "annotation");
	write_counts(w, a->p, &a->counts);
	json_key_string(w, "certainty", annotation_skid(a->p));
	if (options->assembly)
		json_key_string(w, "syntax", disassembly_syntax_name(options->syntax));
	json_key_array(w, "copies");
	for (size_t i = 0; i < a->copies.count && !err; i++)
		err = write_copy(w, a, &a->copies.data[i], options);
	json_end_array(w);
	json_end_object(w);
	return err;
}

int annotation_json(const struct annotation *a, const struct report_options *options, FILE *out)
{
	_cleanup_(source_lines__fini) struct source_lines lines = {};
	struct json_writer w;
	int err;

	report_json__begin(&w, a->p, "line", "annotation", 0, out);
	err = write_copies(&w, a, options);
	json_key_uint(&w, "row_count", a->lines.count);
	json_key_array(&w, "rows");
	for (size_t i = 0; i < a->lines.count && !err; i++)
		err = write_line(&w, a->p, &a->lines.data[i], &lines);
	json_end_array(&w);
	return report_json__end(&w, out) ?: err;
}
