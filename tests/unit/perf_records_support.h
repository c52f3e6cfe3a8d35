/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of the kernel's perf rings and of perf record, made of the words of a step, and the events that are read of them, as
 * text. For testdata/perf_data.txt, which has the words, and sideband.txt.
 */
#ifndef TESTS_UNIT_PERF_RECORDS_SUPPORT_H
#define TESTS_UNIT_PERF_RECORDS_SUPPORT_H

#include "text_cases.h"

#include <linux/perf_event.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/vec.h"
#include "stream/event_decode.h"

#define SAMPLE_TYPE                                                                                \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)

typedef VEC(uint8_t) bytes;

static struct {
	struct perf_event_attr attrs[4];
	size_t attr_count;
	bytes records;
	bytes features[32];
	bool pipe, without_ids;
	size_t shared_ids; /* not 0: all events name these, of which there are so many, at the end */
	bool copies;	   /* of stacks are passed on */
	bytes change;	   /* of the whole file, at */
	size_t change_at, cut; /* not 0: its size */
} made;

static inline void put(bytes *to, const void *from, size_t size)
{
	assert_int_equal(vec_append(to, (const uint8_t *)from, size), 0);
}

#define PUT(type, to, ...) put(to, (const type[]){__VA_ARGS__}, sizeof((const type[]){__VA_ARGS__}))
#define PUT32(to, ...)	   PUT(uint32_t, to, __VA_ARGS__)
#define PUT64(to, ...)	   PUT(uint64_t, to, __VA_ARGS__)

/* With its NUL, up to eight bytes; "~" is a blank, "x*400" so many, "." nothing. */
static inline void put_name(bytes *to, const char *word)
{
	static const char zeros[8];
	char name[8192];
	size_t size;

	snprintf(name, sizeof(name), "%s", strcmp(word, ".") ? word : "");
	for (char *at = name; (at = strchr(at, '~')) != NULL;)
		*at = ' ';
	if (word[0] && word[1] == '*') {
		memset(name, word[0], sizeof(name));
		name[strtoul(word + 2, NULL, 10)] = '\0';
	}
	size = strlen(name) + 1;

	put(to, name, size);
	put(to, zeros, (8 - size % 8) % 8);
}

/* The same; "unended": without the eight bytes that have its NUL. */
static inline void put_name_of(bytes *to, const char *word, const char *words)
{
	put_name(to, word);
	to->count -= text_has(words, "unended") ? 8 : 0;
}

static inline void put_record(bytes *to, uint32_t type, uint16_t misc, bytes *body)
{
	const struct perf_event_header header = {
		.type = type, .misc = misc, .size = (uint16_t)(sizeof(header) + body->count)};

	put(to, &header, sizeof(header));
	put(to, body->data, body->count);
	vec_free(body);
}

/* What ends every record but samples: pid, tid, time, id. */
static inline void add_record(uint32_t type, uint16_t misc, bytes *body, uint64_t time, uint64_t id)
{
	PUT32(body, 7, 7);
	if (made.attrs[0].sample_type & PERF_SAMPLE_TIME)
		PUT64(body, time);
	PUT64(body, id);
	put_record(&made.records, type, misc, body);
}

static inline void begin_file(void)
{
	vec_free(&made.records);
	for (size_t i = 0; i < 32; i++)
		vec_free(&made.features[i]);
	vec_free(&made.change);
	memset(&made, 0, sizeof(made));
}

/* ---- events and records of it ----------------------------------------------------------------- */

