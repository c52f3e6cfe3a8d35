/* SPDX-License-Identifier: BSD-2-Clause */
/* From pieces of perf maps and jitdumps to the names and lines of an address at a time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "jit/jit_code.h"

#include "unit/forge_jitdump.h"

/* The piece is copied, so that reads behind its end are seen. */
static int feed(struct jit_code *c, struct jit_piece piece)
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

static void feed_text(struct jit_code *c, uint64_t after, uint64_t before, const char *text)
{
	assert_int_equal(feed(c, (struct jit_piece){.bytes = text,
						    .size = strlen(text),
						    .after = after,
						    .before = before}),
			 0);
}

/* A snapshot's first piece, or its last, or both. */
static void feed_snapshot(struct jit_code *c, uint64_t after, uint64_t before, const char *text,
			  bool begins, bool ends)
{
	assert_int_equal(feed(c, (struct jit_piece){.bytes = text,
						    .size = strlen(text),
						    .after = after,
						    .before = before,
						    .begins_snapshot = begins,
						    .ends_snapshot = ends}),
			 0);
}

static void settle(struct jit_code *c)
{
	assert_int_equal(jit_code__settle(c, NULL, NULL), 0);
}

static struct jit_answer request(struct jit_code *c, uint64_t address, uint64_t time)
{
	struct jit_history history = {};
	struct jit_answer answer;

	assert_int_equal(jit_timeline__histories(jit_code__timeline(c), &address, 1, &history), 0);
	answer = jit_history__at(&history, time, jit_code__same_function, c);
	jit_history__fini(&history);
	return answer;
}

/* `name` NULL: nothing is known there. */
static void assert_answer(struct jit_code *c, uint64_t address, uint64_t time, const char *name,
			  bool ambiguous)
{
	struct jit_answer answer = request(c, address, time);

	if (name) {
		assert_int_not_equal(answer.entry, JIT_NO_ENTRY);
		assert_string_equal(jit_code__name(c, answer.entry), name);
	} else {
		assert_int_equal(answer.entry, JIT_NO_ENTRY);
	}
	assert_int_equal(answer.ambiguous, ambiguous);
}

static void assert_named(struct jit_code *c, uint64_t address, uint64_t time, const char *name)
{
	assert_answer(c, address, time, name, false);
}

static void assert_counts(const struct jit_code *c, uint64_t entries, uint64_t bad_lines,
			  uint64_t torn)
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
	struct jit_code *c = jit_code__new(JIT_CODE_MAP);

	feed_text(c, 0, 10, "1000 100 first\nno entry\n2000 10 sec");
	assert_counts(c, 1, 1, strlen("2000 10 sec"));
	feed_text(c, 20, 30, "ond\r\n1000 80 third one\n3000 10 torn");
	assert_counts(c, 3, 1, strlen("3000 10 torn"));
	settle(c);
	assert_named(c, 0x1010, 5, "first");
	assert_named(c, 0x1010, 20, "first");
	assert_answer(c, 0x1010, 25, "third one", true);
	assert_named(c, 0x1010, 31, "third one");
	assert_named(c, 0x1090, 31, NULL);
	assert_named(c, 0x2000, 20, NULL);
	assert_named(c, 0x2000, 21, "second");
	assert_named(c, 0x3000, 40, NULL);
	assert_false(jit_code__has_lines(c));
	jit_code__free(c);
}

static const char MAP[] =
	"1000 100 one\n\nbad\n2000 100 two two\n1080 8 three\n0x3000 0x1 four\r\n";

TEST(a_map_reads_alike_in_pieces_of_any_size)
{
	for (size_t piece = 1; piece < sizeof(MAP); piece++) {
		struct jit_code *c = jit_code__new(JIT_CODE_MAP);

		for (size_t at = 0; at < strlen(MAP); at += piece) {
			size_t left = strlen(MAP) - at;

			assert_int_equal(
				feed(c, (struct jit_piece){.bytes = MAP + at,
							   .size = left < piece ? left : piece,
							   .after = 5,
							   .before = 9 + at}),
				0);
		}
		settle(c);
		assert_counts(c, 4, 1, 0);
		assert_named(c, 0x1000, 1000, NULL);
		assert_named(c, 0x1080, 1000, "three");
		assert_named(c, 0x20ff, 1000, "two two");
		assert_named(c, 0x3000, 1000, "four");
		jit_code__free(c);
	}
}

