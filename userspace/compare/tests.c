/* SPDX-License-Identifier: BSD-2-Clause */
#include "compare/tests.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"
#include "compare/comparison.h"

#define BLOCKS_MIN    16   /* fewer blocks give no usable variance */
#define SELF_MAX      0.95 /* own code ÷ total: above, one test is for both */
#define WHOLE_PART    0.25 /* of the allowed false discoveries, for the whole */
#define TOTAL_PART    0.1  /* of the rest, for totals of functions whose own code is tested, too */
#define LARGE	      0.05 /* of all samples: larger functions are found anyway */
#define ITS_OWN	      0.5  /* of a difference must not be explained by other functions */
#define REFERENCE_MIN 0.5  /* of each side's samples must be in unchanged code */
#define CHANGED_MAX   64
#define NOISE_SHARE                                                                                \
	0.01 /* of the samples: functions with this share are used to measure noise of runs */

/* Ticks that are compared. */
struct quantity {
	const double *slots[COMPARE_SIDES];
	uint64_t sum[COMPARE_SIDES], unchanged[COMPARE_SIDES];
};

static struct quantity quantity_of(const struct series_function *f, bool is_self)
{
	struct quantity q;

	for (int i = 0; i < COMPARE_SIDES; i++) {
		q.slots[i] = is_self ? f->self_slots[i] : f->total_slots[i];
		q.sum[i] = is_self ? f->self[i] : f->total[i];
		q.unchanged[i] = !is_self ? f->unchanged[i] : f->changed ? 0 : f->self[i];
	}
	return q;
}

/* ---- variance -------------------------------------------------------------------------------- */

/* Variance of the ratio of two sums over blocks of `step` slots. */
static double block_variance(const double *part, const double *whole, size_t slots, size_t step,
			     double ratio)
{
	size_t blocks = slots / step;
	double squares = 0, sum = 0;

	for (size_t i = 0; i < blocks; i++) {
		double rest = 0;

		for (size_t j = 0; j < step; j++)
			rest += part[i * step + j] - ratio * whole[i * step + j];
		squares += rest * rest;
	}
	for (size_t i = 0; i < blocks * step; i++)
		sum += whole[i];
	if (sum <= 0)
		return 0;
	return squares / (sum * sum) * (double)blocks / (double)(blocks - 1);
}

/* Doubles blocks until their variance grows by no more than its error; keeps the largest one. */
static struct estimate ratio_variance(const struct series_side *side, const double *slots,
				      double ratio, double independent)
{
	struct estimate e = {ratio, independent, INFINITY};
	size_t step = 1;
	double found;

	if (side->slots < BLOCKS_MIN)
		return e;
	found = block_variance(slots, side->unchanged, side->slots, 1, ratio);
	while (side->slots / (2 * step) >= BLOCKS_MIN) {
		double next = block_variance(slots, side->unchanged, side->slots, 2 * step, ratio);

		bool settled = next <= found * (1 + 1 / sqrt((double)(side->slots / (2 * step))));

		if (next > found) {
			found = next;
			step *= 2;
		}
		if (settled)
			break;
	}
	if (found > independent) {
		e.variance = found;
		e.freedom = (double)(side->slots / step - 1);
	}
	return e;
}

/* ---- estimates ------------------------------------------------------------------------------- */

static double amount_of_file(const struct comparison *c, const struct compare_file *file)
{
	double cpu = (double)file->cpu_ns;

	switch (c->result.view) {
	case COMPARE_SECOND:
		return cpu / (double)file->duration_ns;
	case COMPARE_RUN:
		return cpu;
	case COMPARE_WORK:
		return cpu / c->options.work[file->side];
	default:
		return c->reference;
	}
}

static double pooled_amount(const struct comparison *c, enum compare_side side)
{
	const struct compare_side_sum *sum = &c->result.side[side];

	switch (c->result.view) {
	case COMPARE_SECOND:
		return (double)sum->cpu_ns / (double)sum->duration_ns;
	case COMPARE_RUN:
		return (double)sum->cpu_ns / (double)sum->files;
	case COMPARE_WORK:
		return (double)sum->cpu_ns / (double)sum->files / c->options.work[side];
	default:
		return c->reference;
	}
}

