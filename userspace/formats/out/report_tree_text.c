/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A tree as text. Stacks are deep and terminals are narrow, so only a fork goes to the right: a
 * node with a single shown child stands above that child, in the same column.
 *
 *    total  +/-    self  call tree
 *   99.00% 0.61   0.00%  main  app               main calls only run, which is in app too
 *   99.00% 0.61   1.00%  run
 *   60.00% 3.01  60.00%  ├─ sort
 *   38.00% 2.98   0.00%  └─ parse
 *   38.00% 2.98  38.00%     next_token
 */
#include "formats/out/report_tree_text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/out/report_header.h"
#include "formats/out/report_paint.h"
#include "formats/out/report_rows.h"
#include "formats/out/report_tree.h"

#define LEVEL_COLUMNS  3
#define LEVELS_MIN     4
#define TREE_FIXED     23 /* columns before the tree */
#define CALLERS_FIXED  15
#define NAME_WIDTH_MIN 12

struct lines {
	const char *through, *fork, *last, *nothing;
};

static const struct lines utf8_lines = {"│  ", "├─ ", "└─ ", "   "};
static const struct lines ascii_lines = {"|  ", "|- ", "`- ", "   "};

struct tree_text {
	const struct profile *p;
	const struct report_options *options;
	const struct report_tree *tree;
	const struct lines *lines;
	bool callers;
	uint32_t *levels; /* by node: how far to the right */
	bool *goes_on;	  /* by level: more siblings come below */
	size_t levels_max;
	FILE *out;
};

static uint32_t siblings_of(const struct tree_text *t, const struct report_node *node)
{
	return node->parent == REPORT_NO_NODE ? t->tree->roots
					      : t->tree->nodes.data[node->parent].children;
}

/* Is it one of several, or below a thread or process, which calls nothing? */
static bool is_fork(const struct tree_text *t, const struct report_node *node)
{
	return siblings_of(t, node) > 1 ||
	       (node->parent != REPORT_NO_NODE && t->tree->nodes.data[node->parent].group);
}

/* Prints the lines left of a node; returns how many columns they take. */
static size_t print_lines(struct tree_text *t, uint32_t level, bool fork, bool last)
{
	bool color = t->options->color;
	uint32_t first = 1;
	size_t columns = 0;

	paint_begin(t->out, color, PAINT_DIM);
	if (t->levels_max && level > t->levels_max) {
		first = level - (uint32_t)t->levels_max + 1;
		columns += (size_t)fprintf(t->out, "+%" PRIu32 " ", first - 1);
	}
	for (uint32_t i = first; i <= level; i++) {
		if (fork && i == level)
			fputs(last ? t->lines->last : t->lines->fork, t->out);
		else
			fputs(t->goes_on[i] ? t->lines->through : t->lines->nothing, t->out);
		columns += LEVEL_COLUMNS;
	}
	paint_end(t->out, color, PAINT_DIM);
	return columns;
}

static void print_share(const struct tree_text *t, uint64_t samples)
{
	paint_share(t->out, t->options->color, share_of(samples, t->p->event_count));
}

/* The farther edge of the interval: the error of the share. */
static double error_of(const struct profile *p, const struct report_node *node)
{
	struct interval range = share_interval(p, node->total, node->total_square);
	double share = share_of(node->total, p->event_count);

	return share - range.low > range.high - share ? share - range.low : range.high - share;
}

/* Does the node above it show the same dso? */
static bool is_same_place(const struct tree_text *t, const struct report_node *node)
{
	const struct report_node *above = node->parent == REPORT_NO_NODE
						  ? NULL
						  : &t->tree->nodes.data[node->parent];

	return above && !above->group && !node->row->line && !above->row->line &&
	       node->row->place && !strcmp(node->row->place, above->row->place);
}

/* The text after the name: the place of the code, or the process of the thread. NULL: no memory. */
static char *describe_place(const struct tree_text *t, const struct report_node *node)
{
	const struct report_row *row = node->row;
	bool shown = row->place && !is_same_place(t, node);
	_cleanup_free_ char *place = printable_copy(shown ? row->place : " ");
	char *text = NULL;
	int n;

	if (!place)
		return NULL;
	if (row->tid)
		n = asprintf(&text, "%s, pid %" PRIu32 ", tid %" PRIu32, place, row->pid, row->tid);
	else if (node->group && !report_by_names(t->options->by))
		n = asprintf(&text, "pid %" PRIu32, row->pid);
	else if (row->line)
		n = asprintf(&text, "%s:%" PRIu32, place, row->line);
	else
		n = asprintf(&text, "%s", shown ? place : "");
	return n < 0 ? NULL : text;
}

