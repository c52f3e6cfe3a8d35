/* SPDX-License-Identifier: BSD-2-Clause */
#include "filter/filter_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"
#include "filter/filter_apply_private.h"
#include "filter/owners.h"
#include "profile/profile.h"

#define LINES_MAX FILTER_CLAUSES_MAX
#define NO_CPU	  (-1)

/* ---- verdicts -------------------------------------------------------------------------------- */

/* The line that drops all of a thread, or KEPT. */
static uint8_t judge_thread(const struct apply *a, const struct profile_thread *thread)
{
	const struct profile_filter *filter = a->filter;

	for (size_t i = 0;
	     i < filter->count && filter_kind_is_of_threads(filter->clauses[i].kind);) {
		size_t end = i + profile_filter__group(filter, i), first = i;
		bool wanted = false, is_choice = false, unwanted = false;

		for (; i < end; i++) {
			const struct filter_clause *clause = &filter->clauses[i];
			bool matches = owner_matches(clause, a->p, thread);

			is_choice = is_choice || !clause->drops;
			wanted = wanted || (matches && !clause->drops);
			unwanted = unwanted || (matches && clause->drops);
		}
		if (unwanted || (is_choice && !wanted))
			return a->line_of_clause[first];
	}
	return KEPT;
}

/* The slice that ends after this time; `slices.count`: there is none. */
static size_t slice_behind(const struct apply *a, uint64_t time)
{
	return partition_point(a->slices.data, a->slices.count, one, one->until <= time);
}

/* The first one that a time from `since` to `until` overlaps; NULL: there is none. */
static const struct slice_range *overlapping(const struct apply *a, uint64_t since, uint64_t until)
{
	size_t at = slice_behind(a, since);

	return at < a->slices.count && a->slices.data[at].from < until ? &a->slices.data[at] : NULL;
}

static bool is_in_slice(const struct apply *a, uint64_t time)
{
	size_t at = slice_behind(a, time);

	return at < a->slices.count && a->slices.data[at].from <= time;
}

/* In a slice, or between two of them. */
static bool is_on_axis(const struct apply *a, uint64_t time)
{
	return time >= a->slice.from && time < a->slice.until;
}

static bool has_cpu(const struct apply *a, int cpu)
{
	for (size_t i = 0; i < a->filter->count; i++) {
		const struct filter_clause *clause = &a->filter->clauses[i];
		size_t at = partition_point(clause->cpus, clause->cpu_count, one, (int)*one < cpu);

		if (at < clause->cpu_count && (int)clause->cpus[at] == cpu)
			return true;
	}
	return false;
}

static bool has_state(const struct apply *a, enum wall_state state)
{
	uint32_t states = 0;

	for (size_t i = 0; i < a->filter->count; i++)
		states |= a->filter->clauses[i].states;
	return states & 1u << state;
}

static uint8_t judge_stack(const struct apply *a, uint32_t stack)
{
	uint8_t clause = a->frames.verdict[stack];

	return clause == FRAMES_KEPT ? KEPT : a->line_of_clause[clause];
}

/* What is not about whole threads. `cpu`: NO_CPU of a wait. */
static uint8_t judge(const struct apply *a, uint64_t time, int cpu, enum wall_state state,
		     uint32_t stack)
{
	if (!is_in_slice(a, time))
		return a->slice_line;
	if (a->cpu_line != NO_LINE && !has_cpu(a, cpu))
		return a->cpu_line;
	if (a->state_line != NO_LINE && !has_state(a, state))
		return a->state_line;
	return judge_stack(a, stack);
}

/* Time that is in no sample, of a thread without any. */
static uint8_t judge_silence(const struct apply *a, const struct profile_thread *thread,
			     enum wall_state state)
{
	return judge(a, thread->start, NO_CPU, state, 0);
}

