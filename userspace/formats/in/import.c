/* SPDX-License-Identifier: BSD-2-Clause */
/* Selects the reader of a file, and describes files that have none. */
#include "formats/in/import.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/minmax.h"
#include "base/utf8.h"
#include "base/wire.h"
#include "formats/in/json.h"

int import_fail(struct import_failure *failure, uint64_t offset, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(failure->what, sizeof(failure->what), format, args);
	va_end(args);
	failure->offset = offset;
	return error;
}

int import_fail_frames(struct import_failure *failure, uint64_t offset)
{
	return import_fail(failure, offset, -E2BIG, "its stacks have more than %llu frames in all",
			   IMPORT_FRAMES_MAX);
}

/* Text last: nearly anything can be folded stacks. */
static const struct importer *const importers[] = {
	&firefox_importer, &cpuprofile_importer, &trace_importer,
	&gecko_importer,   &speedscope_importer, &perf_script_importer,
	&pprof_importer,   &folded_importer,	 NULL,
};

/* A bare array of events is a trace too. */
static bool is_array(const uint8_t *bytes, size_t size)
{
	const struct json_text text = {(const char *)bytes, (const char *)bytes + size, NULL};
	const char *at = json_skip_spaces(&text, text.start);

	if (at == text.end || *at != '[')
		return false;
	at = json_skip_spaces(&text, at + 1);
	return at == text.end || *at == '{' || *at == ']';
}

/* The processed format has a version of its own beside Gecko's. */
static bool is_gecko(const struct json_text *text)
{
	struct json_value meta = {}, version = {}, processed = {};
	struct json_walk walk;
	int more = json_walk__init(&walk, text, text->start, JSON_OBJECT);

	while (!more && !meta.at && (more = json_walk__next(&walk)) > 0) {
		more = 0;
		if (json_walk__key_is(&walk, "meta"))
			meta = walk.value;
	}
	return json_type(meta) == JSON_OBJECT &&
	       !json_members(text, meta, {"version", &version},
			     {"preprocessedProfileVersion", &processed}) &&
	       version.at && !processed.at;
}

enum import_json import_json_kind(const uint8_t *bytes, size_t size)
{
	/* "head": nodes as Chrome wrote them before 57 */
	static const char *const keys[] = {"meta",	  "nodes",   "head",	 "timeDeltas",
					   "traceEvents", "$schema", "profiles", NULL};
	static const enum import_json kinds[] = {
		IMPORT_JSON_FIREFOX,	IMPORT_JSON_CPUPROFILE, IMPORT_JSON_CPUPROFILE,
		IMPORT_JSON_CPUPROFILE, IMPORT_JSON_TRACE,	IMPORT_JSON_SPEEDSCOPE,
		IMPORT_JSON_SPEEDSCOPE,
	};
	struct import_failure ignored;
	const struct json_text text = {(const char *)bytes, (const char *)bytes + size, &ignored};
	int key = json_first_key(bytes, size, keys);

	if (key == 0 && is_gecko(&text))
		return IMPORT_JSON_GECKO;
	if (key >= 0)
		return kinds[key];
	return is_array(bytes, size) ? IMPORT_JSON_TRACE : IMPORT_JSON_OTHER;
}

/* The type of an ELF file is ET_CORE. */
static bool is_core(const uint8_t *bytes, size_t size)
{
	return size > 17 &&
	       !memcmp(bytes,
		       "\x7f"
		       "ELF",
		       4) &&
	       (bytes[16] == 4 || bytes[17] == 4);
}

/* Words of 64 or 32 bits: 0, 3 (numbers of the header that follow), 0, the period in µs, 0. */
static bool is_gperftools(const uint8_t *bytes, size_t size)
{
	static const uint64_t header[] = {0, 3, 0};
	static const uint32_t short_header[] = {0, 3, 0};

	return (size >= 40 && !memcmp(bytes, header, sizeof(header))) ||
	       (size >= 20 && !memcmp(bytes, short_header, sizeof(short_header)));
}

/* Its first field is a message of messages: pprof's has only numbers. Empty lines look alike, but for their sizes. */
static bool is_otlp(const uint8_t *bytes, size_t size)
{
	struct wire w = wire_of(bytes, size);
	uint64_t outer, inner;
	const uint8_t *begin;

	if (size < 4 || *w.at++ != 0x0a || !wire_varint(&w, &outer) || w.at == w.end)
		return false;
	begin = w.at++;
	return (*begin == 0x0a || *begin == 0x12) && wire_varint(&w, &inner) &&
	       (uint64_t)(w.at - begin) <= outer && inner <= outer - (uint64_t)(w.at - begin);
}

/* Functions of Python and Java have names like <module>. */
static bool is_page(const uint8_t *bytes, size_t size)
{
	static const char *const begins[] = {"<!", "<?xml", "<html", "<svg"};

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (size >= strlen(begins[i]) && !memcmp(bytes, begins[i], strlen(begins[i])))
			return true;
	return false;
}

