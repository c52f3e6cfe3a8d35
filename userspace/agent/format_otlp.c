/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OTLP profiles: a resource with one profile per service, all on one dictionary.
 *
 * A profile is samples/count with a period of CPU time: only of that Pyroscope makes CPU time in
 * the type that dashboards open. So ticks are sent, and CPU time that was not sampled is missing.
 * Waits are a profile wall/nanoseconds beside it, which has all CPU time.
 *
 * Attributes are plain keys and values: Pyroscope and Parca do not read 1.10's string references.
 *
 * Field numbers are those of opentelemetry.proto.profiles.v1development from 1.10 (March 2026) on,
 * which renumbered Sample with no other sign on the wire. Element 0 of each dictionary table is
 * empty and means none.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/series.h"
#include "agent/merged_code.h"
#include "agent/sink_format.h"
#include "agent/service_samples.h"
#include "agent/validate.h"
#include "base/hashmap.h"
#include "base/minmax.h"
#include "base/vec.h"
#include "base/wire.h"

#define REQUEST_MAX                                                                                \
	2000000 /* bytes, not compressed: a collector takes 4 MiB by gRPC, 20 MiB by HTTP */
#define SERIES_MAX 500
/* Of a profile: Pyroscope takes 16,000, and 4 MiB, counting mappings again for each sample. */
#define SAMPLES_MAX 4000
#define DEPTH_MAX   1000
#define TEXT_MAX    4096

/* Some samples of a service, of which all have ticks, or time. */
struct part {
	size_t service;
	bool wall; /* of all time, not of ticks */
	const struct service_sample *samples;
	size_t count;
};

struct otlp {
	const struct agent_window *window;
	const struct sink_encoding_options *options;
	struct sealed_window *sealed;
	struct part_times *times;
	struct merged_code code;
	struct code_order *order;
	VEC(struct service_sample) samples; /* of all services */
	VEC(struct part) parts;
	uint64_t wall_bytes; /* of the request in hand */
};

/* ---- a dictionary ---------------------------------------------------------------------------- */

/* Fields of ProfilesDictionary. */
enum dictionary_field {
	MAPPING_TABLE = 1,
	LOCATION_TABLE,
	FUNCTION_TABLE,
	LINK_TABLE,
	STRING_TABLE,
	ATTRIBUTE_TABLE,
	STACK_TABLE,
};

struct dictionary {
	const struct profile *p;
	uint32_t depth_max;
	struct code_tables *code;
	struct bytes bytes;
	uint32_t *stack_number; /* by stack of the profile; 0: none yet */
	uint32_t stacks, attributes;
	uint32_t of_context[CONTEXT_COUNT]; /* its attribute; 0: none yet */
};

static int dictionary__init(struct dictionary *d, const struct otlp *o, uint32_t depth_max)
{
	const struct code_options options = {.split_unnamed = true,
					     .name_all = o->options->name_all,
					     .map_all = true,
					     .merged = o->code.locations,
					     .text_max = TEXT_MAX};

	*d = (struct dictionary){.p = o->window->profile, .depth_max = depth_max};
	d->code = code_tables__new(d->p, &options);
	d->stack_number = calloc(d->p->stack_count + 1, sizeof(*d->stack_number));
	for (uint32_t table = MAPPING_TABLE; table <= STACK_TABLE; table++)
		if (table != STRING_TABLE)
			bytes__field(&d->bytes, table, NULL, 0);
	return d->code && d->stack_number ? 0 : -ENOMEM;
}

static void dictionary__fini(struct dictionary *d)
{
	code_tables__free(d->code);
	free(d->bytes.data);
	free(d->stack_number);
}

