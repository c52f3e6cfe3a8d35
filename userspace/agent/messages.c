/* SPDX-License-Identifier: BSD-2-Clause */
/* Each function packs one message and appends it as a field of the one that it is part of. */
#include "agent/messages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <otlp_profiles.pb-c.h>
#include <pyroscope_push.pb-c.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "base/wire.h"

enum {
	PUSH_SERIES = 1,
	OTLP_RESOURCE_PROFILES = 1,
	OTLP_DICTIONARY = 2,
};

enum dictionary_field {
	MAPPING_TABLE = 1,
	LOCATION_TABLE,
	FUNCTION_TABLE,
	LINK_TABLE,
	STRING_TABLE,
	ATTRIBUTE_TABLE,
	STACK_TABLE,
};

static int add_header(struct bytes *out, unsigned int field, size_t size)
{
	uint8_t header[16];

	return bytes__add(out, header, wire_put_header(header, field, size));
}

static int add_field(struct bytes *out, unsigned int field, const void *data, size_t size)
{
	int err = add_header(out, field, size);

	return err ? err : bytes__add(out, data, size);
}

static int add_message(struct bytes *out, unsigned int field, const ProtobufCMessage *message)
{
	size_t size = protobuf_c_message_get_packed_size(message);

	if (add_header(out, field, size) || vec_reserve(out, out->count + size))
		return -ENOMEM;
	out->count += protobuf_c_message_pack(message, out->data + out->count);
	return 0;
}

/* ---- Pyroscope ------------------------------------------------------------------------------- */

int push_message__add_series(struct bytes *request, const struct push_series *series)
{
	_cleanup_free_ Pyroscope__LabelPair *pairs = calloc(series->label_count + 1,
							    sizeof(*pairs));
	_cleanup_free_ Pyroscope__LabelPair **list = calloc(series->label_count + 1, sizeof(*list));
	Pyroscope__RawSample sample = PYROSCOPE__RAW_SAMPLE__INIT, *samples = &sample;
	Pyroscope__RawProfileSeries message = PYROSCOPE__RAW_PROFILE_SERIES__INIT;

	if (!pairs || !list)
		return -ENOMEM;
	for (size_t i = 0; i < series->label_count; i++) {
		pyroscope__label_pair__init(&pairs[i]);
		pairs[i].name = (char *)series->labels[i].name;
		pairs[i].value = (char *)series->labels[i].value;
		list[i] = &pairs[i];
	}
	sample.raw_profile.data = (uint8_t *)series->pprof;
	sample.raw_profile.len = series->size;
	message.n_labels = series->label_count;
	message.labels = list;
	message.n_samples = 1;
	message.samples = &samples;
	return add_message(request, PUSH_SERIES, &message.base);
}

static bool is_of_service(const Pyroscope__RawProfileSeries *series, const char *service)
{
	for (size_t i = 0; i < series->n_labels; i++)
		if (!strcmp(series->labels[i]->name, "service_name"))
			return !strcmp(series->labels[i]->value, service);
	return false;
}

int push_message__read(const void *request, size_t size, const char *service,
		       int (*take)(void *context, const void *pprof, size_t size), void *context)
{
	Pyroscope__PushRequest *message = pyroscope__push_request__unpack(NULL, size, request);
	int err = message ? 0 : -EBADMSG;

	for (size_t i = 0; !err && i < message->n_series; i++) {
		const Pyroscope__RawProfileSeries *series = message->series[i];

		for (size_t j = 0; j < series->n_samples && !err; j++)
			if (is_of_service(series, service))
				err = take(context, series->samples[j]->raw_profile.data,
					   series->samples[j]->raw_profile.len);
	}
	if (message)
		pyroscope__push_request__free_unpacked(message, NULL);
	return err;
}

/* ---- OTLP: the dictionary -------------------------------------------------------------------- */

int otlp_dictionary__add_zeros(struct bytes *dictionary)
{
	static const enum dictionary_field tables[] = {MAPPING_TABLE,	LOCATION_TABLE,
						       FUNCTION_TABLE,	LINK_TABLE,
						       ATTRIBUTE_TABLE, STACK_TABLE};
	int err = 0;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && !err; i++)
		err = add_field(dictionary, tables[i], NULL, 0);
	return err;
}

