/* SPDX-License-Identifier: BSD-2-Clause */
/* Which file is of which format, gzip, JSON that is damaged or hostile, folded stacks. */
#include "import_support.h"

#include <zlib.h>

#include "base/gzip.h"
#include "formats/in/json.h"

/* ---- recognizing ----------------------------------------------------------------------------- */

static void foreign_files_are_refused_with_a_reason(void **state)
{
	static const struct refused cases[] = {
		{"", -EBADMSG, "the file is empty", NULL},
		{"hello\n", -EBADMSG, "neither a recording nor a profile", NULL},
		{"{\"a\": 1}", -EBADMSG, "neither a recording nor a profile", NULL},
		{"PERFILE2xxxxxxxx", -EPROTONOSUPPORT, "perf script", NULL},
		{"\177ELF\2\1\1", -EPROTONOSUPPORT, "an ELF file", NULL},
		{"<svg width=\"1\">", -EPROTONOSUPPORT, "a page or an image", NULL},
		{"{\"version\":\"0.0.1\",\"$schema\":\"https://www.speedscope.app/file-format-schema."
		 "json\"}",
		 -EPROTONOSUPPORT, "speedscope", NULL},
		{"{\"head\":{\"functionName\":\"(root)\"}}", -EPROTONOSUPPORT, "Chrome 57", NULL},
		{"{\"meta\":{\"version\":24},\"threads\":[]}", -EPROTONOSUPPORT,
		 "Gecko's own format", NULL},
		{"{\"traceEvents\":[]}", -EPROTONOSUPPORT, "without CPU profiles", NULL},
		{"[]", -EPROTONOSUPPORT, "without CPU profiles", NULL},
	};

	(void)state;
	check_refused(cases, COUNT(cases));
}

/* ---- gzip ------------------------------------------------------------------------------------ */

struct packed {
	char *data;
	size_t size;
};

static struct packed pack(const void *bytes, size_t size)
{
	struct packed packed = {};
	FILE *out = open_memstream(&packed.data, &packed.size);
	FILE *gz = gzip_writer(out, NULL);

	assert_int_equal(fwrite(bytes, 1, size, gz), size);
	assert_int_equal(fclose(gz), 0);
	assert_int_equal(fclose(out), 0);
	return packed;
}

static void gzip_is_unpacked_once_and_checked(void **state)
{
	static const char text[] = "a;b 3\n";
	struct packed once = pack(text, strlen(text)), twice = pack(once.data, once.size);
	char padded[512] = {}, members[1024];
	struct imported i = import_bytes(once.data, once.size);

	(void)state;
	assert_int_equal(i.err, 0);
	assert_int_equal(i.p->sample_count, 3);
	import_done(&i);

	memcpy(padded, once.data, once.size);
	i = import_bytes(padded, sizeof(padded));
	assert_int_equal(i.err, 0);
	import_done(&i);

	memcpy(members, once.data, once.size);
	memcpy(members + once.size, once.data, once.size);
	i = import_bytes(members, 2 * once.size);
	assert_int_equal(i.err, 0);
	assert_int_equal(i.p->sample_count, 6);
	import_done(&i);

	i = import_bytes(twice.data, twice.size);
	assert_int_equal(i.err, -EBADMSG);
	assert_non_null(strstr(i.failure.what, "twice"));
	import_done(&i);

	for (size_t size = 3; size < once.size; size++) {
		i = import_bytes(once.data, size);
		assert_int_equal(i.err, -EBADMSG);
		assert_non_null(strstr(i.failure.what, "cut off"));
		assert_int_equal(i.failure.offset, size);
		import_done(&i);
	}
	once.data[once.size - 6] ^= 1; /* the checksum */
	i = import_bytes(once.data, once.size);
	assert_int_equal(i.err, -EBADMSG);
	assert_non_null(strstr(i.failure.what, "gzip data are"));
	import_done(&i);
	memset(padded + once.size, 'x', 10);
	i = import_bytes(padded, sizeof(padded));
	assert_int_equal(i.err, -EBADMSG);
	import_done(&i);
	free(once.data);
	free(twice.data);
}

/* As small as deflate can make it, unlike what we write. */
static struct packed pack_hard(const void *bytes, size_t size)
{
	struct packed packed = {.size = size / 500};
	z_stream z = {.next_in = (void *)bytes, .avail_in = (uInt)size};

	packed.data = malloc(packed.size);
	assert_non_null(packed.data);
	z.next_out = (void *)packed.data;
	z.avail_out = (uInt)packed.size;
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	packed.size -= z.avail_out;
	deflateEnd(&z);
	return packed;
}

