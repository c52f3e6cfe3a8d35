/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Firefox Profiler, processed format: ours (66), samply's, Firefox's own. Versions differ: tables
 * are shared from 60 on, strings from 56 on, before each thread has its own; samples have times or
 * deltas; stacks have prefixes, or from 66 on distances. The columns decide, not the version.
 *
 * A row's CPU time is what the thread used since the row before. A row without a stack, or with an
 * idle or waiting leaf, is no CPU sample and passes it on. Rows of other tools without CPU time are
 * no CPU samples either. Without CPU times, or with cycles, a sample is its weight in intervals.
 *
 * The file is walked once to find its parts. Then tables are read, then each thread, whose columns
 * are parsed side by side.
 */
#include "formats/in/firefox.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/strtab.h"
#include "formats/in/firefox_tables.h"
#include "formats/in/import.h"

#define MS_SCALE   6
#define TIME_LIMIT (1LL << 60)
#define WEIGHT_MAX (1LL << 40)

enum cpu_unit { CPU_ABSENT, CPU_NS, CPU_US, CPU_CYCLES };

struct firefox_reader {
	const struct import_request *request;
	struct json_text text;
	struct profile_builder *b;
	struct firefox_common common;
	struct firefox_in shared;
	bool has_shared;
	struct json_value shared_value;
	struct strtab *pids;		  /* as they are written: "12", and in ours "12.1" */
	VEC(struct process_id) processes; /* by number in pids */
	bool ours;
	enum cpu_unit unit;
	uint64_t base;	   /* ns: time 0 of the file */
	uint64_t interval; /* ns */
	uint64_t end;
};

struct thread_values {
	struct json_value name, process_name, is_main, pid, tid, start, end, process_start,
		process_end, samples, libs;
};

struct sample_values {
	struct json_value stack, time, deltas, weight, weight_type, cpu;
};

/* Columns side by side; absent ones have no text. */
struct sample_columns {
	struct json_column stack, time, weight, cpu;
	bool deltas, weights_are_ms;
	int64_t now;  /* ns since the base */
	uint64_t acc; /* CPU time since the last sample */
	bool first;
};

static bool recognizes_firefox(const uint8_t *bytes, size_t size)
{
	return import_json_kind(bytes, size) == IMPORT_JSON_FIREFOX;
}

/* ---- meta ------------------------------------------------------------------------------------ */

static int read_ms(const struct json_text *text, struct json_value value, int64_t limit,
		   int64_t *ns)
{
	*ns = 0;
	return json_type(value) == JSON_NUMBER ? json_time(text, value, MS_SCALE, -limit, limit, ns)
					       : 0;
}

static int check_version(struct firefox_reader *r, struct json_value meta,
			 struct json_value version)
{
	int64_t number;

	if (!version.at)
		return json_fail(
			&r->text, meta.at, -EPROTONOSUPPORT,
			"it is no processed profile but one in Gecko's own format; load it "
			"into profiler.firefox.com and save it from there");
	return json_integer(&r->text, version, "preprocessedProfileVersion", 0, INT32_MAX, &number);
}

/* "ns", "µs" or cycles; without CPU times the column is absent. */
static int read_units(struct firefox_reader *r, struct json_value units)
{
	_cleanup_json_ struct json_tree *tree = NULL;
	const char *unit = "";
	int err = 0;

	if (json_type(units) == JSON_OBJECT)
		err = json_tree__parse(&r->text, units, &tree);
	if (tree)
		unit = json_tree__string(tree, "threadCPUDelta", "");
	r->unit = !strcmp(unit, "ns") ? CPU_NS : !strcmp(unit, "\xc2\xb5s") ? CPU_US : CPU_CYCLES;
	return err;
}

/* Data of the machine, which only our own files have. */
static int read_machine(struct firefox_reader *r, struct json_value meta)
{
	struct json_value imported, values[6];
	static const char *const keys[] = {META_PRODUCT,   META_KERNEL_RELEASE, META_CPU,
					   META_CPU_COUNT, META_HOSTNAME,	META_COMMAND};
	int err = json_members(&r->text, meta, {"product", &values[0]}, {"oscpu", &values[1]},
			       {"CPUName", &values[2]}, {"logicalCPUs", &values[3]},
			       {"device", &values[4]}, {"arguments", &values[5]},
			       {"importedFrom", &imported});

	r->ours = !err && json_is(imported, "\"sysprof\"");
	if (r->ours)
		err = import_event(&r->text, meta, r->b);
	for (size_t i = 0; i < 6 && !err && r->ours; i++) {
		_cleanup_free_ char *text = NULL;

		if (json_type(values[i]) == JSON_STRING)
			err = json_string_copy(&r->text, values[i], &text);
		else if (json_type(values[i]) == JSON_NUMBER)
			text = strndup(values[i].at, (size_t)(values[i].end - values[i].at));
		if (text)
			profile_builder__meta(r->b, keys[i], text);
	}
	return err;
}

