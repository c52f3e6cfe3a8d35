/* SPDX-License-Identifier: BSD-2-Clause */

#include "formats/out/report_rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/order.h"
#include "base/vec.h"
#include "formats/out/report_code.h"

#define Z 1.959963984540054 /* 97.5 % of a normal distribution is below */

struct counting {
	struct report_code code;
	VEC(uint32_t) stamps; /* by row: the last stack that counted it */
};

DEFINE_ORDER(compare_rows, struct report_row, DESCENDING(self) ?: DESCENDING(total) ?: DESCENDING(cpu) ?: report_row__compare_texts(x, y));

/* ---- code ------------------------------------------------------------------------------------ */

static int find_row(struct counting *c, const struct profile_location *location, uint32_t line,
		    uint32_t *row)
{
	int err = report_code__row(&c->code, location, line, row);

	return !err && !vec_at(&c->stamps, *row) ? -ENOMEM : err;
}

static int count_stack(struct counting *c, uint32_t stack, uint64_t samples, double square)
{
	const struct profile *p = c->code.p;
	bool leaf = true;

	for (uint32_t at = stack; at; at = p->stacks[at].parent.v) {
		const struct profile_location *location = &p->locations[p->stacks[at].location.v];

		for (uint32_t i = 0; i < location->line_count; i++) {
			uint32_t row;
			int err = find_row(c, location, location->first_line + i, &row);

			if (err)
				return err;
			if (leaf) {
				c->code.rows.data[row].self += samples;
				c->code.rows.data[row].self_square += square;
			}
			leaf = false;
			if (c->stamps.data[row] == stack)
				continue;
			c->stamps.data[row] = stack;
			c->code.rows.data[row].total += samples;
			c->code.rows.data[row].total_square += square;
		}
	}
	return 0;
}

void add_squares(const struct profile *p, double *squares)
{
	for (size_t i = 1; i < p->thread_count; i++) {
		const struct profile_samples *samples = &p->threads[i].samples[SAMPLE_CPU];

		for (size_t k = 0; k < samples->count; k++)
			squares[samples->stack[k].v] += profile_samples__square(samples, k);
	}
}

static int count_code(struct counting *c)
{
	const struct profile *p = c->code.p;
	_cleanup_free_ uint64_t *hits = calloc(p->stack_count + 1, sizeof(*hits));
	_cleanup_free_ double *squares = calloc(p->stack_count + 1, sizeof(*squares));
	int err = 0;

	if (!hits || !squares)
		return -ENOMEM;
	profile__count_stacks(p, hits);
	add_squares(p, squares);
	for (uint32_t i = 1; i < p->stack_count && !err; i++)
		if (hits[i])
			err = count_stack(c, i, hits[i], squares[i]);
	return err;
}

static int code_rows(const struct profile *p, enum report_by by, struct report_row **rows,
		     size_t *count)
{
	struct counting c = {};
	int err = report_code__init(&c.code, p, by) ?: count_code(&c);

	if (!err) {
		*count = c.code.rows.count;
		*rows = steal_ptr(c.code.rows.data);
	}
	report_code__fini(&c.code);
	vec_free(&c.stamps);
	return err;
}

/* ---- threads, processes and what they belong to ---------------------------------------------- */

static struct string_id name_of(const struct profile_names *names, enum report_by by)
{
	switch (by) {
	case REPORT_SERVICE:
		return names->service;
	case REPORT_CONTAINER:
		return names->container_id.v ? names->container_id : names->container;
	case REPORT_UNIT:
		return names->unit;
	default:
		return names->user;
	}
}

static struct report_row name_row(const struct profile *p, enum report_by by,
				  const struct profile_names *names)
{
	static const char *const none[REPORT_BY_COUNT] = {
		[REPORT_SERVICE] = "[no service]",
		[REPORT_CONTAINER] = "[no container]",
		[REPORT_UNIT] = "[no unit]",
		[REPORT_USER] = "[no user]",
	};
	struct string_id name = name_of(names, by);
	struct report_row row = {.name = name.v ? profile__string(p, name) : none[by],
				 .is_none = !name.v};

	if (by != REPORT_CONTAINER)
		return row;
	if (names->container_id.v)
		row.place = profile__string(p, names->container_id);
	if (names->container.v)
		row.name = profile__string(p, names->container);
	return row;
}