/* 200 MB of zeros in 200 kB, which may become 64 MiB and 250 times as much, but not that. */
static void data_that_unpack_beyond_the_limit_are_refused(void **state)
{
	size_t size = 200 << 20;
	char *zeros = calloc(size, 1);
	struct packed packed = pack_hard(zeros, size);
	struct imported i = import_bytes(packed.data, packed.size);
	uint8_t *out = NULL;
	size_t out_size = 0;
	uint64_t offset = 0;

	(void)state;
	assert_int_equal(i.err, -E2BIG);
	assert_non_null(strstr(i.failure.what, "unpack to more than"));
	import_done(&i);
	assert_int_equal(
		gunzip_bytes((uint8_t *)packed.data, packed.size, size, &out, &out_size, &offset),
		0);
	assert_int_equal(out_size, size);
	free(out);
	assert_int_equal(gunzip_bytes((uint8_t *)packed.data, packed.size, size - 1, &out,
				      &out_size, &offset),
			 -EFBIG);
	free(packed.data);
	free(zeros);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct json_text text_of(const char *s, struct import_failure *failure)
{
	return (struct json_text){s, s + strlen(s), failure};
}

static void json_numbers_are_scaled_and_rounded_or_refused(void **state)
{
	static const struct {
		const char *text;
		int scale;
		int64_t value;
		int err;
	} cases[] = {
		{"0", 0, 0, 0},
		{"-0", 0, 0, 0},
		{"12", 3, 12000, 0},
		{"1234.567891", 6, 1234567891, 0},
		{"-1.5", 6, -1500000, 0},
		{"0.0000004", 6, 0, 0},
		{"0.0000005", 6, 1, 0},
		{"1e3", 0, 1000, 0},
		{"1.5E+3", 0, 1500, 0},
		{"25e-1", 0, 3, 0},
		{"1e400", 0, 0, -ERANGE},
		{"1e-400", 0, 0, 0},
		{"0e999999999999", 0, 0, 0},
		{"123456789012345678901234567890e-20", 0, 1234567890, 0},
		{"4611686018427387904", 0, 1LL << 62, 0},
		{"4611686018427387905", 0, 0, -ERANGE},
		{"99999999999999999999", 0, 0, -ERANGE},
	};
	static const char *const bad[] = {"NaN", "Infinity", "-",     "1.", ".5",
					  "1e",	 "+1",	     "\"1\"", "1x"};
	struct import_failure failure;

	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++) {
		struct json_text text = text_of(cases[n].text, &failure);
		struct json_number number;
		int64_t value = 0;

		assert_int_equal(json_parse_number(&text, (struct json_value){text.start, text.end},
						   &number),
				 0);
		if (json_scaled(&number, cases[n].scale, &value) != cases[n].err ||
		    value != cases[n].value)
			fail_msg("%s is %lld", cases[n].text, (long long)value);
	}
	for (size_t n = 0; n < COUNT(bad); n++) {
		struct json_text text = text_of(bad[n], &failure);
		struct json_number number;

		assert_int_equal(json_parse_number(&text, (struct json_value){text.start, text.end},
						   &number),
				 -EBADMSG);
	}
}

static void a_walk_visits_each_key_of_an_object(void **state)
{
	struct import_failure failure;
	struct json_text text = text_of(
		" { \"a\" : [1, {\"b\": \"]}\\\"\\\\\"}], \"c\":{} ,\"d\":-1e5,\"e\":null} ",
		&failure);
	static const char *const keys[] = {"a", "c", "d", "e"};
	static const enum json_type types[] = {JSON_ARRAY, JSON_OBJECT, JSON_NUMBER, JSON_LITERAL};
	struct json_walk walk;
	size_t n = 0;

	(void)state;
	assert_int_equal(json_walk__init(&walk, &text, text.start, JSON_OBJECT), 0);
	for (; json_walk__next(&walk) == 1; n++) {
		assert_true(json_walk__key_is(&walk, keys[n]));
		assert_int_equal(json_type(walk.value), types[n]);
	}
	assert_int_equal(n, 4);
	assert_int_equal(json_expect_end(&text, walk.at), 0);
	assert_int_equal(json_walk__init(&walk, &text, text.start, JSON_ARRAY), -EBADMSG);
}

static void json_nested_too_deep_is_refused(void **state)
{
	struct imported i;
	char *text = malloc(200001);

	(void)state;
	memset(text, '[', 100000);
	memset(text + 100000, ']', 100000);
	text[200000] = '\0';
	memcpy(text, "{\"nodes\":", 9);
	i = import_text(text);
	assert_int_equal(i.err, -E2BIG);
	assert_non_null(strstr(i.failure.what, "nested deeper"));
	import_done(&i);
	free(text);
}

