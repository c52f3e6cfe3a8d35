/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/recorder_private.h"

#include <errno.h>

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