/* What a file that is written anew does not have any more has ended. */
TEST(code_that_a_rewritten_map_lacks_has_ended)
{
	struct jit_code *c = jit_code__new(JIT_CODE_MAP);

	feed_text(c, 0, 10, "1000 100 stays\n2000 100 goes\n7000 10 torn in th");
	feed_snapshot(c, 10, 20, "1000 100 stays\n3000 100 com", true, false);
	feed_snapshot(c, 10, 20, "es\n", false, false);
	feed_snapshot(c, 10, 20, "", false, true);
	feed_text(c, 30, 40, "4000 100 added\n");
	settle(c);
	assert_counts(c, 5, 0, 0);
	assert_named(c, 0x1000, 5, "stays");
	assert_named(c, 0x1000, 15, "stays");
	assert_named(c, 0x1000, 50, "stays");
	assert_named(c, 0x2000, 10, "goes");
	assert_answer(c, 0x2000, 15, "goes", true);
	assert_named(c, 0x2000, 21, NULL);
	assert_named(c, 0x3000, 10, NULL);
	assert_named(c, 0x3000, 11, "comes");
	assert_named(c, 0x4000, 30, NULL);
	assert_named(c, 0x4000, 31, "added");
	jit_code__free(c);
}

/* Begun and ended at once, with nothing in it: no code is left. The last one does not end. */
TEST(only_a_complete_snapshot_ends_code)
{
	struct jit_code *c = jit_code__new(JIT_CODE_MAP);

	feed_text(c, 0, 10, "1000 100 old\n2000 100 other\n");
	feed_snapshot(c, 10, 20, "", true, true);
	feed_text(c, 20, 30, "1000 100 new\n");
	feed_snapshot(c, 40, 50, "5000 100 late\n", true, false);
	settle(c);
	assert_named(c, 0x1000, 10, "old");
	assert_named(c, 0x2000, 10, "other");
	assert_named(c, 0x2000, 21, NULL);
	assert_answer(c, 0x1000, 15, "old", true);
	assert_named(c, 0x1000, 31, "new");
	/* it may be there, below in what has not come */
	assert_named(c, 0x1000, 60, "new");
	assert_named(c, 0x5000, 60, "late");
	jit_code__free(c);
}

TEST(a_nul_in_a_name_becomes_a_question_mark)
{
	static const char TEXT[] = "1000 10 a\0b\0\n2000 10 \0\n3000 10 a?b?\n";
	struct jit_code *c = jit_code__new(JIT_CODE_MAP);

	assert_int_equal(
		feed(c, (struct jit_piece){.bytes = TEXT, .size = sizeof(TEXT) - 1, .before = 1}),
		0);
	settle(c);
	assert_counts(c, 3, 0, 0);
	assert_named(c, 0x1000, 2, "a?b?");
	assert_named(c, 0x2000, 2, "?");
	assert_named(c, 0x3000, 2, "a?b?");
	jit_code__free(c);
}

static bool are_same(const char *name, const char *other)
{
	struct jit_code *c = jit_code__new(JIT_CODE_MAP);
	struct jit_answer a, b;
	bool same;

	feed_text(c, 0, 1, "1000 10 ");
	feed_text(c, 0, 1, name);
	feed_text(c, 0, 1, "\n2000 10 ");
	feed_text(c, 0, 1, other);
	feed_text(c, 0, 1, "\n");
	settle(c);
	a = request(c, 0x1000, 2);
	b = request(c, 0x2000, 2);
	assert_string_equal(jit_code__name(c, a.entry), name);
	assert_string_equal(jit_code__name(c, b.entry), other);
	same = jit_code__same_function(c, a.entry, b.entry);
	assert_int_equal(jit_code__same_function(c, b.entry, a.entry), same);
	assert_true(jit_code__same_function(c, a.entry, a.entry));
	jit_code__free(c);
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
	struct jit_code *c = jit_code__new(JIT_CODE_MAP);

	feed_text(c, 0, 10, "1000 100 JS:~f /a.js:1:2\n");
	feed_text(c, 20, 30, "1000 80 JS:*f /a.js:1:2\n");
	feed_text(c, 40, 50, "1000 80 JS:*g /a.js:9:2\n");
	settle(c);
	assert_named(c, 0x1000, 20, "JS:~f /a.js:1:2");
	assert_named(c, 0x1000, 25, "JS:*f /a.js:1:2");
	assert_answer(c, 0x1000, 45, "JS:*g /a.js:9:2", true);
	jit_code__free(c);
}

