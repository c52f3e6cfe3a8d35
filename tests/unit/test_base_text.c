/* SPDX-License-Identifier: BSD-2-Clause */
/* utf8, json_writer, parse and suffix: text in, text out, as tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/json_writer.h"
#include "base/parse.h"
#include "base/suffix.h"
#include "base/utf8.h"
#include "compare/time_span.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* ---- utf8 ------------------------------------------------------------------------------------ */

static const struct {
	const char *text;
	size_t length;
} sequences[] = {
	{"a", 1},
	{"\x7f", 1},
	{"\xc2\x80", 2},
	{"\xdf\xbf", 2},
	{"\xe0\xa0\x80", 3},
	{"\xed\x9f\xbf", 3},
	{"\xee\x80\x80", 3},
	{"\xef\xbf\xbf", 3},
	{"\xf0\x90\x80\x80", 4},
	{"\xf4\x8f\xbf\xbf", 4},
	{"\x80", 0},		 /* stray */
	{"\xbf", 0},		 /* stray */
	{"\xc0\x80", 0},	 /* overlong NUL */
	{"\xc1\xbf", 0},	 /* overlong */
	{"\xe0\x9f\xbf", 0},	 /* overlong */
	{"\xf0\x8f\xbf\xbf", 0}, /* overlong */
	{"\xed\xa0\x80", 0},	 /* surrogate */
	{"\xed\xbf\xbf", 0},	 /* surrogate */
	{"\xf4\x90\x80\x80", 0}, /* above U+10FFFF */
	{"\xf5\x80\x80\x80", 0},
	{"\xfe", 0},
	{"\xff", 0},
	{"\xc2", 0},	     /* cut off */
	{"\xe2\x82", 0},     /* cut off */
	{"\xf0\x9f\x98", 0}, /* cut off */
	{"\xc2"
	 "a",
	 0},
	{"\xe2\x82"
	 "a",
	 0},
	{"\xe2"
	 "a\x82",
	 0},
	{"\xf0\x9f\x98"
	 "a",
	 0},
};

static void utf8_sequences(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(sequences); i++)
		assert_int_equal(utf8_sequence(sequences[i].text, strlen(sequences[i].text)),
				 sequences[i].length);
	assert_int_equal(utf8_sequence("", 0), 0);
	assert_int_equal(utf8_sequence("\0", 1), 1);
	assert_int_equal(utf8_sequence("\xe2\x82\xac", 2), 0);
}

static const struct {
	const char *text;
	size_t size;
	const char *shown;
} sanitized[] = {
	{"plain", 64, "plain"},
	{"tab\tnl\n", 64, "tab\\x09nl\\x0a"},
	{"\x1b[31m", 64, "\\x1b[31m"},
	{"\x7f", 64, "\\x7f"},
	{"\xc2\x85", 64, "\\xc2\\x85"}, /* C1: next line */
	{"\xc2\xa0", 64, "\xc2\xa0"},
	{"\xff\xfe", 64, "\\xff\\xfe"},
	{"\xed\xa0\x80", 64, "\\xed\\xa0\\x80"},
	{"\xe2\x82", 64, "\\xe2\\x82"},
	{"\xe2\x82\xac", 64, "\xe2\x82\xac"},
	{"a\u202eb", 64, "a\\u202eb"}, /* from right to left */
	{"\u2066\u200f\u2028\ufeff", 64, "\\u2066\\u200f\\u2028\\ufeff"},
	{"\u2027\u202f\u2065\ufffd", 64, "\u2027\u202f\u2065\ufffd"},
	{"\u202e", 6, ""},
	{"\xe2\x82\xac", 4, "\xe2\x82\xac"},
	{"\xe2\x82\xac", 3, ""}, /* not half of it */
	{"a\n", 5, "a"},
	{"a\n", 6, "a\\x0a"},
	{"abc", 3, "ab"},
	{"abc", 1, ""},
	{"", 1, ""},
};

