/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/in/pprof_values.h"

#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/minmax.h"

#define NS_PER_SECOND 1000000000ULL
#define PERIOD_MIN    10000ULL	     /* ns: profilers have 100 kHz at most, … */
#define PERIOD_MAX    10000000000ULL /* … and wait 10 s at most */

/* ---- types ----------------------------------------------------------------------------------- */

/*
 * Nanoseconds of a unit of time; 0: it is none. Spelled as in `go tool pprof`, which takes capitals
 * and plurals for the same (internal/measurement).
 */
static uint64_t unit_ns(const uint8_t *bytes, size_t size)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{"nanosecond", 1},
		{"ns", 1},
		{"microsecond", 1000},
		{"us", 1000},
		{"\u00b5", 1000},
		{"\u03bc", 1000},
		{"millisecond", 1000000},
		{"ms", 1000000},
		{"second", NS_PER_SECOND},
		{"sec", NS_PER_SECOND},
		{"s", NS_PER_SECOND},
		{"minute", 60 * NS_PER_SECOND},
		{"min", 60 * NS_PER_SECOND},
		{"hour", 3600 * NS_PER_SECOND},
		{"hr", 3600 * NS_PER_SECOND},
	};
	uint8_t name[16];

	if (size > sizeof(name))
		return 0;
	for (size_t i = 0; i < size; i++)
		name[i] = bytes[i] >= 'A' && bytes[i] <= 'Z' ? bytes[i] | 0x20 : bytes[i];
	size -= size > 2 && name[size - 1] == 's';
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (pprof_is_word(name, size, units[i].name))
			return units[i].ns;
	return 0;
}

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
		int err = pprof__copy_string(p, p->types.data[i].type, &type)
				  ?: pprof__copy_string(p, p->types.data[i].unit, &unit);

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
	while (*names && !pprof__string_is(p, type, *names))
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
	/* "sample" and "wall" are pprof-nodejs's, "time" is fgprof's; names with a hyphen are Datadog's */
	.counts = (const char *const[]){"samples", "sample", "cpu-samples", NULL},
	/* "itimer" and "ctimer" are the clocks of async-profiler */
	.cpu_times = (const char *const[]){"cpu", "cpu-time", "cpu_time", "process_cpu", "on_cpu",
					   "itimer", "ctimer", NULL},
	.walls = (const char *const[]){"wall", "wall-time", "wallclock", "time", NULL},
	/* what a CPU does, as perf calls it: samples beside them are of these */
	.events = (const char *const[]){"cycles", "cpu-cycles", "ref-cycles", "bus-cycles",
					"instructions", "branches", "branch-instructions",
					"branch-misses", "cache-references", "cache-misses",
					"stalled-cycles-frontend", "stalled-cycles-backend", NULL},
};

