/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/in/weights.h"

#include "base/order.h"
#include "formats/in/frames.h"

/* Numbers that are no counts: three of four are at least as high, of few numbers much higher. */
#define FEW_NUMBERS    16
#define WEIGHT_MIN     100
#define WEIGHT_MIN_FEW 100000
/* The same of what is called samples: hours of CPU time in most rows. */
#define SAMPLES_MIN 1000000
/* Different multiples of a number: 6 of 8 or more, 8 of 4, 16 of 2; of powers of two also 2 of 256, 4 of 16. */
#define UNIT_NUMBERS 6
#define UNIT_BITS    16
/* A period of events. Multiples of 1000 are also times in ms, those of 1024 sizes. */
#define PERIOD_MIN 1000

DEFINE_ORDER(compare_weights, uint64_t, order_of(*x, *y));

int weights__add(struct weights *w, uint64_t number)
{
	return number ? vec_push(&w->numbers, number) : 0;
}

/* A period that divides all weights; several of them, or each number is one of itself. */
static uint64_t common_period(const uint64_t *weights, size_t count)
{
	uint64_t divisor = 0;

	for (size_t i = 0; i < count; i++)
		divisor = common_divisor(weights[i], divisor);
	return count > 1 && divisor >= PERIOD_MIN && divisor % 1000 && divisor % 1024 ? divisor : 0;
}

/*
 * Multiples of one number, which counts are by a chance of 1 in UNIT_BITS bits: bytes are of 8, and times of
 * a tick. Threads that wait have counts that are multiples of how often they were seen, so few different
 * numbers have to be those of a power of two.
 */
static bool have_unit(const uint64_t *sorted, size_t count)
{
	uint64_t divisor = 0, different = 0, bits = 0;

	for (size_t i = 0; i < count; i++) {
		divisor = common_divisor(sorted[i], divisor);
		different += !i || sorted[i] != sorted[i - 1];
	}
	if (different < UNIT_NUMBERS)
		divisor &= -divisor;
	while (divisor >> (bits + 1))
		bits++;
	return different > 1 && different * bits >= UNIT_BITS;
}

static bool are_mostly(struct weights *w, uint64_t min, uint64_t *period)
{
	const size_t count = w->numbers.count;

	*period = 0;
	vec_sort(&w->numbers, compare_weights);
	if (!count || w->numbers.data[count / 4] < min)
		return false;
	*period = common_period(w->numbers.data, count);
	return true;
}

bool weights__are_no_counts(struct weights *w, uint64_t *period)
{
	return are_mostly(w, w->numbers.count < FEW_NUMBERS ? WEIGHT_MIN_FEW : WEIGHT_MIN,
			  period) ||
	       have_unit(w->numbers.data, w->numbers.count);
}

bool weights__are_no_samples(struct weights *w, uint64_t *period)
{
	return are_mostly(w, SAMPLES_MIN, period);
}

void weights__fini(struct weights *w)
{
	vec_free(&w->numbers);
}
