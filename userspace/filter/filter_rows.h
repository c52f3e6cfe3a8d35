/* SPDX-License-Identifier: BSD-2-Clause */
/* Which rows of samples stay. */
#ifndef FILTER_FILTER_ROWS_H
#define FILTER_FILTER_ROWS_H

struct apply;

/* Fills the threads of the result, whose references have still the old numbers, and the books. */
void profile_filter__threads(struct apply *a);

#endif
