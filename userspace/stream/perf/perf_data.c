/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream/perf/perf_data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sysprof/meta_keys.h>

#include "base/clocks.h"
#include "base/minmax.h"
#include "stream/event_decode.h"
#include "stream/meta.h"
#include "stream/perf/perf_kernel.h"
#include "stream/perf/perf_records.h"
#include "stream/perf/perf_sample.h"

#define QUEUE_MEMORY (256u << 20)
#define QUEUE_FULL   (160u << 20) /* the rest is for its heap, which grows by as much again */
#define OTHERS_SHOWN 8u
#define PMUS_MAX     16u

struct perf_reader {
	struct perf_file file;
	struct perf_kernel kernel;
	const struct running_kernel *here;
	struct perf_records records;
	event_sink_fn sink;
	void *context;
	struct perf_data_summary *summary;
	uint64_t last;	 /* time of the last event passed on */
	bool has_begun;	 /* the time of the start was passed on */
	bool has_counts; /* of perf stat record */
};

bool perf_data_probe(int fd)
{
	return perf_file__probe(fd);
}

/* ---- the first reading ----------------------------------------------------------------------- */

/* A perf_take_fn. */
static int survey_record(void *reader, const struct perf_event_header *record, struct cursor body)
{
	struct perf_reader *r = reader;
	struct perf_order *order = &r->records.order;
	struct perf_kind *kind;
	int err = perf_order__note(order, record, perf_order__time(order, &r->file, record, body));

	r->has_counts |= record->type == PERF_STAT;
	if (record->type == PERF_RECORD_LOST_SAMPLES)
		perf_records__note_losses(&r->records, record, body);
	if (err || record->type != PERF_RECORD_SAMPLE)
		return err ?: perf_file__note_mapping(&r->file, record, body)
			   ?: perf_kernel__map(&r->kernel, record, body);
	if ((record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL)
		r->kernel.is_sampled = true;
	kind = perf_sample__kind(&r->file, body);
	if (kind)
		perf_records__note_sample(&r->records, kind, body);
	return 0;
}

/* The higher, the rather is it the profile's. */
static int rank_of(const struct perf_kind *kind)
{
	switch (kind->attr.type) {
	case PERF_TYPE_SOFTWARE:
		return perf_kind__is_clock(kind) ? 3 : 0;
	case PERF_TYPE_TRACEPOINT:
	case PERF_TYPE_BREAKPOINT:
		return 0;
	case PERF_TYPE_HARDWARE:
		return (uint32_t)kind->attr.config == PERF_COUNT_HW_CPU_CYCLES ? 2 : 1;
	default:
		return 1;
	}
}

/* A clock, else cycles, else one of hardware, else another; of two of a kind that with more samples. */
static bool is_rather(const struct perf_kind *a, const struct perf_kind *b)
{
	int rank_a = rank_of(a), rank_b = rank_of(b);

	return rank_a != rank_b ? rank_a > rank_b : a->samples > b->samples;
}

/* The same event of other kinds of CPUs, one of each: more would count the same code again. */
static void add_pmus(struct perf_file *f, struct perf_kind *best)
{
	uint32_t pmus[PMUS_MAX] = {perf_kind__pmu(best)};
	size_t count = 1;

	best->is_profiled = true;
	for (size_t i = 0; i < f->kinds.count && count < PMUS_MAX; i++) {
		struct perf_kind *kind = &f->kinds.data[i];
		bool is_new = kind->samples && perf_kind__is_same(kind, best);

		for (size_t j = 0; j < count; j++)
			is_new &= pmus[j] != perf_kind__pmu(kind);
		if (!is_new)
			continue;
		kind->is_profiled = true;
		pmus[count++] = perf_kind__pmu(kind);
	}
}

static void choose_kind(struct perf_reader *r)
{
	struct perf_file *f = &r->file;
	struct perf_kind *best = NULL;

	for (size_t i = 0; i < f->kinds.count; i++)
		if (f->kinds.data[i].samples && (!best || is_rather(&f->kinds.data[i], best)))
			best = &f->kinds.data[i];
	r->records.kind = best;
	r->records.is_clock = best && perf_kind__is_clock(best);
	r->records.by_cpu = r->records.is_clock && best->periods_differ;
	r->records.is_timed = !best || best->attr.sample_type & PERF_SAMPLE_TIME;
	if (best)
		add_pmus(f, best);
	for (size_t i = 0; i < f->kinds.count; i++)
		if (f->kinds.data[i].is_profiled && f->kinds.data[i].leader)
			f->kinds.data[f->kinds.data[i].leader - 1].carries = true;
	for (size_t i = 0; i < f->kinds.count; i++)
		r->records.lost += perf_kind__is_read(&f->kinds.data[i]) ? f->kinds.data[i].lost
									 : 0;
}

static int survey(struct perf_reader *r)
{
	struct perf_reading reading;
	int err = perf_file__each(&r->file, survey_record, r, &reading);

	if (err)
		return err;
	perf_kernel__settle(&r->kernel, &r->file);
	perf_order__settle(&r->records.order);
	perf_records__forget_counters(&r->records);
	choose_kind(r);
	return 0;
}

/* ---- passing on ------------------------------------------------------------------------------ */

static int hand_on(struct perf_reader *r, const struct event_header *event)
{
	r->last = max_u64(r->last, event->time);
	return r->sink(r->context, event);
}

/* An event_push_fn: of events that hold since the last one. */
static int hand_on_now(void *reader, struct event_header *event)
{
	struct perf_reader *r = reader;

	event->time = r->last;
	return hand_on(r, event);
}

static int emit_fact(struct perf_reader *r, const char *key, const char *value)
{
	return *value ? meta_event__emit(hand_on_now, r, r->last, key, value) : 0;
}

static int emit_number(struct perf_reader *r, const char *key, uint64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	return number ? emit_fact(r, key, text) : 0;
}

/* The wall clock, if the file has it, and when the recording began. */
static int begin(struct perf_reader *r, uint64_t time)
{
	const struct perf_facts *facts = &r->file.facts;
	struct clock_anchor_event anchor = {
		.header = {.size = sizeof(anchor), .type = EVENT_CLOCK_ANCHOR, .time = time},
		.monotonic = facts->sample_clock,
		.realtime = facts->wall_clock,
	};
	int err = 0;

	r->has_begun = true;
	r->last = time;
	if (facts->wall_clock && facts->sample_clock)
		err = hand_on(r, &anchor.header);
	return err ?: emit_number(r, META_SAMPLING_START, time);
}

/* An event_sink_fn of the queue. */
static int take_ordered(void *reader, const struct event_header *event)
{
	struct perf_reader *r = reader;
	int err = r->has_begun ? 0 : begin(r, event->time);

	return err ?: hand_on(r, event);
}

/* ---- facts ----------------------------------------------------------------------------------- */

static const char *const hardware_names[] = {"cycles",
					     "instructions",
					     "cache-references",
					     "cache-misses",
					     "branches",
					     "branch-misses",
					     "bus-cycles",
					     "stalled-cycles-frontend",
					     "stalled-cycles-backend",
					     "ref-cycles"};
static const char *const software_names[] = {
	"cpu-clock",	    "task-clock",   "page-faults",  "context-switches",
	"cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
	"emulation-faults", "dummy",	    "bpf-output",   "cgroup-switches"};

static const char *usual_name(const struct perf_event_attr *attr)
{
	uint64_t number = (uint32_t)attr->config;

	if (attr->type == PERF_TYPE_HARDWARE &&
	    number < sizeof(hardware_names) / sizeof(*hardware_names))
		return hardware_names[number];
	if (attr->type == PERF_TYPE_SOFTWARE &&
	    number < sizeof(software_names) / sizeof(*software_names))
		return software_names[number];
	return NULL;
}

/* "cycles:uppp" as "cycles:u": how exact an address is does not separate events. */
static void drop_precision(char *name)
{
	char *at = strrchr(name, ':'), *to = at;

	if (!at || strspn(at + 1, "ukhGHpPSDIWeb") != strlen(at + 1))
		return;
	for (; *at; at++)
		if (*at != 'p' && *at != 'P')
			*to++ = *at;
	to[to[-1] == ':' ? -1 : 0] = '\0';
}

/* On a machine with two kinds of CPU the event of both has the name without the PMU. */
static const char *name_of(const struct perf_reader *r, const struct perf_kind *kind,
			   char name[PERF_NAME_SIZE])
{
	const char *usual = usual_name(&kind->attr), *terms_end = strrchr(kind->name, '/');
	bool is_shared = false;

	for (size_t i = 0; i < r->file.kinds.count; i++)
		is_shared |= r->file.kinds.data[i].samples &&
			     perf_kind__is_same(kind, &r->file.kinds.data[i]);
	if (usual && kind->attr.type == PERF_TYPE_SOFTWARE && terms_end) /* "cpu-clock/freq=99/u" */
		snprintf(name, PERF_NAME_SIZE, "%s%s%s", usual, terms_end[1] ? ":" : "",
			 terms_end + 1);
	else if (*kind->name && !(is_shared && usual))
		snprintf(name, PERF_NAME_SIZE, "%s", kind->name);
	else if (usual)
		snprintf(name, PERF_NAME_SIZE, "%s", usual);
	else
		snprintf(name, PERF_NAME_SIZE, "event %u:%llx", kind->attr.type,
			 (unsigned long long)kind->attr.config);
	if (kind->attr.type != PERF_TYPE_TRACEPOINT && *kind->name)
		drop_precision(name);
	return name;
}

static int emit_event_facts(struct perf_reader *r)
{
	const struct perf_kind *kind = r->records.kind;
	char text[PERF_NAME_SIZE];
	const char *name;
	uint64_t period;
	int err;

	if (!kind)
		return 0;
	name = name_of(r, kind, text);
	err = emit_fact(r, META_FORMAT,
			r->records.passes_copies && kind->attr.sample_type & PERF_SAMPLE_STACK_USER
				? META_FORMAT_PERF_COPIES
				: META_FORMAT_PERF)
		      ?: emit_fact(r, META_EVENT, name);
	period = kind->attr.freq ? 0 : kind->attr.sample_period;
	if (!err && r->records.by_cpu)
		err = emit_fact(r, META_EVENT_UNIT, "nanoseconds");
	if (err)
		return err;
	if (!r->records.is_clock)
		return emit_fact(r, META_EVENT_UNIT,
				 strcmp(name, META_EVENT_OFF_CPU) ? "count" : "nanoseconds")
			       ?: emit_number(r, META_EVENT_PERIOD, period);
	if (!r->records.is_timed)
		return 0; /* its samples have weights, which are all that is known */
	if (kind->attr.freq && kind->attr.sample_freq)
		period = NS_PER_SECOND / kind->attr.sample_freq;
	return emit_number(r, META_PERIOD, period);
}

static int emit_facts(struct perf_reader *r)
{
	const struct perf_facts *facts = &r->file.facts;
	char product[80] = "", build_id[2 * BUILD_ID_SIZE + 1];

	if (*facts->version)
		snprintf(product, sizeof(product), "perf %s", facts->version);
	return emit_fact(r, META_PRODUCT, product)
		       ?: emit_fact(r, META_HOSTNAME, facts->hostname)
		       ?: emit_fact(r, META_KERNEL_RELEASE, facts->release)
		       ?: emit_fact(r, META_KERNEL_BUILD_ID,
				    perf_kernel__build_id(&r->kernel, build_id, sizeof(build_id)))
		       ?: emit_fact(r, META_ARCHITECTURE, facts->architecture)
		       ?: emit_fact(r, META_CPU, facts->cpu)
		       ?: emit_number(r, META_CPU_COUNT, facts->cpus)
		       ?: emit_fact(r, META_COMMAND, facts->command)
		       ?: emit_fact(r, META_TARGET,
				    facts->ran_alone ? "-- " ARGUMENTS_LEFT_OUT : "")
		       ?: emit_fact(r, META_UNTIMED,
				    r->records.is_timed
					    ? ""
					    : "none: samples follow the order of the file")
		       ?: emit_event_facts(r);
}

/* No record names the idle task, and tasks that have no number any more, which perf writes as -1. */
static int name_specials(struct perf_reader *r)
{
	static const struct comm_event names[] = {{.comm = "swapper"},
						  {.pid = ~0u, .tid = ~0u, .comm = "[ended]"}};
	int err = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !err; i++) {
		struct comm_event event = names[i];

		event.header = (struct event_header){
			.size = sizeof(event), .type = EVENT_COMM, .flags = EVENT_FROM_PROC};
		err = hand_on_now(r, &event.header);
	}
	return err;
}