/* Children that were cut are mentioned if together they would have been shown. */
static void print_cut(const struct tree_text *t, uint32_t count, uint64_t total, const char *before)
{
	double share = share_of(total, t->p->event_count);

	if (!count || share < t->options->min_share)
		return;
	paint_text(t->out, t->options->color, PAINT_DIM, "%s[%" PRIu32 " smaller: %.2f%%]", before,
		   count, 100 * share);
}

static int print_names(struct tree_text *t, const struct report_node *node, size_t used)
{
	_cleanup_free_ char *name = printable_copy(node->row->name);
	_cleanup_free_ char *place = describe_place(t, node);
	bool color = t->options->color, utf8 = t->options->utf8;
	size_t width = t->options->width, room, places;

	if (!name || !place)
		return -ENOMEM;
	if (width) {
		room = width > used + NAME_WIDTH_MIN ? width - used : NAME_WIDTH_MIN;
		places = text_columns(place);
		if (places && text_columns(name) + 2 + places > room) {
			shorten_text(place, room / 3, true, utf8);
			places = text_columns(place);
		}
		if (places && places + 2 + NAME_WIDTH_MIN > room)
			*place = 0;
		shorten_text(name, room - (*place ? text_columns(place) + 2 : 0), false, utf8);
	}
	paint_text(t->out, color, paint_of_category(node->row->category), "%s", name);
	if (*place)
		paint_text(t->out, color, PAINT_DIM, "  %s", place);
	used += text_columns(name) + 2 + text_columns(place);
	if (!width || used + sizeof("  [4294967295 smaller: 100.00%]") <= width)
		print_cut(t, node->cut, node->cut_total, "  ");
	return 0;
}

static int print_node(struct tree_text *t, uint32_t number)
{
	const struct report_node *node = &t->tree->nodes.data[number];
	uint32_t level = node->parent == REPORT_NO_NODE ? 0 : t->levels[node->parent];
	bool fork = is_fork(t, node);
	size_t columns = t->callers ? CALLERS_FIXED : TREE_FIXED;
	int err;

	level += fork;
	t->levels[number] = level;
	print_share(t, node->total);
	if (t->p->uncounted)
		fprintf(t->out, " %5s", "?");
	else
		fprintf(t->out, " %5.2f", 100 * error_of(t->p, node));
	if (!t->callers) {
		fputc(' ', t->out);
		print_share(t, node->self);
	}
	fputs("  ", t->out);
	columns += print_lines(t, level, fork, node->last);
	if (fork)
		t->goes_on[level] = !node->last;
	err = print_names(t, node, columns);
	fputc('\n', t->out);
	return err;
}

static void print_titles(const struct tree_text *t)
{
	paint_text(t->out, t->options->color, PAINT_DIM, "%7s %5s %s %s",
		   t->callers ? profile__event(t->p) : "total", "+/-", t->callers ? "" : "   self ",
		   t->callers ? "function, and its callers below it" : "call tree");
	fputc('\n', t->out);
}

static int print_nodes(struct tree_text *t, size_t shown)
{
	size_t count = t->tree->nodes.count;
	uint32_t depth = 0;
	int err = 0;

	for (size_t i = 0; i < count; i++)
		if (t->tree->nodes.data[i].depth > depth)
			depth = t->tree->nodes.data[i].depth;
	t->levels = calloc(count + 1, sizeof(*t->levels));
	t->goes_on = calloc(depth + 2, sizeof(*t->goes_on));
	if (!t->levels || !t->goes_on)
		return -ENOMEM;
	if (t->options->width)
		t->levels_max = t->options->width / 3 / LEVEL_COLUMNS;
	if (t->options->width && t->levels_max < LEVELS_MIN)
		t->levels_max = LEVELS_MIN;
	for (uint32_t i = 0; i < shown && !err; i++)
		err = print_node(t, i);
	return err;
}

int report_tree_text(const struct profile *p, const struct report_options *options,
		     const struct report_tree *tree, size_t shown, FILE *out)
{
	struct tree_text t = {
		.p = p,
		.options = options,
		.tree = tree,
		.lines = options->utf8 ? &utf8_lines : &ascii_lines,
		.callers = options->shape == REPORT_CALLERS,
		.out = out,
	};
	int err = report_header(p, out);

	fputc('\n', out);
	print_titles(&t);
	if (!err)
		err = print_nodes(&t, shown);
	if (tree->cut && share_of(tree->cut_total, p->event_count) >= options->min_share) {
		print_cut(&t, tree->cut, tree->cut_total, "");
		fputc('\n', out);
	}
	if (shown < tree->nodes.count)
		fprintf(out, "# … and %zu more\n", tree->nodes.count - shown);
	free(t.levels);
	free(t.goes_on);
	return err;
}
