/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The report for programs. docs/report.schema.json is its contract: what changes the meaning of a member or
 * removes one raises SCHEMA_VERSION; new members do not. A tree is a list of nodes with the numbers of their
 * parents, since stacks are deeper than many readers of JSON can nest.
 */
#include <errno.h>

#include "base/json_writer.h"
#include "export/facts.h"
#include "export/gil.h"
#include "export/interval.h"
#include "export/report_private.h"

#define SCHEMA_VERSION 1
#define SHARE_DIGITS   6

static const char *const shape_names[] = {
	[REPORT_TABLE] = "table",
	[REPORT_TREE] = "tree",
	[REPORT_CALLERS] = "callers",
};

void report_write_summary(const struct profile *p, struct json_writer *w)
{
	struct export_facts facts;

	export_facts__init(&facts, p);
	json_begin_object(w);
	json_key_uint(w, "start_monotonic_ns", p->start);
	json_key_uint(w, "start_realtime_ns", p->start_realtime);
	json_key_uint(w, "duration_ns", facts.duration);
	json_key_uint(w, "period_ns", p->period);
	json_key_uint(w, "samples", p->sample_count);
	json_key_uint(w, "threads", facts.threads);
	json_key_uint(w, "silent_threads", facts.silent_threads);
	json_key_uint(w, "cpu_ns", facts.cpu);
	json_key_uint(w, "silent_cpu_ns", facts.silent_cpu);
	json_key_bool(w, "cut_short", p->cut_short);
	json_key(w, "complete_share");
	json_fixed(w, profile__complete_share(p), 6);
	json_key(w, "named_share");
	json_fixed(w, profile__named_share(p), 6);
	json_key_string(w, "clock", p->tsc_khz ? "tsc" : "monotonic");
	json_key_uint(w, "clock_error_ns", p->clock_error_ns);
	json_key(w, "stack_ends");
	json_begin_object(w);
	for (unsigned int end = 0; end < STACK_END_COUNT; end++)
		json_key_uint(w, stack_end_name(end), p->stack_ends[end]);
	json_end_object(w);
	json_key(w, "frames_found");
	json_begin_object(w);
	for (unsigned int kind = FRAME_IP; kind < FRAME_KIND_COUNT; kind++)
		json_key_uint(w, frame_kind_name(kind), p->frames_found[kind]);
	json_end_object(w);
	if (p->inlined_left_out)
		json_key_uint(w, "inlined_left_out", p->inlined_left_out);
	write_outside(p, w);
	write_jits(p, w);
	write_runtimes(p, w);
	write_gils(p, w);
	json_key(w, "books");
	json_begin_object(w);
	for (unsigned int line = 0; line < BOOK_COUNT; line++)
		json_key_uint(w, book_line_name(line), facts.lines[line]);
	json_end_object(w);
	json_key(w, "due");
	if (facts.due_known)
		json_uint(w, facts.due);
	else
		json_null(w);
	json_key(w, "unexplained");
	if (facts.due_known)
		json_int(w, profile__unexplained_ticks(p));
	else
		json_null(w);
	json_key(w, "meta");
	json_begin_object(w);
	for (size_t i = 0; i < p->meta_count; i++)
		json_key_string(w, profile__string(p, p->meta[i].key),
				profile__string(p, p->meta[i].value));
	json_end_object(w);
	json_end_object(w);
}

/* "self": 12, "self_share": 0.12, "self_interval": [0.06, 0.21] */
static void write_share(struct json_writer *w, const struct profile *p, const char *key,
			uint64_t samples)
{
	struct interval range = share_interval(samples, p->sample_count);
	char name[32];

	json_key_uint(w, key, samples);
	snprintf(name, sizeof(name), "%s_share", key);
	json_key(w, name);
	json_fixed(w, share_of(samples, p->sample_count), SHARE_DIGITS);
	snprintf(name, sizeof(name), "%s_interval", key);
	json_key(w, name);
	json_begin_array(w);
	json_fixed(w, range.low, SHARE_DIGITS);
	json_fixed(w, range.high, SHARE_DIGITS);
	json_end_array(w);
}

