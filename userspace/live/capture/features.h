/* SPDX-License-Identifier: BSD-2-Clause */
/* Features that this kernel and these privileges allow. All are tried, none by a version number. */
#ifndef LIVE_CAPTURE_FEATURES_H
#define LIVE_CAPTURE_FEATURES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"

enum feature_level {
	FEATURE_REQUIRED, /* recording is impossible without */
	FEATURE_WANTED,	  /* something is lost or slower without */
	FEATURE_INFO,	  /* good to know */
};

struct feature {
	const char *group; /* "kernel", "clock", "privileges", "limits" */
	const char *name;  /* "btf", "cap_perfmon", … stable, for --json */
	enum feature_level level;
	bool available;
	char detail[256]; /* what was found: a value, or why the attempt failed; may be empty */
	const char *cost; /* what its lack costs, one sentence; "" where it costs nothing */
	char remedy[512]; /* command or setting that mends it; empty: none is, or none is needed */
};

struct features;
struct kernel_types;

/* Probe. 0 or -ENOMEM; a failing probe is a feature that is not available. Takes a few ms. */
int features__probe(struct features **features);
void features__free(struct features *features);

const struct feature *features__list(const struct features *features, size_t *count);
/* Is every FEATURE_REQUIRED one available? */
bool features__can_record(const struct features *features);

/*
 * Why did this privileged call fail? Fills `failure` with `attempt` ("cannot load the programs"),
 * the remedy, and the cause if it is found (a missing capability by name, lockdown, seccomp filter
 * of a container, perf_event_paranoid, limit of open files, no BTF). Returns `error`.
 */
int features_explain(struct failure *failure, int error, const char *attempt);

/* How threads can be visited (--wall). */
enum visits {
	VISITS_NONE,
	VISITS_BY_COPIES, /* the program of an iterator copies their memory */
	VISITS_BY_TASK,	  /* from 6.7 on: any program reads it */
};
#define VISITS_SINCE "since Linux 6.1"
enum visits features_visits(const struct kernel_types *types);

#endif
