/* SPDX-License-Identifier: BSD-2-Clause */
/* From pieces of perf maps and jitdumps to the names and lines of an address at a time. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "story_text.h"
#include "jit/jit_code.h"

#include "unit/forge_jitdump.h"

static struct jit_code *c; /* of the running test */
static struct dump d;

static void begin(enum jit_code_use use)
{
	jit_code__free(c);
	c = jit_code__new(use);
}

static int end(void **state)
{
	(void)state;
	jit_code__free(c);
	c = NULL;
	return 0;
}

/* The piece is copied, so that reads behind its end are seen. */
static int feed_piece(struct jit_piece piece)
{
	void *copy = malloc(piece.size + !piece.size);
	int err;

	if (piece.size)
		memcpy(copy, piece.bytes, piece.size);
	piece.bytes = copy;
	err = jit_code__feed(c, &piece);
	free(copy);
	return err;
}

static int feed(const void *bytes, size_t size, uint64_t after, uint64_t before)
{
	return feed_piece((struct jit_piece){bytes, size, after, before, false, false});
}

/* A snapshot's first piece, or its last, or both. */
static void feed_snapshot(uint64_t after, uint64_t before, const char *text, bool begins, bool ends)
{
	const struct jit_piece piece = {text, strlen(text), after, before, begins, ends};

	assert_int_equal(feed_piece(piece), 0);
}

static void feed_text(uint64_t after, uint64_t before, const char *text)
{
	feed_snapshot(after, before, text, false, false);
}

static void settle(void)
{
	assert_int_equal(jit_code__settle(c, NULL, NULL), 0);
}

static struct jit_answer request(uint64_t address, uint64_t time)
{
	struct jit_history history = {};
	struct jit_answer answer;

	assert_int_equal(jit_timeline__histories(jit_code__timeline(c), &address, 1, &history), 0);
	answer = jit_history__at(&history, time, jit_code__same_function, c);
	jit_history__fini(&history);
	return answer;
}

/* "TIME NAME, TIME? NAME": what is at the address at these times, "-" for nothing; "?": it is ambiguous. */
static void assert_names(uint64_t address, const char *expected)
{
	struct story_text found = {};

	each_item (at, expected) {
		uint64_t time = strtoull(at, NULL, 10);
		struct jit_answer a = request(address, time);

		add_item(&found, "%" PRIu64 "%s %s", time, a.ambiguous ? "?" : "",
			 a.entry == JIT_NO_ENTRY ? "-" : jit_code__name(c, a.entry));
	}
	assert_string_equal(found.text, expected);
}

static void assert_counts(uint64_t entries, uint64_t bad_lines, uint64_t torn)
{
	struct jit_code_counts counts = jit_code__counts(c);

	assert_int_equal(counts.entries, entries);
	assert_int_equal(counts.bad_lines, bad_lines);
	assert_int_equal(counts.torn, torn);
}

/* ---- perf maps ------------------------------------------------------------------------------- */

/* A line that was cut has the moments of the piece that ends it. */
TEST(divided_lines_have_the_times_of_the_last_piece)
{
	begin(JIT_CODE_MAP);
	feed_text(0, 10, "1000 100 first\nno entry\n2000 10 sec");
	assert_counts(1, 1, strlen("2000 10 sec"));
	feed_text(20, 30, "ond\r\n1000 80 third one\n3000 10 torn");
	assert_counts(3, 1, strlen("3000 10 torn"));
	settle();
	assert_names(0x1010, "5 first, 20 first, 25? third one, 31 third one");
	assert_names(0x1090, "31 -");
	assert_names(0x2000, "20 -, 21 second");
	assert_names(0x3000, "40 -");
	assert_false(jit_code__has_lines(c));
}

static const char MAP[] =
	"1000 100 one\n\nbad\n2000 100 two two\n1080 8 three\n0x3000 0x1 four\r\n";

