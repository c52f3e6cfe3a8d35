/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * .cpuprofile: Node, Deno, Bun, Chrome, wasmbrowsertest, VS Code, and ours, whose "$sysprof" has
 * the thread and its CPU time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "formats/in/cdp.h"
#include "formats/in/import.h"

#define US_MAX		(CDP_TIME_MAX / 1000)
#define US_MAX_REALTIME (INT64_MAX / 2000)
#define US_SCALE	3
#define SECOND_SCALE	9

struct members {
	struct json_value nodes, start, end, own;
	struct cdp_columns columns;
	struct json_value head; /* instead of nodes, before Chrome 57: other units of times */
};

/* Data that only our own files have. */
struct identity {
	bool present;
	uint32_t pid, tid;
	bool is_main, ahead, is_merged;
	char *comm, *process;
	uint64_t period, realtime_us;
	int64_t start_us, end_us; /* of the recording */
	struct profile_names names;
	struct cdp_columns columns;
	struct cdp_scripts scripts;
};

static bool recognizes_cpuprofile(const uint8_t *bytes, size_t size)
{
	return import_json_kind(bytes, size) == IMPORT_JSON_CPUPROFILE;
}

static int read_members(const struct json_text *text, struct members *m)
{
	struct cdp_columns *columns = &m->columns;
	/* to the end: a file that is cut off is reported as that, not by what is missing in it */
	int err = json_document(text, {"nodes", &m->nodes}, {"startTime", &m->start},
				{"endTime", &m->end}, {"samples", &columns->samples},
				{"timeDeltas", &columns->deltas}, {"timestamps", &columns->times},
				{"$sysprof", &m->own}, {"head", &m->head});

	if (err)
		return err;
	if (!m->nodes.at && !m->head.at)
		return json_fail(text, text->start, -EBADMSG, "a .cpuprofile without nodes");
	return 0;
}

static void identity__fini(struct identity *id)
{
	free(id->comm);
	free(id->process);
	cdp_scripts__fini(&id->scripts);
}

static int read_recording(const struct json_text *text, struct json_value value,
			  struct identity *id)
{
	_cleanup_json_ struct json_tree *tree = NULL;
	int err = json_tree__parse(text, value, &tree);

	if (err)
		return err;
	id->start_us = json_tree__integer(tree, "startTime", 0, US_MAX, 0);
	id->end_us = json_tree__integer(tree, "endTime", 0, US_MAX, 0);
	return 0;
}

static int read_number(const struct json_text *text, struct json_value value, const char *what,
		       int64_t max, uint64_t *number)
{
	int64_t integer = 0;
	int err = value.at ? json_integer(text, value, what, 0, max, &integer) : 0;

	*number = (uint64_t)integer;
	return err;
}

static int read_identity(const struct json_text *text, struct json_value own, struct identity *id,
			 struct frames *frames)
{
	struct profile_builder *b = frames->b;
	struct json_value pid, tid, comm, process, is_main, realtime, period, recording, ahead,
		merged;
	uint64_t pid_number = 0, tid_number = 0;
	int err = json_members(text, own, {"pid", &pid}, {"tid", &tid}, {"comm", &comm},
			       {"process", &process}, {"isMainThread", &is_main},
			       {"startTimeRealtime", &realtime}, {"periodNs", &period},
			       {"recording", &recording}, {"cpuDeltasAhead", &ahead},
			       {"mergedThreads", &merged})
			  ?: cdp_columns__own(text, own, &id->columns)
			  ?: cdp_scripts__read(&id->scripts, text, own, frames)
			  ?: import_names(text, own, b, &id->names);

	id->present = true;
	if (!err)
		err = read_number(text, pid, "pid", UINT32_MAX, &pid_number)
			?: read_number(text, tid, "tid", UINT32_MAX, &tid_number)
			?: read_number(text, realtime, "startTimeRealtime", US_MAX_REALTIME,
				       &id->realtime_us)
			?: read_number(text, period, "periodNs", CDP_TIME_MAX, &id->period);
	if (!err && comm.at)
		err = json_string_copy(text, comm, &id->comm);
	if (!err && process.at)
		err = json_string_copy(text, process, &id->process);
	id->pid = (uint32_t)pid_number;
	id->tid = (uint32_t)tid_number;
	id->is_main = json_is(is_main, "true");
	id->ahead = json_is(ahead, "true");
	id->is_merged = merged.at != NULL;
	if (!id->is_merged && (id->ahead || !id->columns.cpu.at)) /* as of old files */
		profile_builder__meta(b, META_CPU_TIME, CDP_CPU_TIME);
	if (!err && recording.at)
		err = read_recording(text, recording, id) ?: import_event(text, recording, b);
	return err;
}

/*
 * With a fraction, as a time in ns. A JavaScript number of µs since 1970 has fractions of a
 * quarter, which writers round at one end and not at the other: these are whole µs.
 */
static int read_time(const struct json_text *text, struct json_value value, int scale, int64_t *ns)
{
	int err;

	*ns = 0;
	if (!value.at || json_is(value, "null"))
		return 0;
	err = json_time(text, value, scale, CDP_TIME_MIN, CDP_TIME_MAX, ns);
	if (*ns / 1000 >= 1LL << 50)
		*ns = (*ns + 500) / 1000 * 1000;
	return err;
}

