/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks of their own: of waits, and of contexts (interrupts).
 *
 * Waits (record --wall) are among a thread's rows. A wait is a row whose stack has the state as leaf,
 * and a row without a stack at its end. It weighs its time in sample periods, a CPU sample 1.
 *
 * The edges of gaps, which the timeline infers from CPU samples, stay. Those within a wait get its
 * stack, without weight, so the wait is drawn in one piece. The timeline guesses where in a gap CPU
 * time was used; it was not in waits, so it moves to the rows between. CPU samples do not change.
 */
#include "formats/out/firefox_waits.h"

#include <errno.h>

#include "base/minmax.h"
#include "formats/out/firefox.h"
#include "formats/out/firefox_tables.h"
#include "formats/out/waits.h"

/* ---- tables ---------------------------------------------------------------------------------- */

#define OF_CONTEXT 0x80u /* of a key */

static uint64_t key_of(uint32_t id, unsigned int state)
{
	return (uint64_t)id << 8 | state;
}

static int add_wait_stack(struct firefox_tables *t, struct stack_id stack, enum wall_state state)
{
	const struct firefox_wait_stack wanted = {.key = key_of(stack.v, state)};

	t->wait_used[state] = true;
	return firefox_wait_stacks__need(&t->wait_stacks, &wanted, NULL) ? 0 : -ENOMEM;
}

static int add_context_stack(struct firefox_tables *t, struct stack_id stack,
			     enum sample_context context)
{
	const struct firefox_wait_stack wanted = {.key = key_of(stack.v, OF_CONTEXT | context)};
	const struct firefox_context_frame frame = {
		.key = key_of(t->p->stacks[stack.v].location.v, context)};

	if (context == CONTEXT_NONE || !stack.v)
		return 0;
	return firefox_wait_stacks__need(&t->wait_stacks, &wanted, NULL) &&
			       firefox_context_frames__need(&t->context_frames, &frame, NULL)
		       ? 0
		       : -ENOMEM;
}

int firefox_waits__collect(struct firefox_tables *t, const struct tracks *tracks)
{
	int err = 0;

	for (size_t i = 0; i < tracks->count; i++) {
		const struct profile_thread *thread = &t->p->threads[tracks->data[i].thread];
		const struct profile_samples *waits = &thread->samples[SAMPLE_WALL];
		const struct profile_samples *rows = &thread->samples[SAMPLE_CPU];

		for (size_t k = 0; k < waits->count && !err; k++)
			err = add_wait_stack(t, waits->stack[k], profile_samples__state(waits, k));
		for (size_t k = 0; rows->context && k < rows->count && !err; k++)
			err = add_context_stack(t, rows->stack[k],
						profile_samples__context(rows, k));
	}
	return err;
}

/* The leaves come after the other frames and functions. */
int firefox_waits__number(struct firefox_tables *t)
{
	uint32_t count = 0;
	int err = 0;

	for (int state = 0; state < WALL_STATE_COUNT && !err; state++) {
		if (!t->wait_used[state])
			continue;
		t->wait_leaf[state] = count++;
		err = firefox_tables__text(t, wait_leaf((enum wall_state)state),
					   &t->wait_name[state]);
	}
	t->wait_leaf_count = count;
	if ((uint64_t)t->stack_count + t->wait_stacks.count >= FIREFOX_UNUSED ||
	    (uint64_t)t->frame_count + count + t->context_frames.count >= FIREFOX_UNUSED)
		return err ? err : -EOVERFLOW;
	return err;
}

void firefox_wait_stack__parts(const struct firefox_tables *t, size_t number, uint32_t *frame,
			       int64_t *parent)
{
	uint64_t key = t->wait_stacks.data[number].key;
	const struct profile_stack *stack = &t->p->stacks[key >> 8];
	uint32_t row = firefox_tables__stack(t, (struct stack_id){(uint32_t)(key >> 8)});
	const struct firefox_context_frame *known;

	if (!(key & OF_CONTEXT)) {
		*frame = t->frame_count + t->wait_leaf[key & 0xff];
		*parent = row;
		return;
	}
	known = firefox_context_frames__find(&t->context_frames,
					     key_of(stack->location.v, key & 0xff & ~OF_CONTEXT));
	*frame = t->frame_count + t->wait_leaf_count + (uint32_t)(known - t->context_frames.data);
	if (t->p->locations[stack->location.v].line_count > 1)
		*parent = (int64_t)row - 1;
	else
		*parent = stack->parent.v ? (int64_t)firefox_tables__stack(t, stack->parent) : -1;
}