static int read_meta(struct firefox_reader *r, struct json_value meta)
{
	struct json_value version, interval, start, monotonic, categories, units, end;
	int64_t realtime = 0, period = 0, base = 0, last = 0;
	int err = json_members(&r->text, meta, {"preprocessedProfileVersion", &version},
			       {"interval", &interval}, {"startTime", &start},
			       {"startTimeAsClockMonotonicNanosecondsSinceBoot", &monotonic},
			       {"categories", &categories}, {"sampleUnits", &units},
			       {"profilingEndTime", &end});

	err = err ?: check_version(r, meta, version) ?: read_machine(r, meta);
	if (!err && json_type(categories) == JSON_ARRAY)
		err = firefox_common__categories(&r->common, categories);
	if (!err)
		err = read_units(r, units)
			?: read_ms(&r->text, interval, TIME_LIMIT, &period)
			?: read_ms(&r->text, start, INT64_MAX / 2, &realtime)
			?: read_ms(&r->text, end, TIME_LIMIT, &last);
	if (!err && json_type(monotonic) == JSON_NUMBER)
		err = json_integer(&r->text, monotonic, "the start time", 0, TIME_LIMIT, &base);
	r->base = base ? (uint64_t)base : IMPORT_MADE_UP_START;
	r->interval = period > 0 ? (uint64_t)period : 0;
	r->end = r->base + (last > 0 ? (uint64_t)last : 0);
	profile_builder__session(r->b)->start_realtime = realtime > 0 ? (uint64_t)realtime : 0;
	return err;
}

/* ---- threads --------------------------------------------------------------------------------- */

/* The text of 123, "123" or "123.1" (the second process of that number), and the number in it. */
static int read_number(const struct json_text *text, struct json_value value, char *copy,
		       size_t size, uint32_t *number)
{
	_cleanup_free_ char *string = NULL;
	uint64_t n = 0;
	int err = 0;

	*copy = '\0';
	if (json_type(value) == JSON_STRING) {
		err = json_string_copy(text, value, &string);
		snprintf(copy, size, "%s", string ? string : "");
	} else if (json_type(value) == JSON_NUMBER) {
		snprintf(copy, size, "%.*s", (int)min_u64((uint64_t)(value.end - value.at), size),
			 value.at);
	}
	for (const char *digit = copy; *digit >= '0' && *digit <= '9' && n <= UINT32_MAX; digit++)
		n = n * 10 + (uint64_t)(*digit - '0');
	*number = n <= UINT32_MAX ? (uint32_t)n : 0;
	return err;
}

static uint64_t absolute(const struct firefox_reader *r, int64_t ns)
{
	return ns < 0 && (uint64_t)-ns >= r->base ? 1 : r->base + (uint64_t)ns;
}

/* The time of a life's end; 0: it did not end. */
static int read_end(const struct firefox_reader *r, struct json_value value, uint64_t *end)
{
	int64_t ns;
	int err = read_ms(&r->text, value, TIME_LIMIT, &ns);

	*end = !err && json_type(value) == JSON_NUMBER ? absolute(r, ns) : 0;
	return err;
}

static int string_id(struct firefox_reader *r, struct json_value value, struct string_id *id)
{
	_cleanup_free_ char *copy = NULL;
	int err = 0;

	*id = (struct string_id){0};
	if (json_type(value) == JSON_STRING)
		err = json_string_copy(&r->text, value, &copy);
	if (!err)
		*id = profile_builder__string(r->b, copy);
	return err;
}

/* The process of a thread, made at its first thread. *is_new: this is it. */
static int process_of(struct firefox_reader *r, const struct thread_values *v,
		      struct string_id name, struct process_id *process, bool *is_new)
{
	struct profile_process p = {.is_target = true, .name = name};
	char text[64];
	int64_t start = 0, number;
	int err = read_number(&r->text, v->pid, text, sizeof(text), &p.pid)
		?: read_ms(&r->text, v->process_start, TIME_LIMIT, &start)
		?: read_end(r, v->process_end, &p.end);

