/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/profile_merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clocks.h"
#include "base/minmax.h"
#include "profile/profile_merge_blocks.h"
#include "profile/profile_merge_facts.h"
#include "profile/profile_merge_finish.h"
#include "profile/profile_merge_lives.h"
#include "profile/profile_merge_private.h"

#define WINDOWS_START NS_PER_SECOND /* of their time axis */

struct profile_merge *profile_merge__new(void)
{
	struct profile_merge *m = calloc(1, sizeof(*m));

	if (m)
		m->builder = profile_builder__new();
	if (m && (!m->builder || vec_push(&m->processes, (struct merged_life){}) ||
		  vec_push(&m->threads, (struct merged_life){}))) {
		profile_merge__free(m);
		return NULL;
	}
	if (!m)
		return NULL;
	/* as the profiles have their facts, and have judged their names */
	profile_builder__session(m->builder)->arguments = true;
	profile_builder__session(m->builder)->has_only_names = true;
	return m;
}

static void clock_identity__fini(struct clock_identity *identity)
{
	free(identity->boot);
	free(identity->host);
	free(identity->kernel);
}

void profile_merge__free(struct profile_merge *m)
{
	if (!m)
		return;
	profile_builder__free(m->builder);
	copied_code__fini(&m->code);
	vec_free_with(&m->clocks, clock, clock_identity__fini(&clock->identity));
	merged_lives__fini(m);
	vec_free(&m->sessions);
	vec_free(&m->rows_of);
	vec_free(&m->lost);
	vec_free(&m->epochs);
	vec_free(&m->outside);
	vec_free(&m->markers);
	vec_free(&m->recorders);
	vec_free_with(&m->names, name, free(*name));
	vec_free(&m->jit_of);
	vec_free(&m->gil_of);
	free(m);
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/* Older recordings have no boot id: there, one host that was booted at one time. */
static bool same_clock(const struct clock_identity *a, const struct clock_identity *b)
{
	if (a->boot && b->boot)
		return !strcmp(a->boot, b->boot);
	return same_text(a->host, b->host) && same_text(a->kernel, b->kernel) && a->zero &&
	       b->zero && max_u64(a->zero, b->zero) - min_u64(a->zero, b->zero) < NS_PER_SECOND;
}

static int copy_meta(const struct profile *p, const char *key, char **text)
{
	const char *value = profile__meta(p, key);

	*text = value && *value ? strdup(value) : NULL;
	return value && *value && !*text ? -ENOMEM : 0;
}

static int identify_clock(const struct profile *p, struct clock_identity *identity)
{
	*identity = (struct clock_identity){
		.zero = p->start_realtime > p->start ? p->start_realtime - p->start : 0};
	return copy_meta(p, META_BOOT_ID, &identity->boot)
		       ?: copy_meta(p, META_HOSTNAME, &identity->host)
		       ?: copy_meta(p, META_KERNEL_RELEASE, &identity->kernel);
}

/* Times that are made up belong to no clock. Takes the identity. */
static int find_clock(struct profile_merge *m, const struct profile *p,
		      struct clock_identity *identity, uint32_t *number)
{
	struct merged_clock clock = {
		.identity = *identity,
		.start = p->start,
		.end = p->end,
		.realtime = p->start_realtime,
	};
	int err;

	for (uint32_t i = 0; i < m->clocks.count && !p->untimed; i++) {
		if (!same_clock(&m->clocks.data[i].identity, identity))
			continue;
		*number = i;
		return 0;
	}
	if (p->untimed) {
		clock_identity__fini(&clock.identity);
		clock.identity = *identity = (struct clock_identity){};
	}
	err = vec_push(&m->clocks, clock);
	if (err)
		return err;
	*identity = (struct clock_identity){};
	*number = (uint32_t)m->clocks.count - 1;
	return 0;
}

static int need_clock(struct merging *a)
{
	struct clock_identity identity;
	struct merged_clock *clock;
	int err = identify_clock(a->p, &identity);

	if (!err)
		err = find_clock(a->m, a->p, &identity, &a->clock);
	clock_identity__fini(&identity);
	if (err)
		return err;
	clock = &a->m->clocks.data[a->clock];
	if (a->p->start < clock->start) {
		clock->start = a->p->start;
		clock->realtime = a->p->start_realtime;
	}
	clock->end = max_u64(clock->end, a->p->end);
	return vec_push(&a->m->sessions,
			(struct merged_session){a->clock, a->p->start, a->p->end, 0});
}

/* The axis of all windows, which begins with the first one. */
static uint64_t window_start(const struct merging *a)
{
	uint64_t start = a->window->start, from = a->m->windows_from;

	return WINDOWS_START + (start > from ? start - from : 0);
}

static int need_window_clock(struct merging *a)
{
	struct profile_merge *m = a->m;
	struct merged_clock axis = {.start = WINDOWS_START, .realtime = a->window->start};
	uint64_t start;

	if (!m->clocks.count && vec_push(&m->clocks, axis))
		return -ENOMEM;
	if (!m->windows)
		m->windows_from = a->window->start;
	m->windows += !a->window->is_more || !m->windows;
	m->window_length = max_u64(m->window_length, a->window->length);
	start = window_start(a);
	m->clocks.data[0].end = max_u64(m->clocks.data[0].end, start + a->window->length);
	return vec_push(&m->sessions,
			(struct merged_session){0, start, start + a->window->length, 0});
}

/* ---- samples --------------------------------------------------------------------------------- */

/* The time of a row; those of a window are spread over it. */
static uint64_t row_time(const struct merging *a, const struct profile_samples *rows, size_t i)
{
	return a->window ? window_start(a) + (uint64_t)((double)a->window->length *
							((double)(i + 1) / (double)rows->count))
			 : rows->time[i];
}

/* The builder takes rows in time order: their times are set afterwards. */
static void set_times(struct merging *a, struct sample_columns *c, uint64_t time,
		      const struct profile_sample *row, uint32_t thread)
{
	size_t last = c->time.count - 1;

	if (last && time <= c->time.data[last - 1])
		a->m->threads.data[thread].is_unsorted = true;
	c->time.data[last] = time;
	if (row->kind != SAMPLE_WALL)
		return;
	c->since.data[last] = row->since;
	c->until.data[last] = row->until;
}

/* A column or a table that is added is copied here, or in profile_merge_facts.c. */
_Static_assert(sizeof(struct profile_samples) == 128 && sizeof(struct profile) == 920,
	       "known fields");

static void copy_row(struct merging *a, const struct profile_thread *t, uint32_t thread,
		     enum sample_kind kind, size_t i, enum stack_end end)
{
	const struct profile_samples *rows = &t->samples[kind];
	struct profile_builder *b = a->m->builder;
	struct profile_sample row = {
		.kind = kind,
		.time = row_time(a, rows, i),
		.weight = rows->weight[i],
		.ticks = profile_samples__ticks(rows, i),
		.events = profile_samples__events(rows, i),
		.exact = true,
		.stack = profile_copy__stack(&a->copy, rows->stack[i]),
		.comm = merged_name(a, t->process, rows->comm[i]),
		.end = end,
		.gil = profile_samples__gil(rows, i),
		.context = profile_samples__context(rows, i),
		.cpu = rows->cpu ? rows->cpu[i] : 0,
	};

	if (kind == SAMPLE_WALL) {
		row.state = rows->state[i];
		row.holder.v = a->threads[rows->holder[i].v];
		row.since = rows->since[i];
		row.until = rows->until[i];
	}
	a->m->rows += kind == SAMPLE_CPU;
	profile_builder__sample(b, (struct thread_id){thread}, &row);
	if (!b->error)
		set_times(a, &b->columns.data[thread].by_kind[kind], row.time, &row, thread);
}

static bool fits(uint64_t sum, uint64_t more)
{
	return sum <= PROFILE_TIME_MAX / 2 && more <= PROFILE_TIME_MAX / 2 - sum;
}

/* Sums that the builder, or a check of the profile, would cut. */
static int check_sums(const struct merging *a, const struct profile_thread *t, uint32_t thread)
{
	const struct profile_builder *b = a->m->builder;
	const struct profile_thread *known = &b->threads.data[thread];

	for (int kind = 0; kind < SAMPLE_KIND_COUNT; kind++) {
		const struct profile_samples *rows = &t->samples[kind];
		uint64_t sum = b->columns.data[thread].by_kind[kind].weight_sum;
		uint64_t more = kind == SAMPLE_CPU ? known->cpu_tail : 0;

		if (kind == SAMPLE_CPU && !fits(more, t->cpu_tail))
			return -EOVERFLOW;
		more += kind == SAMPLE_CPU ? t->cpu_tail : 0;
		for (size_t i = 0; i < rows->count; i++)
			more = saturating_add_u64(more, rows->weight[i]);
		if (!fits(sum, more))
			return -EOVERFLOW;
	}
	return fits(b->profile.sample_count, t->samples[SAMPLE_CPU].tick_sum) &&
			       fits(b->profile.event_count, t->samples[SAMPLE_CPU].event_sum) &&
			       fits(known->cpu_excess, t->cpu_excess) &&
			       fits(known->wall.until - known->wall.since,
				    t->wall.until - t->wall.since)
		       ? 0
		       : -EOVERFLOW;
}

static int check_visits(const struct merging *a)
{
	for (int i = 0; i < VISIT_LINE_COUNT; i++)
		if (!fits(a->m->builder->profile.visits.count[i] * VISIT_LINE_COUNT,
			  a->p->visits.count[i] * VISIT_LINE_COUNT))
			return -EOVERFLOW;
	return 0;
}

static void copy_rows(struct merging *a, const struct profile_thread *t, uint32_t thread)
{
	size_t cut = 0;

	for (int kind = 0; kind < SAMPLE_KIND_COUNT; kind++) {
		const struct profile_samples *rows = &t->samples[kind];

		for (size_t i = 0; i < rows->count && !a->m->builder->error; i++) {
			enum stack_end end = STACK_END_ROOT;

			if (kind == SAMPLE_CPU && cut < t->cut_count && t->cuts[cut].sample == i)
				end = t->cuts[cut++].end;
			copy_row(a, t, thread, (enum sample_kind)kind, i, end);
		}
	}
}

static size_t row_count(const struct profile_merge *m, uint32_t thread, int kind)
{
	return m->builder->columns.data[thread].by_kind[kind].time.count;
}

/* The account of both: as long as they are together. */
static void join_wall(struct profile_wall *known, const struct profile_wall *wall)
{
	uint64_t since = known->until ? min_u64(known->since, wall->since) : wall->since;
	uint64_t length = known->until - known->since + wall->until - wall->since;

	if (!wall->until)
		return;
	known->running += wall->running;
	known->runnable += wall->runnable;
	known->blocked += wall->blocked;
	known->unvisited += wall->unvisited;
	known->since = since;
	known->until = since + length;
}

static void copy_renames(struct merging *a, const struct profile_thread *t, uint32_t thread)
{
	for (size_t i = 0; i < t->rename_count; i++)
		profile_builder__thread_renamed(a->m->builder, (struct thread_id){thread},
						t->renames[i].time,
						profile_copy__string(&a->copy, t->renames[i].name));
}

/* Those that were added since `before`. */
static int note_rows(struct profile_merge *m, uint32_t thread, const size_t *before)
{
	struct merged_rows rows = {.thread = thread, .session = (uint32_t)m->sessions.count - 1};

	rows.since = m->sessions.data[rows.session].since;
	for (int kind = 0; kind < SAMPLE_KIND_COUNT; kind++)
		rows.rows[kind] = (struct row_span){before[kind], row_count(m, thread, kind)};
	return vec_push(&m->rows_of, rows);
}

/* Rows of windows have made-up times. */
static int merge_rows(struct merging *a, const struct profile_thread *t, uint32_t thread)
{
	size_t before[SAMPLE_KIND_COUNT];

	for (int kind = 0; kind < SAMPLE_KIND_COUNT; kind++)
		before[kind] = row_count(a->m, thread, kind);
	copy_rows(a, t, thread);
	return a->window ? 0 : note_rows(a->m, thread, before);
}

static int merge_samples(struct merging *a)
{
	int err = 0;

	for (uint32_t i = 1; i < a->p->thread_count && !err; i++) {
		const struct profile_thread *t = &a->p->threads[i];
		uint32_t id = a->threads[i];

		if (!id)
			continue;
		err = check_sums(a, t, id);
		if (err)
			return err;
		err = merge_rows(a, t, id);
		copy_renames(a, t, id);
		err = err ?: profile_builder__error(a->m->builder);
		a->m->builder->threads.data[id].cpu_tail += t->cpu_tail;
		a->m->builder->threads.data[id].cpu_excess += t->cpu_excess;
		join_wall(&a->m->builder->threads.data[id].wall, &t->wall);
	}
	return err;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int add_all(struct merging *a)
{
	int err = profile_copy__init(&a->copy, a->p, a->m->builder, &a->m->code);

	a->threads = calloc(a->p->thread_count + 1, sizeof(*a->threads));
	if (!err && !a->threads)
		err = -ENOMEM;
	if (a->window)
		a->service = profile_builder__string(a->m->builder, a->window->process);
	if (!err)
		err = a->window ? need_window_clock(a) : need_clock(a);
	err = err ?: check_visits(a) ?: merge_lives(a) ?: merge_samples(a) ?: merge_facts(a);
	if (!err)
		profile_copy__code(&a->copy);
	profile_copy__fini(&a->copy);
	free(a->threads);
	return err;
}

static int note_name(struct profile_merge *m, const char *name)
{
	char *copy = strdup(name);
	int err = copy ? vec_push(&m->names, copy) : -ENOMEM;

	if (err)
		free(copy);
	return err;
}

static int add(struct profile_merge *m, const char *name, const struct profile *p,
	       const struct merge_window *window, struct failure *failure)
{
	struct merging a = {.m = m, .name = name, .p = p, .window = window, .failure = failure};
	int err = check_units(&a);

	if (err)
		return err;
	m->sources++;
	err = (window ? 0 : note_name(m, name)) ?: add_all(&a);
	if (err == -EOVERFLOW)
		return fail(failure, err, "cannot add %s: the sums are too large", name);
	return err ? fail(failure, err, "cannot add %s: %s", name, strerror(-err)) : 0;
}

int profile_merge__add(struct profile_merge *m, const char *name, const struct profile *p,
		       struct failure *failure)
{
	return add(m, name, p, NULL, failure);
}

int profile_merge__add_window(struct profile_merge *m, const char *name, const struct profile *p,
			      const struct merge_window *window, struct failure *failure)
{
	struct merging a = {.m = m, .window = window};

	m->is_windows = true;
	if (p)
		return add(m, name, p, window, failure)
			       ?: (bound_rows(m) ? fail(failure, -ENOMEM,
							"cannot add %s: out of memory", name)
						 : 0);
	return need_window_clock(&a) ? fail(failure, -ENOMEM, "cannot add %s: out of memory", name)
				     : 0;
}

int profile_merge__finish(struct profile_merge *m, const struct profile **profile,
			  struct failure *failure)
{
	char why[256] = "";
	int err = place_profiles(m)
			  ?: profile_builder__finish(m->builder, profile, why, sizeof(why));

	return err ? fail(failure, err, "cannot make one profile of several: %s",
			  *why ? why : strerror(-err))
		   : 0;
}
