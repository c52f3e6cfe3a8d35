/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of perf script, as perf 4 to 7 and simpleperf print it: samples with their times, periods
 * and stacks. Which fields a line has is decided line by line (perf_lines.h).
 *
 * A profile has one event. Of several in a file it is a clock, else cycles, else what hardware
 * counts; of two of one kind the one with more samples. The others are left out. A clock's periods
 * are CPU time; if they differ, samples weigh by them. Those of another event are its counts: then there
 * is no CPU time. Without periods a sample counts 1. Samples of the idle task by a clock are no CPU time, and left out.
 *
 * A process has a life for each name: an execve begins one. Records of names (--show-task-events)
 * mark those of an execve. Without such records, any new name of the main thread begins a life.
 *
 * Numbers need not be what they stand for. Times that fall at many lines are differences (--deltatime),
 * and no times. If perf did not record periods (--no-period), it prints what was requested, which may
 * be a frequency: a header says so. Without one, a clock's period far below the time between samples
 * of a thread is none.
 *
 * Two passes: the first lines of samples; and, of those that are taken, in order of time, the
 * stacks (perf_stacks.h).
 */
#include <errno.h>
#include <stdio.h>

#include "base/map.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/text_line.h"
#include "formats/in/frames.h"
#include "formats/in/import.h"
#include "formats/in/owners.h"
#include "formats/in/perf_events.h"
#include "formats/in/perf_lines.h"
#include "formats/in/perf_stacks.h"

#define RECOGNIZED_LINES 64
#define RECOGNIZED_BYTES 65536
#define CONTROLS_OF	 32 /* of as many bytes of a text at most one is a character of control */
#define RULE		 "# ========"
#define HEADER_BEGINS	 "# captured on" /* below a rule */
#define EVENT_BEGINS	 "# event : name = "
#define NS		 1000000000ULL
#define FALLS_MIN	 4 /* of times: fewer are of files that were joined */
#define FALLS_OF	 8 /* of as many times at least one falls */
#define FREQUENCY_MAX                                                                              \
	15000 /* periods of a frequency of that many Hz are far above the number itself */
#define GAPS_MIN     10
#define EVENTS_SHOWN 4 /* of those that are left out */

/* A sample before its stack is read. */
struct block {
	uint64_t time, period;
	size_t order;	  /* in the file */
	struct span body; /* its frames, with the source lines below them */
	const char *root; /* the last frame; NULL: there is none */
	struct string_id comm;
	uint32_t pid, tid, event, life;
	uint16_t cpu;
	bool has_pid, has_tid, has_time, has_period;
	bool in_line; /* the frame, if there is one, is at the end of the line */
};

struct event {
	struct string_id name; /* 0: not printed */
	enum perf_event_rank rank;
	uint64_t samples;
	bool has_periods;
};
#define hash_event(e)	    hash_u64((e)->name.v)
#define is_same_event(a, b) ((a)->name.v == (b)->name.v)
DEFINE_MAP_OF(events, struct event, hash_event, is_same_event);

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

/* How an event was sampled, by the header. */
struct setting {
	struct string_id event;
	uint64_t frequency; /* Hz, which perf prints as the period; 0: it prints periods */
};

struct last_time {
	uint32_t tid;
	uint64_t time;
};
DEFINE_MAP_BY(last_times, struct last_time, uint32_t, tid);

struct script {
	struct profile_builder *b;
	struct import_failure *failure;
	const char *start, *end;
	struct frames frames;
	struct owners owners;
	struct perf_stacks stacks;
	VEC(struct block) blocks;
	struct events events;
	struct tasks tasks;
	struct last_lives last_lives;
	VEC(struct life) lives; /* the first one: of samples without a pid */
	VEC(struct exec) execs;
	VEC(struct setting) settings;
	uint64_t times, falls, last_time; /* times, how many are before the last one, and that */
	char other_events[256];		  /* names of those that are left out */
	const struct event *event;	  /* the profile's */
	unsigned int facts;		  /* which of the header's were read */
	bool is_open;			  /* the last block may get frames */
	bool skips;			  /* until the next empty line or sample */
	bool has_lines, has_stacks, is_timed;
	bool has_comms;	 /* records of new names */
	bool is_counted; /* a sample is one event */
	bool by_cpu;	 /* samples of a clock weigh their periods, which differ */
	bool has_tabs;	 /* before frames */
	bool has_deltas; /* for times */
};

