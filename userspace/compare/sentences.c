/* SPDX-License-Identifier: BSD-2-Clause */
#include "compare/sentences.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text_line.h"
#include "base/utf8.h"

#define NAME_BYTES 96	  /* of a function, in texts */
#define PATH_SHOWN 5	  /* functions, the innermost ones */
#define SHOWN	   0.0005 /* smaller changes of the whole are shown as 0.0 % */
#define FIRST_SIZE (2 * NAME_SIZE + 8)

/* ---- values ---------------------------------------------------------------------------------- */

static void time_value(double ns, char text[VALUE_SIZE])
{
	static const struct {
		double ns;
		const char *unit;
	} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {0, "ns"}};
	size_t i = 0;

	while (fabs(ns) < units[i].ns)
		i++;
	snprintf(text, VALUE_SIZE, "%.3f %s", units[i].ns > 0 ? ns / units[i].ns : ns,
		 units[i].unit);
}

void compare_value(const struct compare_output *o, double value, char text[VALUE_SIZE])
{
	if (o->result->view == COMPARE_SHARE || o->result->view == COMPARE_SECOND)
		snprintf(text, VALUE_SIZE, "%.2f %%", 100 * value);
	else
		time_value(value, text);
}

/* The CPU time of two parts of one recording is known: nothing of their difference is random. */
static bool has_interval(const struct compare_test *t)
{
	return t->relative_low < t->relative_high;
}

void compare_change(const struct compare_output *o, const struct compare_test *t,
		    char text[3 * VALUE_SIZE])
{
	struct text_line s = {text, 3 * VALUE_SIZE, 0};
	char value[VALUE_SIZE];

	if (t->has_relative) {
		add_text(&s, "%+.1f %%", 100 * t->relative);
		if (has_interval(t))
			add_text(&s, " (%+.1f to %+.1f)", 100 * t->relative_low,
				 100 * t->relative_high);
		return;
	}
	compare_value(o, fabs(t->difference.value), value);
	snprintf(text, 3 * VALUE_SIZE, "%s%s", t->difference.value < 0 ? "-" : "+", value);
}

void compare_q(double q, char text[VALUE_SIZE])
{
	snprintf(text, VALUE_SIZE, q < 0.001 ? "<0.001" : "%.3f", q);
}

void compare_name(const struct compare_output *o, uint32_t function, bool is_self,
		  char text[NAME_SIZE])
{
	const char *name = comparison__name(o->comparison, function);
	char cut[NAME_BYTES + 4], safe[4 * NAME_BYTES + 8];

	snprintf(cut, sizeof(cut), "%.*s%s", NAME_BYTES, name,
		 strlen(name) > NAME_BYTES ? ".." : "");
	snprintf(text, NAME_SIZE, "%s%s", utf8_sanitize(safe, sizeof(safe), cut),
		 is_self ? " (own code)" : "");
}

void compare_path(const struct compare_output *o, const struct compare_row *row,
		  char text[4 * NAME_SIZE])
{
	uint32_t functions[PATH_SHOWN + 1];
	size_t count = comparison__path(o->comparison, row->node, functions, PATH_SHOWN + 1);
	struct text_line s = {text, 4 * NAME_SIZE, 0};
	char name[NAME_SIZE];

	*text = '\0';
	if (count > PATH_SHOWN)
		add_text(&s, ".. > ");
	for (size_t i = count > PATH_SHOWN; i < count; i++) {
		compare_name(o, functions[i], false, name);
		add_text(&s, "%s%s", name, i + 1 < count ? " > " : "");
	}
}

/* ---- what was found -------------------------------------------------------------------------- */

static void add_per(struct text_line *s, const struct compare_output *o)
{
	const char *what = o->result->is_waiting ? "" : " CPU";

	switch (o->result->view) {
	case COMPARE_SECOND:
		add_text(s, "%s per second", what);
		break;
	case COMPARE_RUN:
		add_text(s, "%s per run", what);
		break;
	case COMPARE_WORK:
		add_text(s, "%s per %s", what, o->unit ? o->unit : "unit of work");
		break;
	default:
		add_text(s, "%s time, if %s as much as before", what,
			 o->result->is_waiting ? "the waits that look unchanged took"
					       : "the code that looks unchanged took");
	}
}

static size_t rows_not_moved(const struct compare_result *r)
{
	size_t count = 0;

	while (count < r->row_count && r->rows[count].verdict != COMPARE_IS_MOVED)
		count++;
	return count;
}

static void add_refusal(struct text_line *s, const struct compare_result *r)
{
	enum compare_doubt d = r->refused_for;

	add_text(s, "No verdict: OLD has %.1f %% %s, NEW %.1f %%; that can make any difference.",
		 100 * r->side[COMPARE_OLD].doubt[d], compare_doubt_text(d),
		 100 * r->side[COMPARE_NEW].doubt[d]);
}

