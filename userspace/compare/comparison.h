/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parts of a comparison: merged.h → series.h → tests.c → verdicts.c. */
#ifndef COMPARE_COMPARISON_H
#define COMPARE_COMPARISON_H

#include "compare/series.h"

struct comparison {
	struct merged merged;
	struct compare_options options;
	struct series series;
	bool has_series;
	double amount
		[COMPARE_SIDES]; /* what all ticks of a side are in the view, per file, pooled */
	double reference; /* result.reference: all amounts of the share view are multiplied by it */
	VEC(struct compare_test) tests;
	double noise_freedom; /* of the noise of runs; INFINITY: it is given or assumed */
	double own_scale;     /* the weight of a test of own code is that times its share */
	uint32_t *total_test, *self_test; /* by number in series: of `tests`; 0: none */
	VEC(struct compare_row) rows;
	struct compare_result result;
	struct comparison *waiting; /* of the waits of the same files; NULL: none of them has any */
};

/*
 * tests.c: the relative standard deviation of a run, by the files of a side: of the whole, or of the shares of functions beyond what
 * sampling does to them, whichever is larger.
 */
int comparison__measure_noise(const struct comparison *c, enum compare_side side, double *noise);

/* tests.c: the tests of all functions, and what the share view takes as unchanged. 0 or -ENOMEM. */
int comparison__test(struct comparison *c);

/* … afterwards: what p a function of that share of the samples needs if nothing else differs. */
double comparison__level_of(const struct comparison *c, double share);

/* verdicts.c: which of the differences are rows, and what they are. 0 or -ENOMEM. */
int comparison__judge(struct comparison *c);

#endif
