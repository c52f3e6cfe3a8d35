/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Firefox Profiler, processed format: ours (66), samply's, Firefox's own. Versions differ: tables
 * are shared from 60 on, strings from 56 on, before each thread has its own; samples have times or
 * deltas; stacks have prefixes, or from 66 on distances. The columns decide, not the version.
 *
 * The file is walked once to find its parts. Then tables are read, then each thread, whose columns
 * are parsed side by side. What a row counts: firefox_file.h.
 */
#include "formats/in/firefox.h"

#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "formats/in/firefox_file.h"
#include "formats/in/firefox_markers.h"
#include "formats/in/firefox_tables.h"
#include "formats/in/import.h"
#include "formats/in/weights.h"

struct firefox_reader {
	struct firefox_file file;
	struct firefox_in shared;
	bool has_shared;
	struct json_value shared_value;
};

struct sample_values {
	struct json_value stack, time, deltas, weight, weight_type, cpu, ticks;
};

/* Columns side by side; absent ones have no text. */
struct sample_columns {
	struct json_column stack, time, weight, cpu, ticks;
};

struct measured {
	const struct json_text *text;
	struct weights weights;
};

static bool recognizes_firefox(const uint8_t *bytes, size_t size)
{
	return import_json_kind(bytes, size) == IMPORT_JSON_FIREFOX;
}

/* ---- samples --------------------------------------------------------------------------------- */

static int begin_columns(const struct json_text *text, const struct sample_values *v,
			 struct sample_columns *c, struct firefox_rows *rows)
{
	int err;

	*c = (struct sample_columns){};
	rows->deltas = json_type(v->time) != JSON_ARRAY;
	rows->weights_are_ms = json_is(v->weight_type, "\"tracing-ms\"");
	rows->has_weight = json_type(v->weight) == JSON_ARRAY;
	rows->has_cpu = json_type(v->cpu) == JSON_ARRAY;
	if (v->weight_type.at && !rows->weights_are_ms && !json_is(v->weight_type, "\"samples\"") &&
	    !json_is(v->weight_type, "null"))
		return json_fail(
			text, v->weight_type.at, -EPROTONOSUPPORT,
			"the weights of its samples are no CPU time: %.*s",
			(int)min_u64((uint64_t)(v->weight_type.end - v->weight_type.at), 40),
			v->weight_type.at);
	err = json_column__init(&c->stack, text, v->stack)
		      ?: json_column__init(&c->time, text, rows->deltas ? v->deltas : v->time);
	if (!err && rows->has_weight)
		err = json_column__init(&c->weight, text, v->weight);
	if (!err && rows->has_cpu)
		err = json_column__init(&c->cpu, text, v->cpu);
	if (!err && json_type(v->ticks) == JSON_ARRAY)
		err = json_column__init(&c->ticks, text, v->ticks);
	return err;
}

static int read_row(struct firefox_reader *r, struct firefox_in *in, struct sample_columns *c,
		    struct firefox_rows *rows, struct firefox_row *numbers)
{
	int more = json_column__next(&c->time, &numbers->time);

	r->file.common.frames.left_out[LEFT_OUT_NO_TIME] += !more;
	if (more <= 0)
		return more;
	return json_column__next_or_null(&c->cpu, &numbers->cpu)
		       ?: json_column__next_or_null(&c->weight, &numbers->weight)
		       ?: json_column__next_or_null(&c->ticks, &numbers->ticks)
		       ?: firefox_file__row(&r->file, in, rows, numbers);
}

static int read_rows(struct firefox_reader *r, struct firefox_in *in, const struct sample_values *v,
		     struct firefox_rows *rows)
{
	struct firefox_row numbers = {};
	struct sample_columns c;
	int more = begin_columns(&r->file.text, v, &c, rows);

	while (!more && (more = json_column__next(&c.stack, &numbers.stack)) > 0)
		more = read_row(r, in, &c, rows, &numbers);
	for (; !more && (more = json_column__next(&c.time, &numbers.time)) > 0; more = 0)
		r->file.common.frames.left_out[LEFT_OUT_MISSING_NODES]++;
	return more ?: firefox_file__end(&r->file, rows);
}

static int leave_thread(struct firefox_reader *r)
{
	r->file.common.frames.left_out[LEFT_OUT_THREADS]++;
	return 0;
}

static int read_samples(struct firefox_reader *r, struct firefox_in *in, struct json_value samples,
			struct firefox_rows *rows)
{
	const struct json_text *text = &r->file.text;
	struct sample_values v;

	int err;

	if (json_type(samples) != JSON_OBJECT)
		return leave_thread(r);
	err = json_members(text, samples, {"stack", &v.stack}, {"time", &v.time},
			   {"timeDeltas", &v.deltas}, {"weight", &v.weight},
			   {"weightType", &v.weight_type}, {"threadCPUDelta", &v.cpu},
			   {"ticks", &v.ticks});
	if (!err && (json_type(v.stack) != JSON_ARRAY ||
		     (json_type(v.time) != JSON_ARRAY && json_type(v.deltas) != JSON_ARRAY)))
		return leave_thread(r);
	return err ?: read_rows(r, in, &v, rows);
}

