/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether the numbers of a file without a unit are counts of samples. Its format does not say so,
 * so all of them decide. Counts have many small numbers, because most stacks are rare, and are not all
 * multiples of one number. Weights are a
 * known number of samples if one period divides all of them, else how many samples there were is
 * unknown (profile.uncounted). Numbers that a file calls samples are believed up to a million.
 */
#ifndef FORMATS_IN_WEIGHTS_H
#define FORMATS_IN_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct weights {
	VEC(uint64_t) numbers; /* in any order; zeros do not count */
};

/* 0, -ENOMEM */
int weights__add(struct weights *w, uint64_t number);

/* False: they are counts. `period`: of each sample; 0: there is no common one. */
bool weights__are_no_counts(struct weights *w, uint64_t *period);

/* The same of numbers that their file calls samples. */
bool weights__are_no_samples(struct weights *w, uint64_t *period);

void weights__fini(struct weights *w);

#endif