static void json_strings_are_unescaped_up_to_a_nul(void **state)
{
	struct import_failure failure;
	struct json_text text =
		text_of("[\"plain\",\"\\u00e9\\n\\ud83d\\ude00\",\"a\\u0000b\",\"\xff\",\"\\x\"]",
			&failure);
	static const char *const expected[] = {"plain", "\xc3\xa9\n\xf0\x9f\x98\x80", "a", "\xff"};
	struct json_walk walk;
	char *copy;

	(void)state;
	assert_int_equal(json_walk__init(&walk, &text, text.start, JSON_ARRAY), 0);
	for (size_t n = 0; n < COUNT(expected); n++) {
		assert_int_equal(json_walk__next(&walk), 1);
		assert_int_equal(json_string_copy(&text, walk.value, &copy), 0);
		assert_string_equal(copy, expected[n]);
		free(copy);
	}
	assert_int_equal(json_walk__next(&walk), 1);
	assert_int_equal(json_string_copy(&text, walk.value, &copy), -EBADMSG);
}

/* ---- folded stacks --------------------------------------------------------------------------- */

static void folded_stacks_are_imported_with_line_numbers(void **state)
{
	struct imported i = import_good("node;main;a.b:12;schedule_[k] 3\r\n"
					"\n"
					"node;main;jitted_[j] 4\n"
					"py 3;main;maybe_[?] 5.5\n"
					"node;main;a.b:13 1");
	const struct profile *p = i.p;
	char *again;

	(void)state;
	assert_true(p->untimed);
	assert_int_equal(p->period, 0);
	assert_int_equal(p->sample_count, 3 + 4 + 6 + 1);
	assert_int_equal(p->thread_count, 3);
	assert_string_equal(profile__string(p, p->threads[1].name), "node");
	assert_string_equal(profile__string(p, p->threads[2].name), "py 3");
	assert_int_equal(self_of(p, "schedule").ticks, 3);
	assert_int_equal(self_of(p, "jitted").ticks, 4);
	assert_int_equal(self_of(p, "maybe").ticks, 6);
	assert_int_equal(self_of(p, "a.b").ticks, 1);
	again = export_text(&folded_exporter, p, &(struct export_request){.lines = true});
	assert_string_equal(again, "node;main;a.b:12;schedule_[k] 3\n"
				   "node;main;a.b:13 1\n"
				   "node;main;jitted 4\n"
				   "py 3;main;maybe_[?] 6\n");
	free(again);
	import_done(&i);
}

/* Files without names of threads: something in them says so. */
static void folded_files_without_thread_names_are_recognized(void **state)
{
	static const struct {
		const char *text, *root, *thread;
	} cases[] = {
		{"main;a 1\nb 2\n", "main", "file.name"},
		{"<module> (app.py:3);f (app.py:1) 4\n", "<module> (app.py:3)", "file.name"},
		{"start_[k];f_[k] 4\n", "start", "file.name"},
		{"[main tid=17];java/lang/Thread.run_[j];f_[j] 4\n", "java/lang/Thread.run",
		 "main"},
		{"comm;f 4\n", "f", "comm"},
	};

	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++) {
		struct imported i = import_good(cases[n].text);
		const struct profile_samples *s = &i.p->threads[1].samples[SAMPLE_CPU];
		struct stack_id stack = s->stack[0];

		while (i.p->stacks[stack.v].parent.v)
			stack = i.p->stacks[stack.v].parent;
		assert_string_equal(leaf(i.p, stack), cases[n].root);
		assert_string_equal(profile__string(i.p, i.p->threads[1].name), cases[n].thread);
		assert_int_equal(i.p->threads[1].tid, n == 3 ? 17 : 0);
		import_done(&i);
	}
}

/* async-profiler names pool threads alike. */
static void threads_of_one_name_are_separated_by_tid(void **state)
{
	struct imported i =
		import_good("[pool tid=12];f 4\n[pool tid=13];f 3\n[pool tid=12];g 1\n");

	(void)state;
	assert_int_equal(i.p->thread_count, 3);
	assert_int_equal(i.p->threads[1].tid, 12);
	assert_int_equal(i.p->threads[1].samples[SAMPLE_CPU].tick_sum, 5);
	assert_int_equal(i.p->threads[2].tid, 13);
	assert_int_equal(i.p->threads[2].samples[SAMPLE_CPU].tick_sum, 3);
	import_done(&i);
}

