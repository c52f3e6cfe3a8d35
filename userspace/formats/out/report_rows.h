/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads, processes, and processes of one service or the like are counted directly. Functions, dsos and lines are "code" (report_code.c).
 * A stack with CPU samples is walked once: its innermost line counts as self, each row on it as
 * total, once even in recursion, for which a row has a stamp (the last stack that counted it).
 */
#ifndef FORMATS_OUT_REPORT_ROWS_H
#define FORMATS_OUT_REPORT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

#include "formats/out/report.h"

/* Texts belong to the profile or are static; they have to be sanitized before they are printed. */
struct report_row {
	uint64_t self;	/* samples of it: its code was executing, or it is the thread or process */
	uint64_t total; /* samples with it anywhere in the stack, each counted once */
	double self_square, total_square; /* of single samples: for their errors */
	uint64_t cpu;			  /* ns; not of code */
	const char *name;
	/* dso of a function, file of a line, process of a thread, id of a container */
	const char *place;
	uint32_t pid, tid, line;
	uint32_t threads, processes;	/* with at least one sample */
	bool is_none;			/* processes that are in no service, …: a made-up name */
	enum profile_category category; /* of code: that of its first location */
};

/* The row of a thread, its process or what that belongs to, without counts. */
struct report_row report_task(const struct profile *p, enum report_by by, uint32_t thread);

/* By thread: the number of its row, below max(threads, processes), from 1 on. The caller frees it. */
int report_task_numbers(const struct profile *p, enum report_by by, uint32_t **numbers);

/* To those of stacks, of all CPU samples. */
void add_squares(const struct profile *p, double *squares);

/* Of all of them: see profile_samples__square(). */
double samples_square(const struct profile_samples *samples);

/* Sorted by self, then total, then name and the rest. The caller frees *rows. */
int report_rows(const struct profile *p, enum report_by by, struct report_row **rows,
		size_t *count);

/* How far a share of samples can be trusted. */

/* Of random samples 95 of 100 intervals contain the true share. 0 <= low <= share <= high <= 1. */
struct interval {
	double low, high;
};

/*
 * Wilson's score interval of `part` of all that the profile counts; 0 to 1 if there is no sample.
 * `square`: the sum of the squares of what each sample of the part counts. A sum of unequal samples
 * is as exact as that of fewer equal ones, by the ratio of its variance.
 */
struct interval share_interval(const struct profile *p, uint64_t part, double square);

/* part / whole, 0 if there is nothing */
static inline double share_of(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

#endif
