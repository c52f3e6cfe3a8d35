/* SPDX-License-Identifier: BSD-2-Clause */
#include "compare/verdicts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/order.h"
#include "compare/comparison.h"

#define FOUND_MAX 256	    /* compared functions: those that differ most */
#define COVERS	  (2.0 / 3) /* of a difference: it is the same one */
#define PART	  (1.0 / 3) /* of a difference: the rest may be noise */
#define MAKES_UP  0.7	    /* of a difference, in the other direction: compensates it */
#define NOISE                                                                                      \
	1.5 /* half intervals: the part of a difference not in callees may be so large by chance */
#define UNCHANGED                                                                                  \
	0.5 /* of a difference: a caller that has less of it for certain does not have it */
#define CLIMB_MAX 1024 /* callers that are checked */

/* A function with a significant difference. */
struct found {
	uint32_t number, function; /* in series; of its name */
	const struct compare_test *test;
	bool is_caller, is_part; /* it is a callee's difference, or part of a caller's */
	size_t callee;		 /* of a caller */
	uint32_t node;
};

struct judging {
	struct comparison *c;
	const struct merged_node *nodes;
	size_t node_count;
	double *total, *own;	     /* differences by node */
	double *old_total, *old_own; /* OLD's values by node */
	struct found *found;
	size_t count;
	uint32_t *found_of; /* by function: its number in `found`, plus 1 */
	double *cover;	    /* [a * count + b]: the difference of b below a … */
	double *nearest;    /* … without differences below another found function in between */
	double *below;	    /* by node: the judged function's difference in it */
};

/* ---- differences by node --------------------------------------------------------------------- */

static int find_node_differences(struct judging *j)
{
	const struct series *s = &j->c->series;

	j->total = calloc(j->node_count, sizeof(*j->total));
	j->own = calloc(j->node_count, sizeof(*j->own));
	j->old_total = calloc(j->node_count, sizeof(*j->old_total));
	j->old_own = calloc(j->node_count, sizeof(*j->old_own));
	j->below = calloc(j->node_count, sizeof(*j->below));
	if (!j->total || !j->own || !j->old_total || !j->old_own || !j->below)
		return -ENOMEM;
	for (int side = 0; side < COMPARE_SIDES; side++) {
		double scale = j->c->amount[side] / (double)s->side[side].unchanged_sum;

		for (size_t i = 0; i < j->node_count; i++) {
			double value = scale * (double)s->node_ticks[side][i];

			j->total[i] += side == COMPARE_OLD ? -value : value;
			j->old_total[i] = side == COMPARE_OLD ? value : j->old_total[i];
		}
	}
	memcpy(j->own, j->total, j->node_count * sizeof(*j->own));
	memcpy(j->old_own, j->old_total, j->node_count * sizeof(*j->old_own));
	for (size_t i = 1; i < j->node_count; i++) {
		j->own[j->nodes[i].parent] -= j->total[i];
		j->old_own[j->nodes[i].parent] -= j->old_total[i];
	}
	return 0;
}

/* ---- significant differences ----------------------------------------------------------------- */

static double size_of(const struct found *f)
{
	return fabs(f->test->difference.value);
}

DEFINE_ORDER(compare_found, struct found, order_of(size_of(y), size_of(x)) ?: ASCENDING(function));

/* A function's test of the total is preferred. */
static int collect_found(struct judging *j)
{
	const struct comparison *c = j->c;

	j->found = calloc(c->series.count, sizeof(*j->found));
	j->found_of = calloc(c->series.name_count + 1, sizeof(*j->found_of));
	if (!j->found || !j->found_of)
		return -ENOMEM;
	for (uint32_t i = 1; i < c->series.count; i++) {
		const struct compare_test *total = &c->tests.data[c->total_test[i]];
		const struct compare_test *self = &c->tests.data[c->self_test[i]];
		struct found f = {.number = i, .function = c->series.functions[i].function};

		if (total->found)
			f.test = total;
		else if (c->self_test[i] && self->found)
			f.test = self;
		if (f.test)
			j->found[j->count++] = f;
	}
	qsort(j->found, j->count, sizeof(*j->found), compare_found);
	if (j->count > FOUND_MAX)
		j->count = FOUND_MAX;
	for (uint32_t i = 0; i < j->count; i++)
		j->found_of[j->found[i].function] = i + 1;
	return 0;
}

static uint32_t found_at(const struct judging *j, uint32_t node)
{
	return node == MERGED_ROOT ? 0 : j->found_of[j->nodes[node].function];
}

