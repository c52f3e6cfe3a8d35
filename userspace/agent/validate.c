/* SPDX-License-Identifier: BSD-2-Clause */
/* Two passes over the fields: how long the tables are, then what refers to them. */
#include "agent/validate.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "base/vec.h"
#include "base/wire.h"

#define SYMBOL_MAX 65535
#define TYPES_MAX  2

struct text {
	const char *bytes;
	size_t size;
};

struct check {
	char *why;
	size_t why_size;
	bool bad;
	VEC(struct text) strings;
	VEC(struct pprof_mapping) mappings;
	numbers scratch;
	uint64_t locations, functions; /* of the first pass … */
	uint64_t location, function;   /* … and of the second one so far */
	size_t types;
	bool has_period_type;
	uint64_t time, duration;
	struct pprof_sums sums;
};

__attribute__((format(printf, 2, 3))) static bool refuse(struct check *c, const char *format, ...)
{
	va_list arguments;

	if (c->bad)
		return false;
	c->bad = true;
	va_start(arguments, format);
	vsnprintf(c->why, c->why_size, format, arguments);
	va_end(arguments);
	return false;
}

/* ---- words ----------------------------------------------------------------------------------- */

static bool is_utf8(const char *s, size_t size)
{
	for (size_t i = 0, step; i < size; i += step) {
		step = utf8_sequence(s + i, size - i);
		if (!step)
			return false;
	}
	return true;
}

/* [a-zA-Z_][a-zA-Z0-9_]*: what all backends take as a name */
static bool is_name(const char *s, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		bool letter = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z');

		if (!letter && s[i] != '_' && (!i || s[i] < '0' || s[i] > '9'))
			return false;
	}
	return size > 0;
}

bool validate_label_value(const char *value)
{
	size_t size = strlen(value);

	return size && size <= VALID_LABEL_VALUE_MAX && is_utf8(value, size);
}

static bool check_label(struct check *c, const struct service_label *label)
{
	size_t name = strlen(label->name);

	if (!is_name(label->name, name) || name > VALID_LABEL_NAME_MAX)
		return refuse(c, "invalid label name");
	if (!strncmp(label->name, "__", 2) && strcmp(label->name, "__name__"))
		return refuse(c, "reserved label name");
	return validate_label_value(label->value) || refuse(c, "invalid label value");
}

