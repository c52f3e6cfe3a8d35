/* SPDX-License-Identifier: BSD-2-Clause */
/* The GIL's line of the summary: of forged tables, as a builder would have made them. */
#include "unit.h"
#include "base/cleanup.h"
#include "base/json_writer.h"
#include "formats/out/gil.h"
#include "profile/profile.h"

static const char *const strings[] = {"", "server", "worker", "batch"};

static struct profile_process processes[] = {
	{},
	{.pid = 7, .name = {1}, .start = 0, .end = 0},
	{.pid = 8, .name = {3}, .start = 500, .end = 1500},
};

static struct profile_thread threads[] = {
	{},
	{.process = {1}, .tid = 7, .name = {1}},
	{.process = {1}, .tid = 71, .name = {2}},
	{.process = {2}, .tid = 8, .name = {3}},
};

static const struct profile_gil gils[] = {
	{{1}, {1}, .samples = 10, .held = 0, .waiting = 2, .held_time = 0},
	{{2}, {3}, .samples = 4, .held = 4, .held_time = 900},
	{{1}, {2}, .samples = 30, .held = 30, .held_time = 500},
};

static struct profile profile(void)
{
	return (struct profile){
		.start = 1000,
		.end = 2000,
		.strings = strings,
		.string_count = 4,
		.processes = processes,
		.process_count = 3,
		.threads = threads,
		.thread_count = 4,
		.gils = gils,
		.gil_count = 3,
	};
}

TEST(gil_shares_are_of_the_recorded_process_life)
{
	const struct profile p = profile();
	_cleanup_(gil_table__fini) struct gil_table table = {};

	gil_table__init(&table, &p);
	assert_int_equal(table.count, 2);
	/* recorded for 500 ns of its life: a share is never more than all of the time */
	assert_int_equal(table.processes[0].rows[0].thread.v, 3);
	assert_true(table.processes[0].share > 0.99 && table.processes[0].share <= 1);
	assert_int_equal(table.processes[1].count, 2);
	assert_int_equal(table.processes[1].rows[0].thread.v, 2);
	assert_int_equal(table.processes[1].held, 30);
	assert_int_equal(table.processes[1].waiting, 2);
	assert_true(table.processes[1].share > 0.49 && table.processes[1].share < 0.51);
}

TEST(a_gil_is_described_by_shares_holder_and_waits)
{
	const struct profile p = profile();
	_cleanup_(gil_table__fini) struct gil_table table = {};
	char text[GIL_TEXT_SIZE], cut[20];

	gil_table__init(&table, &p);
	describe_gil(text, sizeof(text), &p, &table.processes[1]);
	assert_string_equal(
		text,
		"server (pid 7): held in 75.0 % of 40 samples of 2 threads, 50.0 % of the time; held by "
		"worker (tid 71) 100.0 %; 2 samples about to wait for it");
	describe_gil(cut, sizeof(cut), &p, &table.processes[1]);
	assert_int_equal(strlen(cut), sizeof(cut) - 1);
}

TEST(threads_beyond_the_limit_are_counted_in_json)
{
	static struct profile_gil many[4200];
	struct profile p = profile();
	struct json_writer w;
	size_t size, rows = 0;
	_cleanup_free_ char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < 4200; i++)
		many[i] = (struct profile_gil){{1}, {1}, .samples = 1};
	p.gils = many;
	p.gil_count = 4200;
	assert_non_null(out);
	json_writer__init(&w, out);
	json_begin_object(&w);
	write_gils(&p, &w);
	json_end_object(&w);
	assert_int_equal(json_writer__finish(&w), 0);
	assert_int_equal(fclose(out), 0);
	for (const char *at = text; (at = strstr(at, "\"tid\"")); at++)
		rows++;
	assert_int_equal(rows, 4096);
	assert_non_null(strstr(text, "\"threads_left_out\":104"));
	assert_null(strstr(text, "gil_left_out"));
}

TEST(a_profile_without_gils_has_an_empty_table)
{
	struct profile p = profile();
	_cleanup_(gil_table__fini) struct gil_table table = {};

	p.gil_count = 0;
	gil_table__init(&table, &p);
	assert_int_equal(table.count, 0);
}
