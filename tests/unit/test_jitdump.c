/* SPDX-License-Identifier: BSD-2-Clause */
/* Jitdumps, sound ones in pieces of any size and all kinds of damaged ones. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "jit/jitdump.h"

#include "unit/forge_jitdump.h"

/* ---- what is reported ---------------------------------------------------------------------------- */

struct reported {
	char text[4096];
	size_t used;
};

static void say(struct reported *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	t->used += vsnprintf(t->text + t->used, sizeof(t->text) - t->used, format, args);
	va_end(args);
}

static int on_load(void *context, const struct jitdump_load *l)
{
	struct reported *t = context;

	say(t, "load %llu %llx+%llx %s", (unsigned long long)l->time,
	    (unsigned long long)l->address, (unsigned long long)l->size, l->name);
	for (size_t i = 0; i < l->line_count; i++)
		say(t, " %llx=%s:%u:%u", (unsigned long long)l->lines[i].address, l->lines[i].file,
		    l->lines[i].line, l->lines[i].column);
	if (l->unwinding)
		say(t, " unwinding %zu/%zu %.3s", l->unwinding_size, l->eh_frame_header_size,
		    (const char *)l->unwinding);
	say(t, "\n");
	return 0;
}

static int on_move(void *context, const struct jitdump_move *m)
{
	say(context, "move %llu %llx>%llx+%llx\n", (unsigned long long)m->time,
	    (unsigned long long)m->from, (unsigned long long)m->to, (unsigned long long)m->size);
	return 0;
}

static int on_close(void *context, uint64_t time)
{
	say(context, "close %llu\n", (unsigned long long)time);
	return 0;
}

/* In pieces; the first error. */
static int feed(struct jitdump_reader *r, const struct dump *d, size_t piece,
		struct reported *reported)
{
	const struct jitdump_handler handler = {reported, on_load, on_move, on_close};
	int err = 0;

	reported->used = 0;
	reported->text[0] = 0;
	for (size_t at = 0; at < d->size && !err; at += piece) {
		size_t left = d->size - at, size = left < piece ? left : piece;
		void *copy = malloc(size);

		memcpy(copy, d->bytes + at, size);
		err = jitdump_reader__feed(r, copy, size, &handler);
		free(copy);
	}
	return err;
}

static void make_sound(struct dump *d)
{
	size_t at;

	d->size = 0;
	put_header_as(d, 0x4a695444, 1, 48, 1);
	put64(d, 0); /* a header that is longer than it was */
	at = begin_record(d, 2, 90);
	put64(d, 0x1000);
	put64(d, 3);
	put_line(d, 0x1000, 3, 1, "/a.c");
	put_line(d, 0x1008, 4, 2, "\xff");
	put_line(d, 0x1010, 9, 0, "/b.h");
	end_record(d, at);
	put_load_cut(d, 100, 0x1000, 32, 32, "plain");
	at = begin_record(d, 4, 101);
	put64(d, 3);
	put64(d, 2);
	put64(d, 3);
	put(d, "EHF", 3);
	end_record(d, at);
	put_load_cut(d, 110, 0x2000, 16, 16, "py::f:/f.py");
	/* V8's lines, which begin behind a header that is not there */
	at = begin_record(d, 2, 119);
	put64(d, 0x3000);
	put64(d, 2);
	put_line(d, 0x3040, 3, 13, "/f.js");
	put_line(d, 0x3048, 4, 10, "\xff");
	end_record(d, at);
	put_load_cut(d, 120, 0x3000, 64, 64, "JS:*f /f.js:3:13");
	at = begin_record(d, 77, 121);
	put64(d, 1);
	end_record(d, at);
	put_move(d, 130, 0x3000, 0x4000, 64);
	at = begin_record(d, 3, 140);
	end_record(d, at);
}

static const char sound[] = "load 100 1000+20 plain 1000=/a.c:3:1 1008=/a.c:4:2 1010=/b.h:9:0\n"
			    "load 110 2000+10 py::f:/f.py unwinding 3/2 EHF\n"
			    "load 120 3000+40 JS:*f /f.js:3:13 3000=/f.js:3:13 3008=/f.js:4:10\n"
			    "move 130 3000>4000+40\n"
			    "close 140\n";

TEST(a_dump_reads_alike_in_pieces_of_any_size)
{
	struct dump d;

	make_sound(&d);
	for (size_t piece = 1; piece <= d.size; piece++) {
		struct jitdump_reader r = {};
		struct reported reported;

		assert_int_equal(feed(&r, &d, piece, &reported), 0);
		assert_string_equal(reported.text, sound);
		assert_true(r.tsc);
		assert_int_equal(r.counts.loads, 3);
		assert_int_equal(r.counts.bad_records, 0);
		assert_int_equal(jitdump_reader__torn(&r), 0);
		jitdump_reader__fini(&r);
	}
}

/* Torn anywhere, it reports whole records, and continues when the rest comes. */
TEST(a_torn_dump_reports_whole_records_and_continues)
{
	struct dump d;

	make_sound(&d);
	for (size_t cut = 0; cut <= d.size; cut++) {
		struct dump first = d, second = d;
		struct jitdump_reader r = {};
		struct reported reported, rest;

		first.size = cut;
		second.size = d.size - cut;
		memmove(second.bytes, d.bytes + cut, second.size);
		assert_int_equal(feed(&r, &first, sizeof(d.bytes), &reported), 0);
		assert_memory_equal(reported.text, sound, reported.used);
		assert_int_equal(feed(&r, &second, sizeof(d.bytes), &rest), 0);
		assert_string_equal(rest.text, sound + reported.used);
		jitdump_reader__fini(&r);
	}
}