	if (err)
		return err;
	number = strtab__intern(r->pids, text);
	if (number < 0)
		return (int)number;
	while (r->processes.count <= (size_t)number && !err)
		err = vec_push(&r->processes, (struct process_id){0});
	if (err)
		return err;
	*is_new = !r->processes.data[number].v;
	p.start = absolute(r, start);
	if (*is_new)
		r->processes.data[number] = profile_builder__process(r->b, &p);
	*process = r->processes.data[number];
	return process->v ? 0 : -ENOMEM;
}

static int add_thread(struct firefox_reader *r, const struct thread_values *v,
		      struct process_id *process, struct thread_id *thread, struct string_id *name)
{
	struct string_id process_name;
	char text[64];
	uint32_t tid;
	uint64_t end;
	int64_t start;
	bool is_new = false;
	int err = string_id(r, v->name, name)
		?: string_id(r, v->process_name, &process_name)
		?: process_of(r, v, process_name.v ? process_name : *name, process, &is_new)
		?: read_number(&r->text, v->tid, text, sizeof(text), &tid)
		?: read_ms(&r->text, v->start, TIME_LIMIT, &start)
		?: read_end(r, v->end, &end);

	if (err)
		return err;
	if (!name->v)
		*name = process_name;
	/* a second main thread of one number is an earlier process's, or a mistake */
	*thread = profile_builder__thread(r->b, *process, tid,
					  is_new && json_is(v->is_main, "true"), *name,
					  absolute(r, start));
	if (!thread->v)
		return -ENOMEM;
	profile_builder__thread_end(r->b, *thread, end);
	return 0;
}

/* ---- samples --------------------------------------------------------------------------------- */

static int begin_columns(const struct firefox_reader *r, const struct sample_values *v,
			 struct sample_columns *c)
{
	const struct json_text *text = &r->text;
	int err;

	*c = (struct sample_columns){
		.deltas = json_type(v->time) != JSON_ARRAY,
		.weights_are_ms = json_is(v->weight_type, "\"tracing-ms\""),
		.first = true,
	};
	if (v->weight_type.at && !c->weights_are_ms && !json_is(v->weight_type, "\"samples\"") &&
	    !json_is(v->weight_type, "null"))
		return json_fail(
			text, v->weight_type.at, -EPROTONOSUPPORT,
			"the weights of its samples are no CPU time: %.*s",
			(int)min_u64((uint64_t)(v->weight_type.end - v->weight_type.at), 40),
			v->weight_type.at);
	err = json_column__init(&c->stack, text, v->stack)
		      ?: json_column__init(&c->time, text, c->deltas ? v->deltas : v->time);
	if (!err && json_type(v->weight) == JSON_ARRAY)
		err = json_column__init(&c->weight, text, v->weight);
	if (!err && json_type(v->cpu) == JSON_ARRAY)
		err = json_column__init(&c->cpu, text, v->cpu);
	return err;
}

static int next_number(struct json_column *column, const char *name, struct json_number *number)
{
	int more = json_column__next(column, number);

	if (more > 0)
		return 0;
	return more ? more
		    : json_fail(column->text, column->at, -EBADMSG,
				"the column %s has only %zu elements", name, column->index);
}

static int next_time(struct sample_columns *c)
{
	struct json_number number;
	int64_t ns;
	int err = next_number(&c->time, c->deltas ? "timeDeltas" : "time", &number);

	if (err)
		return err;
	if (number.is_null || json_scaled(&number, MS_SCALE, &ns) || ns > TIME_LIMIT ||
	    ns < -TIME_LIMIT || c->now > TIME_LIMIT || c->now < -TIME_LIMIT)
		return json_fail(c->time.text, number.at, -EBADMSG,
				 "the time of sample %zu is out of range", c->time.index - 1);
	c->now = c->deltas ? c->now + ns : ns;
	return 0;
}