/* ---- the first pass: lines ------------------------------------------------------------------- */

static struct string_id intern(struct script *s, struct span text)
{
	return profile_builder__string(s->b, frames__text(&s->frames, text.at, span_size(text)));
}

static int find_event(struct script *s, struct span printed, bool has_period, uint32_t *number)
{
	char name[PERF_EVENT_NAME_SIZE] = "";
	struct event wanted = {}, *event;
	bool is_new;

	if (printed.at < printed.end)
		perf_event_name(printed, name);
	wanted.name = profile_builder__string(s->b, name);
	event = events__need(&s->events, &wanted, &is_new);
	if (!event)
		return -ENOMEM;
	if (is_new)
		event->rank = perf_event_rank(name);
	event->samples++;
	event->has_periods |= has_period;
	*number = (uint32_t)(event - s->events.data);
	return 0;
}

static int add_block(struct script *s, const struct perf_fields *f, struct span body)
{
	struct block block = {
		.time = f->time,
		.period = f->period,
		.order = s->blocks.count,
		.body = body,
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
	s->is_timed |= f->has_time;
	if (f->has_time) {
		s->falls += s->times++ && f->time < s->last_time;
		s->last_time = f->time;
	}
	return find_event(s, f->event, f->has_period, &block.event) ?: vec_push(&s->blocks, block);
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
	struct block *block;
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
	block = &s->blocks.data[s->blocks.count - 1];
	block->body = (struct span){block->in_line ? line.at : block->body.at, line.end};
	block->in_line = false;
	block->root = line.at;
	return 0;
}

/* A source line, or what belongs to a record. */
static void take_indented(struct script *s, struct span line)
{
	struct block *block = s->is_open ? &s->blocks.data[s->blocks.count - 1] : NULL;

	if (block && !block->in_line)
		block->body.end = line.end;
	s->frames.left_out[LEFT_OUT_NO_FIELDS] += !s->is_open && !s->skips;
}

static int take_comm(struct script *s, const struct perf_fields *f, uint32_t pid)
{
	struct exec exec = {.time = f->time, .order = s->blocks.count, .pid = pid};
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

/* "# event : name = cpu-clock, , …, { sample_period, sample_freq } = 99, sample_type = IP|TID|TIME, …, freq = 1" */
static int take_setting(struct script *s, struct span line)
{
	static const char value[] = "{ sample_period, sample_freq } = ";
	struct setting setting = {};
	struct span name = {line.at + strlen(EVENT_BEGINS), line.end};
	char text[PERF_EVENT_NAME_SIZE];
	const char *at;

	if (!span_begins(line, EVENT_BEGINS) ||
	    !(name.end = memmem(name.at, span_size(name), ", ", 2)))
		return 0;
	at = memmem(line.at, span_size(line), value, strlen(value));
	if (at && memmem(at, (size_t)(line.end - at), ", freq = 1", 10) &&
	    !memmem(at, (size_t)(line.end - at), "|PERIOD", 7))
		for (at += strlen(value); is_digit(*at) && setting.frequency < NS; at++)
			setting.frequency = setting.frequency * 10 + (uint64_t)(*at - '0');
	perf_event_name(name, text);
	setting.event = profile_builder__string(s->b, text);
	return vec_push(&s->settings, setting);
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

static struct perf_frame root_of(const struct script *s, const struct block *b)
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
	const struct block *last = s->blocks.data + s->blocks.count - 1;
	const struct perf_frame root = root_of(s, last);
	size_t same = 0;

	for (const struct block *b = s->blocks.data; b < last && last->root; b++) {
		const struct perf_frame other = root_of(s, b);

		same += b->root && is_same_root(&root, &other);
	}
	return s->blocks.count == 1
		       ? !s->frames.left_out[LEFT_OUT_CUT] && !s->frames.left_out[LEFT_OUT_REST]
		       : 2 * same > s->blocks.count - 1;
}

static void drop_cut(struct script *s, const char *block)
{
	if (!s->is_open || !s->has_stacks || is_last_whole(s))
		return;
	s->frames.left_out[LEFT_OUT_CUT] += (uint64_t)(s->end - block);
	s->events.data[s->blocks.data[--s->blocks.count].event].samples--;
}

static int read_lines(struct script *s)
{
	const char *rule = s->start, *block = s->start; /* the end of a header; the last block */
	int err = 0;

	drop_last_line(s);
	for (const char *at = s->start, *newline; at < s->end && !err; at = newline + 1) {
		size_t blocks = s->blocks.count;
		struct span line = {at, newline = line_end(at, s->end)};

		if (at > rule || at == s->start)
			rule = header_end(at, s->end) ?: rule;
		if (at < rule) {
			s->is_open = false;
			take_fact(s, line);
			err = take_setting(s, line);
		} else {
			err = take_line(s, line, newline < s->end ? newline + 1 : s->end);
		}
		block = s->blocks.count > blocks ? at : block;
	}
	if (!err)
		drop_cut(s, block);
	if (!err && s->frames.left_out[LEFT_OUT_NO_FIELDS] > 2 * s->blocks.count)
		return import_fail(
			s->failure, 0, -EBADMSG,
			"text with more than two lines for each sample that are no part of it");
	return err;
}

/* ---- which samples --------------------------------------------------------------------------- */

static bool is_clock(const struct script *s)
{
	return s->event->rank == PERF_EVENT_CLOCK;
}

static void list_other_events(struct script *s)
{
	struct text_line list = {s->other_events, sizeof(s->other_events), 0};
	unsigned int shown = 0;

	for (size_t i = 0; i < s->events.count && shown <= EVENTS_SHOWN; i++) {
		const struct event *event = &s->events.data[i];
		const char *name = profile_builder__get_string(s->b, event->name);

		if (event == s->event || !event->samples)
			continue;
		add_text(&list, "%s%s", shown ? ", " : " (",
			 shown == EVENTS_SHOWN ? "…"
			 : name && *name       ? name
					       : "without a name");
		shown++;
	}
	add_text(&list, "%s", shown ? ")" : "");
	s->frames.details[LEFT_OUT_OTHER_EVENTS] = s->other_events;
}

static void choose_event(struct script *s)
{
	const struct event *best = NULL;

	for (size_t i = 0; i < s->events.count; i++) {
		const struct event *event = &s->events.data[i];

		if (event->samples &&
		    (!best || event->rank > best->rank ||
		     (event->rank == best->rank && event->samples > best->samples)))
			best = event;
	}
	s->event = best;
	list_other_events(s);
}

static bool is_idle(const struct script *s, const struct block *b)
{
	const char *comm = profile_builder__get_string(s->b, b->comm);

	return is_clock(s) && !b->tid && comm && !strncmp(comm, "swapper", 7);
}

/* Why a sample is left out; LEFT_OUT_COUNT: it is not. */
static enum import_left_out reason_of(const struct script *s, const struct block *b)
{
	if (&s->events.data[b->event] != s->event)
		return LEFT_OUT_OTHER_EVENTS;
	if (s->is_timed && !b->has_time)
		return LEFT_OUT_NO_TIME;
	if (is_idle(s, b))
		return LEFT_OUT_IDLE;
	if (s->event->has_periods && !b->period)
		return LEFT_OUT_NO_PERIOD;
	return LEFT_OUT_COUNT;
}

static void leave_out(struct script *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->blocks.count; i++) {
		enum import_left_out reason = reason_of(s, &s->blocks.data[i]);

		if (reason == LEFT_OUT_COUNT)
			s->blocks.data[kept++] = s->blocks.data[i];
		else
			s->frames.left_out[reason]++;
	}
	s->blocks.count = kept;
}

DEFINE_ORDER(compare_blocks, struct block, ASCENDING(time) ?: ASCENDING(order));
DEFINE_ORDER(compare_execs, struct exec, ASCENDING(time) ?: ASCENDING(order));

static void sort_blocks(struct script *s)
{
	bool sorted = true;

	for (size_t i = 1; i < s->blocks.count && sorted; i++)
		sorted = s->blocks.data[i - 1].time <= s->blocks.data[i].time;
	if (!sorted)
		vec_sort(&s->blocks, compare_blocks);
}

/* ---- what the numbers are -------------------------------------------------------------------- */

/* Times are needed once more, for the gaps between samples: there the sums of differences do. */
static void find_deltas(struct script *s)
{
	uint64_t sum = 0;

	s->has_deltas = s->falls >= FALLS_MIN && s->falls >= s->times / FALLS_OF;
	for (size_t i = 0; i < s->blocks.count && s->has_deltas; i++)
		if (s->blocks.data[i].has_time)
			s->blocks.data[i].time = sum = saturating_add_u64(sum,
									  s->blocks.data[i].time);
}

static void drop_deltas(struct script *s)
{
	if (!s->has_deltas)
		return;
	for (size_t i = 0; i < s->blocks.count; i++)
		s->blocks.data[i].time = 0;
	for (size_t i = 0; i < s->execs.count; i++)
		s->execs.data[i].time = 0;
	s->is_timed = false;
	s->frames.left_out[LEFT_OUT_DELTAS] = s->times;
}

/* 0: they differ. */
static uint64_t equal_period(const struct script *s)
{
	uint64_t period = s->blocks.count ? s->blocks.data[0].period : 0;

	for (size_t i = 1; i < s->blocks.count; i++)
		if (s->blocks.data[i].period != period)
			return 0;
	return period;
}

static void set_period(struct script *s, uint64_t period)
{
	for (size_t i = 0; i < s->blocks.count; i++)
		s->blocks.data[i].period = period;
	s->events.data[s->event - s->events.data].has_periods = period > 0;
}

static const struct setting *find_setting(const struct script *s)
{
	for (size_t i = 0; i < s->settings.count; i++)
		if (s->settings.data[i].event.v == s->event->name.v)
			return &s->settings.data[i];
	return NULL;
}

/*
 * Are nearly all gaps between samples of a thread those of a frequency of `hz`, or longer? A CPU that
 * a thread leaves, and another one that it comes to, have clocks of their own. Without numbers of
 * threads it is not known, and no period is believed.
 */
static int count_gaps(const struct script *s, uint64_t hz, bool *are_long)
{
	struct last_times last = {};
	uint64_t gaps = 0, longer = 0;
	bool lacks_tids = false;
	int err = 0;

	for (size_t i = 0; i < s->blocks.count && !err; i++) {
		const struct block *b = &s->blocks.data[i];
		bool is_new;
		struct last_time wanted = {.tid = b->tid},
				 *at = last_times__need(&last, &wanted, &is_new);

		err = at ? 0 : -ENOMEM;
		lacks_tids |= !b->has_tid;
		if (!err && !is_new) {
			gaps++;
			longer += b->time - at->time >= NS / hz / 2;
		}
		if (!err)
			at->time = b->time;
	}
	last_times__fini(&last);
	*are_long = lacks_tids || (gaps >= GAPS_MIN && longer * 10 >= gaps * 9);
	return err;
}

/* What perf prints as the period of each sample may be what was requested, a frequency. */
static int settle_periods(struct script *s)
{
	const struct setting *setting = find_setting(s);
	uint64_t period = equal_period(s);
	bool are_long = false;
	int err;

	if (!period || (setting && setting->frequency != period))
		return 0;
	if (setting) {
		set_period(s, is_clock(s) ? NS / period : 0);
		return 0;
	}
	if (!is_clock(s) || !s->is_timed || period > FREQUENCY_MAX)
		return 0;
	err = count_gaps(s, period, &are_long);
	if (!err && are_long) {
		s->frames.left_out[LEFT_OUT_FREQUENCY] = s->blocks.count;
		set_period(s, 0);
	}
	return err;
}

/* ---- samples --------------------------------------------------------------------------------- */

static void settle_pid(const struct script *s, struct block *b)
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
static bool is_made_up(const struct script *s, const struct block *b)
{
	char made_up[16];

	snprintf(made_up, sizeof(made_up), ":%u", b->tid);
	return !strcmp(profile_builder__get_string(s->b, b->comm), made_up);
}

static int find_life(struct script *s, struct block *b)
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

static bool is_before(const struct exec *exec, const struct block *b)
{
	return exec->time < b->time || (exec->time == b->time && exec->order <= b->order);
}

static int find_lives(struct script *s)
{
	int err = vec_push(&s->lives, (struct life){});
	size_t e = 0;

	vec_sort(&s->execs, compare_execs);
	for (size_t i = 0; i < s->blocks.count && !err; i++) {
		struct block *b = &s->blocks.data[i];

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
static int thread_of(struct script *s, const struct block *b, struct owner_thread **thread,
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

static int add_sample(struct script *s, struct block *b)
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
	row.time = s->is_timed ? b->time : s->owners.start + ++thread->rows;
	*(is_clock(s) ? &row.weight : &row.events) = s->is_counted ? 1 : b->period;
	if (s->by_cpu)
		row.events = b->period;
	return frames__sample(&s->frames, thread->id, &row, s->failure,
			      (uint64_t)(b->body.at - s->start));
}

static int add_samples(struct script *s)
{
	int err = find_lives(s);

	for (size_t i = 0; i < s->blocks.count && !err; i++)
		err = add_sample(s, &s->blocks.data[i]);
	return err;
}

/* ---- the session ----------------------------------------------------------------------------- */

/* A sample by a clock stands for the time before it. */
static uint64_t first_time(const struct script *s)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < s->blocks.count; i++) {
		const struct block *b = &s->blocks.data[i];
		uint64_t before = is_clock(s) && b->period ? b->period : 1;

		first = min_u64(first, b->time - min_u64(b->time, before));
	}
	return s->blocks.count ? first : 0;
}

static uint64_t mean_period(const struct script *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->blocks.count; i++)
		sum += min_u64(s->blocks.data[i].period, UINT64_MAX - sum);
	return s->blocks.count ? sum / s->blocks.count : 0;
}

