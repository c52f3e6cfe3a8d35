/* SPDX-License-Identifier: BSD-2-Clause */
/* Perf maps as runtimes and others write them, and what of them is still true. */
#include "unit.h"
#include "base/cleanup.h"
#include "jit/jit_timeline.h"
#include "jit/perf_map.h"

struct seen {
	char text[4096];
	size_t used;
	int stop_after;
};

static int see(void *context, const struct perf_map_entry *e)
{
	struct seen *s = context;

	s->used += snprintf(s->text + s->used, sizeof(s->text) - s->used, "%llx+%llx=%.*s;",
			    (unsigned long long)e->start, (unsigned long long)(e->end - e->start),
			    (int)e->name_size, e->name);
	return s->stop_after && !--s->stop_after ? 7 : 0;
}

/* However it is cut into pieces, a map says the same. */
TEST(a_map_in_pieces_gives_the_same_entries)
{
	static const char map[] = "1000 10 one\nno entry\n\n2000 20 two words\r\n\r\n3000 0 last";
	static const char said[] = "1000+10=one;2000+20=two words;3000+0=last;";

	for (size_t piece = 1; piece < sizeof(map); piece++) {
		_cleanup_(perf_map_reader__fini) struct perf_map_reader reader = {};
		struct seen seen = {};

		for (size_t at = 0; at < sizeof(map) - 1; at += piece) {
			size_t left = sizeof(map) - 1 - at;

			assert_int_equal(perf_map_reader__feed(&reader, map + at,
							       left < piece ? left : piece, see,
							       &seen),
					 0);
		}
		assert_null(strstr(seen.text, "last"));
		assert_int_equal(perf_map_reader__finish(&reader, see, &seen), 0);
		assert_string_equal(seen.text, said);
		assert_int_equal(reader.entries, 3);
		assert_int_equal(reader.bad_lines, 1);
	}
}

/* A line that is too long is one bad line, takes no more room than it may, and the next is read. */
TEST(an_overlong_line_is_one_bad_line)
{
	_cleanup_(perf_map_reader__fini) struct perf_map_reader reader = {};
	struct seen seen = {};
	_cleanup_free_ char *piece = malloc(100000);

	memset(piece, 'x', 100000);
	assert_int_equal(perf_map_reader__feed(&reader, "1000 10 ", 8, see, &seen), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(perf_map_reader__feed(&reader, piece, 100000, see, &seen), 0);
	assert_int_equal(perf_map_reader__feed(&reader, "\n2000 10 next\n", 14, see, &seen), 0);
	assert_string_equal(seen.text, "2000+10=next;");
	piece[99999] = '\n';
	assert_int_equal(perf_map_reader__feed(&reader, piece, 100000, see, &seen), 0);
	assert_int_equal(reader.bad_lines, 2);
	seen.stop_after = 1;
	assert_int_equal(perf_map_reader__feed(&reader, "1 1 a\n2 1 b\n", 12, see, &seen), 7);
}

/* The cases that the well-known script answers so, and a few more. */
TEST(entries_overlapped_by_later_ones_are_stale)
{
	static const struct code_range ranges[] = {
		{0x1000, 0x1100}, /* A: the next has a part of it */
		{0x1080, 0x1180}, /* B */
		{0x3000, 0x3000}, /* Z: inside of C */
		{0x2ff0, 0x3010}, /* C */
		{0x4000, 0x4000}, /* Z2: where D begins */
		{0x4000, 0x4010}, /* D */
		{0x5000, 0x5010}, /* E: a single address makes nothing untrue */
		{0x5000, 0x5000}, /* Z3 */
		{0x6000, 0x6010}, /* F: touched, not overlapped */
		{0x6010, 0x6020}, /* G */
		{0x7000, 0x8000}, /* H: what makes it untrue has gone itself */
		{0x7800, 0x7900}, /* I */
		{0x7880, 0x7a00}, /* J */
		{0x9000, 0x9010}, /* K: said twice */
		{0x9000, 0x9010}, /* L */
		{0xa010, 0xa010}, /* Z4: where M ends */
		{0xa000, 0xa010}, /* M */
	};
	static const char said[] = "01010111110010111"; /* 1: still true */
	bool fresh[sizeof(ranges) / sizeof(ranges[0])];
	size_t count = sizeof(ranges) / sizeof(ranges[0]);

	assert_int_equal(find_fresh(ranges, 0, fresh), 0);
	assert_int_equal(find_fresh(ranges, count, fresh), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(fresh[i], said[i] == '1');
}

/* Against the definition, for many small lists. */
TEST(freshness_of_random_ranges_agrees_with_its_definition)
{
	enum { COUNT = 40 };

	srandom(5);
	for (int round = 0; round < 3000; round++) {
		struct code_range ranges[COUNT];
		bool fresh[COUNT];

		for (int i = 0; i < COUNT; i++) {
			ranges[i].start = random() % 60;
			ranges[i].end = ranges[i].start + random() % 12;
		}
		assert_int_equal(find_fresh(ranges, COUNT, fresh), 0);
		for (int i = 0; i < COUNT; i++) {
			bool stale = false;

			for (int j = i + 1; j < COUNT; j++) {
				const struct code_range *a = &ranges[i], *b = &ranges[j];
				uint64_t end = a->end > a->start ? a->end : a->start + 1;

				stale |= b->end > b->start && a->start < b->end && b->start < end;
			}
			assert_int_equal(fresh[i], !stale);
		}
	}
}
