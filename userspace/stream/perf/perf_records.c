/* SPDX-License-Identifier: BSD-2-Clause */
/* Records about what was there when recording began have no time: they come first. */
#include "stream/perf/perf_records.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/minmax.h"
#include "base/order.h"
#include "stream/event_decode.h"
#include "stream/perf/perf_sample.h"

#define DEPTH_USUAL	127u		 /* kernel.perf_event_max_stack */
#define USER_DEFERRED	((uint64_t)-640) /* PERF_CONTEXT_USER_DEFERRED: a number follows */
#define FORK_OF_STATE	(1u << 13) /* PERF_RECORD_MISC_FORK_EXEC: perf found the task in /proc */
#define KERNEL_CODE_MAX 32768u	   /* each costs what those before it are */
#define COUNTERS_MAX	(1u << 20)
#define LOST_BY_FILTER	(1u << 15) /* PERF_RECORD_MISC_LOST_SAMPLES_BPF */

bool perf_kind__is_clock(const struct perf_kind *kind)
{
	return kind->attr.type == PERF_TYPE_SOFTWARE &&
	       (kind->attr.config == PERF_COUNT_SW_CPU_CLOCK ||
		kind->attr.config == PERF_COUNT_SW_TASK_CLOCK);
}

uint32_t perf_kind__pmu(const struct perf_kind *kind)
{
	return kind->attr.config >> 32;
}

/* Do both count the same code? */
static bool excludes_same(const struct perf_event_attr *a, const struct perf_event_attr *b)
{
	return a->exclude_user == b->exclude_user && a->exclude_kernel == b->exclude_kernel &&
	       a->exclude_hv == b->exclude_hv && a->exclude_host == b->exclude_host &&
	       a->exclude_guest == b->exclude_guest && a->exclude_idle == b->exclude_idle;
}

/* An event that was recorded twice on a CPU counts the same twice: these are two. */
bool perf_kind__is_same(const struct perf_kind *a, const struct perf_kind *b)
{
	return a->attr.type == b->attr.type &&
	       (a->attr.type == PERF_TYPE_HARDWARE || a->attr.type == PERF_TYPE_HW_CACHE) &&
	       (uint32_t)a->attr.config == (uint32_t)b->attr.config &&
	       perf_kind__pmu(a) != perf_kind__pmu(b) && excludes_same(&a->attr, &b->attr);
}

/* ---- events, into the queue ------------------------------------------------------------------ */

/* An event_push_fn. */
static int push(void *records, struct event_header *event)
{
	struct perf_records *r = records;

	if (event_check(event, event->size)) {
		r->bad++;
		return 0;
	}
	if (!event->time)
		return r->push_now(r->context, event);
	return event_queue__push(r->queue, event);
}

/* A mapping gets the build-id that the file has of its path. */
static int push_mapping(void *records, struct event_header *event)
{
	struct perf_records *r = records;
	struct mmap_event *mapping = (struct mmap_event *)event;
	const struct perf_build_id *known;

	if (event->type != EVENT_MMAP || event->flags & EVENT_BUILD_ID)
		return push(r, event);
	known = perf_file__build_id(r->file, mapping->path);
	if (known) {
		event->flags |= EVENT_BUILD_ID;
		mapping->build_id_size = known->size;
		memcpy(mapping->build_id, known->bytes, known->size);
	}
	return push(r, event);
}

/* False: the record is left out, and counted. */
static bool admit_task(struct perf_records *r, uint32_t pid, uint32_t tid, bool is_new)
{
	enum perf_admission admission = perf_tasks__admit(&r->tasks, r->file->size, pid, tid,
							  is_new);

	r->left_out[PERF_LEFT_OUT_TASKS] += admission == PERF_TASK_OVER_LIMIT;
	r->left_out[PERF_LEFT_OUT_DAMAGED] += admission == PERF_TASK_IMPOSSIBLE;
	return admission == PERF_TASK_ADMITTED;
}

/* ---- samples --------------------------------------------------------------------------------- */