static bool is_heap_snapshot(const uint8_t *bytes, size_t size)
{
	return json_first_key(bytes, size, (const char *const[]){"snapshot", "nodes", NULL}) == 0;
}

static bool is_safari(const uint8_t *bytes, size_t size)
{
	return json_first_key(bytes, size,
			      (const char *const[]){"recording", "traceEvents", "nodes", NULL}) ==
	       0;
}

/*
 * Formats that are not read, and what to do with them. They come before the guesses of readers:
 * nearly any text has a line that ends in a number.
 */
static const struct {
	const char *magic;
	size_t size;
	bool (*is)(const uint8_t *bytes, size_t size); /* instead of a magic */
	const char *what;
} foreign[] = {
	{"PERFILE2", 8, NULL, "a perf.data file in a compressed one; unpack it"},
	{"FLR\0", 4, NULL,
	 "a Java Flight Recording; async-profiler's jfrconv makes folded stacks or pprof"},
	{"Nettrace", 8, NULL,
	 "a .nettrace file; `dotnet-trace convert --format Chromium` makes one that Chrome opens"},
	{NULL, 0, is_core, "a core dump, which has no samples"},
	{"\x7f"
	 "ELF",
	 4, NULL, "an ELF file"},
	{"PK\3\4", 4, NULL, "a zip archive; unpack it"},
	{"\xfd"
	 "7zXZ\0",
	 6, NULL, "packed by xz; unpack it"},
	{"\x28\xb5\x2f\xfd", 4, NULL, "packed by zstd; unpack it"},
	{"BZh", 3, NULL, "packed by bzip2; unpack it"},
	{NULL, 0, is_page, "a page or an image, from which nothing is read"},
	{"SQLite format 3", 15, NULL, "an SQLite database"},
	{"# callgrind format", 18, NULL, "a callgrind file; open it in KCachegrind"},
	{"version: ", 9, NULL, "a callgrind file; open it in KCachegrind"},
	{"creator: ", 9, NULL, "a callgrind file; open it in KCachegrind"},
	{"goroutine profile: ", 19, NULL,
	 "a list of goroutines, as Go's /debug/pprof has it as text; its /debug/pprof/profile is "
	 "a pprof file with CPU time"},
	{"heap profile: ", 14, NULL,
	 "a heap profile as text; without ?debug=1 Go's /debug/pprof makes a pprof file, and "
	 "its /debug/pprof/profile one with CPU time"},
	{NULL, 0, is_gperftools,
	 "a profile in gperftools' own format; `pprof -proto PROGRAM FILE` makes a pprof file"},
	{NULL, 0, is_otlp, "a message of OTLP, which is not read; give what its exporter read"},
	{NULL, 0, is_heap_snapshot,
	 "a heap snapshot; open it in the Memory panel of Chrome's DevTools"},
	{NULL, 0, is_safari, "a timeline of Safari; open it in its Web Inspector"},
	{"\x04\x08{", 3, NULL,
	 "a stackprof dump; `stackprof --collapsed` makes folded stacks of it"},
};

/* 0: it is none of these. */
static int refuse_foreign(const struct import_request *request, struct import_failure *failure)
{
	for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign); i++)
		if (foreign[i].is
			    ? foreign[i].is(request->bytes, request->size)
			    : request->size >= foreign[i].size &&
				      !memcmp(request->bytes, foreign[i].magic, foreign[i].size))
			return import_fail(failure, 0, -EPROTONOSUPPORT, "it is %s",
					   foreign[i].what);
	return 0;
}

static int refuse(const struct import_request *request, struct import_failure *failure)
{
	if (!request->size)
		return import_fail(failure, 0, -EBADMSG, "the file is empty");
	return import_fail(
		failure, 0, -EBADMSG,
		"it is neither a recording nor a profile of a format that is read here "
		"(.cpuprofile, Chrome trace, Firefox Profiler, speedscope, pprof, perf script, "
		"folded stacks, perf.data)");
}

static int read_unpacked(const struct import_request *request, struct import_failure *failure)
{
	int err = refuse_foreign(request, failure);

	if (err)
		return err;
	for (const struct importer *const *i = importers; *i; i++)
		if ((*i)->recognizes(request->bytes, request->size))
			return (*i)->read(request, failure);
	return refuse(request, failure);
}

/* The unit of UTF-16 number i; 0: there is none. */
static uint32_t utf16_unit(const struct import_request *r, size_t i, bool big)
{
	const uint8_t *at = r->bytes + 2 * i;

	if (i >= r->size / 2)
		return 0;
	return big ? (uint32_t)at[0] << 8 | at[1] : (uint32_t)at[1] << 8 | at[0];
}

