/* SPDX-License-Identifier: BSD-2-Clause */
/* utf8, json_writer, parse, suffix, base64 and time_span: testdata/base_text.txt. */
#include "text_cases.h"

#include <float.h>
#include <math.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/parse.h"
#include "base/suffix.h"
#include "base/utf8.h"
#include "compare/time_span.h"

/* ---- utf8 ------------------------------------------------------------------------------------ */

static void show_sequence(FILE *out, char *input)
{
	fprintf(out, "%zu", utf8_sequence(input, text_size));
}

TEST(sequences_end_within_their_bytes)
{
	assert_int_equal(utf8_sequence("", 0), 0);
	assert_int_equal(utf8_sequence("\0", 1), 1);
	assert_int_equal(utf8_sequence("\xe2\x82\xac", 2), 0);
}

static void sanitize(FILE *out, char *input)
{
	const size_t size = strtoul(strsep(&input, " "), NULL, 10);
	char buffer[65];

	memset(buffer, '!', sizeof(buffer));
	assert_ptr_equal(utf8_sanitize(buffer, size, input), buffer);
	fputs(buffer, out);
	assert_int_equal(buffer[size], '!');
}

/* ---- json ------------------------------------------------------------------------------------ */

static struct json_writer writer;

static struct json_writer *json_start(FILE *out)
{
	json_writer__init(&writer, out);
	return &writer;
}

static void json_finish(void)
{
	assert_int_equal(json_writer__finish(&writer), 0);
}

static void write_string(FILE *out, char *input)
{
	json_string(json_start(out), input);
	json_finish();
}

static void write_times(FILE *out, char *input)
{
	const int64_t ns = strtoll(input, NULL, 10);

	json_ns_as_ms(json_start(out), ns);
	json_finish();
	fputs(" ms, ", out);
	json_ns_as_us(json_start(out), ns);
	json_finish();
	fputs(" us", out);
}

static void write_decimals(FILE *out, char *input)
{
	char *decimals;
	const double value = strtod(input, &decimals);

	json_fixed(json_start(out), value, (unsigned int)atoi(decimals));
	json_finish();
}

static void write_integers(FILE *out, char *input)
{
	struct json_writer *w = json_start(out);

	json_begin_array(w);
	json_int(w, 0);
	json_int(w, INT64_MAX);
	json_int(w, INT64_MIN);
	json_uint(w, UINT64_MAX);
	json_uint(w, 0);
	json_end_array(w);
	json_finish();
}

static void write_nested(FILE *out, char *input)
{
	struct json_writer *w = json_start(out);

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
	json_finish();
	fputc('\n', out);
	json_string(json_start(out), NULL);
	json_finish();
}

TEST(the_largest_number_has_all_its_digits)
{
	struct json_writer *w;
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	w = json_start(out);
	json_fixed(w, -DBL_MAX, 9);
	assert_int_equal(json_writer__finish(w), 0);
	fclose(out);
	assert_int_equal(size, 1 + 309 + 1 + 9);
}