/* ---- jitdumps -------------------------------------------------------------------------------- */

static int feed_dump(struct jit_code *c, const struct dump *d, bool begins_anew)
{
	return feed(c, (struct jit_piece){.bytes = d->bytes,
					  .size = d->size,
					  .before = 1000000,
					  .begins_snapshot = begins_anew,
					  .ends_snapshot = begins_anew});
}

static struct jit_code *settled(const struct dump *d)
{
	struct jit_code *c = jit_code__new(JIT_CODE_DUMP);

	assert_int_equal(feed_dump(c, d, false), 0);
	settle(c);
	return c;
}

/* Of several threads the order in the file is not that of the times; at one time it is. */
TEST(records_of_a_dump_are_ordered_by_time)
{
	struct dump d = {};
	struct jit_code *c;

	put_header(&d, 0);
	put_load(&d, 300, 0x1000, 32, "third");
	put_load(&d, 100, 0x1000, 64, "first");
	put_load(&d, 200, 0x1000, 32, "second");
	put_load(&d, 200, 0x1010, 32, "overlaps");
	c = settled(&d);
	assert_counts(c, 4, 0, 0);
	assert_named(c, 0x1000, 99, NULL);
	assert_named(c, 0x1000, 100, "first");
	assert_named(c, 0x1000, 199, "first");
	assert_named(c, 0x1000, 200, NULL);
	assert_named(c, 0x1018, 200, "overlaps");
	assert_named(c, 0x1018, 299, "overlaps");
	assert_named(c, 0x1018, 300, "third");
	assert_named(c, 0x1028, 300, NULL);
	jit_code__free(c);
}

TEST(a_dump_in_two_pieces_names_the_same_code)
{
	struct dump d = {};

	put_header(&d, 0);
	put_load(&d, 100, 0x1000, 32, "f");
	put_move(&d, 200, 0x1000, 0x2000, 32);
	for (size_t cut = 0; cut <= d.size; cut++) {
		struct jit_code *c = jit_code__new(JIT_CODE_DUMP);

		assert_int_equal(feed(c, (struct jit_piece){.bytes = d.bytes, .size = cut}), 0);
		assert_int_equal(
			feed(c, (struct jit_piece){.bytes = d.bytes + cut, .size = d.size - cut}),
			0);
		settle(c);
		assert_counts(c, 2, 0, 0);
		assert_named(c, 0x1008, 150, "f");
		assert_named(c, 0x2008, 200, "f");
		jit_code__free(c);
	}
	d.size -= 3;
	{
		struct jit_code *c = settled(&d);

		assert_counts(c, 1, 0, 64 - 3);
		assert_named(c, 0x1008, 250, "f");
		jit_code__free(c);
	}
}

TEST(moved_code_ends_what_is_in_its_new_place)
{
	struct dump d = {};
	struct jit_code *c;

	put_header(&d, 0);
	put_load(&d, 100, 0x1000, 64, "f");
	put_load(&d, 110, 0x2000, 64, "in the way");
	put_move(&d, 200, 0x1000, 0x2020, 64);
	put_move(&d, 300, 0x2020, 0x3000, 64);
	put_move(&d, 310, 0x3000, 0x3020, 64); /* onto a part of itself */
	put_move(&d, 320, 0x9000, 0xa000, 64); /* of nothing */
	put_load(&d, 400, 0x1000, 64, "g");
	c = settled(&d);
	assert_counts(c, 7, 0, 0);
	assert_named(c, 0x1000, 199, "f");
	assert_named(c, 0x1000, 200, NULL);
	assert_named(c, 0x1000, 400, "g");
	assert_named(c, 0x2000, 199, "in the way");
	assert_named(c, 0x2000, 200, NULL);
	assert_named(c, 0x2030, 199, "in the way");
	assert_named(c, 0x2030, 200, "f");
	assert_named(c, 0x205f, 299, "f");
	assert_named(c, 0x2030, 300, NULL);
	assert_named(c, 0x3000, 309, "f");
	assert_named(c, 0x3000, 310, NULL);
	assert_named(c, 0x305f, 310, "f");
	assert_named(c, 0xa000, 500, NULL);
	jit_code__free(c);
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
	struct jit_code *c = jit_code__new(JIT_CODE_FRAMES);
	struct jit_unwinding *list;
	struct dump d = {};
	size_t count;

	assert_false(jit_code__has_new_unwinding(c));
	put_header(&d, 0);
	for (uint64_t i = 1; i <= 4; i++) {
		put_frames(&d);
		put_load(&d, 100 + i, i * 0x1000, 32, "f");
	}
	put_move(&d, 200, 0x1000, 0x3000, 32);
	assert_int_equal(feed_dump(c, &d, false), 0);
	assert_true(jit_code__has_new_unwinding(c));
	assert_int_equal(jit_code__unwinding(c, &list, &count), 0);
	assert_false(jit_code__has_new_unwinding(c));
	assert_int_equal(count, 2);
	assert_int_equal(list[0].address, 0x2000);
	assert_memory_equal(list[0].eh_frame, "EH FRAME", list[0].eh_frame_size);
	assert_int_equal(list[1].address, 0x4000);
	free(list);
	jit_code__free(c);
}

