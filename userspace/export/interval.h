/* SPDX-License-Identifier: BSD-2-Clause */
/* How far a share of samples can be trusted. */
#ifndef EXPORT_INTERVAL_H
#define EXPORT_INTERVAL_H

#include <stdint.h>

/* Of samples taken at random, 95 of 100 such intervals contain the true share. 0 ≤ low ≤ share ≤ high ≤ 1. */
struct interval {
	double low, high;
};

/* Wilson's score interval of `part` of `whole` samples; 0 to 1 if there is no sample. */
struct interval share_interval(uint64_t part, uint64_t whole);

/* part / whole, 0 if there is nothing */
static inline double share_of(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

#endif
