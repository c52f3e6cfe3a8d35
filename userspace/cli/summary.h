/* SPDX-License-Identifier: BSD-2-Clause */
/* The summary of a recording, a few lines on stderr. */
#ifndef CLI_SUMMARY_H
#define CLI_SUMMARY_H

#include <sysprof/profile.h>
#include <sysprof/symbolizer.h>

#include "cli/outputs.h"
#include "cli/record_options.h"
#include "session/session.h"

struct summary {
	const struct record_options *options;
	const struct profile *profile;
	struct session_stats session;
	const struct written_files *files;
	struct symbolizer_counts symbols;
};

void summary__print(const struct summary *s);

/* "cannot X: why" and the remedy under it. */
void print_failure(const struct failure *failure);

#endif