/* A move that stands before its load in the file. */
TEST(a_move_may_precede_its_load_in_the_file)
{
	struct dump d = {};
	struct jit_code *c;

	put_header(&d, 0);
	put_move(&d, 200, 0x1000, 0x2000, 32);
	put_load(&d, 100, 0x1000, 32, "f");
	c = settled(&d);
	assert_named(c, 0x1000, 199, "f");
	assert_named(c, 0x1000, 200, NULL);
	assert_named(c, 0x2000, 199, NULL);
	assert_named(c, 0x2000, 200, "f");
	jit_code__free(c);
}

TEST(a_close_record_ends_all_code)
{
	struct dump d = {};
	struct jit_code *c;

	put_header(&d, 0);
	put_load(&d, 100, 0x1000, 32, "f");
	put_load(&d, 110, 0x7fffffff0000, 32, "g");
	put_close(&d, 200);
	put_load(&d, 150, 0x2000, 32, "late in the file");
	c = settled(&d);
	assert_named(c, 0x1000, 199, "f");
	assert_named(c, 0x7fffffff0000, 199, "g");
	assert_named(c, 0x2000, 199, "late in the file");
	assert_named(c, 0x1000, 200, NULL);
	assert_named(c, 0x7fffffff0000, 200, NULL);
	assert_named(c, 0x2000, 200, NULL);
	jit_code__free(c);
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
	struct jit_code *c = jit_code__new(JIT_CODE_DUMP);
	struct tsc tsc = {};
	struct dump d = {};

	put_header(&d, 1);
	put_load(&d, 3000, 0x1000, 32, "second");
	put_load(&d, 2000, 0x1000, 32, "first");
	put_load(&d, 999, 0x5000, 32, "always");
	put_move(&d, 4000, 0x1000, 0x2000, 32);
	put_close(&d, 5000);
	assert_int_equal(feed_dump(c, &d, false), 0);
	assert_int_equal(jit_code__settle(c, from_tsc, &tsc), 0);
	assert_int_equal(tsc.calls, 5);
	assert_named(c, 0x1000, 199, NULL);
	assert_named(c, 0x1000, 200, "first");
	assert_named(c, 0x1000, 300, "second");
	assert_named(c, 0x2000, 399, NULL);
	assert_named(c, 0x2000, 400, "second");
	/* of unknown time: it was there before everything else */
	assert_named(c, 0x5000, 1, "always");
	assert_named(c, 0x5000, 499, "always");
	assert_named(c, 0x5000, 500, NULL);
	jit_code__free(c);
}

/* Times that are ready are not converted. */
TEST(monotonic_times_are_not_converted)
{
	struct jit_code *c = jit_code__new(JIT_CODE_DUMP);
	struct tsc tsc = {};
	struct dump d = {};

	put_header(&d, 0);
	put_load(&d, 2000, 0x1000, 32, "f");
	assert_int_equal(feed_dump(c, &d, false), 0);
	assert_int_equal(jit_code__settle(c, from_tsc, &tsc), 0);
	assert_int_equal(tsc.calls, 0);
	assert_named(c, 0x1000, 1999, NULL);
	assert_named(c, 0x1000, 2000, "f");
	jit_code__free(c);
}