/* The number of a stack; with a wait's leaf hardly ever reused. Stack{1: locations, leaf first} */
static uint32_t stack_number(struct dictionary *d, uint32_t stack, enum wall_state state)
{
	const struct profile_stack *stacks = d->p->stacks;
	uint32_t most = d->depth_max - (state && d->depth_max > 1);
	bool is_cut = stacks[stack].depth > most;
	uint32_t left = is_cut ? most - 1 : stacks[stack].depth;
	size_t at = d->bytes.count;

	if (!state && d->stack_number[stack])
		return d->stack_number[stack];
	if (state)
		bytes__varint(&d->bytes, code_tables__waiting(d->code, state));
	if (!stack)
		bytes__varint(&d->bytes, code_tables__location(d->code, (struct location_id){0}));
	for (uint32_t i = stack; left && i; left--, i = stacks[i].parent.v)
		bytes__varint(&d->bytes, code_tables__location(d->code, stacks[i].location));
	if (is_cut)
		bytes__varint(&d->bytes, code_tables__truncated(d->code));
	if (d->bytes.count > at)
		bytes__wrap(&d->bytes, 1, at);
	bytes__wrap(&d->bytes, STACK_TABLE, at);
	d->stacks++;
	if (!state)
		d->stack_number[stack] = d->stacks;
	return d->stacks;
}

/* KeyValueAndUnit{1: key, 2: AnyValue{1: text}} */
static uint32_t add_code_attribute(struct dictionary *d, const char *key, const char *text)
{
	size_t at = d->bytes.count, value;

	bytes__number(&d->bytes, 1, code_tables__text(d->code, key));
	value = d->bytes.count;
	bytes__text(&d->bytes, 1, text);
	bytes__wrap(&d->bytes, 2, value);
	bytes__wrap(&d->bytes, ATTRIBUTE_TABLE, at);
	return ++d->attributes;
}

static uint32_t context_attribute(struct dictionary *d, enum sample_context context)
{
	uint32_t *number = &d->of_context[context];

	if (context != CONTEXT_NONE && !*number)
		*number = add_code_attribute(d, "context", sample_context_name(context));
	return *number;
}

/* Mapping{1: start, 2: limit, 3: file_offset, 4: filename, 5: attributes} */
static void add_mapping(struct dictionary *d, uint32_t number)
{
	const struct code_mapping m = code_tables__describe_mapping(d->code, number);
	size_t at, attributes, count;

	if (m.build_id)
		add_code_attribute(d, "process.executable.build_id.gnu",
				   code_tables__strings(d->code, &count)[m.build_id]);
	at = d->bytes.count;
	bytes__number(&d->bytes, 1, m.start);
	bytes__number(&d->bytes, 2, m.limit);
	bytes__number(&d->bytes, 3, m.file_offset);
	bytes__number(&d->bytes, 4, m.filename);
	attributes = d->bytes.count;
	if (m.build_id) {
		bytes__varint(&d->bytes, d->attributes);
		bytes__wrap(&d->bytes, 5, attributes);
	}
	bytes__wrap(&d->bytes, MAPPING_TABLE, at);
}

/* Location{1: mapping, 2: address, 3: Line{1: function, 2: line, 3: column}, innermost first} */
static void add_location(struct dictionary *d, uint32_t number)
{
	const struct code_location l = code_tables__describe_location(d->code, number);
	size_t at = d->bytes.count;

	bytes__number(&d->bytes, 1, l.mapping);
	bytes__number(&d->bytes, 2, l.address);
	for (size_t i = 0; i < l.line_count; i++) {
		size_t line = d->bytes.count;

		bytes__number(&d->bytes, 1, l.lines[i].function);
		bytes__number(&d->bytes, 2, l.lines[i].line);
		bytes__number(&d->bytes, 3, l.lines[i].column);
		bytes__wrap(&d->bytes, 3, line);
	}
	bytes__wrap(&d->bytes, LOCATION_TABLE, at);
}

/* Function{1: name, 2: system_name, 3: filename, 4: start_line} */
static void add_function(struct dictionary *d, uint32_t number)
{
	const struct code_function f = code_tables__describe_function(d->code, number);
	size_t at = d->bytes.count;

	bytes__number(&d->bytes, 1, f.name);
	bytes__number(&d->bytes, 2, f.full_name);
	bytes__number(&d->bytes, 3, f.filename);
	bytes__number(&d->bytes, 4, f.start_line);
	bytes__wrap(&d->bytes, FUNCTION_TABLE, at);
}