TEST(a_map_reads_alike_in_pieces_of_any_size)
{
	for (size_t piece = 1; piece < sizeof(MAP); piece++) {
		begin(JIT_CODE_MAP);
		for (size_t at = 0; at < strlen(MAP); at += piece) {
			size_t left = strlen(MAP) - at;

			assert_int_equal(feed(MAP + at, left < piece ? left : piece, 5, 9 + at), 0);
		}
		settle();
		assert_counts(4, 1, 0);
		assert_names(0x1000, "1000 -");
		assert_names(0x1080, "1000 three");
		assert_names(0x20ff, "1000 two two");
		assert_names(0x3000, "1000 four");
	}
}

/* What a file that is written anew does not have any more has ended. */
TEST(code_that_a_rewritten_map_lacks_has_ended)
{
	begin(JIT_CODE_MAP);
	feed_text(0, 10, "1000 100 stays\n2000 100 goes\n7000 10 torn in th");
	feed_snapshot(10, 20, "1000 100 stays\n3000 100 com", true, false);
	feed_snapshot(10, 20, "es\n", false, false);
	feed_snapshot(10, 20, "", false, true);
	feed_text(30, 40, "4000 100 added\n");
	settle();
	assert_counts(5, 0, 0);
	assert_names(0x1000, "5 stays, 15 stays, 50 stays");
	assert_names(0x2000, "10 goes, 15? goes, 21 -");
	assert_names(0x3000, "10 -, 11 comes");
	assert_names(0x4000, "30 -, 31 added");
}

/* Begun and ended at once, with nothing in it: no code is left. The last one does not end. */
TEST(only_a_complete_snapshot_ends_code)
{
	begin(JIT_CODE_MAP);
	feed_text(0, 10, "1000 100 old\n2000 100 other\n");
	feed_snapshot(10, 20, "", true, true);
	feed_text(20, 30, "1000 100 new\n");
	feed_snapshot(40, 50, "5000 100 late\n", true, false);
	settle();
	assert_names(0x1000, "10 old, 15? old, 31 new");
	assert_names(0x2000, "10 other, 21 -");
	/* it may be there, below in what has not come */
	assert_names(0x1000, "60 new");
	assert_names(0x5000, "60 late");
}

TEST(a_nul_in_a_name_becomes_a_question_mark)
{
	static const char TEXT[] = "1000 10 a\0b\0\n2000 10 \0\n3000 10 a?b?\n";

	begin(JIT_CODE_MAP);
	assert_int_equal(feed(TEXT, sizeof(TEXT) - 1, 0, 1), 0);
	settle();
	assert_counts(3, 0, 0);
	assert_names(0x1000, "2 a?b?");
	assert_names(0x2000, "2 ?");
	assert_names(0x3000, "2 a?b?");
}

static bool are_same(const char *name, const char *other)
{
	struct jit_answer a, b;
	bool same;

	begin(JIT_CODE_MAP);
	feed_text(0, 1, "1000 10 ");
	feed_text(0, 1, name);
	feed_text(0, 1, "\n2000 10 ");
	feed_text(0, 1, other);
	feed_text(0, 1, "\n");
	settle();
	a = request(0x1000, 2);
	b = request(0x2000, 2);
	assert_string_equal(jit_code__name(c, a.entry), name);
	assert_string_equal(jit_code__name(c, b.entry), other);
	same = jit_code__same_function(c, a.entry, b.entry);
	assert_int_equal(jit_code__same_function(c, b.entry, a.entry), same);
	assert_true(jit_code__same_function(c, a.entry, a.entry));
	return same;
}

