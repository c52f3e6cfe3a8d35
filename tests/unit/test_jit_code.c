/* SPDX-License-Identifier: BSD-2-Clause */
/* From pieces of perf maps and jitdumps to the names and lines of an address at a time. */

#include "text_cases.h"
#include "base/cleanup.h"
#include "jit/jit_code.h"

#include "unit/forge_jitdump.h"

static struct jit_code *c; /* of the running test */
static struct dump d;

static void begin(enum jit_code_use use)
{
	jit_code__free(c);
	c = jit_code__new(use);
}

static void end(void)
{
	jit_code__free(c);
	c = NULL;
}

static void tear_down(void)
{
	end();
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

/* ---- testdata/jit_code.txt ------------------------------------------------------------------- */

static uint64_t conversions; /* of times of the TSC */

static uint64_t from_tsc(void *context, uint64_t tsc)
{
	conversions++;
	return tsc < 1000 ? 0 : tsc / 10;
}

static void begin_dump(uint64_t flags)
{
	begin(JIT_CODE_DUMP);
	d.size = 0;
	put_header(&d, flags);
}

/* All records so far, written in (after, before]; they are forgotten. */
static int feed_records(uint64_t after, uint64_t before, bool begins_anew)
{
	int err = feed_piece(
		(struct jit_piece){d.bytes, d.size, after, before, begins_anew, begins_anew});

	d.size = 0;
	return err;
}

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

/* "TIME NAME, TIME? NAME": what is at the address at these times, "-" for nothing; "?": it is ambiguous. */
static void put_names(FILE *out, uint64_t address, char *times)
{
	const char *between = "";

	for (const char *word; *(word = text_word(&times)); between = ", ") {
		uint64_t time = strtoull(word, NULL, 10);
		struct jit_answer a = request(address, time);

		fprintf(out, "%s%" PRIu64 "%s %s", between, time, a.ambiguous ? "?" : "",
			a.entry == JIT_NO_ENTRY ? "-" : jit_code__name(c, a.entry));
	}
}

/* "OFFSET FILE:LINE:COLUMN, OFFSET -": of code from `start` on at a time; "-" is no line. */
static void put_lines(FILE *out, uint64_t start, uint64_t time, char *offsets)
{
	const char *between = "";

	for (const char *word; *(word = text_word(&offsets)); between = ", ") {
		uint64_t offset = strtoull(word, NULL, 16);
		uint32_t entry = request(start + offset, time).entry;
		struct jit_line l;

		assert_int_not_equal(entry, JIT_NO_ENTRY);
		if (jit_code__line(c, entry, start + offset, &l))
			fprintf(out, "%s%" PRIx64 " %s:%u:%u", between, offset, l.file, l.line,
				l.column);
		else
			fprintf(out, "%s%" PRIx64 " -", between, offset);
	}
}

static void put_counts(FILE *out)
{
	struct jit_code_counts counts = jit_code__counts(c);

	fprintf(out, "%" PRIu64 " entries, %" PRIu64 " bad lines, %" PRIu64 " bytes torn",
		counts.entries, counts.bad_lines, counts.torn);
}

/* "AFTER BEFORE TEXT", with "^" for a NUL; "begins" and "ends" before it are the ends of a snapshot. */
static void step_feed(char *words)
{
	struct jit_piece piece = {.begins_snapshot = !strncmp(words, "begins ", 7)};

	words += piece.begins_snapshot ? 7 : 0;
	piece.ends_snapshot = !strncmp(words, "ends ", 5);
	words += piece.ends_snapshot ? 5 : 0;
	piece.after = text_number(&words, 10);
	piece.before = text_number(&words, 10);
	piece.bytes = words;
	piece.size = strlen(words);
	for (char *at = words; (at = strchr(at, '^'));)
		*at++ = '\0';
	assert_int_equal(feed_piece(piece), 0);
}

/* "TIME ADDRESS SIZE NAME" */
static void step_load(char *words)
{
	uint64_t time = text_number(&words, 10), address = text_number(&words, 16),
		 size = text_number(&words, 10);

	put_load(&d, time, address, size, words);
}

/* "TIME FROM TO SIZE" */
static void step_move(char *words)
{
	uint64_t time = text_number(&words, 10), from = text_number(&words, 16),
		 to = text_number(&words, 16);

	put_move(&d, time, from, to, text_number(&words, 10));
}

static void step_fed(FILE *out, char *words)
{
	uint64_t after = text_number(&words, 10), before = text_number(&words, 10);
	int err = feed_records(after, before ?: 1000000, strstr(words, "anew"));

	if (err)
		text_put_error(out, err);
}

static bool take_record(const char *name, char *words)
{
	if (!strcmp(name, "header"))
		put_header(&d, text_number(&words, 10));
	else if (!strcmp(name, "load"))
		step_load(words);
	else if (!strcmp(name, "move"))
		step_move(words);
	else if (!strcmp(name, "close"))
		put_close(&d, text_number(&words, 10));
	else if (!strcmp(name, "load-with-lines"))
		put_code_with_lines(&d);
	else if (!strcmp(name, "bytes"))
		put(&d, words, strlen(words));
	else if (!strcmp(name, "zeros"))
		put(&d, (char[16]){}, text_number(&words, 10));
	else
		return false;
	return true;
}

static void settle_with_clock(FILE *out)
{
	conversions = 0;
	assert_int_equal(jit_code__settle(c, from_tsc, NULL), 0);
	if (conversions)
		fprintf(out, "%" PRIu64 " times converted", conversions);
}

static bool take_step(FILE *out, const char *name, char *words)
{
	uint64_t start, time;

	if (!strcmp(name, "map"))
		begin(JIT_CODE_MAP);
	else if (!strcmp(name, "dump"))
		begin_dump(text_number(&words, 10));
	else if (!strcmp(name, "raw"))
		begin_dump(0), d.size = 0;
	else if (!strcmp(name, "feed"))
		step_feed(words);
	else if (!strcmp(name, "fed"))
		step_fed(out, words);
	else if (!strcmp(name, "settle"))
		settle_with_clock(out);
	else if (!strcmp(name, "lose"))
		start = text_number(&words, 10),
		assert_int_equal(jit_code__lose(c, start, text_number(&words, 10)), 0);
	else if (!strcmp(name, "clock"))
		jit_code__set_clock(c, strtoll(words, NULL, 10), *words != '-' || words[1]);
	else if (!strcmp(name, "at"))
		start = text_number(&words, 16), put_names(out, start, words);
	else if (!strcmp(name, "lines"))
		start = text_number(&words, 16), time = text_number(&words, 10),
		put_lines(out, start, time, words);
	else if (!strcmp(name, "counts"))
		put_counts(out);
	else if (!strcmp(name, "has-lines"))
		fputs(jit_code__has_lines(c) ? "lines" : "no lines", out);
	else
		return take_record(name, words);
	return true;
}

static void run_steps(FILE *out, char *input)
{
	text_run_steps(out, input, take_step);
}

/* "NAME vs NAME": are they names of one function? */
static void compare_names(FILE *out, char *input)
{
	char *other = strstr(input, " vs "), text[256];
	struct jit_answer a, b;
	bool same;

	*other = '\0';
	other += 4;
	begin(JIT_CODE_MAP);
	snprintf(text, sizeof(text), "1000 10 %s\n2000 10 %s\n", input, other);
	assert_int_equal(feed(text, strlen(text), 0, 1), 0);
	settle();
	a = request(0x1000, 2);
	b = request(0x2000, 2);
	assert_string_equal(jit_code__name(c, a.entry), input);
	assert_string_equal(jit_code__name(c, b.entry), other);
	same = jit_code__same_function(c, a.entry, b.entry);
	assert_int_equal(jit_code__same_function(c, b.entry, a.entry), same);
	assert_true(jit_code__same_function(c, a.entry, a.entry));
	fputs(same ? "same" : "other", out);
}

static const struct text_verb verbs[] = {{"steps", run_steps}, {"same", compare_names}, {}};

TEXT_TABLE("jit_code", verbs, NULL, end);

/* ---- at every cut ---------------------------------------------------------------------------- */

static void assert_names(uint64_t address, const char *times, const char *expected)
{
	char *found, copy[64];
	size_t size;
	FILE *out = open_memstream(&found, &size);

	put_names(out, address, strcpy(copy, times));
	fclose(out);
	assert_string_equal(found, expected);
	free(found);
}

static void assert_counts(uint64_t entries, uint64_t bad_lines, uint64_t torn)
{
	struct jit_code_counts counts = jit_code__counts(c);

	assert_int_equal(counts.entries, entries);
	assert_int_equal(counts.bad_lines, bad_lines);
	assert_int_equal(counts.torn, torn);
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
		assert_names(0x1000, "1000", "1000 -");
		assert_names(0x1080, "1000", "1000 three");
		assert_names(0x20ff, "1000", "1000 two two");
		assert_names(0x3000, "1000", "1000 four");
	}
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
		assert_names(0x1008, "150", "150 f");
		assert_names(0x2008, "200", "200 f");
	}
	d.size -= 3;
	begin(JIT_CODE_DUMP);
	assert_int_equal(feed(d.bytes, d.size, 0, 0), 0);
	settle();
	assert_counts(1, 0, 64 - 3);
	assert_names(0x1008, "250", "250 f");
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
	assert_int_equal(feed_records(0, 1, false), 0);
	assert_true(jit_code__has_new_unwinding(c));
	assert_int_equal(jit_code__unwinding(c, &list, &count), 0);
	assert_false(jit_code__has_new_unwinding(c));
	assert_int_equal(count, 2);
	assert_int_equal(list[0].address, 0x2000);
	assert_memory_equal(list[0].eh_frame, "EH FRAME", list[0].eh_frame_size);
	assert_int_equal(list[1].address, 0x4000);
	free(list);
}

