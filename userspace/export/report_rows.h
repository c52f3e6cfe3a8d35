/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of a report: CPU samples, grouped. */
#ifndef EXPORT_REPORT_ROWS_H
#define EXPORT_REPORT_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "export/report.h"

/* Texts belong to the profile or are static; they have to be sanitized before they are printed. */
struct report_row {
	uint64_t self;	/* samples of it: its code was executing, or it is the thread or process */
	uint64_t total; /* samples with it anywhere in the stack, each counted once */
	uint64_t cpu;	/* ns; threads and processes only */
	const char *name;
	const char *place; /* dso of a function, file of a line, process of a thread */
	uint32_t pid, tid, line;
	uint32_t threads;		/* of a process, with at least one sample */
	enum profile_category category; /* of code: that of its first location */
};

/* Sorted by self, then total, then name and the rest. The caller frees *rows. */
int report_rows(const struct profile *p, enum report_by by, struct report_row **rows,
		size_t *count);

#endif
