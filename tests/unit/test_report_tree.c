/* SPDX-License-Identifier: BSD-2-Clause */
/* Trees of a report: what adds up, what is cut, what fits into a terminal; and confidence intervals. */
#include "export_support.h"
#include "formats/out/report_paint.h"
#include "formats/out/report_rows.h"
#include "formats/out/report_tree.h"

#include <errno.h>
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
	struct fixture f;
	const struct profile *p = build_random(&f, 4, 12, 4000);

	for (unsigned int by = 0; by < REPORT_BY_COUNT; by++) {
		for (uint64_t min = 0; min <= 400; min += 40) {
			for (int callers = 0; callers <= 1; callers++) {
				struct report_tree tree;

				assert_int_equal(report_tree__init(&tree, p, by, callers, min), 0);
				assert_adds_up(&tree, p->sample_count, min);
				assert_true(min || tree.nodes.count > 20);
				report_tree__fini(&tree);
			}
		}
	}
	profile_builder__free(f.b);
}

/* The tables say the same: self is what the roots of the callers have, total the tops of all that is below. */
TEST(roots_of_callers_have_self_values_of_the_table)
{
	static const enum report_by groupings[] = {REPORT_FUNCTION, REPORT_LINE, REPORT_DSO};
	struct fixture f;
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
	profile_builder__free(f.b);
}

/* A file does not call itself, in neither direction. */
TEST(a_dso_does_not_call_itself)
{
	struct fixture f;
	const struct profile *p = build_random(&f, 2, 4, 2000);

	for (int callers = 0; callers <= 1; callers++) {
		struct report_tree tree;

		assert_int_equal(report_tree__init(&tree, p, REPORT_DSO, callers, 0), 0);
		for (size_t i = 0; i < tree.nodes.count; i++) {
			const struct report_node *node = &tree.nodes.data[i];

			if (node->depth)
				assert_ptr_not_equal(node->row, tree.nodes.data[node->parent].row);
		}
		report_tree__fini(&tree);
	}
	profile_builder__free(f.b);
}

/* ---- text ------------------------------------------------------------------------------------ */

TEST(only_forks_are_indented_in_the_call_tree)
{
	const struct report_options options = {.shape = REPORT_TREE, .utf8 = true};
	struct fixture f;
	char *text = report(build_profile(&f, "recursion"), &options, 0);

	assert_string_equal(body(text),
			    "  total   +/-    self  call tree\n"
			    " 88.89% 32.39   0.00%  ├─ __libc_start_call_main  libc.so.6\n"
			    " 88.89% 32.39   0.00%  │  main  fixture\n"
			    " 88.89% 32.39  11.11%  │  fib\n"
			    " 66.67% 31.25  22.22%  │  ├─ fib\n"
			    " 22.22% 32.52   0.00%  │  │  ├─ clamp\n"
			    " 22.22% 32.52  22.22%  │  │  │  min\n"
			    " 22.22% 32.52   0.00%  │  │  └─ fib\n"
			    " 22.22% 32.52  22.22%  │  │     fib\n"
			    " 11.11% 32.39   0.00%  │  └─ do_syscall_64  [kernel.kallsyms]\n"
			    " 11.11% 32.39  11.11%  │     schedule\n"
			    " 11.11% 32.39   0.00%  └─ do_syscall_64  [kernel.kallsyms]\n"
			    " 11.11% 32.39  11.11%     schedule\n");
	free(text);
	profile_builder__free(f.b);
}

/* What is below the share is cut, and mentioned where it adds up to it. */
TEST(nodes_below_the_least_share_are_not_printed)
{
	const struct report_options options = {.shape = REPORT_TREE, .min_share = 0.2};
	struct fixture f;
	char *text = report(build_profile(&f, "recursion"), &options, 0);

	assert_non_null(strstr(text, " 88.89% 32.39   0.00%  __libc_start_call_main  libc.so.6\n"));
	assert_null(strstr(text, "schedule"));
	assert_non_null(strstr(text, "|- clamp\n"));
	assert_non_null(strstr(text, "`- fib\n"));
	assert_null(strstr(text, "smaller"));
	free(text);
	profile_builder__free(f.b);
}

