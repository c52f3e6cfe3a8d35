/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of perf script, as perf 4 to 7 and simpleperf print it: samples with their times, periods
 * and stacks. Which fields a line has is decided line by line (perf_lines.h).
 *
 * A process has a life for each name: an execve begins one. Records of names (--show-task-events)
 * mark those of an execve. Without such records, any new name of the main thread begins a life.
 *
 * Two passes: the first lines of samples; and, of those that are taken (perf_rows.h), in order of
 * time, the stacks (perf_stacks.h).
 */
#include <errno.h>
#include <stdio.h>

#include "base/map.h"
#include "base/minmax.h"
#include "base/order.h"
#include "formats/in/frames.h"
#include "formats/in/import.h"
#include "formats/in/owners.h"
#include "formats/in/perf_lines.h"
#include "formats/in/perf_rows.h"
#include "formats/in/perf_stacks.h"

#define RECOGNIZED_LINES 64
#define RECOGNIZED_BYTES 65536
#define ADDRESS_WIDTH	 16
#define CONTROLS_OF	 32 /* of as many bytes of a text at most one is a character of control */
#define REGISTERS	 " ABI:" /* what they begin with */
#define RULE		 "# ========"
#define HEADER_BEGINS	 "# captured on" /* below a rule */

/* The process of a thread, from records. */
struct task {
	uint32_t tid, pid;
};
DEFINE_MAP_BY(tasks, struct task, uint32_t, tid);

/* A life of a process is called as its main thread, once that had a sample. */
struct life {
	struct string_id name; /* 0: unknown */
	bool of_main;
};

/* The last life of a process. */
struct last_life {
	uint32_t pid, life;
};
DEFINE_MAP_BY(last_lives, struct last_life, uint32_t, pid);

/* A record of an execve. */
struct exec {
	uint64_t time;
	size_t order; /* of the block behind it */
	struct string_id name;
	uint32_t pid;
};

struct script {
	struct profile_builder *b;
	struct import_failure *failure;
	const char *start, *end;
	struct frames frames;
	struct owners owners;
	struct perf_stacks stacks;
	struct perf_rows rows;
	struct tasks tasks;
	struct last_lives last_lives;
	VEC(struct life) lives; /* the first one: of samples without a pid */
	VEC(struct exec) execs;
	unsigned int facts; /* which of the header's were read */
	bool is_open;	    /* the last row may get frames */
	bool skips;	    /* until the next empty line or sample */
	bool has_lines, has_stacks;
	bool has_comms; /* records of new names */
	bool has_tabs;	/* before frames */
};

/* ---- the first pass: lines ------------------------------------------------------------------- */

static struct string_id intern(struct script *s, struct span text)
{
	return profile_builder__string(s->b, frames__text(&s->frames, text.at, span_size(text)));
}

/* Of a sample without a call chain registers (-F +iregs) are behind the frame. */
static struct span without_registers(struct span body)
{
	const char *at = memmem(body.at, span_size(body), REGISTERS, strlen(REGISTERS));

	return (struct span){body.at, at ?: body.end};
}

static int add_block(struct script *s, const struct perf_fields *f, struct span body)
{
	struct perf_row row = {
		.time = f->time,
		.period = f->period,
		.body = without_registers(body),
		.comm = intern(s, f->comm),
		.pid = f->pid,
		.tid = f->tid,
		.has_pid = f->has_pid,
		.has_tid = f->has_tid,
		.cpu = f->cpu,
		.has_time = f->has_time,
		.has_period = f->has_period,
		.in_line = true,
	};

	s->is_open = true;
	s->skips = false;
	return perf_rows__add(&s->rows, &row, f->event);
}

/* The number of a field behind the stack, such as phys_addr, where frames begin with a tab. */
static bool is_field(const struct script *s, struct span line)
{
	struct perf_frame frame;

	return s->has_tabs && *line.at == ' ' && perf_line__frame(line, &frame) &&
	       frame.dso.at == frame.dso.end && !frame.inlined;
}

static void end_block(struct script *s)
{
	s->is_open = false;
	s->skips = true;
}