int otlp_dictionary__add_location(struct bytes *dictionary, const struct code_location *l)
{
	_cleanup_free_ Otlp__Line *lines = calloc(l->line_count + 1, sizeof(*lines));
	_cleanup_free_ Otlp__Line **list = calloc(l->line_count + 1, sizeof(*list));
	Otlp__Location message = OTLP__LOCATION__INIT;

	if (!lines || !list)
		return -ENOMEM;
	for (size_t i = 0; i < l->line_count; i++) {
		otlp__line__init(&lines[i]);
		lines[i].function_index = (int32_t)l->lines[i].function;
		lines[i].line = l->lines[i].line;
		lines[i].column = l->lines[i].column;
		list[i] = &lines[i];
	}
	message.mapping_index = (int32_t)l->mapping;
	message.address = l->address;
	message.n_lines = l->line_count;
	message.lines = list;
	return add_message(dictionary, LOCATION_TABLE, &message.base);
}

int otlp_dictionary__add_mapping(struct bytes *dictionary, const struct code_mapping *m,
				 uint32_t attribute)
{
	int32_t attributes[] = {(int32_t)attribute};
	Otlp__Mapping message = OTLP__MAPPING__INIT;

	message.memory_start = m->start;
	message.memory_limit = m->limit;
	message.file_offset = m->file_offset;
	message.filename_strindex = (int32_t)m->filename;
	message.n_attribute_indices = attribute ? 1 : 0;
	message.attribute_indices = attributes;
	return add_message(dictionary, MAPPING_TABLE, &message.base);
}

int otlp_dictionary__add_function(struct bytes *dictionary, const struct code_function *f)
{
	Otlp__Function message = OTLP__FUNCTION__INIT;

	message.name_strindex = (int32_t)f->name;
	message.system_name_strindex = (int32_t)f->full_name;
	message.filename_strindex = (int32_t)f->filename;
	message.start_line = f->start_line;
	return add_message(dictionary, FUNCTION_TABLE, &message.base);
}

int otlp_dictionary__add_string(struct bytes *dictionary, const char *text)
{
	return add_field(dictionary, STRING_TABLE, text, strlen(text));
}

int otlp_dictionary__add_attribute(struct bytes *dictionary, uint32_t key, const char *value)
{
	Otlp__AnyValue any = OTLP__ANY_VALUE__INIT;
	Otlp__KeyValueAndUnit message = OTLP__KEY_VALUE_AND_UNIT__INIT;

	any.string_value = (char *)value;
	message.key_strindex = (int32_t)key;
	message.value = &any;
	return add_message(dictionary, ATTRIBUTE_TABLE, &message.base);
}

int otlp_dictionary__add_stack(struct bytes *dictionary, const int32_t *locations, size_t count)
{
	Otlp__Stack message = OTLP__STACK__INIT;

	message.n_location_indices = count;
	message.location_indices = (int32_t *)locations;
	return add_message(dictionary, STACK_TABLE, &message.base);
}

/* ---- OTLP: profiles -------------------------------------------------------------------------- */

static int add_resource(const Otlp__ScopeProfiles *scope, const struct otlp_profile *profile,
			struct bytes *request)
{
	size_t count = profile->attribute_count;
	_cleanup_free_ Otlp__KeyValue *pairs = calloc(count + 1, sizeof(*pairs));
	_cleanup_free_ Otlp__KeyValue **list = calloc(count + 1, sizeof(*list));
	_cleanup_free_ Otlp__AnyValue *values = calloc(count + 1, sizeof(*values));
	Otlp__ScopeProfiles *scopes = (Otlp__ScopeProfiles *)scope;
	Otlp__Resource resource = OTLP__RESOURCE__INIT;
	Otlp__ResourceProfiles message = OTLP__RESOURCE_PROFILES__INIT;

	if (!pairs || !list || !values)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		otlp__key_value__init(&pairs[i]);
		otlp__any_value__init(&values[i]);
		values[i].string_value = (char *)profile->attributes[i].value;
		pairs[i].key = (char *)profile->attributes[i].name;
		pairs[i].value = &values[i];
		list[i] = &pairs[i];
	}
	resource.n_attributes = count;
	resource.attributes = list;
	message.resource = &resource;
	message.n_scope_profiles = 1;
	message.scope_profiles = &scopes;
	return add_message(request, OTLP_RESOURCE_PROFILES, &message.base);
}

static void fill_samples(const struct otlp_profile *profile, Otlp__Sample *samples,
			 Otlp__Sample **list, int64_t *values)
{
	for (size_t i = 0; i < profile->sample_count; i++) {
		otlp__sample__init(&samples[i]);
		values[i] = profile->samples[i].value;
		samples[i].stack_index = (int32_t)profile->samples[i].stack;
		samples[i].n_values = 1;
		samples[i].values = &values[i];
		list[i] = &samples[i];
	}
}

