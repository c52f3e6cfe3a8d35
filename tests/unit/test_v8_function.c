/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and places of V8's functions, out of a forged heap; and heaps that lie. */
#include "unit.h"
#include "runtimes/v8/function.h"
#include "runtimes/v8/heap.h"
#include "runtimes/v8/layout.h"
#include "runtimes/v8/script.h"
#include "runtimes/v8/v8.h"
#include "unit/v8_support.h"

static struct managed_function function;

static void assert_text(struct v8_heap *h, uint64_t string, const char *expected)
{
	char text[128];

	v8_heap_refill(h);
	assert_int_equal(v8_string__text(&h->reader, string, text, sizeof(text)), 0);
	assert_string_equal(text, expected);
}

static int text_error(struct v8_heap *h, uint64_t string)
{
	char text[128];

	v8_heap_refill(h);
	return v8_string__text(&h->reader, string, text, sizeof(text));
}

/* ---- strings --------------------------------------------------------------------------------- */

TEST(text_of_every_kind_of_string_is_read)
{
	static const uint16_t units[] = {'a', 0xe4, 0x20ac, 0xd83d, 0xde00, 0xdc00, 0xd800};
	struct v8_heap *h = v8_heap_fresh(V8_NODE_20);
	uint64_t hello = v8_heap_string(h, "hello, "), world = v8_heap_string(h, "world"), both,
		 outside;

	assert_text(h, hello, "hello, ");
	assert_text(h, v8_heap_string(h, ""), "");
	assert_text(h, v8_heap_string(h, "\xe4\n"), "\xc3\xa4\\x0a");
	assert_text(h, v8_heap_wide(h, units, 7),
		    "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbd\xef\xbf\xbd");
	both = v8_heap_linked(h, CONS_ONE, 12, hello, world);
	assert_text(h, both, "hello, world");
	assert_text(h, v8_heap_linked(h, CONS_ONE, 24, both, both), "hello, worldhello, world");
	assert_text(h, v8_heap_linked(h, SLICED_ONE, 4, both, SMI(5)), ", wo");
	assert_text(h, v8_heap_linked(h, SLICED_ONE, 4, world, SMI(1)), "orld");
	assert_text(h, v8_heap_linked(h, THIN_ONE, 12, both, 0), "hello, world");
	/* those outside: the pointer to the resource, and to its characters */
	outside = v8_heap_space(h, 64, 8);
	v8_heap_put(h, outside + 1, 0, "external", 8);
	assert_text(h, v8_heap_linked(h, EXTERNAL_ONE, 8, 0, outside), "external");
	v8_heap_put(h, outside + 1, 16, u"wide", 8);
	assert_text(h, v8_heap_linked(h, EXTERNAL_TWO, 4, 0, outside + 16), "wide");
	v8_heap_word(h, outside + 1, 40, outside);
	assert_text(h, v8_heap_linked(h, UNCACHED_ONE, 8, outside + 32, 0), "external");
}

TEST(long_strings_are_cut_to_the_requested_size)
{
	struct v8_heap *h = v8_heap_fresh(V8_NODE_24);
	uint64_t s = v8_heap_object(h, ONE_BYTE, 40016);
	char text[64];

	memset(h->bytes + (s - 1 - HEAP_BASE) + 16, 'x', 40000);
	v8_heap_u32(h, s, 12, 40000);
	assert_int_equal(v8_string__text(&h->reader, s, text, sizeof(text)), 0);
	assert_int_equal(strlen(text), 63);
	/* longer than the memory: the requested part is there */
	v8_heap_u32(h, s, 12, UINT32_MAX);
	assert_int_equal(v8_string__text(&h->reader, s, text, sizeof(text)), 0);
	assert_int_equal(strlen(text), 63);
}