double comparison__tick_value(const struct comparison *c, size_t file)
{
	const struct compare_file *facts = &c->merged.files.data[file].facts;
	const struct series_side *side = &c->series.side[facts->side];

	if (!c->series.by_file)
		return c->amount[facts->side] / (double)side->unchanged_sum;
	for (size_t i = 0; i < side->slots; i++)
		if (side->file[i] == file)
			return amount_of_file(c, facts) / side->unchanged[i] / (double)side->slots;
	return 0;
}

/* Variance of ticks ÷ ticks in unchanged code, all files as one, if samples were independent. */
static double sampling_variance(const struct comparison *c, const struct quantity *q,
				enum compare_side which)
{
	double whole = (double)c->series.side[which].unchanged_sum, part = (double)q->sum[which];
	double ratio = part / whole, sample = (double)c->merged.sample_ticks;

	if (!q->sum[which])
		return 0.5 * sample * sample / (whole * whole); /* half a sample */
	part += ratio * ratio * whole - 2 * ratio * (double)q->unchanged[which];
	return sample * fmax(part, 0) / (whole * whole);
}

/*
 * The mean of the files and its variance, which is at least that of sampling: out of thousands of
 * functions, some have almost the same samples in a few files by chance.
 */
static struct estimate estimate_runs(const struct comparison *c, const struct quantity *q,
				     enum compare_side which)
{
	const struct series_side *side = &c->series.side[which];
	double sum = 0, squares = 0, files = (double)side->slots;

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < side->slots; i++) {
			const struct compare_file *file =
				&c->merged.files.data[side->file[i]].facts;
			double value = amount_of_file(c, file) * q->slots[which][i] /
				       side->unchanged[i];

			if (pass == 0)
				sum += value;
			else
				squares += pow(value - sum / files, 2);
		}
	return (struct estimate){sum / files,
				 fmax(squares / (files - 1) / files,
				      pow(c->amount[which], 2) * sampling_variance(c, q, which)),
				 files - 1};
}

/*
 * Ticks whose variance between runs is that of the whole times their share, because a part varies
 * more, relatively, than the whole. In the share view noise that all code has in common cancels
 * out; that of the function against the rest remains.
 */
static double noisy_ticks(const struct comparison *c, const struct quantity *q,
			  enum compare_side side)
{
	double unchanged = (double)q->unchanged[side];

	if (c->result.view != COMPARE_SHARE)
		return (double)q->sum[side];
	return (double)q->sum[side] -
	       unchanged * unchanged / (double)c->series.side[side].unchanged_sum;
}

struct spread {
	double mean, variance; /* of one value */
};

static struct spread spread_of(const double *values, size_t count)
{
	struct spread s = {0, 0};

	for (size_t i = 0; i < count; i++)
		s.mean += values[i] / (double)count;
	for (size_t i = 0; i < count; i++)
		s.variance += pow(values[i] - s.mean, 2) / (double)(count - 1);
	return s;
}

/* Sums slots by file of a side. */
static void sum_files(const struct series_side *side, const double *slots, double *sums)
{
	size_t file = 0;

	sums[0] = 0;
	for (size_t i = 0; i < side->slots; i++) {
		if (i && side->file[i] != side->file[i - 1])
			sums[++file] = 0;
		sums[file] += slots[i];
	}
}

/* Variance of functions' shares beyond that of sampling, relative to that of a noise of 1. */
static double share_noise(const struct comparison *c, enum compare_side which, const double *ticks,
			  double *part)
{
	const struct series_side *side = &c->series.side[which];
	double variance = 0, size = 0;

	for (size_t i = 1; i < c->series.count; i++) {
		const struct series_function *f = &c->series.functions[i];
		struct spread s;
		double samples = 0;

		if ((double)f->self[which] < NOISE_SHARE * (double)side->tick_sum)
			continue;
		sum_files(side, f->self_slots[which], part);
		for (size_t j = 0; j < side->files; j++) {
			part[j] /= ticks[j];
			samples += (double)c->merged.sample_ticks / ticks[j] / (double)side->files;
		}
		s = spread_of(part, side->files);
		variance += s.variance - s.mean * (1 - s.mean) * samples;
		size += s.mean * (1 - s.mean);
	}
	return size > 0 ? fmax(variance / size, 0) : 0;
}

