/* SPDX-License-Identifier: BSD-2-Clause */
/* Distributions, and control of false discoveries. */
#ifndef COMPARE_STATISTICS_H
#define COMPARE_STATISTICS_H

#include <stddef.h>

/* A mean or a sum, its variance, and the variance's degrees of freedom. */
struct estimate {
	double value, variance;
	double freedom; /* INFINITY: the variance is known */
};

/* The difference of two independent estimates, by Welch and Satterthwaite. */
struct estimate difference_of(struct estimate a, struct estimate b);

/* Two-sided p of Student's t; 1 if the variance is 0 and so is the value, else 0. */
double p_of(struct estimate e);
double student_p(double t, double freedom);
/* The t that is exceeded on both sides with probability p in all. */
double student_t(double p, double freedom);

/*
 * Benjamini and Hochberg's q-values of weighted tests (Genovese, Roeder, Wasserman 2006). Weights
 * are positive and independent of the p-values; their scale does not matter. 0 or -ENOMEM.
 */
int false_discovery_rates(const double *p, const double *weight, double *q, size_t count);

#endif