TEST(callers_are_listed_below_their_function)
{
	const struct report_options options = {.shape = REPORT_CALLERS};
	struct fixture f;
	char *text = report(build_profile(&f, "recursion"), &options, 8);

	assert_string_equal(body(text),
			    "samples   +/-  function, and its callers below it\n"
			    " 55.56% 28.89  |- fib  fixture\n"
			    " 44.44% 28.89  |  |- fib\n"
			    " 22.22% 32.52  |  |  |- fib\n"
			    " 22.22% 32.52  |  |  |  fib\n"
			    " 22.22% 32.52  |  |  |  main\n"
			    " 22.22% 32.52  |  |  |  __libc_start_call_main  libc.so.6\n"
			    " 22.22% 32.52  |  |  `- main\n"
			    " 22.22% 32.52  |  |     __libc_start_call_main  libc.so.6\n"
			    "# … and 13 more\n");
	free(text);
	profile_builder__free(f.b);
}

TEST(trees_of_threads_have_threads_above_functions)
{
	const struct report_options options = {.by = REPORT_THREAD, .shape = REPORT_TREE};
	struct fixture f;
	char *text = report(build_profile(&f, "processes"), &options, 0);
	const char *worker = strstr(text, "worker-1  fixture, pid 300, tid 301\n");

	assert_non_null(worker);
	assert_non_null(strstr(worker, "`- main  fixture\n"));
	free(text);
	profile_builder__free(f.b);
}

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
		struct fixture f;
		char *text = report(build_profile(&f, names[i % 4]), &options, 0);
		const char *line = body(text), *end;

		for (; (end = strchr(line, '\n')); line = end + 1) {
			char *copy = strndup(line, (size_t)(end - line));

			assert_non_null(copy);
			for (const char *c = copy; *c; c++)
				assert_true((unsigned char)*c >= 0x20);
			if (text_columns(copy) > limit)
				fail_msg("%u columns: %s", options.width, copy);
			free(copy);
		}
		free(text);
		profile_builder__free(f.b);
	}
}

/* Forks that are deeper than a terminal is wide: the lines on the left are left out, and counted. */
TEST(branch_lines_that_do_not_fit_are_counted)
{
	const struct report_options options = {
		.shape = REPORT_TREE, .width = 80, .utf8 = true, .min_share = 0};
	struct location_id locations[41];
	struct thread_id thread;
	struct stack_id stack = {0};
	struct fixture f;
	char *text;

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
	free(text);
	profile_builder__free(f.b);
}

/* A stack that is as deep as one may be takes neither recursion nor squared time. */
TEST(a_stack_of_the_greatest_depth_becomes_a_tree)
{
	struct stack_id stack = {0};
	struct report_tree tree;
	struct thread_id thread;
	struct fixture f;
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
	profile_builder__free(f.b);
}

TEST(names_are_colored_by_kind_and_colors_end)
{
	const struct report_options options = {.shape = REPORT_TREE, .color = true};
	struct fixture f;
	const struct profile *p = build_profile(&f, "recursion");
	char *text = report(p, &options, 0);
	size_t begun = 0, ended = 0;

	assert_non_null(strstr(text, "\033[33mdo_syscall_64\033[0m"));		/* kernel */
	assert_non_null(strstr(text, "\033[36m__libc_start_call_main\033[0m")); /* library */
	assert_non_null(strstr(text, "\033[31m 88.89%\033[0m"));
	for (const char *c = text; (c = strchr(c, '\033')); c++) {
		begun += strncmp(c, "\033[0m", 4) != 0;
		ended += strncmp(c, "\033[0m", 4) == 0;
	}
	assert_int_equal(begun, ended);
	free(text);
	profile_builder__free(f.b);
}

static void assert_shortened(const char *from, size_t columns, bool keep_end, bool utf8,
			     const char *to)
{
	char text[64];

	snprintf(text, sizeof(text), "%s", from);
	shorten_text(text, columns, keep_end, utf8);
	assert_string_equal(text, to);
	assert_true(text_columns(text) <= columns);
}

