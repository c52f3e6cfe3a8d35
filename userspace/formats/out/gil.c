/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/gil.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/minmax.h"
#include "base/order.h"
#include "formats/out/describe.h"

#define THREADS_SHOWN 3u
#define ROWS_MAX      4096u /* in JSON */

/* ---- the table ------------------------------------------------------------------------------- */

DEFINE_ORDER(compare_rows, struct profile_gil, ASCENDING(process.v) ?: DESCENDING(held_time) ?: ASCENDING(thread.v));

DEFINE_ORDER(compare_processes, struct gil_of_process, DESCENDING(share) ?: ASCENDING(rows));

/* How long the process was recorded, ns. */
static uint64_t time_of(const struct profile *p, struct process_id id)
{
	const struct profile_process *process = &p->processes[id.v];
	uint64_t start = max_u64(process->start, p->start);
	uint64_t end = process->end ? min_u64(process->end, p->end) : p->end;

	return end > start ? end - start : 0;
}

static void add_process(struct gil_table *t, const struct profile *p,
			const struct profile_gil *rows, size_t count)
{
	struct gil_of_process *sum = &t->processes[t->count++];
	uint64_t time = time_of(p, rows->process), held = 0;

	*sum = (struct gil_of_process){.rows = rows, .count = count};
	for (size_t i = 0; i < count; i++) {
		sum->samples += rows[i].samples;
		sum->held += rows[i].held;
		sum->waiting += rows[i].waiting;
		held += rows[i].held_time;
	}
	sum->share = time ? (double)min_u64(held, time) / (double)time : 0;
}

void gil_table__init(struct gil_table *t, const struct profile *p)
{
	size_t count = p->gil_count;

	*t = (struct gil_table){};
	if (!count)
		return;
	t->rows = calloc(count, sizeof(*t->rows));
	t->processes = calloc(count, sizeof(*t->processes));
	if (!t->rows || !t->processes)
		return;
	memcpy(t->rows, p->gils, count * sizeof(*t->rows));
	qsort(t->rows, count, sizeof(*t->rows), compare_rows);
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && t->rows[end].process.v == t->rows[i].process.v;)
			end++;
		add_process(t, p, &t->rows[i], end - i);
	}
	qsort(t->processes, t->count, sizeof(*t->processes), compare_processes);
}

void gil_table__fini(struct gil_table *t)
{
	free(t->rows);
	free(t->processes);
	*t = (struct gil_table){};
}

/* ---- text ------------------------------------------------------------------------------------ */

static void add_holders(struct text_line *line, const struct profile *p,
			const struct gil_of_process *gil)
{
	uint64_t held = 0;

	for (size_t i = 0; i < gil->count; i++)
		held += gil->rows[i].held_time;
	for (size_t i = 0; held && i < gil->count && i < THREADS_SHOWN && gil->rows[i].held; i++) {
		const struct profile_thread *thread = &p->threads[gil->rows[i].thread.v];

		add_text(line, "%s%s (tid %" PRIu32 ") %.1f %%", i ? ", " : "; held by ",
			 profile__string(p, thread->name), thread->tid,
			 100.0 * (double)gil->rows[i].held_time / (double)held);
	}
	if (gil->count > THREADS_SHOWN)
		add_text(line, ", %zu more", gil->count - THREADS_SHOWN);
}

void describe_gil(char *text, size_t size, const struct profile *p,
		  const struct gil_of_process *gil)
{
	const struct profile_process *process = &p->processes[gil->rows->process.v];
	struct text_line line = {text, size, 0};

	*text = 0;
	add_text(&line,
		 "%s (pid %" PRIu32 "): held in %.1f %% of %" PRIu64
		 " samples of %zu threads, %.1f %% of the time",
		 profile__string(p, process->name), process->pid,
		 100.0 * (double)gil->held / (double)gil->samples, gil->samples, gil->count,
		 100 * gil->share);
	add_holders(&line, p, gil);
	if (gil->waiting)
		add_text(&line, "; %" PRIu64 " sample%s about to wait for it", gil->waiting,
			 gil->waiting == 1 ? "" : "s");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void write_process(const struct profile *p, const struct gil_of_process *gil,
			  struct json_writer *w)
{
	size_t shown = min_u64(gil->count, ROWS_MAX);

	json_begin_object(w);
	json_key_uint(w, "pid", p->processes[gil->rows->process.v].pid);
	json_key(w, "held_time_share");
	json_fixed(w, gil->share, 6);
	json_key_uint(w, "samples", gil->samples);
	json_key_uint(w, "held", gil->held);
	json_key_uint(w, "waiting", gil->waiting);
	if (shown < gil->count)
		json_key_uint(w, "threads_left_out", gil->count - shown);
	json_key_array(w, "threads");
	for (size_t i = 0; i < shown; i++) {
		const struct profile_gil *row = &gil->rows[i];

		json_begin_object(w);
		json_key_uint(w, "tid", p->threads[row->thread.v].tid);
		json_key_string(w, "name", profile__string(p, p->threads[row->thread.v].name));
		json_key_uint(w, "samples", row->samples);
		json_key_uint(w, "held", row->held);
		json_key_uint(w, "waiting", row->waiting);
		json_key_uint(w, "held_ns", row->held_time);
		json_end_object(w);
	}
	json_end_array(w);
	json_end_object(w);
}

void write_gils(const struct profile *p, struct json_writer *w)
{
	struct gil_table table;
	size_t shown;

	if (!p->gil_count)
		return;
	gil_table__init(&table, p);
	shown = min_u64(table.count, ROWS_MAX);
	if (shown < table.count)
		json_key_uint(w, "gil_left_out", table.count - shown);
	JSON_COLUMN(w, "gil", shown, write_process(p, &table.processes[i], w));
	gil_table__fini(&table);
}
