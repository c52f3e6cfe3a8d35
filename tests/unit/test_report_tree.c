/* SPDX-License-Identifier: BSD-2-Clause */
/* Trees of a report: what adds up, what is cut, what fits into a terminal; and confidence intervals. */
#include "export_support.h"
#include "formats/out/report_paint.h"
#include "formats/out/report_rows.h"
#include "formats/out/report_tree.h"

#include <math.h>

#include "formats/out/report.h"
#include "formats/out/report_private.h"

static char *report(const struct profile *p, const struct report_options *options, unsigned int top)
{
	struct export_request request = {.profile = p, .top = top};
	char *data = NULL;
	size_t size;

	request.out = open_memstream(&data, &size);
	assert_non_null(request.out);
	assert_int_equal(report_write(&request, options), 0);
	assert_int_equal(fclose(request.out), 0);
	return data;
}

/* The text without what is above its titles. */
static const char *body(const char *text)
{
	const char *empty_line = strstr(text, "\n\n");

	assert_non_null(empty_line);
	return empty_line + 2;
}

/* ---- intervals ------------------------------------------------------------------------------- */

static void assert_interval(uint64_t part, uint64_t whole, double low, double high)
{
	struct profile p = {.event_count = whole};
	struct interval i = share_interval(&p, part, (double)part);

	assert_true(fabs(i.low - low) < 5e-5 && fabs(i.high - high) < 5e-5);
	assert_true(i.low >= 0 && i.low <= share_of(part, whole));
	assert_true(i.high <= 1 && (!whole || i.high >= share_of(part, whole)));
}

/* Figures of Wilson's interval from statistical tables, and its edges. */
TEST(confidence_intervals_are_those_of_wilson)
{
	assert_interval(5, 10, 0.2366, 0.7634);
	assert_interval(1, 10, 0.0179, 0.4042);
	assert_interval(0, 10, 0, 0.2775);
	assert_interval(10, 10, 0.7225, 1);
	assert_interval(50, 1000, 0.0381, 0.0653);
	assert_interval(0, 0, 0, 1);
	assert_interval(UINT64_MAX, UINT64_MAX, 1, 1);
	assert_interval(1, UINT64_C(1) << 62, 0, 0);
}

/*
 * Of events: 10 samples of 100 events and 1,000 of one. Half of the events are in the ten, so their
 * share is nearly as uncertain as that of 20 samples is; with equal samples nothing changes.
 */
TEST(unequal_event_counts_widen_the_interval)
{
	struct profile p = {.event = {1}, .event_count = 2000, .event_squares = 101000};
	struct profile equal = {.event = {1}, .event_count = 3000, .event_squares = 9000};
	struct interval ten = share_interval(&p, 1000, 100000);
	struct interval same = share_interval(&equal, 150, 450);

	/* 0.5 * 0.5 * 2000 ^ 2 / (0.5 ^ 2 * 100000 + 0.5 ^ 2 * 1000) = 39.6 equal samples */
	assert_true(fabs(ten.low - 0.3511) < 5e-4 && fabs(ten.high - 0.6489) < 5e-4);
	assert_true(fabs(same.low - 0.0381) < 5e-5 && fabs(same.high - 0.0653) < 5e-5);
}

/* ---- what adds up ---------------------------------------------------------------------------- */

/* Parents before children; a node has what it has itself and what is below it, cut or not. */
static void assert_adds_up(const struct report_tree *tree, uint64_t samples, uint64_t min)
{
	uint64_t *below = calloc(tree->nodes.count + 1, sizeof(*below)), roots = tree->cut_total;
	uint32_t *children = calloc(tree->nodes.count + 1, sizeof(*children)), root_count = 0;

	assert_true(below && children);
	for (uint32_t i = 0; i < tree->nodes.count; i++) {
		const struct report_node *node = &tree->nodes.data[i];

		assert_true(node->total >= min && node->total > 0);
		assert_non_null(node->row);
		if (node->parent == REPORT_NO_NODE) {
			assert_int_equal(node->depth, 0);
			roots += node->total;
			root_count++;
			continue;
		}
		assert_true(node->parent < i);
		assert_int_equal(node->depth, tree->nodes.data[node->parent].depth + 1);
		below[node->parent] += node->total;
		children[node->parent]++;
	}
	assert_true(roots == samples);
	assert_int_equal(root_count, tree->roots);
	for (uint32_t i = 0; i < tree->nodes.count; i++) {
		const struct report_node *node = &tree->nodes.data[i];

		assert_true(node->total == node->self + node->cut_total + below[i]);
		assert_int_equal(node->children, children[i]);
		if (!min)
			assert_int_equal(node->cut, 0);
	}
	free(below);
	free(children);
}

TEST(totals_are_self_plus_children_plus_cut_nodes)
{
	_cleanup_fixture_ struct fixture f;
	const struct profile *p = build_random(&f, 4, 12, 4000);

	for (unsigned int by = 0; by < REPORT_BY_COUNT; by++) {
		for (uint64_t min = 0; min <= 400; min += 40) {
			for (int callers = 0; callers <= 1; callers++) {
				_cleanup_(report_tree__fini) struct report_tree tree = {};

				assert_int_equal(report_tree__init(&tree, p, by, callers, min), 0);
				assert_adds_up(&tree, p->sample_count, min);
				assert_true(min || tree.nodes.count > 20);
			}
		}
	}
}