TEST(only_tiers_of_a_function_are_the_same_function)
{
	assert_true(are_same("f", "f"));
	assert_false(are_same("f", "g"));
	assert_true(are_same("JS:~f /a.js:1:2", "JS:*f /a.js:1:2"));
	assert_true(are_same("JS:f /a.js:1:2", "JS:o+'f /a.js:1:2"));
	assert_true(are_same("LazyCompile:*f /a.js:1", "Function:~f /a.js:1"));
	assert_false(are_same("JS:~f /a.js:1:2", "JS:*f /a.js:1:3"));
	assert_false(are_same("JS:~f /a.js:1:2", "JS:*f /a.js:2:2"));
	assert_false(are_same("JS:~f /a.js:1:2", "JS:*f /b.js:1:2"));
	assert_false(are_same("JS:~f /a.js:1:2", "JS:*ff /a.js:1:2"));
	assert_false(are_same("JS:~f /a.js:1:2", "f /a.js:1:2"));
	assert_true(are_same("int [a] B::C(int)[Tier0]", "int [a] B::C(int)[OptimizedTier1]"));
}

/* Another tier at the same place is in no doubt, another function is. */
TEST(only_another_function_at_an_address_is_ambiguous)
{
	begin(JIT_CODE_MAP);
	feed_text(0, 10, "1000 100 JS:~f /a.js:1:2\n");
	feed_text(20, 30, "1000 80 JS:*f /a.js:1:2\n");
	feed_text(40, 50, "1000 80 JS:*g /a.js:9:2\n");
	settle();
	assert_names(0x1000, "20 JS:~f /a.js:1:2, 25 JS:*f /a.js:1:2, 45? JS:*g /a.js:9:2");
}

/* ---- jitdumps -------------------------------------------------------------------------------- */

static void begin_dump(uint64_t flags)
{
	begin(JIT_CODE_DUMP);
	d.size = 0;
	put_header(&d, flags);
}

static int feed_dump(bool begins_anew)
{
	return feed_piece(
		(struct jit_piece){d.bytes, d.size, 0, 1000000, begins_anew, begins_anew});
}

static void settle_dump(void)
{
	assert_int_equal(feed_dump(false), 0);
	settle();
}

/* Of several threads the order in the file is not that of the times; at one time it is. */
TEST(records_of_a_dump_are_ordered_by_time)
{
	begin_dump(0);
	put_load(&d, 300, 0x1000, 32, "third");
	put_load(&d, 100, 0x1000, 64, "first");
	put_load(&d, 200, 0x1000, 32, "second");
	put_load(&d, 200, 0x1010, 32, "overlaps");
	settle_dump();
	assert_counts(4, 0, 0);
	assert_names(0x1000, "99 -, 100 first, 199 first, 200 -");
	assert_names(0x1018, "200 overlaps, 299 overlaps, 300 third");
	assert_names(0x1028, "300 -");
}

TEST(a_dump_in_two_pieces_names_the_same_code)
{
	begin_dump(0);
	put_load(&d, 100, 0x1000, 32, "f");
	put_move(&d, 200, 0x1000, 0x2000, 32);
	for (size_t cut = 0; cut <= d.size; cut++) {
		begin(JIT_CODE_DUMP);
		assert_int_equal(feed(d.bytes, cut, 0, 0), 0);
		assert_int_equal(feed(d.bytes + cut, d.size - cut, 0, 0), 0);
		settle();
		assert_counts(2, 0, 0);
		assert_names(0x1008, "150 f");
		assert_names(0x2008, "200 f");
	}
	d.size -= 3;
	begin(JIT_CODE_DUMP);
	settle_dump();
	assert_counts(1, 0, 64 - 3);
	assert_names(0x1008, "250 f");
}

TEST(moved_code_ends_what_is_in_its_new_place)
{
	begin_dump(0);
	put_load(&d, 100, 0x1000, 64, "f");
	put_load(&d, 110, 0x2000, 64, "in the way");
	put_move(&d, 200, 0x1000, 0x2020, 64);
	put_move(&d, 300, 0x2020, 0x3000, 64);
	put_move(&d, 310, 0x3000, 0x3020, 64); /* onto a part of itself */
	put_move(&d, 320, 0x9000, 0xa000, 64); /* of nothing */
	put_load(&d, 400, 0x1000, 64, "g");
	settle_dump();
	assert_counts(7, 0, 0);
	assert_names(0x1000, "199 f, 200 -, 400 g");
	assert_names(0x2000, "199 in the way, 200 -");
	assert_names(0x2030, "199 in the way, 200 f, 300 -");
	assert_names(0x205f, "299 f");
	assert_names(0x3000, "309 f, 310 -");
	assert_names(0x305f, "310 f");
	assert_names(0xa000, "500 -");
}