TEST(inconsistent_and_circular_strings_are_errors)
{
	struct v8_heap *h = v8_heap_fresh(V8_NODE_20);
	uint64_t word = v8_heap_string(h, "word"), ring, deep;

	assert_int_equal(text_error(h, 0), -EAGAIN);
	assert_int_equal(text_error(h, SMI(7)), -EAGAIN);
	assert_int_equal(text_error(h, h->meta_map), -EAGAIN);
	assert_int_equal(text_error(h, HEAP_BASE - 4095), -ENODATA);
	assert_int_equal(text_error(h, UINT64_MAX - 2), -ENODATA);
	/* shorter than what is made of it */
	assert_int_equal(text_error(h, v8_heap_linked(h, SLICED_ONE, 4, word, SMI(1))), -EAGAIN);
	assert_int_equal(text_error(h, v8_heap_linked(h, SLICED_ONE, 4, word, SMI(-1))), -EAGAIN);
	assert_int_equal(text_error(h, v8_heap_linked(h, SLICED_ONE, 4, word, SMI(INT32_MAX))),
			 -EAGAIN);
	assert_int_equal(text_error(h, v8_heap_linked(h, THIN_ONE, 5, word, 0)), -EAGAIN);
	assert_int_equal(text_error(h, v8_heap_linked(h, CONS_ONE, 9, word, word)), -EAGAIN);
	assert_int_equal(text_error(h, v8_heap_linked(h, CONS_ONE, 9, SMI(1), word)), -EAGAIN);
	assert_int_equal(text_error(h, v8_heap_linked(h, EXTERNAL_ONE, 9, 0, 0)), -EAGAIN);
	assert_int_equal(text_error(h, v8_heap_linked(h, EXTERNAL_ONE, 9, 0, 8)), -ENODATA);
	/* circles */
	ring = v8_heap_linked(h, THIN_ONE, 5, 0, 0);
	v8_heap_word(h, ring, 16, ring);
	assert_int_equal(text_error(h, ring), -ELOOP);
	ring = v8_heap_linked(h, CONS_ONE, 100, 0, word);
	v8_heap_word(h, ring, 16, ring);
	assert_int_equal(text_error(h, ring), -ELOOP);
	v8_heap_word(h, ring, 16, word);
	v8_heap_word(h, ring, 24, ring);
	assert_int_equal(text_error(h, ring), 0); /* 25 words */
	word = deep = v8_heap_string(h, "w");
	for (int i = 0; i < 50; i++)
		deep = v8_heap_linked(h, CONS_ONE, i + 2, deep, word);
	assert_int_equal(text_error(h, deep), -ELOOP);
}

TEST(a_function_beyond_the_read_budget_is_not_reported)
{
	struct v8_heap *h = v8_heap_fresh(V8_NODE_20);
	uint64_t word = v8_heap_string(h, "word");
	uint64_t both = v8_heap_linked(h, CONS_ONE, 8, word, word);
	uint64_t source = v8_heap_string(h, "function f() {}");
	uint64_t script = v8_heap_script(h, source, word, 7);
	uint64_t sfi = v8_heap_sfi(h, 0, v8_heap_scope(h, both, 0, 10), script, 3);
	struct v8_function about = {.sfi = 77};
	uint32_t needed;

	assert_int_equal(v8_function__read(&h->reader, sfi, &function, &about), 0);
	needed = h->reads;
	for (uint32_t reads = 0; reads < needed; reads++) {
		v8_heap__fini(h);
		h->scripts = v8_scripts__new();
		v8_reader__init(&h->reader, &h->layout, h->scripts);
		h->reader.memory = &h->memory;
		v8_heap_refill(h);
		h->memory.reads_left = reads;
		about.sfi = 77;
		assert_int_equal(v8_function__read(&h->reader, sfi, &function, &about), -EDQUOT);
		assert_int_equal(about.sfi, 77);
		assert_int_equal(h->reads, reads);
	}
}

/* ---- functions ------------------------------------------------------------------------------- */

static void read_function(struct v8_heap *h, uint64_t sfi, const char *name, const char *file,
			  uint32_t line, uint32_t column, struct v8_function *about)
{
	v8_heap_refill(h);
	assert_int_equal(v8_function__read(&h->reader, sfi, &function, about), 0);
	assert_string_equal(function.name, name);
	assert_string_equal(function.file, file);
	assert_int_equal(function.line, line);
	assert_int_equal(function.column, column);
}