static void set_session(struct profile_builder *b, const struct identity *id, int64_t start,
			int64_t end, uint64_t period)
{
	struct profile *session = profile_builder__session(b);
	/* the format has no other date, and other converters take the start too */
	uint64_t realtime = id->present ? id->realtime_us * 1000 : (uint64_t)start;

	session->start = (uint64_t)start;
	session->end = (uint64_t)end;
	session->period = id->present ? id->period : period;
	session->finished_symbols = true;
	session->idle_known = true;
	session->weight_ahead = !id->columns.cpu.at || id->ahead;
	if (id->start_us && id->start_us * 1000 < start) {
		session->start = (uint64_t)id->start_us * 1000;
		realtime -= min_u64(realtime, (uint64_t)start - session->start);
	}
	session->end = max_u64(session->end, (uint64_t)id->end_us * 1000);
	session->start_realtime = realtime;
	if (!id->present)
		profile_builder__meta(b, META_CPU_TIME, CDP_CPU_TIME);
}

static int read_samples(struct cdp *c, const struct members *m, int64_t start, int64_t end)
{
	const struct cdp_columns *columns = &m->columns;
	int err = m->nodes.at ? cdp__nodes(c, m->nodes) : cdp__tree(c, m->head);

	if (!err && columns->samples.at && !columns->deltas.at && !columns->times.at)
		err = cdp__untimed_samples(c, columns->samples, start, end);
	else if (!err && columns->samples.at)
		err = cdp__samples(c, columns, start);
	if (!err && !c->samples.count)
		err = cdp__hits(c, start, end);
	if (!err && !c->samples.count && !columns->samples.at)
		return json_fail(c->text, c->text->start, -EBADMSG,
				 "a .cpuprofile without samples");
	return err ?: cdp__settle(c);
}

/* Times of samples may be of another clock than those of begin and end. */
static void set_times(const struct cdp *c, const struct members *m, int64_t *start, int64_t *end)
{
	const struct cdp_sample *samples = c->samples.data;
	int64_t length = *end > *start ? *end - *start : 0;

	if (m->columns.deltas.at || !m->columns.times.at || !c->samples.count)
		return;
	*start = samples[0].time;
	*end = *start + length; /* each is at most CDP_TIME_MAX */
	if (*end < samples[c->samples.count - 1].time)
		*end = 0;
}

/* Times below 0 are of no clock: the first one becomes 0. */
static void shift_times(struct cdp *c, int64_t *start, int64_t *end)
{
	int64_t first = *start;

	if (c->samples.count && c->samples.data[0].time < first)
		first = c->samples.data[0].time;
	if (first < 0) {
		cdp__shift_times(c, -first);
		*start = 0;
		*end -= *end ? first : 0;
	}
	if (*end < 0)
		*end = 0;
}

static int read_profile(const struct import_request *request, const struct json_text *text,
			struct members *m, const struct identity *id, struct frames *frames)
{
	const char *name = id->process ? id->process : request->name;
	struct profile_builder *b = request->builder;
	struct profile_process process = {.pid = id->pid, .is_target = true, .names = id->names};
	int scale = m->nodes.at ? US_SCALE : SECOND_SCALE;
	struct string_id comm;
	struct thread_id thread;
	int64_t start, end;
	struct cdp_call_frames call_frames = {};
	struct cdp c;
	int err;

	err = read_time(text, m->start, scale, &start) ?: read_time(text, m->end, scale, &end);
	if (err)
		return err;
	m->columns.cpu = id->columns.cpu;
	m->columns.ticks = id->columns.ticks;
	m->columns.events = id->columns.events;
	m->columns.lines = id->columns.lines;
	process.name = profile_builder__string(b, name);
	process.start = (uint64_t)start;
	comm = id->comm ? profile_builder__string(b, id->comm) : process.name;
	cdp__init(&c, text, frames, &call_frames, &id->scripts,
		  profile_builder__process(b, &process));
	c.time_min = CDP_TIME_MIN;
	/* a title that looks like a path is not the file of the code */
	c.program = id->present && (!id->ahead || id->is_merged) ? name + strspn(name, "/") : NULL;
	err = read_samples(&c, m, start, end);
	set_times(&c, m, &start, &end);
	shift_times(&c, &start, &end);
	thread = profile_builder__thread(b, c.process, id->tid, id->present ? id->is_main : true,
					 comm, (uint64_t)start);
	c.by_time = !err && !id->present && !c.untimed && cdp__is_uneven(&c, end);
	if (c.by_time)
		import_weigh_by_cpu(b);
	if (!err)
		err = cdp__emit(&c, thread, comm, end, id->columns.cpu.at);
	set_session(b, id, start, end, cdp__period(&c));
	profile_builder__session(b)->untimed |= c.untimed;
	cdp__fini(&c);
	cdp_call_frames__fini(&call_frames);
	return err;
}

static int read_cpuprofile(const struct import_request *request, struct import_failure *failure)
{
	const char *bytes = (const char *)request->bytes;
	const struct json_text text = {bytes, bytes + request->size, failure};
	struct identity id = {};
	struct members m = {};
	struct frames frames = {.b = request->builder};
	int err = read_members(&text, &m);

	if (!err && m.own.at)
		err = read_identity(&text, m.own, &id, &frames);
	err = err ?: read_profile(request, &text, &m, &id, &frames);
	frames__fini(&frames);
	identity__fini(&id);
	return err;
}

const struct importer cpuprofile_importer = {
	.name = "cpuprofile",
	.description = "Chrome CPU profile: Node, Deno, Bun, Chrome, sysprof",
	.recognizes = recognizes_cpuprofile,
	.read = read_cpuprofile,
};
