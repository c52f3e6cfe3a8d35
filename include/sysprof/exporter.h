/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A way to write a profile. Exporters read the profile and the options, write to a FILE and know
 * nothing else: no /proc, no clock, no environment. Same input, same bytes.
 */
#ifndef SYSPROF_EXPORTER_H
#define SYSPROF_EXPORTER_H

#include <stdbool.h>
#include <stdio.h>

#include <sysprof/profile.h>

struct export_options {
	bool lines;		 /* folded: "function:line" */
	unsigned int top;	 /* text: number of rows, 0 for the default */
	struct thread_id thread; /* for formats of one thread a file; 0 for all the others */
};

struct exporter {
	const char *name;	     /* "firefox", as in FORMAT:PATH */
	const char *const *suffixes; /* ".json.gz", …; NULL-ended, longest match wins */
	const char *description;     /* "Firefox Profiler, processed format 66" */
	const char *how_to_open;     /* one sentence, with %s for the path */
	bool one_thread;	     /* one thread a file */
	bool may_gzip;		     /* ".gz" at the end of the name compresses the output */
	/* 0 or negative errno; write errors may also show only in ferror() */
	int (*write)(const struct profile *profile, const struct export_options *options,
		     FILE *out);
};

/* NULL-ended; the order is the one `help` shows. */
const struct exporter *const *exporters(void);

#endif