static void utf8_sanitizes(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(sanitized); i++) {
		char buffer[64];

		memset(buffer, '!', sizeof(buffer));
		assert_ptr_equal(utf8_sanitize(buffer, sanitized[i].size, sanitized[i].text),
				 buffer);
		assert_string_equal(buffer, sanitized[i].shown);
		if (sanitized[i].size < sizeof(buffer))
			assert_int_equal(buffer[sanitized[i].size], '!');
	}
}

/* ---- json ------------------------------------------------------------------------------------ */

static struct json_writer writer;
static char *json_text;
static size_t json_size;

static struct json_writer *json_start(void)
{
	FILE *out = open_memstream(&json_text, &json_size);

	assert_non_null(out);
	json_writer__init(&writer, out);
	return &writer;
}

static void expect_json(const char *expected)
{
	assert_int_equal(json_writer__finish(&writer), 0);
	fclose(writer.out);
	assert_string_equal(json_text, expected);
	free(json_text);
}

static const struct {
	const char *text, *json;
} strings[] = {
	{"", "\"\""},
	{"a\"b\\c/d", "\"a\\\"b\\\\c/d\""},
	{"\x01\x1f\n\t\r\b\f", "\"\\u0001\\u001f\\u000a\\u0009\\u000d\\u0008\\u000c\""},
	{"\x7f", "\"\\u007f\""},
	{"\xe2\x82\xac \xf0\x9f\x98\x80", "\"\xe2\x82\xac \xf0\x9f\x98\x80\""},
	{"\xff", "\"\xef\xbf\xbd\""},
	{"\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
	{"\xed\xa0\x80x", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx\""},
	{"x\xe2\x82", "\"x\xef\xbf\xbd\xef\xbf\xbd\""},
	{"\xe2\x82\"", "\"\xef\xbf\xbd\xef\xbf\xbd\\\"\""},
	{"\xf0\x9f\x98", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
	{NULL, "null"},
};

static void json_strings(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(strings); i++) {
		json_string(json_start(), strings[i].text);
		expect_json(strings[i].json);
	}
}

static void json_nesting(void **state)
{
	struct json_writer *w = json_start();

	(void)state;
	json_begin_object(w);
	json_key_array(w, "a");
	json_begin_array(w);
	json_end_array(w);
	json_begin_object(w);
	json_end_object(w);
	json_int(w, 1);
	json_bool(w, true);
	json_bool(w, false);
	json_null(w);
	json_end_array(w);
	json_key_string(w, "b\n", "x");
	json_key_int(w, "c", -5);
	json_key_uint(w, "d", 5);
	json_key_bool(w, "e", true);
	json_key_null(w, "f");
	json_key_object(w, "g");
	json_key_int(w, "h", 0);
	json_end_object(w);
	json_end_object(w);
	expect_json("{\"a\":[[],{},1,true,false,null],\"b\\u000a\":\"x\",\"c\":-5,\"d\":5,"
		    "\"e\":true,\"f\":null,\"g\":{\"h\":0}}");
}

static void json_integers(void **state)
{
	struct json_writer *w = json_start();

	(void)state;
	json_begin_array(w);
	json_int(w, 0);
	json_int(w, INT64_MAX);
	json_int(w, INT64_MIN);
	json_uint(w, UINT64_MAX);
	json_uint(w, 0);
	json_end_array(w);
	expect_json("[0,9223372036854775807,-9223372036854775808,18446744073709551615,0]");
}

static const struct {
	int64_t ns;
	const char *ms, *us;
} times[] = {
	{0, "0", "0"},
	{1, "0.000001", "0.001"},
	{10, "0.00001", "0.01"},
	{1000, "0.001", "1"},
	{1234567, "1.234567", "1234.567"},
	{1500000, "1.5", "1500"},
	{2000000, "2", "2000"},
	{100000000, "100", "100000"},
	{1050, "0.00105", "1.05"},
	{-1, "-0.000001", "-0.001"},
	{-1500000, "-1.5", "-1500"},
	{INT64_MAX, "9223372036854.775807", "9223372036854775.807"},
	{INT64_MIN, "-9223372036854.775808", "-9223372036854775.808"},
};

static void json_times(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(times); i++) {
		json_ns_as_ms(json_start(), times[i].ns);
		expect_json(times[i].ms);
		json_ns_as_us(json_start(), times[i].ns);
		expect_json(times[i].us);
	}
}