int comparison__measure_noise(const struct comparison *c, enum compare_side which, double *noise)
{
	const struct series_side *side = &c->series.side[which];
	_cleanup_free_ double *ticks = calloc(2 * side->files + 1, sizeof(*ticks));
	double whole = 0, parts;
	struct spread s;
	size_t count = 0;

	if (!ticks)
		return -ENOMEM;
	sum_files(side, side->ticks, ticks);
	parts = share_noise(c, which, ticks, ticks + side->files);
	for (size_t i = 0; i < c->merged.files.count && c->result.view != COMPARE_SHARE; i++)
		if (c->merged.files.data[i].facts.side == which)
			ticks[count++] = amount_of_file(c, &c->merged.files.data[i].facts);
	if (count) {
		s = spread_of(ticks, count);
		whole = s.variance / (s.mean * s.mean);
	}
	*noise = sqrt(fmax(whole, parts));
	return 0;
}

/* All files of a side as one, with the assumed variance of runs. */
static struct estimate estimate_pooled(const struct comparison *c, const struct quantity *q,
				       enum compare_side which)
{
	const struct series_side *side = &c->series.side[which];
	double whole = (double)side->unchanged_sum;
	double ratio = (double)q->sum[which] / whole, amount = c->amount[which], of_runs;
	struct estimate e = ratio_variance(side, q->slots[which], ratio,
					   sampling_variance(c, q, which));

	e.value = amount * ratio;
	e.variance *= amount * amount;
	of_runs = pow(c->result.run_noise * amount / whole, 2) * noisy_ticks(c, q, which) *
		  (double)side->tick_sum / (double)side->files;
	e.freedom = pow(e.variance + of_runs, 2) /
		    (e.variance * e.variance / e.freedom + of_runs * of_runs / c->noise_freedom);
	if (isnan(e.freedom)) /* without any variance */
		e.freedom = INFINITY;
	e.variance += of_runs;
	return e;
}

static void set_relative(struct compare_test *t, double level)
{
	const struct estimate *o = &t->side[COMPARE_OLD], *n = &t->side[COMPARE_NEW];
	struct estimate logs;
	double half;

	t->has_relative = o->value > 0 && n->value > 0;
	if (!t->has_relative)
		return;
	logs = difference_of((struct estimate){0, o->variance / (o->value * o->value), o->freedom},
			     (struct estimate){0, n->variance / (n->value * n->value), n->freedom});
	t->relative_error = sqrt(logs.variance);
	half = t->relative_error * student_t(level, logs.freedom);
	t->relative = n->value / o->value - 1;
	t->relative_low = (t->relative + 1) * exp(-half) - 1;
	t->relative_high = (t->relative + 1) * exp(half) - 1;
}

static void make_test(const struct comparison *c, size_t number, bool is_self,
		      struct compare_test *t)
{
	const struct series_function *f = &c->series.functions[number];
	struct quantity q = quantity_of(f, is_self);
	double half;

	*t = (struct compare_test){.function = f->function, .is_self = is_self, .q = 1};
	for (int i = 0; i < COMPARE_SIDES; i++) {
		t->ticks[i] = q.sum[i];
		t->side[i] = c->series.by_file ? estimate_runs(c, &q, (enum compare_side)i)
					       : estimate_pooled(c, &q, (enum compare_side)i);
	}
	t->difference = difference_of(t->side[COMPARE_OLD], t->side[COMPARE_NEW]);
	t->p = p_of(t->difference);
	half = sqrt(t->difference.variance);
	if (half > 0)
		half *= student_t(c->result.level, t->difference.freedom);
	t->low = t->difference.value - half;
	t->high = t->difference.value + half;
	set_relative(t, c->result.level);
}

/* Elapsed time of the runs. It does not depend on samples, so it is not in the family of tests. */
static void set_elapsed(struct comparison *c)
{
	struct compare_test *t = &c->result.elapsed;

	*t = (struct compare_test){.function = COMPARE_WHOLE};
	for (int i = 0; i < COMPARE_SIDES; i++) {
		const struct series_side *side = &c->series.side[i];
		double sum = 0, squares = 0, files = (double)side->slots;

		for (size_t j = 0; j < side->slots; j++)
			sum += (double)c->merged.files.data[side->file[j]].facts.duration_ns;
		for (size_t j = 0; j < side->slots; j++)
			squares +=
				pow((double)c->merged.files.data[side->file[j]].facts.duration_ns -
					    sum / files,
				    2);
		t->side[i] = (struct estimate){sum / files, squares / (files - 1) / files,
					       files - 1};
	}
	t->difference = difference_of(t->side[COMPARE_OLD], t->side[COMPARE_NEW]);
	t->p = p_of(t->difference);
	set_relative(t, c->result.level);
}

/* ---- what the share view takes as unchanged -------------------------------------------------- */