/* Add a row's CPU time, ns or cycles. The first is from before the recording, except in ours. */
static int next_cpu(const struct firefox_reader *r, struct sample_columns *c, int64_t elapsed)
{
	struct json_number number;
	int64_t delta;
	int err;

	if (!c->cpu.text)
		return 0;
	err = next_number(&c->cpu, "threadCPUDelta", &number);
	if (err)
		return err;
	if (number.is_null) /* unknown: viewers assume that it ran all the time */
		delta = r->unit == CPU_NS ? elapsed : elapsed / 1000;
	else if (json_scaled(&number, 0, &delta) || delta < 0)
		return json_fail(c->cpu.text, number.at, -EBADMSG, "CPU time %zu is out of range",
				 c->cpu.index - 1);
	if (c->first && !r->ours)
		delta = 0;
	if (r->unit == CPU_US)
		delta = delta > TIME_LIMIT / 1000 ? TIME_LIMIT : delta * 1000;
	c->acc = min_u64(c->acc + (uint64_t)delta, (uint64_t)TIME_LIMIT);
	return 0;
}

/* Ticks, or CPU time if the weights are ms. */
static int next_weight(struct sample_columns *c, uint64_t *ticks, uint64_t *ms_as_ns)
{
	struct json_number number;
	int64_t weight = 1;
	int err;

	*ticks = 1;
	*ms_as_ns = 0;
	if (!c->weight.text)
		return 0;
	err = next_number(&c->weight, "weight", &number);
	if (err || number.is_null)
		return err;
	if (json_scaled(&number, c->weights_are_ms ? MS_SCALE : 0, &weight) || weight < 0 ||
	    (!c->weights_are_ms && weight > WEIGHT_MAX))
		return json_fail(c->weight.text, number.at, -EBADMSG,
				 "weight %zu is out of range; a comparison of two profiles has "
				 "negative ones",
				 c->weight.index - 1);
	if (c->weights_are_ms)
		*ms_as_ns = (uint64_t)weight;
	else
		*ticks = (uint64_t)weight;
	return 0;
}

/* The CPU time of a row; false: it is no CPU sample. */
static bool weigh(const struct firefox_reader *r, struct sample_columns *c, uint64_t ticks,
		  uint64_t ms_as_ns, uint64_t *weight)
{
	bool has_cpu = c->cpu.text, ran = c->acc > 0 || r->ours;

	*weight = c->weights_are_ms
			  ? ms_as_ns
			  : min_u64(saturating_multiply_u64(ticks, r->interval), TIME_LIMIT);
	if (has_cpu && r->unit != CPU_CYCLES)
		*weight = c->acc;
	c->acc = 0;
	return (!has_cpu || ran || c->first) && ticks;
}

static int add_row(struct firefox_reader *r, struct firefox_in *in, struct sample_columns *c,
		   const struct json_number *number, struct process_id process,
		   struct thread_id thread, struct profile_sample *row)
{
	uint64_t ms_as_ns;
	int64_t before = c->now, stack = FIREFOX_NONE;
	bool idle, counts;
	int err = next_time(c)
		?: next_cpu(r, c, c->now > before ? c->now - before : 0)
		?: next_weight(c, &row->ticks, &ms_as_ns);

	if (err)
		return err;
	if (!number->is_null && (json_scaled(number, 0, &stack) || stack < FIREFOX_NONE ||
				 stack >= (int64_t)in->stacks.count))
		return json_fail(&r->text, number->at, -EBADMSG, "there is no stack of sample %zu",
				 c->stack.index - 1);
	if (stack == FIREFOX_NONE)
		return 0;
	err = firefox_in__stack(in, (uint32_t)stack, process, &row->stack, &idle);
	if (err || idle)
		return err;
	counts = weigh(r, c, row->ticks, ms_as_ns, &row->weight);
	if (!counts)
		return 0;
	if (profile_builder__session(r->b)->event.v) {
		row->events = row->ticks;
		row->ticks = 1;
	}
	row->time = absolute(r, c->now);
	row->context = firefox_in__context(in, (uint32_t)stack);
	profile_builder__sample(r->b, thread, row);
	return 0;
}

static int read_rows(struct firefox_reader *r, struct firefox_in *in, const struct sample_values *v,
		     struct process_id process, struct thread_id thread, struct string_id comm)
{
	struct profile_sample row = {.kind = SAMPLE_CPU, .comm = comm, .end = STACK_END_ROOT};
	struct sample_columns c;
	struct json_number number;
	int more = begin_columns(r, v, &c);

	while (!more && (more = json_column__next(&c.stack, &number)) > 0) {
		more = add_row(r, in, &c, &number, process, thread, &row);
		c.first = false;
	}
	if (more)
		return more;
	if (r->unit != CPU_CYCLES)
		profile_builder__thread_cpu_tail(r->b, thread, c.acc);
	return profile_builder__error(r->b);
}

