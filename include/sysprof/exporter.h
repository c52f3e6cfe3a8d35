/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An output format. An exporter gets one request: a profile, a FILE and options. It reads nothing
 * else: no /proc, no clock, no environment. The same input gives the same bytes.
 */
#ifndef SYSPROF_EXPORTER_H
#define SYSPROF_EXPORTER_H

#include <stdbool.h>
#include <stdio.h>

#include <sysprof/profile.h>

/* Counts of parts that a bound of docs/FORMATS.md left out of a file; all zero: none. */
struct export_left_out {
	uint64_t names;		 /* truncated names, … */
	size_t name_size;	 /* … and their size in bytes */
	uint64_t idle_ticks;	 /* ticks of one idle sample; 0: one each */
	uint64_t length_divisor; /* samples without times are shorter by that; 0, 1: as they are */
	uint64_t jits;		 /* processes with JIT code that are left out */
};

/* A profile of a comparison: process 1 is OLD, process 2 is NEW, their threads are files. */
struct export_difference {
	const char *facts;	 /* the comparison as JSON, docs/diff.schema.json */
	const char *type, *unit; /* of values, as in pprof's sample types */
	const double *
		tick_value; /* of a tick, by thread; those of OLD and of NEW add up to the wholes */
};
#define EXPORT_OLD_PROCESS 1u

struct export_request {
	const struct profile *profile;
	FILE *out;
	bool lines;		 /* folded: "function:line" */
	bool waits;		 /* folded, Firefox, trace: waits, too, … */
	bool parked;		 /* … folded: those of parked threads as well (docs/WALL.md) */
	unsigned int top;	 /* text: number of rows, 0: the default */
	struct thread_id thread; /* for formats with one thread per file; 0: the busiest */
	bool merge_threads;	 /* … a file has all threads of its process */
	struct export_left_out *left_out;	    /* counts are added; may be NULL */
	const struct export_difference *difference; /* NULL: the profile is none of a comparison */
};

struct exporter {
	const char *name;	     /* "firefox", as in FORMAT:PATH */
	const char *const *suffixes; /* ".json.gz", …; NULL-ended, longest match wins */
	const char *description;     /* "Firefox Profiler, processed format 66" */
	const char *how_to_open;     /* one sentence, with %s for the path */
	bool one_thread;	     /* a file has one thread */
	bool is_json;		     /* one JSON text, see export_size_problem() */
	bool has_code;		     /* a file has machine code and sources */
	bool may_gzip;		     /* ".gz" at the end of the name compresses the output */
	/* 0 or negative errno; a write error may be visible in ferror() only */
	int (*write)(const struct export_request *request);
};

/* NULL-ended, in the order of `help`. */
const struct exporter *const *exporters(void);

#endif