TEST(shortened_text_fits_and_has_an_ellipsis)
{
	assert_shortened("abcdef", 6, false, true, "abcdef");
	assert_shortened("abcdefgh", 6, false, true, "abcde…");
	assert_shortened("abcdefg", 6, false, true, "abcd…");
	assert_shortened("abcdefgh", 6, false, false, "abcd..");
	assert_shortened("abcdefghij", 6, true, true, "…fghij");
	assert_shortened("abcdefghij", 6, true, false, "..ghij");
	assert_shortened("abcdefg", 6, true, true, "…defg");
	assert_shortened("äöüäöüäöü", 4, false, true, "äöü…");
	assert_shortened("äöüäöüäöü", 4, true, true, "…äöü");
	assert_shortened("日本語日本語", 4, true, true, "…日本語");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

TEST(rows_of_json_have_parents_shares_and_intervals)
{
	const struct report_options options = {
		.shape = REPORT_TREE, .json = true, .min_share = 0.2};
	struct fixture f;
	char *text = report(build_profile(&f, "recursion"), &options, 3);
	cJSON *json = cJSON_Parse(text);
	const cJSON *rows = get(json, "rows"), *fib = cJSON_GetArrayItem(rows, 2);

	assert_true(number(json, "schema") == 1);
	assert_string_equal(string(json, "shape"), "tree");
	assert_true(number(json, "min_share") == 0.2);
	assert_true(number(json, "row_count") == 8);
	assert_int_equal(cJSON_GetArraySize(rows), 3);
	assert_true(cJSON_IsNull(get(cJSON_GetArrayItem(rows, 0), "parent")));
	assert_string_equal(string(fib, "function"), "fib");
	assert_true(number(fib, "depth") == 2);
	assert_true(number(fib, "parent") == 1);
	assert_true(number(fib, "total") == 8);
	assert_true(number(fib, "self") == 1);
	assert_true(number(fib, "self_share") == 0.111111);
	assert_true(number(fib, "cut") == 1);
	assert_true(number(fib, "cut_total") == 1);
	assert_true(cJSON_GetArrayItem(get(fib, "total_interval"), 1)->valuedouble == 0.980109);
	cJSON_Delete(json);
	free(text);
	profile_builder__free(f.b);
}

/* The least share holds for tables as well; what is left out is not counted as "more". */
TEST(the_least_share_holds_for_tables_too)
{
	const struct report_options options = {.by = REPORT_FUNCTION, .min_share = 0.3};
	struct fixture f;
	char *text = report(build_profile(&f, "recursion"), &options, 0);

	assert_string_equal(body(text),
			    "   self   95 % range   samples   total  function  dso\n"
			    " 55.56%  26.67-81.12         5  88.89%  fib       fixture\n");
	free(text);
	profile_builder__free(f.b);
}

/* A dso has one name in all reports, and JIT code of two runtimes is one. */
TEST(waits_have_one_dso_for_all_jit_code)
{
	const struct report_options options = {
		.wall = true, .wall_by = REPORT_WALL_FUNCTION, .parked = true};
	const struct profile_wall wall = {.since = AT(1), .until = AT(5), .blocked = 4 * MS};
	struct fixture f;
	struct thread_id thread;
	char *text;

	fixture__init(&f, 20);
	f.process = add_process(&f, 42, "fixture", 0, 0);
	thread = add_thread(&f, f.process, 42, true, "fixture", 0);
	for (int i = 0; i < 4; i++) {
		struct dso_id dso = i == 3 ? f.kernel
				    : i	   ? add_dso(&f, DSO_RUNTIME, "//python", 0)
					   : f.jit;
		struct location_id location = add_location(&f, dso, 0x7000);
		const struct profile_sample sample = {
			.kind = SAMPLE_WALL,
			.time = AT(2 + i),
			.weight = MS,
			.stack = STACK(&f, location),
			.state = WALL_LOCK,
			.since = AT(1 + i),
			.until = AT(2 + i),
		};

		NAME(&f, location, {.function = i == 3 ? "do_wait" : "hot"});
		profile_builder__sample(f.b, thread, &sample);
	}
	profile_builder__thread_wall(f.b, thread, &wall);
	text = report(finish(&f), &options, 0);
	assert_non_null(strstr(
		text, "       3  lock       hot                                       [jit]\n"));
	assert_non_null(strstr(
		text,
		"       1  lock       do_wait                                   [kernel.kallsyms]\n"));
	free(text);
	profile_builder__free(f.b);
}