static void put_frames(struct dump *d)
{
	size_t at = begin_record(d, 4, 1);

	put64(d, 12);
	put64(d, 4);
	put64(d, 12);
	put(d, "EH FRAME HDR", 12);
	end_record(d, at);
}

/* Code that is moved has no CFI any more, and code in its new place neither. */
TEST(moved_code_has_no_cfi_in_either_place)
{
	struct jit_unwinding *list;
	size_t count;

	begin_dump(0);
	begin(JIT_CODE_FRAMES);
	assert_false(jit_code__has_new_unwinding(c));
	for (uint64_t i = 1; i <= 4; i++) {
		put_frames(&d);
		put_load(&d, 100 + i, i * 0x1000, 32, "f");
	}
	put_move(&d, 200, 0x1000, 0x3000, 32);
	assert_int_equal(feed_dump(false), 0);
	assert_true(jit_code__has_new_unwinding(c));
	assert_int_equal(jit_code__unwinding(c, &list, &count), 0);
	assert_false(jit_code__has_new_unwinding(c));
	assert_int_equal(count, 2);
	assert_int_equal(list[0].address, 0x2000);
	assert_memory_equal(list[0].eh_frame, "EH FRAME", list[0].eh_frame_size);
	assert_int_equal(list[1].address, 0x4000);
	free(list);
}

/* A move that stands before its load in the file. */
TEST(a_move_may_precede_its_load_in_the_file)
{
	begin_dump(0);
	put_move(&d, 200, 0x1000, 0x2000, 32);
	put_load(&d, 100, 0x1000, 32, "f");
	settle_dump();
	assert_names(0x1000, "199 f, 200 -");
	assert_names(0x2000, "199 -, 200 f");
}

TEST(a_close_record_ends_all_code)
{
	begin_dump(0);
	put_load(&d, 100, 0x1000, 32, "f");
	put_load(&d, 110, 0x7fffffff0000, 32, "g");
	put_close(&d, 200);
	put_load(&d, 150, 0x2000, 32, "late in the file");
	settle_dump();
	assert_names(0x1000, "199 f, 200 -");
	assert_names(0x7fffffff0000, "199 g, 200 -");
	assert_names(0x2000, "199 late in the file, 200 -");
}

/* ---- clocks ---------------------------------------------------------------------------------- */

struct tsc {
	uint64_t calls;
};

static uint64_t from_tsc(void *context, uint64_t tsc)
{
	struct tsc *t = context;

	t->calls++;
	return tsc < 1000 ? 0 : tsc / 10;
}

TEST(tsc_times_are_converted_when_code_is_settled)
{
	struct tsc tsc = {};

	begin_dump(1);
	put_load(&d, 3000, 0x1000, 32, "second");
	put_load(&d, 2000, 0x1000, 32, "first");
	put_load(&d, 999, 0x5000, 32, "always");
	put_move(&d, 4000, 0x1000, 0x2000, 32);
	put_close(&d, 5000);
	assert_int_equal(feed_dump(false), 0);
	assert_int_equal(jit_code__settle(c, from_tsc, &tsc), 0);
	assert_int_equal(tsc.calls, 5);
	assert_names(0x1000, "199 -, 200 first, 300 second");
	assert_names(0x2000, "399 -, 400 second");
	/* of unknown time: it was there before everything else */
	assert_names(0x5000, "1 always, 499 always, 500 -");
}