static const struct {
	double value;
	unsigned int decimals;
	const char *json;
} decimals[] = {
	{0, 0, "0"},
	{0, 3, "0.000"},
	{1.5, 1, "1.5"},
	{1.25, 1, "1.2"},
	{2.5, 0, "2"},
	{-1.5, 3, "-1.500"},
	{-0.0, 2, "0.00"},
	{-0.001, 2, "0.00"},
	{-0.4, 0, "0"},
	{0.999, 2, "1.00"},
	{NAN, 2, "null"},
	{INFINITY, 2, "null"},
	{-INFINITY, 0, "null"},
	{1e15, 9, "1000000000000000.000000000"},
};

static void json_decimals(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(decimals); i++) {
		json_fixed(json_start(), decimals[i].value, decimals[i].decimals);
		expect_json(decimals[i].json);
	}
	json_fixed(json_start(), -DBL_MAX, 9);
	assert_int_equal(json_writer__finish(&writer), 0);
	fclose(writer.out);
	assert_int_equal(strlen(json_text), 1 + 309 + 1 + 9);
	free(json_text);
}

static void json_write_error_is_sticky(void **state)
{
	FILE *out = fopen("/dev/full", "we");
	struct json_writer w;

	(void)state;
	assert_non_null(out);
	json_writer__init(&w, out);
	json_begin_array(&w);
	for (int i = 0; i < 100000; i++)
		json_string(&w, "filling the buffer");
	json_end_array(&w);
	assert_int_equal(json_writer__finish(&w), -ENOSPC);
	fclose(out);
}

/* ---- parse ----------------------------------------------------------------------------------- */

static const struct {
	const char *text;
	uint64_t min, max;
	int err;
	uint64_t value;
} numbers[] = {
	{"0", 0, 10, 0, 0},
	{"10", 0, 10, 0, 10},
	{"007", 0, 10, 0, 7},
	{"18446744073709551615", 0, UINT64_MAX, 0, UINT64_MAX},
	{"18446744073709551616", 0, UINT64_MAX, -ERANGE, 0},
	{"99999999999999999999999", 0, UINT64_MAX, -ERANGE, 0},
	{"99999999999999999999999x", 0, UINT64_MAX, -EINVAL, 0},
	{"11", 0, 10, -ERANGE, 0},
	{"4", 5, 10, -ERANGE, 0},
	{"", 0, 10, -EINVAL, 0},
	{" 1", 0, 10, -EINVAL, 0},
	{"1 ", 0, 10, -EINVAL, 0},
	{"+1", 0, 10, -EINVAL, 0},
	{"-1", 0, 10, -EINVAL, 0},
	{"0x1", 0, 10, -EINVAL, 0},
	{"1e1", 0, 10, -EINVAL, 0},
	{"1\n", 0, 10, -EINVAL, 0},
};

static void parse_numbers(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(numbers); i++) {
		uint64_t value = 4711;

		assert_int_equal(parse_u64(numbers[i].text, numbers[i].min, numbers[i].max, &value),
				 numbers[i].err);
		assert_int_equal(value, numbers[i].err ? 4711 : numbers[i].value);
	}
}

