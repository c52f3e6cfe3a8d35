/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pprof: ours, those of Go's runtime, pprof-nodejs, gperftools, pprof-rs (via pprof), and others.
 *
 * Tables come in any order, and strings mostly at the end, so the file is walked four times:
 * tables; names of mappings; locations, which need both; samples, which need locations.
 *
 * There are no times: samples keep the order of the file and get made-up ones.
 *
 * Shares are of CPU time where a file has it. Its values are ticks if the period divides all of
 * them; its counts are, if they are in proportion to it, or if the file is ours; else CPU time is
 * what its samples count (profile.event). Without counts and such a period nothing says how many
 * samples there were (profile.uncounted): then ticks are CPU time in the largest unit that divides
 * all values. The file's default_sample_type goes before CPU time: if it is neither a count of
 * samples nor CPU time, it is the event that the samples are of. Other types are none, unless the
 * samples were taken by it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/minmax.h"
#include "base/parse.h"
#include "base/suffix.h"
#include "base/wire.h"
#include "formats/in/frames.h"
#include "formats/in/import.h"
#include "formats/in/name_pattern.h"
#include "formats/in/owners.h"

#define TAIL_MAX	  (1ULL << 61)
#define MESSAGE_MAX	  (16u << 20) /* bytes of one sample, location, … */
#define TYPES_MAX	  64
#define RECOGNIZED_FIELDS 8
#define PERIOD_MIN	  10000ULL	 /* ns: profilers have 100 kHz at most, … */
#define PERIOD_MAX	  10000000000ULL /* … and wait 10 s at most */
#define NONE		  UINT32_MAX

/* The meanings of labels' keys. */
enum label_kind {
	LABEL_OTHER,
	LABEL_PID,
	LABEL_TID,
	LABEL_THREAD,
	LABEL_PROCESS,
	LABEL_SERVICE, /* names the process where nothing else does */
	LABEL_COMM,
	LABEL_CGROUP,
	LABEL_GIL,
	LABEL_CONTEXT,
};

struct text {
	const uint8_t *bytes;
	size_t size;
	enum label_kind label; /* if it is a key of a label */
};

/* An element of a table with ids, until it is used. */
struct mapping {
	uint64_t id, start, limit, offset;
	struct dso_id dso;
	enum dso_kind kind;
	enum profile_category category;
};

struct location {
	uint64_t id;
	struct location_id location;
	bool is_idle;
	bool drops;	 /* what it calls … */
	bool is_dropped; /* … and itself */
};

DEFINE_MAP_BY(mappings, struct mapping, uint64_t, id);
DEFINE_MAP_BY(functions, struct pprof_function, uint64_t, id);
DEFINE_MAP_BY(locations, struct location, uint64_t, id);

struct pprof {
	const struct import_request *request;
	struct import_failure *failure;
	struct profile_builder *b;
	struct frames frames;
	struct process_id any; /* for code without a mapping: the first sample's process */
	struct wire first;     /* that sample */
	VEC(struct text) strings;
	VEC(struct pprof_value_type) types;
	struct mappings mappings;
	struct functions functions;
	struct locations locations;
	struct owners owners;
	/* scratch: of a location, of a sample */
	VEC(struct pprof_line) lines;
	VEC(struct profile_line) named_lines;
	numbers path, values;
	struct pprof_value_type period_type;
	int64_t period, time, duration, default_type;
	int64_t drop_frames, keep_frames; /* strings */
	VEC(bool) dropped;		  /* by number of the function; empty: none is */
	uint32_t count_index, cpu_index;  /* of the values; NONE */
	uint32_t event_index; /* what samples of an event that is no clock count; NONE */
	uint64_t unit;	      /* ns of the value at cpu_index */
	uint64_t period_ns;   /* of CPU time; 0: none that is plausible */
	bool ours;	      /* its comments say so */
	enum ticks {
		TICKS_ARE_COUNTS,
		TICKS_ARE_PERIODS,
		TICKS_ARE_CPU_TIME, /* uncounted, in units of tick_cpu */
		TICKS_ARE_WEIGHTS,  /* uncounted, of a file with weights alone */
	} ticks;
	uint64_t tick_cpu;
	bool by_counts; /* as its default_sample_type says */
	bool by_cpu;	/* CPU time is what samples count */
	struct {
		uint64_t divisor;	     /* greatest common one of all CPU times */
		uint64_t count, cpu;	     /* of the first sample with both */
		bool counts;		     /* some are not 0 */
		bool in_proportion, all_cpu; /* counts; no count without CPU time */
	} seen;
};

static int fail_at(const struct pprof *p, const uint8_t *at, int error, const char *what,
		   uint64_t number)
{
	return import_fail(p->failure, (uint64_t)(at - p->request->bytes), error, what,
			   (unsigned long long)number);
}

/* ---- words, ours and those of others --------------------------------------------------------- */

static bool is_word(const uint8_t *bytes, size_t size, const char *word)
{
	return strlen(word) == size && !memcmp(word, bytes, size);
}

static enum label_kind label_kind(const uint8_t *bytes, size_t size)
{
	static const struct {
		const char *key;
		enum label_kind kind;
	} keys[] = {
		{"pid", LABEL_PID},
		{"process_id", LABEL_PID},
		{"process id", LABEL_PID},
		{"tid", LABEL_TID},
		{"thread_id", LABEL_TID},
		{"thread id", LABEL_TID},
		{"os thread id", LABEL_TID},
		{"thread", LABEL_THREAD},
		{"thread_name", LABEL_THREAD},
		{"thread.name", LABEL_THREAD},
		{"thread name", LABEL_THREAD},
		{"process", LABEL_PROCESS},
		{"process_name", LABEL_PROCESS},
		{"process name", LABEL_PROCESS},
		{"service_name", LABEL_SERVICE},
		{"comm", LABEL_COMM},
		{"cgroup", LABEL_CGROUP},
		{"gil", LABEL_GIL},
		{"context", LABEL_CONTEXT},
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (is_word(bytes, size, keys[i].key))
			return keys[i].kind;
	return LABEL_OTHER;
}

/* "held", …: as the exporter writes it. */
static enum gil_state gil_state_of(const uint8_t *bytes, size_t size)
{
	for (int state = GIL_UNKNOWN + 1; state < GIL_STATE_COUNT; state++)
		if (is_word(bytes, size, gil_state_name(state)))
			return state;
	return GIL_UNKNOWN;
}

static enum sample_context sample_context_of(const uint8_t *bytes, size_t size)
{
	for (int context = CONTEXT_NONE + 1; context < CONTEXT_COUNT; context++)
		if (is_word(bytes, size, sample_context_name(context)))
			return context;
	return CONTEXT_NONE;
}

/* Nanoseconds of a unit of time; 0: it is none. */
static uint64_t unit_ns(const uint8_t *bytes, size_t size)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{"nanoseconds", 1}, {"nanosecond", 1},
		{"ns", 1},	    {"microseconds", 1000},
		{"us", 1000},	    {"milliseconds", 1000000},
		{"ms", 1000000},    {"seconds", 1000000000},
		{"s", 1000000000},
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (is_word(bytes, size, units[i].name))
			return units[i].ns;
	return 0;
}