static void set_event(struct script *s)
{
	struct profile *session = profile_builder__session(s->b);
	const char *name = profile_builder__get_string(s->b, s->event->name);
	bool has_name = name && *name, has_periods = s->event->has_periods;

	if (has_name)
		profile_builder__meta(s->b, META_EVENT, name);
	if (is_clock(s)) {
		session->period = s->is_timed ? mean_period(s) : 0;
		s->by_cpu = has_periods && !equal_period(s);
		if (s->by_cpu)
			import_weigh_by_cpu(s->b);
	} else if (has_name || has_periods) {
		bool is_time = has_name && has_periods && !strcmp(name, META_EVENT_OFF_CPU);

		s->is_counted = !has_periods;
		if (s->is_counted && !perf_event_is_tracepoint(name))
			s->frames.left_out[LEFT_OUT_ONE_EVENT] = s->blocks.count;
		session->event = profile_builder__string(s->b, has_name ? name : "events");
		session->event_unit = profile_builder__string(s->b,
							      is_time ? "nanoseconds" : "count");
		session->event_period = equal_period(s);
	}
}

static void set_start(struct script *s)
{
	struct profile *session = profile_builder__session(s->b);

	session->start = s->is_timed ? first_time(s) : IMPORT_MADE_UP_START;
	session->untimed = !s->is_timed;
	session->finished_symbols = true;
	s->owners.start = session->start;
}

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
	find_deltas(s);
	choose_event(s);
	if (!s->event)
		return import_fail(s->failure, (uint64_t)(s->end - s->start), -EBADMSG,
				   "it ends before the first sample does");
	leave_out(s);
	sort_blocks(s);
	err = settle_periods(s);
	if (err)
		return err;
	drop_deltas(s);
	set_event(s);
	set_start(s);
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

	s.stacks = (struct perf_stacks){s.b, &s.frames, failure, .start = s.start};
	s.owners.program = profile_builder__string(s.b, request->name);
	err = read_all(&s);
	perf_stacks__fini(&s.stacks);
	frames__fini(&s.frames);
	owners__fini(&s.owners);
	vec_free(&s.blocks);
	events__fini(&s.events);
	tasks__fini(&s.tasks);
	last_lives__fini(&s.last_lives);
	vec_free(&s.lives);
	vec_free(&s.execs);
	vec_free(&s.settings);
	return err;
}

/* A sample with an event and a time, or a frame. */
static bool is_surely_sample(const struct perf_fields *f)
{
	struct perf_frame frame;

	return f->has_tid && f->event.at < f->event.end &&
	       (f->has_time || (perf_line__frame(f->rest, &frame) && frame.dso.at < frame.dso.end));
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
		if (kind == PERF_LINE_RECORD || (kind == PERF_LINE_FRAME && after_sample) ||
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