/* ---- machine code ---------------------------------------------------------------------------- */

#define NO_BYTE (-1)

/* The byte of which all code at an address is at a time. */
static int byte_at(uint64_t address, uint64_t time, enum jit_text_state expected)
{
	struct jit_answer answer = request(address, time);
	struct jit_bytes bytes;

	assert_int_not_equal(answer.entry, JIT_NO_ENTRY);
	assert_int_equal(jit_code__bytes(c, answer.entry, &bytes), expected);
	if (expected != JIT_TEXT_KEPT)
		return NO_BYTE;
	assert_int_equal(bytes.machine, 62);
	assert_int_equal(bytes.address,
			 jit_timeline__range(jit_code__timeline(c), answer.entry).start);
	for (uint32_t i = 1; i < bytes.size; i++)
		assert_int_equal(bytes.bytes[i], bytes.bytes[0]);
	return bytes.bytes[0];
}

static void begin_texts(void)
{
	begin_dump(0);
	jit_code__keep_text(c);
	put_load_of(&d, 100, 0x1000, 32, 32, 0x11, "f");
	put_load_of(&d, 200, 0x1000, 32, 32, 0x22, "f");
	put_load_of(&d, 210, 0x2000, 32, 32, 0x33, "moved");
	put_move(&d, 250, 0x2000, 0x3000, 32);
	put_load_of(&d, 260, 0x4000, 32, 32, 0, "blank");
	put_load_of(&d, 300, 0x1010, 32, 32, 0x44, "g");
	assert_int_equal(feed_records(0, 0, false), 0);
	settle();
}