/* Adds a node's difference to the functions above it, each once, up to its own function. */
static void cover_callers(struct judging *j, uint32_t node, uint32_t b, uint32_t *stamp)
{
	double difference = j->found[b].test->is_self ? j->own[node] : j->total[node];
	uint32_t at = j->nodes[node].parent;
	bool is_nearest = true;

	for (int i = 0; at != MERGED_ROOT && i < CLIMB_MAX; i++, at = j->nodes[at].parent) {
		uint32_t a = found_at(j, at);

		if (a == b + 1 && !j->found[b].test->is_self)
			return;
		if (!a || stamp[a - 1] == node)
			continue;
		stamp[a - 1] = node;
		j->cover[(a - 1) * j->count + b] += difference;
		if (is_nearest && a != b + 1)
			j->nearest[(a - 1) * j->count + b] += difference;
		is_nearest &= a == b + 1;
	}
}

static int find_covers(struct judging *j)
{
	_cleanup_free_ uint32_t *stamp = calloc(j->count + 1, sizeof(*stamp));

	j->cover = calloc(j->count * j->count + 1, sizeof(*j->cover));
	j->nearest = calloc(j->count * j->count + 1, sizeof(*j->nearest));
	if (!stamp || !j->cover || !j->nearest)
		return -ENOMEM;
	for (uint32_t i = 1; i < j->node_count; i++)
		if (found_at(j, i))
			cover_callers(j, i, found_at(j, i) - 1, stamp);
	return 0;
}

/* `part` is most of `whole`, in the same direction. */
static bool is_most(double part, double whole)
{
	return part * whole > 0 && fabs(part) >= COVERS * fabs(whole);
}

static bool is_doubtful(const struct judging *j, size_t a)
{
	return compare_test__is_doubtful(j->found[a].test, &j->c->result);
}

/* The difference of a function, but not more than the whole's: the rest has moved there. */
static double kept_difference(const struct judging *j, size_t a)
{
	double own = j->found[a].test->difference.value, all = j->total[MERGED_ROOT];

	return j->c->result.view != COMPARE_SHARE && own * all > 0 && fabs(all) < fabs(own) ? all
											    : own;
}

static bool covers(const struct judging *j, size_t a, size_t b)
{
	return is_most(j->cover[a * j->count + b], kept_difference(j, a));
}

/* Follows callees to the function that has the difference of `at`. */
static size_t origin_of(const struct judging *j, size_t at)
{
	while (j->found[at].is_caller)
		at = j->found[at].callee;
	return at;
}

/*
 * The difference of `a` may be that of `b`. Of two that call each other the first counts as the
 * callee, so one of a cycle is left. A doubtful difference explains only doubtful ones.
 */
static bool may_explain(const struct judging *j, size_t a, size_t b)
{
	return a != b && !(a < b && covers(j, b, a)) && origin_of(j, b) != a &&
	       (!is_doubtful(j, b) || is_doubtful(j, a));
}

/* Callees together have the difference, except for a rest within the caller's noise. */
static bool is_explained(const struct judging *j, size_t a, size_t *callee)
{
	const struct compare_test *t = j->found[a].test;
	double whole = kept_difference(j, a), part = 0, most = 0;

	for (size_t b = 0; b < j->count; b++) {
		double below = j->nearest[a * j->count + b];

		if (!may_explain(j, a, b))
			continue;
		part += below;
		if (below * whole > most) {
			most = below * whole;
			*callee = b;
		}
	}
	return most > 0 &&
	       (is_most(part, whole) || (part * whole > 0 && fabs(part) >= PART * fabs(whole) &&
					 fabs(whole - part) <= NOISE * (t->high - t->low) / 2));
}

static bool find_callee(const struct judging *j, size_t a, size_t *callee)
{
	if (j->found[a].test->is_self)
		return false;
	for (size_t b = 0; b < j->count; b++)
		if (covers(j, a, b) && may_explain(j, a, b)) {
			*callee = b;
			return true;
		}
	return is_explained(j, a, callee);
}

/* Most of the difference of `b` is below row `a`, and a small part of it. Own code has no parts. */
static bool is_part_of(const struct judging *j, size_t b, size_t a)
{
	const struct found *row = &j->found[a], *part = &j->found[b];

	return a != b && !row->is_caller && !row->test->is_self &&
	       row->test->difference.value * part->test->difference.value > 0 &&
	       is_most(j->cover[a * j->count + b], part->test->difference.value) &&
	       size_of(part) < PART * size_of(row);
}