TEST(an_unnamed_function_has_its_inferred_name)
{
	for (enum v8_version v = 0; v < V8_VERSIONS; v++) {
		struct v8_heap *h = v8_heap_fresh(v);
		uint64_t name = v8_heap_string(h, "work"), inferred = v8_heap_string(h, "a.work");
		uint64_t source = v8_heap_string(h, "one\ntwo\r\nthree\rfour");
		uint64_t script = v8_heap_script(h, source, v8_heap_string(h, "/a.js"), 7), sfi;
		uint64_t uncompiled = v8_heap_object(h, h->layout.type_uncompiled_first, 32);
		uint64_t empty = v8_heap_string(h, "");
		struct v8_function about;

		read_function(h, v8_heap_sfi(h, 0, v8_heap_scope(h, name, inferred, 5), script, 1),
			      "work", "/a.js", 2, 2, &about);
		assert_false(about.is_builtin || about.lost_script);
		assert_true(about.number == ((uint64_t)(v <= V8_NODE_20 ? 7 : 1) << 32 | 1));
		assert_int_equal(about.start, 5);
		read_function(h, v8_heap_sfi(h, 0, v8_heap_scope(h, 0, inferred, 9), script, 1),
			      "a.work", "/a.js", 3, 1, &about);
		read_function(h,
			      v8_heap_sfi(h, 0, v8_heap_scope(h, empty, inferred, 15), script, 1),
			      "a.work", "/a.js", 4, 1, &about);
		read_function(h, v8_heap_sfi(h, 0, v8_heap_scope(h, 0, 0, 0), script, 1), "",
			      "/a.js", 1, 1, &about);
		/* not compiled: the name itself, the rest of what the parser left */
		v8_heap_word(h, uncompiled, 8, inferred);
		v8_heap_u32(h, uncompiled, 16, 4);
		read_function(h, v8_heap_sfi(h, uncompiled, name, script, 1), "work", "/a.js", 2, 1,
			      &about);
		read_function(h, v8_heap_sfi(h, uncompiled, empty, script, 1), "a.work", "/a.js", 2,
			      1, &about);
		/* V8's own */
		sfi = v8_heap_sfi(h, SMI(600), name, v8_heap_object(h, ODDBALL, 48), 1);
		read_function(h, sfi, "work", "", 0, 0, &about);
		assert_true(about.is_builtin);
		sfi = v8_heap_sfi(h, SMI(600), SMI(0), v8_heap_object(h, ODDBALL, 48), 1);
		read_function(h, sfi, "", "", 0, 0, &about);
	}
}

/* A source is read in pieces of 16 KB: an end of a line of two characters may lie in two of them. */
TEST(line_ends_across_pieces_count_as_in_one)
{
	static char text[40000];
	static const char *const ends[] = {"\n", "\r", "\r\n", "\n\r", "\r\r"};
	static const uint32_t lines[] = {2, 2, 2, 3, 3};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		for (uint32_t at = 16380; at < 16390; at++) {
			struct v8_heap *h = v8_heap_fresh(V8_NODE_24);
			uint64_t script;
			struct v8_function about;

			memset(text, 'x', sizeof(text) - 1);
			memcpy(text + at, ends[i], strlen(ends[i]));
			script = v8_heap_script(h, v8_heap_string(h, text),
						v8_heap_string(h, "/a.js"), 7);
			read_function(h,
				      v8_heap_sfi(h, 0,
						  v8_heap_scope(h, v8_heap_string(h, "f"), 0,
								at + strlen(ends[i]) + 4),
						  script, 1),
				      "f", "/a.js", lines[i], 5, &about);
		}
}

#define UNITS 3000

/* The line of each place of a text, found the simple way. */
static void report_places(const uint16_t *units, uint32_t *lines, uint32_t *columns)
{
	uint32_t line = 1, begin = 0;

	for (uint32_t i = 0; i < UNITS; i++) {
		uint16_t u = units[i];

		lines[i] = line;
		columns[i] = i - begin + 1;
		if (u == '\n' || u == 0x2028 || u == 0x2029 ||
		    (u == '\r' && (i + 1 == UNITS || units[i + 1] != '\n'))) {
			line++;
			begin = i + 1;
		}
	}
}