struct stack {
	struct sample_event *event;
	unsigned int depth; /* addresses of the chain */
	bool is_deferred, is_guest, is_cut;
	bool is_broken; /* a word of the user's stack is no address */
};

static void add_kernel_frame(struct stack *s, uint64_t address)
{
	if (s->event->kernel_frames == SAMPLE_KERNEL_DEPTH_MAX)
		s->is_cut = true;
	else
		s->event->frames[s->event->kernel_frames++] = address;
}

/* The first user address is where the thread was, the others are return addresses. */
static void add_user_frame(struct stack *s, uint64_t address)
{
	struct sample_event *e = s->event;

	if (e->user_frames == SAMPLE_USER_DEPTH_MAX) {
		s->is_cut = true;
		return;
	}
	e->frames[e->kernel_frames + e->user_frames] =
		frame_pack(e->user_frames ? FRAME_POINTER : FRAME_IP, address);
	e->user_frames++;
}

/* The context that an address of a chain is in, or opens. */
static uint64_t context_of_mode(uint16_t misc)
{
	switch (misc & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_KERNEL:
		return PERF_CONTEXT_KERNEL;
	case PERF_RECORD_MISC_USER:
		return PERF_CONTEXT_USER;
	case PERF_RECORD_MISC_GUEST_KERNEL:
	case PERF_RECORD_MISC_GUEST_USER:
		return PERF_CONTEXT_GUEST;
	}
	return PERF_CONTEXT_HV;
}

static void add_address(struct stack *s, uint64_t context, uint64_t address)
{
	s->depth++;
	if (context == PERF_CONTEXT_KERNEL && !s->event->user_frames)
		add_kernel_frame(s, address);
	else if (context == PERF_CONTEXT_USER)
		add_user_frame(s, address);
	else
		s->is_guest |= context != PERF_CONTEXT_KERNEL && context != PERF_CONTEXT_HV;
}

static bool is_context(uint64_t word)
{
	static const enum perf_callchain_context known[] = {
		PERF_CONTEXT_HV,    PERF_CONTEXT_KERNEL,       PERF_CONTEXT_USER,
		PERF_CONTEXT_GUEST, PERF_CONTEXT_GUEST_KERNEL, PERF_CONTEXT_GUEST_USER,
	};

	return any_of(known, sizeof(known) / sizeof(*known), k, word == (uint64_t)*k);
}

static void add_chain(struct stack *s, struct cursor chain, uint64_t context)
{
	while (chain.end - chain.at >= 8) {
		uint64_t address = cursor__u64(&chain);

		if (address == USER_DEFERRED) {
			s->is_deferred = true;
			cursor__skip(&chain, 8);
			context = PERF_CONTEXT_USER;
		} else if (is_context(address)) {
			context = address;
		} else if (address >= (uint64_t)PERF_CONTEXT_MAX) {
			s->is_broken = true;
			return;
		} else {
			add_address(s, context, address);
		}
	}
}

/* By DWARF's numbers those of asm/perf_regs.h, then that of the instruction pointer. */
static const uint8_t x86_registers[] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23};
#define X86_IP	8
#define X86_RSP 7 /* DWARF's */

/* All registers that a walk begins with. False: they were not recorded. */
static bool take_registers(const struct perf_kind *kind, const struct perf_sample *sample,
			   struct stack_copy *copy)
{
	uint64_t value;

	for (size_t i = 0; i < sizeof(x86_registers); i++) {
		if (!perf_sample__register(kind, sample, x86_registers[i], &value))
			return false;
		copy->general[i] = value;
	}
	if (!perf_sample__register(kind, sample, X86_IP, &value))
		return false;
	copy->ip = value;
	copy->start = copy->general[X86_RSP];
	return true;
}