static bool is_count(const struct pprof *p, const struct pprof_value_type *t)
{
	return pprof__string_is(p, t->unit, "count");
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

/* By the clock, also while a thread waits. */
static bool is_wall_time(const struct pprof *p, const struct pprof_value_type *t)
{
	return unit_of(p, t->unit) && !type_is_any(p, t->type, value_types.cpu_times) &&
	       (type_is_any(p, t->type, value_types.walls) ||
		(t->type && t->type == p->period_type.type));
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
	uint32_t wall = NONE, other_time = NONE;

	p->count_index = p->cpu_index = p->event_index = NONE;
	for (uint32_t i = 0; i < p->types.count; i++) {
		const struct pprof_value_type *t = &p->types.data[i];
		if (p->count_index == NONE && is_sample_count(p, t))
			p->count_index = i;
		if (p->cpu_index == NONE && is_cpu_time(p, t))
			p->cpu_index = i;
		if (wall == NONE && is_wall_time(p, t))
			wall = i;
		if (unit_of(p, t->unit) && !is_cpu_time(p, t))
			other_time = i; /* pprof shows the last type first */
	}
	if (p->count_index == NONE && p->cpu_index == NONE && wall != NONE) {
		p->count_index = wall;
		p->ticks = TICKS_ARE_WEIGHTS;
	}
	if (p->count_index == NONE || p->ticks == TICKS_ARE_WEIGHTS)
		return;
	for (uint32_t i = 0; i < p->types.count && p->event_index == NONE; i++)
		if (is_event(p, i))
			p->event_index = i;
	if (p->event_index == NONE && p->cpu_index == NONE)
		p->event_index = wall != NONE ? wall : other_time;
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
	if (p->default_type <= 0 || i == p->types.count || p->count_index == NONE ||
	    p->ticks == TICKS_ARE_WEIGHTS)
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

/* Of files with neither: counts of Julia, which has the depth of stacks beside them. */
static void choose_events(struct pprof *p)
{
	bool of_cpu = type_is_any(p, p->period_type.type, value_types.cpu_times);

	for (uint32_t i = 0; i < p->types.count && p->count_index == NONE; i++)
		if ((of_cpu || p->types.count == 1) && is_count(p, &p->types.data[i]) &&
		    pprof__string_is(p, p->types.data[i].type, "events"))
			p->count_index = i;
}

/*
 * Those of one type: counts of async-profiler; our own weights, or an event without the number of its
 * samples (cycles of RISC Zero).
 */
static void choose_only(struct pprof *p)
{
	const struct pprof_value_type *t = p->types.data;

	if (p->count_index != NONE || p->cpu_index != NONE)
		return;
	choose_events(p);
	if (p->types.count != 1)
		return;
	if (is_count(p, t) && type_is_any(p, t->type, value_types.cpu_times))
		p->count_index = 0;
	if (!pprof__string_is(p, t->type, PPROF_WEIGHT) &&
	    !(is_count(p, t) && type_is_any(p, t->type, value_types.events)))
		return;
	p->count_index = 0;
	p->ticks = TICKS_ARE_WEIGHTS;
}

static bool is_type_of(const struct pprof *p, uint32_t index, int64_t type)
{
	return index != NONE && p->types.data[index].type == type;
}

/* Not of time by the clock, such as fgprof's "wallclock", which passes while a goroutine sleeps. */
static bool is_cpu_period(const struct pprof *p)
{
	int64_t type = p->period_type.type;

	return (!type && !p->by_clock) || type_is_any(p, type, value_types.cpu_times) ||
	       is_type_of(p, p->count_index, type) || is_type_of(p, p->cpu_index, type);
}

/* ns; 0: there is none of CPU time. */
static uint64_t plausible_period(const struct pprof *p)
{
	uint64_t ns = saturating_multiply_u64(p->period > 0 ? (uint64_t)p->period : 0,
					      unit_of(p, p->period_type.unit));

	return is_cpu_period(p) && ns >= PERIOD_MIN && ns <= PERIOD_MAX ? ns : 0;
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
	p->by_clock = p->ticks == TICKS_ARE_WEIGHTS ||
		      (p->event_index != NONE && unit_of(p, p->types.data[p->event_index].unit));
	p->period_ns = plausible_period(p);
	if (p->cpu_index != NONE)
		p->unit = unit_of(p, p->types.data[p->cpu_index].unit);
	return 0;
}

/* ---- what is a tick -------------------------------------------------------------------------- */

static bool begins_with(const struct text *text, const char *prefix)
{
	return text->size > strlen(prefix) && !memcmp(text->bytes, prefix, strlen(prefix));
}

static bool ends_with(const struct text *text, const char *suffix)
{
	size_t size = strlen(suffix);

	return text->size > size && !memcmp(text->bytes + text->size - size, suffix, size);
}

/* Our own files: by the product, or by a text for profiles of other tools. */
static int take_part(struct pprof *p, const struct text *text)
{
	static const struct {
		const char *prefix, *what;
	} lines[] = {{"kept: ", "kept "}, {"dropped: ", "dropped "}, {PPROF_COMMENT_OF_PART, ""}};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		size_t size = strlen(lines[i].prefix);

		if (begins_with(text, lines[i].prefix))
			return frames__part_of(&p->frames, lines[i].what,
					       (const char *)text->bytes + size, text->size - size);
	}
	return 0;
}

static int take_comment(struct pprof *p, const struct text *text)
{
	const size_t before = strlen(PPROF_COMMENT_OF_CPU);

	p->ours |= begins_with(text, "sysprof ") ||
		   pprof_is_word(text->bytes, text->size, PPROF_COMMENT_OF_SAMPLES);
	if (begins_with(text, PPROF_COMMENT_OF_CPU))
		profile_builder__meta(p->b, META_CPU_TIME,
				      frames__text(&p->frames, (const char *)text->bytes + before,
						   text->size - before));
	if (ends_with(text, ": " COLLAPSED_FILES))
		profile_builder__session(p->b)->has_only_names = true;
	return take_part(p, text);
}

static int read_comments(struct pprof *p)
{
	numbers comments = {};
	int err = wire_repeated(pprof__fields(p, PPROF_COMMENT), PPROF_COMMENT, &comments);

	for (size_t i = 0; i < comments.count && !err; i++)
		if (comments.data[i] < p->strings.count)
			err = take_comment(p, &p->strings.data[comments.data[i]]);
	vec_free(&comments);
	return err == -EBADMSG ? 0 : err; /* then it has none */
}

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
	int err = pprof__read_values(p, w);

	if (err)
		return err;
	if (p->values.count != p->types.count)
		return pprof__fail_at(p, w->bytes, -EBADMSG,
				      "a sample has %llu values, expected one of each type",
				      p->values.count);
	count = value_at(p, p->count_index);
	cpu = value_at(p, p->cpu_index);
	event = value_at(p, p->event_index);
	if (count < 0 || cpu < 0 || event < 0)
		return pprof__fail_at(p, w->bytes, -EBADMSG,
				      "a value is negative: it is the difference of two profiles",
				      0);
	*values = (struct values){
		.count = p->count_period ? (uint64_t)count / p->count_period : (uint64_t)count,
		.cpu = min_u64(saturating_multiply_u64((uint64_t)cpu, p->unit), TAIL_MAX),
		.event = (uint64_t)event,
	};
	return 0;
}