TEST(each_version_has_the_machine_code_that_was_loaded)
{
	begin_texts();
	assert_int_equal(byte_at(0x1008, 150, JIT_TEXT_KEPT), 0x11);
	assert_int_equal(byte_at(0x1008, 250, JIT_TEXT_KEPT), 0x22);
	assert_int_equal(byte_at(0x1018, 350, JIT_TEXT_KEPT), 0x44);
	assert_int_equal(byte_at(0x2008, 220, JIT_TEXT_KEPT), 0x33);
	byte_at(0x3008, 350, JIT_TEXT_NONE); /* moving it may have changed it */
	byte_at(0x4008, 350, JIT_TEXT_NONE);
}

/* docs/CODE.md: 64 MiB of a jitdump. What is left out may be followed by less that has room. */
TEST(bytes_are_bounded)
{
	const uint64_t size = 8000, kept = (UINT64_C(64) << 20) / size;

	begin_dump(0);
	jit_code__keep_text(c);
	for (uint64_t i = 0; i < kept + 2; i++) {
		put_load_of(&d, 100, (i + 1) << 16, size, size, 1 + (unsigned char)(i % 200), "f");
		assert_int_equal(feed_records(0, 0, false), 0);
	}
	put_load_of(&d, 100, 0x1000, 32, 32, 0x11, "small");
	assert_int_equal(feed_records(0, 0, false), 0);
	settle();
	for (uint64_t i = 0; i < kept; i += 100)
		assert_int_equal(byte_at((i + 1) << 16, 200, JIT_TEXT_KEPT), 1 + i % 200);
	assert_int_equal(byte_at(kept << 16, 200, JIT_TEXT_KEPT), 1 + (kept - 1) % 200);
	byte_at((kept + 1) << 16, 200, JIT_TEXT_LEFT);
	byte_at((kept + 2) << 16, 200, JIT_TEXT_LEFT);
	assert_int_equal(byte_at(0x1008, 200, JIT_TEXT_KEPT), 0x11);
}

