/* SPDX-License-Identifier: BSD-2-Clause */
/* A report: contents (report_rows.c, report_tree.c) and form (report_*text.c, report_json.c). */
#include "formats/out/report.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "formats/out/annotation.h"
#include "formats/out/annotation_json.h"
#include "formats/out/annotation_text.h"
#include "formats/out/describe.h"
#include "formats/out/exporters.h"
#include "formats/out/report_json.h"
#include "formats/out/report_private.h"
#include "formats/out/report_rows.h"
#include "formats/out/report_text.h"
#include "formats/out/report_tree.h"
#include "formats/out/report_tree_text.h"
#include "formats/out/report_wall.h"
#include "formats/out/text_limit.h"

static const char *const by_names[REPORT_BY_COUNT] = {
	[REPORT_FUNCTION] = "function",	  [REPORT_THREAD] = "thread",
	[REPORT_PROCESS] = "process",	  [REPORT_DSO] = "dso",
	[REPORT_LINE] = "line",		  [REPORT_SERVICE] = "service",
	[REPORT_CONTAINER] = "container", [REPORT_UNIT] = "unit",
	[REPORT_USER] = "user",
};

const char *report_by_name(enum report_by by)
{
	return by_names[by];
}

int report_by_parse(const char *text, enum report_by *by)
{
	for (unsigned int i = 0; i < REPORT_BY_COUNT; i++) {
		if (strcmp(by_names[i], text))
			continue;
		*by = (enum report_by)i;
		return 0;
	}
	return -EINVAL;
}

/* The least count that is such a share of all. */
static uint64_t least_samples(const struct profile *p, double share)
{
	return (uint64_t)ceil(share * (double)p->event_count);
}

static int write_table(const struct export_request *request, const struct report_options *options)
{
	_cleanup_free_ struct report_row *rows = NULL;
	const struct profile *p = request->profile;
	uint64_t least = least_samples(p, options->min_share);
	struct report_table table = {};
	size_t count = 0;
	int err = report_rows(p, options->by, &rows, &count);

	if (err)
		return err;
	while (count && rows[count - 1].self < least) /* they are sorted by that */
		count--;
	table.rows = rows;
	table.count = count;
	table.shown = min_u64(count, request->top ? request->top : REPORT_TOP_DEFAULT);
	return options->json ? report_table_json(p, options, &table, request->out)
			     : report_table_text(p, options, &table, request->out);
}

/* ---- names of a tree, which are printed again for each node ---------------------------------- */

static uint64_t bytes_of(const char *text, const struct text_limit *limit)
{
	return text ? text_limit__bytes(limit, text_size_of(text)) : 0;
}

static uint64_t measure_nodes(const struct report_tree *tree, size_t shown,
			      const struct text_limit *limit)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < shown; i++)
		bytes += bytes_of(tree->nodes.data[i].row->name, limit) +
			 bytes_of(tree->nodes.data[i].row->place, limit);
	return bytes;
}

/* A text that is too long becomes one of the tree's own. */
static int cut_text(struct report_tree *tree, struct text_limit *limit, const char **text)
{
	char buffer[TEXT_CUT_SIZE], *copy;

	if (!*text || text_limit__cut(limit, *text, buffer) == *text)
		return 0;
	copy = strdup(buffer);
	if (!copy || vec_push(&tree->texts, copy)) {
		free(copy);
		return -ENOMEM;
	}
	*text = copy;
	return 0;
}

static int limit_names(struct report_tree *tree, const struct export_request *request, size_t shown)
{
	struct text_limit limit = {.p = request->profile, .most = text_limit_of(request->profile)};
	int err = 0;

	while (text_limit__tighten(&limit, measure_nodes(tree, shown, &limit)))
		;
	for (size_t i = 0; i < tree->code.rows.count && limit.step && !err; i++)
		err = cut_text(tree, &limit, &tree->code.rows.data[i].name)
			      ?: cut_text(tree, &limit, &tree->code.rows.data[i].place);
	text_limit__report(&limit, request);
	return err;
}

static int write_tree(const struct export_request *request, const struct report_options *options)
{
	const struct profile *p = request->profile;
	struct report_tree tree;
	size_t shown;
	int err = report_tree__init(&tree, p, options->by, options->shape == REPORT_CALLERS,
				    least_samples(p, options->min_share));

	shown = tree.nodes.count;
	if (request->top)
		shown = min_u64(shown, request->top);
	if (!err)
		err = limit_names(&tree, request, shown);
	if (!err)
		err = options->json ? report_tree_json(p, options, &tree, shown, request->out)
				    : report_tree_text(p, options, &tree, shown, request->out);
	report_tree__fini(&tree);
	return err;
}

static int write_annotation(const struct export_request *request,
			    const struct report_options *options)
{
	struct annotation a;
	int err = annotation__init(&a, request->profile, options->annotate);

	if (!err)
		err = options->json ? annotation_json(&a, options, request->out)
				    : annotation_text(&a, options, request->out);
	annotation__fini(&a);
	return err;
}

int report_write(const struct export_request *request, const struct report_options *options)
{
	if (options->json)
		report_jits_left_out(request);
	if (options->wall)
		return report_wall(request, options);
	if (options->shape == REPORT_ANNOTATION)
		return write_annotation(request, options);
	return options->shape == REPORT_TABLE ? write_table(request, options)
					      : write_tree(request, options);
}

/* ---- the .txt format ------------------------------------------------------------------------- */

static int write_text(const struct export_request *request)
{
	const struct report_options options = {.by = REPORT_FUNCTION};

	return report_write(request, &options);
}

const struct exporter text_exporter = {
	.name = "text",
	.suffixes = (const char *const[]){".txt", NULL},
	.description = "the functions with the most samples, as text",
	.how_to_open = "read %s",
	.write = write_text,
};