struct report_row report_task(const struct profile *p, enum report_by by, uint32_t thread)
{
	const struct profile_thread *t = &p->threads[thread];
	const struct profile_process *process = &p->processes[t->process.v];

	if (report_by_names(by))
		return name_row(p, by, &process->names);
	if (by == REPORT_PROCESS)
		return (struct report_row){.name = profile__string(p, process->name),
					   .pid = process->pid};
	return (struct report_row){
		.name = profile__string(p, t->name),
		.place = profile__string(p, process->name),
		.pid = process->pid,
		.tid = t->tid,
	};
}

int report_task_numbers(const struct profile *p, enum report_by by, uint32_t **numbers)
{
	_cleanup_free_ uint32_t *first = calloc(p->string_count + 1, sizeof(*first));
	uint32_t *list = calloc(p->thread_count + 1, sizeof(*list));

	if (!first || !list) {
		free(list);
		return -ENOMEM;
	}
	for (uint32_t i = 1; i < p->thread_count; i++) {
		uint32_t process = p->threads[i].process.v;

		list[i] = by == REPORT_THREAD ? i : process;
		if (report_by_names(by)) {
			uint32_t *of = &first[name_of(&p->processes[process].names, by).v];

			*of = *of ? *of : process;
			list[i] = *of;
		}
	}
	*numbers = list;
	return 0;
}

double samples_square(const struct profile_samples *samples)
{
	double square = 0;

	for (size_t i = 0; i < samples->count; i++)
		square += profile_samples__square(samples, i);
	return square;
}

static int task_rows(const struct profile *p, enum report_by by, struct report_row **rows,
		     size_t *count)
{
	size_t most = p->process_count > p->thread_count ? p->process_count : p->thread_count;
	struct report_row *list = calloc(most + 1, sizeof(*list));
	_cleanup_free_ bool *seen = calloc(p->process_count + 1, sizeof(*seen));
	_cleanup_free_ uint32_t *numbers = NULL;

	if (!list || !seen || report_task_numbers(p, by, &numbers)) {
		free(list);
		return -ENOMEM;
	}
	for (uint32_t i = 1; i < p->thread_count; i++) {
		const struct profile_thread *thread = &p->threads[i];
		struct report_row *row = &list[numbers[i]];

		if (!row->name)
			*row = report_task(p, by, i);
		row->self += thread->samples[SAMPLE_CPU].event_sum;
		row->self_square += samples_square(&thread->samples[SAMPLE_CPU]);
		row->total = row->self;
		row->cpu += profile_thread__cpu(thread);
		if (!thread->samples[SAMPLE_CPU].count)
			continue;
		row->threads++;
		row->processes += !seen[thread->process.v];
		seen[thread->process.v] = true;
	}
	*count = 0;
	for (size_t i = 1; i < most; i++)
		if (list[i].self)
			list[(*count)++] = list[i];
	*rows = list;
	return 0;
}

int report_rows(const struct profile *p, enum report_by by, struct report_row **rows, size_t *count)
{
	int err = report_by_tasks(by) ? task_rows(p, by, rows, count)
				      : code_rows(p, by, rows, count);

	if (!err && *count)
		qsort(*rows, *count, sizeof(**rows), compare_rows);
	return err;
}

/* ---- how far a share can be trusted ---------------------------------------------------------- */

/* The number of equal samples whose share would be as exact. */
static double equal_samples(const struct profile *profile, double p, double square)
{
	double whole = (double)profile->event_count, q = 1 - p;
	double variance = q * q * square + p * p * (profile->event_squares - square);

	if (!profile->event.v)
		return whole;
	if (p <= 0 || p >= 1 || variance <= 0)
		return whole * whole / profile->event_squares;
	return p * q * whole * whole / variance;
}

/* Not share ± 2 σ: it is empty for few samples, where readers need it most, and goes below 0. */
struct interval share_interval(const struct profile *profile, uint64_t part, double square)
{
	uint64_t whole = profile->event_count;
	double n, p, scale, middle, half;
	struct interval interval;

	if (!whole)
		return (struct interval){0, 1};
	p = (double)part / (double)whole;
	n = equal_samples(profile, p, square);
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