static int finish_dictionary(struct dictionary *d)
{
	const char *const *strings;
	size_t count;

	for (uint32_t i = 1; i <= code_tables__location_count(d->code); i++)
		add_location(d, i);
	code_tables__number_names(d->code);
	for (uint32_t i = 1; i <= code_tables__mapping_count(d->code); i++)
		add_mapping(d, i);
	for (uint32_t i = 1; i <= code_tables__function_count(d->code); i++)
		add_function(d, i);
	strings = code_tables__strings(d->code, &count);
	for (size_t i = 0; i < count; i++)
		bytes__field(&d->bytes, STRING_TABLE, strings[i], strlen(strings[i]));
	return d->bytes.failed ? -ENOMEM : code_tables__error(d->code);
}

/* ---- a request ------------------------------------------------------------------------------- */

/* OpenTelemetry's name of a label, if it has one. */
static const char *attribute_name(const char *label)
{
	static const char *const names[][2] = {
		{"service_name", "service.name"},
		{"service_version", "service.version"},
		{"node", "host.name"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(label, names[i][0]))
			return names[i][1];
	return label;
}

/* KeyValue{1: key, 2: AnyValue{1: text}} */
static void add_attribute(struct bytes *request, const char *name, const char *text)
{
	size_t at = request->count, value;

	bytes__text(request, 1, name);
	value = request->count;
	bytes__text(request, 1, text);
	bytes__wrap(request, 2, value);
	bytes__wrap(request, 1, at);
}

/* Resource{1: attributes} */
static void add_resource(const struct otlp *o, size_t service, struct bytes *request)
{
	const struct labeled_service *s = &o->window->services[service];
	const char *node = o->options->node;
	bool has_node = !node || !validate_label_value(node);
	size_t at = request->count;

	for (size_t i = 0; i < s->label_count && i < LABELS_MAX; i++) {
		add_attribute(request, attribute_name(s->labels[i].name), s->labels[i].value);
		has_node |= !strcmp(s->labels[i].name, "node");
	}
	if (!has_node)
		add_attribute(request, "host.name", node);
	bytes__wrap(request, 1, at);
}

/* The same for the same window and part: a receiver may detect by it what it has already. */
static void make_id(const struct otlp *o, const struct part *part, uint64_t time, uint8_t *id)
{
	const struct labeled_service *s = &o->window->services[part->service];
	uint64_t words[2] = {hash_stable(&time, sizeof(time)) ^ part->wall, part->count};

	for (size_t i = 0; i < s->label_count; i++) {
		words[0] ^= hash_stable(s->labels[i].name, strlen(s->labels[i].name) + 1) + i;
		words[1] = words[1] * 31 +
			   hash_stable(s->labels[i].value, strlen(s->labels[i].value) + 1);
	}
	memcpy(id, words, sizeof(words));
}

static int64_t value_of(bool wall, const struct service_sample *sample)
{
	return (int64_t)(wall ? sample->cpu + sample->wait : sample->ticks);
}

/* ValueType{1: type, 2: unit} */
static void add_type(struct bytes *request, uint32_t field, uint32_t type, uint32_t unit)
{
	size_t at = request->count;

	bytes__number(request, 1, type);
	bytes__number(request, 2, unit);
	bytes__wrap(request, field, at);
}

/* Sample{1: stack, 2: attributes, 4: values} */
static void add_sample(struct bytes *request, uint32_t stack, uint32_t attribute, int64_t value)
{
	size_t at = request->count, list;

	bytes__number(request, 1, stack);
	list = request->count;
	if (attribute) {
		bytes__varint(request, attribute);
		bytes__wrap(request, 2, list);
	}
	list = request->count;
	bytes__varint(request, (uint64_t)value);
	bytes__wrap(request, 4, list);
	bytes__wrap(request, 2, at);
}

/* A fixed64 */
static void add_time(struct bytes *request, uint32_t field, uint64_t time)
{
	uint8_t bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(time >> 8 * i);
	bytes__varint(request, (uint64_t)field << 3 | WIRE_FIXED64);
	request->failed |= bytes__add(request, bytes, sizeof(bytes)) != 0;
}

/* Profile{1: sample_type, 2: samples, 3: time, 4: duration, 5: period_type, 6: period, 7: id} */
static void add_profile(const struct otlp *o, struct dictionary *d, const struct part *part,
			uint64_t time, struct bytes *request)
{
	const struct agent_window *w = o->window;
	uint32_t type = code_tables__text(d->code, part->wall ? "wall" : "samples");
	uint32_t unit = code_tables__text(d->code, part->wall ? "nanoseconds" : "count");
	uint32_t period = code_tables__text(d->code, part->wall ? "wall" : "cpu");
	uint32_t nanoseconds = code_tables__text(d->code, "nanoseconds");
	size_t at = request->count;
	uint8_t id[16];

	make_id(o, part, time, id);
	add_type(request, 1, type, unit);
	for (size_t i = 0; i < part->count; i++)
		add_sample(request,
			   stack_number(d, part->samples[i].stack.v, part->samples[i].state),
			   context_attribute(d, part->samples[i].context),
			   value_of(part->wall, &part->samples[i]));
	add_time(request, 3, time);
	bytes__number(request, 4,
		      w->end_realtime > w->start_realtime ? w->end_realtime - w->start_realtime
							  : 1);
	add_type(request, 5, period, nanoseconds);
	/* of 0 Pyroscope makes a bad name */
	bytes__number(request, 6,
		      part->wall ? agent_window__visit_period(w) : max_u64(w->profile->period, 1));
	bytes__field(request, 7, id, sizeof(id));
	bytes__wrap(request, 2, at);
}

/* ResourceProfiles{1: resource, 2: ScopeProfiles{1: Scope{1: name, 2: version}, 2: profiles}} */
static void add_part(const struct otlp *o, struct dictionary *d, const struct part *part,
		     uint64_t time, struct bytes *request)
{
	size_t at = request->count, scope_profiles;

	add_resource(o, part->service, request);
	scope_profiles = request->count;
	bytes__text(request, 1, "sysprof");
	bytes__text(request, 2, SYSPROF_VERSION);
	bytes__wrap(request, 1, scope_profiles);
	add_profile(o, d, part, time, request);
	bytes__wrap(request, 2, scope_profiles);
	bytes__wrap(request, 1, at);
}

/* When part number `i` of a request begins, which may have others with its labels. */
static uint64_t time_of(const struct otlp *o, const struct part *parts, size_t i)
{
	uint32_t ahead = 0;

	for (size_t j = 0; j < i; j++)
		ahead += part_times__same(o->times, parts[j].service, parts[i].service);
	return part_times__next(o->times, parts[i].service, ahead);
}

/* Numbers the code of all these samples, before the first is added. 0, -ENOMEM. */
static int number_code(const struct otlp *o, struct dictionary *d, const struct part *parts,
		       size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < parts[i].count && !err; j++) {
			const struct stack_id stack = parts[i].samples[j].stack;

			err = code_order__add_stack(o->order, stack, d->depth_max);
		}
	code_order__number(o->order, d->code);
	return err;
}

