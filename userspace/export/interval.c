/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wilson's interval, and not share ± 2 σ: that one is empty for functions with few samples, which is where
 * a reader needs it, and goes below 0.
 */
#include "export/report_private.h"

#include <math.h>

#define Z 1.959963984540054 /* 97.5 % of a normal distribution is below */

struct interval share_interval(uint64_t part, uint64_t whole)
{
	double n = (double)whole, p, scale, middle, half;
	struct interval interval;

	if (!whole)
		return (struct interval){0, 1};
	p = (double)part / n;
	scale = 1 + Z * Z / n;
	middle = (p + Z * Z / (2 * n)) / scale;
	half = Z / scale * sqrt(p * (1 - p) / n + Z * Z / (4 * n * n));
	interval = (struct interval){middle - half, middle + half};
	/* rounding must not move the edges past the share itself */
	if (!part || interval.low < 0)
		interval.low = 0;
	if (part >= whole || interval.high > 1)
		interval.high = 1;
	if (interval.low > p)
		interval.low = p;
	if (interval.high < p)
		interval.high = p;
	return interval;
}