static uint8_t judge_row(const struct apply *a, const struct profile_samples *rows, size_t i)
{
	bool runs = !rows->state;

	return judge(a, rows->time[i], runs ? profile_samples__cpu(rows, i) : NO_CPU,
		     runs ? WALL_RUNNING : profile_samples__state(rows, i), rows->stack[i].v);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static uint32_t stack_of(const struct apply *a, uint32_t stack)
{
	return a->frames.stack ? a->frames.stack[stack] : stack;
}

#define copy_column(a, rows, kept, to, type, column)                                               \
	do {                                                                                       \
		type *copy_ = NULL;                                                                \
		size_t at_ = 0;                                                                    \
		if ((rows)->column)                                                                \
			copy_ = profile_filter__take((a), (kept), sizeof(type));                   \
		for (size_t i_ = 0; copy_ && i_ < (rows)->count; i_++)                             \
			if ((a)->verdicts[i_] == KEPT)                                             \
				copy_[at_++] = (rows)->column[i_];                                 \
		(to)->column = copy_;                                                              \
	} while (0)

/* The rows with the verdict KEPT; their stacks are those after hiding, marked as used. */
static void copy_rows(struct apply *a, const struct profile_samples *rows,
		      struct profile_samples *to)
{
	struct stack_id *stacks;
	size_t kept = 0, at = 0;

	*to = (struct profile_samples){};
	for (size_t i = 0; i < rows->count; i++)
		kept += a->verdicts[i] == KEPT;
	if (!kept)
		return;
	to->count = kept;
#define X(type, name) copy_column(a, rows, kept, to, type, name);
	PROFILE_SAMPLE_COLUMNS(X)
#undef X
	stacks = (struct stack_id *)to->stack;
	for (; stacks && at < kept; at++) {
		stacks[at].v = stack_of(a, stacks[at].v);
		a->stack_used[stacks[at].v] = true;
	}
	if (a->error)
		return;
	if (!rows->state) /* a wait begins where clip_waits() puts it */
		a->first_kept = min_u64(a->first_kept, to->time[0]);
	for (at = 0; at < kept; at++) {
		to->tick_sum += profile_samples__ticks(to, at);
		to->event_sum += profile_samples__events(to, at);
	}
}

/* What a thread had, by the line of the books; the last one is KEPT. */
struct shares {
	uint64_t cpu[LINES_MAX + 1];
};

static size_t share_of(const struct apply *a, uint8_t verdict)
{
	return verdict == KEPT ? a->line_count : verdict;
}

/* Verdicts of the CPU samples and of the tail, which is the last one's. */
static uint8_t judge_cpu(struct apply *a, const struct profile_thread *thread, uint8_t of_thread,
			 struct shares *shares)
{
	const struct profile_samples *rows = &thread->samples[SAMPLE_CPU];
	uint8_t tail = KEPT;

	for (size_t i = 0; i < rows->count; i++) {
		uint8_t verdict = of_thread == KEPT ? judge_row(a, rows, i) : of_thread;

		a->verdicts[i] = tail = verdict;
		shares->cpu[share_of(a, verdict)] += rows->weight[i];
		if (verdict == KEPT)
			continue;
		a->books[verdict].samples += profile_samples__ticks(rows, i);
		a->books[verdict].events += profile_samples__events(rows, i);
	}
	if (!rows->count)
		tail = of_thread == KEPT ? judge_silence(a, thread, WALL_RUNNING) : of_thread;
	shares->cpu[share_of(a, tail)] += thread->cpu_tail;
	for (size_t line = 0; line < a->line_count; line++)
		a->books[line].cpu += shares->cpu[line];
	return tail;
}

/* Rows of cut samples, renumbered; adds to the profile's counts of ends. */
static void copy_cuts(struct apply *a, const struct profile_thread *thread,
		      struct profile_thread *to)
{
	const struct profile_samples *rows = &thread->samples[SAMPLE_CPU];
	struct profile_cut *cuts = profile_filter__take(a, thread->cut_count, sizeof(*cuts));
	size_t kept = 0, row = 0;

	to->cuts = cuts;
	to->cut_count = 0;
	for (size_t i = 0; cuts && i < thread->cut_count; i++) {
		const struct profile_cut *cut = &thread->cuts[i];

		for (; row < cut->sample; row++)
			kept += a->verdicts[row] == KEPT;
		if (a->verdicts[row] != KEPT)
			continue;
		cuts[to->cut_count++] = (struct profile_cut){(uint32_t)kept, cut->end};
		a->to->stack_ends[cut->end] += profile_samples__ticks(rows, row);
	}
}

/* ---- idle time ------------------------------------------------------------------------------- */

/* Is this row a time at which the thread did nothing that is shown? */
static bool is_idle_row(const struct apply *a, uint8_t verdict, uint64_t time)
{
	return verdict != KEPT && (verdict != a->slice_line || is_on_axis(a, time));
}

struct idle_columns {
	uint64_t *time, *weight;
	struct stack_id *stack;
	struct string_id *comm;
	size_t count;
};

static void add_idle(struct idle_columns *idle, const struct profile_samples *rows, size_t i,
		     struct stack_id stack)
{
	if (idle->count && idle->time[idle->count - 1] >= rows->time[i])
		return;
	idle->time[idle->count] = rows->time[i];
	idle->weight[idle->count] = rows->weight[i];
	idle->stack[idle->count] = stack;
	idle->comm[idle->count++] = rows->comm[i];
}

/*
 * IDLE rows: those of the slice and, where weights are known to be idle or not, CPU samples that
 * were dropped: their time would be that of the sample before. Their stacks are not shown.
 */
static void copy_idle(struct apply *a, const struct profile_thread *thread, uint8_t tail,
		      struct profile_thread *to)
{
	const struct profile_samples *cpu = &thread->samples[SAMPLE_CPU];
	const struct profile_samples *rows = &thread->samples[SAMPLE_IDLE];
	size_t most = rows->count + (a->marks_idle ? cpu->count : 0), row = 0;
	struct idle_columns idle = {};
	struct stack_id stack = {};

	to->samples[SAMPLE_IDLE] = (struct profile_samples){};
	if (to->samples[SAMPLE_CPU].count)
		stack = to->samples[SAMPLE_CPU].stack[0];
	else if (!cpu->count && rows->count && tail == KEPT)
		stack.v = stack_of(a, rows->stack[0].v);
	if (!most || !stack.v)
		return;
	idle.time = profile_filter__take(a, most, sizeof(*idle.time));
	idle.weight = profile_filter__take(a, most, sizeof(*idle.weight));
	idle.stack = profile_filter__take(a, most, sizeof(*idle.stack));
	idle.comm = profile_filter__take(a, most, sizeof(*idle.comm));
	if (a->error)
		return;
	for (size_t i = 0; i <= cpu->count; i++) {
		uint64_t until = i < cpu->count ? cpu->time[i] : UINT64_MAX;

		for (; row < rows->count && rows->time[row] < until; row++)
			if (is_on_axis(a, rows->time[row]))
				add_idle(&idle, rows, row, stack);
		if (a->marks_idle && i < cpu->count && is_idle_row(a, a->verdicts[i], cpu->time[i]))
			add_idle(&idle, cpu, i, stack);
	}
	if (!idle.count)
		return;
	a->stack_used[stack.v] = true;
	to->samples[SAMPLE_IDLE] = (struct profile_samples){.count = idle.count,
							    .tick_sum = idle.count,
							    .event_sum = idle.count,
							    .time = idle.time,
							    .weight = idle.weight,
							    .stack = idle.stack,
							    .comm = idle.comm};
	a->first_kept = min_u64(a->first_kept, idle.time[0]);
}

/* ---- waits ----------------------------------------------------------------------------------- */

/* The part of a wait that is in the slices; those that touch divide it without a rest. */
static uint64_t weight_in_slice(const struct apply *a, const struct profile_samples *waits,
				size_t i)
{
	uint64_t since = waits->since[i], until = waits->until[i], length = until - since, sum = 0;

	if (a->slice_line == NO_LINE)
		return waits->weight[i];
	if (!length)
		return is_in_slice(a, waits->time[i]) ? waits->weight[i] : 0;
	for (size_t at = slice_behind(a, since);
	     at < a->slices.count && a->slices.data[at].from < until; at++)
		sum += scale(waits->weight[i], min_u64(a->slices.data[at].until, until) - since,
			     length) -
		       scale(waits->weight[i], max_u64(a->slices.data[at].from, since) - since,
			     length);
	return sum;
}

/* Where it is shown: its visit may be outside of the slices, but part of the wait is not. */
static uint64_t time_in_slice(const struct apply *a, const struct profile_samples *waits, size_t i,
			      uint64_t last)
{
	uint64_t time = waits->time[i], since = waits->since[i], until = waits->until[i];
	const struct slice_range *slice = overlapping(a, max_u64(time, since), until)
						  ?: overlapping(a, since, until);

	if (slice && a->slice_line != NO_LINE) {
		time = max_u64(time, slice->from + 1);
		if (slice->until != UINT64_MAX)
			time = min_u64(time, slice->until);
	}
	return max_u64(time, last + 1);
}

/* A wait that overlaps a slice, with the clauses behind that. */
static uint8_t judge_wait(const struct apply *a, const struct profile_samples *waits, size_t i)
{
	uint64_t since = waits->since[i], until = waits->until[i], inside = waits->time[i];
	const struct slice_range *slice = overlapping(a, since, until);

	if (since < until) {
		if (!slice)
			return a->slice_line;
		inside = max_u64(since, slice->from);
	}
	return judge(a, inside, NO_CPU, profile_samples__state(waits, i), waits->stack[i].v);
}

static uint64_t end_of(const struct apply *a, const struct profile_thread *thread)
{
	uint64_t end = thread->end ? thread->end : a->p->end;

	return a->slice.until == UINT64_MAX ? end : min_u64(end, a->slice.until);
}

/* The account of a thread, by line; the last one is KEPT. */
struct wall_shares {
	uint64_t part[LINES_MAX + 1];
};

/* Verdicts of waits; what they have within the slice is in `weights` and `times`. */
static uint8_t judge_waits(struct apply *a, const struct profile_thread *thread, uint8_t of_thread,
			   uint64_t *weights, uint64_t *times, struct wall_shares *shares)
{
	const struct profile_samples *waits = &thread->samples[SAMPLE_WALL];
	uint64_t last = 0;
	uint8_t verdict = KEPT;

	for (size_t i = 0; i < waits->count; i++) {
		weights[i] = weight_in_slice(a, waits, i);
		verdict = of_thread == KEPT ? judge_wait(a, waits, i) : of_thread;
		times[i] = time_in_slice(a, waits, i, last);
		if (verdict == KEPT && times[i] > end_of(a, thread))
			verdict = a->slice_line;
		if (of_thread == KEPT && a->slice_line != NO_LINE)
			shares->part[a->slice_line] += waits->weight[i] - weights[i];
		else
			weights[i] = waits->weight[i];
		shares->part[share_of(a, verdict)] += weights[i];
		a->verdicts[i] = verdict;
		if (verdict == KEPT)
			last = times[i];
	}
	if (!waits->count)
		verdict = of_thread == KEPT ? judge_silence(a, thread, WALL_NONE) : of_thread;
	return verdict;
}

/* From the first slice in it to the last. */
static void clip_wait(const struct apply *a, uint64_t *since, uint64_t *until)
{
	const struct slice_range *first = overlapping(a, *since, *until);
	size_t behind = partition_point(a->slices.data, a->slices.count, one, one->from < *until);

	if (!first)
		return;
	*since = max_u64(*since, first->from);
	*until = max_u64(min_u64(*until, a->slices.data[behind - 1].until), *since);
}

/* Sets the columns that a slice changes. */
static void clip_waits(struct apply *a, const struct profile_samples *waits,
		       struct profile_samples *to, const uint64_t *weights, const uint64_t *times)
{
	uint64_t *weight = (uint64_t *)to->weight, *time = (uint64_t *)to->time;
	uint64_t *since = (uint64_t *)to->since, *until = (uint64_t *)to->until;
	size_t at = 0;

	for (size_t i = 0; i < waits->count && !a->error; i++) {
		if (a->verdicts[i] != KEPT)
			continue;
		weight[at] = weights[i];
		time[at] = times[i];
		a->first_kept = min_u64(a->first_kept, times[i]);
		if (a->slice_line != NO_LINE)
			clip_wait(a, &since[at], &until[at]);
		at++;
	}
}

/* Divides the running time as the CPU time was, or by `silent` if there was none. */
static uint64_t divide_running(struct apply *a, uint64_t running, const struct shares *cpu,
			       uint8_t silent, struct wall_shares *shares)
{
	uint64_t all = 0, passed = 0, done = 0, kept = 0;

	for (size_t line = 0; line <= a->line_count; line++)
		all += cpu->cpu[line];
	if (!all) {
		shares->part[share_of(a, silent)] += running;
		return silent == KEPT ? running : 0;
	}
	for (size_t line = 0; line <= a->line_count; line++) {
		passed += cpu->cpu[line];
		kept = scale(running, passed, all) - done;
		shares->part[line] += kept;
		done += kept;
	}
	return kept; /* the last line is KEPT */
}

static void sum_waits(const struct profile_samples *waits, struct profile_wall *wall)
{
	for (size_t i = 0; i < waits->count; i++) {
		if (wall_state_is_for_cpu(waits->state[i]))
			wall->runnable += waits->weight[i];
		else
			wall->blocked += waits->weight[i];
	}
}

/* Waits and the account of a visited thread, which adds up again. `tail`: of its CPU time. */
static void copy_waits(struct apply *a, const struct profile_thread *thread, uint8_t of_thread,
		       const struct shares *cpu, uint8_t tail, struct profile_thread *to)
{
	const struct profile_samples *waits = &thread->samples[SAMPLE_WALL];
	_cleanup_free_ uint64_t *weights = malloc((2 * waits->count + 1) * sizeof(*weights));
	uint64_t *times = weights ? weights + waits->count : NULL;
	struct wall_shares shares = {};
	uint8_t rest;

	to->wall = (struct profile_wall){.since = thread->wall.since};
	if (!weights)
		return note_error(a, -ENOMEM);
	rest = judge_waits(a, thread, of_thread, weights, times, &shares);
	copy_rows(a, waits, &to->samples[SAMPLE_WALL]);
	clip_waits(a, waits, &to->samples[SAMPLE_WALL], weights, times);
	if (a->error)
		return;
	sum_waits(&to->samples[SAMPLE_WALL], &to->wall);
	to->wall.running = divide_running(a, thread->wall.running, cpu, tail, &shares);
	shares.part[share_of(a, rest)] += thread->wall.unvisited;
	to->wall.unvisited = rest == KEPT ? thread->wall.unvisited : 0;
	to->wall.until = to->wall.since + to->wall.running + to->wall.runnable + to->wall.blocked +
			 to->wall.unvisited;
	for (size_t line = 0; line < a->line_count; line++)
		a->books[line].wall += shares.part[line];
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool has_rows(const struct profile_thread *thread)
{
	for (int kind = 0; kind < SAMPLE_KIND_COUNT; kind++)
		if (thread->samples[kind].count)
			return true;
	return false;
}

/* A thread whose samples were dropped goes; one that had none stays if that is kept. */
static bool is_kept(const struct profile_thread *thread, const struct profile_thread *to,
		    uint8_t tail)
{
	return has_rows(to) || (!has_rows(thread) && tail == KEPT) || to->cpu_tail ||
	       to->wall.until > to->wall.since;
}

static void filter_thread(struct apply *a, uint32_t id, struct profile_thread *to)
{
	const struct profile_thread *thread = &a->p->threads[id];
	uint8_t of_thread = judge_thread(a, thread), tail;
	struct shares shares = {};

	*to = *thread;
	tail = judge_cpu(a, thread, of_thread, &shares);
	to->cpu_tail = tail == KEPT ? thread->cpu_tail : 0;
	to->cpu_excess = tail == KEPT ? thread->cpu_excess : 0;
	copy_rows(a, &thread->samples[SAMPLE_CPU], &to->samples[SAMPLE_CPU]);
	copy_cuts(a, thread, to);
	copy_idle(a, thread, tail, to);
	copy_waits(a, thread, of_thread, &shares, tail, to);
	a->thread_number[id] = is_kept(thread, to, tail);
}

/* Threads that are only named, as holders of locks that others wait for: without time. */
static void keep_holders(struct apply *a, struct profile_thread *threads)
{
	for (size_t i = 1; i < a->p->thread_count; i++) {
		const struct profile_samples *waits = &threads[i].samples[SAMPLE_WALL];

		for (size_t k = 0; a->thread_number[i] == 1 && k < waits->count; k++) {
			uint32_t holder = waits->holder[k].v;

			if (holder && !a->thread_number[holder])
				a->thread_number[holder] = 2;
		}
	}
}

static size_t longest_samples(const struct profile *p)
{
	size_t most = 0;

	for (size_t i = 1; i < p->thread_count; i++)
		for (int kind = 0; kind < SAMPLE_KIND_COUNT; kind++)
			most = max_u64(most, p->threads[i].samples[kind].count);
	return most;
}

/* Kept ones in front, with their new numbers; their other references are still old. */
void profile_filter__threads(struct apply *a)
{
	struct profile_thread *threads = profile_filter__take(a, a->p->thread_count,
							      sizeof(*threads));
	uint32_t count = 1;

	a->verdicts = malloc(longest_samples(a->p) + 1);
	if (!a->verdicts)
		note_error(a, -ENOMEM);
	for (uint32_t i = 1; i < a->p->thread_count && !a->error; i++)
		filter_thread(a, i, &threads[i]);
	if (a->error)
		return;
	keep_holders(a, threads);
	for (uint32_t i = 1; i < a->p->thread_count; i++) {
		if (!a->thread_number[i])
			continue;
		a->thread_number[i] = count;
		threads[count++] = threads[i];
	}
	a->to->threads = threads;
	a->to->thread_count = count;
}