/* Behind the frames, for a walk. Its size; 0: it cannot be walked. */
static size_t put_copy(struct perf_records *r, struct sample_event *e, const struct perf_kind *kind,
		       const struct perf_sample *sample)
{
	size_t frames = sizeof(*e) + (e->kernel_frames + e->user_frames) * sizeof(e->frames[0]);
	struct stack_copy *copy = (struct stack_copy *)(r->sample + frames);
	size_t size = (size_t)(sample->stack.end - sample->stack.at);

	if (!r->passes_copies || !r->is_x86_64 || sample->abi != PERF_SAMPLE_REGS_ABI_64 ||
	    sizeof(r->sample) < frames + event_aligned(sizeof(*copy) + size))
		return 0;
	*copy = (struct stack_copy){.size = (uint32_t)size};
	if (!take_registers(kind, sample, copy))
		return 0;
	memcpy(copy->stack, sample->stack.at, size);
	e->header.flags |= EVENT_STACK_COPY;
	return event_aligned(sizeof(*copy) + size);
}

/* A stack that was copied has no chain: where the thread was is in its registers. */
static size_t add_copy(struct perf_records *r, struct stack *s, const struct perf_kind *kind,
		       const struct perf_sample *sample)
{
	struct sample_event *e = s->event;
	size_t size;
	uint64_t ip;

	if (!e->user_frames && r->is_x86_64 && perf_sample__register(kind, sample, X86_IP, &ip))
		add_user_frame(s, ip);
	e->user_end = STACK_END_NO_TABLE;
	size = put_copy(r, e, kind, sample);
	r->left_out[PERF_LEFT_OUT_COPIES] += !size;
	return size;
}

static enum stack_end end_of(const struct stack *s, const struct perf_kind *kind,
			     const struct perf_sample *sample)
{
	unsigned int most = kind->attr.sample_max_stack ?: DEPTH_USUAL;

	if (!sample->has_chain)
		return STACK_END_DISABLED;
	if (s->is_deferred)
		return STACK_END_COPY;
	if (s->is_cut || s->depth >= most)
		return STACK_END_DEPTH;
	if (s->is_broken)
		return STACK_END_NO_FRAME;
	if (s->event->user_frames)
		return STACK_END_ROOT;
	return kind->attr.exclude_callchain_user ? STACK_END_DISABLED : STACK_END_NO_USER;
}

/* Returns how many bytes follow the frames. */
static size_t make_stack(struct perf_records *r, struct stack *s, const struct perf_kind *kind,
			 const struct perf_sample *sample, uint16_t misc)
{
	size_t behind = 0;
	uint64_t context = context_of_mode(misc);
	struct sample_event *e = s->event;

	e->from_user = context == PERF_CONTEXT_USER;
	/* --user-callchains: the chain has not even the place of the sample */
	if (context == PERF_CONTEXT_KERNEL && kind->attr.exclude_callchain_kernel)
		add_address(s, context, sample->ip);
	add_chain(s, sample->chain, context);
	if (!e->kernel_frames && !e->user_frames)
		add_address(s, context, sample->ip);
	e->user_end = end_of(s, kind, sample);
	if (sample->stack.end > sample->stack.at)
		behind = add_copy(r, s, kind, sample);
	if (s->is_guest || context == PERF_CONTEXT_GUEST) {
		e->header.flags |= EVENT_IN_GUEST;
		r->left_out[PERF_LEFT_OUT_GUESTS]++;
	}
	r->left_out[PERF_LEFT_OUT_DEFERRED] += s->is_deferred;
	r->left_out[PERF_LEFT_OUT_BRANCHES] += sample->has_branches;
	return behind;
}

static bool is_idle(const struct perf_sample *sample)
{
	return !sample->pid && !sample->tid;
}

/*
 * Idle CPUs have pid and tid 0, and where perf recorded in a pid namespace, tasks of others have them as
 * well. Those can be in user code.
 */
static bool is_of_user(const struct perf_event_header *record, struct cursor chain)
{
	if (context_of_mode(record->misc) == PERF_CONTEXT_USER)
		return true;
	while (chain.end - chain.at >= 8) {
		uint64_t word = cursor__u64(&chain);

		if (word == (uint64_t)PERF_CONTEXT_USER || word == USER_DEFERRED)
			return true;
	}
	return false;
}