/* ---- the message ----------------------------------------------------------------------------- */

/* Of fields from 1 on, as in wire_has_type(). */
#define PROFILE_TYPES	 "bbbbbbvvvvbv*vv"
#define VALUE_TYPE_TYPES "vv"
#define SAMPLE_TYPES	 "**b"
#define LABEL_TYPES	 "vvvv"
#define MAPPING_TYPES	 "vvvvvvvvvv"
#define LOCATION_TYPES	 "vvvbv"
#define LINE_TYPES	 "vvv"
#define FUNCTION_TYPES	 "vvvvv"
#define NUMBERS_MAX	 10 /* of a message */

static bool fits(const struct wire *w)
{
	return w->number < sizeof(PROFILE_TYPES) && wire_has_type(w, PROFILE_TYPES);
}

static bool recognizes_pprof(const uint8_t *bytes, size_t size)
{
	struct wire w = wire_of(bytes, size);
	unsigned int fields = 0;
	bool has_table = false; /* letters are numbers of other fields: "xxxxxx" has three */
	int more = 1;

	while (fields < RECOGNIZED_FIELDS && (more = wire_next(&w)) > 0) {
		if (!fits(&w))
			return false;
		has_table |= w.number <= PPROF_STRING_TABLE;
		fields++;
	}
	return has_table && (fields >= 3 || !more);
}

/* A field that a walk takes: a message whose fields have these types, or (NULL) any content. */
struct wanted_field {
	uint32_t number;
	const char *types;
	int (*take)(struct pprof *p, const struct wire *w, const void *message);
};

static int refuse_message(const struct pprof *p, const struct wire *w, int err)
{
	return err == -EBADMSG
		       ? fail_at(p, w->bytes, err, "a message in field %llu is damaged", w->number)
		       : err;
}

static int read_numbers(const struct pprof *p, const struct wire *w, const char *types, void *to,
			size_t size)
{
	return refuse_message(p, w, wire_numbers(wire_inside(w), types, to, size) ? 0 : -EBADMSG);
}

static int take_field(struct pprof *p, const struct wire *w, const struct wanted_field *wanted)
{
	uint64_t message[NUMBERS_MAX];
	int err = wanted->types ? read_numbers(p, w, wanted->types, message, sizeof(message)) : 0;

	return err ?: wanted->take(p, w, message);
}

