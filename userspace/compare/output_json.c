/* SPDX-License-Identifier: BSD-2-Clause */
#include "compare/output_json.h"

#include <errno.h>
#include <math.h>

#include "base/json_writer.h"
#include "compare/output_private.h"
#include "compare/sentences.h"
#include "compare/tests.h"

#define DECIMALS 9

static const char *const side_names[COMPARE_SIDES] = {"old", "new"};

static void key_number(struct json_writer *w, const char *key, double value)
{
	json_key(w, key);
	json_fixed(w, value, DECIMALS);
}

static bool counts_events(const struct compare_output *o)
{
	return o->result->event != NULL;
}

/* null: unknown */
static void key_doubt(struct json_writer *w, const char *key, uint64_t ticks, uint8_t unknown,
		      enum compare_doubt doubt)
{
	if (unknown & 1 << doubt)
		json_key_null(w, key);
	else
		json_key_uint(w, key, ticks);
}

/* 0: the files have no times. */
static void key_duration(struct json_writer *w, uint64_t ns)
{
	if (ns)
		json_key_uint(w, "duration_ns", ns);
	else
		json_key_null(w, "duration_ns");
}

static void write_file(struct json_writer *w, const struct compare_output *o, size_t i)
{
	const struct comparison *c = o->comparison;
	const struct compare_file *f = comparison__file(c, i);

	json_begin_object(w);
	json_key_string(w, "side", side_names[f->side]);
	json_key_string(w, "path", f->path);
	json_key_uint(w, "samples", f->samples);
	if (counts_events(o))
		json_key_uint(w, "events", f->ticks);
	json_key_uint(w, "cpu_ns", f->cpu_ns);
	key_duration(w, f->untimed ? 0 : f->duration_ns);
	key_doubt(w, "lost", f->lost, f->unknown, COMPARE_DOUBT_LOST);
	key_doubt(w, "cut", f->cut, f->unknown, COMPARE_DOUBT_CUT);
	key_doubt(w, "unnamed", f->unnamed, f->unknown, COMPARE_DOUBT_UNNAMED);
	json_key_bool(w, "cut_short", f->cut_short);
	if (f->filter) {
		json_key_string(w, "filter", f->filter);
		json_key_uint(w, "dropped_samples", f->dropped_samples);
		json_key_uint(w, "dropped_cpu_ns", f->dropped_cpu_ns);
	}
	key_number(w, "value", comparison__tick_value(c, i) * (double)f->ticks);
	json_end_object(w);
}

static void write_side(struct json_writer *w, const struct compare_output *o,
		       enum compare_side side)
{
	const struct compare_side_sum *sum = &o->result->side[side];
	static const char *const doubts[] = {
#define X(id, name, text) [COMPARE_DOUBT_##id] = name "_share",
		COMPARE_DOUBTS(X)
#undef X
	};

	json_key_object(w, side_names[side]);
	json_key_uint(w, "files", sum->files);
	json_key_uint(w, "samples", sum->samples);
	if (counts_events(o))
		json_key_uint(w, "events", sum->ticks);
	json_key_uint(w, "cpu_ns", sum->cpu_ns);
	key_duration(w, sum->duration_ns);
	key_doubt(w, "unnamed", sum->unnamed, sum->unknown, COMPARE_DOUBT_UNNAMED);
	for (int i = 0; i < COMPARE_DOUBT_COUNT; i++)
		key_number(w, doubts[i], sum->unknown & 1 << i ? NAN : sum->doubt[i]);
	json_end_object(w);
}

static void write_estimate(struct json_writer *w, const char *key, const struct estimate *e)
{
	json_key_object(w, key);
	key_number(w, "value", e->value);
	key_number(w, "error", sqrt(e->variance));
	key_number(w, "freedom", e->freedom);
	json_end_object(w);
}

static void write_test_members(struct json_writer *w, const struct compare_output *o,
			       const struct compare_test *t)
{
	json_key_string(w, "function", comparison__name(o->comparison, t->function));
	json_key_bool(w, "own_code", t->is_self);
	json_key_uint(w, "old_samples", t->ticks[COMPARE_OLD] / o->result->sample_ticks);
	json_key_uint(w, "new_samples", t->ticks[COMPARE_NEW] / o->result->sample_ticks);
	write_estimate(w, "old", &t->side[COMPARE_OLD]);
	write_estimate(w, "new", &t->side[COMPARE_NEW]);
	write_estimate(w, "difference", &t->difference);
	key_number(w, "low", t->low);
	key_number(w, "high", t->high);
	key_number(w, "relative", t->has_relative ? t->relative : NAN);
	key_number(w, "relative_low", t->has_relative ? t->relative_low : NAN);
	key_number(w, "relative_high", t->has_relative ? t->relative_high : NAN);
	key_number(w, "p", t->p);
	key_number(w, "q", t->q);
	json_key_bool(w, "doubtful", compare_test__is_doubtful(t, o->result));
}

static void write_elapsed(struct json_writer *w, const struct compare_test *t)
{
	json_key_object(w, "elapsed");
	write_estimate(w, "old", &t->side[COMPARE_OLD]);
	write_estimate(w, "new", &t->side[COMPARE_NEW]);
	key_number(w, "relative", t->relative);
	key_number(w, "relative_low", t->relative_low);
	key_number(w, "relative_high", t->relative_high);
	key_number(w, "p", t->p);
	json_end_object(w);
}