/* The numbers that a thread's samples have, if the file says that they are samples. */
static int add_weights(void *context, struct json_value thread)
{
	struct measured *m = context;
	struct json_value samples = {0}, weight = {0};
	struct json_column column;
	struct json_number number;
	int64_t value;
	int more = json_type(thread) == JSON_OBJECT
			   ? json_members(m->text, thread, {"samples", &samples})
			   : 0;

	if (!more && json_type(samples) == JSON_OBJECT)
		more = json_members(m->text, samples, {"weight", &weight});
	if (more || json_type(weight) != JSON_ARRAY)
		return more;
	more = json_column__init(&column, m->text, weight);
	while (!more && (more = json_column__next(&column, &number)) > 0)
		more = number.is_null || json_scaled(&number, 0, &value) || value < 0
			       ? 0
			       : weights__add(&m->weights, (uint64_t)value);
	return more;
}

/* Weights that are no numbers of samples, although the format has no other name for them. */
static int measure_weights(struct firefox_reader *r, struct json_value threads)
{
	struct measured m = {.text = &r->file.text};
	uint64_t period;
	int err = r->file.ours || r->file.has_times
			  ? 0
			  : json_each(&r->file.text, threads, add_weights, &m);

	if (!err && weights__are_no_samples(&m.weights, &period))
		firefox_file__weights(&r->file, period);
	weights__fini(&m.weights);
	return err;
}

static int read_thread(void *context, struct json_value value)
{
	struct firefox_reader *r = context;
	const struct json_text *text = &r->file.text;
	struct firefox_thread v;
	struct json_value is_main, samples, markers, libs, strings = {0}, sources = {0};
	struct firefox_rows rows = {};
	struct firefox_in own;
	int err;

	if (json_type(value) != JSON_OBJECT)
		return leave_thread(r);
	err = json_members(text, value, {"name", &v.name}, {"processName", &v.process_name},
			   {"$sysprof", &v.own}, {"isMainThread", &is_main}, {"pid", &v.pid},
			   {"tid", &v.tid}, {"registerTime", &v.start}, {"unregisterTime", &v.end},
			   {"processStartupTime", &v.process_start},
			   {"processShutdownTime", &v.process_end}, {"samples", &samples},
			   {"markers", &markers}, {"libs", &libs});

	v.is_main = json_is(is_main, "true");
	err = err ?: firefox_file__thread(&r->file, &v, &rows);
	if (err || r->has_shared)
		return err ?: read_samples(r, &r->shared, samples, &rows)
			   ?: firefox_markers__read(&r->file, &r->shared, markers, &rows);
	if (json_type(libs) == JSON_ARRAY)
		err = firefox_common__libs(&r->file.common, libs);
	if (!err && r->shared_value.at)
		err = json_members(text, r->shared_value, {"stringArray", &strings},
				   {"sources", &sources});
	if (!err)
		err = firefox_in__read(&own, &r->file.common, value, strings, sources);
	if (err)
		return err == -ENOENT ? leave_thread(r) : err;
	err = read_samples(r, &own, samples, &rows)
		      ?: firefox_markers__read(&r->file, &own, markers, &rows);
	firefox_in__fini(&own);
	return err;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* From 60 on "shared" has all tables; from 56 on the strings. */
static int read_shared(struct firefox_reader *r, struct json_value shared)
{
	struct json_value stacks = {0};
	int err;

	r->shared_value = shared;
	if (!shared.at)
		return 0;
	err = json_members(&r->file.text, shared, {"stackTable", &stacks});
	if (err || !stacks.at)
		return err;
	err = firefox_in__read(&r->shared, &r->file.common, shared, (struct json_value){0},
			       (struct json_value){0});
	r->has_shared = !err;
	return err == -ENOENT ? -EBADMSG : err;
}

static int read_threads(struct firefox_reader *r, struct json_value threads)
{
	return threads.at ? measure_weights(r, threads)
				    ?: json_each(&r->file.text, threads, read_thread, r)
			  : json_fail(&r->file.text, r->file.text.end, -EBADMSG,
				      "there is no \"threads\"");
}

static int read_meta(struct firefox_reader *r, struct json_value meta)
{
	const struct json_text *text = &r->file.text;
	struct json_value version, gecko;
	int64_t number;
	int err = json_members(text, meta, {"preprocessedProfileVersion", &version},
			       {"version", &gecko});

	if (!err && (version.at || !gecko.at)) /* the first version, of 2016, has only Gecko's */
		err = json_integer(text, version, "preprocessedProfileVersion", 0, INT32_MAX,
				   &number);
	return err ?: firefox_file__meta(&r->file, meta);
}

static int read_parts(struct firefox_reader *r)
{
	struct json_value meta, libs, shared, threads;
	int err = json_document(&r->file.text, {"meta", &meta}, {"libs", &libs},
				{"shared", &shared}, {"threads", &threads})
			  ?: read_meta(r, meta);

	if (!err && json_type(libs) == JSON_ARRAY)
		err = firefox_common__libs(&r->file.common, libs);
	if (!err)
		err = read_shared(r, shared);
	return err ? err : read_threads(r, threads);
}

static int read_firefox(const struct import_request *request, struct import_failure *failure)
{
	struct firefox_reader r = {};
	int err = firefox_file__init(&r.file, request, failure) ?: read_parts(&r);

	if (r.has_shared)
		firefox_in__fini(&r.shared);
	firefox_file__fini(&r.file);
	return err;
}

const struct importer firefox_importer = {
	.name = "firefox",
	.description = "Firefox Profiler, processed format: samply, Firefox, sysprof",
	.recognizes = recognizes_firefox,
	.read = read_firefox,
};