/* Pass the fields of the profile to the rows of `wanted`, which ends with a row of zeros. */
static int each_field(struct pprof *p, const struct wanted_field *wanted)
{
	const struct import_request *r = p->request;
	struct wire w = wire_of(r->bytes, r->size);
	int more;

	while ((more = wire_next(&w)) > 0) {
		const struct wanted_field *row = wanted;
		int err;

		if (w.type == WIRE_BYTES && w.size > MESSAGE_MAX)
			return fail_at(p, w.bytes, -E2BIG, "a message of %llu bytes", w.size);
		if (w.number <= PPROF_PERIOD && !fits(&w))
			return fail_at(p, w.bytes, -EBADMSG, "field %llu has the wrong type",
				       w.number);
		while (row->number && row->number != w.number)
			row++;
		err = row->number ? take_field(p, &w, row) : 0;
		if (err)
			return err;
	}
	return more < 0 ? fail_at(p, w.at, -EBADMSG, "the message is damaged or cut off", 0) : 0;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* An element was added; its id must be new and not 0. */
static int check_id(const struct pprof *p, const struct wire *w, uint64_t id, const void *added,
		    bool is_new)
{
	if (!id)
		return fail_at(p, w->bytes, -EBADMSG, "an id is 0 in field %llu", w->number);
	if (!added)
		return -ENOMEM;
	return is_new ? 0 : fail_at(p, w->bytes, -EBADMSG, "the id %llu is there twice", id);
}

/* Strings may come later: its name is looked up then. */
static int add_mapping(struct pprof *p, const struct wire *w, const void *message)
{
	const struct pprof_mapping *m = message;
	const struct mapping mapping = {
		.id = m->id,
		.start = m->start,
		.limit = m->limit,
		.offset = m->offset,
	};
	bool is_new = false;
	const struct mapping *added = mappings__need(&p->mappings, &mapping, &is_new);

	return check_id(p, w, mapping.id, added, is_new);
}

static int add_function(struct pprof *p, const struct wire *w, const void *message)
{
	struct pprof_function function = *(const struct pprof_function *)message;
	bool is_new = false;
	const struct pprof_function *added;

	function.name = function.name ?: function.system_name;
	added = functions__need(&p->functions, &function, &is_new);
	return check_id(p, w, function.id, added, is_new);
}

static int set_period_type(struct pprof *p, const struct wire *w, const void *message)
{
	(void)w;
	p->period_type = *(const struct pprof_value_type *)message;
	return 0;
}

static int add_type(struct pprof *p, const struct wire *w, const void *message)
{
	if (p->types.count == TYPES_MAX)
		return fail_at(p, w->bytes, -E2BIG, "more than %llu sample types", TYPES_MAX);
	return vec_push(&p->types, *(const struct pprof_value_type *)message);
}

static int add_string(struct pprof *p, const struct wire *w, const void *message)
{
	(void)message;
	return vec_push(&p->strings,
			(struct text){w->bytes, w->size, label_kind(w->bytes, w->size)});
}

static int note_number(struct pprof *p, const struct wire *w, const void *message)
{
	(void)message;
	*(w->number == PPROF_PERIOD		   ? &p->period
	  : w->number == PPROF_DURATION_NANOS	   ? &p->duration
	  : w->number == PPROF_DEFAULT_SAMPLE_TYPE ? &p->default_type
	  : w->number == PPROF_DROP_FRAMES	   ? &p->drop_frames
	  : w->number == PPROF_KEEP_FRAMES	   ? &p->keep_frames
						   : &p->time) = (int64_t)w->value;
	return 0;
}

static int note_first_sample(struct pprof *p, const struct wire *w, const void *message)
{
	(void)message;
	p->first = p->first.bytes ? p->first : *w;
	return 0;
}

/* ---- strings --------------------------------------------------------------------------------- */

static int copy_string(const struct pprof *p, int64_t index, char **copy)
{
	if (index < 0 || (uint64_t)index >= (p->strings.count ? p->strings.count : 1))
		return import_fail(p->failure, 0, -EBADMSG,
				   "there is no string %lld in a table of %zu", (long long)index,
				   p->strings.count);
	*copy = p->strings.count ? strndup((const char *)p->strings.data[index].bytes,
					   p->strings.data[index].size)
				 : strdup("");
	return *copy ? 0 : -ENOMEM;
}

static int intern(struct pprof *p, int64_t index, struct string_id *id)
{
	_cleanup_free_ char *copy = NULL;
	int err = copy_string(p, index, &copy);

	if (!err)
		*id = profile_builder__string(p->b, copy);
	return err;
}

static bool string_is(const struct pprof *p, int64_t index, const char *text)
{
	return index > 0 && (uint64_t)index < p->strings.count &&
	       p->strings.data[index].size == strlen(text) &&
	       !memcmp(p->strings.data[index].bytes, text, strlen(text));
}

/* ---- what the values are --------------------------------------------------------------------- */

/* Nanoseconds of a unit of time; 0: none. */
static uint64_t unit_of(const struct pprof *p, int64_t unit)
{
	const struct text *text = unit > 0 && (uint64_t)unit < p->strings.count
					  ? &p->strings.data[unit]
					  : NULL;

	return text ? unit_ns(text->bytes, text->size) : 0;
}

static int refuse_types(const struct pprof *p)
{
	char names[160] = "";
	size_t used = 0;

	for (size_t i = 0; i < p->types.count && used < sizeof(names); i++) {
		_cleanup_free_ char *type = NULL, *unit = NULL;
		int err = copy_string(p, p->types.data[i].type, &type)
				  ?: copy_string(p, p->types.data[i].unit, &unit);

		if (err)
			return err;
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s/%s",
					 i ? ", " : "", type, unit);
	}
	return import_fail(p->failure, 0, -EPROTONOSUPPORT,
			   "it has no CPU samples (cpu/nanoseconds, samples/count), but %s",
			   *names ? names : "nothing");
}

static bool type_is_any(const struct pprof *p, int64_t type, const char *const *names)
{
	while (*names && !string_is(p, type, *names))
		names++;
	return *names;
}

/* Of perf_data_converter: "cycles_sample" beside "cycles_event", which is the event cycles. */
#define COUNT_SUFFIX "_sample"
#define EVENT_SUFFIX "_event"

/* The size of a string without the suffix; 0: it does not end in it. */
static size_t size_before(const struct pprof *p, int64_t index, const char *suffix)
{
	size_t size = strlen(suffix);
	const struct text *text = index > 0 && (uint64_t)index < p->strings.count
					  ? &p->strings.data[index]
					  : NULL;

	if (!text || text->size <= size || memcmp(text->bytes + text->size - size, suffix, size))
		return 0;
	return text->size - size;
}

/* The types of values that are looked for, in order of preference. */
struct value_types {
	const char *const *counts, *const *cpu_times, *const *walls, *const *events;
};

static const struct value_types value_types = {
	/* "sample" and "wall" are pprof-nodejs's, whose samples of an idle loop are (idle); names
	 * with a hyphen are Datadog's */
	.counts = (const char *const[]){"samples", "sample", "cpu-samples", NULL},
	.cpu_times = (const char *const[]){"cpu", "cpu-time", NULL},
	.walls = (const char *const[]){"wall", "wall-time", NULL},
	/* what a CPU does, as perf calls it: samples beside them are of these */
	.events = (const char *const[]){"cycles", "cpu-cycles", "ref-cycles", "bus-cycles",
					"instructions", "branches", "branch-instructions",
					"branch-misses", "cache-references", "cache-misses",
					"stalled-cycles-frontend", "stalled-cycles-backend", NULL},
};

static bool is_count(const struct pprof *p, const struct pprof_value_type *t)
{
	return string_is(p, t->unit, "count");
}

static bool is_sample_count(const struct pprof *p, const struct pprof_value_type *t)
{
	return is_count(p, t) && (type_is_any(p, t->type, value_types.counts) ||
				  size_before(p, t->type, COUNT_SUFFIX));
}

static bool is_cpu_time(const struct pprof *p, const struct pprof_value_type *t)
{
	return unit_of(p, t->unit) && type_is_any(p, t->type, value_types.cpu_times);
}

/* "cycles_event" beside "cycles_sample". */
static bool is_pair(const struct pprof *p, uint32_t count, uint32_t event)
{
	size_t size = size_before(p, p->types.data[event].type, EVENT_SUFFIX);

	return size && size == size_before(p, p->types.data[count].type, COUNT_SUFFIX) &&
	       !memcmp(p->strings.data[p->types.data[event].type].bytes,
		       p->strings.data[p->types.data[count].type].bytes, size);
}