static void find_callers(struct judging *j)
{
	for (size_t a = 0; a < j->count; a++)
		j->found[a].is_caller = find_callee(j, a, &j->found[a].callee);
	for (size_t b = 0; b < j->count; b++)
		for (size_t a = 0; a < j->count; a++)
			j->found[b].is_part |= is_part_of(j, b, a);
}

/* ---- moved ----------------------------------------------------------------------------------- */

/* The node of a function with most of its difference. */
static uint32_t place_of(const struct judging *j, const struct found *f)
{
	const double *difference = f->test->is_self ? j->own : j->total;
	double sign = f->test->difference.value < 0 ? -1 : 1, most = -INFINITY;
	uint32_t place = MERGED_ROOT;

	for (uint32_t i = 1; i < j->node_count; i++) {
		if (j->nodes[i].function != f->function ||
		    (!f->test->is_self && !j->c->series.outermost[i]))
			continue;
		if (sign * difference[i] > most) {
			most = sign * difference[i];
			place = i;
		}
	}
	return place;
}

/* A difference that may have moved. */
struct suspect {
	double difference;
	double others; /* factor by which all else changes because of it */
};

/*
 * In the share view, if a function rises but is not certain enough to be taken out of the
 * denominator, all else falls: that does not compensate it.
 */
static struct suspect suspect(const struct judging *j, double old, double difference)
{
	struct suspect s = {difference, 1};
	double rest = j->old_total[MERGED_ROOT] - old;
	double new_rest = rest + j->total[MERGED_ROOT] - difference;

	if (j->c->result.view == COMPARE_SHARE && rest > 0 && new_rest > 0)
		s.others = new_rest / rest;
	return s;
}

/* How much of a found difference compensates the suspect's. */
static double made_up(const struct suspect *s, double old, double difference)
{
	double beyond = difference - old * (s->others - 1);

	return difference * s->difference < 0 && beyond * s->difference < 0 ? fabs(beyond) : 0;
}

/* Significant by itself: chance findings must not turn slower into moved. */
static bool is_firm(const struct judging *j, const struct compare_test *t)
{
	return t->p <= j->c->result.level * t->weight;
}

static bool is_enough(const struct suspect *s, double sum)
{
	return sum >= MAKES_UP * fmin(s->others, 1) * fabs(s->difference);
}

/* Sum of found differences of a node's callees, except `but`, opposite to the suspect's. */
static double made_up_below(const struct judging *j, uint32_t parent, uint32_t but,
			    const struct suspect *suspect)
{
	const struct series *s = &j->c->series;
	double sum = 0;

	for (uint32_t i = s->first_child[parent]; i != MERGED_ROOT; i = s->next_sibling[i])
		if (i != but && found_at(j, i) && is_firm(j, j->found[found_at(j, i) - 1].test))
			sum += made_up(suspect, j->old_total[i], j->total[i]);
	return sum;
}

/* The same of a node's own code, if its function's difference was found. */
static double made_up_by(const struct judging *j, uint32_t node, const struct suspect *suspect)
{
	const struct comparison *c = j->c;
	uint32_t number = node == MERGED_ROOT ? 0 : c->series.number_of[j->nodes[node].function];
	const struct compare_test *t;

	if (!number)
		return 0;
	t = &c->tests.data[c->self_test[number] ? c->self_test[number] : c->total_test[number]];
	return t->found && is_firm(j, t) ? made_up(suspect, j->old_own[node], j->own[node]) : 0;
}

/* The test's difference is certainly small against `difference`. */
static bool is_unchanged(const struct compare_test *t, double difference)
{
	return fmax(fabs(t->low), fabs(t->high)) < UNCHANGED * fabs(difference);
}

static bool is_own_made_up(const struct judging *j, const struct found *f)
{
	const struct suspect s = suspect(j, f->test->side[COMPARE_OLD].value,
					 f->test->difference.value);
	double sum = 0;

	for (uint32_t i = 1; i < j->node_count; i++)
		if (j->nodes[i].function == f->function)
			sum += made_up_below(j, i, MERGED_ROOT, &s);
	return is_enough(&s, sum);
}

/* Compensated next to the node, or next to a caller with the same difference. */
static bool is_node_made_up(const struct judging *j, uint32_t at)
{
	const struct suspect s = suspect(j, j->old_total[at], j->total[at]);
	uint32_t parent;

	for (int i = 0; i < CLIMB_MAX && at != MERGED_ROOT && is_most(j->total[at], s.difference) &&
			is_most(s.difference, j->total[at]);
	     i++, at = parent) {
		parent = j->nodes[at].parent;
		if (is_enough(&s, made_up_below(j, parent, at, &s) + made_up_by(j, parent, &s)))
			return true;
	}
	return false;
}

