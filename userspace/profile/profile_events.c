/* SPDX-License-Identifier: BSD-2-Clause */
/* The write side of the profile: what happened beside the samples. */
#include "profile/profile_builder_private.h"

#include <stdlib.h>

#include "base/minmax.h"
#include "profile/profile.h"

#define RENAMES_MAX 256 /* of a thread */
#define EPOCHS_MAX  65536

void profile_builder__process_cgroup(struct profile_builder *b, struct process_id id,
				     struct string_id path)
{
	if (id.v)
		b->processes.data[id.v].cgroup = path;
}

/* The column of a process's memory, made when it is first asked for; NULL: no memory. */
static struct memory_column *memory_column(struct profile_builder *b, struct process_id id)
{
	uint32_t *number;

	while (b->memory_of.count <= id.v)
		if (builder_has_failed(b, vec_push(&b->memory_of, (uint32_t)0)))
			return NULL;
	number = &b->memory_of.data[id.v];
	if (!*number) {
		if (builder_has_failed(b, vec_push(&b->memory_columns, ((struct memory_column){}))))
			return NULL;
		*number = b->memory_columns.count;
	}
	return &b->memory_columns.data[*number - 1];
}

void profile_builder__memory(struct profile_builder *b, struct process_id id, uint32_t pid,
			     bool is_recorder, uint64_t time, uint64_t bytes)
{
	struct profile_memory_reading reading = {min_u64(time, BUILDER_TIME_LIMIT),
						 min_u64(bytes, PROFILE_TIME_MAX)};
	struct memory_column *column = b->error ? NULL : memory_column(b, id);

	if (!column)
		return;
	column->memory = (struct profile_memory){
		.process = id,
		.pid = pid,
		.is_recorder = is_recorder,
	};
	builder_has_failed(b, vec_push(&column->readings, reading));
}

void profile_builder__thread_renamed(struct profile_builder *b, struct thread_id id, uint64_t time,
				     struct string_id name)
{
	struct profile_rename rename = {min_u64(time, BUILDER_TIME_LIMIT), name};

	if (b->error || !id.v || b->columns.data[id.v].renames.count >= RENAMES_MAX)
		return;
	builder_has_failed(b, vec_push(&b->columns.data[id.v].renames, rename));
}

void profile_builder__epoch(struct profile_builder *b, uint64_t time)
{
	if (!b->error && b->epochs.count < EPOCHS_MAX)
		builder_has_failed(b, vec_push(&b->epochs, min_u64(time, BUILDER_TIME_LIMIT)));
}

int builder_note_cut(struct thread_columns *thread, size_t row, enum stack_end end)
{
	if (stack_end_is_complete(end) || row >= UINT32_MAX)
		return 0;
	return vec_push(&thread->cuts, ((struct profile_cut){(uint32_t)row, end}));
}

void builder_free_events(struct profile_builder *b)
{
	for (size_t i = 0; i < b->memory_columns.count; i++)
		vec_free(&b->memory_columns.data[i].readings);
	vec_free(&b->memory_columns);
	vec_free(&b->memory_of);
	vec_free(&b->memories);
	vec_free(&b->epochs);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Readings within the session, one for each moment: the last. */
static void settle_readings(const struct profile *p, struct memory_column *column)
{
	struct profile_memory_reading *readings = column->readings.data;
	size_t kept = 0;

	for (size_t i = 0; i < column->readings.count; i++) {
		struct profile_memory_reading reading = readings[i];

		reading.time = min_u64(max_u64(reading.time, p->start), p->end);
		if (kept && reading.time <= readings[kept - 1].time)
			kept--;
		if (kept)
			reading.time = max_u64(reading.time, readings[kept - 1].time + 1);
		readings[kept++] = reading;
	}
	column->readings.count = kept;
}

/* A rename before the session belongs to another window. */
static void settle_renames(const struct profile_thread *t, struct thread_columns *columns,
			   const struct profile *p)
{
	uint64_t end = t->end ? t->end : p->end;
	size_t kept = 0;

	for (size_t i = 0; i < columns->renames.count; i++) {
		struct profile_rename rename = columns->renames.data[i];

		if (rename.time < p->start)
			continue;
		rename.time = min_u64(max_u64(rename.time, t->start), end);
		columns->renames.data[kept++] = rename;
	}
	columns->renames.count = kept;
}

void builder_settle_events(struct profile_builder *b)
{
	const struct profile *p = &b->profile;

	for (size_t i = 0; i < b->memory_columns.count; i++)
		settle_readings(p, &b->memory_columns.data[i]);
	for (size_t i = 1; i < b->threads.count; i++)
		settle_renames(&b->threads.data[i], &b->columns.data[i], p);
	for (size_t i = 0; i < b->epochs.count; i++)
		b->epochs.data[i] = min_u64(max_u64(b->epochs.data[i], p->start), p->end);
}

static void freeze_thread(struct profile_thread *t, const struct thread_columns *columns)
{
	t->cuts = columns->cuts.data;
	t->cut_count = columns->cuts.count;
	t->renames = columns->renames.data;
	t->rename_count = columns->renames.count;
}

void builder_freeze_events(struct profile_builder *b)
{
	struct profile *p = &b->profile;

	for (size_t i = 1; i < b->threads.count; i++)
		freeze_thread(&b->threads.data[i], &b->columns.data[i]);
	for (size_t i = 0; i < b->memory_columns.count; i++) {
		struct profile_memory memory = b->memory_columns.data[i].memory;

		memory.readings = b->memory_columns.data[i].readings.data;
		memory.count = b->memory_columns.data[i].readings.count;
		if (builder_has_failed(b, vec_push(&b->memories, memory)))
			return;
	}
	p->memories = b->memories.data;
	p->memory_count = b->memories.count;
	p->epochs = b->epochs.data;
	p->epoch_count = b->epochs.count;
}
