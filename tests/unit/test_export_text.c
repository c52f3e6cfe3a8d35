/* SPDX-License-Identifier: BSD-2-Clause */
/* Folded stacks and the report. */
#include "export_support.h"

#include <errno.h>

#include "base/utf8.h"
#include "formats/out/report.h"

static char *report_text(const struct profile *p, enum report_by by, unsigned int top, bool json)
{
	const struct report_options options = {.by = by, .json = json};
	struct export_request request = {.profile = p, .top = top};
	char *data = NULL;
	size_t size;

	request.out = open_memstream(&data, &size);
	assert_non_null(request.out);
	assert_int_equal(report_write(&request, &options), 0);
	assert_int_equal(fclose(request.out), 0);
	return data;
}

static cJSON *report_json(const struct profile *p, enum report_by by, unsigned int top)
{
	char *data = report_text(p, by, top, true);
	cJSON *json = cJSON_Parse(data);

	assert_non_null(json);
	free(data);
	return json;
}

static void assert_valid_utf8(const char *text)
{
	for (size_t left = strlen(text); left;) {
		size_t size = utf8_sequence(text, left);

		assert_true(size > 0);
		text += size;
		left -= size;
	}
}

/* ---- folded ---------------------------------------------------------------------------------- */

TEST(equal_stacks_are_folded_into_one_line)
{
	struct fixture f;
	char *text = export_text(&folded_exporter, build_profile(&f, "recursion"), NULL);

	assert_string_equal(
		text, "fixture;__libc_start_call_main;main;fib 1\n"
		      "fixture;__libc_start_call_main;main;fib;do_syscall_64_[k];schedule_[k] 1\n"
		      "fixture;__libc_start_call_main;main;fib;fib 2\n"
		      "fixture;__libc_start_call_main;main;fib;fib;clamp;min 2\n"
		      "fixture;__libc_start_call_main;main;fib;fib;fib;fib 2\n"
		      "fixture;do_syscall_64_[k];schedule_[k] 1\n");
	free(text);
	profile_builder__free(f.b);
}

TEST(folded_frames_have_line_numbers_on_request)
{
	const struct export_request options = {.lines = true};
	struct fixture f;
	char *text = export_text(&folded_exporter, build_profile(&f, "recursion"), &options);

	assert_non_null(strstr(text, "__libc_start_call_main;main:40;fib:12;fib:11 1\n"));
	assert_non_null(strstr(text, "main:40;fib:12;fib:14;clamp:7;min:3 1\n"));
	free(text);
	profile_builder__free(f.b);
}

/* The name of the thread is that of the time of the sample. */
TEST(folded_stacks_have_the_thread_name_of_their_time)
{
	struct fixture f;
	char *text = export_text(&folded_exporter, build_profile(&f, "processes"), NULL);

	assert_non_null(strstr(text, "fixture;main;0x7f0000001000;write 2\n"));
	assert_non_null(strstr(text, "worker-1;main;0x7f0000001000;write 2\n"));
	free(text);
	profile_builder__free(f.b);
}

TEST(control_characters_are_escaped_in_folded_stacks)
{
	struct fixture f;
	char *text = export_text(&folded_exporter, build_profile(&f, "hostile"), NULL);
	size_t lines = 0;

	assert_valid_utf8(text);
	for (const char *c = text; *c; c++) {
		assert_true(*c == '\n' || (unsigned char)*c >= 0x20);
		lines += *c == '\n';
	}
	assert_int_equal(lines, 5);
	assert_non_null(
		strstr(text, "co mm:\"x\"\\xff;operator\"\" _x: \\ \\x09\\x1b[31m;new line"));
	assert_non_null(strstr(text, "\n__proto__;new line  and \\xff\\xfe\\xc0\\xaf;LLLL"));
	assert_non_null(strstr(text, "[unknown];operator\"\" _x: \\ \\x09\\x1b[31m;[unknown] 1\n"));
	assert_non_null(strstr(text, "\ntrailing;operator"));
	free(text);
	profile_builder__free(f.b);
}

/* Byte order, no line twice, and no sample lost. */
TEST(folded_lines_are_sorted_and_keep_all_samples)
{
	struct fixture f;
	const struct profile *p = build_random(&f, 5, 20, 8000);
	char *text = export_text(&folded_exporter, p, NULL), *rest = text, *line, *last = NULL;
	unsigned long samples = 0;

	while ((line = strsep(&rest, "\n")) && *line) {
		assert_true(!last || strcmp(last, line) < 0);
		samples += strtoul(strrchr(line, ' ') + 1, NULL, 10);
		last = line;
	}
	assert_int_equal(samples, p->sample_count);
	free(text);
	profile_builder__free(f.b);
}

