/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiles of other programs as they are read: testdata/import.txt. Here: what is compressed, too deep or too large
 * for a table, and what we write, read back.
 */
#include "import_support.h"

#include <zlib.h>

#include "base/cleanup.h"
#include "base/gzip.h"
#include "formats/in/frames.h"
#include "formats/in/json.h"
#include "profile/timeline.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* ---- the table ------------------------------------------------------------------------------- */

static struct imported current;

static void forget_profile(void)
{
	import_done(&current);
	current = (struct imported){};
}

/* Texts that inputs use as $NAME(first|second), with $1 and $2 in them. They stay from case to case. */
static struct {
	char name[16], text[1024];
} definitions[32];

static void expand(FILE *out, const char *text, char *const *arguments);

static void define(FILE *out, char *input)
{
	size_t i = 0;

	while (*definitions[i].name)
		assert_true(++i < COUNT(definitions) - 1);
	snprintf(definitions[i].name, sizeof(definitions->name), "%s", strsep(&input, "="));
	snprintf(definitions[i].text, sizeof(definitions->text), "%s", input);
}

/* Of the bracket at the begin. */
static size_t closing(const char *text)
{
	size_t at = 0;

	for (int depth = 0; text[at]; at++) {
		depth += (text[at] == '(') - (text[at] == ')');
		if (!depth)
			return at;
	}
	fail_msg("no bracket closes %s", text);
	return at;
}

/* At "NAME" or "NAME(…)"; returns what is behind it. */
static const char *expand_name(FILE *out, const char *at, char *const *outer)
{
	size_t size = strspn(at, "abcdefghijklmnopqrstuvwxyz"), i = 0;
	char *arguments[4] = {"", "", "", ""}, *inner = NULL, *rest;
	size_t inner_size;

	while (*definitions[i].name &&
	       (strlen(definitions[i].name) != size || memcmp(definitions[i].name, at, size)))
		i++;
	if (!*definitions[i].name) {
		fputc('$', out);
		return at;
	}
	at += size;
	if (*at == '(') {
		FILE *text = open_memstream(&inner, &inner_size);
		char *given = strndup(at + 1, closing(at) - 1);

		expand(text, given, outer);
		free(given);
		fclose(text);
		at += closing(at) + 1;
		rest = inner;
		for (size_t n = 0; rest && n < COUNT(arguments); n++)
			arguments[n] = strsep(&rest, "|");
	}
	expand(out, definitions[i].text, arguments);
	free(inner);
	return at;
}

static void expand(FILE *out, const char *text, char *const *arguments)
{
	while (*text) {
		if (*text != '$')
			fputc(*text++, out);
		else if (arguments && text[1] >= '1' && text[1] <= '4')
			fputs(arguments[text[1] - '1'], out), text += 2;
		else
			text = expand_name(out, text + 1, arguments);
	}
}

static char *expanded(const char *input, size_t *size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	if (strlen(input) < text_size) /* bytes */
		fwrite(input, 1, text_size, out);
	else
		expand(out, input, NULL);
	fclose(out);
	return text;
}

/* JSON that ends too early is refused, or the profile says so, wherever it ends. */
static void assert_every_cut_shows(const char *text, size_t size)
{
	for (size_t cut = 0; cut < size; cut++) {
		struct imported i = import_bytes(text, cut);

		if (!i.err && !profile__meta(i.p, META_NOT_READ))
			fail_msg("the first %zu bytes were taken", cut);
		assert_true(!i.err || *i.failure.what);
		import_done(&i);
	}
}

static void import_input(FILE *out, char *input)
{
	size_t size;
	_cleanup_free_ char *text = expanded(input, &size);

	forget_profile();
	current = import_bytes(text, size);
	if (current.err)
		put_failure(out, &current, text, size);
	else
		put_profile(out, current.p);
	if (!current.err && *text == '{')
		assert_every_cut_shows(text, size);
}

/* A file that a tracer that was killed left. */
static void import_input_without_its_end(FILE *out, char *input)
{
	static const char *const ends[] = {"]", " ] \n", "", ",\n", ",\n]\n"};
	char *whole = NULL, *part = NULL;
	size_t size, text_length;
	_cleanup_free_ char *text = expanded(input, &text_length);

	for (size_t i = 0; i < COUNT(ends); i++) {
		char *longer = malloc(text_length + 8);
		FILE *dump = open_memstream(&part, &size);

		forget_profile();
		sprintf(longer, "%s%s", text, ends[i]);
		current = import_good(longer);
		put_profile(dump, current.p);
		fclose(dump);
		free(longer);
		if (whole)
			assert_string_equal(part, whole);
		free(whole);
		whole = part;
	}
	fputs(whole, out);
	free(whole);
	forget_profile();
	current = import_bytes(text, text_length - 1);
	put_profile(out, current.p);
}