static const struct {
	const char *text;
	int err;
	uint64_t ns;
} durations[] = {
	{"2", 0, UINT64_C(2000000000)},
	{"0.5", 0, 500000000},
	{".5", 0, 500000000},
	{"1.000000001", 0, 1000000001},
	{"1.0000000019", 0, 1000000001},
	{"0.000000001", 0, 1},
	{"18446744073.709551615", 0, UINT64_MAX},
	{"18446744073.709551616", -ERANGE, 0},
	{"18446744074", -ERANGE, 0},
	{"99999999999999999999999", -ERANGE, 0},
	{"0", -ERANGE, 0},
	{"0.0", -ERANGE, 0},
	{"0.0000000001", -ERANGE, 0},
	{"", -EINVAL, 0},
	{".", -EINVAL, 0},
	{"2.", -EINVAL, 0},
	{"1.5s", -EINVAL, 0},
	{"-1", -EINVAL, 0},
	{"1,5", -EINVAL, 0},
	{"1e3", -EINVAL, 0},
	{"1.2.3", -EINVAL, 0},
	{"inf", -EINVAL, 0},
	{"nan", -EINVAL, 0},
};

static void parse_durations(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(durations); i++) {
		uint64_t ns = 4711;

		assert_int_equal(parse_seconds(durations[i].text, &ns), durations[i].err);
		assert_int_equal(ns, durations[i].err ? 4711 : durations[i].ns);
	}
}

static const struct {
	const char *text;
	int err;
	double share;
} shares[] = {
	{"0.5%", 0, 0.005},   {"0.005", 0, 0.005}, {"50%", 0, 0.5},
	{"100%", 0, 1},	      {"0", 0, 0},	   {"1", 0, 1},
	{".25", 0, 0.25},     {"0%", 0, 0},	   {"1.1", -ERANGE, 0},
	{"101%", -ERANGE, 0}, {"5", -ERANGE, 0},   {"", -EINVAL, 0},
	{"%", -EINVAL, 0},    {"-1%", -EINVAL, 0}, {"1%%", -EINVAL, 0},
	{"1 %", -EINVAL, 0},  {"nan", -EINVAL, 0}, {"0x1", -EINVAL, 0},
	{"1e-3", -EINVAL, 0}, {".", -EINVAL, 0},   {"99999999999999999999", -ERANGE, 0},
};

static void parse_shares(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(shares); i++) {
		double share = 4711;

		assert_int_equal(parse_share(shares[i].text, &share), shares[i].err);
		assert_true(share == (shares[i].err ? 4711 : shares[i].share));
	}
}

struct list_case {
	const char *text;
	int err;
	size_t count;
	uint32_t values[8];
};

static const struct list_case lists[] = {
	{"12", 0, 1, {12}},
	{"12,34,56", 0, 3, {12, 34, 56}},
	{"5,5,1", 0, 3, {5, 5, 1}},
	{"", -EINVAL, 0, {}},
	{",", -EINVAL, 0, {}},
	{"1,", -EINVAL, 0, {}},
	{",1", -EINVAL, 0, {}},
	{"1,,2", -EINVAL, 0, {}},
	{"1 2", -EINVAL, 0, {}},
	{"1-2", -EINVAL, 0, {}},
	{"0", -ERANGE, 0, {}},
	{"1,101", -ERANGE, 0, {}},
	{"4294967296", -ERANGE, 0, {}},
};

static const struct list_case cpu_lists[] = {
	{"0", 0, 1, {0}},
	{"0,2-4", 0, 4, {0, 2, 3, 4}},
	{"4,2-4,0,3", 0, 4, {0, 2, 3, 4}},
	{"2-5,1-3,9", 0, 6, {1, 2, 3, 4, 5, 9}},
	{"7-7", 0, 1, {7}},
	{"4-2", -EINVAL, 0, {}},
	{"1-", -EINVAL, 0, {}},
	{"-1", -EINVAL, 0, {}},
	{"1-2-3", -EINVAL, 0, {}},
	{"", -EINVAL, 0, {}},
	{"0,", -EINVAL, 0, {}},
	{"0-101", -ERANGE, 0, {}},
	{"0-4294967295", -ERANGE, 0, {}},
};