/* Names that begin as others do: their order is that of whole lines, counts included. */
TEST(names_that_are_prefixes_sort_by_whole_lines)
{
	static const char *const names[] = {"a",   "a(int)", "a 1", "a 12", "a 2",
					    "a:b", "a1",     "ab",  "a 1 "};
	struct location_id places[9];
	struct thread_id thread;
	struct fixture f;
	unsigned int time = 1;
	char *text, *rest, *line, *last = NULL;
	size_t lines = 0;

	fixture__init(&f, 1000);
	f.process = add_process(&f, 1, "a", 0, 0);
	thread = add_thread(&f, f.process, 1, true, "a", 0);
	for (unsigned int i = 0; i < 9; i++)
		places[i] = add_location(&f, f.program, 0x10 + 16 * i);
	for (unsigned int i = 0; i < 9; i++)
		for (unsigned int j = 0; j < 9; j++)
			for (unsigned int n = 0; n < (i + j) % 3 * 6 + 1; n++) {
				add_sample(&f, thread, time++, STACK(&f, places[i], places[j]), 1,
					   "a");
				add_sample(&f, thread, time++, STACK(&f, places[i]), 1, "a");
			}
	for (unsigned int i = 0; i < 9; i++)
		NAME(&f, places[i], {.function = names[i]});
	rest = text = export_text(&folded_exporter, finish(&f), NULL);
	while ((line = strsep(&rest, "\n")) && *line) {
		assert_true(!last || strcmp(last, line) < 0);
		last = line;
		lines++;
	}
	assert_int_equal(lines, 8 * 8 + 8); /* the space at the end of one is cut off */
	free(text);
	profile_builder__free(f.b);
}

/* ---- report ---------------------------------------------------------------------------------- */

static const cJSON *find_row(const cJSON *report, const char *key, const char *value)
{
	const cJSON *row;

	cJSON_ArrayForEach (row, get(report, "rows")) {
		if (!strcmp(string(row, key), value))
			return row;
	}
	fail_msg("no row with %s %s", key, value);
	return NULL;
}

TEST(the_report_counts_recursion_once)
{
	struct fixture f;
	cJSON *report = report_json(build_profile(&f, "recursion"), REPORT_FUNCTION, 0);
	const cJSON *fib = find_row(report, "function", "fib");
	const cJSON *clamp = find_row(report, "function", "clamp");

	assert_true(number(fib, "self") == 5);
	assert_true(number(fib, "total") == 8);
	assert_string_equal(string(fib, "dso"), "fixture");
	assert_true(number(clamp, "self") == 0);
	assert_true(number(clamp, "total") == 2);
	assert_int_equal(cJSON_GetArraySize(get(report, "rows")), 7);
	cJSON_Delete(report);
	profile_builder__free(f.b);
}

TEST(a_row_by_line_has_its_file_and_samples)
{
	struct fixture f;
	cJSON *report = report_json(build_profile(&f, "recursion"), REPORT_LINE, 0);
	const cJSON *row;
	bool found = false;

	cJSON_ArrayForEach (row, get(report, "rows")) {
		const cJSON *line = cJSON_GetObjectItem(row, "line");

		if (!line || line->valueint != 12)
			continue;
		found = true;
		assert_string_equal(string(row, "file"), "/src/a dir/fib.c");
		assert_true(number(row, "self") == 0);
		assert_true(number(row, "total") == 4);
	}
	assert_true(found);
	assert_string_equal(string(find_row(report, "function", "schedule"), "dso"),
			    "[kernel.kallsyms]");
	cJSON_Delete(report);
	profile_builder__free(f.b);
}

TEST(samples_are_summed_by_dso)
{
	struct fixture f;
	cJSON *report = report_json(build_profile(&f, "processes"), REPORT_DSO, 0);

	assert_true(number(find_row(report, "dso", "libc.so.6"), "self") == 21);
	assert_true(number(find_row(report, "dso", "fixture"), "total") == 11);
	assert_true(number(find_row(report, "dso", "[jit]"), "self") == 0);
	assert_true(number(find_row(report, "dso", "[kernel.kallsyms]"), "self") == 4);
	assert_true(number(find_row(report, "dso", "[unknown]"), "self") == 4);
	cJSON_Delete(report);
	profile_builder__free(f.b);
}