static int emit_kernel_names(struct perf_reader *r)
{
	return r->kernel.is_sampled
		       ? perf_kernel__emit_names(&r->kernel, r->here, &r->file.facts, hand_on_now,
						 r, &r->summary->kernel_names)
		       : 0;
}

/* ---- the second reading ---------------------------------------------------------------------- */

/*
 * A record whose time is damaged can be older than all others, and nothing would be passed on before it.
 * So a full queue passes on its older half; what comes too late then is counted (LOST_LATE).
 */
static int make_room(struct perf_reader *r)
{
	struct event_queue *queue = r->records.queue;
	struct event_queue_stats stats;
	size_t half;
	int err = 0;

	event_queue__stats(queue, &stats);
	if (stats.memory < QUEUE_FULL)
		return 0;
	half = stats.held / 2;
	while (!err && stats.held > half) {
		err = event_queue__release(queue, event_queue__oldest(queue) + 1, take_ordered, r);
		event_queue__stats(queue, &stats);
	}
	return err;
}

/* A perf_take_fn. */
static int take_record(void *reader, const struct perf_event_header *record, struct cursor body)
{
	struct perf_reader *r = reader;
	struct perf_records *records = &r->records;
	int err = perf_records__take(records, record, body);
	uint64_t until = perf_order__bound(&records->order, record);

	if (err)
		return err;
	return until ? event_queue__release(records->queue, until, take_ordered, r) : make_room(r);
}