TEST(forgetting_code_keeps_the_bytes_of_the_rest)
{
	uint64_t shed;

	begin_texts();
	assert_int_equal(jit_code__shrink(c, SIZE_MAX, &shed), 0);
	settle();
	assert_int_equal(byte_at(0x1018, 350, JIT_TEXT_KEPT), 0x44);
	byte_at(0x3008, 350, JIT_TEXT_NONE);
}

TEST(bytes_without_room_are_marked)
{
	begin_texts();
	assert_true(jit_code__drop_text(c));
	assert_false(jit_code__drop_text(c));
	put_load_of(&d, 400, 0x5000, 32, 32, 0x55, "late");
	assert_int_equal(feed_records(0, 0, false), 0);
	settle();
	byte_at(0x1008, 150, JIT_TEXT_LEFT);
	byte_at(0x4008, 350, JIT_TEXT_NONE);
	byte_at(0x5008, 450, JIT_TEXT_LEFT);
	begin_dump(0); /* where they are not wanted, nothing is left out */
	put_load_of(&d, 100, 0x1000, 32, 32, 0x11, "f");
	assert_int_equal(feed_records(0, 0, false), 0);
	settle();
	byte_at(0x1008, 150, JIT_TEXT_NONE);
}

/* A dump with so many functions of this size, each at a place of its own. */
static void feed_large(uint32_t count, size_t size)
{
	_cleanup_free_ unsigned char *code = malloc(size);

	memset(code, 0x90, size);
	begin_dump(0);
	jit_code__keep_text(c);
	for (uint32_t i = 0; i < count; i++) {
		put_load_head(&d, 100, (i + 1) * UINT64_C(0x1000000), size, "f");
		assert_int_equal(feed_records(0, 0, false), 0);
		assert_int_equal(feed(code, size, 0, 0), 0);
	}
	settle();
}

/* The bytes that are kept of function `i` of feed_large(). */
static uint32_t kept_of(uint32_t i, enum jit_text_state expected)
{
	struct jit_bytes bytes = {};
	struct jit_answer answer = request((i + 1) * UINT64_C(0x1000000), 150);

	assert_int_not_equal(answer.entry, JIT_NO_ENTRY);
	assert_int_equal(jit_code__bytes(c, answer.entry, &bytes), expected);
	return bytes.size;
}

TEST(of_a_function_the_first_mebibyte_is_kept)
{
	feed_large(1, 1 << 20);
	assert_int_equal(kept_of(0, JIT_TEXT_KEPT), 1 << 20);
	feed_large(1, (1 << 20) + 1);
	assert_int_equal(kept_of(0, JIT_TEXT_KEPT), 1 << 20);
}

TEST(of_a_dump_64_mebibytes_are_kept)
{
	feed_large(65, 1 << 20);
	assert_int_equal(kept_of(63, JIT_TEXT_KEPT), 1 << 20);
	assert_int_equal(kept_of(64, JIT_TEXT_LEFT), 0);
}

EACH_TEST_WITH(NULL, tear_down);
