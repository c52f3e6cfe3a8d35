/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The samples of all threads of a process in one row, for formats of one thread a file.
 *
 * A sample is as long as its CPU time, so the sums of all call paths are exact. Where threads ran
 * at the same time that is more than the time of the clock: samples are laid one after the other,
 * and later ones move back, until the process was idle for long enough. So the axis is CPU time
 * where threads overlap, and time where they do not.
 *
 * Time is divided into cells of TIMELINE_CELL_PERIODS periods. Samples of a cell with several
 * threads are left-heavy: call paths side by side, the one with the most time first, at each level.
 * Samples of a cell with one thread stay in the order of time.
 */
#ifndef FORMATS_OUT_PROCESS_TIMELINE_H
#define FORMATS_OUT_PROCESS_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include "formats/out/call_tree.h"

#define TIMELINE_CELL_PERIODS 10

/* A sample of a thread. */
struct timeline_row {
	uint64_t begin, length; /* ns: when the thread ran, and its CPU time */
	uint64_t time;		/* ns: where it is laid */
	size_t sample;		/* of the caller, by thread and time */
	uint32_t thread;
	uint32_t node; /* of the tree */
};

/*
 * Lay rows out from `start` on: order and times. Gaps shorter than half a period are closed.
 * `cell` 0: all times are one cell. 0 or -ENOMEM.
 */
int process_timeline__lay(struct timeline_row *rows, size_t count, const struct call_tree *tree,
			  uint64_t start, uint64_t period, uint64_t cell);

#endif