/* For a wait also the function that waits. */
static void first_name(const struct compare_output *o, char text[FIRST_SIZE])
{
	const struct compare_row *row = &o->result->rows[0];
	const struct compare_test *t = &o->result->tests[row->test];
	uint32_t place = comparison__place(o->comparison, row->node);
	char name[NAME_SIZE];

	compare_name(o, t->function, t->is_self, text);
	if (!o->result->is_waiting || place == COMPARE_WHOLE || place == t->function)
		return;
	compare_name(o, place, false, name);
	snprintf(text + strlen(text), NAME_SIZE + 8, " of %s", name);
}

/* The first row's part of the whole difference. */
static void add_largest(struct text_line *s, const struct compare_output *o)
{
	const struct compare_result *r = o->result;
	const struct compare_test *t = &r->tests[r->rows[0].test];
	double part = t->difference.value / r->tests[0].difference.value;
	char name[FIRST_SIZE];

	first_name(o, name);
	if (part > 0 && part < 0.995)
		add_text(s, "; %.0f %% of that is in %s", 100 * part, name);
	else if (part > 0 && part < 1.1)
		add_text(s, "; all of that is in %s", name);
	else
		add_text(s, "; %s differs most", name);
}

static void add_functions(struct text_line *s, const struct compare_output *o, size_t count)
{
	const struct compare_result *r = o->result;
	char name[FIRST_SIZE];

	first_name(o, name);
	add_text(s, ", but %zu function%s differ%s: %s is %s", count, count == 1 ? "" : "s",
		 count == 1 ? "s" : "", name, compare_verdict_name(r->rows[0].verdict));
	if (count > 1)
		add_text(s, ", …");
}

void compare_sentence(const struct compare_output *o, char text[SENTENCE_SIZE])
{
	const struct compare_result *r = o->result;
	const struct compare_test *whole = &r->tests[0];
	size_t rows = rows_not_moved(r);
	struct text_line s = {text, SENTENCE_SIZE, 0};
	bool found = whole->found && fabs(whole->relative) >= SHOWN;
	bool less = whole->relative < 0;

	*text = '\0';
	if (r->is_waiting)
		add_text(&s, "Waiting: ");
	if (r->refused)
		return add_refusal(&s, r);
	if (found) {
		double low = less ? -whole->relative_high : whole->relative_low;
		double high = less ? -whole->relative_low : whole->relative_high;

		add_text(&s, "NEW %s %.1f %%", r->is_waiting ? "waits" : "uses",
			 100 * fabs(whole->relative));
		if (has_interval(whole))
			add_text(&s, " (%.1f to %.1f)", 100 * low, 100 * high);
		add_text(&s, less ? " less" : " more");
		add_per(&s, o);
		if (rows)
			add_largest(&s, o);
	} else {
		add_text(&s,
			 rows ? "No difference was found in the whole" : "No difference was found");
		if (r->view != COMPARE_SHARE) {
			add_text(&s, " (%+.1f %%,", 100 * whole->relative);
			if (has_interval(whole))
				add_text(&s, " %+.1f to %+.1f,", 100 * whole->relative_low,
					 100 * whole->relative_high);
			add_per(&s, o);
			add_text(&s, ")");
		}
		if (rows)
			add_functions(&s, o, rows);
	}
	add_text(&s, ".");
}

struct compare_output compare_output_of_waiting(const struct compare_output *o)
{
	struct compare_output waiting = *o;

	waiting.comparison = comparison__waiting(o->comparison);
	waiting.result = o->result->waiting;
	waiting.rule_count = 0;
	return waiting;
}

struct compare_output compare_output_of_rule(const struct compare_output *o, size_t rule)
{
	return o->rules[rule].is_waiting ? compare_output_of_waiting(o) : *o;
}

/* ---- the circumstances ----------------------------------------------------------------------- */

/* CPU time has a place of its own. */
static void add_events(struct text_line *s, const struct compare_result *r, uint64_t events)
{
	char name[NAME_SIZE], unit[NAME_SIZE];

	if (!r->event || (!strcmp(r->event, EVENT_CPU) && !strcmp(r->event_unit, EVENT_CPU_UNIT)))
		return;
	add_text(s, " for %" PRIu64, events);
	if (strcmp(r->event_unit, "count") != 0)
		add_text(s, " %s of", utf8_sanitize(unit, sizeof(unit), r->event_unit));
	add_text(s, " %s", utf8_sanitize(name, sizeof(name), r->event));
}

/* What the format of a file does not have is unknown. */
static void add_doubts(struct text_line *s, const struct compare_side_sum *sum)
{
	static const char *const texts[COMPARE_DOUBT_COUNT] = {"lost", "with an incomplete stack",
							       "without a name"};
	const double shares[COMPARE_DOUBT_COUNT] = {
		sum->doubt[COMPARE_DOUBT_LOST], sum->doubt[COMPARE_DOUBT_CUT],
		sum->ticks ? (double)sum->unnamed / (double)sum->ticks : 0};
	const char *before = ";";

	for (int i = 0; i < COMPARE_DOUBT_COUNT; i++)
		if (!(sum->unknown & 1 << i)) {
			add_text(s, "%s %.1f %% %s", before, 100 * shares[i], texts[i]);
			before = ",";
		}
	before = "; unknown how many are";
	for (int i = 0; i < COMPARE_DOUBT_COUNT; i++)
		if (sum->unknown & 1 << i) {
			add_text(s, "%s %s", before, texts[i]);
			before = ",";
		}
}

