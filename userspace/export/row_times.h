/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the samples of a thread were taken, for formats in which a sample lasts until the next one.
 *
 * A profile that was read from a format without times has made-up ones that say nothing. Its rows are laid
 * one behind the other, each as long as its ticks, so that what is shown is in proportion.
 */
#ifndef EXPORT_ROW_TIMES_H
#define EXPORT_ROW_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

struct row_times {
	const struct profile_samples *samples;
	uint64_t last, step; /* ns; `step` is how long a tick lasts */
	size_t row;
	bool untimed;
};

void row_times__init(struct row_times *times, const struct profile *p,
		     const struct profile_thread *thread);
/* The time of the next row; only for as many as there are. */
uint64_t row_times__next(struct row_times *times);
/* When the last row is over. Where there is none: the start. */
uint64_t row_times__end(const struct row_times *times);

/* The first time in a file of this thread alone. */
uint64_t row_times_start(const struct profile *p, const struct profile_thread *thread);

/*
 * The idle samples of the format that the profile was read from (profile.idle_known), among the CPU
 * samples of a thread.
 */
struct idle_rows {
	const struct profile_samples *cpu, *idle;
	size_t next;
};

void idle_rows__init(struct idle_rows *rows, const struct profile_thread *thread);
/* The time of the next one before CPU sample i, or after all of them; false: there is none. */
bool idle_rows__next(struct idle_rows *rows, size_t i, uint64_t *time);

/* How long the last sample of any kind lasted, where weights are ahead (profile.weight_ahead). */
uint64_t row_times_last_weight(const struct profile_thread *thread);

#endif