/* Each place of texts with many ends of lines, in several orders. */
TEST(each_source_position_has_its_line_and_column)
{
	static const uint16_t kinds[][8] = {
		{'a', 'b', 'c', 'd', 'e', '\n', '\n', 'f'},
		{'a', 'b', '\r', '\n', '\r', '\n', 'c', 'd'},
		{'a', '\r', '\n', 0x2028, 0x2029, 0x2030, 0x2008, 0x3b1}};
	static const uint32_t steps[] = {1, UNITS - 1, 7, 1201};
	static uint16_t units[UNITS];
	static char text[UNITS + 1];
	static uint32_t lines[UNITS], columns[UNITS];

	for (size_t kind = 0; kind < 3; kind++) {
		struct v8_heap *h = v8_heap_fresh(V8_NODE_24);
		struct v8_script *script;
		uint32_t random = 1;

		for (size_t i = 0; i < UNITS; i++) {
			random = random * 1103515245 + 12345;
			units[i] = kinds[kind][random >> 16 & 7];
			text[i] = (char)units[i];
		}
		report_places(units, lines, columns);
		assert_int_equal(
			v8_script__find(&h->reader,
					v8_heap_script(h,
						       kind == 2 ? v8_heap_wide(h, units, UNITS)
								 : v8_heap_string(h, text),
						       v8_heap_string(h, "/a.js"), 7),
					&script),
			0);
		for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
			for (uint32_t n = 0, at = 0; n < UNITS; n++, at = (at + steps[i]) % UNITS) {
				uint32_t line, column;

				assert_int_equal(
					v8_script__place(&h->reader, script, at, &line, &column),
					0);
				assert_int_equal(line, lines[at]);
				assert_int_equal(column, columns[at]);
			}
	}
}

TEST(the_name_is_found_behind_any_number_of_locals)
{
	static const uint32_t counts[] = {1, 74, 75, 300};

	for (enum v8_version v = 0; v < V8_VERSIONS; v++) {
		for (size_t i = 0; i < 4; i++) {
			struct v8_heap *h = v8_heap_fresh(v);
			const struct v8_layout *l = &h->layout;
			uint64_t name = v8_heap_string(h, "many");
			uint64_t scope = v8_heap_object(h, l->type_scope_info, 8192);
			uint32_t flags = l->scope_module | 1u << 10 | 1u << 12, n = counts[i];
			uint32_t slot = l->scope_first + l->scope_counts_module + (n < 75 ? n : 1) +
					n + 1;
			struct v8_function about;

			if (l->scope_flags_raw)
				v8_heap_u32(h, scope, 8, flags);
			else
				v8_heap_word(h, scope, 8, SMI(flags));
			v8_heap_word(h, scope, 8 + 8 * l->scope_locals, SMI(n));
			v8_heap_word(h, scope, 8 + 8 * slot, name);
			read_function(h, v8_heap_sfi(h, 0, scope, 0, 1), "many", "", 0, 0, &about);
			v8_heap_word(h, scope, 8 + 8 * l->scope_locals, SMI(-1));
			assert_int_equal(v8_function__read(&h->reader,
							   v8_heap_sfi(h, 0, scope, 0, 1),
							   &function, &about),
					 -EAGAIN);
			v8_heap_word(h, scope, 8 + 8 * l->scope_locals, SMI(1 << 20));
			assert_int_not_equal(v8_function__read(&h->reader,
							       v8_heap_sfi(h, 0, scope, 0, 1),
							       &function, &about),
					     0);
		}
	}
}

TEST(line_ends_of_scripts_are_used_if_valid)
{
	static const uint64_t ends[] = {SMI(3), SMI(7), SMI(11)}, lies[] = {SMI(3), SMI(2)};
	struct v8_heap *h = v8_heap_fresh(V8_NODE_20);
	uint64_t name = v8_heap_string(h, "f"), url = v8_heap_string(h, "eval.js");
	uint64_t source = v8_heap_wide(h, u"a\u2028b\u2029c", 5);
	uint64_t script = v8_heap_script(h, source, 0, 9), scope = v8_heap_scope(h, name, 0, 4);
	uint64_t sfi = v8_heap_sfi(h, 0, scope, script, 1), debug;
	struct v8_function about;

	v8_heap_word(h, script, h->layout.script_source_url, url);
	read_function(h, sfi, "f", "eval.js", 3, 1, &about);
	/* what V8 has counted; in a file of something else */
	script = v8_heap_script(h, source, url, 10);
	v8_heap_word(h, script, 56, v8_heap_array(h, ends, 3));
	v8_heap_word(h, script, 24, SMI(100));
	v8_heap_word(h, script, 32, SMI(50));
	read_function(h, v8_heap_sfi(h, 0, scope, script, 1), "f", "eval.js", 102, 1, &about);
	read_function(h, v8_heap_sfi(h, 0, v8_heap_scope(h, name, 0, 2), script, 1), "f", "eval.js",
		      101, 53, &about);
	read_function(h, v8_heap_sfi(h, 0, v8_heap_scope(h, name, 0, 12), script, 1), "f",
		      "eval.js", 0, 0, &about);
	/* or has not, whatever is there */
	script = v8_heap_script(h, source, url, 11);
	v8_heap_word(h, script, 56, v8_heap_array(h, lies, 2));
	read_function(h, v8_heap_sfi(h, 0, scope, script, 1), "f", "eval.js", 3, 1, &about);
	/* without a source, or with one that is too large */
	script = v8_heap_script(h, SMI(0), url, 12);
	read_function(h, v8_heap_sfi(h, 0, scope, script, 1), "f", "eval.js", 0, 0, &about);
	script = v8_heap_script(h, v8_heap_linked(h, CONS_ONE, (16 << 20) + 1, url, url), url, 13);
	read_function(h, v8_heap_sfi(h, 0, scope, script, 1), "f", "eval.js", 0, 0, &about);
	/* behind a DebugInfo */
	debug = v8_heap_object(h, h->layout.type_debug_info, 64);
	v8_heap_word(h, debug, 24, v8_heap_script(h, source, url, 14));
	read_function(h, v8_heap_sfi(h, 0, scope, debug, 1), "f", "eval.js", 3, 1, &about);
	/* gone: the name stays */
	read_function(h, v8_heap_sfi(h, 0, scope, HEAP_BASE - 4095, 1), "f", "", 0, 0, &about);
	assert_true(about.lost_script);
}

