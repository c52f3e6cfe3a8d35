/* SPDX-License-Identifier: BSD-2-Clause */
#include "filter/filter_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/order.h"
#include "filter/filter_apply_private.h"
#include "profile/profile.h"

/* ---- the session ----------------------------------------------------------------------------- */

static uint64_t clip_to_session(const struct profile *p, uint64_t time)
{
	return min_u64(max_u64(time, p->start), p->end);
}

/* 0 if it is still running when the slice ends. */
static uint64_t clip_end(const struct apply *a, uint64_t end, uint64_t start)
{
	return !end || end > a->to->end ? 0 : max_u64(clip_to_session(a->to, end), start);
}

/* The slice, but before every sample. */
static void clip_session(struct apply *a)
{
	struct profile *to = a->to;
	uint64_t start = to->start;

	if (a->slice_line == NO_LINE)
		return;
	to->end = min_u64(max_u64(a->slice.until, start), to->end);
	to->start = min_u64(max_u64(a->slice.from, start), to->end);
	if (a->first_kept <= to->start)
		to->start = a->first_kept - 1;
	if (to->start_realtime)
		to->start_realtime += to->start - start;
}

static void clip_renames(struct apply *a, struct profile_thread *thread)
{
	uint64_t end = thread->end ? thread->end : a->to->end;
	const struct profile_rename *all = thread->renames;
	size_t first = partition_point(all, thread->rename_count, one, one->time < thread->start);
	size_t last = partition_point(all, thread->rename_count, one, one->time <= end);

	thread->renames = first ? all + first : all;
	thread->rename_count = last - first;
}

static void clip_threads(struct apply *a)
{
	struct profile_thread *threads = (struct profile_thread *)a->to->threads;

	for (size_t i = 1; i < a->to->thread_count; i++) {
		struct profile_thread *thread = &threads[i];

		if (a->slice_line != NO_LINE) {
			thread->start = clip_to_session(a->to, thread->start);
			thread->end = clip_end(a, thread->end, thread->start);
			clip_renames(a, thread);
		}
	}
}

static void clip_lost(struct apply *a)
{
	struct profile_lost_range *ranges = profile_filter__take(a, a->p->lost_range_count,
								 sizeof(*ranges));

	a->to->lost_ranges = ranges;
	a->to->lost_range_count = 0;
	for (size_t i = 0; ranges && i < a->p->lost_range_count; i++) {
		struct profile_lost_range range = a->p->lost_ranges[i];

		if (range.until < a->to->start || range.since > a->to->end)
			continue;
		range.since = max_u64(range.since, a->to->start);
		range.until = min_u64(range.until, a->to->end);
		ranges[a->to->lost_range_count++] = range;
	}
}

/* Of threads that are left. Starts stay in order. */
static void clip_markers(struct apply *a)
{
	struct profile_marker *markers = profile_filter__take(a, a->p->marker_count,
							      sizeof(*markers));

	a->to->markers = markers;
	a->to->marker_count = 0;
	for (size_t i = 0; markers && i < a->p->marker_count; i++) {
		struct profile_marker marker = a->p->markers[i];

		marker.thread.v = a->thread_number[marker.thread.v];
		if (!marker.thread.v || !marker_overlaps(&marker, a->to->start, a->to->end))
			continue;
		marker.start = max_u64(marker.start, a->to->start);
		marker.end = min_u64(marker.end, a->to->end);
		markers[a->to->marker_count++] = marker;
	}
}

static void clip_events(struct apply *a)
{
	struct profile_outside *outside = profile_filter__take(a, a->p->outside_count,
							       sizeof(*outside));
	const uint64_t *epochs = a->p->epochs;
	size_t first = partition_point(epochs, a->p->epoch_count, one, *one < a->to->start);
	size_t last = partition_point(epochs, a->p->epoch_count, one, *one <= a->to->end);

	clip_lost(a);
	clip_markers(a);
	a->to->epochs = first ? epochs + first : epochs; /* there may be none */
	a->to->epoch_count = last - first;
	for (size_t i = 0; outside && i < a->p->outside_count; i++) {
		outside[i] = a->p->outside[i];
		outside[i].since = clip_to_session(a->to, outside[i].since);
	}
	a->to->outside = outside;
}

/* ---- new numbers ----------------------------------------------------------------------------- */

/* Before numbering: those of the profile, or those that hiding frames has made. */
static void choose_tables(struct apply *a)
{
	if (!a->frames.stack)
		return;
	a->to->stacks = a->frames.stacks.data;
	a->to->stack_count = a->frames.stacks.count;
	a->to->locations = a->frames.locations.data;
	a->to->location_count = a->frames.locations.count;
	a->to->lines = a->frames.lines.data;
	a->to->line_count = a->frames.lines.count;
}

