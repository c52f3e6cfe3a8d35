/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/profile_merge_finish.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/suffix.h"
#include "base/text_line.h"
#include "profile/profile_merge_facts.h"
#include "profile/profile_merge_overlap.h"
#include "profile/profile_merge_private.h"

#define NAMES_SHOWN 8
#define TEXT_SIZE   4096
#define GAP_MIN	    (NS_PER_SECOND / 100) /* shorter ones are no gap between recordings */

/* ---- the axis -------------------------------------------------------------------------------- */

/* The first clock keeps its times. */
static void place_clocks(struct profile_merge *m)
{
	uint64_t end = 0;

	for (size_t i = 0; i < m->clocks.count; i++) {
		struct merged_clock *clock = &m->clocks.data[i];

		clock->place = i ? end : clock->start;
		end = min_u64(clock->place + (clock->end - clock->start), BUILDER_TIME_LIMIT);
	}
}

static uint64_t placed(const struct profile_merge *m, uint32_t clock, uint64_t time)
{
	const struct merged_clock *c = &m->clocks.data[clock];

	return min_u64(c->place + (time > c->start ? time - c->start : 0), BUILDER_TIME_LIMIT);
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct timed_row {
	uint64_t time;
	size_t row;
};

DEFINE_ORDER(compare_rows, struct timed_row, ASCENDING(time) ?: ASCENDING(row));

/* Rearranges a column, which may be shorter than the others if it is missing. 0 or -ENOMEM. */
static int sort_column(void *data, size_t count, size_t size, const struct timed_row *order,
		       size_t rows)
{
	_cleanup_free_ char *copy = NULL;

	if (!count || count != rows)
		return 0;
	copy = malloc(count * size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, data, count * size);
	for (size_t i = 0; i < count; i++)
		memcpy((char *)data + i * size, copy + order[i].row * size, size);
	return 0;
}

static struct timed_row *order_rows(const struct sample_columns *c)
{
	struct timed_row *order = calloc(c->time.count + 1, sizeof(*order));

	for (size_t i = 0; order && i < c->time.count; i++)
		order[i] = (struct timed_row){c->time.data[i], i};
	if (order)
		qsort(order, c->time.count, sizeof(*order), compare_rows);
	return order;
}

DEFINE_ORDER(compare_cuts, struct profile_cut, ASCENDING(sample));

static int sort_cuts(struct thread_columns *columns, const struct timed_row *order, size_t rows)
{
	_cleanup_free_ uint32_t *now = calloc(rows + 1, sizeof(*now));

	if (!now)
		return -ENOMEM;
	for (size_t i = 0; i < rows; i++)
		now[order[i].row] = (uint32_t)min_u64(i, UINT32_MAX);
	for (size_t i = 0; i < columns->cuts.count; i++)
		columns->cuts.data[i].sample = now[columns->cuts.data[i].sample];
	vec_sort(&columns->cuts, compare_cuts);
	return 0;
}

static int sort_rows(struct thread_columns *columns, enum sample_kind kind)
{
	struct sample_columns *c = &columns->by_kind[kind];
	size_t rows = c->time.count;
	_cleanup_free_ struct timed_row *order = order_rows(c);
	int err = order ? 0 : -ENOMEM;

#define X(type, name)                                                                              \
	if (!err)                                                                                  \
		err = sort_column(c->name.data, c->name.count, sizeof(type), order, rows);
	PROFILE_SAMPLE_COLUMNS(X)
#undef X
	if (!err && kind == SAMPLE_CPU && columns->cuts.count)
		err = sort_cuts(columns, order, rows);
	return err;
}

/* Times strictly increase, and a wait comes after the one before. */
static void place_rows(const struct profile_merge *m, struct sample_columns *c, uint32_t clock,
		       uint64_t start)
{
	uint64_t last = start, waited = start;

	for (size_t i = 0; i < c->time.count; i++) {
		last = max_u64(placed(m, clock, c->time.data[i]), last + 1);
		c->time.data[i] = last;
	}
	for (size_t i = 0; i < c->since.count; i++) {
		c->since.data[i] = max_u64(placed(m, clock, c->since.data[i]), waited);
		c->until.data[i] = max_u64(placed(m, clock, c->until.data[i]), c->since.data[i]);
		waited = c->until.data[i];
	}
}

DEFINE_ORDER(compare_renames, struct profile_rename, ASCENDING(time));

static void place_renames(const struct profile_merge *m, struct thread_columns *columns,
			  uint32_t clock)
{
	vec_sort(&columns->renames, compare_renames);
	for (size_t i = 0; i < columns->renames.count; i++)
		columns->renames.data[i].time = placed(m, clock, columns->renames.data[i].time);
}

/* When it ended; 0: it did not, as far as is known. */
static uint64_t end_of(const struct profile_merge *m, const struct merged_life *life)
{
	return life->end_max == UINT64_MAX ? 0 : placed(m, life->clock, life->seen_until);
}

static int place_thread(struct profile_merge *m, uint32_t id)
{
	struct profile_thread *t = &m->builder->threads.data[id];
	struct thread_columns *columns = &m->builder->columns.data[id];
	const struct merged_life *life = &m->threads.data[id];
	uint64_t length = t->wall.until - t->wall.since;
	int err = 0;

	for (int kind = 0; kind < SAMPLE_KIND_COUNT && life->is_unsorted && !err; kind++)
		err = sort_rows(columns, (enum sample_kind)kind);
	if (err)
		return err;
	t->start = placed(m, life->clock, t->start);
	t->end = end_of(m, life);
	for (int kind = 0; kind < SAMPLE_KIND_COUNT; kind++)
		place_rows(m, &columns->by_kind[kind], life->clock, t->start);
	place_renames(m, columns, life->clock);
	if (t->wall.until) {
		t->wall.since = placed(m, life->clock, t->wall.since);
		t->wall.until = t->wall.since + length;
	}
	return 0;
}

static int place_lives(struct profile_merge *m)
{
	int err = 0;

	for (uint32_t i = 1; i < m->processes.count; i++) {
		struct profile_process *process = &m->builder->processes.data[i];
		const struct merged_life *life = &m->processes.data[i];

		process->start = placed(m, life->clock, process->start);
		process->end = end_of(m, life);
		process->execs &= process->end != 0;
	}
	for (uint32_t i = 1; i < m->threads.count && !err; i++)
		err = place_thread(m, i);
	return err;
}

/* Idle samples of some profiles only would say that threads of the others never were. */
static void drop_idle_rows(struct profile_merge *m)
{
	for (size_t i = 1; i < m->builder->columns.count; i++) {
		struct sample_columns *c = &m->builder->columns.data[i].by_kind[SAMPLE_IDLE];

#define X(type, name) vec_free(&c->name);
		PROFILE_SAMPLE_COLUMNS(X)
#undef X
		c->weight_sum = c->tick_sum = c->event_sum = 0;
	}
}

/* ---- lists ----------------------------------------------------------------------------------- */

DEFINE_ORDER(compare_spans, struct merged_span, ASCENDING(until) ?: ASCENDING(since));

/* Ranges have no count of their own: all losses were added up. */
static void place_lists(struct profile_merge *m)
{
	struct profile_builder *b = m->builder;

	for (size_t i = 0; i < m->lost.count; i++) {
		struct merged_span *lost = &m->lost.data[i];

		lost->since = placed(m, lost->clock, lost->since);
		lost->until = placed(m, lost->clock, lost->until);
	}
	vec_sort(&m->lost, compare_spans);
	for (size_t i = 0; i < m->lost.count; i++)
		profile_builder__lost(b, LOST_RECORDING, 0, m->lost.data[i].since,
				      m->lost.data[i].until);
	for (size_t i = 0; i < m->epochs.count; i++)
		m->epochs.data[i].until = placed(m, m->epochs.data[i].clock,
						 m->epochs.data[i].until);
	vec_sort(&m->epochs, compare_spans);
	for (size_t i = 0; i < m->epochs.count; i++)
		profile_builder__epoch(b, m->epochs.data[i].until);
	for (size_t i = 0; i < m->outside.count; i++) {
		struct merged_outside *outside = &m->outside.data[i];

		outside->row.since = placed(m, outside->clock, outside->row.since);
		profile_builder__outside(b, &outside->row);
	}
	for (size_t i = 0; i < m->markers.count; i++) {
		struct merged_marker *marker = &m->markers.data[i];

		marker->row.start = placed(m, marker->clock, marker->row.start);
		marker->row.end = placed(m, marker->clock, marker->row.end);
		profile_builder__marker(b, &marker->row);
	}
}

DEFINE_ORDER(compare_readings, struct profile_memory_reading, ASCENDING(time));
DEFINE_ORDER(compare_jits, struct profile_jit, ASCENDING(process.v));

static void place_readings(struct profile_merge *m)
{
	for (size_t i = 0; i < m->builder->memory_columns.count; i++) {
		struct memory_column *column = &m->builder->memory_columns.data[i];
		uint32_t process = column->memory.process.v;
		uint32_t clock = process ? m->processes.data[process].clock : 0;

		for (size_t k = 0; k < column->readings.count; k++)
			column->readings.data[k].time = placed(m, clock,
							       column->readings.data[k].time);
		vec_sort(&column->readings, compare_readings);
	}
	vec_sort(&m->builder->jits, compare_jits);
}

/* ---- the session ----------------------------------------------------------------------------- */

static void place_session(struct profile_merge *m)
{
	struct profile *session = &m->builder->profile;
	const struct merged_clock *first = &m->clocks.data[0];
	const struct merged_clock *last = &m->clocks.data[m->clocks.count - 1];

	session->start = first->start;
	session->start_realtime = first->realtime;
	session->end = placed(m, (uint32_t)m->clocks.count - 1, last->end);
	session->untimed = m->has_untimed;
	session->weight_ahead = m->has_ahead && !m->has_behind;
	session->idle_known = m->has_idle && !m->has_no_idle;
	if (m->is_windows)
		return; /* rows have made-up places in their windows: nothing follows from gaps */
	session->period = m->period_max;
	session->event_squares = m->event_squares;
	memcpy(session->stack_ends, m->stack_ends, sizeof(session->stack_ends));
}

DEFINE_ORDER(compare_sessions, struct merged_session, ASCENDING(clock) ?: ASCENDING(since));

/* Time of a clock in which no profile was recorded, between others that were. */
static uint64_t unrecorded(const struct profile_merge *m)
{
	uint64_t sum = 0, end = 0;

	for (size_t i = 0; i < m->sessions.count; i++) {
		const struct merged_session *s = &m->sessions.data[i];

		if (i && s->clock == s[-1].clock && s->since > end + GAP_MIN)
			sum += s->since - end;
		end = i && s->clock == s[-1].clock ? max_u64(end, s->until) : s->until;
	}
	return sum;
}

/* Time of all clocks in which samples of several profiles are of the same thread. */
static uint64_t recorded_twice(const struct profile_merge *m)
{
	uint64_t sum = 0, end = 0;

	for (size_t i = 0; i < m->sessions.count; i++) {
		const struct merged_session *s = &m->sessions.data[i];
		uint64_t from = i && s->clock == s[-1].clock ? max_u64(end, s->since) : s->since;

		end = max_u64(from, s->twice_until);
		sum += end - from;
	}
	return sum;
}

/* Samples of the files do not stand for the same. */
static void add_units(const struct profile_merge *m, struct text_line *line)
{
	if (m->with_cpu && m->with_cpu < m->with_samples)
		add_text(line, ", CPU time of %zu alone", m->with_cpu);
	if (m->with_period && m->with_period < m->with_samples)
		add_text(line, ", a known period of %zu alone", m->with_period);
	if (m->period_max - m->period_min > m->period_max / 100)
		add_text(line, ", periods of %.3f to %.3f ms", (double)m->period_min / 1e6,
			 (double)m->period_max / 1e6);
}

/* The sums are those of the files, whatever they have in common. */
static void add_overlap(const struct profile_merge *m, size_t processes, struct text_line *line)
{
	bool is_pair = m->names.count == 2;

	if (processes)
		add_text(line,
			 ", overlapping for %.3f s with %zu process%s in %s, whose samples of that "
			 "time count %s",
			 (double)recorded_twice(m) / 1e9, processes, processes == 1 ? "" : "es",
			 is_pair ? "both" : "several", is_pair ? "twice" : "more than once");
}

static void add_names(const struct profile_merge *m, struct text_line *line)
{
	for (size_t i = 0; i < m->names.count && i < NAMES_SHOWN; i++)
		add_text(line, "%s%s", i ? ", " : ": ", path_base(m->names.data[i]));
	if (m->names.count > NAMES_SHOWN)
		add_text(line, " and %zu more", m->names.count - NAMES_SHOWN);
}

/* "2 files on one time axis (20.0 s between them not recorded): a.sysprof, b.sysprof" */
static void describe_inputs(struct profile_merge *m, size_t processes_twice)
{
	uint64_t gap;
	char text[TEXT_SIZE] = "";
	struct text_line line = {text, sizeof(text), 0};

	vec_sort(&m->sessions, compare_sessions);
	gap = unrecorded(m);
	if (m->is_windows)
		add_text(&line, "%llu windows, times are exact to %.0f s",
			 (unsigned long long)m->windows,
			 (double)max_u64(m->window_length, m->block_length) / 1e9);
	else
		add_text(&line, "%zu files %s", m->names.count,
			 m->has_untimed		? "as one, without times"
			 : m->clocks.count == 1 ? "on one time axis"
						: "one after the other");
	if (!m->is_windows && !m->has_untimed && m->clocks.count > 1 &&
	    m->clocks.count < m->names.count)
		add_text(&line, ", those of one clock on one time axis");
	if (gap && !m->has_untimed)
		add_text(&line, " (%.1f s between them not recorded)", (double)gap / 1e9);
	add_overlap(m, processes_twice, &line);
	if (!m->is_windows)
		add_units(m, &line);
	add_names(m, &line);
	profile_builder__meta(m->builder, META_INPUTS, text);
}

/* The header has one sentence for all files. */
static void describe_cpu_time(struct profile_merge *m)
{
	char text[TEXT_SIZE] = "";
	struct text_line line = {text, sizeof(text), 0};

	if (!m->cpu_time_missing || m->cpu_time_missing == m->sources)
		return;
	add_text(&line, "some files have no CPU time (%s)", meta_so_far(m->builder, META_CPU_TIME));
	profile_builder__meta(m->builder, META_CPU_TIME, text);
}

int place_profiles(struct profile_merge *m)
{
	size_t processes_twice;
	int err;

	if (!m->clocks.count)
		return -ENODATA;
	processes_twice = find_overlap(m); /* of rows as they were added */
	place_clocks(m);
	place_session(m);
	if (m->has_idle && m->has_no_idle)
		drop_idle_rows(m);
	err = place_lives(m);
	if (err)
		return err;
	place_lists(m);
	place_readings(m);
	describe_inputs(m, processes_twice);
	describe_cpu_time(m);
	return profile_builder__error(m->builder);
}
