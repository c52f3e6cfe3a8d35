/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/in/firefox_markers.h"

#include <string.h>

#include "formats/in/firefox_tables.h"

enum marker_phase { PHASE_INSTANT, PHASE_INTERVAL, PHASE_START, PHASE_END };

static int add(struct firefox_file *r, const struct firefox_rows *rows, struct string_id name,
	       int64_t start, int64_t end)
{
	const struct profile_marker marker = {
		.thread = rows->thread,
		.name = name,
		.start = firefox_file__time(r, start),
		.end = firefox_file__time(r, end),
	};

	profile_builder__marker(r->b, &marker);
	return profile_builder__error(r->b);
}

/* The end of the innermost one of that name that has begun; of none: it began before the profile. */
static int add_ended(struct firefox_markers *markers, struct firefox_file *r,
		     const struct firefox_rows *rows, struct string_id name, int64_t end)
{
	int64_t start = -FIREFOX_TIME_LIMIT;

	for (size_t i = markers->open.count; i-- > 0;) {
		if (markers->open.data[i].name.v != name.v)
			continue;
		start = markers->open.data[i].start;
		memmove(&markers->open.data[i], &markers->open.data[i + 1],
			(--markers->open.count - i) * sizeof(*markers->open.data));
		break;
	}
	return add(r, rows, name, start, end);
}

static bool read_ms(const struct json_number *number, int64_t *ns)
{
	return !number->is_null && !json_scaled(number, FIREFOX_MS_SCALE, ns) &&
	       *ns <= FIREFOX_TIME_LIMIT && *ns >= -FIREFOX_TIME_LIMIT;
}

int firefox_markers__add(struct firefox_markers *markers, struct firefox_file *r,
			 struct firefox_in *in, const struct firefox_rows *rows,
			 const struct firefox_marker_row *row)
{
	int64_t start = 0, end = 0, phase = PHASE_INSTANT, number;
	bool has_start = read_ms(&row->start, &start), has_end = read_ms(&row->end, &end);
	struct string_id name;
	int err;

	if (row->name.is_null || json_scaled(&row->name, 0, &number) || number < 0 ||
	    (uint64_t)number >= in->strings.count)
		return 0;
	err = firefox_in__string(in, (int32_t)number, &name);
	if (err || !name.v)
		return err;
	if (row->phase.is_null || json_scaled(&row->phase, 0, &phase))
		phase = has_end ? PHASE_INTERVAL : PHASE_INSTANT;
	if (phase == PHASE_END)
		return has_end ? add_ended(markers, r, rows, name, end) : 0;
	if (!has_start || (phase == PHASE_INTERVAL && !has_end))
		return 0;
	if (phase == PHASE_START)
		return vec_push(&markers->open, ((struct firefox_open_marker){name, start}));
	return add(r, rows, name, start, phase == PHASE_INTERVAL ? end : start);
}

int firefox_markers__end(struct firefox_markers *markers, struct firefox_file *r,
			 const struct firefox_rows *rows)
{
	int err = 0;

	for (size_t i = 0; i < markers->open.count && !err; i++)
		err = add(r, rows, markers->open.data[i].name, markers->open.data[i].start,
			  FIREFOX_TIME_LIMIT);
	vec_free(&markers->open);
	return err;
}

/* ---- the processed format --------------------------------------------------------------------- */

struct marker_columns {
	struct json_column name, start, end, phase;
	struct json_walk data; /* of our own files */
};

static int begin_columns(const struct firefox_file *r, struct json_value table,
			 struct marker_columns *c)
{
	struct json_value name, start, end, phase, data;
	int err = json_members(&r->text, table, {"name", &name}, {"startTime", &start},
			       {"endTime", &end}, {"phase", &phase}, {"data", &data});

	*c = (struct marker_columns){};
	if (err || json_type(name) != JSON_ARRAY || json_type(start) != JSON_ARRAY)
		return err;
	err = json_column__init(&c->name, &r->text, name)
		      ?: json_column__init(&c->start, &r->text, start);
	if (!err && json_type(end) == JSON_ARRAY)
		err = json_column__init(&c->end, &r->text, end);
	if (!err && json_type(phase) == JSON_ARRAY)
		err = json_column__init(&c->phase, &r->text, phase);
	if (!err && r->ours && json_type(data) == JSON_ARRAY)
		err = json_walk__init(&c->data, &r->text, data.at, JSON_ARRAY);
	return err;
}

/* 1: it is to be read; 0: the exporter has made it of the profile. */
static int is_read(const struct firefox_file *r, struct marker_columns *c)
{
	struct json_value type = {};
	int more;

	if (!r->ours)
		return 1;
	more = c->data.text ? json_walk__next(&c->data) : 0;
	if (more <= 0 || json_type(c->data.value) != JSON_OBJECT)
		return more < 0 ? more : 0;
	return json_members(&r->text, c->data.value, {"type", &type})
		       ?: json_is(type, FIREFOX_OWN_MARKER);
}

static int read_row(struct firefox_markers *markers, struct firefox_file *r, struct firefox_in *in,
		    const struct firefox_rows *rows, struct marker_columns *c)
{
	struct firefox_marker_row row;
	int more = json_column__next(&c->name, &row.name);
	int err, read;

	if (more <= 0)
		return more;
	err = json_column__next_or_null(&c->start, &row.start)
		      ?: json_column__next_or_null(&c->end, &row.end)
		      ?: json_column__next_or_null(&c->phase, &row.phase);
	read = err ? err : is_read(r, c);
	if (read > 0)
		read = firefox_markers__add(markers, r, in, rows, &row);
	return read < 0 ? read : 1;
}

int firefox_markers__read(struct firefox_file *r, struct firefox_in *in, struct json_value table,
			  const struct firefox_rows *rows)
{
	struct firefox_markers markers = {};
	struct marker_columns c;
	int more;

	if (json_type(table) != JSON_OBJECT)
		return 0;
	more = begin_columns(r, table, &c);
	if (more || !c.name.text)
		return more;
	do {
		more = read_row(&markers, r, in, rows, &c);
	} while (more > 0);
	return firefox_markers__end(&markers, r, rows) ?: more;
}