/* A perf_take_fn. */
static int name_task(void *reader, const struct perf_event_header *record, struct cursor body)
{
	struct perf_reader *r = reader;

	return perf_records__name_task(&r->records, record, body);
}

static int name_tasks(struct perf_reader *r)
{
	struct perf_reading reading;

	return r->file.has_times ? 0 : perf_file__each(&r->file, name_task, r, &reading);
}

static size_t add_others(const struct perf_reader *r, char *report, size_t size, size_t used)
{
	char text[PERF_NAME_SIZE];
	unsigned int shown = 0;

	for (size_t i = 0; i < r->file.kinds.count && used < size; i++) {
		const struct perf_kind *kind = &r->file.kinds.data[i];

		if (!kind->samples || kind->is_profiled)
			continue;
		if (shown++ == OTHERS_SHOWN)
			return used + (size_t)snprintf(report + used, size - used,
						       "; samples of more events");
		used += (size_t)snprintf(report + used, size - used, "%ssamples of %s: %" PRIu64,
					 used ? "; " : "", name_of(r, kind, text), kind->samples);
	}
	return used;
}

static int emit_left_out(struct perf_reader *r)
{
	static const char *const texts[PERF_LEFT_OUT_COUNT] = {
#define X(name, text) [PERF_LEFT_OUT_##name] = text,
		PERF_LEFT_OUT(X)
#undef X
	};
	char report[4096] = "";
	size_t used = r->records.kind ? add_others(r, report, sizeof(report), 0) : 0;

	for (int i = 0; i < PERF_LEFT_OUT_COUNT; i++)
		if (r->records.left_out[i] && used < sizeof(report))
			used += (size_t)snprintf(report + used, sizeof(report) - used,
						 "%s%s: %" PRIu64, used ? "; " : "", texts[i],
						 r->records.left_out[i]);
	return emit_fact(r, META_NOT_READ, report);
}

