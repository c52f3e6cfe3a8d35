/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/in/firefox_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/wire.h"
#include "formats/in/firefox_tables.h"
#include "formats/in/import.h"

#define START_MAX  (1LL << 61) /* ns; of profiles of other tools since 1970 */
#define WEIGHT_MAX (1LL << 40) /* in files of other tools: a count of samples */

/* ---- meta ------------------------------------------------------------------------------------ */

int firefox_ms(const struct json_text *text, struct json_value value, int64_t limit, int64_t *ns)
{
	*ns = 0;
	return json_type(value) == JSON_NUMBER
		       ? json_time(text, value, FIREFOX_MS_SCALE, -limit, limit, ns)
		       : 0;
}

/* "ns", "µs" or cycles; without CPU times the column is absent. */
int firefox_file__units(struct firefox_file *r, struct json_value units)
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

/* Weights are times, but in our own files they may be events. */
static void set_uncounted(struct profile *session)
{
	if (session->event.v)
		return;
	session->uncounted = true;
	session->tick_cpu = max_u64(session->tick_cpu, 1);
}

/* Data of the machine, which only our own files have. */
static int read_machine(struct firefox_file *r, struct json_value meta)
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
	r->events_are_cpu = import_events_are_cpu(r->b);
	if (r->has_times)
		set_uncounted(profile_builder__session(r->b));
	for (size_t i = 0; i < 6 && !err && r->ours; i++) {
		_cleanup_free_ char *text = NULL;

		if (json_type(values[i]) == JSON_STRING)
			err = json_string_copy(&r->text, values[i], &text);
		else if (json_type(values[i]) == JSON_NUMBER)
			text = strndup(values[i].at, (size_t)(values[i].end - values[i].at));
		if (text && strcmp(text, FIREFOX_NO_PRODUCT) != 0)
			profile_builder__meta(r->b, keys[i], text);
	}
	return err;
}