/* The samples were taken by it; other counts beside them are of allocations, locks, … */
static bool is_event(const struct pprof *p, uint32_t i)
{
	const struct pprof_value_type *t = &p->types.data[i];

	return i != p->count_index && is_count(p, t) &&
	       (is_pair(p, p->count_index, i) || (t->type && t->type == p->period_type.type) ||
		type_is_any(p, t->type, value_types.events));
}

static void find_values(struct pprof *p)
{
	uint32_t wall = NONE;

	p->count_index = p->cpu_index = p->event_index = NONE;
	for (uint32_t i = 0; i < p->types.count; i++) {
		const struct pprof_value_type *t = &p->types.data[i];
		bool is_time = unit_of(p, t->unit);

		if (p->count_index == NONE && is_sample_count(p, t))
			p->count_index = i;
		if (p->cpu_index == NONE && is_cpu_time(p, t))
			p->cpu_index = i;
		if (is_time && type_is_any(p, t->type, value_types.walls))
			wall = i;
	}
	if (p->count_index == NONE)
		return;
	if (p->cpu_index == NONE)
		p->cpu_index = wall;
	for (uint32_t i = 0; i < p->types.count && p->event_index == NONE; i++)
		if (is_event(p, i))
			p->event_index = i;
}

/* The count that belongs to an event of perf_data_converter. */
static void choose_pair(struct pprof *p)
{
	for (uint32_t i = 0; i < p->types.count; i++)
		if (is_count(p, &p->types.data[i]) && is_pair(p, i, p->event_index))
			p->count_index = i;
}

/* The type that the file's own tool shows first. */
static void apply_default(struct pprof *p)
{
	const struct pprof_value_type *t;
	uint32_t i = 0;

	while (i < p->types.count && p->types.data[i].type != p->default_type)
		i++;
	if (p->default_type <= 0 || i == p->types.count || p->count_index == NONE)
		return;
	t = &p->types.data[i];
	p->event_index = NONE;
	p->by_counts = is_sample_count(p, t);
	if (p->by_counts) {
		p->count_index = i;
	} else if (is_cpu_time(p, t)) {
		p->cpu_index = i;
	} else if (i != p->cpu_index) {
		p->event_index = i;
		choose_pair(p);
	}
}

/* A file of one type that is neither: counts of Julia and async-profiler, and our own weights. */
static void choose_only(struct pprof *p)
{
	const struct pprof_value_type *t = p->types.data;

	if (p->types.count != 1 || p->count_index != NONE || p->cpu_index != NONE)
		return;
	if (is_count(p, t) &&
	    (string_is(p, t->type, "events") || type_is_any(p, t->type, value_types.cpu_times)))
		p->count_index = 0;
	if (!string_is(p, t->type, PPROF_WEIGHT))
		return;
	p->count_index = 0;
	p->ticks = TICKS_ARE_WEIGHTS;
}

static uint64_t plausible_period(const struct pprof *p)
{
	uint64_t ns = saturating_multiply_u64(p->period > 0 ? (uint64_t)p->period : 0,
					      unit_of(p, p->period_type.unit));

	return ns >= PERIOD_MIN && ns <= PERIOD_MAX ? ns : 0;
}

static int choose_values(struct pprof *p)
{
	find_values(p);
	apply_default(p);
	choose_only(p);
	if (p->count_index == NONE || p->event_index == p->count_index)
		p->event_index = NONE;
	if (p->count_index == NONE && p->cpu_index == NONE)
		return refuse_types(p);
	p->period_ns = plausible_period(p);
	if (p->cpu_index != NONE)
		p->unit = unit_of(p, p->types.data[p->cpu_index].unit);
	return 0;
}

/* ---- what is a tick -------------------------------------------------------------------------- */

/* Our own files: by the product, or by a text for profiles of other tools. */
static int read_comments(struct pprof *p)
{
	numbers comments = {};
	int err = wire_repeated(wire_of(p->request->bytes, p->request->size), PPROF_COMMENT,
				&comments);

	for (size_t i = 0; i < comments.count && !err; i++) {
		const struct text *text = comments.data[i] < p->strings.count
						  ? &p->strings.data[comments.data[i]]
						  : NULL;

		p->ours |= text && ((text->size > 8 && !memcmp(text->bytes, "sysprof ", 8)) ||
				    is_word(text->bytes, text->size, PPROF_COMMENT_OF_SAMPLES));
	}
	vec_free(&comments);
	return err == -EBADMSG ? 0 : err; /* then it has none */
}

static int read_sample(struct pprof *p, const struct wire *w);

/* Those of a sample. */
struct values {
	uint64_t count;
	uint64_t cpu; /* ns */
	uint64_t event;
};

static int64_t value_at(const struct pprof *p, uint32_t index)
{
	return index != NONE ? (int64_t)p->values.data[index] : 0;
}