static int take_frame(struct script *s, struct span line)
{
	static const struct perf_fields nothing = {.comm = {"", ""}, .event = {"", ""}};
	struct perf_row *block;
	int err = 0;

	if (s->skips)
		return 0;
	if (s->is_open && is_field(s, line)) {
		end_block(s);
		return 0;
	}
	if (!s->is_open && s->has_lines) {
		s->frames.left_out[LEFT_OUT_NO_FIELDS]++;
		return 0;
	}
	if (!s->is_open) /* -F ip,sym: all that there is */
		err = add_block(s, &nothing, line);
	if (err)
		return err;
	s->has_stacks = true;
	s->has_tabs |= *line.at == '\t';
	block = &s->rows.samples.data[s->rows.samples.count - 1];
	block->body = (struct span){block->in_line ? line.at : block->body.at, line.end};
	block->in_line = false;
	block->root = line.at;
	return 0;
}

/* A source line, what belongs to a record, or fields behind a stack: " ABI:2    AX:0x1". */
static void take_indented(struct script *s, struct span line)
{
	struct perf_row *block = s->is_open ? &s->rows.samples.data[s->rows.samples.count - 1]
					    : NULL;

	if (block && !block->in_line && span_begins(line, REGISTERS))
		end_block(s);
	else if (block && !block->in_line)
		block->body.end = line.end;
	s->frames.left_out[LEFT_OUT_NO_FIELDS] += !s->is_open && !s->skips;
}

static int take_comm(struct script *s, const struct perf_fields *f, uint32_t pid)
{
	struct exec exec = {.time = f->time, .order = s->rows.samples.count, .pid = pid};
	struct span name;

	if (!perf_line__comm(f->rest, &name))
		return 0;
	s->has_comms = true;
	exec.name = intern(s, name);
	return exec.name.v ? vec_push(&s->execs, exec) : 0;
}

static int take_record(struct script *s, const struct perf_fields *f)
{
	uint64_t lost = perf_line__lost(f->rest);
	struct task wanted = {}, *task;

	end_block(s);
	s->frames.left_out[LEFT_OUT_NO_FIELDS] += perf_line__is_deferred(f->rest);
	if (lost)
		profile_builder__lost(s->b, LOST_SAMPLES, lost, 0, f->time);
	if (!perf_line__task(f->rest, &wanted.pid, &wanted.tid))
		return 0;
	task = tasks__need(&s->tasks, &wanted, NULL);
	if (!task)
		return -ENOMEM;
	task->pid = wanted.pid;
	return take_comm(s, f, wanted.pid);
}

/* "# hostname : name", of --header; the first of several. */
static void take_fact(struct script *s, struct span line)
{
	static const struct {
		const char *begin, *key, *before;
	} facts[] = {
		{"# hostname : ", META_HOSTNAME, ""},
		{"# os release : ", META_KERNEL_RELEASE, ""},
		{"# perf version : ", META_PRODUCT, "perf "},
		{"# arch : ", META_ARCHITECTURE, ""},
		{"# nrcpus online : ", META_CPU_COUNT, ""},
		{"# cpudesc : ", META_CPU, ""},
		{"# cmdline : ", META_COMMAND, ""},
	};
	char text[1024];

	line = trim_right(line);
	for (unsigned int i = 0; i < sizeof(facts) / sizeof(*facts); i++) {
		struct span value = {line.at + strlen(facts[i].begin), line.end};

		if (!span_begins(line, facts[i].begin) || s->facts & 1u << i)
			continue;
		s->facts |= 1u << i;
		snprintf(text, sizeof(text), "%s%.*s", facts[i].before,
			 (int)min_u64(span_size(value), sizeof(text)), value.at);
		profile_builder__meta(s->b, facts[i].key, text);
	}
}

static int take_line(struct script *s, struct span line, const char *next)
{
	struct perf_fields fields;
	enum perf_line kind = perf_line__read(line, (struct span){next, s->end}, &fields);

	s->has_lines |= kind == PERF_LINE_SAMPLE || kind == PERF_LINE_OTHER;
	switch (kind) {
	case PERF_LINE_SAMPLE:
		return add_block(s, &fields, fields.rest);
	case PERF_LINE_FRAME:
		return take_frame(s, line);
	case PERF_LINE_RECORD:
		return take_record(s, &fields);
	case PERF_LINE_COMMENT:
		take_fact(s, line);
		return 0;
	case PERF_LINE_EMPTY:
		s->is_open = s->skips = false;
		return 0;
	case PERF_LINE_INDENTED:
		take_indented(s, line);
		return 0;
	case PERF_LINE_OTHER:
		s->frames.left_out[LEFT_OUT_NO_FIELDS]++;
		end_block(s);
		return 0;
	}
	return 0;
}