int firefox_file__meta(struct firefox_file *r, struct json_value meta)
{
	struct json_value interval, start, monotonic, categories, units, end;
	int64_t period = 0, base = 0, last = 0;
	int err = json_members(&r->text, meta, {"interval", &interval}, {"startTime", &start},
			       {"startTimeAsClockMonotonicNanosecondsSinceBoot", &monotonic},
			       {"categories", &categories}, {"sampleUnits", &units},
			       {"profilingEndTime", &end});

	err = err ?: read_machine(r, meta);
	if (!err && json_type(categories) == JSON_ARRAY)
		err = firefox_common__categories(&r->common, categories);
	if (!err)
		err = firefox_file__units(r, units)
			?: firefox_ms(&r->text, interval, FIREFOX_TIME_LIMIT, &period)
			?: firefox_ms(&r->text, start, INT64_MAX / 2, &r->realtime)
			?: firefox_ms(&r->text, end, FIREFOX_TIME_LIMIT, &last);
	if (!err && json_type(monotonic) == JSON_NUMBER)
		err = json_integer(&r->text, monotonic, "the start time", 0, START_MAX, &base);
	r->base = base ? (uint64_t)base : PROFILE_MADE_UP_START;
	r->interval = period > 0 ? (uint64_t)period : 0;
	r->end = r->base + (last > 0 ? (uint64_t)last : 0);
	profile_builder__session(r->b)->start_realtime = r->realtime > 0 ? (uint64_t)r->realtime
									 : 0;
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

uint64_t firefox_file__time(const struct firefox_file *r, int64_t ns)
{
	ns += r->shift;
	return ns < 0 && (uint64_t)-ns >= r->base ? 1 : r->base + (uint64_t)ns;
}

/* The time of a life's end; 0: it did not end. */
static int read_end(const struct firefox_file *r, struct json_value value, uint64_t *end)
{
	int64_t ns;
	int err = firefox_ms(&r->text, value, FIREFOX_TIME_LIMIT, &ns);

	*end = !err && json_type(value) == JSON_NUMBER ? firefox_file__time(r, ns) : 0;
	return err;
}

static int string_id(struct firefox_file *r, struct json_value value, struct string_id *id)
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

/* The names of a thread and of its process, and what that belongs to. */
static int read_names(struct firefox_file *r, const struct firefox_thread *v,
		      struct string_id *comm, struct profile_process *p)
{
	struct json_value own_comm = {}, own_process = {};
	bool has_own = r->ours && json_type(v->own) == JSON_OBJECT;
	int err = has_own ? json_members(&r->text, v->own, {"comm", &own_comm},
					 {"process", &own_process})
				    ?: import_names(&r->text, v->own, r->b, &p->names)
			  : 0;

	return err ?: string_id(r, own_comm.at ? own_comm : v->name, comm)
		   ?: string_id(r, own_process.at ? own_process : v->process_name, &p->name);
}

/* The process of a thread, made of `p` at its first thread. *is_new: this is it. */
static int process_of(struct firefox_file *r, const struct firefox_thread *v,
		      struct profile_process p, struct process_id *process, bool *is_new)
{
	char text[64];
	int64_t start = 0, number;
	int err = read_number(&r->text, v->pid, text, sizeof(text), &p.pid)
		?: firefox_ms(&r->text, v->process_start, FIREFOX_TIME_LIMIT, &start)
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
	p.start = firefox_file__time(r, start);
	if (*is_new)
		r->processes.data[number] = profile_builder__process(r->b, &p);
	*process = r->processes.data[number];
	return process->v ? 0 : -ENOMEM;
}

int firefox_file__thread(struct firefox_file *r, const struct firefox_thread *v,
			 struct firefox_rows *rows)
{
	struct profile_process process = {.is_target = true};
	char text[64];
	uint32_t tid;
	uint64_t end;
	int64_t start;
	bool is_new = false;
	int err = read_names(r, v, &rows->comm, &process);

	if (!process.name.v)
		process.name = rows->comm;
	err = err ?: process_of(r, v, process, &rows->process, &is_new)
		?: read_number(&r->text, v->tid, text, sizeof(text), &tid)
		?: firefox_ms(&r->text, v->start, FIREFOX_TIME_LIMIT, &start)
		?: read_end(r, v->end, &end);

	if (err)
		return err;
	if (!rows->comm.v)
		rows->comm = process.name;
	/* a second main thread of one number is an earlier process's, or a mistake */
	rows->thread = profile_builder__thread(r->b, rows->process, tid, is_new && v->is_main,
					       rows->comm, firefox_file__time(r, start));
	if (!rows->thread.v)
		return -ENOMEM;
	profile_builder__thread_end(r->b, rows->thread, end);
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool take_time(struct firefox_rows *rows, const struct json_number *number)
{
	int64_t ns;

	if (number->is_null || json_scaled(number, FIREFOX_MS_SCALE, &ns) ||
	    ns > FIREFOX_TIME_LIMIT || ns < -FIREFOX_TIME_LIMIT || rows->now > FIREFOX_TIME_LIMIT ||
	    rows->now < -FIREFOX_TIME_LIMIT)
		return false;
	rows->now = rows->deltas ? rows->now + ns : ns;
	return true;
}

/* Add a row's CPU time, ns or cycles. The first is from before the recording, except in ours. */
static void take_cpu(struct firefox_file *r, struct firefox_rows *rows,
		     const struct json_number *number, int64_t elapsed)
{
	int64_t delta;

	if (!rows->has_cpu)
		return;
	if (number->is_null ||
	    json_scaled(number, r->unit == CPU_US ? FIREFOX_US_SCALE : 0, &delta) || delta < 0) {
		/* viewers assume that it ran all the time */
		delta = r->unit == CPU_CYCLES ? elapsed / 1000 : elapsed;
		r->common.frames.left_out[LEFT_OUT_CPU_TIMES] += rows->count && delta;
	}
	if (!rows->count && !r->ours)
		delta = 0;
	rows->acc = min_u64(rows->acc + (uint64_t)delta, (uint64_t)FIREFOX_TIME_LIMIT);
}

/* Ticks, or CPU time if the weights are ms. -ENODATA: it is out of range. */
static int take_weight(const struct firefox_file *r, const struct firefox_rows *rows,
		       const struct json_number *number, uint64_t *ticks, uint64_t *ms_as_ns)
{
	int64_t weight = 1;

	*ticks = max_u64(r->weight_period, 1);
	*ms_as_ns = 0;
	if (!rows->has_weight || number->is_null)
		return 0;
	if (number->negative && number->mantissa)
		return json_fail(&r->text, number->at, -EBADMSG,
				 "weight %zu is negative: it is a comparison of two profiles",
				 rows->count);
	if (json_scaled(number, rows->weights_are_ms ? FIREFOX_MS_SCALE : 0, &weight) ||
	    (!r->ours && !rows->weights_are_ms && weight > WEIGHT_MAX))
		return -ENODATA;
	if (rows->weights_are_ms)
		*ms_as_ns = (uint64_t)weight;
	*ticks = (uint64_t)weight;
	return 0;
}

/* How many samples a row of our own is of, beside its events; `or_null`: without such a column. */
static uint64_t own_ticks(const struct firefox_row *numbers, uint64_t or_null)
{
	int64_t ticks;

	return numbers->ticks.is_null || json_scaled(&numbers->ticks, 0, &ticks) || ticks < 0
		       ? or_null
		       : (uint64_t)ticks;
}

/* The CPU time of a row; false: it is no CPU sample. */
static bool weigh(const struct firefox_file *r, struct firefox_rows *rows, uint64_t ticks,
		  uint64_t ms_as_ns, uint64_t *weight)
{
	bool ran = rows->acc > 0 || r->ours;

	ticks = r->weight_period ? ticks / r->weight_period : r->by_weights ? 0 : ticks;
	*weight = rows->weights_are_ms ? ms_as_ns
				       : min_u64(saturating_multiply_u64(ticks, r->interval),
						 FIREFOX_TIME_LIMIT);
	if (rows->has_cpu && r->unit != CPU_CYCLES)
		*weight = rows->acc;
	rows->acc = 0;
	return !rows->has_cpu || ran || !rows->count;
}

/* The ticks of a row, which so far are its weight, and its events. */
static void set_ticks(const struct firefox_file *r, const struct firefox_rows *rows,
		      const struct firefox_row *numbers, uint64_t ms_as_ns,
		      struct profile_sample *row)
{
	const struct profile *session = profile_builder__session(r->b);

	if (session->uncounted && r->has_times) {
		row->weight = rows->weights_are_ms ? ms_as_ns : row->weight;
		row->ticks = row->weight / max_u64(session->tick_cpu, 1);
	} else if (r->weight_period) {
		row->events = row->ticks;
		row->ticks /= r->weight_period;
		row->exact = true;
	} else if (session->event.v && !session->uncounted) {
		row->events = row->ticks;
		row->ticks = own_ticks(numbers, 1);
		row->exact = true;
		if (r->events_are_cpu) /* and so is the time of its row, whose deltas are behind */
			row->weight = row->events;
	}
}

/* Why this row is no sample. LEFT_OUT_COUNT: it is one, or has no stack (FIREFOX_NONE). */
static enum import_left_out lacks(const struct firefox_in *in, const struct firefox_rows *rows,
				  const struct firefox_row *numbers, int64_t *stack)
{
	*stack = FIREFOX_NONE;
	if (numbers->stack.is_null)
		return LEFT_OUT_COUNT;
	if (json_scaled(&numbers->stack, 0, stack) || *stack < FIREFOX_NONE ||
	    *stack >= (int64_t)in->stacks.count)
		return LEFT_OUT_MISSING_NODES;
	if (*stack == FIREFOX_NONE)
		return LEFT_OUT_COUNT;
	if (in->stack_frame.data[*stack] < 0)
		return LEFT_OUT_MISSING_NODES;
	return rows->has_weight && numbers->weight.is_null ? LEFT_OUT_WEIGHTS : LEFT_OUT_COUNT;
}

/* CPU time of rows that are no samples is that of the next one, as in Firefox. */
static int add_row(struct firefox_file *r, struct firefox_in *in, struct firefox_rows *rows,
		   const struct firefox_row *numbers)
{
	struct profile_sample row = {.kind = SAMPLE_CPU, .comm = rows->comm, .end = STACK_END_ROOT};
	uint64_t ms_as_ns, *left_out = r->common.frames.left_out;
	int64_t before = rows->now, stack;
	enum import_left_out reason;
	bool idle, counts, has_time = take_time(rows, &numbers->time);
	int err;

	left_out[LEFT_OUT_NO_TIME] += !has_time;
	take_cpu(r, rows, &numbers->cpu, rows->now > before ? rows->now - before : 0);
	if (!has_time)
		return 0;
	err = take_weight(r, rows, &numbers->weight, &row.ticks, &ms_as_ns);
	if (err && err != -ENODATA)
		return err;
	reason = lacks(in, rows, numbers, &stack);
	if (reason == LEFT_OUT_COUNT && stack >= 0 && err)
		reason = LEFT_OUT_WEIGHTS;
	if (reason != LEFT_OUT_COUNT)
		left_out[reason]++;
	if (reason != LEFT_OUT_COUNT || stack < 0)
		return 0;
	err = firefox_in__stack(in, (uint32_t)stack, rows->process, &row.stack, &idle);
	counts = row.ticks || (r->ours && own_ticks(numbers, 0));
	if (err || idle || !weigh(r, rows, row.ticks, ms_as_ns, &row.weight) || !counts)
		return err;
	set_ticks(r, rows, numbers, ms_as_ns, &row);
	r->common.frames.left_out[LEFT_OUT_SUMS] += row.weight >= (uint64_t)FIREFOX_TIME_LIMIT;
	row.time = firefox_file__time(r, rows->now);
	row.context = firefox_in__context(in, (uint32_t)stack);
	return frames__sample(&r->common.frames, rows->thread, &row, r->text.failure,
			      (uint64_t)(numbers->stack.at - r->text.start));
}

int firefox_file__row(struct firefox_file *r, struct firefox_in *in, struct firefox_rows *rows,
		      const struct firefox_row *numbers)
{
	int err = add_row(r, in, rows, numbers);

	rows->count++;
	return err;
}

void firefox_file__weights(struct firefox_file *r, uint64_t period)
{
	struct profile *session = profile_builder__session(r->b);

	r->by_weights = true;
	r->weight_period = period;
	session->uncounted = !period;
	session->event_period = period;
	session->event = profile_builder__string(r->b, period ? "events" : PPROF_WEIGHT);
	session->event_unit = profile_builder__string(r->b, "count");
}

int firefox_file__end(struct firefox_file *r, const struct firefox_rows *rows)
{
	bool has_cpu = rows->has_cpu && r->unit != CPU_CYCLES;
	uint64_t start = profile_builder__get_process(r->b, rows->process)->start;

	if (profile_builder__samples(r->b, rows->thread, SAMPLE_CPU).count)
		r->begin = r->begin ? min_u64(r->begin, start) : start;
	r->has_cpu |= rows->count && has_cpu;
	r->lacks_cpu |= rows->count && !has_cpu;
	if (r->unit != CPU_CYCLES)
		profile_builder__thread_cpu_tail(r->b, rows->thread,
						 r->events_are_cpu ? 0 : rows->acc);
	return profile_builder__error(r->b);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* A "weightType" of some thread is "tracing-ms"; both may be names of functions, too. */
static bool has_times(const char *at, const char *end)
{
	static const char key[] = "\"weightType\"", ms[] = "\"tracing-ms\"";
	const size_t key_size = sizeof(key) - 1, size = sizeof(ms) - 1;
	const struct json_text text = {at, end, NULL};

	while ((at = memmem(at, (size_t)(end - at), key, key_size))) {
		at = json_skip_spaces(&text, at + key_size);
		if (at == end || *at != ':')
			continue;
		at = json_skip_spaces(&text, at + 1);
		if ((size_t)(end - at) >= size && !memcmp(at, ms, size))
			return true;
	}
	return false;
}

int firefox_file__init(struct firefox_file *r, const struct import_request *request,
		       struct import_failure *failure)
{
	const char *bytes = (const char *)request->bytes;

	*r = (struct firefox_file){
		.text = {bytes, bytes + request->size, failure},
		.has_times = has_times(bytes, bytes + request->size),
		.b = request->builder,
		.pids = strtab__new(),
	};
	r->common = (struct firefox_common){.text = &r->text, .b = r->b};
	r->common.frames.b = r->b;
	return r->pids ? 0 : -ENOMEM;
}

/* Where the file has no CPU time of a thread: what stands for it. */
static void name_cpu_time(const struct firefox_file *r)
{
	bool none = r->by_weights && !r->weight_period;

	if (r->lacks_cpu && !r->ours && !none && (r->has_times || r->interval))
		profile_builder__meta(
			r->b, META_CPU_TIME,
			r->has_times ? "the weights of the file, which may be of the clock"
			: r->has_cpu ? "some threads have no CPU time: samples times their interval"
				     : "samples times their interval: the file has no CPU time");
}

void firefox_file__fini(struct firefox_file *r)
{
	struct profile *session = profile_builder__session(r->b);

	name_cpu_time(r);
	session->start = r->ours || !r->begin ? r->base : r->begin;
	session->end = r->end;
	session->period = session->uncounted || session->untimed ? 0 : r->interval;
	session->finished_symbols = r->ours || !r->common.frames.has_unnamed;
	firefox_common__fini(&r->common);
	strtab__free(r->pids);
	vec_free(&r->processes);
}
