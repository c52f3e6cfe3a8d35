/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CPU profiles in Chrome traces, in chunks for each thread: ours and the Performance panel's. A
 * trace is an object, a bare array, or events one behind the other, as with one in each line. All may
 * be cut off (tracers are killed).
 *
 * Two passes, because events come in any order: first names of processes and threads and the places
 * of chunks, then one profile after the other. A chunk belongs to the profile with its pid and id.
 * Its thread is that of the Profile event, because another thread writes the chunks.
 *
 * In our own files the event that spans a thread has its true numbers, and the metadata the period.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/minmax.h"
#include "base/order.h"
#include "formats/in/cdp.h"
#include "formats/in/import.h"

#define US_SCALE  3
#define HEADS_MAX (1u << 16)
#define LANES_MAX 256 /* profiles of a thread at a time */

struct event {
	struct json_value name, phase, pid, tid, id, ts, dur, args;
	int64_t pid_number, tid_number, time; /* ns */
};

#define FOREIGN_BYTES 4096 /* of a trace in which the name of its program is looked for */

/* The name of a process (tid 0) or a thread, of a metadata event. */
struct name {
	int64_t pid, tid;
	struct string_id text;
	/* from our own files: the true number, if a number was reused, and the end of its time */
	bool is_own;
	uint32_t number;
	int64_t end;
	bool no_cpu; /* … and it used no CPU time: its samples count something else */
	struct profile_names names; /* … and what it belongs to */
	struct process_id process;  /* 0: none yet */
	uint32_t lane;		    /* the first one of a thread + 1; 0: none yet */
};

static uint64_t hash_name(const struct name *n)
{
	return hash_combine(hash_u64((uint64_t)n->pid), hash_u64((uint64_t)n->tid));
}

#define is_same_name(a, b) ((a)->pid == (b)->pid && (a)->tid == (b)->tid)

DEFINE_MAP_OF(names, struct name, hash_name, is_same_name);

struct head {
	int64_t pid, tid, start;
	struct json_value id;
	bool begun; /* its Profile event was seen */
};

static uint64_t hash_head(const struct head *h)
{
	return hash_combine(hash_u64((uint64_t)h->pid), json_value_hash(h->id));
}

#define is_same_head(a, b) ((a)->pid == (b)->pid && json_value_equal((a)->id, (b)->id))

DEFINE_MAP_OF(heads, struct head, hash_head, is_same_head);

struct chunk {
	uint32_t head;
	int64_t time;
	size_t order;
	struct json_value data;
};

struct lane {
	struct thread_id id;
	struct string_id comm;
	uint32_t next; /* of the same thread, + 1; 0: none */
	int64_t last;  /* time of its last sample */
	int64_t end;   /* 0: unknown */
	bool is_own, no_cpu;
};

struct trace {
	const struct import_request *request;
	struct profile_builder *b;
	struct json_text text;
	struct frames frames;
	struct cdp_call_frames call_frames;
	struct cdp_scripts scripts;
	struct names processes, threads;
	struct heads heads;
	VEC(struct chunk) chunks;
	VEC(struct lane) lanes;
	int64_t start, end;
	uint64_t period, period_samples;
	uint64_t own_period, own_realtime; /* of our metadata, ns */
	bool has_cpu;			   /* ours, of a profile with CPU time */
	bool ahead;			   /* … which is that until the next sample */
	bool is_own;			   /* which may have no profile */
	bool has_frames;		   /* of samples that are no events, which are not read */
};