static uint64_t hash_counter(const struct perf_counter *c)
{
	return hash_combine(hash_u64(c->id), c->tid);
}

static bool same_counter(const struct perf_counter *a, const struct perf_counter *b)
{
	return a->id == b->id && a->tid == b->tid;
}

MAP_FUNCTIONS_OF(perf_counters, struct perf_counter, hash_counter, same_counter);

/*
 * What the counter has counted since its last sample, as perf has it: the period beside it is one that
 * the kernel chose before. 0: nothing.
 */
static uint64_t period_of(struct perf_records *r, const struct perf_kind *kind,
			  const struct perf_sample *sample)
{
	const struct perf_counter key = {.id = sample->id,
					 .tid = kind->attr.inherit ? sample->tid : 0};
	struct perf_counter *counter;
	uint64_t before;

	if (!sample->has_counted || !sample->id)
		return sample->period;
	counter = r->counters.count < COUNTERS_MAX ? perf_counters__need(&r->counters, &key, NULL)
						   : perf_counters__find(&r->counters, &key);
	if (!counter)
		return sample->period;
	before = counter->counted;
	counter->counted = sample->counted;
	return sample->counted - min_u64(before, sample->counted);
}

static void note_period(struct perf_kind *kind, uint64_t period)
{
	kind->periods_differ |= period && kind->period && period != kind->period;
	kind->period = kind->period ?: period;
}

/* Each counter of a group that has counted anything stands for a sample of its event. */
static void note_group(struct perf_records *r, const struct perf_kind *kind,
		       struct perf_sample *sample)
{
	struct perf_count count;

	for (struct cursor c = sample->counts; perf_sample__next_count(kind, &c, &count);) {
		struct perf_kind *member = perf_file__kind(r->file, count.id);
		bool is_left_out;
		uint64_t period;

		if (!member || member == kind)
			continue;
		member->leader = (uint32_t)(kind - r->file->kinds.data) + 1;
		sample->id = count.id;
		sample->counted = count.value;
		is_left_out = perf_kind__is_clock(member) && is_idle(sample);
		period = period_of(r, kind, sample);
		member->samples += period || is_left_out;
		note_period(member, is_left_out ? 0 : period);
	}
}

void perf_records__note_sample(struct perf_records *r, struct perf_kind *kind, struct cursor body)
{
	bool is_clock = perf_kind__is_clock(kind) && !kind->periods_differ;
	struct perf_sample sample;
	uint64_t period;

	kind->samples++;
	if ((!is_clock && !(kind->attr.read_format & PERF_FORMAT_GROUP)) ||
	    !perf_sample__parse(kind, body, &sample))
		return;
	period = is_clock ? period_of(r, kind, &sample) : 0;
	note_period(kind, is_idle(&sample) ? 0 : period);
	note_group(r, kind, &sample);
}

/* Of a sample that comes with the counter of the profile's event: that one's. False: it has none. */
static bool take_member(const struct perf_records *r, const struct perf_kind *kind,
			struct perf_sample *sample)
{
	struct cursor c = sample->counts;
	struct perf_count count;

	while (perf_sample__next_count(kind, &c, &count)) {
		const struct perf_kind *member = perf_file__kind(r->file, count.id);

		if (!member || !member->is_profiled)
			continue;
		sample->id = count.id;
		sample->counted = count.value;
		return true;
	}
	return false;
}

void perf_records__forget_counters(struct perf_records *r)
{
	perf_counters__clear(&r->counters);
}

void perf_records__fini(struct perf_records *r)
{
	perf_counters__fini(&r->counters);
}

static int take_sample(struct perf_records *r, const struct perf_event_header *record,
		       struct cursor body, uint64_t time)
{
	const struct perf_kind *kind = perf_sample__kind(r->file, body);
	struct sample_event *e = (struct sample_event *)r->sample;
	struct stack stack = {.event = e};
	struct perf_sample sample;
	size_t behind;

