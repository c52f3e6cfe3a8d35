/* SPDX-License-Identifier: BSD-2-Clause */
/* Selects the reader of a file. */
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
#include "formats/in/foreign.h"
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

/* The tables of the first thread: columns, or, in Gecko's format, a schema and rows. */
static bool has_columns(const struct json_text *text)
{
	const char *threads = json_member_at(text, text->start, "threads"), *samples;

	if (!threads || threads == text->end || *threads != '[')
		return false;
	samples = json_member_at(text, threads + 1, "samples");
	return json_member_at(text, samples, "stack") && !json_member_at(text, samples, "schema");
}

/* The processed format has a version of its own beside Gecko's, but for the first one, of 2016. */
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
	       version.at && !processed.at && !has_columns(text);
}

enum import_json import_json_kind(const uint8_t *bytes, size_t size)
{
	/* "head": nodes as Chrome wrote them before 57 */
	static const char *const keys[] = {"meta",	 "nodes",	"head",
					   "timeDeltas", "traceEvents", "$schema",
					   "profiles",	 "ph",		NULL};
	static const enum import_json kinds[] = {
		IMPORT_JSON_FIREFOX,	IMPORT_JSON_CPUPROFILE, IMPORT_JSON_CPUPROFILE,
		IMPORT_JSON_CPUPROFILE, IMPORT_JSON_TRACE,	IMPORT_JSON_SPEEDSCOPE,
		IMPORT_JSON_SPEEDSCOPE, IMPORT_JSON_TRACE, /* an event, with others behind it */
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

/*
 * A profile that is a member of another object. What Firefox's developer tools saved until version 97
 * has Gecko's own format; answers of the DevTools protocol to Profiler.stop, with or without the rest
 * of the message, have a .cpuprofile. NULL: it is none.
 */
static const struct importer *find_wrapped(const struct import_request *request,
					   struct json_value *inner)
{
	struct import_failure ignored;
	const char *bytes = (const char *)request->bytes;
	const struct json_text text = {bytes, bytes + request->size, &ignored};
	struct json_value type = {}, result = {};
	struct json_walk walk;
	int more;

	*inner = (struct json_value){};
	if (import_json_kind(request->bytes, request->size) != IMPORT_JSON_OTHER ||
	    json_walk__init(&walk, &text, text.start, JSON_OBJECT))
		return NULL;
	while ((more = json_walk__next(&walk)) > 0) {
		if (json_walk__key_is(&walk, "profile"))
			*inner = walk.value;
		else if (json_walk__key_is(&walk, "fileType"))
			type = walk.value;
		else if (json_walk__key_is(&walk, "result"))
			result = walk.value;
	}
	if (more || json_expect_end(&text, walk.at))
		return NULL;
	if (!inner->at && json_type(result) == JSON_OBJECT &&
	    json_members(&text, result, {"profile", inner}))
		return NULL;
	if (json_type(*inner) != JSON_OBJECT)
		return NULL;
	if (json_is(type, "\"Recorded Performance Data\""))
		return &gecko_importer;
	return import_json_kind((const uint8_t *)inner->at, (size_t)(inner->end - inner->at)) ==
			       IMPORT_JSON_CPUPROFILE
		       ? &cpuprofile_importer
		       : NULL;
}

static int fail_cut(const struct import_request *request, const char *why,
		    struct import_failure *failure)
{
	return import_fail(failure, request->cut, -EBADMSG, "its gzip data are cut off%s", why);
}

/* Which of them it is says what the profile cannot have. */
static int read_by(const struct importer *importer, const struct import_request *request,
		   struct import_failure *failure)
{
	if (request->cut && !importer->reads_cut)
		return fail_cut(request,
				", and what is missing may name, time or weigh what is there",
				failure);
	profile_builder__meta(request->builder, META_FORMAT, importer->name);
	return importer->read(request, failure);
}

static int read_unpacked(const struct import_request *request, struct import_failure *failure)
{
	struct import_request inner = *request;
	const struct importer *importer;
	struct json_value value;
	int err = foreign_refuse(request, failure);

	if (err)
		return err;
	importer = find_wrapped(request, &value);
	if (importer) {
		inner.bytes = (const uint8_t *)value.at;
		inner.size = (size_t)(value.end - value.at);
		err = read_by(importer, &inner, failure);
		failure->offset += err ? (uint64_t)(inner.bytes - request->bytes) : 0;
		return err;
	}
	for (const struct importer *const *i = importers; *i; i++)
		if ((*i)->recognizes(request->bytes, request->size))
			return read_by(*i, request, failure);
	return request->cut ? fail_cut(request, "", failure) : refuse(request, failure);
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
		return import_fail(failure, offset, err, "its gzip data are damaged");
	if (err && err != -ENODATA)
		return err;
	unpacked.bytes = bytes;
	unpacked.cut = err ? request->size : 0;
	if (!unpacked.size)
		return err ? fail_cut(&unpacked, "", failure) : refuse(&unpacked, failure);
	if (is_gzip(bytes, unpacked.size))
		return import_fail(failure, 0, -EBADMSG, "it was packed by gzip twice");
	return read_text(&unpacked, failure);
}

int import_names(const struct json_text *text, struct json_value own, struct profile_builder *b,
		 struct profile_names *to)
{
#define X(field, label) {label, offsetof(struct profile_names, field)},
	static const struct {
		const char *label;
		size_t field;
	} names[] = {PROCESS_NAMES(X)};
#undef X
	enum { COUNT = sizeof(names) / sizeof(*names) };
	struct json_value values[COUNT] = {};
	struct json_member wanted[COUNT + 1] = {};
	int err;

	for (size_t i = 0; i < COUNT; i++)
		wanted[i] = (struct json_member){names[i].label, &values[i]};
	err = json_find_members(text, own, wanted);
	for (size_t i = 0; i < COUNT && !err; i++) {
		_cleanup_free_ char *copy = NULL;

		if (json_type(values[i]) != JSON_STRING)
			continue;
		err = json_string_copy(text, values[i], &copy);
		if (!err)
			*(struct string_id *)((char *)to + names[i].field) =
				profile_builder__string(b, copy);
	}
	return err;
}

int import_event(const struct json_text *text, struct json_value object, struct profile_builder *b)
{
	struct profile *session = profile_builder__session(b);
	_cleanup_free_ char *event_name = NULL, *unit_name = NULL, *cpu_text = NULL,
			    *part_text = NULL;
	struct json_value event, unit, known, times, tick, cpu, part;
	int64_t tick_cpu = 0;
	int err = json_members(text, object, {"event", &event}, {"eventUnit", &unit},
			       {"samplesKnown", &known}, {"timesKnown", &times},
			       {"tickCpuNs", &tick}, {"cpuTimeIs", &cpu}, {"partOf", &part});

	if (!err && tick.at)
		err = json_integer(text, tick, "tickCpuNs", 0, INT64_MAX, &tick_cpu);
	if (!err && json_type(cpu) == JSON_STRING)
		err = json_string_copy(text, cpu, &cpu_text);
	if (!err && json_type(part) == JSON_STRING)
		err = json_string_copy(text, part, &part_text);
	if (part_text)
		profile_builder__meta(b, META_PART_OF, part_text);
	if (cpu_text)
		profile_builder__meta(b, META_CPU_TIME, cpu_text);
	session->untimed = json_is(times, "false");
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

void import_weigh_by_cpu(struct profile_builder *b)
{
	struct profile *session = profile_builder__session(b);

	session->event = profile_builder__string(b, EVENT_CPU);
	session->event_unit = profile_builder__string(b, EVENT_CPU_UNIT);
}

bool import_events_are_cpu(struct profile_builder *b)
{
	const struct profile *session = profile_builder__session(b);

	return !session->uncounted && session->event.v &&
	       !strcmp(profile_builder__get_string(b, session->event), EVENT_CPU) &&
	       !strcmp(profile_builder__get_string(b, session->event_unit), EVENT_CPU_UNIT);
}

static int read_any(const struct import_request *request, struct import_failure *failure)
{
	return is_gzip(request->bytes, request->size) ? read_packed(request, failure)
						      : read_text(request, failure);
}

int import_profile(const struct import_request *request, struct import_failure *failure)
{
	int err;

	if (request->size > IMPORT_SIZE_MAX)
		return import_fail(failure, IMPORT_SIZE_MAX, -E2BIG, "it is larger than %llu GiB",
				   IMPORT_SIZE_MAX >> 30);
	err = read_any(request, failure) ?: profile_builder__error(request->builder);
	if (err == -ENOMEM)
		import_fail(failure, 0, err, "out of memory");
	return err;
}