int otlp_request__add_profile(struct bytes *request, const struct otlp_profile *profile)
{
	size_t count = profile->sample_count;
	_cleanup_free_ Otlp__Sample *samples = calloc(count + 1, sizeof(*samples));
	_cleanup_free_ Otlp__Sample **list = calloc(count + 1, sizeof(*list));
	_cleanup_free_ int64_t *values = calloc(count + 1, sizeof(*values));
	Otlp__ValueType sample_type = OTLP__VALUE_TYPE__INIT, period_type = OTLP__VALUE_TYPE__INIT;
	Otlp__Profile message = OTLP__PROFILE__INIT, *profiles = &message;
	Otlp__Scope scope = OTLP__SCOPE__INIT;
	Otlp__ScopeProfiles scope_profiles = OTLP__SCOPE_PROFILES__INIT;

	if (!samples || !list || !values)
		return -ENOMEM;
	fill_samples(profile, samples, list, values);
	sample_type.type_strindex = (int32_t)profile->samples_text;
	sample_type.unit_strindex = (int32_t)profile->count_text;
	period_type.type_strindex = (int32_t)profile->cpu_text;
	period_type.unit_strindex = (int32_t)profile->nanoseconds_text;
	message.sample_type = &sample_type;
	message.n_samples = count;
	message.samples = list;
	message.time_unix_nano = profile->time;
	message.duration_nano = profile->duration;
	message.period_type = &period_type;
	message.period = (int64_t)profile->period;
	message.profile_id.data = (uint8_t *)profile->id;
	message.profile_id.len = sizeof(profile->id);
	scope.name = (char *)profile->scope;
	scope.version = (char *)profile->scope_version;
	scope_profiles.scope = &scope;
	scope_profiles.n_profiles = 1;
	scope_profiles.profiles = &profiles;
	return add_resource(&scope_profiles, profile, request);
}

int otlp_request__add_dictionary(struct bytes *request, const struct bytes *dictionary)
{
	return add_field(request, OTLP_DICTIONARY, dictionary->data, dictionary->count);
}

/* ---- OTLP, as pprof -------------------------------------------------------------------------- */

static int put_number(struct bytes *out, unsigned int field, uint64_t value)
{
	uint8_t text[20];
	size_t size = wire_put_varint(text, (uint64_t)field << 3 | WIRE_VARINT);

	size += wire_put_varint(text + size, value);
	return bytes__add(out, text, size);
}

/* A message of numbers: `values[i]` is field i + 1. */
static int put_numbers(struct bytes *out, unsigned int field, const uint64_t *values, size_t count)
{
	_cleanup_bytes_ struct bytes message = {};
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = put_number(&message, (unsigned int)i + 1, values[i]);
	return err ? err : add_field(out, field, message.data, message.count);
}

static int put_location(struct bytes *out, uint64_t id, const Otlp__Location *l)
{
	_cleanup_bytes_ struct bytes message = {};
	const uint64_t facts[] = {id, (uint64_t)l->mapping_index, l->address};
	int err = 0;

	for (size_t i = 0; i < 3 && !err; i++)
		err = put_number(&message, (unsigned int)i + 1, facts[i]);
	for (size_t i = 0; i < l->n_lines && !err; i++) {
		const uint64_t line[] = {(uint64_t)l->lines[i]->function_index,
					 (uint64_t)l->lines[i]->line};

		err = put_numbers(&message, 4, line, 2);
	}
	return err ? err : add_field(out, PPROF_LOCATION, message.data, message.count);
}

/* Tables have their numbers as ids: element 0 is none in both formats. */
static int put_dictionary(struct bytes *out, const Otlp__ProfilesDictionary *d)
{
	int err = 0;

	for (size_t i = 0; i < d->n_string_table && !err; i++)
		err = add_field(out, PPROF_STRING_TABLE, d->string_table[i],
				strlen(d->string_table[i]));
	for (size_t i = 1; i < d->n_mapping_table && !err; i++) {
		const Otlp__Mapping *m = d->mapping_table[i];
		const uint64_t facts[] = {i, m->memory_start, m->memory_limit, m->file_offset,
					  (uint64_t)m->filename_strindex};

		err = put_numbers(out, PPROF_MAPPING, facts, 5);
	}
	for (size_t i = 1; i < d->n_function_table && !err; i++) {
		const Otlp__Function *f = d->function_table[i];
		const uint64_t facts[] = {i, (uint64_t)f->name_strindex,
					  (uint64_t)f->system_name_strindex,
					  (uint64_t)f->filename_strindex, (uint64_t)f->start_line};

		err = put_numbers(out, PPROF_FUNCTION, facts, 5);
	}
	for (size_t i = 1; i < d->n_location_table && !err; i++)
		err = put_location(out, i, d->location_table[i]);
	return err;
}

