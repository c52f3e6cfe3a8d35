/* SPDX-License-Identifier: BSD-2-Clause */
/* The distributions and the control of false discoveries that a comparison needs. */
#ifndef COMPARE_STATISTICS_H
#define COMPARE_STATISTICS_H

#include <stddef.h>

/* A mean or a sum, how uncertain it is, and how certain that uncertainty. */
struct estimate {
	double value, variance;
	double freedom; /* degrees of freedom of the variance; INFINITY: it is known */
};

/* The difference of two independent estimates, by Welch and Satterthwaite. */
struct estimate difference_of(struct estimate a, struct estimate b);

/* Two-sided p of Student's t; 1 if the variance is 0 and so is the value, else 0. */
double p_of(struct estimate e);
double student_p(double t, double freedom);
/* The t that is exceeded on both sides together with probability p. */
double student_t(double p, double freedom);

/*
 * Benjamini and Hochberg's q-values of weighted tests (Genovese, Roeder, Wasserman 2006). The weights are positive and have nothing
 * to do with the p-values; their scale does not matter. 0 or -ENOMEM.
 */
int false_discovery_rates(const double *p, const double *weight, double *q, size_t count);

#endif