TEST(threads_and_processes_have_their_cpu_time)
{
	struct fixture f;
	const struct profile *p = build_profile(&f, "processes");
	cJSON *report = report_json(p, REPORT_THREAD, 0);
	const cJSON *row = find_row(report, "thread", "worker-1");

	assert_true(number(row, "self") == 8);
	assert_true(number(row, "tid") == 301);
	assert_true(number(row, "pid") == 300);
	assert_true(number(row, "cpu_ns") == 7920777);
	assert_string_equal(string(row, "process"), "fixture");
	assert_int_equal(cJSON_GetArraySize(get(report, "rows")), 5);
	cJSON_Delete(report);

	report = report_json(p, REPORT_PROCESS, 0);
	row = find_row(report, "process", "fixture");
	assert_true(number(row, "self") == 11);
	assert_true(number(row, "threads") == 2);
	assert_true(number(row, "cpu_ns") == 7920777 + 1500000 + 4321);
	assert_int_equal(cJSON_GetArraySize(get(report, "rows")), 4);
	cJSON_Delete(report);
	profile_builder__free(f.b);
}

/* Self samples add up to all samples, and no total is above them, whatever the grouping. */
TEST(self_samples_add_up_in_every_grouping)
{
	struct fixture f;
	const struct profile *p = build_random(&f, 9, 15, 3000);

	for (unsigned int by = 0; by < REPORT_BY_COUNT; by++) {
		cJSON *report = report_json(p, (enum report_by)by, 1000000);
		const cJSON *row;
		double self = 0, last = 1e18;

		cJSON_ArrayForEach (row, get(report, "rows")) {
			const cJSON *total = cJSON_GetObjectItem(row, "total");

			assert_true(number(row, "self") <= last);
			last = number(row, "self");
			self += last;
			if (total)
				assert_true(total->valuedouble >= last &&
					    total->valuedouble <= (double)p->sample_count);
		}
		assert_true(self == (double)p->sample_count);
		cJSON_Delete(report);
	}
	profile_builder__free(f.b);
}

TEST(rows_beyond_the_top_are_counted)
{
	struct fixture f;
	const struct profile *p = build_random(&f, 9, 15, 3000);
	cJSON *report = report_json(p, REPORT_FUNCTION, 3);
	char *text = report_text(p, REPORT_FUNCTION, 3, false);
	const char *more;

	assert_int_equal(cJSON_GetArraySize(get(report, "rows")), 3);
	assert_true(number(report, "row_count") > 3);
	more = strstr(text, " more\n");
	assert_non_null(more);
	assert_int_equal(strlen(more), strlen(" more\n"));
	free(text);
	cJSON_Delete(report);
	profile_builder__free(f.b);
}

TEST(every_report_is_printable_utf8)
{
	struct fixture f;
	const struct profile *p = build_profile(&f, "hostile");

	for (unsigned int by = 0; by < REPORT_BY_COUNT; by++) {
		char *text = report_text(p, (enum report_by)by, 0, false);

		assert_valid_utf8(text);
		for (const char *c = text; *c; c++)
			assert_true(*c == '\n' || (unsigned char)*c >= 0x20);
		free(text);
	}
	profile_builder__free(f.b);
}

TEST(the_header_has_time_losses_and_clock)
{
	struct fixture f;
	char *text = export_text(&text_exporter, build_profile(&f, "recursion"), NULL);

	assert_non_null(strstr(text, "started    2023-11-14 22:13:20 UTC, for 0.050 s\n"));
	assert_non_null(strstr(text, "# lost       2 ring-full"));
	assert_non_null(strstr(text, "88.9 % complete; cut: 1 fault"));
	assert_non_null(strstr(text, "TSC at 2400.000 MHz"));
	free(text);
	profile_builder__free(f.b);
}

TEST(only_whole_names_of_groupings_are_parsed)
{
	enum report_by by = REPORT_BY_COUNT;

	assert_int_equal(report_by_parse("line", &by), 0);
	assert_int_equal(by, REPORT_LINE);
	assert_int_equal(report_by_parse("lines", &by), -EINVAL);
	assert_int_equal(report_by_parse("", &by), -EINVAL);
	assert_int_equal(by, REPORT_LINE);
}