	if (!kind) {
		r->left_out[PERF_LEFT_OUT_UNKNOWN]++;
		return 0;
	}
	if (!perf_kind__is_read(kind))
		return 0;
	if (!perf_sample__parse(kind, body, &sample)) {
		r->left_out[PERF_LEFT_OUT_DAMAGED]++;
		return 0;
	}
	if (kind->carries && !take_member(r, kind, &sample))
		return 0;
	/* of samples that are left out as well: what they have counted is not the next one's */
	sample.period = period_of(r, kind, &sample);
	if (r->is_clock && is_idle(&sample)) {
		r->left_out[is_of_user(record, sample.chain) ? PERF_LEFT_OUT_HIDDEN_TASKS
							     : PERF_LEFT_OUT_IDLE]++;
		return 0;
	}
	if (!admit_task(r, sample.pid, sample.tid, false))
		return 0;
	if (!sample.period && sample.has_counted)
		return 0;
	*e = (struct sample_event){
		.header = {.type = EVENT_SAMPLE, .flags = EVENT_OWN_WEIGHT, .time = time},
		.cpu_time = r->is_clock ? sample.period : 0,
		.tgid = sample.pid,
		.tid = sample.tid,
		.cpu = sample.cpu < EVENT_CPU_LIMIT ? sample.cpu : EVENT_CPU_UNKNOWN,
		.period = r->is_clock && !r->by_cpu ? 0 : max_u64(sample.period, 1),
	};
	behind = make_stack(r, &stack, kind, &sample, record->misc);
	e->header.size = (uint32_t)(sizeof(*e) + behind +
				    (e->kernel_frames + e->user_frames) * sizeof(e->frames[0]));
	r->left_out[PERF_LEFT_OUT_WEIGHTS] += !r->is_clock && kind->attr.freq &&
					      !(kind->attr.sample_type & PERF_SAMPLE_PERIOD);
	r->left_out[PERF_LEFT_OUT_NO_TIME] += r->is_timed && !perf_time__is_one(sample.time);
	r->samples++;
	return push(r, &e->header);
}

/* ---- processes and mappings ------------------------------------------------------------------ */

/* As in the kernel's documentation of PERF_RECORD_MMAP, and what the later record has more. */
struct mmap_record {
	uint32_t pid, tid;
	uint64_t start, length, page_offset;
};
#define MMAP2_MORE 32u /* device, inode, generation; protection, flags */

/* The record, aligned; an old mapping as the newer record. *size: without what ends it. */
static const struct perf_event_header *
copy_record(struct perf_records *r, const struct perf_event_header *record, struct cursor body)
{
	struct perf_event_header *copy = (struct perf_event_header *)r->record;
	uint8_t *at = r->record + sizeof(*copy);
	size_t size = (size_t)(body.end - body.at), head = sizeof(struct mmap_record);

	*copy = *record;
	if (record->type == PERF_RECORD_MMAP2 && !perf_file__has_build_id(r->file, record, body))
		copy->misc &= (uint16_t)~PERF_RECORD_MISC_MMAP_BUILD_ID;
	if (record->type != PERF_RECORD_MMAP) {
		memcpy(at, body.at, size);
		return copy;
	}
	if (size < head || size + MMAP2_MORE > UINT16_MAX - sizeof(*copy) ||
	    record->misc & PERF_RECORD_MISC_MMAP_DATA)
		return NULL;
	memcpy(at, body.at, head);
	memset(at + head, 0, MMAP2_MORE);
	memcpy(at + head + MMAP2_MORE - 8, &(uint32_t){PROT_EXEC}, sizeof(uint32_t));
	memcpy(at + head + MMAP2_MORE, body.at + head, size - head);
	copy->type = PERF_RECORD_MMAP2;
	copy->misc &= (uint16_t)~PERF_RECORD_MISC_MMAP_BUILD_ID;
	copy->size = (uint16_t)(sizeof(*copy) + size + MMAP2_MORE);
	return copy;
}