static int put_sample(struct bytes *out, const Otlp__Sample *s, const Otlp__ProfilesDictionary *d,
		      int64_t period)
{
	_cleanup_bytes_ struct bytes message = {};
	const Otlp__Stack *stack;
	int err = 0;

	if (s->stack_index < 0 || (size_t)s->stack_index >= d->n_stack_table || !s->n_values)
		return -EBADMSG;
	stack = d->stack_table[s->stack_index];
	for (size_t i = 0; i < stack->n_location_indices && !err; i++)
		err = put_number(&message, 1, (uint64_t)stack->location_indices[i]);
	if (!err)
		err = put_number(&message, 2, (uint64_t)s->values[0]);
	if (!err)
		err = put_number(&message, 2, (uint64_t)s->values[0] * (uint64_t)period);
	return err ? err : add_field(out, PPROF_SAMPLE, message.data, message.count);
}

/* Types of values: their count, and CPU time by it. Both are among the strings of the dictionary, as the profile has them. */
static int put_profile(struct bytes *out, const Otlp__Profile *p, const Otlp__ProfilesDictionary *d)
{
	uint64_t types[2][2];
	int err;

	if (!p->sample_type || !p->period_type)
		return -EBADMSG;
	types[0][0] = (uint64_t)p->sample_type->type_strindex;
	types[0][1] = (uint64_t)p->sample_type->unit_strindex;
	types[1][0] = (uint64_t)p->period_type->type_strindex;
	types[1][1] = (uint64_t)p->period_type->unit_strindex;
	err = put_dictionary(out, d);
	for (size_t i = 0; i < 2 && !err; i++)
		err = put_numbers(out, PPROF_SAMPLE_TYPE, types[i], 2);
	for (size_t i = 0; i < p->n_samples && !err; i++)
		err = put_sample(out, p->samples[i], d, p->period);
	if (!err)
		err = put_number(out, PPROF_TIME_NANOS, p->time_unix_nano);
	if (!err)
		err = put_number(out, PPROF_DURATION_NANOS, p->duration_nano);
	return err;
}

static bool is_resource_of(const Otlp__ResourceProfiles *r, const char *service)
{
	for (size_t i = 0; r->resource && i < r->resource->n_attributes; i++) {
		const Otlp__KeyValue *pair = r->resource->attributes[i];

		if (!strcmp(pair->key, "service.name") && pair->value)
			return !strcmp(pair->value->string_value, service);
	}
	return false;
}

static int read_resource(const Otlp__ResourceProfiles *r, const Otlp__ProfilesDictionary *d,
			 int (*take)(void *context, const void *pprof, size_t size), void *context)
{
	int err = 0;

	for (size_t i = 0; i < r->n_scope_profiles && !err; i++)
		for (size_t j = 0; j < r->scope_profiles[i]->n_profiles && !err; j++) {
			_cleanup_bytes_ struct bytes pprof = {};

			err = put_profile(&pprof, r->scope_profiles[i]->profiles[j], d);
			if (!err)
				err = take(context, pprof.data, pprof.count);
		}
	return err;
}

int otlp_request__read(const void *request, size_t size, const char *service,
		       int (*take)(void *context, const void *pprof, size_t size), void *context)
{
	Otlp__ExportRequest *message = otlp__export_request__unpack(NULL, size, request);
	Otlp__ProfilesDictionary *d = NULL;
	int err = 0;

	if (message)
		d = otlp__profiles_dictionary__unpack(NULL, message->dictionary.len,
						      message->dictionary.data);
	if (!d)
		err = -EBADMSG;
	for (size_t i = 0; !err && i < message->n_resource_profiles; i++)
		if (is_resource_of(message->resource_profiles[i], service))
			err = read_resource(message->resource_profiles[i], d, take, context);
	if (d)
		otlp__profiles_dictionary__free_unpacked(d, NULL);
	if (message)
		otlp__export_request__free_unpacked(message, NULL);
	return err;
}