/* Times that are ready are not converted. */
TEST(monotonic_times_are_not_converted)
{
	struct tsc tsc = {};

	begin_dump(0);
	put_load(&d, 2000, 0x1000, 32, "f");
	assert_int_equal(feed_dump(false), 0);
	assert_int_equal(jit_code__settle(c, from_tsc, &tsc), 0);
	assert_int_equal(tsc.calls, 0);
	assert_names(0x1000, "1999 -, 2000 f");
}

/* The clock of a time namespace; of a checkpoint on another machine, with its records. */
TEST(times_of_another_clock_are_shifted_by_its_offset)
{
	begin_dump(0);
	put_load(&d, 4000000, 0x1000, 32, "before the restore");
	put_load(&d, 5000000, 0x1000, 32, "the last one before it");
	put_load(&d, 9000200, 0x1000, 32, "after it");
	jit_code__set_clock(c, 9000000, true);
	settle_dump();
	assert_names(0x1000, "1 the last one before it, 199 the last one before it, 200 after it");

	begin_dump(0);
	put_load(&d, 10, 0x1000, 32, "f");
	jit_code__set_clock(c, -500, true);
	settle_dump();
	assert_names(0x1000, "509 -, 510 f");
}

static void feed_moments(uint64_t after, uint64_t before)
{
	assert_int_equal(feed(d.bytes, d.size, after, before), 0);
	settle();
}

/* Not readable; a record after it was read, which only the second piece shows; a record without time. */
TEST(code_of_an_unknown_clock_is_ambiguous_between_readings)
{
	static const struct {
		bool is_readable;
		uint64_t first, second;
	} CASES[] = {{false, 20, 20}, {true, 40, 30000000}, {true, 0, 0}};

	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		begin_dump(0);
		if (!CASES[i].is_readable)
			jit_code__set_clock(c, 0, false);
		put_load(&d, CASES[i].first, 0x1000, 32, "first");
		feed_moments(0, 50);
		d.size = 0;
		put_load(&d, CASES[i].second, 0x1000, 32, "second");
		feed_moments(100, 200);
		assert_names(0x1000, "100 first, 150? second, 201 second");
	}
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void put_code_with_lines(struct dump *d)
{
	size_t at = begin_record(d, 2, 90);

	put64(d, 0x1000);
	put64(d, 6);
	put_line(d, 0x1020, 7, 2, "/b.h");
	put_line(d, 0x1008, 3, 1, "/a.c");
	put_line(d, 0x1010, 4, 0, "/a.c");
	put_line(d, 0x1030, 0, 0, "/a.c");
	put_line(d, 0x1038, 9, 5, "/a.c");
	put_line(d, 0x1040, 10, 1, "/behind.c");
	end_record(d, at);
	put_load(d, 100, 0x1000, 64, "f");
}

/* "OFFSET FILE:LINE:COLUMN, OFFSET -": of code from `start` on at a time; "-" is no line. */
static void assert_lines(uint64_t start, uint64_t time, const char *expected)
{
	struct story_text found = {};

	each_item (at, expected) {
		uint64_t offset = strtoull(at, NULL, 16);
		uint32_t entry = request(start + offset, time).entry;
		struct jit_line l;

		assert_int_not_equal(entry, JIT_NO_ENTRY);
		if (jit_code__line(c, entry, start + offset, &l))
			add_item(&found, "%" PRIx64 " %s:%u:%u", offset, l.file, l.line, l.column);
		else
			add_item(&found, "%" PRIx64 " -", offset);
	}
	assert_string_equal(found.text, expected);
}

static const char LINES[] = "0 -, 7 -, 8 /a.c:3:1, f /a.c:3:1, 10 /a.c:4:0, 20 /b.h:7:2, "
			    "2f /b.h:7:2, 30 -, 38 /a.c:9:5, 3f /a.c:9:5";

