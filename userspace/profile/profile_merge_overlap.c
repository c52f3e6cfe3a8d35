/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/profile_merge_overlap.h"

#include "base/minmax.h"
#include "base/order.h"
#include "profile/profile_merge_private.h"

/* A wait is a span of time; its row has a time after it. */
static bool is_span(const struct sample_columns *c, size_t i)
{
	return c->since.count && c->since.data[i] < c->until.data[i];
}

static uint64_t row_since(const struct sample_columns *c, size_t i)
{
	return is_span(c, i) ? c->since.data[i] : c->time.data[i];
}

static uint64_t row_until(const struct sample_columns *c, size_t i)
{
	return is_span(c, i) ? c->until.data[i] : c->time.data[i];
}

static bool has_row(const struct sample_columns *c, struct row_span rows, struct merged_span time)
{
	size_t i = rows.first + partition_index(rows.end - rows.first, row,
						row_until(c, rows.first + row) < time.since);

	return i < rows.end && row_since(c, i) <= time.until;
}

/* Of one thread. An event's samples beside waits stand for other time. */
static bool are_both_in(const struct profile_merge *m, const struct merged_rows *x,
			const struct merged_rows *y, struct merged_span time)
{
	static const enum sample_kind kinds[] = {SAMPLE_CPU, SAMPLE_WALL};
	const struct thread_columns *columns = &m->builder->columns.data[x->thread];

	return any_of(kinds, sizeof(kinds) / sizeof(*kinds), kind,
		      has_row(&columns->by_kind[*kind], x->rows[*kind], time) &&
			      has_row(&columns->by_kind[*kind], y->rows[*kind], time));
}

/*
 * What sessions that began before have in common with a session lies at its start: the longest is
 * all of it.
 */
static void compare_rows(struct profile_merge *m, const struct merged_rows *x,
			 const struct merged_rows *y)
{
	const struct merged_session *before = &m->sessions.data[x->session];
	struct merged_session *session = &m->sessions.data[y->session];
	struct merged_span time = {.since = session->since,
				   .until = min_u64(before->until, session->until)};

	if (time.since >= time.until || !are_both_in(m, x, y, time))
		return;
	session->twice_until = max_u64(session->twice_until, time.until);
	m->processes.data[m->builder->threads.data[y->thread].process.v].is_twice = true;
}

DEFINE_ORDER(compare_threads, struct merged_rows, ASCENDING(thread) ?: ASCENDING(since));

size_t find_overlap(struct profile_merge *m)
{
	size_t processes = 0;

	vec_sort(&m->rows_of, compare_threads);
	for (size_t i = 0; i < m->rows_of.count; i++) {
		const struct merged_rows *x = &m->rows_of.data[i];
		uint64_t until = m->sessions.data[x->session].until;

		for (size_t k = i + 1;
		     k < m->rows_of.count && m->rows_of.data[k].thread == x->thread &&
		     m->rows_of.data[k].since < until;
		     k++)
			compare_rows(m, x, &m->rows_of.data[k]);
	}
	for (size_t i = 0; i < m->processes.count; i++)
		processes += m->processes.data[i].is_twice;
	return processes;
}
