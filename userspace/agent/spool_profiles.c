/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/spool_profiles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/series.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/wire.h"
#include "formats/in/json.h"

#define UNPACKED_MAX (UINT64_C(64) << 20)

/* The function that gets the profiles. */
struct taker {
	const char *service;
	int (*take)(void *context, const void *pprof, size_t size);
	void *context;
};

/* ---- Pyroscope, OTLP ------------------------------------------------------------------------- */

/*
 * A profile of OTLP as pprof. Rows of mappings, locations and functions have the same fields, with
 * numbers one higher in pprof, whose field 1 is the row's id. Lines, types of values and lists of
 * locations are the same. Row 0 of a table is none in both.
 */
enum {
	OTLP_MAPPINGS = 1,
	OTLP_FUNCTIONS = 3,
	OTLP_STRINGS = 5,
	OTLP_STACKS = 7,
	OTLP_LAST_SHARED = 4, /* the last field of a row that pprof has as well */
};

/* A request in hand. */
struct packed {
	const struct taker *taker;
	bool is_otlp, is_wanted, is_wall;  /* wanted: of the service; wall: all time */
	uint64_t rows[OTLP_FUNCTIONS + 1]; /* of OTLP's dictionary so far, by table */
	VEC(struct wire) stacks;
	struct bytes tables, pprof; /* tables: the dictionary's, as pprof's */
};

static bool is_text(const struct wire *field, const char *text)
{
	return field->type == WIRE_BYTES && field->size == strlen(text) &&
	       !memcmp(field->bytes, text, field->size);
}

/* LabelPair{1: name, 2: value} or KeyValue{1: key, 2: AnyValue{1: text}} */
static int compare_label(void *context, const struct wire *label)
{
	struct packed *p = context;
	struct wire pair[3], any[2];
	int err;

	if (label->number != 1)
		return 0;
	err = wire_last(wire_inside(label), pair, 3);
	if (!err && is_text(&pair[1], "__name__"))
		p->is_wall = is_text(&pair[2], SERIES_NAME_WALL);
	if (!err && is_text(&pair[1], "service_name"))
		p->is_wanted = is_text(&pair[2], p->taker->service);
	if (!err && is_text(&pair[1], "service.name")) {
		err = wire_last(wire_inside(&pair[2]), any, 2);
		p->is_wanted = is_text(&any[1], p->taker->service);
	}
	return err;
}

/* RawSample{1: pprof} */
static int take_raw_sample(void *context, const struct wire *sample)
{
	const struct taker *t = ((struct packed *)context)->taker;
	struct wire fields[2];

	if (sample->number != 2)
		return 0;
	return wire_last(wire_inside(sample), fields, 2)
		       ?: t->take(t->context, fields[1].bytes, fields[1].size);
}

static int copy_field(void *context, const struct wire *field)
{
	struct bytes *row = context;

	if (field->type == WIRE_VARINT && field->number <= OTLP_LAST_SHARED)
		bytes__number(row, field->number + 1, field->value);
	else if (field->number <= OTLP_LAST_SHARED)
		bytes__field(row, field->number + 1, field->bytes, field->size);
	return 0;
}

static int take_row(void *context, const struct wire *field)
{
	struct packed *p = context;
	size_t at = p->tables.count;
	int err;

	if (field->type != WIRE_BYTES)
		return -EBADMSG;
	if (field->number == OTLP_STRINGS)
		bytes__field(&p->tables, PPROF_STRING_TABLE, field->bytes, field->size);
	if (field->number == OTLP_STACKS)
		return vec_push(&p->stacks, *field);
	if (field->number > OTLP_FUNCTIONS || !p->rows[field->number]++)
		return 0;
	bytes__number(&p->tables, 1, p->rows[field->number] - 1);
	err = wire_each(wire_inside(field), NULL, 0, copy_field, &p->tables);
	bytes__wrap(&p->tables, field->number - OTLP_MAPPINGS + PPROF_MAPPING, at);
	return err;
}

/* Sample{1: stack, 4: values} */
static int put_sample(struct packed *p, const struct wire *sample, uint64_t period)
{
	struct wire fields[5], values;
	uint64_t value;
	size_t at = p->pprof.count, two;
	int err = wire_last(wire_inside(sample), fields, 5);

	values = wire_inside(&fields[4]);
	if (err || fields[1].value >= p->stacks.count || !wire_varint(&values, &value))
		return -EBADMSG;
	bytes__append(&p->pprof, wire_inside(&p->stacks.data[fields[1].value]));
	two = p->pprof.count;
	bytes__varint(&p->pprof, value);
	bytes__varint(&p->pprof, value * period);
	bytes__wrap(&p->pprof, 2, two);
	bytes__wrap(&p->pprof, PPROF_SAMPLE, at);
	return 0;
}

/* Count and CPU time. Profile{1: type, 2: samples, 3: time, 4: duration, 5 and 6: period} */
static int read_profile(void *context, const struct wire *profile)
{
	struct packed *p = context;
	struct wire facts[7], fields = wire_inside(profile);
	int err;

	if (profile->number != 2)
		return 0;
	err = wire_last(fields, facts, 7);
	if (err || !facts[1].size || !facts[5].size)
		return -EBADMSG;
	/* the type of samples is that of the period: all time */
	if (facts[1].size == facts[5].size &&
	    !memcmp(facts[1].bytes, facts[5].bytes, facts[1].size))
		return 0;
	p->pprof.count = 0;
	bytes__append(&p->pprof, wire_of(p->tables.data, p->tables.count));
	bytes__field(&p->pprof, PPROF_SAMPLE_TYPE, facts[1].bytes, facts[1].size);
	bytes__field(&p->pprof, PPROF_SAMPLE_TYPE, facts[5].bytes, facts[5].size);
	while (!err && wire_next(&fields) > 0)
		if (fields.number == 2)
			err = put_sample(p, &fields, facts[6].value);
	bytes__number(&p->pprof, PPROF_TIME_NANOS, facts[3].value);
	bytes__number(&p->pprof, PPROF_DURATION_NANOS, facts[4].value);
	if (!err && (p->pprof.failed || p->tables.failed))
		err = -ENOMEM;
	return err ?: p->taker->take(p->taker->context, p->pprof.data, p->pprof.count);
}