TEST(lines_are_found_by_address_also_after_a_move)
{
	begin_dump(0);
	put_load(&d, 80, 0x4000, 64, "without");
	put_code_with_lines(&d);
	put_load(&d, 110, 0x5000, 64, "without either");
	put_move(&d, 200, 0x1000, 0x2000, 64);
	settle_dump();
	assert_true(jit_code__has_lines(c));
	assert_lines(0x1000, 150, LINES);
	assert_lines(0x2000, 200, LINES);
	assert_lines(0x4000, 150, "10 -");
	assert_lines(0x5000, 150, "10 -");
}

TEST(code_without_debug_records_has_no_lines)
{
	begin(JIT_CODE_MAP);
	feed_text(0, 1, "1000 10 JS:~f /a.js:1:2\n");
	settle();
	assert_false(jit_code__has_lines(c));
	assert_lines(0x1000, 2, "8 -");
	begin_dump(0);
	put_load(&d, 1, 0x1000, 16, "f");
	settle_dump();
	assert_false(jit_code__has_lines(c));
	assert_lines(0x1000, 2, "8 -");
}

/* ---- odd dumps ------------------------------------------------------------------------------- */

/* It is said once; what came before it holds on, in doubt. */
TEST(a_malformed_dump_is_an_error_only_once)
{
	static const unsigned char RECORD_OF_NO_SIZE[16];

	begin(JIT_CODE_DUMP);
	d.size = 0;
	put(&d, MAP, sizeof(MAP));
	assert_int_equal(feed_dump(false), -EBADMSG);
	settle_dump();
	assert_counts(0, 0, 0);
	assert_names(0x1000, "100 -");
	begin_dump(0);
	put_load(&d, 10, 0x1000, 16, "f");
	put(&d, RECORD_OF_NO_SIZE, sizeof(RECORD_OF_NO_SIZE));
	assert_int_equal(feed_dump(false), -EBADMSG);
	settle_dump();
	assert_names(0x1000, "10 f, 11? f");
}

TEST(a_lost_map_ends_all_code)
{
	begin(JIT_CODE_MAP);
	feed_text(0, 10, "1000 100 f\n2000 10 to");
	assert_int_equal(jit_code__lose(c, 100, 200), 0);
	feed_text(200, 210, "rn\n3000 100 g\n");
	settle();
	assert_names(0x1000, "100 f, 150? f, 201 -");
	assert_names(0x3000, "211 g");
	assert_counts(2, 0, 0);
}

/* From the last reading on other code may be there. */
TEST(a_lost_dump_is_ambiguous_since_its_last_reading)
{
	begin_dump(0);
	put_load(&d, 10, 0x1000, 16, "f");
	feed_moments(0, 50);
	assert_names(0x1000, "200 f");
	assert_int_equal(jit_code__lose(c, 100, 200), 0);
	settle();
	assert_names(0x1000, "100 f, 101? f, 300? f");
}

/* Written anew, it is a dump of its own: earlier reports stay. */
TEST(a_rewritten_dump_keeps_the_earlier_code)
{
	begin_dump(0);
	put_load(&d, 100, 0x1000, 16, "old");
	put_load(&d, 110, 0x2000, 16, "stays");
	put32(&d, 0); /* torn */
	assert_int_equal(feed_dump(false), 0);
	d.size = 0;
	put_header(&d, 0);
	put_load(&d, 200, 0x1000, 16, "new");
	assert_int_equal(feed_dump(true), 0);
	settle();
	assert_names(0x1000, "150 old, 200 new");
	assert_names(0x2000, "250 stays");
	assert_counts(3, 0, 0);
}

/* It was emptied, and nothing came any more: its times are still those of the TSC. */
TEST(an_emptied_dump_keeps_its_clock)
{
	struct tsc tsc = {};

	begin_dump(1);
	put_load(&d, 2000, 0x1000, 16, "f");
	assert_int_equal(feed_dump(false), 0);
	d.size = 0;
	assert_int_equal(feed_dump(true), 0);
	assert_int_equal(jit_code__settle(c, from_tsc, &tsc), 0);
	assert_names(0x1000, "199 -, 200 f");
}

EACH_TEST_WITH(NULL, end);