TEST(an_error_of_writing_json_stays)
{
	FILE *out = fopen("/dev/full", "we");
	struct json_writer w;

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

/* A value, or the error, after which the value is as it was. */
static void put_u64(FILE *out, int err, uint64_t value)
{
	if (err)
		text_put_error(out, err);
	else
		fprintf(out, "%llu", (unsigned long long)value);
	assert_true(!err || value == 4711);
}

static void read_number(FILE *out, char *input)
{
	uint64_t value = 4711, min = strtoull(input, &input, 10);
	uint64_t max = strtoull(input + strlen(".."), &input, 10);
	int err = parse_u64(input + 1, min, max, &value);

	put_u64(out, err, value);
}

static void read_seconds(FILE *out, char *input)
{
	uint64_t ns = 4711;
	int err = parse_seconds(input, &ns);

	put_u64(out, err, ns);
}

static void read_size(FILE *out, char *input)
{
	uint64_t bytes = 4711;
	int err = parse_size(input, &bytes);

	put_u64(out, err, bytes);
}

static void read_share(FILE *out, char *input)
{
	char text[32];
	double share = 4711;
	int err = parse_share(input, &share);

	if (err)
		text_put_error(out, err);
	else
		snprintf(text, sizeof(text), "%.15g", share), fputs(text, out);
	assert_true(share == (err ? 4711 : strtod(text, NULL)));
}

static void put_list(FILE *out, int err, uint32_t *values, size_t count)
{
	if (err)
		text_put_error(out, err);
	assert_true(!err || !values);
	for (size_t i = 0; !err && i < count; i++)
		fprintf(out, "%s%u", i ? " " : "", values[i]);
	free(values);
}

static void read_list(FILE *out, char *input)
{
	uint32_t *values = NULL;
	size_t count = 0;
	int err = parse_u32_list(input, 1, 100, &values, &count);

	put_list(out, err, values, count);
}

/* The largest number of a CPU, and a list. */
static void read_cpus(FILE *out, char *input)
{
	const uint32_t limit = (uint32_t)strtoul(strsep(&input, ":"), NULL, 10);
	uint32_t *values = NULL;
	size_t count = 0;
	int err = parse_cpu_list(input, limit, &values, &count);

	put_list(out, err, values, count);
}

static void read_hex(FILE *out, char *input)
{
	const char *cursor = input;
	uint64_t value = 4711;
	int err = parse_hex(&cursor, &value);

	err ? text_put_error(out, err) : (void)fprintf(out, "%llx", (unsigned long long)value);
	fprintf(out, " +%td", cursor - input);
	assert_true(!err || value == 4711);
}

static void read_bytes(FILE *out, char *input)
{
	uint8_t bytes[5];
	char text[11] = "refused";
	size_t count = parse_hex_bytes(input, bytes, sizeof(bytes));

	if (count)
		assert_ptr_equal(put_hex_bytes(text, bytes, count), text + 2 * count);
	fputs(text, out);
	put_hex_bytes(text, bytes, 0);
	assert_string_equal(text, "");
}

/* Before 2026-11-27 00:00:00 UTC, in seconds. */
static void read_span(FILE *out, char *input)
{
	const uint64_t second = 1000000000u, now = 1795737600 * second;
	struct time_span span;
	int err = setenv("TZ", "UTC", 1) ?: parse_time_span(input, now, &span);

	if (err)
		text_put_error(out, err);
	else
		fprintf(out, "%lld..%lld", (long long)((now - span.from) / second),
			(long long)((now - span.until) / second));
}

TEST(a_span_begins_after_the_epoch)
{
	struct time_span span;

	assert_int_equal(parse_time_span("-1h", UINT64_C(1800000000000), &span), -EINVAL);
}

/* ---- base64, suffix -------------------------------------------------------------------------- */

static void read_base64(FILE *out, char *input)
{
	uint8_t *bytes;
	size_t count;

	text_put_error(out, base64_decode(input, strlen(input), &bytes, &count));
}

TEST(base64_that_is_written_is_read_back_at_any_size)
{
	uint8_t data[100], *bytes;
	size_t count;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 151 + 7);
	for (size_t size = 0; size <= sizeof(data); size++) {
		_cleanup_free_ char *text = NULL;
		size_t length = 0;
		FILE *out = open_memstream(&text, &length), *base64 = base64_writer(out);

		assert_int_equal(fwrite(data, 1, size, base64), size);
		fclose(base64);
		fclose(out);
		assert_int_equal(base64_decode(text, length, &bytes, &count), 0);
		assert_int_equal(count, size);
		assert_memory_equal(bytes, data, size);
		free(bytes);
	}
}

static void write_base64(FILE *out, char *input)
{
	FILE *base64 = base64_writer(out);

	fputs(input, base64);
	assert_int_equal(fclose(base64), 0);
}

static void is_library(FILE *out, char *input)
{
	fputs(is_library_path(input) ? "yes" : "no", out);
}

static const struct text_verb verbs[] = {{"sequence", show_sequence},  {"sanitize", sanitize},
					 {"string", write_string},     {"times", write_times},
					 {"decimals", write_decimals}, {"integers", write_integers},
					 {"nested", write_nested},     {"number", read_number},
					 {"seconds", read_seconds},    {"size", read_size},
					 {"share", read_share},	       {"list", read_list},
					 {"cpus", read_cpus},	       {"hex", read_hex},
					 {"bytes", read_bytes},	       {"span", read_span},
					 {"base64", read_base64},      {"to base64", write_base64},
					 {"library", is_library},      {}};

TEXT_TABLE("base_text", verbs, NULL, NULL);