TEST(each_of_thousands_of_scripts_has_its_own_number)
{
	struct v8_heap *h = v8_heap_fresh(V8_NODE_20);
	uint64_t name = v8_heap_string(h, "f"), source = v8_heap_string(h, "\n\n\n\n\n\n\n\n\n\n");
	uint64_t scope = v8_heap_scope(h, name, 0, 4);
	uint64_t script = v8_heap_script(h, source, name, 1),
		 sfi = v8_heap_sfi(h, 0, scope, script, 1);
	struct v8_function about;

	for (int i = 1; i < 3000; i++) {
		v8_heap_word(h, script, 64, SMI(i));
		read_function(h, sfi, "f", "f", 5, 1, &about);
		assert_int_equal(about.number >> 32, i);
	}
}

TEST(a_word_that_is_no_function_is_an_error)
{
	struct v8_heap *h = v8_heap_fresh(V8_NODE_24);
	uint64_t name = v8_heap_string(h, "f"), sfi = v8_heap_sfi(h, 0, name, 0, 1);
	const uint64_t words[] = {
		0, 1, 3, SMI(4), ~0ull, ~2ull, h->meta_map, name, HEAP_BASE + HEAP_SIZE - 7};
	struct v8_function about;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		assert_int_equal(v8_function__read(&h->reader, words[i], &function, &about),
				 -ENODATA);
	v8_heap_word(h, sfi, h->layout.sfi_name, v8_heap_sfi(h, 0, name, 0, 1) + 8);
	assert_int_equal(v8_function__read(&h->reader, sfi, &function, &about), -EAGAIN);
}

/* ---- the same, later ------------------------------------------------------------------------- */

/* Is the function at this word another one, by its number? */
static bool is_another(struct v8_heap *h, uint64_t sfi, const struct v8_function *about)
{
	uint64_t number;

	v8_heap_refill(h);
	return v8_function__number(&h->reader, sfi, &number) || number != about->number;
}