/* What a row of a table, or a node of a tree, shows. */
static void write_code(const struct report_row *row, enum report_by by, struct json_writer *w)
{
	json_key_string(w, by == REPORT_DSO ? "dso" : "function", row->name);
	if (row->line) {
		json_key_string(w, "file", row->place);
		json_key_uint(w, "line", row->line);
	} else if (by != REPORT_DSO) {
		json_key_string(w, "dso", row->place);
	}
}

static void write_task(const struct report_row *row, enum report_by by, struct json_writer *w)
{
	json_key_uint(w, "pid", row->pid);
	if (by == REPORT_THREAD)
		json_key_uint(w, "tid", row->tid);
	json_key_string(w, report_by_name(by), row->name);
	if (by == REPORT_THREAD)
		json_key_string(w, "process", row->place);
}

static void write_row(const struct profile *p, const struct report_row *row, enum report_by by,
		      struct json_writer *w)
{
	json_begin_object(w);
	write_share(w, p, "self", row->self);
	if (by == REPORT_THREAD || by == REPORT_PROCESS) {
		json_key_uint(w, "cpu_ns", row->cpu);
		if (by == REPORT_PROCESS)
			json_key_uint(w, "threads", row->threads);
		write_task(row, by, w);
	} else {
		write_share(w, p, "total", row->total);
		write_code(row, by, w);
	}
	json_end_object(w);
}

static void write_node(const struct profile *p, const struct report_node *node,
		       const struct report_options *options, struct json_writer *w)
{
	json_begin_object(w);
	json_key_uint(w, "depth", node->depth);
	json_key(w, "parent");
	if (node->parent == REPORT_NO_NODE)
		json_null(w);
	else
		json_uint(w, node->parent);
	write_share(w, p, "total", node->total);
	if (options->shape == REPORT_TREE)
		write_share(w, p, "self", node->self);
	if (node->group)
		write_task(node->row, options->by, w);
	else
		write_code(node->row, options->by, w);
	json_key_uint(w, "cut", node->cut);
	json_key_uint(w, "cut_total", node->cut_total);
	json_end_object(w);
}

/* Up to the rows, whose array is open then. */
static void begin(struct json_writer *w, const struct profile *p,
		  const struct report_options *options, size_t count, FILE *out)
{
	json_writer__init(w, out);
	json_begin_object(w);
	json_key_uint(w, "schema", SCHEMA_VERSION);
	json_key(w, "summary");
	report_write_summary(p, w);
	json_key_string(w, "by", report_by_name(options->by));
	json_key_string(w, "shape", shape_names[options->shape]);
	json_key(w, "min_share");
	json_fixed(w, options->min_share, SHARE_DIGITS);
	json_key_uint(w, "row_count", count);
	json_key(w, "rows");
	json_begin_array(w);
}

static int end(struct json_writer *w, FILE *out)
{
	int err;

	json_end_array(w);
	json_end_object(w);
	err = json_writer__finish(w);
	return !err && fputc('\n', out) == EOF ? -EIO : err;
}

int report_table_json(const struct profile *p, const struct report_options *options,
		      const struct report_table *table, FILE *out)
{
	struct json_writer w;

	begin(&w, p, options, table->count, out);
	for (size_t i = 0; i < table->shown; i++)
		write_row(p, &table->rows[i], options->by, &w);
	return end(&w, out);
}

int report_tree_json(const struct profile *p, const struct report_options *options,
		     const struct report_tree *tree, size_t shown, FILE *out)
{
	struct json_writer w;

	begin(&w, p, options, tree->nodes.count, out);
	for (size_t i = 0; i < shown; i++)
		write_node(p, &tree->nodes.data[i], options, &w);
	return end(&w, out);
}