static int read_values(struct pprof *p, const struct wire *w, struct values *values)
{
	int64_t count, cpu, event;
	int err = read_sample(p, w);

	if (err)
		return err;
	if (p->values.count != p->types.count)
		return fail_at(p, w->bytes, -EBADMSG,
			       "a sample has %llu values, expected one of each type",
			       p->values.count);
	count = value_at(p, p->count_index);
	cpu = value_at(p, p->cpu_index);
	event = value_at(p, p->event_index);
	if (count < 0 || cpu < 0 || event < 0)
		return fail_at(p, w->bytes, -EBADMSG,
			       "a value is negative: it is the difference of two profiles", 0);
	*values = (struct values){
		.count = (uint64_t)count,
		.cpu = min_u64(saturating_multiply_u64((uint64_t)cpu, p->unit), TAIL_MAX),
		.event = (uint64_t)event,
	};
	return 0;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static int measure_sample(struct pprof *p, const struct wire *w, const void *message)
{
	struct values v;
	int err = read_values(p, w, &v);

	(void)message;
	if (err || (!v.count && !v.cpu))
		return err;
	p->seen.counts |= v.count > 0;
	p->seen.divisor = common_divisor(v.cpu, p->seen.divisor);
	p->seen.all_cpu &= v.cpu > 0;
	if (!p->seen.count && v.count && v.cpu) {
		p->seen.count = v.count;
		p->seen.cpu = v.cpu;
	}
	p->seen.in_proportion &= v.count && v.cpu &&
				 (unsigned __int128)v.count * p->seen.cpu ==
					 (unsigned __int128)v.cpu * p->seen.count;
	return 0;
}

/* The counts are ticks; a period that is not plausible is what a tick has of CPU time. */
static void believe_counts(struct pprof *p)
{
	uint64_t each = p->seen.count ? p->seen.cpu / p->seen.count : 0;

	if (!p->period_ns && p->event_index == NONE && p->seen.in_proportion &&
	    each >= PERIOD_MIN && each <= PERIOD_MAX)
		p->period_ns = each;
}

static int measure(struct pprof *p)
{
	static const struct wanted_field samples[] = {{PPROF_SAMPLE, SAMPLE_TYPES, measure_sample},
						      {}};
	bool counted;
	int err;

	p->seen.in_proportion = p->seen.all_cpu = true;
	if (p->cpu_index == NONE || p->ticks == TICKS_ARE_WEIGHTS)
		return 0;
	err = each_field(p, samples);
	if (err)
		return err;
	counted = p->count_index != NONE && (p->seen.counts || !p->seen.divisor || p->ours ||
					     p->by_counts || p->event_index != NONE);
	if (counted && (p->ours || p->by_counts || p->event_index != NONE || !p->seen.divisor ||
			p->seen.in_proportion)) {
		believe_counts(p);
	} else if (p->period_ns && p->seen.divisor && !(p->seen.divisor % p->period_ns) &&
		   (!counted || p->seen.all_cpu)) {
		p->ticks = TICKS_ARE_PERIODS;
	} else if (p->ours &&
		   p->period_ns) { /* what Parca gets: the last period is a part of one */
		p->ticks = TICKS_ARE_PERIODS;
	} else if (counted) {
		p->by_cpu = true;
	} else {
		p->ticks = TICKS_ARE_CPU_TIME;
		p->tick_cpu = max_u64(p->seen.divisor, 1);
	}
	return 0;
}

/* ---- frames that are dropped ----------------------------------------------------------------- */

/* Steps of comparing names with patterns: some seconds. */
#define STEPS_MAX (1ULL << 30)

static const struct text *string_of(const struct pprof *p, int64_t index)
{
	return index > 0 && (uint64_t)index < p->strings.count ? &p->strings.data[index] : NULL;
}

/* NULL: there is none, or it cannot be applied, which is counted. */
static int compile(struct pprof *p, int64_t index, struct name_pattern **pattern)
{
	const struct text *text = string_of(p, index);
	int err = text && text->size
			  ? name_pattern__new((const char *)text->bytes, text->size, pattern)
			  : 0;

	p->frames.left_out[LEFT_OUT_PATTERNS] += err == -EINVAL;
	return err == -EINVAL ? 0 : err;
}

/* Parentheses that are part of a name, at this place: their size, with what is before them; or 0. */
static size_t named_parentheses(const struct text *name, size_t at)
{
	static const char *const kept[] = {"(anonymous namespace)", "operator()"};

	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		if (name->size - at >= strlen(kept[i]) &&
		    !memcmp(name->bytes + at, kept[i], strlen(kept[i])))
			return strlen(kept[i]);
	return 0;
}

/* What patterns are compared with: without arguments, as by pprof itself. */
static struct text without_arguments(struct text name)
{
	size_t at = 0, step;

	if (name.size && *name.bytes == '.') {
		name.bytes++;
		name.size--;
	}
	for (; at < name.size; at += step) {
		step = named_parentheses(&name, at);
		if (!step && name.bytes[at] == '(')
			break;
		step = step ? step : 1;
	}
	name.size = at;
	return name;
}

static int find_dropped(struct pprof *p)
{
	struct name_pattern *drop = NULL, *keep = NULL;
	uint64_t steps = 0;
	int err = compile(p, p->drop_frames, &drop) ?: compile(p, p->keep_frames, &keep);

	for (size_t i = 0; i < p->functions.count && drop && !err && steps < STEPS_MAX; i++) {
		const struct text *text = string_of(p, p->functions.data[i].name);
		struct text name = text ? without_arguments(*text) : (struct text){};
		const char *bytes = (const char *)name.bytes;

		err = vec_push(
			&p->dropped,
			name.size && name_pattern__matches(drop, bytes, name.size, &steps) &&
				!(keep && name_pattern__matches(keep, bytes, name.size, &steps)));
	}
	p->frames.left_out[LEFT_OUT_PATTERNS] += steps >= STEPS_MAX;
	name_pattern__free(drop);
	name_pattern__free(keep);
	return err;
}

static bool is_dropped(const struct pprof *p, const struct pprof_line *line)
{
	const struct pprof_function *f = functions__find(&p->functions, line->function);
	size_t number = f ? (size_t)(f - p->functions.data) : 0;

	return f && number < p->dropped.count && p->dropped.data[number];
}

/* The lines of a location that stay are behind those that it drops, the outermost of which counts. */
static void drop_lines(struct pprof *p, struct location *location)
{
	size_t dropped = p->dropped.count ? p->lines.count : 0;

	while (dropped && !is_dropped(p, &p->lines.data[dropped - 1]))
		dropped--;
	location->drops = dropped > 0;
	location->is_dropped = dropped && dropped == p->lines.count;
	if (!dropped || location->is_dropped)
		return;
	p->lines.count -= dropped;
	memmove(p->lines.data, p->lines.data + dropped, p->lines.count * sizeof(*p->lines.data));
}

/* ---- mappings and locations ------------------------------------------------------------------ */

/* After all tables were read. */
static int name_mapping(struct pprof *p, const struct wire *w, const void *message)
{
	const struct pprof_mapping *m = message;
	struct mapping *mapping = mappings__find(&p->mappings, m->id);
	_cleanup_free_ char *path = NULL, *build_id = NULL;
	struct profile_dso dso = {.file_state = FILE_STATE_UNOPENED,
				  .symbol_state = SYMBOL_STATE_RESOLVED};
	const char *name;
	int err = copy_string(p, m->filename, &path) ?: copy_string(p, m->build_id, &build_id);

	(void)w;
	if (err)
		return err;
	mapping->kind = frames__mapping_kind(path, &mapping->category);
	name = strrchr(path, '/');
	name = name && name[1] ? name + 1 : path;
	dso.kind = mapping->kind;
	dso.is_interpreted = mapping->kind == DSO_RUNTIME;
	dso.path = profile_builder__string(p->b, path);
	dso.name = profile_builder__string(p->b, name);
	dso.is_library = is_library_path(name);
	/* Go has ids that are no digits */
	dso.build_id_size = (uint8_t)parse_hex_bytes(build_id, dso.build_id, sizeof(dso.build_id));
	mapping->dso = profile_builder__dso(p->b, &dso);
	return mapping->dso.v ? 0 : -ENOMEM;
}

static uint32_t clamp_line(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

static const struct pprof_function *find_function(const struct pprof *p, const struct pprof_line *l)
{
	return functions__find(&p->functions, l->function);
}

/* A function of a file without a name is called by the file, as in pprof. 0 or -ENOMEM. */
static int name_by_file(const struct pprof *p, struct dso_id dso, char **name)
{
	const char *file = profile_builder__get_string(p->b,
						       profile_builder__get_dso(p->b, dso)->name);

	if (**name || !*file)
		return 0;
	free(*name);
	return asprintf(name, "[%s]", file) < 0 ? (*name = NULL, -ENOMEM) : 0;
}

static int add_line(struct pprof *p, const struct wire *w, const struct pprof_line *l,
		    struct dso_id dso)
{
	const struct pprof_function *f = find_function(p, l);
	_cleanup_free_ char *name = NULL, *file = NULL;
	struct profile_line line = {.line = clamp_line(l->line), .column = clamp_line(l->column)};
	struct string_id site;
	int err;

	if (!f)
		return fail_at(p, w->bytes, -EBADMSG, "there is no function %llu", l->function);
	err = copy_string(p, f->name, &name)
		      ?: copy_string(p, f->filename, &file)
		      ?: name_by_file(p, dso, &name);
	if (err)
		return err;
	site = frames__file(&p->frames, file);
	line.function = frames__function(&p->frames, name, dso, site, clamp_line(f->start_line), 0);
	line.file = (struct string_id){line.line ? site.v : 0};
	return line.function.v ? vec_push(&p->named_lines, line) : -ENOMEM;
}

/* JIT code has no mapping; without mapping, address and file it is the engine itself. */
static void set_unmapped(struct pprof *p, struct frame *frame, const struct pprof_location *l)
{
	bool has_file = false;

	for (size_t i = 0; i < p->lines.count; i++) {
		const struct pprof_function *f = find_function(p, &p->lines.data[i]);

		has_file |= f && f->filename != 0;
	}
	frame->category = has_file || l->address ? CATEGORY_JIT : CATEGORY_OTHER;
	frame->dso = frames__dso(&p->frames,
				 frame->category == CATEGORY_JIT ? DSO_JIT : DSO_UNKNOWN, "", 0);
}

static int set_frame(struct pprof *p, const struct wire *w, const struct pprof_location *l,
		     struct frame *frame)
{
	const struct mapping *m;

	*frame = (struct frame){
		.process = p->any, .address = l->address, .elf_address = PROFILE_UNKNOWN_ADDRESS};
	if (!l->mapping) {
		set_unmapped(p, frame, l);
		return 0;
	}
	m = mappings__find(&p->mappings, l->mapping);
	if (!m)
		return fail_at(p, w->bytes, -EBADMSG, "there is no mapping %llu", l->mapping);
	frame->dso = m->dso;
	frame->category = m->category;
	if (m->kind == DSO_FILE && l->address >= m->start && l->address < m->limit)
		frame->address = l->address - m->start + m->offset;
	if (m->kind != DSO_JIT)
		frame->process = (struct process_id){0};
	return 0;
}

static bool is_idle(const struct pprof *p)
{
	const struct pprof_function *f = p->lines.count == 1 ? find_function(p, p->lines.data)
							     : NULL;

	return f && !f->filename && string_is(p, f->name, "(idle)");
}

static int read_lines(struct pprof *p, const struct wire *location)
{
	struct wire w = wire_inside(location);
	struct pprof_line line;
	int err = 0;

	p->lines.count = p->named_lines.count = 0;
	while (!err && wire_next(&w) > 0)
		if (w.number == PPROF_LINE)
			err = read_numbers(p, &w, LINE_TYPES, &line, sizeof(line))
				      ?: vec_push(&p->lines, line);
	return err;
}

static int add_location(struct pprof *p, const struct wire *w, const void *message)
{
	const struct pprof_location *l = message;
	struct location wanted = {.id = l->id}, *location;
	bool is_new = false;
	struct frame frame;
	int err = read_lines(p, w);

	if (err)
		return err;
	wanted.is_idle = is_idle(p);
	drop_lines(p, &wanted);
	location = locations__need(&p->locations, &wanted, &is_new);
	err = check_id(p, w, l->id, location, is_new) ?: set_frame(p, w, l, &frame);
	if (!err && p->lines.count > FRAME_LINES_MAX)
		err = fail_at(p, w->bytes, -E2BIG, "a location of %llu lines", p->lines.count);
	for (size_t i = 0; i < p->lines.count && !err; i++)
		err = add_line(p, w, &p->lines.data[i], frame.dso);
	if (err)
		return err;
	location->location = frames__location(&p->frames, &frame, p->named_lines.data,
					      (uint32_t)p->named_lines.count);
	return location->location.v ? 0 : -ENOMEM;
}

/* ---- owners of samples ----------------------------------------------------------------------- */

/* A number, or digits as a string. */
static uint32_t label_number(const struct pprof *p, const struct pprof_label *l)
{
	uint64_t number = 0;

	if (!l->text)
		return l->number > 0 && l->number <= UINT32_MAX ? (uint32_t)l->number : 0;
	for (size_t i = 0; (uint64_t)l->text < p->strings.count &&
			   i < p->strings.data[l->text].size && number <= UINT32_MAX;
	     i++) {
		uint8_t digit = p->strings.data[l->text].bytes[i];

		if (digit < '0' || digit > '9')
			return 0;
		number = number * 10 + digit - '0';
	}
	return number <= UINT32_MAX ? (uint32_t)number : 0;
}

static enum gil_state label_gil(const struct pprof *p, const struct pprof_label *l)
{
	return (uint64_t)l->text < p->strings.count
		       ? gil_state_of(p->strings.data[l->text].bytes, p->strings.data[l->text].size)
		       : GIL_UNKNOWN;
}

static enum sample_context label_context(const struct pprof *p, const struct pprof_label *l)
{
	return (uint64_t)l->text < p->strings.count
		       ? sample_context_of(p->strings.data[l->text].bytes,
					   p->strings.data[l->text].size)
		       : CONTEXT_NONE;
}

/* The labels of a sample. */
struct labels {
	struct sample_owner owner;
	struct string_id comm, service;
	enum gil_state gil;
	enum sample_context context;
};

static int take_label(struct pprof *p, const struct pprof_label *l, struct labels *to)
{
	bool known = l->key > 0 && (uint64_t)l->key < p->strings.count && l->text >= 0;

	switch (known ? p->strings.data[l->key].label : LABEL_OTHER) {
	case LABEL_PID:
		to->owner.pid = label_number(p, l);
		return 0;
	case LABEL_TID:
		to->owner.tid = label_number(p, l);
		return 0;
	case LABEL_THREAD:
		return intern(p, l->text, &to->owner.thread);
	case LABEL_PROCESS:
		return intern(p, l->text, &to->owner.process);
	case LABEL_SERVICE:
		return intern(p, l->text, &to->service);
	case LABEL_COMM:
		return intern(p, l->text, &to->comm);
	case LABEL_CGROUP:
		return intern(p, l->text, &to->owner.cgroup);
	case LABEL_GIL:
		to->gil = label_gil(p, l);
		return 0;
	case LABEL_CONTEXT:
		to->context = label_context(p, l);
		return 0;
	case LABEL_OTHER:
		return 0;
	}
	return 0;
}

static int read_labels(struct pprof *p, const struct wire *sample, struct labels *to)
{
	struct wire w = wire_inside(sample);
	struct pprof_label label;
	int err = 0;

	*to = (struct labels){.gil = GIL_UNKNOWN};
	while (!err && wire_next(&w) > 0)
		if (w.number == PPROF_LABEL)
			err = read_numbers(p, &w, LABEL_TYPES, &label, sizeof(label))
				      ?: take_label(p, &label, to);
	if (!to->owner.process.v)
		to->owner.process = to->service;
	return err;
}

/* The program is the first mapping. */
static struct string_id program_name(const struct pprof *p)
{
	const struct profile_dso *dso = NULL;

	if (p->mappings.count && p->mappings.data[0].kind == DSO_FILE)
		dso = profile_builder__get_dso(p->b, p->mappings.data[0].dso);
	return dso && dso->name.v ? dso->name : profile_builder__string(p->b, p->request->name);
}

/* Code without a mapping needs a process before the samples are read. */
static int note_any_owner(struct pprof *p, const struct wire *w, const void *message)
{
	struct labels labels = {};

	(void)message;
	return (w ? read_labels(p, w, &labels) : 0)
		       ?: owners__process(&p->owners, &labels.owner, &p->any);
}

static int find_any_process(struct pprof *p)
{
	static const struct wanted_field sample = {PPROF_SAMPLE, SAMPLE_TYPES, note_any_owner};

	p->owners.program = program_name(p);
	return p->first.bytes ? take_field(p, &p->first, &sample) : note_any_owner(p, NULL, NULL);
}

/* ---- samples --------------------------------------------------------------------------------- */

static int read_sample(struct pprof *p, const struct wire *w)
{
	struct wire fields = wire_inside(w);

	p->values.count = p->path.count = 0;
	return refuse_message(p, w,
			      wire_repeated(fields, PPROF_VALUE, &p->values)
				      ?: wire_repeated(fields, PPROF_LOCATION_ID, &p->path));
}

static int take_values(struct pprof *p, const struct wire *w, struct profile_sample *row)
{
	struct values v;
	int err = read_values(p, w, &v);

	if (err)
		return err;
	row->weight = v.cpu;
	if (p->cpu_index == NONE && p->ticks == TICKS_ARE_COUNTS)
		row->weight = min_u64(saturating_multiply_u64(v.count, p->period_ns), TAIL_MAX);
	row->ticks = p->ticks == TICKS_ARE_PERIODS
			     ? max_u64((v.cpu + p->period_ns / 2) / p->period_ns, v.cpu > 0)
		     : p->ticks == TICKS_ARE_CPU_TIME ? v.cpu / p->tick_cpu
						      : v.count;
	row->exact = p->by_cpu || p->event_index != NONE;
	if (row->exact)
		row->events = p->by_cpu ? v.cpu : v.event;
	return 0;
}

static int make_stack(struct pprof *p, const struct wire *w, struct stack_id *stack, bool *idle)
{
	bool any = false, ends = false;

	*stack = (struct stack_id){0};
	if (p->path.count > IMPORT_DEPTH_MAX)
		return fail_at(p, w->bytes, -E2BIG, "a stack of %llu frames", p->path.count);
	for (size_t i = p->path.count; i-- > 0 && !ends;) {
		const struct location *l = locations__find(&p->locations, p->path.data[i]);

		if (!l)
			return fail_at(p, w->bytes, -EBADMSG, "there is no location %llu",
				       p->path.data[i]);
		/* a stack would be nothing else */
		ends = l->drops && any;
		any |= !l->drops;
		if (ends && l->is_dropped)
			break;
		*stack = profile_builder__stack(p->b, *stack, l->location);
		if (!stack->v)
			return -ENOMEM;
		*idle = l->is_idle;
	}
	return 0;
}

/* Samples of an idle thread are no CPU samples; a sample without a stack gets an unknown frame. */
static int add_sample(struct pprof *p, const struct wire *w, const void *message)
{
	struct profile_sample row = {.kind = SAMPLE_CPU, .end = STACK_END_ROOT};
	struct owner_thread *thread;
	struct labels labels;
	bool idle = false;
	int err = read_sample(p, w) ?: take_values(p, w, &row);

	(void)message;
	if (err || (!row.ticks && !row.weight && !row.events))
		return err;
	err = make_stack(p, w, &row.stack, &idle)
		?: read_labels(p, w, &labels)
		?: owners__thread(&p->owners, &labels.owner, labels.comm, &thread);
	if (err)
		return err;
	if (!row.ticks && !row.events) {
		/* CPU time that no sample was taken of; in our files in "[not sampled]" */
		thread->tail = min_u64(thread->tail + row.weight, TAIL_MAX);
		return 0;
	}
	if (!row.stack.v)
		row.stack = profile_builder__stack(p->b, row.stack,
						   frames__nowhere(&p->frames, p->any));
	row.kind = idle ? SAMPLE_IDLE : SAMPLE_CPU;
	row.gil = labels.gil;
	row.context = labels.context;
	row.comm = labels.comm.v	   ? labels.comm
		   : labels.owner.thread.v ? labels.owner.thread
					   : thread->name;
	row.time = IMPORT_MADE_UP_START + ++thread->rows;
	profile_builder__sample(p->b, thread->id, &row);
	return profile_builder__error(p->b);
}

static void set_session(const struct pprof *p)
{
	struct profile *session = profile_builder__session(p->b);

	session->start = session->end = IMPORT_MADE_UP_START;
	if (p->duration > 0)
		session->end += min_u64((uint64_t)p->duration, INT64_MAX / 4);
	session->start_realtime = p->time > 0 ? (uint64_t)p->time : 0;
	session->uncounted = p->ticks == TICKS_ARE_CPU_TIME || p->ticks == TICKS_ARE_WEIGHTS;
	session->tick_cpu = p->tick_cpu;
	session->period = session->uncounted || p->by_cpu ? 0 : p->period_ns;
	session->untimed = true;
	session->finished_symbols = true;
}

/* After the tables were read. */
static int set_event(struct pprof *p)
{
	struct profile *session = profile_builder__session(p->b);
	const struct pprof_value_type *type;
	_cleanup_free_ char *name = NULL;
	uint32_t index = p->by_cpu			 ? p->cpu_index
			 : p->ticks == TICKS_ARE_WEIGHTS ? p->count_index
							 : p->event_index;
	int err;

	if (index == NONE)
		return 0;
	type = &p->types.data[index];
	err = copy_string(p, type->type, &name) ?: intern(p, type->unit, &session->event_unit);
	if (err)
		return err;
	if (size_before(p, type->type, EVENT_SUFFIX))
		name[strlen(name) - strlen(EVENT_SUFFIX)] = '\0';
	session->event = profile_builder__string(p->b, p->by_cpu ? EVENT_CPU
						       : *name	 ? name
								 : "events");
	if (p->by_cpu || !session->event_unit.v)
		session->event_unit = profile_builder__string(p->b,
							      p->by_cpu ? EVENT_CPU_UNIT : "count");
	if (!p->by_cpu && p->period > 0 && p->period_type.type == type->type)
		session->event_period = (uint64_t)p->period;
	return 0;
}

static int read_all(struct pprof *p)
{
	static const struct wanted_field tables[] = {
		{PPROF_SAMPLE_TYPE, VALUE_TYPE_TYPES, add_type},
		{PPROF_SAMPLE, NULL, note_first_sample},
		{PPROF_MAPPING, MAPPING_TYPES, add_mapping},
		{PPROF_FUNCTION, FUNCTION_TYPES, add_function},
		{PPROF_STRING_TABLE, NULL, add_string},
		{PPROF_PERIOD_TYPE, VALUE_TYPE_TYPES, set_period_type},
		{PPROF_TIME_NANOS, NULL, note_number},
		{PPROF_DURATION_NANOS, NULL, note_number},
		{PPROF_PERIOD, NULL, note_number},
		{PPROF_DEFAULT_SAMPLE_TYPE, NULL, note_number},
		{PPROF_DROP_FRAMES, NULL, note_number},
		{PPROF_KEEP_FRAMES, NULL, note_number},
		{}};
	static const struct wanted_field names[] = {{PPROF_MAPPING, MAPPING_TYPES, name_mapping},
						    {}};
	static const struct wanted_field locations[] = {
		{PPROF_LOCATION, LOCATION_TYPES, add_location}, {}};
	static const struct wanted_field samples[] = {{PPROF_SAMPLE, SAMPLE_TYPES, add_sample}, {}};
	int err = each_field(p, tables)
		?: choose_values(p)
		?: read_comments(p)
		?: measure(p)
		?: set_event(p)
		?: find_dropped(p)
		?: each_field(p, names)
		?: find_any_process(p)
		?: each_field(p, locations)
		?: each_field(p, samples);

	for (size_t i = 0; i < p->owners.threads.count && !err; i++)
		profile_builder__thread_cpu_tail(p->b, p->owners.threads.data[i].id,
						 p->owners.threads.data[i].tail);
	return err;
}

static int read_pprof(const struct import_request *request, struct import_failure *failure)
{
	struct pprof p = {
		.request = request,
		.ours = request->is_own,
		.failure = failure,
		.b = request->builder,
		.frames = {.b = request->builder},
		.owners = {.b = request->builder, .start = IMPORT_MADE_UP_START},
	};
	int err;

	err = read_all(&p);
	set_session(&p);
	frames__fini(&p.frames);
	owners__fini(&p.owners);
	vec_free(&p.strings);
	vec_free(&p.types);
	mappings__fini(&p.mappings);
	functions__fini(&p.functions);
	locations__fini(&p.locations);
	vec_free(&p.lines);
	vec_free(&p.named_lines);
	vec_free(&p.dropped);
	vec_free(&p.path);
	vec_free(&p.values);
	return err;
}

const struct importer pprof_importer = {
	.name = "pprof",
	.description = "pprof: Go's runtime, pprof-nodejs, gperftools, sysprof",
	.recognizes = recognizes_pprof,
	.read = read_pprof,
};