/* The profile of the case as folded stacks, with lines. */
static void fold_profile(FILE *out, char *input)
{
	char *text = export_text(&folded_exporter, current.p,
				 &(struct export_request){.lines = !strcmp(input, "with lines")});

	fputs(text, out);
	free(text);
}

/* What a report of it says of its samples and CPU time. */
static void show_header(FILE *out, char *input)
{
	char *text = export_text(&text_exporter, current.p, NULL), *rest = text;

	for (char *line; (line = strsep(&rest, "\n"));)
		if (!strncmp(line, "# samples ", 10) || !strncmp(line, "# CPU ", 6))
			fprintf(out, "%s\n", line);
	free(text);
}

/* The entries of a thread's timeline: CPU time since the one before. */
static void show_timeline(FILE *out, char *input)
{
	static const char *const kinds[] = {[TIMELINE_START] = "start",
					    [TIMELINE_SAMPLE] = "sample",
					    [TIMELINE_IDLE_BEGIN] = "idle begins",
					    [TIMELINE_IDLE_END] = "idle ends",
					    [TIMELINE_END] = "end"};
	const struct profile_thread *thread = &current.p->threads[atoi(input)];
	struct timeline timeline;
	struct timeline_entry entry;
	size_t samples = 0;

	timeline__init(&timeline, current.p, thread);
	while (timeline__next(&timeline, &entry)) {
		fprintf(out, "%s +%llu%s", kinds[entry.kind], (unsigned long long)entry.cpu_delta,
			entry.idle_after ? ", then idle" : "");
		if (entry.kind == TIMELINE_SAMPLE)
			fprintf(out, ", %zu idle samples before",
				timeline_idle_before(current.p, thread, samples++).count);
		fputc('\n', out);
	}
}

