/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/report_json.h"

#include <errno.h>

#include "base/json_writer.h"
#include "formats/out/describe.h"
#include "formats/out/report_private.h"
#include "formats/out/report_rows.h"
#include "formats/out/report_tree.h"

#define SCHEMA_VERSION 1
#define SHARE_DIGITS   6

static const char *const shape_names[] = {
	[REPORT_TABLE] = "table",
	[REPORT_TREE] = "tree",
	[REPORT_CALLERS] = "callers",
};

void report_json__share(struct json_writer *w, const struct profile *p, const char *key,
			uint64_t samples, double square)
{
	struct interval range;
	char name[32];

	json_key_uint(w, key, samples);
	snprintf(name, sizeof(name), "%s_share", key);
	json_key(w, name);
	json_fixed(w, share_of(samples, p->event_count), SHARE_DIGITS);
	snprintf(name, sizeof(name), "%s_interval", key);
	if (p->uncounted) {
		json_key_null(w, name);
		return;
	}
	range = share_interval(p, samples, square);
	json_key_array(w, name);
	json_fixed(w, range.low, SHARE_DIGITS);
	json_fixed(w, range.high, SHARE_DIGITS);
	json_end_array(w);
}

/* The fields of a row of a table, or of a node of a tree. */
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
	if (report_by_names(by)) {
		json_key_string(w, report_by_name(by), row->is_none ? "" : row->name);
		if (by == REPORT_CONTAINER)
			json_key_string(w, "container_id", row->place ? row->place : "");
		return;
	}
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
	report_json__share(w, p, "self", row->self, row->self_square);
	if (report_by_tasks(by)) {
		json_key_uint(w, "cpu_ns", row->cpu);
		if (report_by_names(by))
			json_key_uint(w, "processes", row->processes);
		if (by != REPORT_THREAD)
			json_key_uint(w, "threads", row->threads);
		write_task(row, by, w);
	} else {
		report_json__share(w, p, "total", row->total, row->total_square);
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
	report_json__share(w, p, "total", node->total, node->total_square);
	if (options->shape == REPORT_TREE)
		report_json__share(w, p, "self", node->self, node->self_square);
	if (node->group)
		write_task(node->row, options->by, w);
	else
		write_code(node->row, options->by, w);
	json_key_uint(w, "cut", node->cut);
	json_key_uint(w, "cut_total", node->cut_total);
	json_end_object(w);
}

void report_json__begin(struct json_writer *w, const struct profile *p, const char *by,
			const char *shape, double min_share, FILE *out)
{
	struct figures figures;

	json_writer__init(w, out);
	json_begin_object(w);
	json_key_uint(w, "schema", SCHEMA_VERSION);
	json_key(w, "summary");
	figures__init(&figures, p);
	write_summary(p, &figures, w);
	json_key_string(w, "by", by);
	json_key_string(w, "shape", shape);
	json_key(w, "min_share");
	json_fixed(w, min_share, SHARE_DIGITS);
}

int report_json__end(struct json_writer *w, FILE *out)
{
	int err;

	json_end_object(w);
	err = json_writer__finish(w);
	return !err && fputc('\n', out) == EOF ? -EIO : err;
}

static void begin(struct json_writer *w, const struct profile *p,
		  const struct report_options *options, size_t count, FILE *out)
{
	report_json__begin(w, p, report_by_name(options->by), shape_names[options->shape],
			   options->min_share, out);
	json_key_uint(w, "row_count", count);
}

int report_table_json(const struct profile *p, const struct report_options *options,
		      const struct report_table *table, FILE *out)
{
	struct json_writer w;

	begin(&w, p, options, table->count, out);
	JSON_COLUMN(&w, "rows", table->shown, write_row(p, &table->rows[i], options->by, &w));
	return report_json__end(&w, out);
}

int report_tree_json(const struct profile *p, const struct report_options *options,
		     const struct report_tree *tree, size_t shown, FILE *out)
{
	struct json_writer w;

	begin(&w, p, options, tree->nodes.count, out);
	JSON_COLUMN(&w, "rows", shown, write_node(p, &tree->nodes.data[i], options, &w));
	return report_json__end(&w, out);
}