static void malformed_and_too_deep_folded_stacks_are_refused(void **state)
{
	static const struct refused cases[] = {
		{"a;b 1\nno count\n", -EBADMSG, "line 2: no stack and count", "no count"},
		{"a;b 1\na;c -3\n", -EBADMSG, "line 2", "a;c"},
		{"a;b 1\na;c 99999999999999999999\n", -EBADMSG, "line 2", "a;c"},
		{"a;b 1\n 7\n", -EBADMSG, "line 2", " 7"},
	};
	size_t size = 400000;
	char *deep = malloc(size + 8);
	struct imported i;

	(void)state;
	check_refused(cases, COUNT(cases));
	for (size_t n = 0; n < size; n += 6)
		memcpy(deep + n, "a;b 1\n", 6);
	deep[6001] = '\0';
	i = import_bytes(deep, 12000);
	assert_int_equal(i.err, -EBADMSG);
	assert_int_equal(i.failure.offset, 6001);
	import_done(&i);

	for (size_t n = 0; n < size; n += 2)
		memcpy(deep + n, "a;", 2);
	memcpy(deep + size, "a 1", 4);
	i = import_text(deep);
	assert_int_equal(i.err, -E2BIG);
	import_done(&i);
	memcpy(deep + 200000, "a 1", 4); /* 100,000 frames are not too many */
	i = import_text(deep);
	assert_int_equal(i.err, 0);
	assert_int_equal(depth_of(i.p, i.p->threads[1].samples[SAMPLE_CPU].stack[0]), 100000);
	import_done(&i);
	free(deep);
}

/* A sample stands for as many events as its period says, also when it is read back. */
static void events_per_sample_survive_export_and_import(void **state)
{
	const struct exporter *const formats[] = {&firefox_exporter, &cpuprofile_exporter,
						  &pprof_exporter};

	(void)state;
	for (size_t k = 0; k < sizeof(formats) / sizeof(formats[0]); k++) {
		uint64_t few = 0, many = 0;
		const struct profile *p;
		struct fixture f;
		struct imported i;
		size_t size;
		char *bytes;

		events_profile(&f);
		bytes = export_bytes(formats[k], finish(&f), NULL, &size);
		i = import_bytes(bytes, size);
		assert_int_equal(i.err, 0);
		p = i.p;
		assert_string_equal(profile__event(p), "cycles");
		assert_string_equal(profile__event_unit(p), "count");
		assert_int_equal(p->sample_count, 6);
		assert_int_equal(p->event_count, 3 * 1000 + 3 * 10001);
		for (size_t j = 0; j < p->threads[1].samples[SAMPLE_CPU].count; j++) {
			const struct profile_samples *rows = &p->threads[1].samples[SAMPLE_CPU];
			const struct profile_location *l =
				&p->locations[p->stacks[rows->stack[j].v].location.v];
			const struct profile_function *leaf =
				&p->functions[p->lines[l->first_line].function.v];

			*(strcmp(profile__string(p, leaf->name), "few") ? &many : &few) +=
				profile_samples__events(rows, j);
		}
		assert_int_equal(few, 3 * 1000);
		assert_int_equal(many, 3 * 10001);
		import_done(&i);
		free(bytes);
		profile_builder__free(f.b);
	}
}

/* Formats that have the context of a sample. */
static void contexts_of_samples_are_read_back(void **state)
{
	const struct exporter *const formats[] = {&firefox_exporter, &pprof_exporter};

	(void)state;
	for (size_t k = 0; k < sizeof(formats) / sizeof(formats[0]); k++) {
		uint64_t ticks[CONTEXT_COUNT] = {};
		const struct profile_samples *rows;
		struct fixture f;
		struct imported i;
		size_t size;
		char *bytes;

		interrupted_profile(&f);
		bytes = export_bytes(formats[k], finish(&f), NULL, &size);
		i = import_bytes(bytes, size);
		assert_int_equal(i.err, 0);
		rows = &i.p->threads[1].samples[SAMPLE_CPU];
		for (size_t j = 0; j < rows->count; j++)
			ticks[profile_samples__context(rows, j)] += profile_samples__ticks(rows, j);
		assert_int_equal(ticks[CONTEXT_NONE], 2);
		assert_int_equal(ticks[CONTEXT_SOFTIRQ], 1);
		assert_int_equal(ticks[CONTEXT_HARDIRQ], 1);
		import_done(&i);
		free(bytes);
		profile_builder__free(f.b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_per_sample_survive_export_and_import),
		cmocka_unit_test(contexts_of_samples_are_read_back),
		cmocka_unit_test(foreign_files_are_refused_with_a_reason),
		cmocka_unit_test(gzip_is_unpacked_once_and_checked),
		cmocka_unit_test(data_that_unpack_beyond_the_limit_are_refused),
		cmocka_unit_test(json_numbers_are_scaled_and_rounded_or_refused),
		cmocka_unit_test(a_walk_visits_each_key_of_an_object),
		cmocka_unit_test(json_nested_too_deep_is_refused),
		cmocka_unit_test(json_strings_are_unescaped_up_to_a_nul),
		cmocka_unit_test(folded_stacks_are_imported_with_line_numbers),
		cmocka_unit_test(folded_files_without_thread_names_are_recognized),
		cmocka_unit_test(threads_of_one_name_are_separated_by_tid),
		cmocka_unit_test(malformed_and_too_deep_folded_stacks_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
