/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From tests to rows. If a function takes longer, so do all its callers; a row is the function in
 * which the difference arises. A difference has moved if neighbours compensate it, or a caller
 * lacks it.
 */
#ifndef COMPARE_VERDICTS_H
#define COMPARE_VERDICTS_H

struct comparison;

/* verdicts.c: chooses the differences that are rows, and their verdicts. 0 or -ENOMEM. */
int comparison__judge(struct comparison *c);

#endif