uint32_t firefox_row__stack(const struct firefox_tables *t, const struct firefox_row *row)
{
	unsigned int state = row->context ? OF_CONTEXT | row->context : row->state;
	const struct firefox_wait_stack *known =
		firefox_wait_stacks__find(&t->wait_stacks, key_of(row->stack.v, state));

	return state ? t->stack_count + (uint32_t)(known - t->wait_stacks.data)
		     : firefox_tables__stack(t, row->stack);
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct merge {
	struct firefox *f;
	const struct profile_thread *thread;
	const struct profile_samples *waits;
	size_t next;		   /* the next wait */
	uint64_t end;		   /* of the thread */
	uint64_t period, rest;	   /* of wait_ticks() */
	struct firefox_row during; /* the wait that has begun, until … */
	uint64_t until;
};

static uint64_t last_time(const struct merge *m)
{
	size_t count = m->f->rows.count;

	return count ? m->f->rows.data[count - 1].time : 0;
}

static int push_row(struct merge *m, struct firefox_row row)
{
	row.time = max_u64(row.time, last_time(m) + 1);
	return vec_push(&m->f->rows, row);
}

/* The begin of the next wait, early enough for all waits to have a row before the end. */
static uint64_t next_begin(const struct merge *m)
{
	uint64_t left = m->waits->count - m->next;

	return min_u64(m->waits->since[m->next], m->end > left ? m->end - left : 0);
}

static int end_wait(struct merge *m, uint64_t before)
{
	uint64_t until = m->until;

	m->until = 0;
	if (!until || until >= before || until <= last_time(m))
		return 0;
	return push_row(m, (struct firefox_row){.time = until});
}

static int begin_wait(struct merge *m)
{
	uint64_t begin = next_begin(m);
	int err = end_wait(m, begin);

	if (err)
		return err;
	m->during = (struct firefox_row){
		.time = begin,
		.stack = m->waits->stack[m->next],
		.state = profile_samples__state(m->waits, m->next),
		.weight = m->f->p->event.v
				  ? 0
				  : wait_ticks(m->waits->weight[m->next], m->period, &m->rest),
	};
	m->until = min_u64(max_u64(m->waits->until[m->next], begin + 1), m->end);
	m->next++;
	err = push_row(m, m->during);
	m->during.weight = 0;
	return err;
}

static struct firefox_row row_of(const struct merge *m, const struct timeline_entry *entry)
{
	const struct profile_samples *samples = &m->thread->samples[SAMPLE_CPU];

	return (struct firefox_row){
		.time = entry->time,
		.stack = entry->stack,
		.context = entry->stack.v ? profile_samples__context(samples, entry->sample)
					  : CONTEXT_NONE,
		.cpu_delta = entry->cpu_delta,
		.ticks = entry->stack.v ? profile_samples__ticks(samples, entry->sample) : 1,
		.weight = entry->stack.v ? profile_samples__events(samples, entry->sample) : 1,
		.fixed = entry->stack.v || entry->kind == TIMELINE_START,
	};
}

static int add_entry(struct merge *m, const struct timeline_entry *entry)
{
	struct firefox_row row = row_of(m, entry);
	int err = 0;

	while (!err && m->next < m->waits->count && next_begin(m) < entry->time)
		err = begin_wait(m);
	if (!err && (entry->stack.v || m->until <= entry->time))
		err = end_wait(m, entry->time);
	if (!err && m->until && !entry->stack.v) {
		row.stack = m->during.stack;
		row.state = m->during.state;
		row.weight = row.ticks = 0;
	}
	return err ? err : push_row(m, row);
}

/* How much CPU time fits into the time before a row. */
static uint64_t room_before(const struct firefox_row *row)
{
	return row[-1].state != WALL_NONE ? 0 : row->time - row[-1].time;
}

static void move_cpu(struct firefox_row *from, struct firefox_row *to)
{
	uint64_t room = room_before(from), more;

	if (from->cpu_delta <= room)
		return;
	more = from->cpu_delta - room;
	from->cpu_delta -= more;
	to->cpu_delta += more;
}

/* Between two CPU samples: first to later rows, then their surplus back to earlier ones. */
static void place_cpu(struct firefox_row *rows, size_t count)
{
	for (size_t i = 1; i + 1 < count; i++)
		if (!rows[i].fixed)
			move_cpu(&rows[i], &rows[i + 1]);
	for (size_t i = count; i-- > 2;)
		if (!rows[i - 1].fixed)
			move_cpu(&rows[i], &rows[i - 1]);
}

int firefox__collect_rows(struct firefox *f, size_t track)
{
	const struct profile_thread *thread = &f->p->threads[f->tracks.data[track].thread];
	struct merge m = {
		.f = f,
		.thread = thread,
		.waits = &thread->samples[SAMPLE_WALL],
		.end = timeline_end(f->p, thread),
		.period = wait_period(f->p),
	};
	int err = firefox__collect_entries(f, track);

	m.rest = m.period / 2;
	f->rows.count = 0;
	for (size_t i = 0; i < f->entries.count && !err; i++)
		err = add_entry(&m, &f->entries.data[i]);
	while (!err && m.next < m.waits->count)
		err = begin_wait(&m);
	if (!err)
		err = end_wait(&m, UINT64_MAX);
	if (!err && m.waits->count)
		place_cpu(f->rows.data, f->rows.count);
	return err;
}