static void number_stacks(struct apply *a)
{
	const struct profile_stack *from = a->to->stacks;
	size_t count = a->to->stack_count, made = 1;
	struct profile_stack *stacks;

	a->stack_used[0] = true;
	for (size_t i = count; i-- > 1;)
		if (a->stack_used[i])
			a->stack_used[from[i].parent.v] = true;
	for (size_t i = 1; i < count; i++)
		if (a->stack_used[i])
			a->stack_number[i] = (uint32_t)made++;
	stacks = profile_filter__take(a, made, sizeof(*stacks));
	for (size_t i = 1; i < count && stacks; i++) {
		struct profile_stack *to = &stacks[a->stack_number[i]];

		if (!a->stack_used[i])
			continue;
		*to = from[i];
		to->parent.v = a->stack_number[to->parent.v];
		a->location_number[to->location.v] = 1;
	}
	a->to->stacks = stacks;
	a->to->stack_count = made;
}

static void number_locations(struct apply *a)
{
	const struct profile_location *from = a->to->locations;
	const struct profile_line *from_lines = a->to->lines;
	size_t count = a->to->location_count, made = 1, line_count = 0;
	struct profile_location *locations;
	struct profile_line *lines;

	for (size_t i = 1; i < count; i++) {
		if (!a->location_number[i])
			continue;
		a->location_number[i] = (uint32_t)made++;
		line_count += from[i].line_count;
	}
	locations = profile_filter__take(a, made, sizeof(*locations));
	lines = profile_filter__take(a, line_count, sizeof(*lines));
	line_count = 0;
	for (size_t i = 1; i < count && !a->error; i++) {
		struct profile_location *to = &locations[a->location_number[i]];

		if (!a->location_number[i])
			continue;
		*to = from[i];
		memcpy(lines + line_count, from_lines + to->first_line,
		       to->line_count * sizeof(*lines));
		to->first_line = (uint32_t)line_count;
		line_count += to->line_count;
		a->process_number[to->process.v] = 1;
	}
	for (size_t i = 1; i < a->to->stack_count && !a->error; i++) {
		struct profile_stack *stack = (struct profile_stack *)&a->to->stacks[i];

		stack->location.v = a->location_number[stack->location.v];
	}
	a->to->locations = locations;
	a->to->location_count = made;
	a->to->lines = lines;
	a->to->line_count = line_count;
}

static void number_processes(struct apply *a)
{
	struct profile_process *processes = profile_filter__take(a, a->p->process_count,
								 sizeof(*processes));
	struct profile_location *locations = (struct profile_location *)a->to->locations;
	size_t made = 1;

	for (size_t i = 1; i < a->to->thread_count; i++)
		a->process_number[a->to->threads[i].process.v] = 1;
	a->process_number[0] = 0;
	for (size_t i = 1; i < a->p->process_count && processes; i++) {
		struct profile_process *to = &processes[made];

		if (!a->process_number[i]) {
			a->to->dropped_running |= a->p->processes[i].is_target &&
						  !a->p->processes[i].end;
			continue;
		}
		a->process_number[i] = (uint32_t)made++;
		*to = a->p->processes[i];
		if (a->slice_line == NO_LINE)
			continue;
		if (to->start < a->to->start)
			to->began = PROCESS_WAS_THERE;
		to->start = clip_to_session(a->to, to->start);
		to->end = clip_end(a, to->end, to->start);
		to->execs &= to->end != 0;
	}
	for (size_t i = 1; i < a->to->location_count; i++)
		locations[i].process.v = a->process_number[locations[i].process.v];
	a->to->processes = processes;
	a->to->process_count = made;
}

static void renumber_samples(struct apply *a, struct profile_samples *samples)
{
	struct stack_id *stacks = (struct stack_id *)samples->stack;
	struct thread_id *holders = (struct thread_id *)samples->holder;

	for (size_t i = 0; i < samples->count; i++) {
		stacks[i].v = a->stack_number[stacks[i].v];
		if (holders)
			holders[i].v = a->thread_number[holders[i].v];
	}
}

static void renumber_threads(struct apply *a)
{
	struct profile_thread *threads = (struct profile_thread *)a->to->threads;

	for (size_t i = 1; i < a->to->thread_count; i++) {
		threads[i].process.v = a->process_number[threads[i].process.v];
		for (int kind = 0; kind < SAMPLE_KIND_COUNT; kind++)
			renumber_samples(a, &threads[i].samples[kind]);
	}
}

static void renumber_jits(struct apply *a)
{
	struct profile_jit *jits = profile_filter__take(a, a->p->jit_count, sizeof(*jits));

	a->to->jits = jits;
	a->to->jit_count = 0;
	for (size_t i = 0; i < a->p->jit_count && jits; i++) {
		struct profile_jit jit = a->p->jits[i];

		jit.process.v = a->process_number[jit.process.v];
		if (jit.process.v)
			jits[a->to->jit_count++] = jit;
	}
}