/* RawProfileSeries{1: labels, 2: samples} or {1: Resource{1: labels}, 2: Scope{2: profiles}} */
static int read_series(void *context, const struct wire *series)
{
	static const uint32_t resource[] = {1}, scopes[] = {2};
	struct packed *p = context;
	struct wire fields = wire_inside(series);
	int err;

	if (series->number != 1)
		return 0;
	p->is_wanted = p->is_wall = false;
	err = wire_each(fields, resource, p->is_otlp, compare_label, p);
	if (err || !p->is_wanted || p->is_wall)
		return err;
	return wire_each(fields, scopes, p->is_otlp, p->is_otlp ? read_profile : take_raw_sample,
			 p);
}

/* PushRequest{1: series} or ExportRequest{1: series, 2: dictionary} */
static int read_packed(const struct sink_request *r, const struct taker *t, bool is_otlp)
{
	static const uint32_t dictionary[] = {2};
	_cleanup_free_ uint8_t *unpacked = NULL;
	struct packed p = {.taker = t, .is_otlp = is_otlp};
	uint64_t offset;
	size_t size;
	int err = gunzip_bytes(r->body, r->size, UNPACKED_MAX, &unpacked, &size, &offset);

	if (!err && is_otlp)
		err = wire_each(wire_of(unpacked, size), dictionary, 1, take_row, &p);
	if (!err)
		err = wire_each(wire_of(unpacked, size), NULL, 0, read_series, &p);
	free(p.tables.data);
	free(p.pprof.data);
	vec_free(&p.stacks);
	return err;
}

/* ---- Parca ----------------------------------------------------------------------------------- */

static bool is_string(struct json_value value, const char *text)
{
	size_t size = strlen(text);

	return json_type(value) == JSON_STRING && (size_t)(value.end - value.at) == size + 2 &&
	       !memcmp(value.at + 1, text, size);
}

/* {"labels":[{"name":…,"value":…},…]}: is it CPU time of the service? */
static int has_service(const struct json_text *text, struct json_value labels, const char *service,
		       bool *has)
{
	struct json_value list = {}, name, value;
	struct json_walk walk;
	int more = json_members(text, labels, {"labels", &list});
	bool is_wall = false;

	*has = false;
	if (!more)
		more = json_walk__init(&walk, text, list.at, JSON_ARRAY);
	while (!more && (more = json_walk__next(&walk)) > 0) {
		name = value = (struct json_value){};
		more = json_members(text, walk.value, {"name", &name}, {"value", &value});
		*has |= !more && is_string(name, "service_name") && is_string(value, service);
		is_wall |= !more && is_string(name, "__name__") &&
			   is_string(value, SERIES_NAME_WALL);
	}
	*has &= !is_wall;
	return more;
}

/* [{"rawProfile":"…"},…] */
static int take_samples(const struct json_text *text, struct json_value samples,
			const struct taker *t)
{
	struct json_value raw;
	struct json_walk walk;
	int more = json_walk__init(&walk, text, samples.at, JSON_ARRAY);

	while (!more && (more = json_walk__next(&walk)) > 0) {
		_cleanup_free_ uint8_t *pprof = NULL;
		size_t size = 0;

		raw = (struct json_value){};
		more = json_members(text, walk.value, {"rawProfile", &raw});
		if (!more && json_type(raw) != JSON_STRING)
			more = -EBADMSG;
		if (!more)
			more = base64_decode(raw.at + 1, (size_t)(raw.end - raw.at) - 2, &pprof,
					     &size);
		if (!more)
			more = t->take(t->context, pprof, size);
	}
	return more;
}

static int read_writeraw(const struct sink_request *r, const struct taker *t)
{
	struct import_failure failure = {};
	const struct json_text text = {r->body, (const char *)r->body + r->size, &failure};
	struct json_value series = {}, labels, samples;
	struct json_walk walk;
	int more = json_document(&text, {"series", &series});
	bool has = false;

	if (!more)
		more = json_walk__init(&walk, &text, series.at, JSON_ARRAY);
	while (!more && (more = json_walk__next(&walk)) > 0) {
		labels = samples = (struct json_value){};
		more = json_members(&text, walk.value, {"labels", &labels}, {"samples", &samples});
		if (!more)
			more = has_service(&text, labels, t->service, &has);
		if (!more && has)
			more = take_samples(&text, samples, t);
	}
	return more;
}

int sink_request__profiles(const struct sink_request *r, const char *service,
			   int (*take)(void *context, const void *pprof, size_t size),
			   void *context)
{
	const struct taker t = {service, take, context};

	if (!strcmp(r->path, "/push.v1.PusherService/Push"))
		return read_packed(r, &t, false);
	if (!strcmp(r->path, "/v1development/profiles"))
		return read_packed(r, &t, true);
	if (!strcmp(r->path, "/api/profiles/writeraw"))
		return read_writeraw(r, &t);
	return -EPROTONOSUPPORT;
}