static void write_row(struct json_writer *w, const struct compare_output *o,
		      const struct compare_row *row)
{
	uint32_t functions[EVENT_PATH_MAX];
	size_t count = comparison__path(o->comparison, row->node, functions, EVENT_PATH_MAX);

	json_begin_object(w);
	json_key_string(w, "verdict", compare_verdict_name(row->verdict));
	JSON_COLUMN(w, "path", count,
		    json_string(w, comparison__name(o->comparison, functions[i])));
	write_test_members(w, o, &o->result->tests[row->test]);
	json_end_object(w);
}

static void write_rule(struct json_writer *w, const struct compare_output *o, size_t i)
{
	const struct compare_output judged = compare_output_of_rule(o, i);
	const struct compare_ruling *ruling = &o->rulings[i];

	json_begin_object(w);
	json_key_string(w, "rule", o->rules[i].text);
	json_key_string(w, "answer", compare_answer_name(ruling->answer));
	json_key_string(w, "function",
			ruling->test == UINT32_MAX
				? NULL
				: comparison__name(judged.comparison,
						   judged.result->tests[ruling->test].function));
	json_key_uint(w, "runs_needed", ruling->runs_needed);
	json_key_uint(w, "samples_needed", ruling->samples_needed);
	json_end_object(w);
}

static void write_detectable(struct json_writer *w, const struct compare_result *r)
{
	json_key_object(w, "detectable");
	key_number(w, "total", r->detectable[0]);
	key_number(w, "function_5_percent", r->detectable[1]);
	key_number(w, "function_1_percent", r->detectable[2]);
	json_end_object(w);
}

static void write_tests(struct json_writer *w, const struct compare_output *o)
{
	const struct compare_result *r = o->result;

	json_key_object(w, "total");
	write_test_members(w, o, &r->tests[0]);
	json_end_object(w);
	JSON_COLUMN(w, "rows", r->row_count, write_row(w, o, &r->rows[i]));
	json_key_array(w, "tests");
	for (size_t i = 1; i < r->test_count; i++) {
		json_begin_object(w);
		write_test_members(w, o, &r->tests[i]);
		json_end_object(w);
	}
	json_end_array(w);
}

static void write_waiting_file(struct json_writer *w, const struct comparison *c, size_t i)
{
	const struct compare_file *f = comparison__file(c, i);

	json_begin_object(w);
	json_key_string(w, "side", side_names[f->side]);
	json_key_uint(w, "waiting_ns", f->cpu_ns);
	key_number(w, "value", comparison__tick_value(c, i) * (double)f->ticks);
	json_end_object(w);
}

/* Waiting time of each side and each file, exact. */
static void write_waiting(struct json_writer *w, const struct compare_output *o)
{
	char sentence[SENTENCE_SIZE];

	compare_sentence(o, sentence);
	json_key_object(w, "waiting");
	json_key_string(w, "sentence", sentence);
	json_key_uint(w, "old_ns", o->result->side[COMPARE_OLD].cpu_ns);
	json_key_uint(w, "new_ns", o->result->side[COMPARE_NEW].cpu_ns);
	JSON_COLUMN(w, "files", comparison__file_count(o->comparison),
		    write_waiting_file(w, o->comparison, i));
	key_number(w, "run_noise", o->result->run_noise);
	key_number(w, "reference", o->result->reference);
	json_key_bool(w, "refused", o->result->refused);
	write_detectable(w, o->result);
	write_tests(w, o);
	json_end_object(w);
}

int compare_write_json(const struct compare_output *o, FILE *out)
{
	const struct compare_result *r = o->result;
	const struct comparison *c = o->comparison;
	const struct compare_output waiting = compare_output_of_waiting(o);
	char sentence[SENTENCE_SIZE];
	struct json_writer w;
	int err;

	compare_sentence(o, sentence);
	json_writer__init(&w, out);
	json_begin_object(&w);
	json_key_uint(&w, "schema", 1);
	json_key_string(&w, "sentence", sentence);
	json_key_string(&w, "view", compare_view_name(r->view));
	if (counts_events(o)) {
		json_key_string(&w, "event", r->event);
		json_key_string(&w, "event_unit", r->event_unit);
	}
	JSON_COLUMN(&w, "files", comparison__file_count(c), write_file(&w, o, i));
	for (int i = 0; i < COMPARE_SIDES; i++)
		write_side(&w, o, (enum compare_side)i);
	key_number(&w, "level", r->level);
	json_key_bool(&w, "runs_measured", r->runs_measured);
	key_number(&w, "run_noise", r->run_noise);
	json_key_bool(&w, "run_noise_assumed", r->noise_assumed);
	json_key_uint(&w, "run_noise_files", r->noise_files);
	key_number(&w, "reference", r->reference);
	json_key_bool(&w, "refused", r->refused);
	write_detectable(&w, r);
	if (r->has_elapsed)
		write_elapsed(&w, &r->elapsed);
	JSON_COLUMN(&w, "rules", o->rule_count, write_rule(&w, o, i));
	write_tests(&w, o);
	if (waiting.result)
		write_waiting(&w, &waiting);
	json_end_object(&w);
	err = json_writer__finish(&w);
	return !err && fputc('\n', out) == EOF ? -EIO : err;
}