static void set_amounts(struct comparison *c)
{
	for (int i = 0; i < COMPARE_SIDES; i++)
		c->amount[i] = pooled_amount(c, (enum compare_side)i);
}

struct own_code {
	size_t number; /* of the function, in series */
	double old, new, ratio, p;
};

DEFINE_ORDER(compare_ratios, struct own_code, ASCENDING(ratio) ?: ASCENDING(number));

/* The median of NEW ÷ OLD of own code, weighted by OLD. Sorts `codes`. */
static double median_ratio(struct own_code *codes, size_t count)
{
	double all = 0, sum = 0;

	qsort(codes, count, sizeof(*codes), compare_ratios);
	for (size_t i = 0; i < count; i++)
		all += codes[i].old;
	for (size_t i = 0; i < count; i++) {
		sum += codes[i].old;
		if (codes[i].old > 0 && 2 * sum >= all)
			return codes[i].ratio;
	}
	return 1;
}

/* Most of its difference remains relative to the median, which other functions may have caused. */
static bool is_its_own(const struct own_code *code, double median)
{
	return fabs(code->new - median * code->old) >= ITS_OWN * fabs(code->new - code->old);
}

/* There are enough samples. */
static bool is_testable(const struct comparison *c, const uint64_t ticks[COMPARE_SIDES])
{
	return ticks[COMPARE_OLD] + ticks[COMPARE_NEW] >= SERIES_TICKS_MIN * c->merged.sample_ticks;
}

/* *found: the function whose own code differs most, of those that do for certain; 0: none. */
static int find_most_changed(const struct comparison *c, size_t *found)
{
	double most = 0, median, level = c->result.level / (double)max_u64(c->series.count - 1, 1);
	_cleanup_free_ struct own_code *codes = calloc(c->series.count, sizeof(*codes));
	size_t count = 0;

	*found = 0;
	if (!codes)
		return -ENOMEM;
	for (size_t i = 1; i < c->series.count; i++) {
		const struct series_function *f = &c->series.functions[i];
		struct compare_test t;

		if (f->changed || !is_testable(c, f->self))
			continue;
		make_test(c, i, true, &t);
		codes[count] = (struct own_code){i, t.side[COMPARE_OLD].value,
						 t.side[COMPARE_NEW].value, INFINITY, t.p};
		if (codes[count].old > 0)
			codes[count].ratio = codes[count].new / codes[count].old;
		count++;
	}
	median = median_ratio(codes, count);
	for (size_t i = 0; i < count; i++) {
		double difference = fabs(codes[i].new - codes[i].old);

		if (codes[i].p < level && difference > most && is_its_own(&codes[i], median)) {
			most = difference;
			*found = codes[i].number;
		}
	}
	return 0;
}

static bool reference_holds(const struct series *s)
{
	return !any_of(s->side, COMPARE_SIDES, side,
		       (double)side->unchanged_sum < REFERENCE_MIN * (double)side->tick_sum);
}

static bool files_have_reference(const struct series *s)
{
	for (int i = 0; i < COMPARE_SIDES; i++)
		for (size_t j = 0; s->by_file && j < s->side[i].slots; j++)
			if (s->side[i].unchanged[j] <= 0)
				return false;
	return true;
}

static void set_reference(struct comparison *c)
{
	const struct series_side *old = &c->series.side[COMPARE_OLD];

	c->reference = (double)old->unchanged_sum / (double)old->tick_sum;
	set_amounts(c);
}

/*
 * If a function's share grows, all others shrink. So changed functions are taken out of the
 * denominator, one at a time, until the rest agrees; none, if less than half would be left.
 */
static int find_reference(struct comparison *c)
{
	size_t changed;
	int err = 0;

	set_reference(c);
	for (int i = 0; c->result.view == COMPARE_SHARE && i < CHANGED_MAX; i++) {
		err = find_most_changed(c, &changed);
		if (err || !changed)
			break;
		series__exclude(&c->series, changed);
		if (!reference_holds(&c->series) || !files_have_reference(&c->series)) {
			series__exclude_none(&c->series);
			set_reference(c);
			break;
		}
		err = series__count_unchanged(&c->series);
		if (err)
			return err;
		set_reference(c);
	}
	c->result.reference = c->reference;
	return err;
}

/* ---- all tests ------------------------------------------------------------------------------- */

/* Weight in the allowed false discoveries, by share of samples. */
static double weight_of_share(double share)
{
	return share < LARGE ? share : LARGE * LARGE / share;
}