bool validate_labels(const struct service_label *labels, size_t count, char *why, size_t why_size)
{
	struct check c = {.why = why, .why_size = why_size};
	bool has_name = false, has_service = false;

	if (count > VALID_LABELS_MAX)
		return refuse(&c, "%zu labels", count);
	for (size_t i = 0; i < count; i++) {
		if (!check_label(&c, &labels[i]))
			return false;
		has_name |= !strcmp(labels[i].name, "__name__");
		has_service |= !strcmp(labels[i].name, "service_name");
		for (size_t j = 0; j < i; j++)
			if (!strcmp(labels[i].name, labels[j].name))
				return refuse(&c, "duplicate label");
	}
	if (!has_name)
		return refuse(&c, "no __name__");
	return has_service || refuse(&c, "no service_name");
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Calls `take` for each field of a message. */
static bool each_field(struct check *c, struct wire fields,
		       bool (*take)(struct check *c, const struct wire *field, void *context),
		       void *context)
{
	int found;

	while ((found = wire_next(&fields)) > 0)
		if (!take(c, &fields, context))
			return false;
	return !found || refuse(c, "damaged message");
}

static bool take_numbers(struct check *c, const struct wire *message, const char *types, void *to,
			 size_t size)
{
	return wire_numbers(wire_inside(message), types, to, size) || refuse(c, "damaged message");
}

/* The numbers of a repeated field, into c->scratch. */
static bool take_repeated(struct check *c, struct wire message, uint32_t field)
{
	c->scratch.count = 0;
	return !wire_repeated(message, field, &c->scratch) || refuse(c, "damaged message");
}

static bool check_string(struct check *c, int64_t index)
{
	return (uint64_t)index < c->strings.count || refuse(c, "dangling string");
}

/* ---- the tables ------------------------------------------------------------------------------ */

static bool add_string(struct check *c, const struct wire *field)
{
	const struct text text = {(const char *)field->bytes, field->size};

	if (!c->strings.count && text.size)
		return refuse(c, "string 0 is not empty");
	if (text.size > SYMBOL_MAX)
		return refuse(c, "a string of %zu bytes", text.size);
	if (!is_utf8(text.bytes, text.size))
		return refuse(c, "a string is not UTF-8");
	return !vec_push(&c->strings, text) || refuse(c, "no memory");
}

static bool add_mapping(struct check *c, const struct wire *field)
{
	struct pprof_mapping mapping;

	if (!take_numbers(c, field, "vvvvvvvvvv", &mapping, sizeof(mapping)))
		return false;
	if (mapping.id != c->mappings.count + 1)
		return refuse(c, "mapping ids are not sequential");
	return !vec_push(&c->mappings, mapping) || refuse(c, "no memory");
}

static bool take_table(struct check *c, const struct wire *field, void *context)
{
	(void)context;
	if (field->number >= PPROF_SAMPLE_TYPE && field->number <= PPROF_STRING_TABLE &&
	    field->type != WIRE_BYTES)
		return refuse(c, "damaged message");
	switch (field->number) {
	case PPROF_SAMPLE_TYPE:
		c->types++;
		break;
	case PPROF_MAPPING:
		return add_mapping(c, field);
	case PPROF_LOCATION:
		c->locations++;
		break;
	case PPROF_FUNCTION:
		c->functions++;
		break;
	case PPROF_STRING_TABLE:
		return add_string(c, field);
	case PPROF_TIME_NANOS:
		c->time = field->value;
		break;
	case PPROF_DURATION_NANOS:
		c->duration = field->value;
		break;
	default:
		break;
	}
	return true;
}

/* ---- what refers to them --------------------------------------------------------------------- */

/* Both backends make the name of a type of them. */
static bool check_type(struct check *c, const struct wire *field)
{
	struct pprof_value_type message;
	const struct text *type, *unit;

	if (!take_numbers(c, field, "vv", &message, sizeof(message)) ||
	    !check_string(c, message.type) || !check_string(c, message.unit))
		return false;
	type = &c->strings.data[message.type];
	unit = &c->strings.data[message.unit];
	return (is_name(type->bytes, type->size) && is_name(unit->bytes, unit->size)) ||
	       refuse(c, "invalid type");
}

static bool check_function(struct check *c, const struct wire *field, uint64_t expected)
{
	struct pprof_function function;

	if (!take_numbers(c, field, "vvvvv", &function, sizeof(function)) ||
	    !check_string(c, function.name) || !check_string(c, function.system_name) ||
	    !check_string(c, function.filename))
		return false;
	if (function.id != expected)
		return refuse(c, "function ids are not sequential");
	return c->strings.data[function.name].size || refuse(c, "a function without a name");
}

static bool take_line(struct check *c, const struct wire *field, void *context)
{
	size_t *lines = context;
	struct pprof_line line;

	if (field->number != PPROF_LINE)
		return true;
	++*lines;
	return take_numbers(c, field, "vvv", &line, sizeof(line)) &&
	       ((line.function && line.function <= c->functions) || refuse(c, "dangling function"));
}

/*
 * Pyroscope leaves out a frame without a name, and the time of a stack that has no other. It stays
 * in a mapping with the flag that names are missing, whose file can be found.
 */
static bool check_location(struct check *c, const struct wire *field, uint64_t expected)
{
	struct pprof_location location;
	const struct pprof_mapping *mapping;
	size_t lines = 0;

	if (!take_numbers(c, field, "vvvbv", &location, sizeof(location)) ||
	    !each_field(c, wire_inside(field), take_line, &lines))
		return false;
	if (location.id != expected)
		return refuse(c, "location ids are not sequential");
	if (!location.mapping || location.mapping > c->mappings.count)
		return refuse(c, "dangling mapping");
	mapping = &c->mappings.data[location.mapping - 1];
	if (mapping->has_functions != (lines > 0))
		return refuse(c, "a frame without a name among frames with names");
	return lines || c->strings.data[mapping->build_id].size ||
	       refuse(c, "a frame without a name or a build id");
}

static bool check_mapping(struct check *c, size_t index)
{
	return check_string(c, c->mappings.data[index].filename) &&
	       check_string(c, c->mappings.data[index].build_id);
}

static bool check_stack(struct check *c, struct wire sample)
{
	if (!take_repeated(c, sample, PPROF_LOCATION_ID))
		return false;
	for (size_t i = 0; i < c->scratch.count; i++)
		if (!c->scratch.data[i] || c->scratch.data[i] > c->locations)
			return refuse(c, "dangling location");
	if (!c->scratch.count)
		return refuse(c, "a sample without a stack");
	return c->scratch.count <= VALID_DEPTH_MAX ||
	       refuse(c, "a stack of %zu frames", c->scratch.count);
}

static bool check_values(struct check *c, struct wire sample)
{
	bool not_zero = false;

	if (!take_repeated(c, sample, PPROF_VALUE))
		return false;
	if (c->scratch.count != c->types)
		return refuse(c, "%zu values of %zu types", c->scratch.count, c->types);
	for (size_t i = 0; i < c->scratch.count; i++) {
		uint64_t number = c->scratch.data[i];

		if ((int64_t)number < 0)
			return refuse(c, "a negative value");
		not_zero |= number != 0;
		if (i < TYPES_MAX)
			c->sums.values[i] += number;
	}
	return not_zero || refuse(c, "a sample of nothing");
}

static bool has_no_label(struct check *c, const struct wire *field, void *context)
{
	(void)context;
	return field->number != PPROF_LABEL || refuse(c, "a label at a sample");
}

static bool check_sample(struct check *c, const struct wire *field)
{
	struct wire sample = wire_inside(field);

	c->sums.samples++;
	return each_field(c, sample, has_no_label, NULL) && check_stack(c, sample) &&
	       check_values(c, sample);
}

static bool check_field(struct check *c, const struct wire *field, void *context)
{
	(void)context;
	switch (field->number) {
	case PPROF_SAMPLE_TYPE:
		return check_type(c, field);
	case PPROF_SAMPLE:
		return check_sample(c, field);
	case PPROF_LOCATION:
		return check_location(c, field, ++c->location);
	case PPROF_FUNCTION:
		return check_function(c, field, ++c->function);
	case PPROF_PERIOD_TYPE:
		c->has_period_type = true;
		return check_type(c, field);
	default:
		return true;
	}
}

static bool check_whole(struct check *c)
{
	if (!c->types || c->types > TYPES_MAX)
		return refuse(c, "%zu sample types", c->types);
	if (!c->has_period_type)
		return refuse(c, "no period type");
	if (!c->sums.samples)
		return refuse(c, "no samples");
	if (c->sums.samples > VALID_SAMPLES_MAX)
		return refuse(c, "%llu samples", (unsigned long long)c->sums.samples);
	if (!c->time || (int64_t)c->time < 0)
		return refuse(c, "no time");
	return (c->duration && (int64_t)c->duration > 0) || refuse(c, "no duration");
}

static bool check_pprof(struct check *c, const void *bytes, size_t size)
{
	const struct wire fields = wire_of(bytes, size);

	if (!size)
		return refuse(c, "empty");
	if (size > VALID_SIZE_MAX)
		return refuse(c, "%zu bytes", size);
	if (!each_field(c, fields, take_table, NULL))
		return false;
	if (!c->strings.count)
		return refuse(c, "no strings");
	for (size_t i = 0; i < c->mappings.count; i++)
		if (!check_mapping(c, i))
			return false;
	return each_field(c, fields, check_field, NULL) && check_whole(c);
}

bool validate_pprof(const void *bytes, size_t size, struct pprof_sums *sums, char *why,
		    size_t why_size)
{
	struct check c = {.why = why, .why_size = why_size};
	bool good = check_pprof(&c, bytes, size);

	if (good && sums) {
		*sums = c.sums;
		sums->time_ns = c.time;
	}
	vec_free(&c.strings);
	vec_free(&c.mappings);
	vec_free(&c.scratch);
	return good;
}