static int make_request(struct otlp *o, const struct part *parts, size_t count, uint32_t depth_max,
			struct bytes *request)
{
	struct dictionary d;
	int err = dictionary__init(&d, o, depth_max);

	request->count = o->wall_bytes = 0;
	if (!err)
		err = number_code(o, &d, parts, count);
	for (size_t i = 0; !err && i < count; i++) {
		size_t before = request->count;

		add_part(o, &d, &parts[i], time_of(o, parts, i), request);
		o->wall_bytes += parts[i].wall ? request->count - before : 0;
	}
	if (!err)
		err = finish_dictionary(&d);
	if (!err)
		bytes__field(request, 2, d.bytes.data, d.bytes.count);
	dictionary__fini(&d);
	return request->failed ? -ENOMEM : err;
}

static int seal(struct otlp *o, const struct part *parts, size_t count, const struct bytes *request)
{
	static const uint32_t dictionary[] = {2};
	struct bytes body = {};
	struct request_facts facts = {
		.path = "/v1development/profiles",
		.content_type = "application/x-protobuf",
		.content_encoding = "gzip",
		.series = (uint32_t)count,
	};
	int err = bytes__gzip(request, dictionary, 1, &body);

	for (size_t i = 0; i < count; i++) {
		part_times__take(o->times, parts[i].service);
		for (size_t j = 0; j < parts[i].count; j++)
			*(parts[i].wall ? &o->sealed->wall_ns : &facts.samples) +=
				(uint64_t)value_of(parts[i].wall, &parts[i].samples[j]);
	}
	o->sealed->wall_bytes += o->wall_bytes;
	facts.cpu_ns = facts.samples * max_u64(o->window->profile->period, 1);
	return err ?: sealed_window__add(o->sealed, &facts, &body);
}

