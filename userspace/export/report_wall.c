/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the time of threads went, by visits: by state, by function that waits, or by thread. The shares are of the lifetime of all
 * visited threads, so all rows by state add up to 100 %.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/map.h"
#include "base/minmax.h"
#include "base/order.h"
#include "export/describe.h"
#include "export/waits.h"
#include "export/report_private.h"

#define SCHEMA_VERSION 1
#define SHARE_DIGITS   6
#define NAME_WIDTH     40

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

/* Behind the states: the waits of parked threads. */
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

/* What parked threads wait for is no row of its state, so all rows still add up. */
static void set_parked_apart(const struct profile *p, const struct parked *parked,
			     uint64_t ns[WALL_ROW_COUNT], uint64_t waits[WALL_ROW_COUNT])
{
	for (uint32_t i = 1; i < p->thread_count; i++) {
		const struct profile_samples *of = &p->threads[i].samples[SAMPLE_WALL];

		for (size_t k = 0; k < of->count; k++) {
			enum wall_state state = profile_samples__state(of, k);
			bool apart = parked && parked__has(parked, i, k);

			waits[apart ? WALL_ROW_PARKED : (int)state]++;
			if (!apart)
				continue;
			ns[WALL_ROW_PARKED] += of->weight[k];
			ns[state] -= of->weight[k];
		}
	}
}

static int add_states(const struct profile *p, const struct parked *parked,
		      const struct wall_totals *totals, struct wall_rows *rows)
{
	uint64_t ns[WALL_ROW_COUNT] = {}, waits[WALL_ROW_COUNT] = {};
	int err = 0;

	memcpy(ns, totals->state, sizeof(totals->state));
	set_parked_apart(p, parked, ns, waits);
	for (int state = WALL_RUNNING; state < WALL_ROW_COUNT && !err; state++) {
		bool apart = state == WALL_ROW_PARKED;
		const struct wall_row row = {
			.key = (uint64_t)state,
			.ns = ns[state],
			.waits = waits[state],
			.state = (enum wall_state)state,
			.name = state_name(state),
			.place =
				apart ? "waits at one place for a time or for what comes from outside"
				      : wall_state_text((enum wall_state)state)};

		if (row.ns)
			err = wall_rows__need(rows, &row, NULL) ? 0 : -ENOMEM;
	}
	return err;
}

static int add_wait(const struct profile *p, const struct profile_samples *waits, size_t k,
		    struct wall_rows *rows)
{
	const struct profile_location *l = waiting_place(p, waits->stack[k]);
	const struct profile_function *f = &p->functions[p->lines[l->first_line].function.v];
	struct string_id dso = p->dsos[l->dso.v].name;
	enum wall_state state = profile_samples__state(waits, k);
	const struct wall_row wanted = {
		.key = hash_combine(hash_u64((uint64_t)f->name.v << 32 | dso.v), state),
		.state = state,
		.name = profile__string(p, f->name),
		.place = profile__string(p, dso),
	};
	struct wall_row *row = wall_rows__need(rows, &wanted, NULL);

	if (!row)
		return -ENOMEM;
	row->ns += waits->weight[k];
	row->waits++;
	return 0;
}

static int add_functions(const struct profile *p, const struct parked *parked,
			 struct wall_rows *rows)
{
	int err = 0;

	for (uint32_t i = 1; i < p->thread_count; i++)
		for (size_t k = 0; k < p->threads[i].samples[SAMPLE_WALL].count && !err; k++)
			if (!parked || !parked__has(parked, i, k))
				err = add_wait(p, &p->threads[i].samples[SAMPLE_WALL], k, rows);
	return err;
}

static int add_threads(const struct profile *p, const struct parked *parked, struct wall_rows *rows)
{
	int err = 0;

	for (uint32_t i = 1; i < p->thread_count && !err; i++) {
		const struct profile_thread *t = &p->threads[i];
		const struct wall_row row = {
			.key = i,
			.thread = i,
			.ns = t->wall.until - t->wall.since,
			.waits = t->samples[SAMPLE_WALL].count,
			.parked = parked && parked->place[i],
			.name = profile__string(p, t->name),
			.place = profile__string(p, p->processes[t->process.v].name),
		};

		if (row.ns)
			err = wall_rows__need(rows, &row, NULL) ? 0 : -ENOMEM;
	}
	return err;
}

