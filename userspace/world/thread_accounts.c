/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CPU time. A sample has the thread's CPU clock; the profile needs differences that add up to the
 * CPU time that the thread used while it was recorded. The clock up to thread_clock.last is
 * accounted for. It starts at
 *   - 0 for a thread whose start was recorded;
 *   - the clock that /proc reported before sampling began; limiting the first difference to the
 *     time since the start removes CPU time from between;
 *   - the clock at the first sample less at most one period, if records were lost.
 * The clock continues across execve and windows: the first difference of a window includes what the
 * thread used after its last sample in the window before. A closed window is never changed. If a
 * later reading is smaller, the surplus is taken back from the open window, and the rest (excess)
 * from later differences.
 */
#include "world/thread_accounts.h"

#include "base/list_column.h"
#include "base/minmax.h"
#include "world/recorder.h"
#include "world/recording_facts.h"

#include <errno.h>

/*
 * A reading can be too large, by time stolen by a hypervisor that the kernel has not noticed yet,
 * but never too small. So a later, smaller reading corrects earlier ones: in the end each reading
 * counts as the smallest value from then on.
 */
void thread_accounts__correct(const struct thread_accounts *a, struct thread_life *thread,
			      uint64_t cpu_time)
{
	struct thread_clock *cpu = &thread->cpu;
	struct window_thread *entry = window_lives__thread(a->lives, thread);
	uint64_t surplus;

	if (!cpu->sampled || cpu_time >= cpu->last)
		return;
	surplus = cpu->last - cpu_time;
	if (entry)
		surplus -= profile_builder__take_back_cpu(a->builder, entry->id, surplus);
	cpu->excess += surplus;
	cpu->last = cpu->seen = cpu_time;
}

/* More CPU time was used: accounts for it, minus the excess of earlier differences. */
static uint64_t pay_excess(struct thread_clock *cpu, uint64_t used)
{
	uint64_t paid = min_u64(used, cpu->excess);

	cpu->excess -= paid;
	return used - paid;
}

uint64_t thread_accounts__sample(const struct thread_accounts *a, struct thread_life *thread,
				 uint64_t time, uint64_t cpu_time)
{
	struct thread_clock *cpu = &thread->cpu;
	uint64_t start = recording_facts__start(a->facts), delta;
	bool older = start && cpu->start < start;

	if (!cpu->known) {
		cpu->last = cpu_time - min_u64(cpu_time, recording_facts__period(a->facts));
		cpu->known = true;
	}
	thread_accounts__correct(a, thread, cpu_time);
	delta = cpu_time > cpu->last ? cpu_time - cpu->last : 0;
	if (!cpu->sampled && older)
		delta = min_u64(delta, time > start ? time - start : 0);
	cpu->sampled = true;
	cpu->last = max_u64(cpu->last, cpu_time);
	cpu->seen = max_u64(cpu->seen, cpu->last);
	return pay_excess(cpu, delta);
}

/*
 * The CPU time that the thread used after its last sample. It is set when the thread has no more
 * events in this window, if any window has the thread.
 */
void thread_accounts__settle(const struct thread_accounts *a, struct thread_life *thread,
			     uint64_t time)
{
	struct window_thread *entry = window_lives__thread(a->lives, thread);
	uint64_t tail = thread->cpu.seen - thread->cpu.last;

	if (!entry && thread->counted && (tail || thread->cpu.excess))
		entry = window_lives__show(a->lives, thread, time, 0);
	if (!entry)
		return;
	tail = pay_excess(&thread->cpu, tail);
	profile_builder__thread_cpu_tail(a->builder, entry->id, tail);
	profile_builder__thread_cpu_excess(a->builder, entry->id, thread->cpu.excess);
}

/* ---- made-up frames -------------------------------------------------------------------------- */

struct stack_id thread_accounts__made_up_frame(const struct thread_accounts *a,
					       const struct thread_life *thread,
					       struct stack_id caller, enum made_up_place place)
{
	static const char *const names[] = {MADE_UP_PLACES(SECOND_COLUMN)};
	struct profile_builder *b = a->builder;
	struct profile_dso dso = {
		.kind = DSO_UNKNOWN,
		.path = profile_builder__string(b, "[unknown]"),
		.name = profile_builder__string(b, "[unknown]"),
	};
	struct profile_function function = {.name = profile_builder__string(b, names[place]),
					    .address = PROFILE_UNKNOWN_ADDRESS};
	struct location_id location;

	function.dso = profile_builder__dso(b, &dso);
	location = profile_builder__location(b, function.dso, UINT64_MAX - (uint64_t)place,
					     window_lives__process_id(a->lives, thread->process),
					     CATEGORY_OTHER);
	profile_builder__fallback(b, location, profile_builder__function(b, &function));
	return profile_builder__stack(b, caller, location);
}

/* ---- the GIL --------------------------------------------------------------------------------- */

/* All notes of a sample that have a state have the same. */
enum gil_state gil_state_of(const struct sample_event *e)
{
	const struct frame_note *notes = sample_notes(e);

	for (size_t i = 0; i < e->notes; i++) {
		const uint8_t flags = notes[i].flags;

		if (!(flags & FRAME_NOTE_GIL_KNOWN))
			continue;
		if (flags & FRAME_NOTE_GIL_HELD)
			return GIL_HELD;
		return flags & FRAME_NOTE_GIL_WAITS ? GIL_WAITING : GIL_RELEASED;
	}
	return GIL_UNKNOWN;
}

int gil_counts__sample(struct gil_counts *g, size_t *number, struct process_id process,
		       struct thread_id thread, enum gil_state state, uint64_t weight)
{
	struct profile_gil *row;

	if (state == GIL_UNKNOWN)
		return 0;
	if (!*number) {
		if (vec_push(&g->rows,
			     ((struct profile_gil){.process = process, .thread = thread})))
			return -ENOMEM;
		*number = g->rows.count;
	}
	row = &g->rows.data[*number - 1];
	row->samples++;
	row->waiting += state == GIL_WAITING;
	if (state == GIL_HELD) {
		row->held++;
		row->held_time += weight;
	}
	return 0;
}

void gil_counts__report(const struct gil_counts *g, struct profile_builder *builder)
{
	for (size_t i = 0; i < g->rows.count; i++)
		profile_builder__gil(builder, &g->rows.data[i]);
}