/* Counted again, as the recorder does. */
static void count_gil(const struct profile_samples *rows, struct profile_gil *gil)
{
	gil->samples = gil->held = gil->waiting = gil->held_time = 0;
	for (size_t i = 0; i < rows->count; i++) {
		enum gil_state state = profile_samples__gil(rows, i);
		uint64_t ticks = profile_samples__ticks(rows, i);

		gil->samples += state == GIL_UNKNOWN ? 0 : ticks;
		gil->held += state == GIL_HELD ? ticks : 0;
		gil->held_time += state == GIL_HELD ? rows->weight[i] : 0;
		gil->waiting += state == GIL_WAITING ? ticks : 0;
	}
}

static void renumber_gils(struct apply *a)
{
	struct profile_gil *gils = profile_filter__take(a, a->p->gil_count, sizeof(*gils));

	a->to->gils = gils;
	a->to->gil_count = 0;
	for (size_t i = 0; i < a->p->gil_count && gils; i++) {
		struct profile_gil gil = a->p->gils[i];

		gil.thread.v = a->thread_number[gil.thread.v];
		if (!gil.thread.v)
			continue;
		gil.process = a->to->threads[gil.thread.v].process;
		count_gil(&a->to->threads[gil.thread.v].samples[SAMPLE_CPU], &gil);
		if (gil.samples)
			gils[a->to->gil_count++] = gil;
	}
}

static void renumber_memories(struct apply *a)
{
	struct profile_memory *memories = profile_filter__take(a, a->p->memory_count,
							       sizeof(*memories));

	a->to->memories = memories;
	a->to->memory_count = 0;
	for (size_t i = 0; i < a->p->memory_count && memories; i++) {
		struct profile_memory memory = a->p->memories[i];
		size_t first = partition_point(memory.readings, memory.count, one,
					       one->time < a->to->start);
		size_t last = partition_point(memory.readings, memory.count, one,
					      one->time <= a->to->end);

		memory.process.v = a->process_number[memory.process.v];
		if (!memory.process.v && !memory.is_recorder)
			continue;
		memory.readings += first;
		memory.count = last - first;
		memories[a->to->memory_count++] = memory;
	}
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Which of the complete ends a sample had is not known: in the proportion of the whole. */
static void share_complete_ends(struct apply *a)
{
	uint64_t cut = 0, complete = 0, passed = 0, done = 0;

	for (int end = 0; end < STACK_END_COUNT; end++) {
		cut += a->to->stack_ends[end];
		complete += stack_end_is_complete(end) ? a->p->stack_ends[end] : 0;
	}
	for (int end = 0; end < STACK_END_COUNT; end++) {
		uint64_t all = a->to->sample_count - cut, part;

		if (!stack_end_is_complete(end) || !complete)
			continue;
		passed += a->p->stack_ends[end];
		part = scale(all, passed, complete) - done;
		a->to->stack_ends[end] = part;
		done += part;
	}
	if (!complete) /* only among the first rows are cuts known */
		a->to->stack_ends[STACK_END_ROOT] += a->to->sample_count - cut;
}

static void add_up(struct apply *a)
{
	struct profile *to = a->to;

	to->sample_count = to->event_count = 0;
	to->event_squares = 0;
	for (size_t i = 1; i < to->thread_count; i++) {
		const struct profile_samples *rows = &to->threads[i].samples[SAMPLE_CPU];

		to->sample_count += rows->tick_sum;
		to->event_count += rows->event_sum;
		for (size_t k = 0; k < rows->count; k++)
			to->event_squares += profile_samples__square(rows, k);
	}
	share_complete_ends(a);
}

/* Functions for --collapse dso, behind those of the profile. */
static void add_functions(struct apply *a)
{
	size_t count = a->p->function_count, added = a->frames.functions.count;
	struct profile_function *functions;

	if (!added)
		return;
	functions = profile_filter__take(a, count + added, sizeof(*functions));
	if (!functions)
		return;
	memcpy(functions, a->p->functions, count * sizeof(*functions));
	for (size_t i = 0; i < added; i++) {
		struct dso_id dso = a->frames.functions.data[i];
		const char *name = dso_display_name(a->p, dso);
		char *text = malloc(strlen(name) + 3);

		if (text)
			snprintf(text, strlen(name) + 3, *name == '[' ? "%s" : "[%s]", name);
		functions[count + i] = (struct profile_function){
			.name = profile_filter__add_string(a, text),
			.dso = dso,
			.address = PROFILE_UNKNOWN_ADDRESS,
		};
	}
	a->to->functions = functions;
	a->to->function_count = count + added;
}

void profile_filter__tables(struct apply *a)
{
	static void (*const steps[])(struct apply * a) = {
		clip_session,  clip_threads,	  clip_events,	    choose_tables,    add_functions,
		number_stacks, number_locations,  number_processes, renumber_threads, renumber_jits,
		renumber_gils, renumber_memories, add_up,
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps) && !a->error; i++)
		steps[i](a);
}