/* Ids of events are 1, 2, … */
static inline bool take_event_step(const char *name, char *words)
{
	static const struct {
		const char *name;
		uint32_t type;
		uint64_t config;
	} events[] = {
		{"clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
		{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
		{"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
		{"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
		{"dummy", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY},
		{"output", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT},
	};

	for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++) {
		if (strcmp(name, events[i].name))
			continue;
		made.attrs[made.attr_count++] = (struct perf_event_attr){
			.type = events[i].type,
			.size = sizeof(*made.attrs),
			.config = events[i].config | text_option(words, "cpus=", 0) << 32,
			.sample_period = 250000,
			.sample_type = SAMPLE_TYPE,
			.sample_id_all = 1,
			.exclude_kernel = text_has(words, "-kernel"),
			.exclude_user = text_has(words, "-user"),
			.exclude_callchain_kernel = text_has(words, "user-chain"),
			.build_id = text_has(words, "build-ids"),
		};
		return true;
	}
	return false;
}

/* What the last event records beside or without, and how often. */
static inline void change_event(char *words)
{
	static const struct {
		const char *name;
		uint64_t bits;
	} fields[] = {
		{"id", PERF_SAMPLE_IDENTIFIER},
		{"time", PERF_SAMPLE_TIME},
		{"callchain", PERF_SAMPLE_CALLCHAIN},
		{"period", PERF_SAMPLE_PERIOD},
		{"cpu", PERF_SAMPLE_CPU},
		{"stack", PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER},
	};
	struct perf_event_attr *attr = &made.attrs[made.attr_count - 1];

	attr->sample_regs_user = text_option(words, "registers=", 0);
	attr->freq = text_option(words, "frequency=", 0) > 0;
	attr->sample_freq = text_option(words, "frequency=", attr->sample_freq);
	for (const char *word; *(word = text_word(&words));)
		for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
			if (strcmp(word + 1, fields[i].name))
				continue;
			attr->sample_type |= fields[i].bits;
			attr->sample_type ^= *word == '-' ? fields[i].bits : 0;
		}
}

struct sample_words {
	uint64_t id, period, cpu, abi, copied, deep;
	uint32_t pid, tid;
	bool in_kernel;
	uint64_t chain[130];
	size_t count;
};

/* Addresses, behind "user" unless they begin with "kernel". */
static inline void take_chain(struct sample_words *s, char *words)
{
	for (const char *word; *(word = text_word(&words));) {
		bool kernel = !strcmp(word, "kernel"), user = !strcmp(word, "user");

		if (strchr(word, '='))
			continue;
		s->in_kernel |= kernel;
		if (kernel || user || !s->count)
			s->chain[s->count++] = (uint64_t)(kernel ? PERF_CONTEXT_KERNEL
								 : PERF_CONTEXT_USER);
		if (!kernel && !user)
			s->chain[s->count++] = strtoull(word, NULL, 16);
	}
	for (uint64_t i = 0; i < s->deep; i++)
		s->chain[s->count++] = i ? 0x400000 + i : (uint64_t)PERF_CONTEXT_USER;
}

/* Its registers have their numbers, and `copied` bytes of the stack are there. */
static inline void put_stack(bytes *body, const struct perf_event_attr *attr,
			     const struct sample_words *s)
{
	PUT64(body, s->abi);
	for (uint64_t i = 0; i < 24; i++)
		if (attr->sample_regs_user >> i & 1)
			PUT64(body, i);
	PUT64(body, 8);
	put(body, "abcdefgh", 8);
	PUT64(body, s->copied);
}

static inline void add_sample(uint32_t type, uint64_t time, char *words)
{
	struct sample_words s = {.id = text_option(words, "id=", 1),
				 .period = text_option(words, "period=", 250000),
				 .cpu = text_option(words, "cpu=", 0),
				 .abi = text_option(words, "abi=", PERF_SAMPLE_REGS_ABI_64),
				 .copied = text_option(words, "copied=", 0),
				 .deep = text_option(words, "deep=", 0),
				 .pid = (uint32_t)text_option(words, "pid=", 7),
				 .tid = (uint32_t)text_option(words, "tid=", 8)};
	const struct perf_event_attr *attr = &made.attrs[s.id <= made.attr_count ? s.id - 1 : 0];
	const uint64_t fields = attr->sample_type;
	bytes body = {};

	take_chain(&s, words);
	if (fields & PERF_SAMPLE_IDENTIFIER)
		PUT64(&body, s.id);
	PUT64(&body, 0x1234);
	PUT32(&body, s.pid, s.tid);
	if (fields & PERF_SAMPLE_TIME)
		PUT64(&body, time);
	if (fields & PERF_SAMPLE_CPU)
		PUT64(&body, s.cpu);
	if (fields & PERF_SAMPLE_PERIOD)
		PUT64(&body, s.period);
	if (fields & PERF_SAMPLE_CALLCHAIN) {
		PUT64(&body, s.count);
		put(&body, s.chain, s.count * sizeof(*s.chain));
	}
	if (fields & PERF_SAMPLE_STACK_USER)
		put_stack(&body, attr, &s);
	put_record(&made.records, type,
		   s.in_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER, &body);
}

static inline void add_comm(uint32_t type, uint64_t time, char *words)
{
	const char *name = text_word(&words);
	uint32_t pid = (uint32_t)text_option(words, "pid=", 7);
	bytes body = {};

	PUT32(&body, pid, (uint32_t)text_option(words, "tid=", pid));
	put_name(&body, name);
	add_record(type, text_has(words, "exec") ? PERF_RECORD_MISC_COMM_EXEC : 0, &body, time, 1);
}

/* "PID PARENT"; one from /proc has its own mappings behind it. */
static inline void add_task(uint32_t type, uint64_t time, char *words)
{
	const uint32_t pid = (uint32_t)text_number(&words, 0),
		       ppid = (uint32_t)text_number(&words, 0);
	bytes body = {};

	PUT32(&body, pid, ppid, (uint32_t)text_option(words, "tid=", pid),
	      (uint32_t)text_option(words, "ptid=", ppid));
	PUT64(&body, time);
	add_record(type, text_has(words, "from-proc") ? 1u << 13 : 0, &body, time, 1);
}

static inline void add_mapping(uint32_t type, uint64_t time, char *words)
{
	const uint64_t start = text_number(&words, 16);
	const char *path = text_word(&words);
	const bool kernel = text_has(words, "kernel");
	bytes body = {};

	PUT32(&body, (uint32_t)text_option(words, "pid=", kernel ? ~0u : 7),
	      (uint32_t)text_option(words, "tid=", kernel ? 0 : 7));
	PUT64(&body, start, 0x1000, 0x3000);
	if (type == PERF_RECORD_MMAP2) {
		PUT32(&body, 8, 1); /* device; or the size of the build-id */
		PUT64(&body, text_option(words, "inode=", 77), 0);
		PUT32(&body, text_has(words, "no-code") ? PROT_WRITE : PROT_EXEC, MAP_PRIVATE);
	}
	put_name_of(&body, path, words);
	add_record(type,
		   (uint16_t)((kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER) |
			      (text_has(words, "id") ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0) |
			      (text_has(words, "data") ? PERF_RECORD_MISC_MMAP_DATA : 0)),
		   &body, time, 1);
}

/* "COUNT", of `id`; one without a time is as perf writes it at the end. */
static inline void add_lost(uint32_t type, uint64_t time, char *words)
{
	uint64_t count = text_number(&words, 0), id = text_option(words, "id=", 1);
	bytes body = {};

	if (type == PERF_RECORD_LOST)
		PUT64(&body, id);
	PUT64(&body, count);
	if (type != PERF_RECORD_LOST)
		PUT64(&body, 0);
	add_record(type, text_has(words, "by-filter") ? 1u << 15 : 0, &body, time, id);
}

/* "ADDRESS NAME"; unless it is alone, there is room for the sample_id of another listener. */
static inline void add_ksymbol(uint32_t type, uint64_t time, char *words)
{
	const uint64_t address = text_number(&words, 16);
	const char *name = text_word(&words);
	bytes body = {};

	PUT64(&body, address);
	PUT32(&body, 64,
	      (text_has(words, "ool") ? PERF_RECORD_KSYMBOL_TYPE_OOL
				      : PERF_RECORD_KSYMBOL_TYPE_BPF) |
		      (text_has(words, "gone") ? PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER << 16 : 0));
	put_name_of(&body, name, words);
	PUT32(&body, 7, 7);
	PUT64(&body, time, 1, ~0ull);
	body.count -= text_has(words, "alone") ? 8 : 0;
	put_record(&made.records, type, 0, &body);
}

/* "ID PATH" of a control group. */
static inline void add_group(uint32_t type, uint64_t time, char *words)
{
	const uint64_t group = text_number(&words, 10);
	const char *path = text_word(&words);
	bytes body = {};

	PUT64(&body, group);
	put_name_of(&body, path, words);
	add_record(type, 0, &body, time, 1);
}

/* "32:NUMBER", "64:NUMBER", or a name. */
static inline void put_words(bytes *to, char *words)
{
	for (const char *word; *(word = text_word(&words));) {
		if (!strncmp(word, "32:", 3))
			PUT32(to, (uint32_t)strtoul(word + 3, NULL, 0));
		else if (!strncmp(word, "64:", 3))
			PUT64(to, strtoull(word + 3, NULL, 0));
		else
			put_name(to, word);
	}
}

static inline bool take_record_step(const char *name, char *words)
{
	static const struct {
		const char *name;
		uint32_t type;
		void (*add)(uint32_t type, uint64_t time, char *words);
	} records[] = {
		{"sample", PERF_RECORD_SAMPLE, add_sample},
		{"comm", PERF_RECORD_COMM, add_comm},
		{"map", PERF_RECORD_MMAP2, add_mapping},
		{"old-map", PERF_RECORD_MMAP, add_mapping},
		{"ksymbol", PERF_RECORD_KSYMBOL, add_ksymbol},
		{"group", PERF_RECORD_CGROUP, add_group},
		{"fork", PERF_RECORD_FORK, add_task},
		{"exit", PERF_RECORD_EXIT, add_task},
		{"lost", PERF_RECORD_LOST, add_lost},
		{"lost-samples", PERF_RECORD_LOST_SAMPLES, add_lost},
		{"throttle", PERF_RECORD_THROTTLE, add_lost},
	};
	uint64_t time;
	bytes body = {};

	if (!strcmp(name, "record")) {
		uint32_t type = (uint32_t)text_number(&words, 10);

		put_words(&body, words);
		put_record(&made.records, type, 0, &body);
		return true;
	}
	for (size_t i = 0; i < sizeof(records) / sizeof(*records); i++) {
		if (strcmp(name, records[i].name))
			continue;
		time = text_number(&words, 0);
		records[i].add(records[i].type, time, words);
		return true;
	}
	return false;
}

/* ---- events ----------------------------------------------------------------------------------- */

static inline void put_frames(FILE *out, const struct sample_event *e)
{
	unsigned int count = e->kernel_frames + e->user_frames;

	for (unsigned int i = 0; i < count; i++) {
		if (i == e->kernel_frames && i)
			fputs(" |", out);
		if (i < 8 || i + 1 == count)
			fprintf(out, " %" PRIx64, (uint64_t)frame_address(e->frames[i]));
		else if (i == 8)
			fprintf(out, " (%u)", count - 9);
	}
}

static inline void put_sample(FILE *out, const struct sample_event *e)
{
	const struct stack_copy *copy = (const void *)&e->frames[e->kernel_frames + e->user_frames];

	fprintf(out, "%u/%u %" PRIu64 "%s%s%s:", e->tgid, e->tid,
		(uint64_t)(e->cpu_time ?: e->period), e->cpu_time ? " ns" : "",
		e->cpu_time && e->period ? ", its weight," : "",
		e->from_user ? "" : " in the kernel");
	assert_true(!e->cpu_time || !e->period || e->cpu_time == e->period);
	put_frames(out, e);
	if (e->user_end)
		fprintf(out, " end %u", e->user_end);
	if (e->cpu != EVENT_CPU_UNKNOWN)
		fprintf(out, " cpu %u", e->cpu);
	if (e->header.flags & EVENT_STACK_COPY)
		fprintf(out,
			" copy at %" PRIu64 ", ip %" PRIu64 ", rdx %" PRIu64 ", r15 %" PRIu64
			" '%.*s'",
			(uint64_t)copy->start, (uint64_t)copy->ip, (uint64_t)copy->general[1],
			(uint64_t)copy->general[15], (int)copy->size, copy->stack);
}

static inline void put_mapping(FILE *out, const struct mmap_event *e)
{
	size_t size = strlen(e->path);

	fprintf(out, "%u/%u %" PRIx64 "+%" PRIx64 "@%" PRIx64 " ", e->pid, e->tid,
		(uint64_t)e->start, (uint64_t)e->length, (uint64_t)e->page_offset);
	if (size < 100)
		fputs(e->path, out);
	else
		fprintf(out, "a path of %zu bytes", size);
	if (e->header.flags & EVENT_BUILD_ID)
		fprintf(out, " id of %u bytes: %02x…", e->build_id_size, e->build_id[0]);
	else
		fprintf(out, " inode %u:%u:%" PRIu64, e->major, e->minor, (uint64_t)e->inode);
	if (e->file_state != FILE_STATE_UNOPENED)
		fprintf(out, " state %u", e->file_state);
}

static inline void put_meta(FILE *out, const struct meta_event *e)
{
	fprintf(out, "%s: %s", e->text, e->text + strlen(e->text) + 1);
}

/* Lines as of /proc/kallsyms. */
static inline void put_kernel_code(FILE *out, const struct kallsyms_event *e)
{
	const char *text = e->text, *end = text + e->text_size;

	fprintf(out, "kernel code%s%s:", e->header.flags & EVENT_KALLSYMS_ADDED ? " added" : "",
		e->header.flags & EVENT_KALLSYMS_REMOVED ? " removed" : "");
	for (; text < end; text += strcspn(text, "\n") + 1)
		fprintf(out, " %.*s;", (int)strcspn(text, "\n"), text);
}

/* "TIME type what". */
static inline void put_event(FILE *out, const struct event_header *event)
{
	const void *e = event;
	const struct comm_event *comm = e;
	const struct task_event *task = e;
	const struct lost_event *lost = e;
	const struct group_made_event *group = e;

	fprintf(out, "%" PRIu64 " ", (uint64_t)event->time);
	switch (event->type) {
	case EVENT_SAMPLE:
		fputs("sample ", out);
		put_sample(out, e);
		break;
	case EVENT_MMAP:
		fputs("map ", out);
		put_mapping(out, e);
		break;
	case EVENT_COMM:
		fprintf(out, "%s %u/%u %s", event->flags & EVENT_COMM_EXEC ? "exec" : "comm",
			comm->pid, comm->tid, comm->comm);
		break;
	case EVENT_FORK:
	case EVENT_EXIT:
		fprintf(out, "%s %u/%u of %u/%u", event->type == EVENT_FORK ? "fork" : "exit",
			task->pid, task->tid, task->ppid, task->ptid);
		break;
	case EVENT_LOST:
		fprintf(out, "lost %" PRIu64 "%s", (uint64_t)lost->count,
			lost->source == LOST_SIDEBAND ? " of processes" : "");
		if (lost->cpu != EVENT_CPU_UNKNOWN)
			fprintf(out, " on CPU %u since %" PRIu64, lost->cpu, (uint64_t)lost->since);
		break;
	case EVENT_META:
		put_meta(out, e);
		break;
	case EVENT_KALLSYMS:
		put_kernel_code(out, e);
		break;
	case EVENT_GROUP_MADE:
		fprintf(out, "group %" PRIu64 " %s", (uint64_t)group->group, group->path);
		break;
	case EVENT_CLOCK_ANCHOR:
		fprintf(out, "anchor %" PRIu64,
			(uint64_t)((struct clock_anchor_event *)e)->realtime);
		break;
	default:
		fprintf(out, "type %u", event->type);
	}
}

#endif
