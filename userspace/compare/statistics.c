/* SPDX-License-Identifier: BSD-2-Clause */
#include "compare/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/order.h"

#define KNOWN_FREEDOM 1e7 /* above, Student's t is taken as normal */
#define STEPS_MAX     500

struct estimate difference_of(struct estimate a, struct estimate b)
{
	struct estimate d = {b.value - a.value, a.variance + b.variance, INFINITY};
	double sum = a.variance * a.variance / a.freedom + b.variance * b.variance / b.freedom;

	if (sum > 0)
		d.freedom = d.variance * d.variance / sum;
	return d;
}

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), value;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	value = d;
	for (int m = 1; m <= STEPS_MAX; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step;

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		value *= d * c;
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		step = d * c;
		value *= step;
		if (fabs(step - 1) < 1e-15)
			break;
	}
	return value;
}

/* The regularized incomplete beta function. */
static double incomplete_beta(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_p(double t, double freedom)
{
	if (!(freedom < KNOWN_FREEDOM))
		return erfc(fabs(t) / sqrt(2));
	return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

double p_of(struct estimate e)
{
	if (e.variance <= 0)
		return e.value == 0 ? 1 : 0;
	return student_p(e.value / sqrt(e.variance), e.freedom);
}

/* By false position (Illinois) of the logarithm of p, which is nearly a parabola. */
double student_t(double p, double freedom)
{
	double low = 0, high = 1, at_low = -log(p), at_high, t = 0, at = INFINITY;
	int side = 0; /* of the bound that was replaced last */

	if (!(p > 0))
		return INFINITY;
	while ((at_high = log(student_p(high, freedom) / p)) > 0 && high < 1e12) {
		low = high;
		at_low = at_high;
		high *= 2;
	}
	for (int i = 0; i < STEPS_MAX && fabs(at) > 1e-15 && high - low > 1e-14 * high; i++) {
		t = (low * at_high - high * at_low) / (at_high - at_low);
		if (!(t > low && t < high))
			t = low + (high - low) / 2;
		at = log(student_p(t, freedom) / p);
		if (at > 0) {
			low = t;
			at_low = at;
			at_high /= side > 0 ? 2 : 1;
			side = 1;
		} else {
			high = t;
			at_high = at;
			at_low /= side < 0 ? 2 : 1;
			side = -1;
		}
	}
	return t;
}

/* ---- false discoveries ----------------------------------------------------------------------- */

struct ranked {
	double p;
	size_t index;
};

DEFINE_ORDER(compare_ranked, struct ranked, ASCENDING(p) ?: ASCENDING(index));

int false_discovery_rates(const double *p, const double *weight, double *q, size_t count)
{
	_cleanup_free_ struct ranked *list = malloc((count + 1) * sizeof(*list));
	double sum = 0, least = 1;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		sum += weight[i];
	for (size_t i = 0; i < count; i++)
		list[i] = (struct ranked){p[i] * sum / (weight[i] * (double)count), i};
	qsort(list, count, sizeof(*list), compare_ranked);
	for (size_t i = count; i-- > 0;) {
		least = fmin(least, list[i].p * (double)count / (double)(i + 1));
		q[list[i].index] = least;
	}
	return 0;
}