static int emit_lost_count(struct perf_reader *r, enum lost_source source, uint64_t count)
{
	struct lost_event event = {
		.header = {.size = sizeof(event), .type = EVENT_LOST},
		.source = source,
		.cpu = EVENT_CPU_UNKNOWN,
		.count = count,
	};

	return count ? hand_on_now(r, &event.header) : 0;
}

/* perf records processes and mappings by an event of its own, where the others do not begin at once. */
static bool is_dummy(const struct perf_kind *kind)
{
	return kind->attr.type == PERF_TYPE_SOFTWARE && kind->attr.config == PERF_COUNT_SW_DUMMY;
}

/* What the counters of events have lost, and no record of a ring says. */
static int emit_lost(struct perf_reader *r)
{
	uint64_t sideband = 0;

	for (size_t i = 0; i < r->file.kinds.count; i++) {
		const struct perf_kind *kind = &r->file.kinds.data[i];

		if (is_dummy(kind))
			sideband += kind->lost;
		else if (!perf_kind__is_read(kind))
			r->records.left_out[PERF_LEFT_OUT_LOST_OTHERS] += kind->lost;
	}
	return emit_lost_count(r, LOST_SAMPLES, r->records.lost)
		       ?: emit_lost_count(r, LOST_SIDEBAND, sideband);
}