/* The main thread's name is the process's, of what was there before: it may be any other later. */
static int name_process(struct perf_records *r, const struct perf_event_header *record)
{
	struct comm_event event = {
		.header = {.size = sizeof(event), .type = EVENT_COMM, .flags = EVENT_FROM_PROC}};
	const char *name = (const char *)record + sideband_fixed_size(PERF_RECORD_COMM);

	memcpy(&event.pid, record + 1, sizeof(event.pid));
	memcpy(&event.tid, (const uint8_t *)(record + 1) + 4, sizeof(event.tid));
	if (event.pid != event.tid || record->type != PERF_RECORD_COMM)
		return 0;
	memcpy(event.comm, name,
	       strnlen(name, min_u64(sizeof(event.comm) - 1,
				     record->size - sideband_fixed_size(PERF_RECORD_COMM))));
	return push(r, &event.header);
}

/* Of a fork that perf found in /proc its name and mappings follow: it inherits nothing here. */
static bool is_state(const struct perf_event_header *record, uint64_t time)
{
	return record->type == PERF_RECORD_FORK && (record->misc & FORK_OF_STATE || !time);
}

/* Does the record, which has its fixed size, name a task that may be? */
static bool admit_record(struct perf_records *r, const struct perf_event_header *record)
{
	uint32_t task[4];

	memcpy(task, record + 1, sizeof(task));
	switch (record->type) {
	case PERF_RECORD_MMAP2:
		return admit_task(r, task[0], task[1], false);
	case PERF_RECORD_COMM:
		return admit_task(r, task[0], task[1], record->misc & PERF_RECORD_MISC_COMM_EXEC);
	case PERF_RECORD_FORK: /* pid, that of the parent, tid, that of the parent */
		return admit_task(r, task[1], task[3], false) &&
		       admit_task(r, task[0], task[2], true);
	}
	return true;
}

static int take_sideband(struct perf_records *r, const struct perf_event_header *record,
			 struct cursor body, uint64_t time)
{
	const struct perf_event_header *copy;
	struct perf_sample end;
	size_t fixed, text;
	int err;

	perf_sample__cut_end(r->file, record, &body, &end);
	copy = copy_record(r, record, body);
	if (!copy)
		return 0;
	fixed = sideband_fixed_size(copy->type) - sizeof(*copy);
	text = (size_t)(body.end - body.at) + (copy->type == record->type ? 0 : MMAP2_MORE);
	if (text < fixed) {
		r->left_out[PERF_LEFT_OUT_DAMAGED]++;
		return 0;
	}
	((struct perf_event_header *)r->record)->size = (uint16_t)(sizeof(*copy) + text);
	if (is_state(record, time))
		return 0;
	if (record->type == PERF_RECORD_KSYMBOL && r->kernel_code++ >= KERNEL_CODE_MAX) {
		r->left_out[PERF_LEFT_OUT_KERNEL_CODE]++;
		return 0;
	}
	if (!admit_record(r, copy))
		return 0;
	err = sideband_event(copy, text - fixed, time, &r->space, push_mapping, r);
	if (err == -EBADMSG) {
		r->left_out[PERF_LEFT_OUT_DAMAGED]++;
		err = 0;
	}
	return err || time ? err : name_process(r, copy);
}

int perf_records__name_task(struct perf_records *r, const struct perf_event_header *record,
			    struct cursor body)
{
	const struct perf_event_header *copy;
	struct perf_sample end;
	uint32_t task[2]; /* pid, tid */

	if (record->type != PERF_RECORD_COMM)
		return 0;
	perf_sample__cut_end(r->file, record, &body, &end);
	if ((size_t)(body.end - body.at) < sideband_fixed_size(record->type) - sizeof(*record))
		return 0;
	copy = copy_record(r, record, body);
	((struct perf_event_header *)r->record)->size =
		(uint16_t)(sizeof(*copy) + (size_t)(body.end - body.at));
	memcpy(task, copy + 1, sizeof(task));
	/* a thread's name is not its process's */
	if (task[0] != task[1] || perf_tasks__has(&r->tasks, task[0]) ||
	    !admit_task(r, task[0], task[0], false))
		return 0;
	return name_process(r, copy);
}