/* One sample that is too big alone: as much of its stack as fits. */
static int seal_big_sample(struct otlp *o, const struct part *part, struct bytes *request)
{
	uint32_t depth = DEPTH_MAX;
	int err;

	do {
		depth /= 2;
		err = make_request(o, part, 1, depth, request);
	} while (!err && depth > 1 && request->count > REQUEST_MAX);
	return err ?: seal(o, part, 1, request);
}

/* As one request if they fit, else in halves. */
static int seal_parts(struct otlp *o, const struct part *parts, size_t count)
{
	_cleanup_bytes_ struct bytes request = {};
	struct part half;
	int err;

	if (!count)
		return 0;
	if (count <= SERIES_MAX) {
		err = make_request(o, parts, count, DEPTH_MAX, &request);
		if (err)
			return err;
		if (request.count <= REQUEST_MAX)
			return seal(o, parts, count, &request);
	}
	if (count > 1) {
		err = seal_parts(o, parts, count / 2);
		return err ?: seal_parts(o, parts + count / 2, count - count / 2);
	}
	if (parts->count == 1)
		return seal_big_sample(o, parts, &request);
	half = *parts;
	half.count = parts->count / 2;
	err = seal_parts(o, &half, 1);
	half.samples += half.count;
	half.count = parts->count - half.count;
	return err ?: seal_parts(o, &half, 1);
}

/* ---- a window -------------------------------------------------------------------------------- */

static bool has_good_labels(const struct labeled_service *service)
{
	struct service_label labels[LABELS_MAX + 1] = {{"__name__", "process_cpu"}};
	size_t count = min_u64(service->label_count, LABELS_MAX);
	char why[128];

	for (size_t i = 0; i < count; i++)
		labels[1 + i] = service->labels[i];
	return validate_labels(labels, count + 1, why, sizeof(why));
}

/* Samples with ticks, or time: backends drop zeros. */
static int take_samples(struct otlp *o, const struct service_samples *samples, size_t service,
			bool wall)
{
	bool is_good = has_good_labels(&o->window->services[service]);
	size_t count, first = o->samples.count;
	const struct service_sample *of = service_samples__of(samples, service, &count);

	for (size_t i = 0; i < count; i++) {
		if (!is_good)
			o->sealed->samples_invalid += wall ? 0 : of[i].ticks;
		else if (value_of(wall, &of[i]) && vec_push(&o->samples, of[i]))
			return -ENOMEM;
	}
	o->sealed->series_invalid += !is_good;
	for (size_t i = first; i < o->samples.count; i += SAMPLES_MAX) {
		const struct part part = {
			.service = service,
			.wall = wall,
			.count = min_u64(o->samples.count - i, SAMPLES_MAX),
		};

		if (vec_push(&o->parts, part))
			return -ENOMEM;
	}
	return 0;
}