static int end(struct perf_reader *r)
{
	struct event_header event = {.size = sizeof(event), .type = EVENT_END};

	return emit_lost(r) ?: emit_left_out(r) ?: hand_on_now(r, &event);
}

static int read_records(struct perf_reader *r)
{
	struct perf_reading reading;
	int err = emit_facts(r) ?: name_specials(r) ?: name_tasks(r) ?: emit_kernel_names(r);

	if (!err)
		err = perf_file__each(&r->file, take_record, r, &reading);
	if (!err)
		err = event_queue__flush(r->records.queue, take_ordered, r);
	if (err)
		return err;
	r->records.left_out[PERF_LEFT_OUT_BEHIND] += reading.left;
	r->records.left_out[PERF_LEFT_OUT_IDS] += r->file.left_ids;
	r->records.left_out[PERF_LEFT_OUT_BUILD_IDS] += r->file.left_build_ids;
	r->records.left_out[reading.lacks_library ? PERF_LEFT_OUT_NO_LIBRARY
						  : PERF_LEFT_OUT_COMPRESSED] += reading.compressed;
	r->summary->records = reading.records;
	r->summary->samples = r->records.samples;
	r->summary->bad_events = r->records.bad;
	return end(r);
}

static int read_all(struct perf_reader *r, int fd, struct failure *failure)
{
	int err = perf_file__open(fd, &r->file, failure);

	if (err)
		return err;
	err = survey(r);
	if (err)
		return fail(failure, err, "%s", strerror(-err));
	if (!r->file.kinds.count)
		return fail(failure, -ENODATA, "it has no events");
	if (!r->records.kind && r->has_counts)
		return fail(
			failure, -ENODATA,
			"it is of `perf stat record`, which counts and takes no samples; `perf stat report "
			"-i FILE` shows it, and `perf record` takes them");
	r->records.is_x86_64 = !strcmp(r->file.facts.architecture, "x86_64");
	return read_records(r);
}

int perf_data_read(int fd, const struct perf_data_options *options, event_sink_fn sink,
		   void *context, struct perf_data_summary *summary, struct failure *failure)
{
	struct perf_reader *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	*summary = (struct perf_data_summary){};
	if (!r)
		return err;
	r->sink = sink;
	r->context = context;
	r->summary = summary;
	r->records.file = &r->file;
	r->here = options->kernel;
	r->records.passes_copies = options->copies;
	r->records.push_now = hand_on_now;
	r->records.context = r;
	r->records.queue = event_queue__new(QUEUE_MEMORY);
	if (r->records.queue)
		err = read_all(r, fd, failure);
	event_queue__free(r->records.queue);
	perf_kernel__fini(&r->kernel);
	perf_order__fini(&r->records.order);
	perf_records__fini(&r->records);
	perf_file__fini(&r->file);
	free(r);
	return err;
}