/* The rule alone may be the end of a header whose begin was cut off. */
static bool is_header(struct span text)
{
	return span_begins(text, RULE "\n" HEADER_BEGINS) ||
	       span_begins(text, RULE "\r\n" HEADER_BEGINS);
}

/* A header has facts between two rules, and perhaps a command in several lines. NULL: none. */
static const char *header_end(const char *at, const char *end)
{
	const char *rule = is_header((struct span){at, end})
				   ? memmem(at + strlen(RULE), (size_t)(end - at) - strlen(RULE),
					    "\n" RULE, strlen(RULE) + 1)
				   : NULL;

	return rule ? rule + 1 : NULL;
}

/* A line without an end was cut, unless a dso ends it. */
static void drop_last_line(struct script *s)
{
	const char *newline = memrchr(s->start, '\n', (size_t)(s->end - s->start));
	const char *end = newline ? newline + 1 : s->start;

	if (end == s->end || s->end[-1] == ')')
		return;
	s->frames.left_out[LEFT_OUT_CUT] += (uint64_t)(s->end - end);
	s->end = end;
}

static struct perf_frame root_of(const struct script *s, const struct perf_row *b)
{
	struct perf_frame root = {};

	if (b->root)
		perf_line__frame((struct span){b->root, line_end(b->root, s->end)}, &root);
	return root;
}

/* Of unknown code the addresses count. */
static bool is_same_root(const struct perf_frame *a, const struct perf_frame *b)
{
	if (a->symbol.at == a->symbol.end && a->address != b->address)
		return false;
	return is_same_span(a->symbol, b->symbol) && is_same_span(a->dso, b->dso);
}

/*
 * Is the last stack, which has no empty line behind it, whole? Editors drop an empty line at the
 * end. A stack that was cut has a root that few others have.
 */
static bool is_last_whole(const struct script *s)
{
	const struct perf_row *last = s->rows.samples.data + s->rows.samples.count - 1;
	const struct perf_frame root = root_of(s, last);
	size_t same = 0;

	for (const struct perf_row *b = s->rows.samples.data; b < last && last->root; b++) {
		const struct perf_frame other = root_of(s, b);

		same += b->root && is_same_root(&root, &other);
	}
	return s->rows.samples.count == 1
		       ? !s->frames.left_out[LEFT_OUT_CUT] && !s->frames.left_out[LEFT_OUT_REST]
		       : 2 * same > s->rows.samples.count - 1;
}

static void drop_cut(struct script *s, const char *block)
{
	if (!s->is_open || !s->has_stacks || is_last_whole(s))
		return;
	s->frames.left_out[LEFT_OUT_CUT] += (uint64_t)(s->end - block);
	perf_rows__drop_last(&s->rows);
}

static int read_lines(struct script *s)
{
	const char *rule = s->start, *block = s->start; /* the end of a header; the last block */
	int err = 0;

	drop_last_line(s);
	for (const char *at = s->start, *newline; at < s->end && !err; at = newline + 1) {
		size_t blocks = s->rows.samples.count;
		struct span line = {at, newline = line_end(at, s->end)};

		if (at > rule || at == s->start)
			rule = header_end(at, s->end) ?: rule;
		if (at < rule) {
			s->is_open = false;
			take_fact(s, line);
			err = perf_rows__set_by(&s->rows, line);
		} else {
			err = take_line(s, line, newline < s->end ? newline + 1 : s->end);
		}
		block = s->rows.samples.count > blocks ? at : block;
	}
	if (!err)
		drop_cut(s, block);
	if (!err && s->frames.left_out[LEFT_OUT_NO_FIELDS] > 2 * s->rows.samples.count)
		return import_fail(
			s->failure, 0, -EBADMSG,
			"text with more than two lines for each sample that are no part of it");
	return err;
}

DEFINE_ORDER(compare_execs, struct exec, ASCENDING(time) ?: ASCENDING(order));

/* ---- samples --------------------------------------------------------------------------------- */

static void settle_pid(const struct script *s, struct perf_row *b)
{
	const struct task *task = b->has_pid ? NULL : tasks__find(&s->tasks, b->tid);

	if (!task)
		return;
	b->pid = task->pid;
	b->has_pid = true;
}