/* ---- losses ---------------------------------------------------------------------------------- */

/*
 * PERF_RECORD_LOST counts all records that a ring has lost: samples of its events, and processes and
 * mappings. Its id is that of the event whose record came next. PERF_RECORD_LOST_SAMPLES is one of two:
 * of the kernel, with a time, samples that it never wrote (PEBS); of perf, at the end and without a time,
 * what rings lost of one event (PERF_FORMAT_LOST).
 */

static int push_lost(struct perf_records *r, uint64_t count, uint64_t time)
{
	struct lost_event event = {
		.header = {.size = sizeof(event), .type = EVENT_LOST, .time = time},
		.source = LOST_SAMPLES,
		.cpu = EVENT_CPU_UNKNOWN,
		.count = count};

	return count ? push(r, &event.header) : 0;
}

static int take_lost(struct perf_records *r, struct cursor body, uint64_t time)
{
	uint64_t count;

	cursor__skip(&body, 8); /* the id */
	count = min_u64(cursor__u64(&body), UINT32_MAX);
	if (!r->counts_losses) {
		r->left_out[PERF_LEFT_OUT_LOST_ANY] += count;
		return push_lost(r, count, time);
	}
	count = min_u64(count, r->lost);
	r->lost -= count;
	return push_lost(r, count, time);
}

/* *kind: whose they are; NULL: not in the file. 0: none, or dropped by a filter of the user's. */
static uint64_t parse_lost_samples(const struct perf_file *file,
				   const struct perf_event_header *record, struct cursor body,
				   struct perf_kind **kind, bool *is_counter)
{
	uint64_t count = cursor__u64(&body);
	struct perf_sample end;

	if (body.bad || record->misc & LOST_BY_FILTER)
		return 0;
	perf_sample__cut_end(file, record, &body, &end);
	*is_counter = !perf_time__is_one(end.time);
	*kind = perf_file__kind(file, end.id);
	if (!*kind && file->kinds.count && !end.id)
		*kind = file->kinds.data;
	return min_u64(count, UINT32_MAX);
}

void perf_records__note_losses(struct perf_records *r, const struct perf_event_header *record,
			       struct cursor body)
{
	struct perf_kind *kind;
	bool is_counter;
	uint64_t count = parse_lost_samples(r->file, record, body, &kind, &is_counter);

	if (!count || !is_counter)
		return;
	r->counts_losses = true;
	if (kind)
		kind->lost += count;
}

static int take_lost_samples(struct perf_records *r, const struct perf_event_header *record,
			     struct cursor body, uint64_t time)
{
	struct perf_kind *kind;
	bool is_counter;
	uint64_t count = parse_lost_samples(r->file, record, body, &kind, &is_counter);

	if (!count || is_counter)
		return 0;
	if (!kind || perf_kind__is_read(kind))
		return push_lost(r, count, time);
	r->left_out[PERF_LEFT_OUT_LOST_OTHERS] += count;
	return 0;
}

/* ---- all records ----------------------------------------------------------------------------- */

int perf_records__take(struct perf_records *r, const struct perf_event_header *record,
		       struct cursor body)
{
	uint64_t time = perf_order__time(&r->order, r->file, record, body);

	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		return take_sample(r, record, body, time);
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_KSYMBOL:
		return take_sideband(r, record, body, time);
	case PERF_RECORD_LOST:
		return take_lost(r, body, time);
	case PERF_RECORD_LOST_SAMPLES:
		return take_lost_samples(r, record, body, time);
	case PERF_RECORD_THROTTLE:
		r->left_out[PERF_LEFT_OUT_THROTTLED]++;
		return 0;
	case PERF_AUXTRACE:
		r->left_out[PERF_LEFT_OUT_TRACES]++;
		return 0;
	default:
		return 0;
	}
}