static void check_list(const struct list_case *c, int err, uint32_t *values, size_t count)
{
	assert_int_equal(err, c->err);
	if (err) {
		assert_null(values);
		return;
	}
	assert_int_equal(count, c->count);
	assert_memory_equal(values, c->values, count * sizeof(*values));
	free(values);
}

static void parse_lists(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(lists); i++) {
		uint32_t *values = NULL;
		size_t count = 0;
		int err = parse_u32_list(lists[i].text, 1, 100, &values, &count);

		check_list(&lists[i], err, values, count);
	}
	for (size_t i = 0; i < COUNT(cpu_lists); i++) {
		uint32_t *values = NULL;
		size_t count = 0;
		int err = parse_cpu_list(cpu_lists[i].text, 100, &values, &count);

		check_list(&cpu_lists[i], err, values, count);
	}
}

static void parse_cpu_list_up_to_the_last_number(void **state)
{
	uint32_t *values;
	size_t count;

	(void)state;
	assert_int_equal(
		parse_cpu_list("4294967294-4294967295,4294967295", UINT32_MAX, &values, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(values[1], UINT32_MAX);
	free(values);
}

static const struct {
	const char *text;
	int err;
	uint64_t value;
	size_t taken;
} hexes[] = {
	{"0", 0, 0, 1},
	{"7f00deadBEEF-x", 0, 0x7f00deadbeef, 12},
	{"ffffffffffffffff", 0, UINT64_MAX, 16},
	{"00000000000000001", -ERANGE, 0, 0},
	{"", -EINVAL, 0, 0},
	{"g", -EINVAL, 0, 0},
	{"0x1", 0, 0, 1},
	{" 1", -EINVAL, 0, 0},
};

static void parse_hexadecimal(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(hexes); i++) {
		const char *cursor = hexes[i].text;
		uint64_t value = 4711;

		assert_int_equal(parse_hex(&cursor, &value), hexes[i].err);
		assert_int_equal(value, hexes[i].err ? 4711 : hexes[i].value);
		assert_int_equal(cursor - hexes[i].text, hexes[i].taken);
	}
}

static void hexadecimal_bytes(void **state)
{
	static const char *const bad[] = {"", "0", "0g", "g0", "001122334455", "-1", " 1", "0x"};
	uint8_t bytes[5];
	char text[11];

	(void)state;
	assert_int_equal(parse_hex_bytes("00fFA512ef", bytes, sizeof(bytes)), 5);
	assert_memory_equal(bytes, "\x00\xff\xa5\x12\xef", 5);
	assert_ptr_equal(put_hex_bytes(text, bytes, 5), text + 10);
	assert_string_equal(text, "00ffa512ef");
	put_hex_bytes(text, bytes, 0);
	assert_string_equal(text, "");
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(parse_hex_bytes(bad[i], bytes, sizeof(bytes)), 0);
}

/* Spans of time relative to 2026-11-27 00:00:00 UTC. */
static void parse_spans(void **state)
{
	const uint64_t second = 1000000000u, now = 1795737600 * second, hour = 3600 * second;
	const struct {
		const char *text;
		uint64_t from, until;
	} good[] = {
		{"-1h", now - hour, now},
		{"-90 minutes", now - 3 * hour / 2, now},
		{"1 day ago+1h", now - 24 * hour, now - 23 * hour},
		{"2 weeks ago+1 day", now - 14 * 24 * hour, now - 13 * 24 * hour},
		{"30s ago+10s", now - 30 * second, now - 20 * second},
		{"2026-11-26T10:00:30Z+30m", now - 14 * hour + 30 * second,
		 now - 27 * hour / 2 + 30 * second},
		{"2026-11-26 10:00Z+1h", now - 14 * hour, now - 13 * hour},
		{"2026-11-26Z+1d", now - 24 * hour, now},
		{"2026-11-26+1d", now - 24 * hour, now}, /* TZ is UTC */
	};
	const char *const bad[] = {
		"",
		"-",
		"+",
		"1h",
		"-1",
		"-0h",
		"-1x",
		"-1hh",
		"ago+1h",
		"1 ago+1h",
		"1 day ago",
		"1 day ago+",
		"yesterday+1h",
		"2026+1h",
		"-99999999999999999999h",
		"1000000 weeks ago+1h",
		"-1000000w",
		"2026-11-26T10:00:00X+1h",
		"-1hour ",
		"1 day ago+1h+1h",
		"1970-01-01Z+1h",
		"-1 h ago",
		"2026-11-26 10:00:00.000000000000000000000000000000000000000000000Z+1h"};
	struct time_span span;

	(void)state;
	setenv("TZ", "UTC", 1);
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		if (parse_time_span(good[i].text, now, &span))
			fail_msg("%s", good[i].text);
		assert_int_equal(span.from, good[i].from);
		assert_int_equal(span.until, good[i].until);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (!parse_time_span(bad[i], now, &span))
			fail_msg("'%s' is taken", bad[i]);
	assert_int_equal(parse_time_span("-1h", hour / 2, &span), -EINVAL);
}

/* What the writer writes comes back, of any size; anything else is refused. */
static void base64_both_ways(void **state)
{
	static const char *const bad[] = {
		"A", "AAA", "AAAAA", "A===", "====", "AA=A", "AA-A", "A A="};
	uint8_t data[100], *bytes;
	size_t count;

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 151 + 7);
	for (size_t size = 0; size <= sizeof(data); size++) {
		char *text = NULL;
		size_t length = 0;
		FILE *out = open_memstream(&text, &length), *base64 = base64_writer(out);

		assert_int_equal(fwrite(data, 1, size, base64), size);
		fclose(base64);
		fclose(out);
		assert_int_equal(base64_decode(text, length, &bytes, &count), 0);
		assert_int_equal(count, size);
		assert_memory_equal(bytes, data, size);
		free(bytes);
		free(text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (base64_decode(bad[i], strlen(bad[i]), &bytes, &count) != -EBADMSG)
			fail_msg("'%s' is taken", bad[i]);
}

static void library_names(void **state)
{
	static const char *const libraries[] = {
		"libc.so", "/lib/libc.so.6", "/opt/my.software/x.solver.so",
		"/lib/ld-2.31.so (deleted)", "_ssl.cpython-312-x86_64-linux-gnu.so"};
	static const char *const others[] = {
		"", "/", "so", "/bin/my.solver", "/opt/lib.so/prog", "/lib.so.1/", "[vdso]"};

	(void)state;
	for (size_t i = 0; i < COUNT(libraries); i++)
		if (!is_library_path(libraries[i]))
			fail_msg("'%s' is none", libraries[i]);
	for (size_t i = 0; i < COUNT(others); i++)
		if (is_library_path(others[i]))
			fail_msg("'%s' is one", others[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(base64_both_ways),
		cmocka_unit_test(utf8_sequences),
		cmocka_unit_test(utf8_sanitizes),
		cmocka_unit_test(json_strings),
		cmocka_unit_test(json_nesting),
		cmocka_unit_test(json_integers),
		cmocka_unit_test(json_times),
		cmocka_unit_test(json_decimals),
		cmocka_unit_test(json_write_error_is_sticky),
		cmocka_unit_test(parse_numbers),
		cmocka_unit_test(parse_durations),
		cmocka_unit_test(parse_shares),
		cmocka_unit_test(parse_lists),
		cmocka_unit_test(parse_cpu_list_up_to_the_last_number),
		cmocka_unit_test(parse_hexadecimal),
		cmocka_unit_test(hexadecimal_bytes),
		cmocka_unit_test(parse_spans),
		cmocka_unit_test(library_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
