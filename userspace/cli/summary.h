/* SPDX-License-Identifier: BSD-2-Clause */
/* What a recording came to, in a few lines on stderr. */
#ifndef CLI_SUMMARY_H
#define CLI_SUMMARY_H

#include <sysprof/profile.h>
#include <sysprof/symbolizer.h>

#include "cli/outputs.h"
#include "cli/record_options.h"
#include "process/unwind_feed.h"
#include "session/live.h"

struct summary {
	const struct record_options *options;
	const struct profile *profile;
	struct live_stats live;
	struct bpf_session_stats session;
	const struct written_files *files;
	struct symbolizer_counts symbols;
	struct unwind_feed_stats tables;
	uint64_t recording_bytes; /* of the .sysprof file, 0: none */
};

void summary__print(const struct summary *s);

/* "cannot X: why" and the remedy under it. */
void print_failure(const struct failure *failure);

#endif