static int begin_life(struct script *s, uint32_t pid, struct life life)
{
	struct last_life wanted = {.pid = pid},
			 *last = last_lives__need(&s->last_lives, &wanted, NULL);

	if (!last)
		return -ENOMEM;
	last->life = (uint32_t)s->lives.count;
	return vec_push(&s->lives, life);
}

/* Is the comm of a thread without a name, as perf prints it? */
static bool is_made_up(const struct script *s, const struct perf_row *b)
{
	char made_up[16];

	snprintf(made_up, sizeof(made_up), ":%u", b->tid);
	return !strcmp(profile_builder__get_string(s->b, b->comm), made_up);
}

static int find_life(struct script *s, struct perf_row *b)
{
	bool is_main = b->pid == b->tid && b->comm.v && !is_made_up(s, b);
	struct last_life *last = last_lives__find(&s->last_lives, b->pid);
	struct life *life = last ? &s->lives.data[last->life] : NULL;
	int err = 0;

	if (!life || (is_main && life->of_main && !s->has_comms && life->name.v != b->comm.v))
		err = begin_life(s, b->pid, (struct life){b->comm, is_main});
	else if (!life->name.v || (is_main && !life->of_main))
		*life = (struct life){b->comm, is_main};
	if (!err)
		b->life = last_lives__find(&s->last_lives, b->pid)->life;
	return err;
}

static bool is_before(const struct exec *exec, const struct perf_row *b)
{
	return exec->time < b->time || (exec->time == b->time && exec->order <= b->order);
}

static int find_lives(struct script *s)
{
	int err = vec_push(&s->lives, (struct life){});
	size_t e = 0;

	for (size_t i = 0; i < s->execs.count && s->rows.has_deltas; i++)
		s->execs.data[i].time = 0;
	vec_sort(&s->execs, compare_execs);
	for (size_t i = 0; i < s->rows.samples.count && !err; i++) {
		struct perf_row *b = &s->rows.samples.data[i];

		for (; e < s->execs.count && is_before(&s->execs.data[e], b) && !err; e++)
			err = begin_life(s, s->execs.data[e].pid,
					 (struct life){s->execs.data[e].name, true});
		settle_pid(s, b);
		if (!err && b->has_pid)
			err = find_life(s, b);
	}
	return err;
}

/* A thread without a number is one by its name. */
static int thread_of(struct script *s, const struct perf_row *b, struct owner_thread **thread,
		     struct process_id *process)
{
	const struct sample_owner owner = {
		.pid = b->pid,
		.tid = b->tid,
		.process = s->lives.data[b->life].name,
		.thread = {b->has_tid && b->tid ? 0 : b->comm.v},
	};
	int err = owners__thread(&s->owners, &owner, b->comm, thread)
			  ?: owners__process(&s->owners, &owner, process);

	if (!err && b->comm.v && (*thread)->name.v != b->comm.v) {
		(*thread)->name = b->comm;
		profile_builder__thread_name(s->b, (*thread)->id, b->comm);
	}
	return err;
}

static int add_sample(struct script *s, struct perf_row *b)
{
	struct profile_sample row = {.kind = SAMPLE_CPU, .end = STACK_END_ROOT};
	struct owner_thread *thread;
	struct process_id process;
	int err;

	err = thread_of(s, b, &thread, &process)
		      ?: perf_stacks__read(&s->stacks, b->body, b->in_line, process, &row.stack);
	if (err)
		return err;
	row.comm = thread->name;
	row.cpu = b->cpu;
	row.time = s->rows.is_timed ? b->time : s->owners.start + ++thread->rows;
	perf_rows__weigh(&s->rows, b, &row);
	return frames__sample(&s->frames, thread->id, &row, s->failure,
			      (uint64_t)(b->body.at - s->start));
}

static int add_samples(struct script *s)
{
	int err = find_lives(s);

	for (size_t i = 0; i < s->rows.samples.count && !err; i++)
		err = add_sample(s, &s->rows.samples.data[i]);
	return err;
}

/* ---- the session ----------------------------------------------------------------------------- */

