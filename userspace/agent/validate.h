/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds series that Pyroscope or Parca refuses, or accepts and drops: one bad series fails a whole
 * request, and some faults are answered "stored" and lost. Only what passes here is sent.
 *
 * A reader of its own, not that of the writer: it is to find the writer's faults.
 */
#ifndef AGENT_VALIDATE_H
#define AGENT_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent_window.h"

#define VALID_SAMPLES_MAX     16000
#define VALID_SIZE_MAX	      (1536u << 10) /* bytes of a pprof that is not compressed */
#define VALID_DEPTH_MAX	      1000
#define VALID_LABELS_MAX      30 /* __name__ included */
#define VALID_LABEL_NAME_MAX  1024
#define VALID_LABEL_VALUE_MAX 2048

struct pprof_sums {
	uint64_t samples;	     /* rows */
	uint64_t values[2], time_ns; /* values: by sample type, the others are 0 */
};

/* Valid UTF-8, not empty, of a length that all take. */
bool validate_label_value(const char *value);

/* *why (text of why_size bytes) is the reason. */
bool validate_labels(const struct service_label *labels, size_t count, char *why, size_t why_size);

/* A plain profile without labels at its samples. *sums (or NULL) is filled in if it is good. */
bool validate_pprof(const void *bytes, size_t size, struct pprof_sums *sums, char *why,
		    size_t why_size);

#endif