static int take_window(struct otlp *o)
{
	const struct agent_window *w = o->window;
	const struct service_sample *at;
	struct service_samples *samples;
	int err = service_samples__new(w, o->code.stacks, &samples);

	if (err)
		return err;
	for (size_t i = 0; i < w->service_count && !err; i++) {
		err = take_samples(o, samples, i, false);
		if (w->parked && !err)
			err = take_samples(o, samples, i, true);
	}
	service_samples__free(samples);
	at = o->samples.data; /* it grows no more */
	for (size_t i = 0; i < o->parts.count; i++) {
		o->parts.data[i].samples = at;
		at += o->parts.data[i].count;
	}
	return err;
}

static int encode(const struct agent_window *window, const struct sink_encoding_options *options,
		  struct sealed_window *sealed)
{
	struct otlp o = {.window = window, .options = options, .sealed = sealed};
	int err = part_times__new(window, &o.times) ?: merged_code__init(&o.code, window->profile);

	*sealed = sealed_window__of(window);
	if (!err) {
		o.order = code_order__new(window->profile, &o.code);
		err = o.order ? 0 : -ENOMEM;
	}
	if (!err)
		err = take_window(&o) ?: seal_parts(&o, o.parts.data, o.parts.count);
	part_times__free(o.times);
	code_order__free(o.order);
	merged_code__fini(&o.code);
	vec_free(&o.samples);
	vec_free(&o.parts);
	return err;
}

/* ---- answers --------------------------------------------------------------------------------- */

static int take_rejected(void *context, const struct wire *field)
{
	if (field->number == 1 && field->type == WIRE_VARINT)
		*(int64_t *)context = (int64_t)field->value;
	return 0;
}

static int check_partial(void *context, const struct wire *field)
{
	(void)context;
	return field->number == 1 && field->type == WIRE_BYTES ? 0 : -EBADMSG;
}

/* From partial_success, which is there even if all was taken. -1: another message. */
static int64_t rejected_profiles(const struct http_answer *a)
{
	static const uint32_t partial_success[] = {1};
	const struct wire answer = wire_of(a->body, a->size);
	int64_t rejected = 0;

	return wire_each(answer, NULL, 0, check_partial, NULL) ||
			       wire_each(answer, partial_success, 1, take_rejected, &rejected)
		       ? -1
		       : rejected;
}

/* Pyroscope answers nothing, others a message, or JSON to some proxies. */
static enum sink_verdict judge_200(const struct http_answer *a)
{
	int64_t rejected;

	if (!a->size)
		return SINK_ACCEPTED;
	if (answer__has_type(a, "application/json"))
		return answer__says(a, "rejectedProfiles") &&
				       !answer__says(a, "\"rejectedProfiles\":0") &&
				       !answer__says(a, "\"rejectedProfiles\":\"0\"")
			       ? SINK_REJECTED
			       : SINK_ACCEPTED;
	rejected = rejected_profiles(a);
	if (rejected < 0 || !answer__has_type(a, "application/x-protobuf"))
		return SINK_NOT_A_BACKEND;
	return rejected ? SINK_REJECTED : SINK_ACCEPTED;
}

static const struct answer_rule rules[] = {
	{400, "ingestion window", NULL, SINK_TOO_OLD},
	{400, "too large", NULL, SINK_TOO_BIG},
	{400, "exceeds limit", NULL, SINK_TOO_BIG},
	{},
};

/* Parca answers 200 with its page: it takes gRPC alone. Pyroscope answers the empty one 500. */
const struct sink_format otlp_format = {
	.name = "otlp",
	.encode = encode,
	.judge_200 = judge_200,
	.rules = rules,
	.empty = {"/v1development/profiles", "application/x-protobuf", ""},
};