static void set_end(struct script *s)
{
	struct profile *session = profile_builder__session(s->b);

	session->end = session->start;
	for (uint32_t i = 1; i <= profile_builder__thread_count(s->b); i++) {
		const struct builder_samples samples =
			profile_builder__samples(s->b, (struct thread_id){i}, SAMPLE_CPU);

		if (samples.count)
			session->end = max_u64(session->end, samples.time[samples.count - 1]);
	}
}

static int read_all(struct script *s)
{
	int err = read_lines(s);

	if (err)
		return err;
	err = perf_rows__settle(&s->rows);
	if (err == -ENODATA)
		return import_fail(s->failure, (uint64_t)(s->end - s->start), -EBADMSG,
				   "it ends before the first sample does");
	if (err)
		return err;
	perf_rows__describe(&s->rows);
	s->owners.start = profile_builder__session(s->b)->start;
	err = add_samples(s);
	set_end(s);
	return err;
}

static int read_perf_script(const struct import_request *request, struct import_failure *failure)
{
	struct script s = {
		.b = request->builder,
		.failure = failure,
		.start = (const char *)request->bytes,
		.end = (const char *)request->bytes + request->size,
		.frames = {.b = request->builder, .left_out = {[LEFT_OUT_REST] = request->cut > 0}},
		.owners = {.b = request->builder},
	};
	int err;

	s.rows = (struct perf_rows){.b = s.b, .frames = &s.frames};
	s.stacks = (struct perf_stacks){s.b, &s.frames, failure, .start = s.start};
	s.owners.program = profile_builder__string(s.b, request->name);
	err = read_all(&s);
	perf_stacks__fini(&s.stacks);
	frames__fini(&s.frames);
	owners__fini(&s.owners);
	perf_rows__fini(&s.rows);
	tasks__fini(&s.tasks);
	last_lives__fini(&s.last_lives);
	vec_free(&s.lives);
	vec_free(&s.execs);
	return err;
}

/* A sample with an event and a time, or a frame. */
static bool is_surely_sample(const struct perf_fields *f)
{
	struct perf_frame frame;

	return f->has_tid && f->event.at < f->event.end &&
	       (f->has_time || (perf_line__frame(f->rest, &frame) && frame.dso.at < frame.dso.end));
}

/* Other lists have a number and a name, too. An address is in a wide column behind a tab. */
static bool is_surely_frame(struct span line)
{
	struct perf_frame frame;

	return perf_line__frame(line, &frame) &&
	       (*line.at == '\t' || frame.inlined || frame.dso.at < frame.dso.end ||
		frame.symbol.at - line.at > ADDRESS_WIDTH);
}

/* A name of a task may have a character of control; of fields of messages every few bytes are one. */
static bool is_binary(const uint8_t *bytes, size_t size)
{
	size_t controls = 0;

	size = min_u64(size, RECOGNIZED_BYTES);
	for (size_t i = 0; i < size; i++)
		controls += bytes[i] < ' ' && !memchr("\t\n\r\033", bytes[i], 4);
	return controls > size / CONTROLS_OF;
}

/* A header; such a sample; or one with a frame below it. */
static bool recognizes_perf_script(const uint8_t *bytes, size_t size)
{
	const char *start = (const char *)bytes, *at = start;
	const char *end = at + min_u64(size, RECOGNIZED_BYTES);
	bool after_sample = false; /* -F ip,sym: frames behind an empty line */

	/* all whole pprof files have a zero, and names that may look like lines */
	if (memchr(bytes, 0, size) || is_binary(bytes, size))
		return false;
	if (is_header((struct span){at, end}))
		return true;
	for (unsigned int lines = 0; at < end && lines < RECOGNIZED_LINES; lines++) {
		struct span line = {at, line_end(at, end)};
		struct perf_fields f;
		enum perf_line kind;

		at = line.end < end ? line.end + 1 : end;
		kind = perf_line__read(line, (struct span){at, end}, &f);
		if (kind == PERF_LINE_RECORD ||
		    (kind == PERF_LINE_FRAME && after_sample && is_surely_frame(line)) ||
		    (kind == PERF_LINE_SAMPLE && is_surely_sample(&f)))
			return true;
		after_sample = kind == PERF_LINE_SAMPLE || kind == PERF_LINE_EMPTY;
	}
	return false;
}

const struct importer perf_script_importer = {
	.name = "perf-script",
	.description = "the text of perf script: perf, simpleperf",
	.reads_cut = true,
	.recognizes = recognizes_perf_script,
	.read = read_perf_script,
};