/* Text in UTF-16, as PowerShell writes what a program prints; halves of characters are replaced. */
static int read_utf16(const struct import_request *request, struct import_failure *failure)
{
	size_t units = request->size / 2;
	_cleanup_free_ char *bytes = malloc(4 * units); /* utf8_put() needs as much */
	struct import_request text = *request;
	bool big = request->bytes[0] == 0xfe;

	if (!bytes)
		return -ENOMEM;
	text.bytes = (const uint8_t *)bytes;
	text.size = 0;
	for (size_t i = 1; i < units; i++) {
		uint32_t c = utf16_unit(request, i, big), low = utf16_unit(request, i + 1, big);

		if (c >> 10 == 0xd800 >> 10 && low >> 10 == 0xdc00 >> 10) {
			c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
			i++;
		} else if (c >> 11 == 0xd800 >> 11) {
			c = 0xfffd;
		}
		text.size += utf8_put(bytes + text.size, c);
	}
	return read_unpacked(&text, failure);
}

static int read_text(const struct import_request *request, struct import_failure *failure)
{
	struct import_request text = *request;

	if (request->size >= 4 &&
	    (!memcmp(request->bytes, "\xff\xfe", 2) || !memcmp(request->bytes, "\xfe\xff", 2)))
		return read_utf16(request, failure);
	if (request->size > 3 && !memcmp(request->bytes, "\xef\xbb\xbf", 3)) {
		text.bytes += 3; /* a byte order mark, of which UTF-8 has no need */
		text.size -= 3;
	}
	return read_unpacked(&text, failure);
}

static int read_packed(const struct import_request *request, struct import_failure *failure)
{
	uint64_t limit = min_u64(IMPORT_SIZE_MAX,
				 request->size * (uint64_t)IMPORT_RATIO_MAX + IMPORT_RATIO_FREE);
	struct import_request unpacked = *request;
	_cleanup_free_ uint8_t *bytes = NULL;
	uint64_t offset;
	int err = gunzip_bytes(request->bytes, request->size, limit, &bytes, &unpacked.size,
			       &offset);

	if (err == -EFBIG)
		return import_fail(
			failure, offset, -E2BIG,
			"its gzip data unpack to more than %llu MiB, which no profile of "
			"that size does",
			(unsigned long long)(limit >> 20));
	if (err == -EBADMSG)
		return import_fail(failure, offset, err, "its gzip data are %s",
				   offset == request->size ? "cut off" : "damaged");
	if (err)
		return err;
	unpacked.bytes = bytes;
	if (is_gzip(bytes, unpacked.size))
		return import_fail(failure, 0, -EBADMSG, "it was packed by gzip twice");
	return read_text(&unpacked, failure);
}

int import_event(const struct json_text *text, struct json_value object, struct profile_builder *b)
{
	struct profile *session = profile_builder__session(b);
	_cleanup_free_ char *event_name = NULL, *unit_name = NULL;
	struct json_value event, unit, known, tick;
	int64_t tick_cpu = 0;
	int err = json_members(text, object, {"event", &event}, {"eventUnit", &unit},
			       {"samplesKnown", &known}, {"tickCpuNs", &tick});

	if (!err && tick.at)
		err = json_integer(text, tick, "tickCpuNs", 0, INT64_MAX, &tick_cpu);
	session->uncounted = json_is(known, "false");
	session->tick_cpu = session->uncounted ? (uint64_t)tick_cpu : 0;
	if (err || json_type(event) != JSON_STRING || json_type(unit) != JSON_STRING)
		return err;
	err = json_string_copy(text, event, &event_name)
		      ?: json_string_copy(text, unit, &unit_name);
	if (err || !*event_name)
		return err;
	session->event = profile_builder__string(b, event_name);
	session->event_unit = profile_builder__string(b, *unit_name ? unit_name : "count");
	return 0;
}

static int read_any(const struct import_request *request, struct import_failure *failure)
{
	return is_gzip(request->bytes, request->size) ? read_packed(request, failure)
						      : read_text(request, failure);
}

/* Each stack that has samples is walked once by the readers of a profile. */
static int check_frames(struct profile_builder *b, struct import_failure *failure)
{
	size_t stacks = profile_builder__stack_count(b);
	_cleanup_free_ uint8_t *seen = calloc(stacks + 1, 1);
	uint64_t frames = 0;

	if (!seen)
		return -ENOMEM;
	for (uint32_t i = 1; i <= profile_builder__thread_count(b); i++) {
		const struct builder_samples samples =
			profile_builder__samples(b, (struct thread_id){i}, SAMPLE_CPU);

		for (size_t j = 0; j < samples.count; j++) {
			struct stack_id stack = samples.stack[j];

			frames += seen[stack.v] ? 0 : profile_builder__get_stack(b, stack)->depth;
			seen[stack.v] = 1;
		}
	}
	return frames <= IMPORT_FRAMES_MAX ? 0 : import_fail_frames(failure, 0);
}

int import_profile(const struct import_request *request, struct import_failure *failure)
{
	int err;

	if (request->size > IMPORT_SIZE_MAX)
		return import_fail(failure, IMPORT_SIZE_MAX, -E2BIG, "it is larger than %llu GiB",
				   IMPORT_SIZE_MAX >> 30);
	err = read_any(request, failure)
		?: profile_builder__error(request->builder)
		?: check_frames(request->builder, failure);
	if (err == -ENOMEM)
		import_fail(failure, 0, err, "out of memory");
	return err;
}