/* Most of a function's difference is compensated where it is. */
static bool is_made_up(const struct judging *j, const struct found *f)
{
	double difference = f->test->difference.value, sum = 0;

	if (f->test->is_self)
		return is_own_made_up(j, f);
	for (uint32_t i = 1; i < j->node_count; i++)
		if (j->nodes[i].function == f->function && j->c->series.outermost[i] &&
		    j->total[i] * difference > 0 && is_node_made_up(j, i))
			sum += j->total[i];
	return fabs(sum) >= MAKES_UP * fabs(difference);
}

/* The rest of a caller changes like all else, so the caller may change less than the suspect. */
static bool is_caller_unchanged(const struct compare_test *caller, const struct suspect *s,
				double old)
{
	double rest = caller->side[COMPARE_OLD].value - old;
	double expected = s->difference + rest * (s->others - 1);

	return expected * s->difference > 0 && fabs(expected) >= UNCHANGED * fabs(s->difference) &&
	       is_unchanged(caller, expected);
}

/* A node comes after its parent. */
static void sum_below(const struct judging *j, uint32_t function)
{
	memset(j->below, 0, j->node_count * sizeof(*j->below));
	for (size_t i = j->node_count - 1; i > 0; i--) {
		if (j->nodes[i].function == function && j->c->series.outermost[i])
			j->below[i] = j->total[i];
		j->below[j->nodes[i].parent] += j->below[i];
	}
}

/* A caller does not have it. Most of the difference must be below that caller. */
static bool is_unchanged_above(const struct judging *j, const struct found *f)
{
	const struct comparison *c = j->c;
	double old = f->test->side[COMPARE_OLD].value;
	const struct suspect s = suspect(j, old, f->test->difference.value);
	uint32_t at = j->nodes[f->node].parent;

	if (f->test->is_self)
		return is_caller_unchanged(&c->tests.data[c->total_test[f->number]], &s, old);
	sum_below(j, f->function);
	for (int i = 0; at != MERGED_ROOT && i < CLIMB_MAX; i++, at = j->nodes[at].parent) {
		uint32_t number = c->series.number_of[j->nodes[at].function];
		const struct compare_test *t = &c->tests.data[c->total_test[number]];

		if (number && t->function != f->function && is_most(j->below[at], s.difference) &&
		    is_caller_unchanged(t, &s, old))
			return true;
	}
	return false;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static enum compare_verdict verdict_of(const struct judging *j, const struct found *f)
{
	const struct compare_test *t = f->test;

	if (compare_test__is_doubtful(t, &j->c->result))
		return COMPARE_IS_UNCLEAR;
	if (is_made_up(j, f) || is_unchanged_above(j, f))
		return COMPARE_IS_MOVED;
	if (!t->ticks[COMPARE_OLD])
		return COMPARE_IS_NEW;
	if (!t->ticks[COMPARE_NEW])
		return COMPARE_IS_GONE;
	return t->difference.value > 0 ? COMPARE_IS_SLOWER : COMPARE_IS_FASTER;
}

/* `found` is sorted by size; moved ones go to the end. */
static int add_rows(struct judging *j)
{
	struct comparison *c = j->c;
	int err = 0;

	for (int moved = 0; moved < 2; moved++)
		for (size_t i = 0; i < j->count && !err; i++) {
			struct found *f = &j->found[i];
			struct compare_row row;

			if (f->is_caller || f->is_part)
				continue;
			f->node = f->node ? f->node : place_of(j, f);
			row = (struct compare_row){(uint32_t)(f->test - c->tests.data),
						   verdict_of(j, f), f->node};
			if ((row.verdict == COMPARE_IS_MOVED) == moved)
				err = vec_push(&c->rows, row);
		}
	return err;
}

int comparison__judge(struct comparison *c)
{
	struct judging j = {
		.c = c, .nodes = c->merged.nodes.data, .node_count = c->merged.nodes.count};
	int err = find_node_differences(&j) ?: collect_found(&j) ?: find_covers(&j);

	if (!err) {
		find_callers(&j);
		err = add_rows(&j);
	}
	free(j.total);
	free(j.own);
	free(j.old_total);
	free(j.old_own);
	free(j.below);
	free(j.found);
	free(j.found_of);
	free(j.cover);
	free(j.nearest);
	return err;
}