/*
 * Weights follow the samples, so that many small functions do not hide a large one. Above LARGE
 * they fall again: there the same relative change is more standard errors.
 */
static double weight_of(const struct comparison *c, const struct compare_test *t)
{
	double all = (double)(c->series.side[0].tick_sum + c->series.side[1].tick_sum);
	double part = (double)(t->ticks[0] + t->ticks[1]);

	return weight_of_share(fmax(fmin(part, all - part), (double)c->merged.sample_ticks) / all);
}

/* A test of own code, or of a function that has hardly any callees. */
static bool is_own(const struct compare_test *t)
{
	return t->is_self || t->is_only;
}

/*
 * Each difference is in some own code. Totals get a small part, for changes of many small callees
 * together. In the share view the whole depends on own code, so it is one of these tests. All
 * weights add up to 1.
 */
static void share_out(struct comparison *c)
{
	struct compare_test *whole = &c->tests.data[0];
	double sum[2] = {0}, part[2] = {TOTAL_PART, 1 - TOTAL_PART};

	whole->weight = 0;
	if (c->result.view == COMPARE_SHARE && whole->difference.variance > 0)
		whole->weight = LARGE;
	sum[true] = whole->weight;
	for (size_t i = 1; i < c->tests.count; i++)
		sum[is_own(&c->tests.data[i])] += c->tests.data[i].weight;
	for (int own = 0; own < 2; own++)
		if (sum[own] <= 0)
			part[!own] = 1;
	for (size_t i = c->tests.count; i-- > 0;) {
		struct compare_test *t = &c->tests.data[i];
		int own = is_own(t) || i == 0;

		if (c->result.view != COMPARE_SHARE)
			t->weight *= 1 - WHOLE_PART;
		if (sum[own] > 0)
			t->weight *= part[own] / sum[own];
	}
	if (c->result.view != COMPARE_SHARE)
		whole->weight = c->tests.count > 1 ? WHOLE_PART : 1;
	c->own_scale = sum[true] > 0 ? part[true] / sum[true] : 0;
	if (c->result.view != COMPARE_SHARE)
		c->own_scale *= 1 - WHOLE_PART;
}

double comparison__level_of(const struct comparison *c, double share)
{
	return c->result.level * c->own_scale * weight_of_share(share);
}

static int add_test(struct comparison *c, size_t number, bool is_self)
{
	struct compare_test t;

	make_test(c, number, is_self, &t);
	t.weight = weight_of(c, &t);
	(is_self ? c->self_test : c->total_test)[number] = (uint32_t)c->tests.count;
	return vec_push(&c->tests, t);
}

static int add_tests(struct comparison *c)
{
	int err = add_test(c, 0, false);

	for (size_t i = 1; i < c->series.count && !err; i++) {
		const struct series_function *f = &c->series.functions[i];
		double self = (double)(f->self[0] + f->self[1]);

		err = add_test(c, i, false);
		if (!err && self > SELF_MAX * (double)(f->total[0] + f->total[1]))
			c->tests.data[c->tests.count - 1].is_only = true;
		else if (!err && is_testable(c, f->self))
			err = add_test(c, i, true);
	}
	if (!err)
		share_out(c);
	return err;
}

int comparison__test(struct comparison *c)
{
	_cleanup_free_ double *p = NULL, *weight = NULL, *q = NULL;
	int err = find_reference(c);

	if (c->result.has_elapsed)
		set_elapsed(c);
	c->total_test = calloc(c->series.count, sizeof(*c->total_test));
	c->self_test = calloc(c->series.count, sizeof(*c->self_test));
	if (err || !c->total_test || !c->self_test)
		return -ENOMEM;
	err = add_tests(c);
	p = malloc((c->tests.count + 1) * sizeof(*p));
	weight = malloc((c->tests.count + 1) * sizeof(*weight));
	q = malloc((c->tests.count + 1) * sizeof(*q));
	if (err || !p || !weight || !q)
		return -ENOMEM;
	for (size_t i = 0; i < c->tests.count; i++) {
		p[i] = c->tests.data[i].p;
		weight[i] = c->tests.data[i].weight;
	}
	err = false_discovery_rates(p, weight, q, c->tests.count);
	for (size_t i = 0; i < c->tests.count && !err; i++) {
		c->tests.data[i].q = q[i];
		c->tests.data[i].found = q[i] <= c->result.level;
	}
	return err;
}
