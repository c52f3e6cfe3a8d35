/* SPDX-License-Identifier: BSD-2-Clause */
/* Folded stacks and the report. */
#include "export_support.h"

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

TEST(folded_lines_are_sorted_and_keep_all_samples)
{
	_cleanup_fixture_ struct fixture f;
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
}

/* Names that begin as others do: their order is that of whole lines, counts included. */
TEST(names_that_are_prefixes_sort_by_whole_lines)
{
	static const char *const names[] = {"a",   "a(int)", "a 1", "a 12", "a 2",
					    "a:b", "a1",     "ab",  "a 1 "};
	struct location_id places[9];
	struct thread_id thread;
	_cleanup_fixture_ struct fixture f;
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
}

TEST(a_thread_is_no_comment_of_folded_stacks)
{
	_cleanup_fixture_ struct fixture f;
	_cleanup_free_ char *text = NULL;
	struct thread_id thread;
	struct location_id place;

	fixture__init(&f, 1000);
	f.process = add_process(&f, 1, "a", 0, 0);
	thread = add_thread(&f, f.process, 1, true, "a", 0);
	place = add_location(&f, f.program, 0x10);
	add_sample(&f, thread, 1, STACK(&f, place), 1, "# weights: #");
	NAME(&f, place, {.function = "#f"});
	text = export_text(&folded_exporter, finish(&f), NULL);
	assert_string_equal(text, "\\x23 weights: #;#f 1\n");
}

/* ---- report ---------------------------------------------------------------------------------- */

TEST(self_samples_add_up_in_every_grouping)
{
	_cleanup_fixture_ struct fixture f;
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
}

TEST(rows_beyond_the_top_are_counted)
{
	_cleanup_fixture_ struct fixture f;
	const struct profile *p = build_random(&f, 9, 15, 3000);
	_cleanup_cjson_ cJSON *report = report_json(p, REPORT_FUNCTION, 3);
	_cleanup_free_ char *text = report_text(p, REPORT_FUNCTION, 3, false);
	const char *more;

	assert_int_equal(cJSON_GetArraySize(get(report, "rows")), 3);
	assert_true(number(report, "row_count") > 3);
	more = strstr(text, " more\n");
	assert_non_null(more);
	assert_int_equal(strlen(more), strlen(" more\n"));
}

TEST(every_report_is_printable_utf8)
{
	_cleanup_fixture_ struct fixture f;
	const struct profile *p = build_profile(&f, "hostile");

	for (unsigned int by = 0; by < REPORT_BY_COUNT; by++) {
		_cleanup_free_ char *text = report_text(p, (enum report_by)by, 0, false);

		assert_valid_utf8(text);
		for (const char *c = text; *c; c++)
			assert_true(*c == '\n' || (unsigned char)*c >= 0x20);
	}
}
