/* SPDX-License-Identifier: BSD-2-Clause */
/* The summary of a recording, a few lines on stderr. */
#ifndef CLI_SUMMARY_H
#define CLI_SUMMARY_H

#include <limits.h>

#include <sysprof/profile.h>
#include <sysprof/symbolizer.h>

#include "cli/outputs.h"
#include "cli/record_options.h"
#include "session/session.h"

struct summary {
	const struct record_options *options;
	const struct profile *profile;
	struct session_stats session;
	uint64_t own_cpu; /* of this process and its helpers, ns */
	const struct written_files *files;
	struct symbolizer_counts symbols;
};

void summary__print(const struct summary *s);

/* "cannot X: why" and the remedy under it. */
void print_failure(const struct failure *failure);

/* A finding of a check, on standard output, and what helps; NULL or "": nothing does. */
void print_line(const char *mark, const char *name, const char *text);
void print_remedy(const char *remedy);

/* Names of files, of programs and of runtimes may have any characters. */
struct shown {
	char text[4 * PATH_MAX];
};

const char *show(struct shown *shown, const char *text);

#endif
