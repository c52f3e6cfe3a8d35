/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A quantity of a side is amount × ticks ÷ ticks in unchanged code: exact CPU time in proportion
 * to samples. Its variance is that of the ratio, from blocks of time or of independent samples,
 * whichever is larger, plus that of runs.
 */
#ifndef COMPARE_TESTS_H
#define COMPARE_TESTS_H

#include <stddef.h>

#include "compare/compare.h"

/* The value of a tick of a file in the view; the ticks of a side add up to its whole. */
double comparison__tick_value(const struct comparison *c, size_t file);

/*
 * tests.c: the relative standard deviation of a run, by the files of a side: that of the whole, or
 * of the shares of functions beyond that of sampling, whichever is larger.
 */
int comparison__measure_noise(const struct comparison *c, enum compare_side side, double *noise);

/* tests.c: tests all functions, and finds unchanged code for the share view. 0 or -ENOMEM. */
int comparison__test(struct comparison *c);

/* … afterwards: the p that a function of this share of samples needs if nothing else differs. */
double comparison__level_of(const struct comparison *c, double share);

#endif
