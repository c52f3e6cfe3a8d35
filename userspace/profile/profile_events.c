/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/profile_events.h"

#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "base/order.h"
#include "profile/profile_builder_private.h"
#include "tenants/outside_books.h"

#define EPOCHS_MAX 65536

/* Users of the outside with rows of their own: those of the books, and the two that are none. */
#define OUTSIDE_USERS (OUTSIDE_USERS_MAX + 2)

/* ---- facts about processes ------------------------------------------------------------------- */

struct fact_key {
	const struct profile_fact *facts;
	size_t bytes;
};

static struct fact_key facts_of(const struct fact_set_table *sets, const struct fact_set *set)
{
	const struct profile_builder *b = map_owner(sets, struct profile_builder, fact_sets);

	return (struct fact_key){b->facts.data + set->first,
				 set->count * sizeof(struct profile_fact)};
}

#define hash_facts(key)	 hash_bytes((key).facts, (key).bytes)
#define same_facts(a, b) ((a).bytes == (b).bytes && !memcmp((a).facts, (b).facts, (a).bytes))

MAP_FUNCTIONS(fact_set_table, struct fact_set, struct fact_key, facts_of, hash_facts, same_facts);

/* The set of these facts, which is made if there is none; NULL: no memory. */
static const struct fact_set *need_fact_set(struct profile_builder *b,
					    const struct profile_fact *facts, size_t count)
{
	const struct fact_set wanted = {b->facts.count, count};
	const struct fact_set *set;
	bool is_new = false;

	if (builder_has_failed(b, vec_reserve(&b->facts, b->facts.count + count)))
		return NULL;
	memcpy(b->facts.data + b->facts.count, facts, count * sizeof(*facts));
	set = fact_set_table__need(&b->fact_sets, &wanted, &is_new);
	if (set && is_new)
		b->facts.count += count;
	builder_has_failed(b, set ? 0 : -ENOMEM);
	return set;
}