/* The tables say the same: self is what the roots of the callers have, total the tops of all that is below. */
TEST(roots_of_callers_have_self_values_of_the_table)
{
	static const enum report_by groupings[] = {REPORT_FUNCTION, REPORT_LINE, REPORT_DSO};
	_cleanup_fixture_ struct fixture f;
	const struct profile *p = build_random(&f, 8, 6, 3000);

	for (size_t g = 0; g < sizeof(groupings) / sizeof(groupings[0]); g++) {
		struct report_row *rows;
		struct report_tree tree;
		size_t count, roots = 0;

		assert_int_equal(report_rows(p, groupings[g], &rows, &count), 0);
		assert_int_equal(report_tree__init(&tree, p, groupings[g], true, 0), 0);
		for (size_t i = 0; i < tree.nodes.count; i++) {
			const struct report_node *node = &tree.nodes.data[i];

			if (node->depth)
				continue;
			assert_true(node->total == rows[roots].self);
			roots++;
		}
		assert_true(roots == count || !rows[roots].self);
		report_tree__fini(&tree);
		free(rows);
	}
}

TEST(a_dso_does_not_call_itself)
{
	_cleanup_fixture_ struct fixture f;
	const struct profile *p = build_random(&f, 2, 4, 2000);

	for (int callers = 0; callers <= 1; callers++) {
		_cleanup_(report_tree__fini) struct report_tree tree = {};

		assert_int_equal(report_tree__init(&tree, p, REPORT_DSO, callers, 0), 0);
		for (size_t i = 0; i < tree.nodes.count; i++) {
			const struct report_node *node = &tree.nodes.data[i];

			if (node->depth)
				assert_ptr_not_equal(node->row, tree.nodes.data[node->parent].row);
		}
	}
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Whatever the names are: no line is longer than the terminal is wide, and nothing but text goes to it. */
TEST(lines_of_trees_fit_the_terminal_and_are_printable)
{
	static const unsigned int widths[] = {60, 80, 200};
	static const char *const names[] = {"recursion", "processes", "hostile", "gaps"};

	for (size_t i = 0; i < 4 * 3 * REPORT_BY_COUNT * 3; i++) {
		const struct report_options options = {
			.by = (enum report_by)(i / 36),
			.shape = (enum report_shape)(i / 12 % 3),
			.width = widths[i / 4 % 3],
			.utf8 = i % 2,
		};
		/* of a table of tasks the numbers alone take 63 columns */
		unsigned int limit = options.shape == REPORT_TABLE && options.width < 100
					     ? 100
					     : options.width;
		_cleanup_fixture_ struct fixture f = {};
		_cleanup_free_ char *text = report(build_profile(&f, names[i % 4]), &options, 0);
		const char *line = body(text), *end;

		for (; (end = strchr(line, '\n')); line = end + 1) {
			_cleanup_free_ char *copy = strndup(line, (size_t)(end - line));

			assert_non_null(copy);
			for (const char *c = copy; *c; c++)
				assert_true((unsigned char)*c >= 0x20);
			if (text_columns(copy) > limit)
				fail_msg("%u columns: %s", options.width, copy);
		}
	}
}

TEST(branch_lines_that_do_not_fit_are_counted)
{
	const struct report_options options = {
		.shape = REPORT_TREE, .width = 80, .utf8 = true, .min_share = 0};
	struct location_id locations[41];
	struct thread_id thread;
	struct stack_id stack = {0};
	_cleanup_fixture_ struct fixture f;
	_cleanup_free_ char *text;

	fixture__init(&f, 100);
	thread = add_thread(&f, add_process(&f, 7, "deep", 0, 0), 7, true, "deep", 0);
	for (unsigned int i = 0; i <= 40; i++)
		locations[i] = add_location(&f, f.program, 0x100 + 16 * i);
	for (unsigned int i = 0; i < 40; i++) {
		stack = profile_builder__stack(f.b, stack, locations[i]);
		add_sample(&f, thread, 1 + i, profile_builder__stack(f.b, stack, locations[40]), 1,
			   "deep");
	}
	for (unsigned int i = 0; i <= 40; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		NAME(&f, locations[i], {name, "/src/f.c", 1, 0, 0, 0, 0, NULL});
	}
	text = report(finish(&f), &options, 0);
	assert_non_null(strstr(text, " f39\n"));
	assert_non_null(strstr(text, "+31 "));
}

/* A stack that is as deep as one may be takes neither recursion nor squared time. */
TEST(a_stack_of_the_greatest_depth_becomes_a_tree)
{
	struct stack_id stack = {0};
	struct report_tree tree;
	struct thread_id thread;
	_cleanup_fixture_ struct fixture f;
	const struct profile *p;
	struct location_id locations[2];

	fixture__init(&f, 100);
	thread = add_thread(&f, add_process(&f, 7, "deep", 0, 0), 7, true, "deep", 0);
	locations[0] = add_location(&f, f.program, 0x100);
	locations[1] = add_location(&f, f.program, 0x200);
	for (unsigned int i = 0; i < 100000; i++)
		stack = profile_builder__stack(f.b, stack, locations[i % 2]);
	add_sample(&f, thread, 1, stack, 1, "deep");
	NAME(&f, locations[0], {"a", "/src/f.c", 1, 0, 0, 0, 0, NULL});
	NAME(&f, locations[1], {"b", "/src/f.c", 2, 0, 0, 0, 0, NULL});
	p = finish(&f);
	for (int callers = 0; callers <= 1; callers++) {
		assert_int_equal(report_tree__init(&tree, p, REPORT_FUNCTION, callers, 0), 0);
		assert_int_equal(tree.nodes.count, 100000);
		assert_adds_up(&tree, 1, 0);
		report_tree__fini(&tree);
	}
}
