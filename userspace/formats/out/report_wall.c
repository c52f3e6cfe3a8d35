/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/report_wall.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/map.h"
#include "base/minmax.h"
#include "base/order.h"
#include "formats/out/describe.h"
#include "formats/out/report_header.h"
#include "formats/out/report_json.h"
#include "formats/out/report_paint.h"
#include "formats/out/report_rows.h"
#include "formats/out/waits.h"
#include "profile/profile.h"

#define SHARE_DIGITS 6
#define NAME_WIDTH   40

static const char *const by_names[REPORT_WALL_BY_COUNT] = {
	[REPORT_WALL_STATE] = "state",
	[REPORT_WALL_FUNCTION] = "function",
	[REPORT_WALL_THREAD] = "thread",
	[REPORT_WALL_HOLDER] = "holder",
};

int report_wall_by_parse(const char *text, enum report_wall_by *by)
{
	for (unsigned int i = 0; i < REPORT_WALL_BY_COUNT; i++) {
		if (strcmp(by_names[i], text))
			continue;
		*by = (enum report_wall_by)i;
		return 0;
	}
	return -EINVAL;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* After the states: the waits of parked threads. */
enum { WALL_ROW_PARKED = WALL_STATE_COUNT, WALL_ROW_COUNT };

static const char *state_name(int state)
{
	return state == WALL_ROW_PARKED ? "parked" : wall_state_name((enum wall_state)state);
}

struct wall_row {
	uint64_t key; /* of a function: its name, its dso's name and the state */
	uint64_t ns, waits;
	uint32_t thread;       /* by thread */
	enum wall_state state; /* or WALL_ROW_PARKED */
	bool parked;
	const char *name, *place; /* of the profile, or static */
};
DEFINE_MAP_BY(wall_rows, struct wall_row, uint64_t, key);

DEFINE_ORDER(compare_rows, struct wall_row, ASCENDING(parked) ?: DESCENDING(ns) ?: DESCENDING(waits) ?: ASCENDING(key));

struct wall_report {
	const struct profile *p;
	const struct report_options *options;
	const struct parked *parked; /* NULL: their waits are as any other */
	struct figures figures;
	struct wall_rows rows;
	size_t shown, count;
	FILE *out;
};

static bool is_parked(const struct wall_report *r, uint32_t thread, size_t wait)
{
	return r->parked && parked__has(r->parked, thread, wait);
}

/* Waits of parked threads are a row of their own, not of their state, so all rows still add up. */
static void set_parked_apart(const struct wall_report *r, uint64_t ns[WALL_ROW_COUNT],
			     uint64_t waits[WALL_ROW_COUNT])
{
	for (uint32_t i = 1; i < r->p->thread_count; i++) {
		const struct profile_samples *of = &r->p->threads[i].samples[SAMPLE_WALL];

		for (size_t k = 0; k < of->count; k++) {
			enum wall_state state = profile_samples__state(of, k);
			bool apart = is_parked(r, i, k);

			waits[apart ? WALL_ROW_PARKED : (int)state]++;
			if (!apart)
				continue;
			ns[WALL_ROW_PARKED] += of->weight[k];
			ns[state] -= of->weight[k];
		}
	}
}

/* Adds a row with all of its time, if it has any. */
static int add_row(struct wall_report *r, const struct wall_row *row)
{
	return !row->ns || wall_rows__need(&r->rows, row, NULL) ? 0 : -ENOMEM;
}

static int add_states(struct wall_report *r)
{
	uint64_t ns[WALL_ROW_COUNT] = {}, waits[WALL_ROW_COUNT] = {};
	int err = 0;

	memcpy(ns, &r->figures.value[FIGURE_STATES], WALL_STATE_COUNT * sizeof(*ns));
	set_parked_apart(r, ns, waits);
	for (int state = WALL_RUNNING; state < WALL_ROW_COUNT && !err; state++)
		err = add_row(
			r,
			&(struct wall_row){
				.key = (uint64_t)state,
				.ns = ns[state],
				.waits = waits[state],
				.state = (enum wall_state)state,
				.name = state_name(state),
				.place =
					state == WALL_ROW_PARKED
						? "waits at one place for a time or for what comes from outside"
						: figure_table[FIGURE_STATES + state].text});
	return err;
}

static int add_threads(struct wall_report *r)
{
	const struct profile *p = r->p;
	int err = 0;

	for (uint32_t i = 1; i < p->thread_count && !err; i++) {
		const struct profile_thread *t = &p->threads[i];
		const struct wall_row row = {
			.key = i,
			.thread = i,
			.ns = t->wall.until - t->wall.since,
			.waits = t->samples[SAMPLE_WALL].count,
			.parked = r->parked && r->parked->place[i],
			.name = profile__string(p, t->name),
			.place = profile__string(p, p->processes[t->process.v].name),
		};

		err = add_row(r, &row);
	}
	return err;
}

static struct wall_row row_of_function(const struct profile *p, const struct profile_samples *waits,
				       size_t k)
{
	const struct profile_location *l = waiting_place(p, waits->stack[k]);
	const struct profile_function *f = &p->functions[p->lines[l->first_line].function.v];
	const char *dso = dso_display_name(p, l->dso);
	enum wall_state state = profile_samples__state(waits, k);

	return (struct wall_row){
		.key = hash_combine(hash_combine(hash_u64(f->name.v), hash_string(dso)), state),
		.state = state,
		.name = profile__string(p, f->name),
		.place = dso,
	};
}

/* Waits for locks with an unknown holder are a row too. No name: no wait for a lock. */
static struct wall_row row_of_holder(const struct profile *p, const struct profile_samples *waits,
				     size_t k)
{
	uint32_t holder = waits->holder[k].v;
	const struct profile_thread *t = &p->threads[holder];
	const char *process = profile__string(p, p->processes[t->process.v].name);
	bool is_lock = waits->state[k] == WALL_LOCK || holder;

	return (struct wall_row){
		.key = holder,
		.thread = holder,
		.state = WALL_LOCK,
		.name = !is_lock ? NULL
			: holder ? profile__string(p, t->name)
				 : "[not known]",
		.place = holder ? process : "",
	};
}

/* Adds up the waits by the rows that they are of. */
static int add_waits(struct wall_report *r,
		     struct wall_row (*row_of)(const struct profile *p,
					       const struct profile_samples *waits, size_t k))
{
	for (uint32_t i = 1; i < r->p->thread_count; i++) {
		const struct profile_samples *waits = &r->p->threads[i].samples[SAMPLE_WALL];

		for (size_t k = 0; k < waits->count; k++) {
			const struct wall_row wanted = row_of(r->p, waits, k);
			struct wall_row *row;

			if (!wanted.name || is_parked(r, i, k))
				continue;
			row = wall_rows__need(&r->rows, &wanted, NULL);
			if (!row)
				return -ENOMEM;
			row->ns += waits->weight[k];
			row->waits++;
		}
	}
	return 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_visits(const struct wall_report *r)
{
	char text[VISITS_TEXT_SIZE];
	FILE *out = r->out;

	fprintf(out, "# visits     %s\n", describe_visits(text, sizeof(text), &r->figures));
	fprintf(out, "# looks      %s\n", describe_looks(text, sizeof(text), &r->figures));
	if (r->parked && r->parked->threads)
		fprintf(out,
			"# parked     %" PRIu64
			" threads, %.3f s at one place each: --parked shows them\n",
			r->parked->threads, (double)r->parked->ns / 1e9);
	if (r->figures.value[FIGURE_UNVISITED])
		fprintf(out, "# unvisited  %.3f s, at the end of threads\n",
			(double)r->figures.value[FIGURE_UNVISITED] / 1e9);
}

static int print_row(const struct wall_report *r, const struct wall_row *row)
{
	_cleanup_free_ char *name = printable_copy(row->name);
	_cleanup_free_ char *place = printable_copy(row->place);
	const struct profile_thread *t = &r->p->threads[row->thread];
	const struct profile_wall *w = &t->wall;
	enum report_wall_by by = r->options->wall_by;
	FILE *out = r->out;

	if (!name || !place)
		return -ENOMEM;
	fprintf(out, "%6.2f%% %12.3f %8" PRIu64 "  ",
		100 * share_of(row->ns, r->figures.value[FIGURE_LIVED]), (double)row->ns / 1e6,
		row->waits);
	if (by == REPORT_WALL_THREAD)
		fprintf(out, "%11.3f %11.3f %11.3f %11.3f %8u  %s  %s%s\n",
			(double)w->running / 1e6, (double)w->runnable / 1e6,
			(double)w->blocked / 1e6, (double)w->unvisited / 1e6, t->tid, name, place,
			row->parked ? "  (parked)" : "");
	else if (by == REPORT_WALL_HOLDER && row->thread)
		fprintf(out, "%8u  %s  %s\n", t->tid, name, place);
	else if (by == REPORT_WALL_HOLDER)
		fprintf(out, "%8s  %s\n", "", name);
	else if (by == REPORT_WALL_FUNCTION)
		fprintf(out, "%-9s  %-*s  %s\n", wall_state_name(row->state), NAME_WIDTH, name,
			place);
	else
		fprintf(out, "%-9s  %s\n", name, place);
	return 0;
}

static int write_text(const struct wall_report *r)
{
	enum report_wall_by by = r->options->wall_by;
	FILE *out = r->out;
	int err = report_header(r->p, out);

	if (err)
		return err;
	print_visits(r);
	fprintf(out, "\n%7s %12s %8s  ", "share", "ms", "waits");
	if (by == REPORT_WALL_THREAD)
		fprintf(out, "%11s %11s %11s %11s %8s  %s\n", "running", "runnable", "blocked",
			"unvisited", "tid", "thread, process");
	else if (by == REPORT_WALL_FUNCTION)
		fprintf(out, "%-9s  %-*s  %s\n", "state", NAME_WIDTH, "function", "dso");
	else if (by == REPORT_WALL_HOLDER)
		fprintf(out, "%8s  %s\n", "tid", "holder of the lock, process");
	else
		fprintf(out, "state\n");
	for (size_t i = 0; i < r->shown && !err; i++)
		err = print_row(r, &r->rows.data[i]);
	if (r->shown < r->count)
		fprintf(out, "# … and %zu more\n", r->count - r->shown);
	return err;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Of a thread, all but running. */
static void write_states(const struct profile_samples *waits, struct json_writer *w)
{
	uint64_t ns[WALL_STATE_COUNT] = {};

	for (size_t i = 0; i < waits->count; i++)
		ns[profile_samples__state(waits, i)] += waits->weight[i];
	json_key_object(w, "states");
	for (int state = WALL_RUNNABLE; state < WALL_STATE_COUNT; state++)
		if (ns[state])
			json_key_uint(w, wall_state_name(state), ns[state]);
	json_end_object(w);
}

/* The thread that a row is of, by `key`. */
static void write_task(const struct wall_report *r, const struct wall_row *row, const char *key,
		       struct json_writer *w)
{
	const struct profile_thread *t = &r->p->threads[row->thread];

	json_key_uint(w, "pid", r->p->processes[t->process.v].pid);
	json_key_uint(w, "tid", t->tid);
	json_key_string(w, key, row->name);
	json_key_string(w, "process", row->place);
}

static void write_row(const struct wall_report *r, const struct wall_row *row,
		      struct json_writer *w)
{
	const struct profile_thread *t = &r->p->threads[row->thread];
	enum report_wall_by by = r->options->wall_by;

	json_begin_object(w);
	json_key_uint(w, "ns", row->ns);
	json_key(w, "share");
	json_fixed(w, share_of(row->ns, r->figures.value[FIGURE_LIVED]), SHARE_DIGITS);
	json_key_uint(w, "waits", row->waits);
	if (by == REPORT_WALL_THREAD) {
		json_key_uint(w, "running_ns", t->wall.running);
		json_key_uint(w, "runnable_ns", t->wall.runnable);
		json_key_uint(w, "blocked_ns", t->wall.blocked);
		json_key_uint(w, "unvisited_ns", t->wall.unvisited);
		write_states(&t->samples[SAMPLE_WALL], w);
		write_task(r, row, "thread", w);
		if (row->parked)
			json_key_bool(w, "parked", true);
	} else {
		json_key_string(w, "state", state_name((int)row->state));
	}
	if (by == REPORT_WALL_HOLDER && row->thread)
		write_task(r, row, "holder", w);
	if (by == REPORT_WALL_FUNCTION) {
		json_key_string(w, "function", row->name);
		json_key_string(w, "dso", row->place);
	}
	json_end_object(w);
}

static int write_json(const struct wall_report *r)
{
	struct json_writer w;

	report_json__begin(&w, r->p, by_names[r->options->wall_by], "wall", r->options->min_share,
			   r->out);
	json_key_uint(&w, "lived_ns", r->figures.value[FIGURE_LIVED]);
	json_key_uint(&w, "unvisited_ns", r->figures.value[FIGURE_UNVISITED]);
	if (r->parked) {
		json_key_uint(&w, "parked_threads", r->parked->threads);
		json_key_uint(&w, "parked_ns", r->parked->ns);
	}
	write_visits(&r->figures, &w);
	json_key_uint(&w, "row_count", r->count);
	JSON_COLUMN(&w, "rows", r->shown, write_row(r, &r->rows.data[i], &w));
	return report_json__end(&w, r->out);
}

/* ---- the report ------------------------------------------------------------------------------ */

static int collect_rows(struct wall_report *r)
{
	switch (r->options->wall_by) {
	case REPORT_WALL_STATE:
		return add_states(r);
	case REPORT_WALL_FUNCTION:
		return add_waits(r, row_of_function);
	case REPORT_WALL_HOLDER:
		return add_waits(r, row_of_holder);
	default:
		return add_threads(r);
	}
}

int report_wall(const struct export_request *request, const struct report_options *options)
{
	struct parked parked = {};
	struct wall_report r = {.p = request->profile,
				.options = options,
				.parked = options->parked ? NULL : &parked,
				.out = request->out};
	int err = r.parked ? parked__init(&parked, r.p) : 0;

	figures__init(&r.figures, r.p);
	if (!err)
		err = collect_rows(&r);
	vec_sort(&r.rows, compare_rows);
	for (size_t i = 0; i < r.rows.count; i++)
		if (share_of(r.rows.data[i].ns, r.figures.value[FIGURE_LIVED]) >=
		    options->min_share)
			r.rows.data[r.count++] = r.rows.data[i];
	r.shown = min_u64(r.count, request->top ? request->top : REPORT_TOP_DEFAULT);
	if (!err)
		err = options->json ? write_json(&r) : write_text(&r);
	wall_rows__fini(&r.rows);
	parked__fini(&parked);
	return err;
}