/* The clock of a time namespace; of a checkpoint on another machine, with its records. */
TEST(times_of_another_clock_are_shifted_by_its_offset)
{
	struct jit_code *c = jit_code__new(JIT_CODE_DUMP);
	struct dump d = {};

	put_header(&d, 0);
	put_load(&d, 4000000, 0x1000, 32, "before the restore");
	put_load(&d, 5000000, 0x1000, 32, "the last one before it");
	put_load(&d, 9000200, 0x1000, 32, "after it");
	jit_code__set_clock(c, 9000000, true);
	assert_int_equal(feed_dump(c, &d, false), 0);
	settle(c);
	assert_named(c, 0x1000, 1, "the last one before it");
	assert_named(c, 0x1000, 199, "the last one before it");
	assert_named(c, 0x1000, 200, "after it");
	jit_code__free(c);

	c = jit_code__new(JIT_CODE_DUMP);
	d = (struct dump){};
	put_header(&d, 0);
	put_load(&d, 10, 0x1000, 32, "f");
	jit_code__set_clock(c, -500, true);
	assert_int_equal(feed_dump(c, &d, false), 0);
	settle(c);
	assert_named(c, 0x1000, 509, NULL);
	assert_named(c, 0x1000, 510, "f");
	jit_code__free(c);
}

static void feed_moments(struct jit_code *c, const struct dump *d, uint64_t after, uint64_t before)
{
	assert_int_equal(feed(c, (struct jit_piece){.bytes = d->bytes,
						    .size = d->size,
						    .after = after,
						    .before = before}),
			 0);
	settle(c);
}

/* What was read of a clock that is not known is in doubt from one reading to the next. */
static void assert_in_doubt(struct jit_code *c)
{
	assert_named(c, 0x1000, 100, "first");
	assert_answer(c, 0x1000, 150, "second", true);
	assert_named(c, 0x1000, 201, "second");
	jit_code__free(c);
}

static void feed_two(struct jit_code *c, uint64_t flags, uint64_t one, uint64_t other)
{
	struct dump d = {};

	put_header(&d, flags);
	put_load(&d, one, 0x1000, 32, "first");
	feed_moments(c, &d, 0, 50);
	d.size = 0;
	put_load(&d, other, 0x1000, 32, "second");
	feed_moments(c, &d, 100, 200);
}