void compare_side_sentence(const struct compare_output *o, enum compare_side side,
			   char text[SENTENCE_SIZE])
{
	const struct compare_side_sum *sum = &o->result->side[side];
	struct text_line s = {text, SENTENCE_SIZE, 0};

	*text = '\0';
	add_text(&s, "%zu file%s, %" PRIu64 " samples", sum->files, sum->files == 1 ? "" : "s",
		 sum->samples);
	add_events(&s, o->result, sum->ticks);
	if (sum->duration_ns)
		add_text(&s, " in %.3f s", (double)sum->duration_ns / 1e9);
	if (sum->cpu_ns)
		add_text(&s, ", CPU %.3f s", (double)sum->cpu_ns / 1e9);
	add_doubts(&s, sum);
}

bool compare_elapsed_sentence(const struct compare_output *o, char text[SENTENCE_SIZE])
{
	const struct compare_test *t = &o->result->elapsed;
	char old[VALUE_SIZE], new[VALUE_SIZE], change[3 * VALUE_SIZE];

	if (!o->result->has_elapsed)
		return false;
	time_value(t->side[COMPARE_OLD].value, old);
	time_value(t->side[COMPARE_NEW].value, new);
	compare_change(o, t, change);
	snprintf(text, SENTENCE_SIZE, "%s and %s a run, %s", old, new, change);
	return true;
}

void compare_noise_sentence(const struct compare_output *o, char text[SENTENCE_SIZE])
{
	const struct compare_result *r = o->result;

	if (r->runs_measured)
		snprintf(text, SENTENCE_SIZE, "measured, by %zu and %zu files",
			 r->side[COMPARE_OLD].files, r->side[COMPARE_NEW].files);
	else if (r->is_one_run)
		snprintf(text, SENTENCE_SIZE,
			 "none, both are parts of one recording (--run-noise)");
	else if (r->noise_files)
		snprintf(text, SENTENCE_SIZE, "%.1f %%, measured by the %zu files of one side",
			 100 * r->run_noise, r->noise_files);
	else if (r->noise_assumed)
		snprintf(text, SENTENCE_SIZE,
			 "unknown with fewer than %d files a side, taken to be %.1f %% "
			 "(--run-noise)",
			 COMPARE_RUNS_MIN, 100 * r->run_noise);
	else
		snprintf(text, SENTENCE_SIZE, "%.1f %%, as given", 100 * r->run_noise);
}

static void add_detectable(struct text_line *s, double detectable, const char *what)
{
	if (isfinite(detectable))
		add_text(s, "%s%s %.*f %%", s->used ? ", " : "", what, detectable < 0.1 ? 1 : 0,
			 100 * detectable);
}

void compare_detectable_sentence(const struct compare_output *o, char text[SENTENCE_SIZE])
{
	struct text_line s = {text, SENTENCE_SIZE, 0};

	*text = '\0';
	add_detectable(&s, o->result->detectable[0], "of the whole by");
	add_detectable(&s, o->result->detectable[1], "of a function of 5 % by");
	add_detectable(&s, o->result->detectable[2], "of one of 1 % by");
	if (!s.used)
		add_text(&s, "none: too few samples");
}

const char *compare_answer_name(enum compare_answer answer)
{
	static const char *const answers[] = {[COMPARE_NOT_WORSE] = "not worse",
					      [COMPARE_CANNOT_TELL] = "cannot tell",
					      [COMPARE_WORSE] = "worse"};

	return answers[answer];
}

void compare_ruling_sentence(const struct compare_output *o, size_t rule, char text[SENTENCE_SIZE])
{
	const struct compare_ruling *ruling = &o->rulings[rule];
	struct text_line s = {text, SENTENCE_SIZE, 0};
	const struct compare_output judged = compare_output_of_rule(o, rule);
	char name[NAME_SIZE], change[3 * VALUE_SIZE], safe[256];

	*text = '\0';
	add_text(&s, "%s: %s", utf8_sanitize(safe, sizeof(safe), o->rules[rule].text),
		 compare_answer_name(ruling->answer));
	if (ruling->test != UINT32_MAX) {
		compare_name(&judged, judged.result->tests[ruling->test].function, false, name);
		compare_change(&judged, &judged.result->tests[ruling->test], change);
		add_text(&s, ": %s %s", name, change);
	} else if (!judged.result) {
		add_text(&s, ": waiting time is not compared");
	} else if (ruling->answer == COMPARE_CANNOT_TELL && !judged.result->refused) {
		add_text(&s, ": no %s has such a name",
			 o->rules[rule].is_waiting ? "state" : "function");
	}
	if (ruling->runs_needed)
		add_text(&s, "; %" PRIu64 " files a side would do", ruling->runs_needed);
}
