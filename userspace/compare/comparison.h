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
		[COMPARE_SIDES]; /* value of all ticks of a side in the view, per file, pooled */
	double reference;	 /* result.reference: a factor of all amounts in the share view */
	VEC(struct compare_test) tests;
	double noise_freedom;		  /* of the noise of runs; INFINITY: given or assumed */
	double own_scale;		  /* weight of a test of own code ÷ weight_of_share() */
	uint32_t *total_test, *self_test; /* by number in series: index in `tests`; 0: none */
	VEC(struct compare_row) rows;
	struct compare_result result;
	struct comparison *waiting; /* of the waits of the same files; NULL: no file has any */
};

#endif