/* Not readable; a record after it was read, which only the second piece shows; a record without time. */
TEST(code_of_an_unknown_clock_is_ambiguous_between_readings)
{
	struct jit_code *c = jit_code__new(JIT_CODE_DUMP);

	jit_code__set_clock(c, 0, false);
	feed_two(c, 0, 20, 20);
	assert_in_doubt(c);
	c = jit_code__new(JIT_CODE_DUMP);
	feed_two(c, 0, 40, 30000000);
	assert_in_doubt(c);
	c = jit_code__new(JIT_CODE_DUMP);
	feed_two(c, 0, 0, 0);
	assert_in_doubt(c);
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

/* `file` NULL: it is not reported. */
static void assert_line(struct jit_code *c, uint64_t address, uint64_t time, const char *file,
			uint32_t line, uint32_t column)
{
	struct jit_line found;
	uint32_t entry = request(c, address, time).entry;

	assert_int_not_equal(entry, JIT_NO_ENTRY);
	assert_int_equal(jit_code__line(c, entry, address, &found), file != NULL);
	if (!file)
		return;
	assert_string_equal(found.file, file);
	assert_int_equal(found.line, line);
	assert_int_equal(found.column, column);
}

static void assert_lines_at(struct jit_code *c, uint64_t start, uint64_t time)
{
	assert_line(c, start, time, NULL, 0, 0);
	assert_line(c, start + 0x07, time, NULL, 0, 0);
	assert_line(c, start + 0x08, time, "/a.c", 3, 1);
	assert_line(c, start + 0x0f, time, "/a.c", 3, 1);
	assert_line(c, start + 0x10, time, "/a.c", 4, 0);
	assert_line(c, start + 0x20, time, "/b.h", 7, 2);
	assert_line(c, start + 0x2f, time, "/b.h", 7, 2);
	assert_line(c, start + 0x30, time, NULL, 0, 0);
	assert_line(c, start + 0x38, time, "/a.c", 9, 5);
	assert_line(c, start + 0x3f, time, "/a.c", 9, 5);
}

TEST(lines_are_found_by_address_also_after_a_move)
{
	struct dump d = {};
	struct jit_code *c;

	put_header(&d, 0);
	put_load(&d, 80, 0x4000, 64, "without");
	put_code_with_lines(&d);
	put_load(&d, 110, 0x5000, 64, "without either");
	put_move(&d, 200, 0x1000, 0x2000, 64);
	c = settled(&d);
	assert_true(jit_code__has_lines(c));
	assert_lines_at(c, 0x1000, 150);
	assert_lines_at(c, 0x2000, 200);
	assert_line(c, 0x4010, 150, NULL, 0, 0);
	assert_line(c, 0x5010, 150, NULL, 0, 0);
	jit_code__free(c);
}

TEST(code_without_debug_records_has_no_lines)
{
	struct jit_code *c = jit_code__new(JIT_CODE_MAP);
	struct dump d = {};

	feed_text(c, 0, 1, "1000 10 JS:~f /a.js:1:2\n");
	settle(c);
	assert_false(jit_code__has_lines(c));
	assert_line(c, 0x1008, 2, NULL, 0, 0);
	jit_code__free(c);
	put_header(&d, 0);
	put_load(&d, 1, 0x1000, 16, "f");
	c = settled(&d);
	assert_false(jit_code__has_lines(c));
	assert_line(c, 0x1008, 2, NULL, 0, 0);
	jit_code__free(c);
}

/* ---- odd dumps ------------------------------------------------------------------------------- */

/* It is said once; what came before it holds on, in doubt. */
TEST(a_malformed_dump_is_an_error_only_once)
{
	static const unsigned char RECORD_OF_NO_SIZE[16];
	struct jit_code *c = jit_code__new(JIT_CODE_DUMP);
	struct dump d = {};

	put(&d, MAP, sizeof(MAP));
	assert_int_equal(feed_dump(c, &d, false), -EBADMSG);
	assert_int_equal(feed_dump(c, &d, false), 0);
	settle(c);
	assert_counts(c, 0, 0, 0);
	assert_named(c, 0x1000, 100, NULL);
	jit_code__free(c);
	c = jit_code__new(JIT_CODE_DUMP);
	d.size = 0;
	put_header(&d, 0);
	put_load(&d, 10, 0x1000, 16, "f");
	put(&d, RECORD_OF_NO_SIZE, sizeof(RECORD_OF_NO_SIZE));
	assert_int_equal(feed_dump(c, &d, false), -EBADMSG);
	assert_int_equal(feed_dump(c, &d, false), 0);
	settle(c);
	assert_named(c, 0x1000, 10, "f");
	assert_answer(c, 0x1000, 11, "f", true);
	jit_code__free(c);
}

/* From the last reading on other code may be there. */
TEST(a_lost_dump_is_ambiguous_since_its_last_reading)
{
	struct jit_code *c = jit_code__new(JIT_CODE_DUMP);
	struct dump d = {};

	put_header(&d, 0);
	put_load(&d, 10, 0x1000, 16, "f");
	feed_moments(c, &d, 0, 50);
	assert_named(c, 0x1000, 200, "f");
	assert_int_equal(jit_code__lose(c, 100, 200), 0);
	settle(c);
	assert_named(c, 0x1000, 100, "f");
	assert_answer(c, 0x1000, 101, "f", true);
	assert_answer(c, 0x1000, 300, "f", true);
	jit_code__free(c);
}

/* Written anew, it is a dump of its own: earlier reports stay. */
TEST(a_rewritten_dump_keeps_the_earlier_code)
{
	struct jit_code *c = jit_code__new(JIT_CODE_DUMP);
	struct dump d = {};

	put_header(&d, 0);
	put_load(&d, 100, 0x1000, 16, "old");
	put_load(&d, 110, 0x2000, 16, "stays");
	put32(&d, 0); /* torn */
	assert_int_equal(feed_dump(c, &d, false), 0);
	d.size = 0;
	put_header(&d, 0);
	put_load(&d, 200, 0x1000, 16, "new");
	assert_int_equal(feed_dump(c, &d, true), 0);
	settle(c);
	assert_named(c, 0x1000, 150, "old");
	assert_named(c, 0x1000, 200, "new");
	assert_named(c, 0x2000, 250, "stays");
	assert_counts(c, 3, 0, 0);
	jit_code__free(c);
}

/* It was emptied, and nothing came any more: its times are still those of the TSC. */
TEST(an_emptied_dump_keeps_its_clock)
{
	struct jit_code *c = jit_code__new(JIT_CODE_DUMP);
	struct dump d = {}, nothing = {};
	struct tsc tsc = {};

	put_header(&d, 1);
	put_load(&d, 2000, 0x1000, 16, "f");
	assert_int_equal(feed_dump(c, &d, false), 0);
	assert_int_equal(feed_dump(c, &nothing, true), 0);
	assert_int_equal(jit_code__settle(c, from_tsc, &tsc), 0);
	assert_named(c, 0x1000, 199, NULL);
	assert_named(c, 0x1000, 200, "f");
	jit_code__free(c);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