TEST(a_moved_function_keeps_its_number)
{
	for (enum v8_version v = 0; v < V8_VERSIONS; v++) {
		struct v8_heap *h = v8_heap_fresh(v);
		const struct v8_layout *l = &h->layout;
		uint64_t name = v8_heap_string(h, "f"), source = v8_heap_string(h, "f\n");
		uint64_t script = v8_heap_script(h, source, name, 7), moved, number;
		uint64_t other = v8_heap_script(h, source, name, 8);
		uint64_t sfi = v8_heap_sfi(h, 0, v8_heap_scope(h, name, 0, 0), script, 1);
		struct v8_function about, again;

		read_function(h, sfi, "f", "f", 1, 1, &about);
		assert_false(is_another(h, sfi, &about));
		/* what it points to was moved */
		v8_heap_word(h, sfi, l->sfi_name, v8_heap_scope(h, name, 0, 0));
		assert_false(is_another(h, sfi, &about));
		v8_heap_word(h, sfi, l->sfi_script, v8_heap_script(h, source, name, 7));
		assert_false(is_another(h, sfi, &about));
		/* another script's; another one of the same script */
		v8_heap_word(h, sfi, l->sfi_script, other);
		assert_true(l->sfi_unique_id > 0 || is_another(h, sfi, &about));
		v8_heap_word(h, sfi, l->sfi_script, script);
		v8_heap_u32(h, sfi, l->sfi_unique_id > 0 ? l->sfi_unique_id : l->sfi_literal_id, 2);
		assert_true(is_another(h, sfi, &about));
		/* moved: its first word is the address */
		moved = v8_heap_sfi(h, 0, v8_heap_scope(h, name, 0, 0), script, 1);
		v8_heap_word(h, sfi, 0, moved - 1);
		read_function(h, sfi, "f", "f", 1, 1, &again);
		assert_true(again.sfi == moved && again.number == about.number);
		assert_true(is_another(h, HEAP_BASE - 4095, &about));
		h->memory.reads_left = 0;
		assert_int_equal(v8_function__number(&h->reader, moved, &number), -EDQUOT);
	}
}

/* ---- trust ----------------------------------------------------------------------------------- */

TEST(a_heap_is_refused_after_too_many_bad_functions)
{
	struct v8_heap *h = v8_heap_fresh(V8_NODE_24);
	uint64_t name = v8_heap_string(h, "f"), script = v8_heap_script(h, name, name, 1);
	uint64_t sfi = v8_heap_sfi(h, 0, name, script, 1);
	uint64_t builtin = v8_heap_sfi(h, 0, name, v8_heap_object(h, ODDBALL, 48), 1);
	uint64_t fake = v8_heap_sfi(h, 0, name, name + 8, 1);
	struct v8_trust trust = {};

	for (unsigned int i = 0; i < 45; i++) {
		v8_heap_refill(h);
		assert_int_equal(v8_trust__see(&trust, &h->reader, i % 2 ? sfi : builtin),
				 V8_TRUST_OPEN);
	}
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(v8_trust__see(&trust, &h->reader, name), V8_TRUST_OPEN);
	h->memory.reads_left = 0;
	assert_int_equal(v8_trust__see(&trust, &h->reader, name), V8_TRUST_OPEN);
	v8_heap_refill(h);
	assert_int_equal(v8_trust__see(&trust, &h->reader, 0), V8_TRUSTED);
	assert_int_equal(trust.bad, 5);
	trust = (struct v8_trust){};
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(v8_trust__see(&trust, &h->reader, i % 2 ? fake : 1),
				 V8_TRUST_OPEN);
	assert_int_equal(v8_trust__see(&trust, &h->reader, fake), V8_REFUSED);
	assert_int_equal(v8_trust__see(&trust, &h->reader, sfi), V8_REFUSED);
	assert_int_equal(trust.seen, 6);
	assert_int_equal(trust.bad, 6);
}

/* ---- whatever is there ----------------------------------------------------------------------- */

TEST(a_corrupt_heap_is_read_within_the_budget)
{
	static const uint64_t words[] = {
		0, 1, 3, ~0ull, 1ull << 63, HEAP_BASE + 1, HEAP_BASE + HEAP_SIZE - 7};

	for (enum v8_version v = 0; v < V8_VERSIONS; v++) {
		struct v8_heap *h = v8_heap_fresh(v);
		uint64_t name = v8_heap_string(h, "f"), script = v8_heap_script(h, name, name, 1);
		uint64_t scope = v8_heap_scope(h, name, name, 0),
			 sfi = v8_heap_sfi(h, 0, scope, script, 1);

		for (size_t at = 64; at < h->used; at += 8) {
			for (size_t i = 0; i < 10; i++) {
				uint64_t before, put = i < 7	? words[i]
						       : i == 7 ? sfi
						       : i == 8 ? scope
								: script;
				struct v8_function about;

				memcpy(&before, h->bytes + at, 8);
				memcpy(h->bytes + at, &put, 8);
				v8_reader__init(&h->reader, &h->layout, h->scripts);
				h->reader.memory = &h->memory;
				v8_heap_refill(h);
				v8_function__read(&h->reader, sfi, &function, &about);
				assert_in_range(h->reads, 0, 4000);
				memcpy(h->bytes + at, &before, 8);
			}
		}
	}
}
