/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads profiles of other tools, and our own in other formats, into a profile. A format is
 * recognized by the file's contents, never by its name; gzip is unpacked first.
 */
#ifndef FORMATS_IN_IMPORT_H
#define FORMATS_IN_IMPORT_H

#include <sysprof/importer.h>

/* Bytes of a file at most, packed and unpacked. */
#define IMPORT_SIZE_MAX (4ULL << 30)
/*
 * A gzip file may unpack to IMPORT_RATIO_MAX times its size plus IMPORT_RATIO_FREE bytes. Our own
 * files stay below 40 times; zeros reach 1030 times.
 */
#define IMPORT_RATIO_MAX  250
#define IMPORT_RATIO_FREE (64ULL << 20)
/* Frames of one stack: more than any profiler records; bounds the cost of a chain of nodes. */
#define IMPORT_DEPTH_MAX (1u << 17)

/*
 * Frames of all stacks that have samples, each stack once. A few bytes of a table can be another
 * stack as deep as the last; without a common limit, folded stacks of a small file could fill a
 * disk.
 */
#define IMPORT_FRAMES_MAX (1ULL << 28)
/* Call paths, parts of others included: one takes a byte of a file and some 40 in memory. */
#define IMPORT_PATHS_MAX (1u << 25)

/*
 * Fill a new builder from the bytes of a file. 0; -EBADMSG: damaged or unknown format;
 * -EPROTONOSUPPORT: known format that is not read; -E2BIG: over a limit; -ENOMEM.
 */
int import_profile(const struct import_request *request, struct import_failure *failure);

/* Fill `failure` and return `error`, so that it can end a function. */
int import_fail(struct import_failure *failure, uint64_t offset, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The format of a JSON text, by the first of its keys that only one format has. */
enum import_json {
	IMPORT_JSON_OTHER,
	IMPORT_JSON_FIREFOX,
	IMPORT_JSON_CPUPROFILE,
	IMPORT_JSON_TRACE,
	IMPORT_JSON_GECKO,
	IMPORT_JSON_SPEEDSCOPE,
};
enum import_json import_json_kind(const uint8_t *bytes, size_t size);

extern const struct importer cpuprofile_importer, trace_importer, firefox_importer, pprof_importer,
	perf_script_importer, folded_importer, speedscope_importer, gecko_importer;

struct json_text;
struct json_value;
struct profile_builder;
struct profile_names;

/* What a process belongs to: members of an object in our own files. 0 or an error. */
int import_names(const struct json_text *text, struct json_value own, struct profile_builder *b,
		 struct profile_names *to);

/*
 * What samples count, if they are not ticks of a clock: members of an object in our own files.
 * 0 or an error.
 */
int import_event(const struct json_text *text, struct json_value object, struct profile_builder *b);

/* Samples weigh their CPU time. */
void import_weigh_by_cpu(struct profile_builder *b);
/* profile__events_are_cpu() of a profile that is not finished. */
bool import_events_are_cpu(struct profile_builder *b);

#endif
