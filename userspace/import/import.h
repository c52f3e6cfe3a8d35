/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiles of other tools, and our own in other formats, as a profile. A format is recognized by the
 * file's contents, never by its name; gzip is unpacked first.
 */
#ifndef IMPORT_IMPORT_H
#define IMPORT_IMPORT_H

#include <sysprof/importer.h>

/* A file, as it is and as it unpacks, is at most that big. */
#define IMPORT_SIZE_MAX (4ULL << 30)
/*
 * A packed file may unpack to IMPORT_RATIO_MAX times its size, and IMPORT_RATIO_FREE bytes more. Our own
 * files stay below 40 times; gzip reaches 1030 times with zeros.
 */
#define IMPORT_RATIO_MAX  250
#define IMPORT_RATIO_FREE (64ULL << 20)
/* Frames of one stack: more than any profiler records, and a bound on what a chain of nodes can cost. */
#define IMPORT_DEPTH_MAX (1u << 17)

/*
 * Frames of all stacks with samples, each stack once. A few bytes of a table can be another stack as deep as
 * the last one; so the depths have to be limited together, or folded stacks of a small file fill a disk.
 */
#define IMPORT_FRAMES_MAX (1ULL << 28)

/* Where profiles begin whose format has no times, or none of a clock: a second after the clock's zero, ns. */
#define IMPORT_MADE_UP_START 1000000000ULL

/*
 * Fill a new builder from the bytes of a file. 0; -EBADMSG: damaged, or of no known format; -EPROTONOSUPPORT:
 * of a known format that is not read; -E2BIG: over a limit; -ENOMEM.
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
	IMPORT_JSON_SPEEDSCOPE,
};
enum import_json import_json_kind(const uint8_t *bytes, size_t size);

extern const struct importer cpuprofile_importer, trace_importer, firefox_importer, pprof_importer,
	folded_importer;

#endif