void profile_builder__process_facts(struct profile_builder *b, struct process_id id,
				    enum facts_state state, const struct profile_fact *facts,
				    size_t count)
{
	const struct fact_set *set;

	if (b->error || !id.v || count > PROCESS_FACTS_MAX)
		return;
	b->processes.data[id.v].facts_state = state;
	b->processes.data[id.v].fact_count = 0;
	set = count ? need_fact_set(b, facts, count) : NULL;
	if (!set)
		return;
	b->processes.data[id.v].first_fact = set->first;
	b->processes.data[id.v].fact_count = set->count;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* By process; 0: the recorder. */
MAP_FUNCTIONS_BY(memory_table, struct memory_column, uint32_t, memory.process.v);

void profile_builder__memory(struct profile_builder *b, struct process_id id, uint32_t pid,
			     bool is_recorder, uint64_t time, uint64_t bytes)
{
	struct profile_memory_reading reading = {min_u64(time, BUILDER_TIME_LIMIT),
						 min_u64(bytes, PROFILE_TIME_MAX)};
	const struct memory_column new = {
		.memory = {.process = id, .pid = pid, .is_recorder = is_recorder}};
	struct memory_column *column = b->error
					       ? NULL
					       : memory_table__need(&b->memory_columns, &new, NULL);

	if (builder_has_failed(b, column ? 0 : -ENOMEM))
		return;
	column->memory = new.memory;
	builder_has_failed(b, vec_push(&column->readings, reading));
}

void profile_builder__thread_renamed(struct profile_builder *b, struct thread_id id, uint64_t time,
				     struct string_id name)
{
	struct profile_rename rename = {min_u64(time, BUILDER_TIME_LIMIT), name};

	if (b->error || !id.v || b->columns.data[id.v].renames.count >= PROFILE_RENAMES_MAX)
		return;
	builder_has_failed(b, vec_push(&b->columns.data[id.v].renames, rename));
}

void profile_builder__epoch(struct profile_builder *b, uint64_t time)
{
	if (!b->error && b->epochs.count < EPOCHS_MAX)
		builder_has_failed(b, vec_push(&b->epochs, min_u64(time, BUILDER_TIME_LIMIT)));
}

void profile_builder__marker(struct profile_builder *b, const struct profile_marker *marker)
{
	struct profile_marker m = *marker;

	m.start = min_u64(m.start, BUILDER_TIME_LIMIT);
	m.end = min_u64(max_u64(m.end, m.start), BUILDER_TIME_LIMIT);
	if (!b->error && m.thread.v && m.name.v)
		builder_has_failed(b, vec_push(&b->markers, m));
}

int builder_note_cut(struct thread_columns *thread, size_t row, enum stack_end end)
{
	if (stack_end_is_complete(end) || row >= UINT32_MAX)
		return 0;
	return vec_push(&thread->cuts, ((struct profile_cut){(uint32_t)row, end}));
}

/* ---- the books of the outside ---------------------------------------------------------------- */

MAP_FUNCTIONS_BY_NUMBER(outside_table, struct profile_outside,
			(uint64_t)entry->user << 32 | (uint64_t)entry->thing << 16 | entry->reason);

/* The user, or OUTSIDE_USER_OTHERS where there is no room for one more. */
static uint32_t outside_user(struct profile_builder *b, uint32_t user)
{
	for (size_t i = 0; i < b->outside_users.count; i++)
		if (b->outside_users.data[i] == user)
			return user;
	if (b->outside_users.count >= OUTSIDE_USERS)
		return OUTSIDE_USER_OTHERS;
	builder_has_failed(b, vec_push(&b->outside_users, user));
	return user;
}

void profile_builder__outside(struct profile_builder *b, const struct profile_outside *row)
{
	struct profile_outside key = {
		.thing = row->thing, .reason = row->reason, .since = row->since};
	struct profile_outside *sum;

	if (row->thing >= OUTSIDE_THING_COUNT || row->reason >= OUTSIDE_REASON_COUNT || !row->count)
		return; /* of a newer recorder */
	key.user = outside_user(b, row->user);
	sum = outside_table__need(&b->outside, &key, NULL);
	if (builder_has_failed(b, sum ? 0 : -ENOMEM))
		return;
	sum->count += min_u64(row->count, UINT64_MAX - sum->count);
	sum->since = min_u64(sum->since, row->since);
}

DEFINE_ORDER(compare_outside, struct profile_outside, ASCENDING(user) ?: ASCENDING(thing) ?: ASCENDING(reason));

static void settle_outside(struct profile_builder *b)
{
	const struct profile *p = &b->profile;

	vec_sort(&b->outside, compare_outside);
	for (size_t i = 0; i < b->outside.count; i++) {
		struct profile_outside *row = &b->outside.data[i];

		row->since = min_u64(max_u64(row->since, p->start), p->end);
	}
}

void builder_free_events(struct profile_builder *b)
{
	for (size_t i = 0; i < b->memory_columns.count; i++)
		vec_free(&b->memory_columns.data[i].readings);
	memory_table__fini(&b->memory_columns);
	outside_table__fini(&b->outside);
	vec_free(&b->outside_users);
	fact_set_table__fini(&b->fact_sets);
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

DEFINE_ORDER(compare_markers, struct profile_marker, ASCENDING(start) ?: ASCENDING(end) ?: ASCENDING(thread.v) ?: ASCENDING(name.v));

static void settle_markers(struct profile_builder *b)
{
	const struct profile *p = &b->profile;
	size_t kept = 0;

	for (size_t i = 0; i < b->markers.count; i++) {
		struct profile_marker marker = b->markers.data[i];

		if (!marker_overlaps(&marker, p->start, p->end))
			continue;
		marker.start = max_u64(marker.start, p->start);
		marker.end = min_u64(marker.end, p->end);
		b->markers.data[kept++] = marker;
	}
	b->markers.count = kept;
	vec_sort(&b->markers, compare_markers);
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
	settle_markers(b);
	settle_outside(b);
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
	for (size_t i = 1; i < b->threads.count; i++)
		freeze_thread(&b->threads.data[i], &b->columns.data[i]);
	for (size_t i = 0; i < b->memory_columns.count; i++) {
		struct profile_memory memory = b->memory_columns.data[i].memory;

		memory.readings = b->memory_columns.data[i].readings.data;
		memory.count = b->memory_columns.data[i].readings.count;
		if (builder_has_failed(b, vec_push(&b->memories, memory)))
			return;
	}
}