/* Waits for locks whose holder is not known are a row, too. */
static int add_holders(const struct profile *p, const struct parked *parked, struct wall_rows *rows)
{
	for (uint32_t i = 1; i < p->thread_count; i++) {
		const struct profile_samples *waits = &p->threads[i].samples[SAMPLE_WALL];

		for (size_t k = 0; k < waits->count; k++) {
			uint32_t holder = waits->holder[k].v;
			const struct profile_thread *t = &p->threads[holder];
			const struct wall_row wanted = {
				.key = holder,
				.thread = holder,
				.state = WALL_LOCK,
				.name = holder ? profile__string(p, t->name) : "[not known]",
				.place = holder ? profile__string(p,
								  p->processes[t->process.v].name)
						: "",
			};
			struct wall_row *row;

			if ((waits->state[k] != WALL_LOCK && !holder) ||
			    (parked && parked__has(parked, i, k)))
				continue;
			row = wall_rows__need(rows, &wanted, NULL);
			if (!row)
				return -ENOMEM;
			row->ns += waits->weight[k];
			row->waits++;
		}
	}
	return 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_visits(const struct profile *p, const struct parked *parked,
			 const struct wall_totals *totals, FILE *out)
{
	const struct profile_visits *v = &p->visits;

	fprintf(out,
		"# visits     %" PRIu64 " of %" PRIu64
		" due at %u a second, %.3f s of CPU; %" PRIu64 " threads, %.3f s of their time\n",
		v->count[VISIT_LINE_MADE], v->count[VISIT_LINE_DUE], v->hz, (double)v->cpu / 1e9,
		totals->threads, (double)totals->lived / 1e9);
	fprintf(out, "# looks      %" PRIu64 " =", v->count[VISIT_LINE_LOOKS]);
	for (int line = VISIT_LINE_LOOKS + 1, first = 1; line < VISIT_LINE_COUNT; line++) {
		static const char *const names[VISIT_LINE_COUNT] = {
#define X(id, name, text) name,
			VISIT_LINES(X)
#undef X
		};

		if (v->count[line])
			fprintf(out, "%s %" PRIu64 " %s", first ? "" : " +", v->count[line],
				names[line]);
		first &= !v->count[line];
	}
	fputc('\n', out);
	if (parked && parked->threads)
		fprintf(out,
			"# parked     %" PRIu64
			" threads, %.3f s at one place each: --parked shows them\n",
			parked->threads, (double)parked->ns / 1e9);
	if (totals->unvisited)
		fprintf(out, "# unvisited  %.3f s, at the end of threads\n",
			(double)totals->unvisited / 1e9);
}

static int print_row(const struct profile *p, const struct wall_row *row,
		     const struct wall_totals *totals, enum report_wall_by by, FILE *out)
{
	_cleanup_free_ char *name = printable_copy(row->name);
	_cleanup_free_ char *place = printable_copy(row->place);
	const struct profile_wall *w = &p->threads[row->thread].wall;

	if (!name || !place)
		return -ENOMEM;
	fprintf(out, "%6.2f%% %12.3f %8" PRIu64 "  ", 100 * share_of(row->ns, totals->lived),
		(double)row->ns / 1e6, row->waits);
	if (by == REPORT_WALL_THREAD)
		fprintf(out, "%11.3f %11.3f %11.3f %11.3f %8u  %s  %s%s\n",
			(double)w->running / 1e6, (double)w->runnable / 1e6,
			(double)w->blocked / 1e6, (double)w->unvisited / 1e6,
			p->threads[row->thread].tid, name, place, row->parked ? "  (parked)" : "");
	else if (by == REPORT_WALL_HOLDER && row->thread)
		fprintf(out, "%8u  %s  %s\n", p->threads[row->thread].tid, name, place);
	else if (by == REPORT_WALL_HOLDER)
		fprintf(out, "%8s  %s\n", "", name);
	else if (by == REPORT_WALL_FUNCTION)
		fprintf(out, "%-9s  %-*s  %s\n", wall_state_name(row->state), NAME_WIDTH, name,
			place);
	else
		fprintf(out, "%-9s  %s\n", name, place);
	return 0;
}

static int write_text(const struct profile *p, const struct parked *parked,
		      const struct wall_rows *rows, size_t shown, size_t count,
		      const struct wall_totals *totals, enum report_wall_by by, FILE *out)
{
	int err = report_header(p, out);

	if (err)
		return err;
	print_visits(p, parked, totals, out);
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
	for (size_t i = 0; i < shown && !err; i++)
		err = print_row(p, &rows->data[i], totals, by, out);
	if (shown < count)
		fprintf(out, "# … and %zu more\n", count - shown);
	return err;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void write_visits(const struct profile *p, struct json_writer *w)
{
	static const char *const names[VISIT_LINE_COUNT] = {
#define X(id, name, text) name,
		VISIT_LINES(X)
#undef X
	};

	json_key_object(w, "visits");
	json_key_uint(w, "hz", p->visits.hz);
	json_key_uint(w, "cpu_ns", p->visits.cpu);
	for (int line = 0; line < VISIT_LINE_COUNT; line++)
		json_key_uint(w, names[line], p->visits.count[line]);
	json_end_object(w);
}

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

static void write_row(const struct profile *p, const struct wall_row *row,
		      const struct wall_totals *totals, enum report_wall_by by,
		      struct json_writer *w)
{
	const struct profile_thread *t = &p->threads[row->thread];

	json_begin_object(w);
	json_key_uint(w, "ns", row->ns);
	json_key(w, "share");
	json_fixed(w, share_of(row->ns, totals->lived), SHARE_DIGITS);
	json_key_uint(w, "waits", row->waits);
	if (by == REPORT_WALL_THREAD) {
		json_key_uint(w, "running_ns", t->wall.running);
		json_key_uint(w, "runnable_ns", t->wall.runnable);
		json_key_uint(w, "blocked_ns", t->wall.blocked);
		json_key_uint(w, "unvisited_ns", t->wall.unvisited);
		write_states(&t->samples[SAMPLE_WALL], w);
		json_key_uint(w, "pid", p->processes[t->process.v].pid);
		json_key_uint(w, "tid", t->tid);
		json_key_string(w, "thread", row->name);
		json_key_string(w, "process", row->place);
		if (row->parked)
			json_key_bool(w, "parked", true);
	} else {
		json_key_string(w, "state", state_name((int)row->state));
	}
	if (by == REPORT_WALL_HOLDER && row->thread) {
		json_key_uint(w, "pid", p->processes[t->process.v].pid);
		json_key_uint(w, "tid", t->tid);
		json_key_string(w, "holder", row->name);
		json_key_string(w, "process", row->place);
	}
	if (by == REPORT_WALL_FUNCTION) {
		json_key_string(w, "function", row->name);
		json_key_string(w, "dso", row->place);
	}
	json_end_object(w);
}

static int write_json(const struct profile *p, const struct parked *parked,
		      const struct wall_rows *rows, size_t shown, size_t count,
		      const struct wall_totals *totals, const struct report_options *options,
		      FILE *out)
{
	struct figures figures;
	struct json_writer w;
	int err;

	json_writer__init(&w, out);
	json_begin_object(&w);
	json_key_uint(&w, "schema", SCHEMA_VERSION);
	json_key(&w, "summary");
	figures__init(&figures, p);
	write_summary(p, &figures, &w);
	json_key_string(&w, "by", by_names[options->wall_by]);
	json_key_string(&w, "shape", "wall");
	json_key(&w, "min_share");
	json_fixed(&w, options->min_share, SHARE_DIGITS);
	json_key_uint(&w, "lived_ns", totals->lived);
	json_key_uint(&w, "unvisited_ns", totals->unvisited);
	if (parked) {
		json_key_uint(&w, "parked_threads", parked->threads);
		json_key_uint(&w, "parked_ns", parked->ns);
	}
	write_visits(p, &w);
	json_key_uint(&w, "row_count", count);
	json_key_array(&w, "rows");
	for (size_t i = 0; i < shown; i++)
		write_row(p, &rows->data[i], totals, options->wall_by, &w);
	json_end_array(&w);
	json_end_object(&w);
	err = json_writer__finish(&w);
	return !err && fputc('\n', out) == EOF ? -EIO : err;
}

/* ---- the report ------------------------------------------------------------------------------ */

static int collect_rows(const struct profile *p, const struct parked *parked,
			const struct wall_totals *totals, enum report_wall_by by,
			struct wall_rows *rows)
{
	switch (by) {
	case REPORT_WALL_STATE:
		return add_states(p, parked, totals, rows);
	case REPORT_WALL_FUNCTION:
		return add_functions(p, parked, rows);
	case REPORT_WALL_HOLDER:
		return add_holders(p, parked, rows);
	default:
		return add_threads(p, parked, rows);
	}
}

int report_wall(const struct export_request *request, const struct report_options *options)
{
	const struct profile *p = request->profile;
	struct parked found = {}, *parked = options->parked ? NULL : &found;
	struct wall_totals totals;
	struct wall_rows rows = {};
	size_t count, shown;
	int err = parked ? parked__init(parked, p) : 0;

	profile__wall_totals(p, &totals);
	if (!err)
		err = collect_rows(p, parked, &totals, options->wall_by, &rows);
	vec_sort(&rows, compare_rows);
	count = 0;
	for (size_t i = 0; i < rows.count; i++)
		if (share_of(rows.data[i].ns, totals.lived) >= options->min_share)
			rows.data[count++] = rows.data[i];
	shown = min_u64(count, request->top ? request->top : REPORT_TOP_DEFAULT);
	if (!err)
		err = options->json ? write_json(p, parked, &rows, shown, count, &totals, options,
						 request->out)
				    : write_text(p, parked, &rows, shown, count, &totals,
						 options->wall_by, request->out);
	wall_rows__fini(&rows);
	parked__fini(&found);
	return err;
}
