/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/summary_json.h"

#include <ctype.h>

#include "export/describe.h"
#include "export/gil.h"

#define KEY_SIZE     64
#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define SHARE_DIGITS 6

/* How keys of single figures are written. */
enum key_style { SNAKE_CASE, CAMEL_CASE };

/* "clock_error_ns" -> "clockErrorNs" */
static const char *camel_case(const char *key, char text[KEY_SIZE])
{
	size_t used = 0;

	for (; *key && used < KEY_SIZE - 1; key++) {
		bool first = *key == '_' && key[1];

		key += first;
		text[used++] = first ? (char)toupper((unsigned char)*key) : *key;
	}
	text[used] = '\0';
	return text;
}

static void write_key(enum figure_id id, enum key_style style, struct json_writer *w)
{
	char text[KEY_SIZE];

	if (style == SNAKE_CASE)
		json_key(w, figure_table[id].key);
	else if (id == FIGURE_COMPLETE_SHARE)
		json_key(w, "completeStackShare");
	else
		json_key(w, camel_case(figure_table[id].key, text));
}

static void write_figure(const struct figures *f, enum figure_id id, enum key_style style,
			 struct json_writer *w)
{
	write_key(id, style, w);
	switch (figure_table[id].unit) {
	case FIGURE_IN_COUNT:
	case FIGURE_IN_NS:
		json_uint(w, f->value[id]);
		break;
	case FIGURE_IN_SHARE:
		json_fixed(w, f->share[id], SHARE_DIGITS);
		break;
	case FIGURE_IN_FLAG:
		json_bool(w, f->value[id]);
		break;
	case FIGURE_IN_CLOCK:
		json_string(w, f->value[id] ? "tsc" : "monotonic");
		break;
	case FIGURE_IN_DUE:
		if (f->due_known)
			json_int(w, (int64_t)f->value[id]);
		else
			json_null(w);
		break;
	}
}

static void write_list(const struct figures *f, const enum figure_id *ids, size_t count,
		       enum key_style style, struct json_writer *w)
{
	for (size_t i = 0; i < count; i++)
		write_figure(f, ids[i], style, w);
}

/* The members of a group, by their names. */
static void write_counts(const struct figures *f, unsigned int first, unsigned int end,
			 struct json_writer *w)
{
	for (unsigned int id = first; id < end; id++)
		json_key_uint(w, figure_table[id].key, f->value[id]);
}

static void write_group(const struct figures *f, const char *key, unsigned int first,
			unsigned int end, struct json_writer *w)
{
	json_key_object(w, key);
	write_counts(f, first, end, w);
	json_end_object(w);
}

/* Parts that a bound has left out, and lists with rows. */
static void write_rest(const struct profile *p, const struct figures *f, enum key_style style,
		       struct json_writer *w)
{
	for (unsigned int id = FIGURE_LEFT_OUT; id < FIGURE_LEFT_OUT_END; id++)
		if (f->value[id])
			write_figure(f, id, style, w);
	write_outside(p, w);
	write_jits(p, w);
	write_runtimes(p, w);
	write_gils(p, w);
}

void write_summary(const struct profile *p, const struct figures *f, struct json_writer *w)
{
	static const enum figure_id ids[] = {
		FIGURE_START,	   FIGURE_START_REALTIME, FIGURE_DURATION,	 FIGURE_PERIOD,
		FIGURE_SAMPLES,	   FIGURE_THREADS,	  FIGURE_SILENT_THREADS, FIGURE_CPU,
		FIGURE_SILENT_CPU, FIGURE_CUT_SHORT,	  FIGURE_COMPLETE_SHARE, FIGURE_NAMED_SHARE,
		FIGURE_CLOCK,	   FIGURE_CLOCK_ERROR,
	};

	json_begin_object(w);
	write_list(f, ids, COUNT(ids), SNAKE_CASE, w);
	write_group(f, "stack_ends", FIGURE_ENDS, FIGURE_ENDS_END, w);
	write_group(f, "frames_found", FIGURE_FRAMES + FRAME_IP, FIGURE_FRAMES_END, w);
	write_rest(p, f, SNAKE_CASE, w);
	write_group(f, "books", FIGURE_BOOKS, FIGURE_BOOKS_END, w);
	write_figure(f, FIGURE_DUE, SNAKE_CASE, w);
	write_figure(f, FIGURE_UNEXPLAINED, SNAKE_CASE, w);
	json_key_object(w, "meta");
	for (size_t i = 0; i < p->meta_count; i++)
		json_key_string(w, profile__string(p, p->meta[i].key),
				profile__string(p, p->meta[i].value));
	json_end_object(w);
	json_end_object(w);
}

void write_recording(const struct profile *p, struct json_writer *w)
{
	static const enum figure_id ids[] = {
		FIGURE_SAMPLES,	    FIGURE_CLOCK,     FIGURE_TSC_KHZ,
		FIGURE_CLOCK_ERROR, FIGURE_CUT_SHORT, FIGURE_COMPLETE_SHARE,
	};
	struct figures f;

	figures__init(&f, p);
	json_key_object(w, "recording");
	json_key_uint(w, "startTime", p->start / 1000);
	json_key_uint(w, "endTime", p->end / 1000);
	write_list(&f, ids, COUNT(ids), CAMEL_CASE, w);
	write_group(&f, "stackEnds", FIGURE_ENDS, FIGURE_ENDS_END, w);
	write_group(&f, "framesFound", FIGURE_FRAMES + FRAME_IP, FIGURE_FRAMES_END, w);
	write_figure(&f, FIGURE_NAMED_SHARE, CAMEL_CASE, w);
	write_rest(p, &f, CAMEL_CASE, w);
	json_key_object(w, "books");
	write_figure(&f, FIGURE_DUE, CAMEL_CASE, w);
	write_counts(&f, FIGURE_BOOKS, FIGURE_BOOKS_END, w);
	write_figure(&f, FIGURE_UNEXPLAINED, CAMEL_CASE, w);
	json_end_object(w);
	json_key_object(w, "lost");
	write_counts(&f, FIGURE_LOST, FIGURE_LOST + LOST_RECORDING, w);
	json_key_uint(w, "recordingChunks", p->lost[LOST_RECORDING]);
	write_counts(&f, FIGURE_LOST + LOST_RECORDING + 1, FIGURE_LOST_END, w);
	json_end_object(w);
	json_end_object(w);
}