/* Where the first function is, as it is written again. */
static void export_place(FILE *out, char *input)
{
	const cJSON *frame;
	size_t size;
	char *text = expanded(input, &size);
	_cleanup_cjson_ cJSON *json;

	forget_profile();
	current = import_good(text);
	free(text);
	json = export_json(&cpuprofile_exporter, current.p, NULL);
	frame = get(cJSON_GetArrayItem(get(json, "nodes"), 1), "callFrame");
	fprintf(out, "%s %s:%.0f:%.0f", string(frame, "functionName"), string(frame, "url"),
		number(frame, "lineNumber"), number(frame, "columnNumber"));
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct json_text text_of(const char *s, struct import_failure *failure)
{
	return (struct json_text){s, s + strlen(s), failure};
}

/* A number, and how many decimals move to the left. */
static void scale_number(FILE *out, char *input)
{
	struct import_failure failure;
	char *end = strchrnul(input, ' ');
	int scale = atoi(end);
	struct json_text text = {input, end, &failure};
	struct json_number number;
	int64_t value = 0;
	int err = json_parse_number(&text, (struct json_value){text.start, text.end}, &number)
			  ?: json_scaled(&number, scale, &value);

	err ? text_put_error(out, err) : (void)fprintf(out, "%lld", (long long)value);
}

/* The members of an object, or the strings of an array. */
static void walk_json(FILE *out, char *input)
{
	static const char *const types[] = {[JSON_ARRAY] = "array",
					    [JSON_OBJECT] = "object",
					    [JSON_NUMBER] = "number",
					    [JSON_LITERAL] = "literal",
					    [JSON_STRING] = "string"};
	struct import_failure failure;
	struct json_text text = text_of(input, &failure);
	bool object = input[strspn(input, " ")] == '{';
	struct json_walk walk;
	char *copy;

	assert_int_equal(
		json_walk__init(&walk, &text, text.start, object ? JSON_ARRAY : JSON_OBJECT),
		-EBADMSG);
	assert_int_equal(
		json_walk__init(&walk, &text, text.start, object ? JSON_OBJECT : JSON_ARRAY), 0);
	while (json_walk__next(&walk) == 1) {
		if (object) {
			for (const char *key = "abcde"; *key; key++)
				if (json_walk__key_is(&walk, (char[]){*key, '\0'}))
					fputc(*key, out);
			fprintf(out, " is %s\n", types[json_type(walk.value)]);
		} else if (!json_string_copy(&text, walk.value, &copy)) {
			fprintf(out, "%s\n", copy);
			free(copy);
		} else {
			fputs("malformed\n", out);
		}
	}
	assert_int_equal(json_expect_end(&text, walk.at), 0);
}

TEST(json_nested_too_deep_is_refused)
{
	_cleanup_imported_ struct imported i;
	_cleanup_free_ char *text = malloc(200001);

	memset(text, '[', 100000);
	memset(text + 100000, ']', 100000);
	text[200000] = '\0';
	memcpy(text, "{\"nodes\":", 9);
	i = import_text(text);
	assert_int_equal(i.err, -E2BIG);
	assert_non_null(strstr(i.failure.what, "nested deeper"));
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

TEST(the_first_field_of_folded_stacks_is_what_the_user_says)
{
	/* processes, threads of them, and frames of the stacks */
	static const struct {
		size_t processes, threads;
		uint32_t depth;
	} expected[] = {[IMPORT_ROOT_AUTO] = {1, 2, 2},
			[IMPORT_ROOT_THREAD] = {1, 2, 2},
			[IMPORT_ROOT_PROCESS] = {3, 2, 2}, /* with that of the file */
			[IMPORT_ROOT_FRAME] = {1, 1, 3}};

	for (unsigned int root = IMPORT_ROOT_AUTO; root <= IMPORT_ROOT_FRAME; root++) {
		_cleanup_imported_ struct imported i = {};

		root_of_files = (enum import_root)root;
		i = import_good("a;b;c 3\nd;b;c 1\n");
		root_of_files = IMPORT_ROOT_AUTO;
		assert_int_equal(i.p->process_count - 1, expected[root].processes);
		assert_int_equal(i.p->thread_count - 1, expected[root].threads);
		assert_int_equal(i.p->stacks[i.p->threads[1].samples[SAMPLE_CPU].stack[0].v].depth,
				 expected[root].depth);
	}
}

TEST(gzip_is_unpacked_once_and_checked)
{
	static const char text[] = "a;b 3\n";
	struct packed once = pack(text, strlen(text)), twice = pack(once.data, once.size);
	char padded[512] = {}, members[1024];
	struct imported i = import_bytes(once.data, once.size);

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

static bool says_that_it_is_cut(const struct imported *i)
{
	const char *rest = i->err ? NULL : profile__meta(i->p, META_NOT_READ);

	return rest && strstr(rest, "ends of gzip data, which are cut off: 1");
}

/* Whole lines count: the last number may have more digits. */
TEST(folded_stacks_are_read_up_to_the_cut_of_gzip_data)
{
	char text[8192];
	size_t used = 0;
	struct packed packed;

	for (uint32_t i = 1; i < 300; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "main;f%x 12\n",
					 i * 2654435761u);
	packed = pack(text, used);
	for (size_t size = 3; size < packed.size; size += 5) {
		struct imported i = import_bytes(packed.data, size);
		uint64_t offset, lines = 0;
		uint8_t *out = NULL;

		assert_int_equal(
			gunzip_bytes((uint8_t *)packed.data, size, used, &out, &used, &offset),
			-ENODATA);
		for (size_t k = 0; k < used; k++)
			lines += out[k] == '\n';
		free(out);
		if (i.err)
			assert_non_null(strstr(i.failure.what, "its gzip data are cut off"));
		else
			assert_true(says_that_it_is_cut(&i));
		assert_int_equal(i.err ? 0 : i.p->sample_count, 12 * lines);
		import_done(&i);
		used = sizeof(text);
	}
	free(packed.data);
}

/* Without the trailer alone. */
TEST(formats_are_read_up_to_the_cut_of_gzip_data_or_refused)
{
	static const struct {
		const char *text;
		size_t size;
		bool is_read;
	} files[] = {
#define CUT(text, is_read) {text, sizeof(text) - 1, is_read}
		CUT("a;b 3\n", true),
		CUT("a 1 1.000000: 250000 cpu-clock:\n\t401000 main (/bin/a)\n\n", true),
		CUT("[{\"ph\":\"P\",\"name\":\"Profile\",\"pid\":1,\"tid\":1,\"ts\":1,\"id\":1,"
		    "\"args\":{\"data\":{\"startTime\":1}}},{\"ph\":\"P\",\"name\":\"ProfileChunk\","
		    "\"pid\":1,\"tid\":1,\"ts\":1,\"id\":1,\"args\":{\"data\":{\"cpuProfile\":{"
		    "\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"a\"}}],\"samples\":[1]},"
		    "\"timeDeltas\":[5]}}}]",
		    true),
		CUT("{\"nodes\":[],\"samples\":[]}", false),
		CUT("{\"meta\":{},\"threads\":[]}", false),
		CUT("{\"$schema\":\"\",\"profiles\":[]}", false),
		CUT("\x0a\x04\x08\x01\x10\x02\x32\x00\x32\x01"
		    "a\x32\x01"
		    "b",
		    false),
		/* up to its strings a pprof file has no zero, and samples may have the bytes of a frame */
		CUT("\x0a\x04\x08\x01\x10\x02\x12\x0b\x0a\x05\x0a\x0a\x09\x35\x20\x12\x02\x01\x02"
		    "\x12\x08\x0a\x02\x01\x02\x12\x02\x01\x02",
		    false),
#undef CUT
	};

	for (size_t n = 0; n < COUNT(files); n++) {
		struct packed packed = pack(files[n].text, files[n].size);
		struct imported i = import_bytes(packed.data, packed.size - 8);

		assert_int_equal(says_that_it_is_cut(&i), files[n].is_read);
		if (i.err) {
			assert_int_equal(i.failure.offset, packed.size - 8);
			assert_non_null(strstr(i.failure.what,
					       "its gzip data are cut off, and what is missing"));
		}
		import_done(&i);
		free(packed.data);
	}
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
TEST(data_that_unpack_beyond_the_limit_are_refused)
{
	size_t size = 200 << 20;
	_cleanup_free_ char *zeros = calloc(size, 1);
	struct packed packed = pack_hard(zeros, size);
	struct imported i = import_bytes(packed.data, packed.size);
	uint8_t *out = NULL;
	size_t out_size = 0;
	uint64_t offset = 0;

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
}

/* ---- too deep --------------------------------------------------------------------------------- */

TEST(folded_stacks_that_are_too_deep_or_have_a_nul_are_refused)
{
	size_t size = 400000;
	_cleanup_free_ char *deep = malloc(size + 8);
	_cleanup_imported_ struct imported i;

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
	assert_int_equal(i.p->stacks[i.p->threads[1].samples[SAMPLE_CPU].stack[0].v].depth, 100000);
}

static char *chain_of_nodes(unsigned int depth)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	fputs("{\"nodes\":[{\"id\":1,"
	      "\"callFrame\":{\"functionName\":\"(root)\"}"
	      ",\"children\":[2]}",
	      f);
	for (unsigned int n = 2; n <= depth + 1; n++)
		fprintf(f, ",{\"id\":%u,\"callFrame\":{\"functionName\":\"f\"},\"children\":[%u]}",
			n, n + 1);
	fprintf(f,
		",{\"id\":%u,\"callFrame\":{}}],\"startTime\":1,\"endTime\":9,\"samples\":[%u],"
		"\"timeDeltas\":[1]}",
		depth + 2, depth + 1);
	fclose(f);
	return text;
}

TEST(stacks_beyond_the_depth_limit_are_refused)
{
	_cleanup_free_ char *text = chain_of_nodes(100000);
	_cleanup_imported_ struct imported i = import_good(text);

	assert_int_equal(i.p->stacks[i.p->threads[1].samples[SAMPLE_CPU].stack[0].v].depth, 100000);
	import_done(&i);
	free(text);
	text = chain_of_nodes(200000);
	i = import_text(text);
	assert_int_equal(i.err, -E2BIG);
}

/* A trace of so many profiles of one thread, each from 1 to 100 µs. */
static struct imported import_overlapping(unsigned int count)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	struct imported i;

	fputs("{\"traceEvents\":[", f);
	for (unsigned int n = 0; n < count; n++) {
		const char *event = "%s{\"ph\":\"P\",\"pid\":1,\"tid\":1,\"id\":%u,\"ts\":1,";

		fprintf(f, event, n ? "," : "", n);
		fprintf(f, "\"name\":\"Profile\",\"args\":{\"data\":{\"startTime\":1}}}");
		fprintf(f, event, ",", n);
		fprintf(f,
			"\"name\":\"ProfileChunk\",\"args\":{\"data\":{\"cpuProfile\":{\"nodes\":"
			"[{\"id\":1,\"callFrame\":{}}],\"samples\":[1]},\"timeDeltas\":[99]}}}");
	}
	fputs("]}", f);
	fclose(f);
	i = import_text(text);
	free(text);
	return i;
}

TEST(a_thread_of_a_trace_has_a_bounded_number_of_profiles_at_a_time)
{
	struct imported i = import_overlapping(256);

	assert_int_equal(i.err, 0);
	assert_int_equal(i.p->thread_count, 257);
	import_done(&i);
	i = import_overlapping(257);
	assert_int_equal(i.err, -E2BIG);
	import_done(&i);
}

TEST(frames_of_all_stacks_are_bounded_while_they_are_read)
{
	struct profile_builder *b = profile_builder__new();
	_cleanup_(frames__fini) struct frames f = {.b = b, .stack_frames = IMPORT_FRAMES_MAX - 3};
	struct process_id process = profile_builder__process(b, &(struct profile_process){});
	struct thread_id thread = profile_builder__thread(b, process, 1, true,
							  (struct string_id){0}, 0);
	struct location_id location = frames__nowhere(&f, process);
	struct profile_sample sample = {.kind = SAMPLE_CPU};
	struct import_failure failure;

	for (int depth = 1; depth <= 2; depth++) {
		sample.stack = profile_builder__stack(b, sample.stack, location);
		for (int times = 0; times < 2; times++) /* a stack counts once */
			assert_int_equal(frames__sample(&f, thread, &sample, &failure, 0), 0);
	}
	sample.stack = profile_builder__stack(b, sample.stack, location);
	assert_int_equal(frames__sample(&f, thread, &sample, &failure, 7), -E2BIG);
	assert_int_equal(failure.offset, 7);
	profile_builder__free(b);
}

/* ---- ours, read back -------------------------------------------------------------------------- */

/* What a profile has of each kind of event and context, and what is left of it behind a format. */
static void read_back(FILE *out, char *input)
{
	static const struct {
		const char *name;
		const struct exporter *exporter;
	} formats[] = {{"firefox", &firefox_exporter},
		       {"cpuprofile", &cpuprofile_exporter},
		       {"pprof", &pprof_exporter}};
	const char *profile = strsep(&input, " ");
	_cleanup_fixture_ struct fixture f;
	size_t size, n = 0;
	_cleanup_free_ char *bytes;

	!strcmp(profile, "events") ? events_profile(&f) : interrupted_profile(&f);
	while (strcmp(formats[n].name, input))
		n++;
	bytes = export_bytes(formats[n].exporter, finish(&f), NULL, &size);
	forget_profile();
	current = import_bytes(bytes, size);
	assert_int_equal(current.err, 0);
	put_profile(out, current.p);
}

static bool __attribute__((noinline)) same_but_recording(const char *a, const char *b)
{
	const char *end = strstr(a, "\"recording\"");

	return end && !strncmp(a, b, (size_t)(end - a));
}

/* What is written again of what was read is the same, but for figures of the whole recording. */
TEST(nodes_and_samples_of_our_cpuprofile_survive_an_import)
{
	for (size_t n = 0; n < NAMED_PROFILES; n++) {
		_cleanup_fixture_ struct fixture f = {};
		const struct profile *p = build_profile(&f, named_profiles[n].name);
		char *text = export_text(&cpuprofile_exporter, p, NULL), *again;
		_cleanup_imported_ struct imported i = import_good(text);

		again = export_text(&cpuprofile_exporter, i.p, NULL);
		/* a relative source path is no URL: when it is read, its script is the binary */
		if (strcmp(named_profiles[n].name, "hostile") && !same_but_recording(text, again))
			fail_msg("%s:\n%.600s\n%.600s", named_profiles[n].name, text, again);
		free(text);
		free(again);
	}
}

/* The samples of all threads that have some, to the bit. */
static char *describe(const struct profile *p)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	put_definitions = true;
	for (size_t t = 1; t < p->thread_count; t++) {
		if (!p->threads[t].samples[SAMPLE_CPU].count)
			continue;
		fprintf(out, "%llu..%llu ", (unsigned long long)p->threads[t].start,
			(unsigned long long)p->threads[t].end);
		put_thread(out, p, &p->threads[t]);
	}
	fclose(out);
	put_definitions = false;
	return text;
}

static bool __attribute__((noinline)) same_text(const char *a, const char *b)
{
	return !strcmp(a, b);
}

static char *import_and_describe(const char *text, char **again)
{
	struct imported i = import_good(text);
	char *described = describe(i.p);

	*again = export_text(&firefox_exporter, i.p, NULL);
	import_done(&i);
	return described;
}

TEST(a_second_round_trip_changes_nothing)
{
	for (size_t n = 0; n < NAMED_PROFILES; n++) {
		_cleanup_fixture_ struct fixture f = {};
		const struct profile *p = build_profile(&f, named_profiles[n].name);
		char *text = export_text(&firefox_exporter, p, NULL), *again, *third, *once, *twice;

		if (p->visits.hz) { /* waits are not read, nor threads that only wait */
			free(import_and_describe(text, &again));
			free(text);
			text = again;
		}
		once = import_and_describe(text, &again);
		twice = import_and_describe(again, &third);
		if (!same_text(once, twice) || !same_text(again, third))
			fail_msg("%s:\n%s\n%s", named_profiles[n].name, once, twice);
		free(text);
		free(again);
		free(third);
		free(once);
		free(twice);
	}
}

struct sums {
	uint64_t ticks, weight;
};

/* Of all CPU samples whose leaf has this name. */
static struct sums self_of(const struct profile *p, const char *name)
{
	struct sums sums = {};

	for (size_t t = 1; t < p->thread_count; t++) {
		const struct profile_samples *s = &p->threads[t].samples[SAMPLE_CPU];

		for (size_t i = 0; i < s->count; i++) {
			const struct profile_location *l =
				&p->locations[p->stacks[s->stack[i].v].location.v];
			struct function_id function = p->lines[l->first_line].function;

			if (strcmp(profile__string(p, p->functions[function.v].name), name))
				continue;
			sums.ticks += profile_samples__ticks(s, i);
			sums.weight += s->weight[i];
		}
	}
	return sums;
}

TEST(samples_and_cpu_time_survive_a_round_trip)
{
	for (size_t n = 0; n < NAMED_PROFILES; n++) {
		_cleanup_fixture_ struct fixture f = {};
		const struct profile *p = build_profile(&f, named_profiles[n].name);
		char *text = export_text(&firefox_exporter, p, NULL);
		_cleanup_imported_ struct imported i = import_good(text);
		uint64_t written = 0, read = 0;

		free(text);
		assert_int_equal(i.p->sample_count, p->sample_count);
		assert_int_equal(i.p->start, p->start);
		assert_int_equal(i.p->start_realtime, p->start_realtime);
		/* names that are no UTF-8 are others in the file */
		for (size_t k = strcmp(named_profiles[n].name, "hostile") ? 1 : p->function_count;
		     k < p->function_count; k++) {
			const char *name = profile__string(p, p->functions[k].name);
			struct sums a = self_of(p, name), b = self_of(i.p, name);

			assert_int_equal(a.ticks, b.ticks);
			assert_int_equal(a.weight, b.weight);
		}
		for (size_t t = 1; t < p->thread_count; t++)
			written += p->threads[t].samples[SAMPLE_CPU].count
					   ? profile_thread__cpu(&p->threads[t])
					   : 0;
		for (size_t t = 1; t < i.p->thread_count; t++)
			read += i.p->threads[t].samples[SAMPLE_CPU].count
					? profile_thread__cpu(&i.p->threads[t])
					: 0;
		assert_int_equal(written, read);
	}
}

TEST(a_profile_is_read_back_with_the_same_stacks)
{
	_cleanup_fixture_ struct fixture f;
	const struct profile *p = build_profile(&f, "recursion");
	_cleanup_free_ char *text = export_text(&firefox_exporter, p, NULL), *again = NULL,
			    *read = NULL, *written = NULL;

	written = describe(p);
	read = import_and_describe(text, &again);
	if (!same_text(written, read))
		fail_msg("%s\n%s", written, read);
}

static const struct text_verb verbs[] = {
	{"define", define},
	{"import", import_input},
	{"trace", import_input_without_its_end},
	{"folded", fold_profile},
	{"header", show_header},
	{"timeline", show_timeline},
	{"place", export_place},
	{"number", scale_number},
	{"json", walk_json},
	{"read back", read_back},
	{},
};

TEXT_TABLE("import", verbs, NULL, forget_profile);