static bool recognizes_trace(const uint8_t *bytes, size_t size)
{
	return import_json_kind(bytes, size) == IMPORT_JSON_TRACE;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The name of a thread, or of a process (tid 0), made at first use. NULL: no memory. */
static struct name *need_name(struct names *names, int64_t pid, int64_t tid)
{
	return names__need(names, &(struct name){.pid = pid, .tid = tid}, NULL);
}

/* From our own files, whose processes have titles as their names. */
static int read_own_names(struct trace *t, const struct event *e, struct name *name)
{
	_cleanup_free_ char *copy = NULL;
	struct json_value own = {}, process = {};
	int err = json_type(e->args) == JSON_OBJECT
			  ? json_members(&t->text, e->args, {"$sysprof", &own})
			  : 0;

	if (err || json_type(own) != JSON_OBJECT)
		return err;
	err = json_members(&t->text, own, {"process", &process})
		      ?: import_names(&t->text, own, t->b, &name->names);
	if (err || json_type(process) != JSON_STRING)
		return err;
	err = json_string_copy(&t->text, process, &copy);
	if (!err)
		name->text = profile_builder__string(t->b, copy);
	return err;
}

static int add_name(struct trace *t, const struct event *e)
{
	bool of_process = json_is(e->name, "\"process_name\"");
	_cleanup_json_ struct json_tree *args = NULL;
	struct name *name;
	int err;

	if (json_type(e->args) != JSON_OBJECT) {
		t->frames.left_out[LEFT_OUT_BAD_EVENTS]++;
		return 0;
	}
	err = json_tree__parse(&t->text, e->args, &args);
	if (err)
		return err;
	name = of_process ? need_name(&t->processes, e->pid_number, 0)
			  : need_name(&t->threads, e->pid_number, e->tid_number);
	if (!name)
		return -ENOMEM;
	name->text = profile_builder__string(t->b, json_tree__string(args, "name", ""));
	return of_process ? read_own_names(t, e, name) : 0;
}

/* ---- profiles and their chunks --------------------------------------------------------------- */

static int find_head(struct trace *t, const struct event *e, uint32_t *number)
{
	const struct head key = {
		.pid = e->pid_number, .tid = e->tid_number, .id = e->id, .start = e->time};
	bool is_new;
	int err = map_number(&t->heads, heads__need(&t->heads, &key, &is_new), number);

	if (!err && is_new && t->heads.count > HEADS_MAX)
		return json_fail(&t->text, e->name.at, -E2BIG, "more than %u profiles", HEADS_MAX);
	return err;
}

/* µs */
static int read_time(const struct trace *t, struct json_value value, int64_t *ns)
{
	return json_time(&t->text, value, US_SCALE, 0, CDP_TIME_MAX, ns);
}

static int data_of(const struct trace *t, const struct event *e, struct json_value *data)
{
	*data = (struct json_value){0};
	return e->args.at ? json_members(&t->text, e->args, {"data", data}) : 0;
}

static int add_head(struct trace *t, const struct event *e)
{
	struct json_value data, start = {0}, whole = {0};
	uint32_t number;
	int64_t time = e->time;
	int err = find_head(t, e, &number) ?: data_of(t, e, &data);

	if (!err && json_type(data) == JSON_OBJECT)
		err = json_members(&t->text, data, {"startTime", &start}, {"cpuProfile", &whole});
	if (!err && json_type(whole) == JSON_OBJECT)
		err = json_members(&t->text, whole, {"startTime", &start});
	if (!err && json_type(start) == JSON_NUMBER && read_time(t, start, &time))
		time = e->time; /* of its event */
	if (err)
		return err;
	if (t->heads.data[number].begun)
		return json_fail(&t->text, e->name.at, -EBADMSG,
				 "two profiles of pid %lld have the same id",
				 (long long)e->pid_number);
	t->heads.data[number].begun = true;
	t->heads.data[number].tid = e->tid_number;
	t->heads.data[number].start = time;
	return 0;
}

static int add_chunk(struct trace *t, const struct event *e)
{
	struct chunk chunk = {.time = e->time, .order = t->chunks.count};
	int err = find_head(t, e, &chunk.head) ?: data_of(t, e, &chunk.data);

	if (err || !chunk.data.at)
		return err;
	return vec_push(&t->chunks, chunk);
}

static int event_numbers(const struct trace *t, struct event *e)
{
	int err = json_integer(&t->text, e->pid, "pid", 0, JSON_INTEGER_MAX, &e->pid_number)
			  ?: json_integer(&t->text, e->tid, "tid", 0, JSON_INTEGER_MAX,
					  &e->tid_number);

	e->time = 0;
	if (!err && e->ts.at)
		err = read_time(t, e->ts, &e->time);
	return err;
}

static bool is_span(const struct event *e)
{
	return json_is(e->phase, "\"X\"") && e->args.at &&
	       memmem(e->args.at, (size_t)(e->args.end - e->args.at), "\"cpuTimeNs\"", 11);
}

/* The time of a thread and its true numbers, from our own files. */
static int add_span(struct trace *t, const struct event *e)
{
	_cleanup_json_ struct json_tree *args = NULL;
	struct name *thread, *process;
	int64_t length = 0;
	int err = json_tree__parse(&t->text, e->args, &args);

	if (!err && e->dur.at)
		err = read_time(t, e->dur, &length);
	if (err)
		return err;
	thread = need_name(&t->threads, e->pid_number, e->tid_number);
	process = need_name(&t->processes, e->pid_number, 0);
	if (!thread || !process)
		return -ENOMEM;
	thread->is_own = process->is_own = true;
	thread->number = (uint32_t)json_tree__integer(args, "tid", 0, UINT32_MAX, e->tid_number);
	process->number = (uint32_t)json_tree__integer(args, "pid", 0, UINT32_MAX, e->pid_number);
	thread->end = e->time + length;
	thread->no_cpu = !json_tree__integer(args, "cpuTimeNs", 0, JSON_INTEGER_MAX, 1);
	return 0;
}

/* A whole profile in one event, as Chrome 58 to 66 wrote it. */
static int add_whole(struct trace *t, const struct event *e)
{
	struct event own = *e;

	own.id = e->args; /* it has none, and there is one of each thread */
	return add_head(t, &own) ?: add_chunk(t, &own);
}

static int take_event(struct trace *t, struct event *e,
		      int (*add)(struct trace *t, const struct event *e))
{
	if (!event_numbers(t, e))
		return add(t, e);
	t->frames.left_out[LEFT_OUT_BAD_EVENTS]++;
	return 0;
}

/* Most events of Chrome's traces are ignored. */
static int read_event(struct trace *t, struct json_value value)
{
	static const struct {
		const char *phase, *name;
		int (*add)(struct trace *t, const struct event *e);
	} kinds[] = {
		{"\"M\"", "\"process_name\"", add_name}, {"\"M\"", "\"thread_name\"", add_name},
		{"\"P\"", "\"Profile\"", add_head},	 {"\"P\"", "\"ProfileChunk\"", add_chunk},
		{"\"P\"", "\"CpuProfile\"", add_whole},	 {"\"I\"", "\"CpuProfile\"", add_whole},
	};
	struct event e;
	int err;

	if (json_type(value) != JSON_OBJECT) {
		t->frames.left_out[LEFT_OUT_BAD_EVENTS]++;
		return 0;
	}
	err = json_members(&t->text, value, {"name", &e.name}, {"ph", &e.phase}, {"pid", &e.pid},
			   {"tid", &e.tid}, {"id", &e.id}, {"ts", &e.ts}, {"dur", &e.dur},
			   {"args", &e.args});
	if (err)
		return err;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (json_is(e.phase, kinds[i].phase) && json_is(e.name, kinds[i].name))
			return take_event(t, &e, kinds[i].add);
	return is_span(&e) ? take_event(t, &e, add_span) : 0;
}

static const char *skip_commas(const struct trace *t, const char *at)
{
	while (at < t->text.end && strchr(" \t\r\n,", *at) && *at)
		at++;
	return at;
}

/* Whatever follows the last whole event but a comma was part of another one. */
static void note_cut(struct trace *t, const char *at)
{
	at = skip_commas(t, at);
	t->frames.left_out[LEFT_OUT_CUT] += (uint64_t)(t->text.end - at);
}

/* `open`: the array may end anywhere, since tracers are killed. */
static int read_events(struct trace *t, const char *at, bool open)
{
	const char *behind = NULL; /* the last whole event */
	struct json_walk walk;
	int more = json_walk__init(&walk, &t->text, at, JSON_ARRAY);

	while (!more && (more = json_walk__next(&walk)) > 0) {
		more = read_event(t, walk.value);
		if (more)
			return more;
		behind = walk.at;
	}
	if (!more || !open || !behind)
		return !more && open ? json_expect_end(&t->text, walk.at) : more;
	note_cut(t, behind);
	return 0;
}

/* An event of those that are not in an array; `at` gets behind it, or what is damaged. */
static int read_single(struct trace *t, const char **at)
{
	struct json_value event = {.at = *at};
	struct json_walk walk;
	int more = json_walk__init(&walk, &t->text, *at, JSON_OBJECT);
	const char *newline;

	while (!more && (more = json_walk__next(&walk)) > 0)
		more = 0;
	*at = event.end = walk.at;
	if (!more)
		return read_event(t, event);
	newline = memchr(event.at, '\n', (size_t)(t->text.end - event.at));
	*at = newline ? newline : t->text.end;
	if (newline)
		t->frames.left_out[LEFT_OUT_BAD_EVENTS]++;
	else
		note_cut(t, event.at);
	return more == -EBADMSG ? 0 : more;
}

static int read_singles(struct trace *t, const char *at)
{
	int err = 0;

	for (at = skip_commas(t, at); at < t->text.end && !err; at = skip_commas(t, at))
		err = read_single(t, &at);
	return err;
}

static int read_metadata(struct trace *t, struct json_value metadata)
{
	struct json_value own = {0}, period = {0}, realtime = {0}, recording = {0}, ahead = {0};
	int64_t ns = 0, us = 0;
	int err;

	if (json_type(metadata) != JSON_OBJECT)
		return 0;
	err = json_members(&t->text, metadata, {"$sysprof", &own});
	if (err || json_type(own) != JSON_OBJECT)
		return err;
	t->is_own = true;
	err = cdp_scripts__read(&t->scripts, &t->text, own, &t->frames);
	err = err
		      ?: json_members(&t->text, own, {"periodNs", &period},
				      {"startTimeRealtime", &realtime}, {"recording", &recording},
				      {"cpuDeltasAhead", &ahead});
	t->ahead = json_is(ahead, "true");
	if (!err && json_type(recording) == JSON_OBJECT)
		err = import_event(&t->text, recording, t->b);
	if (!err && period.at)
		err = json_integer(&t->text, period, "periodNs", 0, CDP_TIME_MAX, &ns);
	if (!err && realtime.at)
		err = json_integer(&t->text, realtime, "startTimeRealtime", 0, JSON_INTEGER_MAX,
				   &us);
	t->own_period = (uint64_t)ns;
	t->own_realtime = (uint64_t)us * 1000;
	return err;
}

/* The text ends within an object. */
static int read_cut(struct trace *t, const struct json_walk *walk, struct json_value events,
		    int error)
{
	t->frames.left_out[LEFT_OUT_NO_BRACKET]++;
	if (events.at) {
		note_cut(t, events.end);
		return read_events(t, events.at, false);
	}
	if (error != -EBADMSG || !json_walk__key_is(walk, "traceEvents") || !walk->value.at)
		return error;
	return read_events(t, walk->value.at, true);
}

static int read_text(struct trace *t)
{
	struct json_value events = {0};
	struct json_walk walk;
	const char *at = json_skip_spaces(&t->text, t->text.start);
	int more;

	if (at < t->text.end && *at == '[')
		return read_events(t, at, true);
	if (json_first_key((const uint8_t *)at, (size_t)(t->text.end - at),
			   (const char *const[]){"traceEvents", "ph", NULL}) == 1)
		return read_singles(t, at);
	more = json_walk__init(&walk, &t->text, at, JSON_OBJECT);
	while (!more && (more = json_walk__next(&walk)) > 0) {
		t->has_frames |= json_walk__key_is(&walk, "stackFrames");
		more = json_walk__key_is(&walk, "metadata") ? read_metadata(t, walk.value) : 0;
		if (more || !json_walk__key_is(&walk, "traceEvents"))
			continue;
		if (events.at)
			return json_fail(&t->text, walk.key.at, -EBADMSG,
					 "\"traceEvents\" is there twice");
		events = walk.value;
	}
	if (more)
		return read_cut(t, &walk, events, more);
	return json_expect_end(&t->text, walk.at) ?: read_events(t, events.at, false);
}

/* ---- one profile after the other ------------------------------------------------------------- */

static int compare_chunks(const void *a, const void *b, void *context)
{
	const struct head *heads = ((const struct trace *)context)->heads.data;
	const struct chunk *x = a, *y = b;

	return order_of(heads[x->head].start, heads[y->head].start) ?: ASCENDING(head)
	       ?: ASCENDING(time) ?: ASCENDING(order);
}

static uint32_t number_of(const struct name *name, int64_t number)
{
	return name->is_own ? name->number : (uint32_t)min_u64((uint64_t)number, UINT32_MAX);
}

static int process_of(struct trace *t, int64_t pid, struct process_id *process)
{
	struct name *name = need_name(&t->processes, pid, 0);

	if (!name)
		return -ENOMEM;
	if (!name->process.v)
		name->process = profile_builder__process(
			t->b, &(struct profile_process){
				      .pid = number_of(name, pid),
				      .name = name->text.v ? name->text
							   : profile_builder__string(
								     t->b, t->request->name),
				      .names = name->names,
				      .is_target = true,
			      });
	*process = name->process;
	return process->v ? 0 : -ENOMEM;
}

/*
 * The thread of a profile. A thread's samples are in order, so profiles that overlap in time are
 * two threads with one number.
 */
static int lane_of(struct trace *t, const struct head *head, struct process_id process,
		   uint32_t *number)
{
	struct name *name = need_name(&t->threads, head->pid, head->tid);
	uint32_t before = 0, count = 0;
	struct lane lane = {};

	if (!name)
		return -ENOMEM;
	for (uint32_t at = name->lane; at; before = at, at = t->lanes.data[at - 1].next) {
		*number = at - 1;
		if (t->lanes.data[*number].last <= head->start)
			return 0;
		if (++count == LANES_MAX)
			return json_fail(&t->text, t->text.start, -E2BIG,
					 "more than %d profiles of a thread at a time", LANES_MAX);
	}
	lane = (struct lane){.comm = name->text,
			     .end = name->end,
			     .is_own = name->is_own,
			     .no_cpu = name->no_cpu};
	lane.id = profile_builder__thread(t->b, process, number_of(name, head->tid),
					  !before && head->tid == head->pid, lane.comm,
					  (uint64_t)head->start);
	if (!lane.id.v || vec_push(&t->lanes, lane))
		return -ENOMEM;
	*number = (uint32_t)t->lanes.count - 1;
	*(before ? &t->lanes.data[before - 1].next : &name->lane) = *number + 1;
	return 0;
}

/* A whole profile has its own times; a chunk's are beside it, and in other versions in it. */
static int read_chunk(struct trace *t, struct cdp *c, const struct chunk *chunk, int64_t start,
		      int64_t *end)
{
	struct json_value profile, deltas, lines, end_time, own, nodes = {0}, inner_end = {0};
	struct cdp_columns columns = {};
	int err = json_members(&t->text, chunk->data, {"cpuProfile", &profile},
			       {"timeDeltas", &deltas}, {"lines", &lines}, {"endTime", &end_time},
			       {"$sysprof", &own});

	if (!err && json_type(own) == JSON_OBJECT)
		err = cdp_columns__own(&t->text, own, &columns);
	t->has_cpu |= columns.cpu.at != NULL;
	if (!err && json_type(profile) == JSON_OBJECT)
		err = json_members(&t->text, profile, {"nodes", &nodes},
				   {"samples", &columns.samples}, {"timeDeltas", &columns.deltas},
				   {"lines", &columns.lines}, {"endTime", &inner_end});
	columns.deltas = deltas.at ? deltas : columns.deltas;
	columns.lines = lines.at ? lines : columns.lines;
	end_time = json_type(end_time) == JSON_NUMBER ? end_time : inner_end;
	if (!err && json_type(end_time) == JSON_NUMBER)
		err = read_time(t, end_time, end);
	if (!err && nodes.at)
		err = cdp__nodes(c, nodes);
	if (!err && columns.samples.at)
		err = cdp__samples(c, &columns, start);
	return err;
}

static void note_session(struct trace *t, const struct cdp *c, int64_t start, int64_t end)
{
	t->start = t->start && t->start < start ? t->start : start;
	if (c->samples.count && end < c->samples.data[c->samples.count - 1].time)
		end = c->samples.data[c->samples.count - 1].time;
	t->end = t->end > end ? t->end : end;
	if (c->samples.count > t->period_samples) {
		t->period = cdp__period(c);
		t->period_samples = c->samples.count;
	}
}

static int emit_profile(struct trace *t, struct cdp *c, const struct head *head, int64_t end)
{
	uint32_t number = 0;
	int err = lane_of(t, head, c->process, &number);
	struct lane *lane;

	if (err)
		return err;
	lane = &t->lanes.data[number];
	if (!end)
		end = lane->end;
	c->by_time = !t->is_own && !lane->is_own; /* ours may be cut before it says so */
	if (c->by_time)
		import_weigh_by_cpu(t->b);
	err = cdp__emit(c, lane->id, lane->comm, end, t->has_cpu || lane->no_cpu);
	note_session(t, c, head->start, end);
	if (c->samples.count)
		lane->last = c->samples.data[c->samples.count - 1].time;
	return err;
}

/* The first chunks of a recording before the trace are not in it: what follows has no nodes. */
static int read_profile(struct trace *t, const struct chunk *chunks, size_t count)
{
	const struct head head = t->heads.data[chunks->head];
	struct process_id process;
	int64_t end = 0;
	struct cdp c;
	int err = process_of(t, head.pid, &process);

	if (err)
		return err;
	cdp__init(&c, &t->text, &t->frames, &t->call_frames, &t->scripts, process);
	for (size_t i = 0; i < count && !err; i++)
		err = read_chunk(t, &c, &chunks[i], head.start, &end);
	if (!err)
		err = cdp__settle(&c);
	if (!err && (head.begun || c.counted))
		err = emit_profile(t, &c, &head, end);
	cdp__fini(&c);
	return err;
}

static bool is_empty_array(const struct json_text *text)
{
	const char *at = json_skip_spaces(text, text->start);

	if (at == text->end || *at != '[')
		return false;
	at = json_skip_spaces(text, at + 1);
	return at < text->end && *at == ']';
}

/* Traces of programs that have other files, which are read. */
static const char *describe_foreign(const struct trace *t)
{
	static const struct {
		const char *category, *what;
	} programs[] = {
		{"\"py-spy\"", "a trace of py-spy, which has no CPU profiles; `py-spy record -f "
			       "speedscope` or `-f raw` writes what is read"},
		{"\"node,node.",
		 "a trace of Node.js without CPU profiles; `node --cpu-prof` writes "
		 "what is read"},
	};
	const size_t size = min_u64((uint64_t)(t->text.end - t->text.start), FOREIGN_BYTES);

	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		if (memmem(t->text.start, size, programs[i].category, strlen(programs[i].category)))
			return programs[i].what;
	if (t->has_frames)
		return "a trace with samples of Hermes' kind (stackFrames), which are not read; "
		       "speedscope opens it";
	return is_empty_array(&t->text)
		       ? "an empty JSON array, which has neither events nor profiles"
		       : "a Chrome trace without CPU profiles (ProfileChunk "
			 "events); Perfetto and speedscope show its events";
}

static int read_profiles(struct trace *t)
{
	int err = 0;

	if (!t->chunks.count && t->frames.left_out[LEFT_OUT_CUT])
		return json_fail(&t->text, t->text.end, -EBADMSG,
				 "the file is cut off before the end of a ProfileChunk event");
	if (!t->chunks.count && !t->is_own)
		return json_fail(&t->text, t->text.start, -EPROTONOSUPPORT, "%s",
				 describe_foreign(t));
	vec_sort_r(&t->chunks, compare_chunks, t);
	for (size_t i = 0, next; i < t->chunks.count && !err; i = next) {
		for (next = i + 1;
		     next < t->chunks.count && t->chunks.data[next].head == t->chunks.data[i].head;)
			next++;
		err = read_profile(t, &t->chunks.data[i], next - i);
	}
	return err;
}

static void set_session(struct trace *t)
{
	struct profile *session = profile_builder__session(t->b);

	session->start = (uint64_t)t->start;
	session->end = (uint64_t)t->end;
	session->period = t->own_period || session->untimed ? t->own_period : t->period;
	session->start_realtime = t->own_realtime;
	session->finished_symbols = true;
	session->idle_known = true;
	session->weight_ahead = !t->has_cpu || t->ahead;
	if (!t->has_cpu)
		profile_builder__meta(t->b, META_CPU_TIME, CDP_CPU_TIME);
}

static int read_trace(const struct import_request *request, struct import_failure *failure)
{
	const char *bytes = (const char *)request->bytes;
	struct trace t = {
		.request = request,
		.b = request->builder,
		.frames = {.b = request->builder, .left_out = {[LEFT_OUT_REST] = request->cut > 0}},
		.text = {bytes, bytes + request->size, failure},
	};
	int err = read_text(&t) ?: read_profiles(&t);

	set_session(&t);
	frames__fini(&t.frames);
	cdp_call_frames__fini(&t.call_frames);
	cdp_scripts__fini(&t.scripts);
	names__fini(&t.processes);
	names__fini(&t.threads);
	heads__fini(&t.heads);
	vec_free(&t.chunks);
	vec_free(&t.lanes);
	return err;
}

const struct importer trace_importer = {
	.name = "trace",
	.description = "Chrome trace with CPU profiles: DevTools, sysprof",
	.reads_cut = true,
	.recognizes = recognizes_trace,
	.read = read_trace,
};