static int feed_whole(const struct dump *d, struct reported *reported,
		      struct jitdump_counts *counts)
{
	struct jitdump_reader r = {};
	int err = feed(&r, d, sizeof(d->bytes), reported);

	*counts = r.counts;
	jitdump_reader__fini(&r);
	return err;
}

/* The line of the first instructions may begin before them, as the BEAM writes it. */
TEST(a_first_line_may_begin_before_its_code)
{
	struct jitdump_counts counts;
	struct reported reported;
	struct dump d = {};
	size_t at;

	put_header_as(&d, 0x4a695444, 1, 40, 1);
	at = begin_record(&d, 2, 90);
	put64(&d, 0x2000);
	put64(&d, 3);
	put_line(&d, 0x1fce, 5, 0, "a.erl");
	put_line(&d, 0x2008, 6, 0, "a.erl");
	put_line(&d, 0x2010, 0, 0, "");
	end_record(&d, at);
	put_load_cut(&d, 100, 0x2000, 32, 32, "$a:b/1");
	at = begin_record(&d, 2, 110);
	put64(&d, 0x4000);
	put64(&d, 1);
	put_line(&d, 0x2fff, 5, 0, "a.erl"); /* too far to be of this code */
	end_record(&d, at);
	put_load_cut(&d, 120, 0x4000, 32, 32, "$a:c/1");
	assert_int_equal(feed_whole(&d, &reported, &counts), 0);
	assert_string_equal(reported.text, "load 100 2000+20 $a:b/1 2000=a.erl:5:0 2008=a.erl:6:0 "
					   "2010=:0:0\nload 120 4000+20 $a:c/1\n");
	assert_int_equal(counts.bad_records, 1);
}

TEST(an_unsupported_header_or_impossible_record_is_an_error)
{
	struct jitdump_counts counts;
	struct reported reported;
	struct dump d;

	d.size = 0;
	put_header_as(&d, 0x4454694a, 1, 40, 0);
	assert_int_equal(feed_whole(&d, &reported, &counts), -ENOTSUP);
	d.size = 0;
	put_header_as(&d, 0x4a695444, 2, 40, 0);
	assert_int_equal(feed_whole(&d, &reported, &counts), -ENOTSUP);
	d.size = 0;
	put_header_as(&d, 0x4a695444, 1, 39, 0);
	assert_int_equal(feed_whole(&d, &reported, &counts), -EBADMSG);
	d.size = 0;
	put_header_as(&d, 0x464c457f, 1, 40, 0);
	assert_int_equal(feed_whole(&d, &reported, &counts), -EBADMSG);
	/* a record that is smaller than its own prefix */
	d.size = 0;
	put_header_as(&d, 0x4a695444, 1, 40, 0);
	put_load_cut(&d, 1, 0x1000, 4, 4, "good");
	put32(&d, 0);
	put32(&d, 15);
	put64(&d, 2);
	assert_int_equal(feed_whole(&d, &reported, &counts), -EBADMSG);
	assert_string_equal(reported.text, "load 1 1000+4 good\n");
}

/* What contradicts itself is counted and costs nothing else. */
TEST(contradictory_records_are_counted_and_skipped)
{
	struct jitdump_counts counts;
	struct reported reported;
	struct dump d = {};
	size_t at;

	put_header_as(&d, 0x4a695444, 1, 40, 0);
	put_load_cut(&d, 1, 0x1000, 5, 4, "more code than there is");
	put_load_cut(&d, 2, UINT64_MAX - 1, 4, 4, "it wraps");
	put_move(&d, 3, 0x1000, UINT64_MAX, 2);
	at = begin_record(&d, 2, 4);
	put64(&d, 0x1000);
	put64(&d, UINT64_C(1) << 60);
	put_line(&d, 0x1000, 1, 1, "/a.c");
	end_record(&d, at);
	at = begin_record(&d, 4, 5);
	put64(&d, UINT64_MAX);
	put64(&d, 0);
	put64(&d, 0);
	end_record(&d, at);
	at = begin_record(&d, 0, 6); /* its name does not end */
	for (int i = 0; i < 40; i++)
		put(&d, "n", 1);
	put(&d, "no end", 6);
	end_record(&d, at);
	at = begin_record(&d, 0, 7); /* too short */
	put32(&d, 1);
	end_record(&d, at);
	put_load_cut(&d, 8, 0x1000, 4, 4, "good");
	/* lines of other code, as of a load that did not come */
	at = begin_record(&d, 2, 9);
	put64(&d, 0x5000);
	put64(&d, 1);
	put_line(&d, 0x5000, 1, 1, "/a.c");
	end_record(&d, at);
	put_load_cut(&d, 10, 0x2000, 4, 4, "good too");
	put32(&d, 0); /* too large to be kept, passed over and never whole */
	put32(&d, JITDUMP_RECORD_MAX + 1);
	put64(&d, 11);
	assert_int_equal(feed_whole(&d, &reported, &counts), 0);
	assert_string_equal(reported.text, "load 8 1000+4 good\nload 10 2000+4 good too\n");
	assert_int_equal(counts.bad_records, 7);
	assert_int_equal(counts.left, 1);
}