static int measure_sample(struct pprof *p, const struct wire *w, const void *message)
{
	struct values v;
	int err = read_values(p, w, &v);

	(void)message;
	if (err || (!v.count && !v.cpu))
		return err;
	if (weights__add(&p->counts, v.count))
		return -ENOMEM;
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

/* CPU time of a count, if that is plausible and the same of all; 0: it is not. */
static uint64_t time_of_count(const struct pprof *p)
{
	uint64_t each = p->seen.count ? p->seen.cpu / p->seen.count : 0;

	return p->seen.in_proportion && each >= PERIOD_MIN && each <= PERIOD_MAX ? each : 0;
}

/* The counts are ticks; a period that is not plausible is what a tick has of CPU time. */
static void believe_counts(struct pprof *p)
{
	if (!p->period_ns && p->event_index == NONE)
		p->period_ns = time_of_count(p);
}

/*
 * Counts that are none: time, or events of which the period was folded in. One period of all of them
 * is taken out again.
 */
static void check_counts(struct pprof *p)
{
	if (p->count_index == NONE || !p->seen.counts || p->ours || time_of_count(p) ||
	    !weights__are_no_samples(&p->counts, &p->count_period))
		return;
	if (p->count_period) {
		p->seen.count /= p->count_period;
		if (p->event_index == NONE && (p->by_counts || !p->seen.divisor))
			p->event_index = p->count_index;
		return;
	}
	if (!p->by_counts && p->event_index == NONE && p->seen.divisor) {
		p->ticks = TICKS_ARE_CPU_TIME;
		p->tick_cpu = p->seen.divisor;
		return;
	}
	p->by_weights = p->event_index == NONE;
	p->count_index = p->by_weights ? p->count_index : p->event_index;
	p->event_index = NONE;
	p->ticks = TICKS_ARE_WEIGHTS;
}

static void choose_ticks(struct pprof *p)
{
	bool counted = p->count_index != NONE && (p->seen.counts || !p->seen.divisor || p->ours ||
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
}

static int measure(struct pprof *p)
{
	static const struct wanted_field samples = {PPROF_SAMPLE, SAMPLE_TYPES, measure_sample};
	int err;

	p->seen.in_proportion = p->seen.all_cpu = true;
	if (p->ticks == TICKS_ARE_WEIGHTS)
		return 0;
	err = pprof__each_field(p, &samples);
	if (err)
		return err;
	check_counts(p);
	if (p->cpu_index != NONE && p->ticks == TICKS_ARE_COUNTS)
		choose_ticks(p);
	return 0;
}

static int set_event(struct pprof *p)
{
	struct profile *session = profile_builder__session(p->b);
	const struct pprof_value_type *type;
	_cleanup_free_ char *name = NULL;
	bool of_counts = p->count_period && p->event_index == p->count_index;
	uint32_t index = p->by_cpu			 ? p->cpu_index
			 : p->ticks == TICKS_ARE_WEIGHTS ? p->count_index
							 : p->event_index;
	int err;

	if (index == NONE)
		return 0;
	type = &p->types.data[index];
	err = pprof__copy_string(p, type->type, &name)
		      ?: pprof__intern(p, type->unit, &session->event_unit);
	if (err)
		return err;
	if (size_before(p, type->type, EVENT_SUFFIX))
		name[strlen(name) - strlen(EVENT_SUFFIX)] = '\0';
	session->event = profile_builder__string(p->b, p->by_cpu	     ? EVENT_CPU
						       : p->by_weights	     ? PPROF_WEIGHT
						       : of_counts || !*name ? "events"
									     : name);
	if (p->by_cpu || !session->event_unit.v)
		session->event_unit = profile_builder__string(p->b,
							      p->by_cpu ? EVENT_CPU_UNIT : "count");
	if (!p->by_cpu && p->period > 0 && p->period_type.type == type->type &&
	    p->period_type.unit == type->unit)
		session->event_period = (uint64_t)p->period;
	if (of_counts)
		session->event_period = p->count_period;
	return 0;
}

int pprof_values__choose(struct pprof *p)
{
	return choose_values(p) ?: read_comments(p) ?: measure(p) ?: set_event(p);
}

/* A row that none of the types that are read has. Waits, which have time alone beside CPU time, are no events. */
static bool has_other_value(const struct pprof *p)
{
	for (size_t i = 0; i < p->values.count && i < p->types.count; i++)
		if (p->values.data[i] &&
		    (p->cpu_index == NONE || !is_wall_time(p, &p->types.data[i])))
			return true;
	return false;
}

int pprof_values__take(struct pprof *p, const struct wire *w, struct profile_sample *row)
{
	struct values v;
	int err = read_values(p, w, &v);

	if (err)
		return err;
	p->frames.left_out[LEFT_OUT_SUMS] += v.cpu >= TAIL_MAX;
	row->weight = v.cpu;
	if (p->cpu_index == NONE && p->ticks == TICKS_ARE_COUNTS)
		row->weight = min_u64(saturating_multiply_u64(v.count, p->period_ns), TAIL_MAX);
	row->ticks = p->ticks == TICKS_ARE_PERIODS
			     ? max_u64((v.cpu + p->period_ns / 2) / p->period_ns, v.cpu > 0)
		     : p->ticks == TICKS_ARE_CPU_TIME ? v.cpu / p->tick_cpu
						      : v.count;
	if (!v.count && !v.cpu && !v.event)
		p->frames.left_out[LEFT_OUT_OTHER_EVENTS] += has_other_value(p);
	row->exact = p->by_cpu || p->event_index != NONE;
	if (row->exact)
		row->events = p->by_cpu ? v.cpu : v.event;
	return 0;
}