static int read_samples(struct firefox_reader *r, struct firefox_in *in, struct json_value samples,
			struct process_id process, struct thread_id thread, struct string_id comm)
{
	struct sample_values v;

	if (json_type(samples) != JSON_OBJECT)
		return json_fail(&r->text, samples.at ? samples.at : r->text.start, -EBADMSG,
				 "a thread has no samples");
	return json_members(&r->text, samples, {"stack", &v.stack}, {"time", &v.time},
			    {"timeDeltas", &v.deltas}, {"weight", &v.weight},
			    {"weightType", &v.weight_type}, {"threadCPUDelta", &v.cpu})
		       ?: read_rows(r, in, &v, process, thread, comm);
}

static int read_thread(void *context, struct json_value value)
{
	struct firefox_reader *r = context;
	struct thread_values v;
	struct json_value strings = {0}, sources = {0};
	struct firefox_in own;
	struct process_id process = {0};
	struct thread_id thread = {0};
	struct string_id comm = {0};
	int err = json_members(&r->text, value, {"name", &v.name}, {"processName", &v.process_name},
			       {"isMainThread", &v.is_main}, {"pid", &v.pid}, {"tid", &v.tid},
			       {"registerTime", &v.start}, {"unregisterTime", &v.end},
			       {"processStartupTime", &v.process_start},
			       {"processShutdownTime", &v.process_end}, {"samples", &v.samples},
			       {"libs", &v.libs})
			  ?: add_thread(r, &v, &process, &thread, &comm);

	if (err || r->has_shared)
		return err ? err : read_samples(r, &r->shared, v.samples, process, thread, comm);
	if (json_type(v.libs) == JSON_ARRAY)
		err = firefox_common__libs(&r->common, v.libs);
	if (!err && r->shared_value.at)
		err = json_members(&r->text, r->shared_value, {"stringArray", &strings},
				   {"sources", &sources});
	if (!err)
		err = firefox_in__read(&own, &r->common, value, strings, sources);
	if (err)
		return err;
	err = read_samples(r, &own, v.samples, process, thread, comm);
	firefox_in__fini(&own);
	return err;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* From 60 on "shared" has all tables; from 56 on the strings. */
static int read_shared(struct firefox_reader *r, struct json_value shared)
{
	struct json_value stacks = {0};
	int err;

	r->shared_value = shared;
	if (!shared.at)
		return 0;
	err = json_members(&r->text, shared, {"stackTable", &stacks});
	if (err || !stacks.at)
		return err;
	err = firefox_in__read(&r->shared, &r->common, shared, (struct json_value){0},
			       (struct json_value){0});
	r->has_shared = !err;
	return err;
}

static int read_threads(struct firefox_reader *r, struct json_value threads)
{
	return threads.at ? json_each(&r->text, threads, read_thread, r)
			  : json_fail(&r->text, r->text.end, -EBADMSG, "there is no \"threads\"");
}

static int read_parts(struct firefox_reader *r)
{
	struct json_value meta, libs, shared, threads;
	int err = json_document(&r->text, {"meta", &meta}, {"libs", &libs}, {"shared", &shared},
				{"threads", &threads})
			  ?: read_meta(r, meta);

	if (!err && json_type(libs) == JSON_ARRAY)
		err = firefox_common__libs(&r->common, libs);
	if (!err)
		err = read_shared(r, shared);
	return err ? err : read_threads(r, threads);
}

static int read_firefox(const struct import_request *request, struct import_failure *failure)
{
	const char *bytes = (const char *)request->bytes;
	struct firefox_reader r = {
		.request = request,
		.text = {bytes, bytes + request->size, failure},
		.b = request->builder,
		.pids = strtab__new(),
	};
	struct profile *session = profile_builder__session(r.b);
	int err;

	r.common = (struct firefox_common){.text = &r.text, .b = r.b};
	r.common.frames.b = r.b;
	err = r.pids ? read_parts(&r) : -ENOMEM;
	session->start = r.base;
	session->end = r.end;
	session->period = r.interval;
	session->finished_symbols = true;
	if (r.has_shared)
		firefox_in__fini(&r.shared);
	firefox_common__fini(&r.common);
	strtab__free(r.pids);
	vec_free(&r.processes);
	return err;
}

const struct importer firefox_importer = {
	.name = "firefox",
	.description = "Firefox Profiler, processed format: samply, Firefox, sysprof",
	.recognizes = recognizes_firefox,
	.read = read_firefox,
};
