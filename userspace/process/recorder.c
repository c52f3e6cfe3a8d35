/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events in, profile out.
 *
 * What is known about the outside at the time of an event is in three tables: process_table (who is
 * behind a pid or tid), one mapping_table a process (what lies at an address), dso_table (what that
 * is). Every event but a sample changes them; a sample is turned into locations and stacks by them
 * and forgotten. Nothing is looked up later, so it does not matter what became of a process.
 *
 * Addresses. A return address points behind its call, which may be another line, another function,
 * or (a call that never returns at the end of a mapping) another file. So 1 is taken off before the
 * address is looked up, here and nowhere else. The exact ones stay: the interrupted instruction of
 * user and of kernel code, and the instruction that a signal interrupted.
 *
 * CPU time. Samples carry the thread's own CPU clock, the profile wants differences that sum up to
 * what the thread used while it was recorded. cpu_last of a thread is what has been accounted for.
 * It starts at
 *   - 0 for a thread whose birth was seen;
 *   - what /proc told of it before sampling began; what it used between that reading and the start
 *     is cut off its first difference, which cannot be longer than the time since the start;
 *   - its first sample less at most a period, where nothing is known (records were lost).
 * The clock runs on through an execve, and so does cpu_last: the new life's first difference holds
 * what the old life used after its last sample. Where another thread than the leader called execve,
 * it is that thread's clock that runs on under the leader's tid.
 */
#include "process/recorder.h"

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "base/parse.h"
#include "base/vec.h"
#include "jit/jit_code.h"
#include "process/dso_table.h"
#include "process/jit_names.h"
#include "process/mapping_table.h"
#include "process/process_table.h"
#include "process/unwind_feed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* /proc tells start times in ticks of 10 ms, converted from another clock. */
#define BIRTH_SLACK_NS	  100000000ull

#define SYMBOL_FRAMES_MAX 1024u

/* A published process whose samples come without places is published again this often at most. */
#define REPUBLISH_NS 50000000ull

struct recorder {
	struct unwind_feed *feed;	 /* NULL: nobody wants to know */
	struct profile_builder *builder; /* not owned */
	struct profile *session;	 /* in the builder */
	const struct event_source_requests *requests;
	struct process_table *lives;
	struct dso_table dsos;
	struct jit_names *jit;
	struct recorder_stats stats;

	uint64_t start; /* sampling began; 0 not told yet */
	uint64_t last_time;
	bool ended, anchored;
	bool failed; /* no memory */
	uint64_t first_monotonic, first_realtime;
	uint64_t fallback_period;
	VEC(uint32_t) changed;	  /* pids whose mappings have, since recorder__publish_changed() */
	struct dso_id symbols_of; /* the dso of the next symbol events */
	VEC(struct profile_line) lines;
};

struct recorder *recorder__new(struct profile_builder *builder,
			       const struct recorder_options *options,
			       const struct event_source_requests *requests)
{
	struct recorder *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->builder = builder;
	r->session = profile_builder__session(builder);
	r->requests = requests;
	r->fallback_period = options ? options->period : 0;
	dso_table__init(&r->dsos, builder);
	r->lives = process_table__new(builder);
	r->jit = jit_names__new(builder);
	if (!r->lives || !r->jit) {
		recorder__free(r);
		return NULL;
	}
	return r;
}

void recorder__set_unwind_feed(struct recorder *r, struct unwind_feed *feed)
{
	r->feed = feed;
}

void recorder__free(struct recorder *r)
{
	if (!r)
		return;
	process_table__free(r->lives);
	jit_names__free(r->jit);
	vec_free(&r->changed);
	vec_free(&r->lines);
	free(r);
}

struct recorder_stats recorder__stats(const struct recorder *r)
{
	return r->stats;
}

static uint64_t period_of(const struct recorder *r)
{
	return r->session->period ? r->session->period : r->fallback_period;
}

/* Every event that belongs to the recording passes here first. */
static void advance(struct recorder *r, const struct event_header *header)
{
	if (!r->ended)
		r->last_time = max_u64(r->last_time, header->time);
	process_table__advance(r->lives, header->time);
}

static int result(const struct recorder *r)
{
	return r->failed ? -ENOMEM : profile_builder__error(r->builder);
}

static void ask_reread(struct recorder *r, uint32_t pid)
{
	r->stats.rereads++;
	if (r->requests && r->requests->reread_process)
		r->requests->reread_process(r->requests->context, pid);
}

/* ---- who is it ------------------------------------------------------------------------------- */

static bool same_birth(uint64_t a, uint64_t b)
{
	return a > b ? a - b < BIRTH_SLACK_NS : b - a < BIRTH_SLACK_NS;
}

/* The process of an event, made up where nobody told of it. NULL: no memory. */
static struct process_life *need_process(struct recorder *r, uint32_t pid, uint64_t time)
{
	struct process_life *process = process_table__find(r->lives, pid);

	if (process)
		return process;
	process = process_table__add(r->lives, pid, LIFE_UNKNOWN_NAME, 0, time);
	if (process)
		ask_reread(r, pid);
	return process;
}

static struct thread_life *find_thread_of(struct recorder *r, const struct process_life *process,
					  uint32_t tid)
{
	struct thread_life *thread = process_table__find_thread(r->lives, tid);

	return thread && thread->process == process ? thread : NULL;
}

/* The same for a thread; one that nobody told of is called as its process. */
static struct thread_life *need_thread(struct recorder *r, uint32_t pid, uint32_t tid,
				       uint64_t time)
{
	struct process_life *process = need_process(r, pid, time);
	struct thread_life *thread;

	if (!process)
		return NULL;
	thread = find_thread_of(r, process, tid);
	if (thread)
		return thread;
	r->stats.unknown_tasks++;
	return process_table__add_thread(r->lives, process, tid, process->name, 0, time);
}

/* ---- frames to stacks ------------------------------------------------------------------------ */

static bool is_return_address(uint64_t frame)
{
	static const bool exact[FRAME_KIND_COUNT] = {
#define X(id, name, exact, text) exact,
		FRAME_KINDS(X)
#undef X
	};
	enum frame_kind kind = frame_kind(frame);

	return kind < FRAME_KIND_COUNT && !exact[kind];
}

/* A packed user frame keeps 56 bits; those of the vsyscall page are negative. */
static uint64_t user_address(uint64_t frame)
{
	uint64_t address = frame & FRAME_ADDRESS_MASK;

	if (address >> (FRAME_KIND_SHIFT - 1))
		address |= ~FRAME_ADDRESS_MASK;
	return address - (is_return_address(frame) && address);
}

static struct location_id kernel_location(struct recorder *r, uint64_t address)
{
	return profile_builder__location(r->builder, dso_table__kernel(&r->dsos), address,
					 (struct process_id){0}, CATEGORY_KERNEL);
}

static struct location_id unknown_location(struct recorder *r, const struct process_life *process,
					   uint64_t address)
{
	return profile_builder__location(r->builder, dso_table__unknown(&r->dsos), address,
					 process->id, CATEGORY_OTHER);
}

/* *mapped is false where the address is in no mapping. */
static struct location_id user_location(struct recorder *r, struct process_life *process,
					uint64_t frame, bool *mapped)
{
	uint64_t address = user_address(frame);
	const struct mapping *m = mapping_table__find(process->maps, address);

	*mapped = m != NULL;
	if (!m)
		return unknown_location(r, process, address);
	if (dso_table__kind(&r->dsos, m->dso) == DSO_JIT)
		r->failed |= jit_names__seen(r->jit, process) != 0;
	else
		address = address - m->start + m->page_offset;
	return profile_builder__location(r->builder, m->dso, address, process->id,
					 dso_table__category(&r->dsos, m->dso));
}

static void remember(struct stack_memo *memo, uint64_t frame, struct stack_id stack)
{
	if (vec_reserve(&memo->stacks, memo->stacks.count + 1) || vec_push(&memo->frames, frame))
		return;
	memo->stacks.data[memo->stacks.count++] = stack;
}

/* How many of the outermost frames are those of the thread's last sample. */
static size_t recall(struct stack_memo *memo, const struct process_life *process, const __u64 *leaf,
		     size_t count)
{
	size_t same = 0;

	if (memo->maps_version == process->maps_version)
		while (same < memo->frames.count && same < count &&
		       memo->frames.data[same] == leaf[count - 1 - same])
			same++;
	memo->maps_version = process->maps_version;
	memo->frames.count = memo->stacks.count = same;
	return same;
}

/* A sample whose frames were not wanted or could not be read. */
static struct stack_id stack_without_frames(struct recorder *r, const struct process_life *process,
					    const struct sample_event *e)
{
	return profile_builder__stack(r->builder, (struct stack_id){0},
				      e->from_user ? unknown_location(r, process, 0)
						   : kernel_location(r, 0));
}

/*
 * Outermost frame first, as stacks grow. The kernel's innermost frame is never in the memo: the
 * same value further out would be a return address. Nor is anything inside of an unmapped frame,
 * which may be mapped, and must be counted, the next time.
 */
static struct stack_id make_stack(struct recorder *r, struct thread_life *thread,
				  const struct sample_event *e)
{
	struct process_life *process = thread->process;
	struct stack_memo *memo = &thread->memo;
	size_t count = (size_t)e->kernel_frames + e->user_frames, unmapped = 0;
	size_t kernel_leaf = e->kernel_frames ? 1 : 0;
	const __u64 *frames = e->frames;
	struct stack_id stack = {0};
	size_t done;

	if (!count)
		return stack_without_frames(r, process, e);
	done = recall(memo, process, frames + kernel_leaf, count - kernel_leaf);
	if (done)
		stack = memo->stacks.data[done - 1];
	for (size_t i = count - done; i-- > 0;) {
		bool mapped = true;
		struct location_id location;

		if (i < e->kernel_frames)
			location = kernel_location(r, frame_address(frames[i]) - (i > 0));
		else
			location = user_location(r, process, frames[i], &mapped);
		stack = profile_builder__stack(r->builder, stack, location);
		unmapped += !mapped;
		if (!unmapped && i >= kernel_leaf)
			remember(memo, frames[i], stack);
	}
	if (unmapped) {
		r->session->unmapped_frames += unmapped;
		ask_reread(r, process->pid);
	}
	return stack;
}

/* ---- samples and CPU time -------------------------------------------------------------------- */

/*
 * A reading can be too large, by time that a hypervisor has stolen and the kernel has not noticed
 * yet; never too small. So a smaller one that comes later corrects those before it: in the end each
 * counts as the smallest from it on.
 */
static void correct_cpu(struct recorder *r, struct thread_life *thread, uint64_t cpu_time)
{
	if (!thread->sampled || cpu_time >= thread->cpu_last)
		return;
	thread->cpu_last -= profile_builder__take_back_cpu(r->builder, thread->id,
							   thread->cpu_last - cpu_time);
	thread->cpu_seen = thread->cpu_last;
}

static uint64_t account_cpu(struct recorder *r, struct thread_life *thread, uint64_t time,
			    uint64_t cpu_time)
{
	bool older = r->start && thread->clock_start < r->start;
	uint64_t delta;

	if (!thread->cpu_known) {
		thread->cpu_last = cpu_time - min_u64(cpu_time, period_of(r));
		thread->cpu_known = true;
	}
	correct_cpu(r, thread, cpu_time);
	delta = cpu_time > thread->cpu_last ? cpu_time - thread->cpu_last : 0;
	if (!thread->sampled && older)
		delta = min_u64(delta, time > r->start ? time - r->start : 0);
	thread->sampled = true;
	thread->cpu_last = max_u64(thread->cpu_last, cpu_time);
	thread->cpu_seen = max_u64(thread->cpu_seen, thread->cpu_last);
	return delta;
}

/* ---- samples as they come from the kernel ---------------------------------------------------- */

static void remember_publication(struct process_life *process, uint64_t time)
{
	struct publication *p = process->publications;

	mapping_table__unref(p[PUBLICATIONS - 1].maps);
	memmove(p + 1, p, (PUBLICATIONS - 1) * sizeof(*p));
	p[0] = (struct publication){
		.tag = unwind_tag(time),
		.maps_version = process->maps_version,
		.maps = mapping_table__ref(process->maps),
	};
}

static struct fed_process as_fed(const struct process_life *process, uint64_t time)
{
	return (struct fed_process){
		.tgid = process->pid, .born = process->born, .time = time, .maps = process->maps};
}

/* What is known of its mappings, if that has changed since it was published last. */
static int publish(struct recorder *r, struct process_life *process)
{
	struct fed_process now = as_fed(process, r->last_time);

	if (process->published == process->maps_version + 1)
		return 0;
	process->published = process->maps_version + 1;
	process->published_at = monotonic_ns();
	remember_publication(process, now.time);
	return unwind_feed__publish(r->feed, &now);
}

static int note_change(struct recorder *r, struct process_life *process)
{
	if (!r->feed || process->changed)
		return 0;
	process->changed = true;
	return vec_push(&r->changed, process->pid);
}

/* It is sampled: whatever it takes, it is to be published. */
static int want_publication(struct recorder *r, struct process_life *process)
{
	if (process->published == process->maps_version + 1)
		return 0;
	process->wanted = true;
	return note_change(r, process);
}

/* The kernel side has lost what was published, or never had room for it. */
static bool is_forgotten(const struct process_life *process, const struct sample_event *e)
{
	return process->published && !e->places_tag && e->user_frames &&
	       e->user_end != STACK_END_COMPAT &&
	       e->header.time > process->published_at + REPUBLISH_NS;
}

/* Once for each piece of the stream: of the samples on their way few know another publication then. */
int recorder__publish_changed(struct recorder *r)
{
	int err = 0;

	for (size_t i = 0; i < r->changed.count && !err; i++) {
		struct process_life *process = process_table__find(r->lives, r->changed.data[i]);

		if (!process || !process->changed)
			continue;
		process->changed = false;
		if (!process->end && process->maps &&
		    (process->wanted || process->published ||
		     unwind_feed__knows(r->feed, process->maps)))
			err = publish(r, process);
	}
	r->changed.count = 0;
	return err;
}

int recorder__publish_targets(struct recorder *r)
{
	int err = 0;

	for (const struct process_life *p = process_table__first(r->lives); p && !err;
	     p = process_life__next(p)) {
		struct process_life *process = process_table__find(r->lives, p->pid);

		if (process == p && process->is_target && !process->end && process->maps)
			err = publish(r, process);
	}
	return err;
}

/* Code that is made while a program runs is walked by frame pointer, whenever it came. */
static bool same_place(const struct recorder *r, const struct mapping *then,
		       const struct mapping *now)
{
	if (!now)
		return false;
	if (!then)
		return dso_table__kind(&r->dsos, now->dso) == DSO_JIT;
	return then->dso.v == now->dso.v &&
	       then->start - then->page_offset == now->start - now->page_offset;
}

/* How many user frames, from the innermost on, lie where both have the same mapped. */
static size_t frames_in_common(const struct recorder *r, const struct sample_event *sample,
			       const struct mapping_table *then, const struct mapping_table *now)
{
	const __u64 *frames = sample->frames + sample->kernel_frames;
	size_t i = 0;

	while (i < sample->user_frames &&
	       same_place(r, mapping_table__find(then, user_address(frames[i])),
			  mapping_table__find(now, user_address(frames[i]))))
		i++;
	return i;
}

/* The innermost frame is where the thread was, whatever is mapped there. */
static size_t frames_to_keep(const struct recorder *r, const struct sample_event *sample,
			     const struct process_life *process)
{
	size_t same = 0;

	if (!sample->places_tag || !sample->user_frames)
		return sample->user_frames;
	for (size_t i = 0; i < PUBLICATIONS; i++) {
		const struct publication *p = &process->publications[i];

		if (p->tag != sample->places_tag)
			continue;
		if (p->maps_version == process->maps_version)
			return sample->user_frames;
		same = frames_in_common(r, sample, p->maps, process->maps);
		break;
	}
	return same ? same : 1;
}

static void copy_sample(struct sample_event *to, const struct sample_event *from,
			size_t user_frames)
{
	size_t size = sizeof(*from) + (from->kernel_frames + user_frames) * sizeof(from->frames[0]);

	memcpy(to, from, size);
	to->header.size = size;
	to->header.flags &= ~EVENT_STACK_COPY;
	to->user_frames = user_frames;
}

/* NULL: it brought none. */
static const struct stack_copy *copy_of(const struct sample_event *sample)
{
	if (!(sample->header.flags & EVENT_STACK_COPY))
		return NULL;
	return (const void *)&sample->frames[sample->kernel_frames + sample->user_frames];
}

/* The address that the walk got to. */
static uint64_t last_address(const struct sample_event *sample)
{
	size_t frames = (size_t)sample->kernel_frames + sample->user_frames;

	return frames ? user_address(sample->frames[frames - 1]) : 0;
}

static void walk_once(struct recorder *r, const struct fed_process *process,
		      const struct stack_copy *copy, size_t max, struct sample_event *to)
{
	enum stack_end end;
	size_t count;

	end = unwind_feed__walk(r->feed, process, copy, (uint64_t *)to->frames + to->kernel_frames,
				max, &count);
	if (!count)
		return;
	to->user_frames = count;
	to->user_end = end;
	to->header.size = sizeof(*to) + (to->kernel_frames + count) * sizeof(to->frames[0]);
}

/* A walk ended where a table is missing. 1: something is known of it now; 0; -ENOMEM. */
static int note_missing(struct recorder *r, struct process_life *process,
			const struct sample_event *ended, const struct stack_copy *copy)
{
	struct fed_process now = as_fed(process, ended->header.time);
	int err = unwind_feed__missed(r->feed, &now, last_address(ended), copy);

	if (err <= 0)
		return err;
	process->published = 0;
	err = want_publication(r, process);
	return err ? err : 1;
}

static bool ends_in_made_code(const struct recorder *r, const struct process_life *process,
			      const struct sample_event *ended)
{
	const struct mapping *mapping = mapping_table__find(process->maps, last_address(ended));

	return mapping && dso_table__kind(&r->dsos, mapping->dso) == DSO_JIT;
}

/*
 * 0; -EAGAIN: a table that it needs will be there soon; -ENOMEM. A process that was not published has
 * been sampled without knowing what is missing, so its own code is asked about here.
 */
static int walk_copy(struct recorder *r, struct process_life *process,
		     const struct sample_event *sample, size_t max, struct sample_event *to)
{
	struct fed_process now = as_fed(process, sample->header.time);
	bool asked = false;
	int again;

	do {
		walk_once(r, &now, copy_of(sample), max, to);
		again = to->user_end == STACK_END_NO_TABLE
				? unwind_feed__await(r->feed, &now, last_address(to))
				: 0;
		if (!again && !asked && to->user_end == STACK_END_NO_TABLE &&
		    ends_in_made_code(r, process, to)) {
			asked = true;
			again = note_missing(r, process, to, copy_of(sample));
		}
	} while (again > 0);
	return again;
}

/* Its tables are asked for, if they are not there. */
static int feed(struct recorder *r, struct process_life *process, const struct sample_event *sample)
{
	struct fed_process now = as_fed(process, sample->header.time);
	int err = want_publication(r, process);

	if (err)
		return err;
	if (sample->user_end == STACK_END_NO_TABLE) {
		err = note_missing(r, process, sample, copy_of(sample));
		return err < 0 ? err : 0;
	}
	err = unwind_feed__refresh(r->feed, &now);
	if (err <= 0)
		return err;
	process->published = 0;
	return want_publication(r, process);
}

int recorder__settle(struct recorder *r, const struct sample_event **sample, size_t max,
		     struct sample_event *space)
{
	const struct sample_event *s = *sample;
	struct process_life *process = process_table__find(r->lives, s->tgid);
	bool copied = s->header.flags & EVENT_STACK_COPY;
	size_t keep = process ? frames_to_keep(r, s, process) : s->user_frames;
	bool is_fed = process && process->maps && r->feed;
	int err = is_fed ? feed(r, process, s) : 0;

	if (err || (!copied && keep == s->user_frames))
		return err;
	copy_sample(space, s, keep);
	if (keep < s->user_frames)
		space->user_end = STACK_END_STALE;
	err = copied && is_fed ? walk_copy(r, process, s, max, space) : 0;
	*sample = err ? s : space;
	return err;
}

static int on_sample(void *context, const struct sample_event *e)
{
	struct recorder *r = context;
	uint64_t time = e->header.time, delta;
	struct thread_life *thread;
	struct stack_id stack;

	advance(r, &e->header);
	thread = need_thread(r, e->tgid, e->tid, time);
	if (!thread)
		return -ENOMEM;
	thread_life__show(r->lives, thread, time, period_of(r));
	delta = account_cpu(r, thread, time, e->cpu_time);
	stack = make_stack(r, thread, e);
	for (size_t i = 0; i < e->user_frames; i++) {
		enum frame_kind kind = frame_kind(e->frames[e->kernel_frames + i]);

		r->session->frames_found[kind < FRAME_KIND_COUNT ? kind : FRAME_NONE]++;
	}
	profile_builder__sample(r->builder, thread->id, time, stack, delta, thread->comm_id,
				e->user_end < STACK_END_COUNT ? e->user_end : STACK_END_NO_REGS);
	if (is_forgotten(thread->process, e))
		thread->process->published = 0;
	if (r->feed && want_publication(r, thread->process))
		return -ENOMEM;
	return result(r);
}

static int on_thread_cpu(void *context, const struct thread_cpu_event *e)
{
	struct recorder *r = context;
	struct thread_life *thread;

	advance(r, &e->header);
	thread = process_table__find_thread(r->lives, e->tid);
	if (!thread || thread->process->pid != e->tgid)
		return 0;
	/* before sampling began every figure is a baseline, the later the better */
	if (!thread->cpu_known || (!r->start && !thread->sampled)) {
		thread->cpu_last = max_u64(thread->cpu_last, e->cpu_time);
		thread->cpu_known = true;
	}
	/* what /proc tells of a running thread is up to a tick old, so it corrects nothing */
	if (e->header.flags & EVENT_EXITED)
		correct_cpu(r, thread, e->cpu_time);
	thread->cpu_seen = max_u64(max_u64(thread->cpu_seen, thread->cpu_last), e->cpu_time);
	return 0;
}

/* ---- processes and threads ------------------------------------------------------------------- */

/* Is what /proc tells of a pid about another process than the one we know? */
static bool is_other_process(const struct process_life *process, const struct process_event *e)
{
	if (!process->born || !e->start_time)
		return false;
	return e->start_time > process->born && !same_birth(e->start_time, process->born);
}

static int on_process(void *context, const struct process_event *e)
{
	struct recorder *r = context;
	struct process_life *process;

	advance(r, &e->header);
	process = process_table__find(r->lives, e->pid);
	if (process && !is_other_process(process, e)) {
		if (process->end)
			return 0; /* it ended while it was read */
		process_life__rename(r->lives, process, e->name);
	} else {
		process = process_table__add(r->lives, e->pid, e->name, e->start_time,
					     e->header.time);
		if (!process)
			return -ENOMEM;
	}
	if (!process->born)
		process->born = e->start_time;
	process->ppid = e->ppid;
	process->is_kernel = e->is_kernel;
	if (e->is_target)
		process_table__ask(r->lives, process);
	return result(r);
}

static int on_thread(void *context, const struct thread_event *e)
{
	struct recorder *r = context;
	struct process_life *process;
	struct thread_life *thread;
	bool is_new;

	advance(r, &e->header);
	process = need_process(r, e->pid, e->header.time);
	if (!process)
		return -ENOMEM;
	thread = find_thread_of(r, process, e->tid);
	if (thread && thread->end)
		return 0;
	is_new = !thread;
	if (is_new)
		thread = process_table__add_thread(r->lives, process, e->tid, e->comm,
						   e->start_time, e->header.time);
	if (!thread)
		return -ENOMEM;
	if (!is_new)
		thread_life__rename(r->lives, thread, e->comm);
	thread->told = true;
	if (!thread->cpu_known && e->cpu_time != UINT64_MAX) {
		thread->cpu_last = thread->cpu_seen = e->cpu_time;
		thread->cpu_known = true;
	}
	return result(r);
}

static void born_now(struct thread_life *thread)
{
	thread->cpu_last = thread->cpu_seen = 0;
	thread->cpu_known = true;
}

/* /proc may have told of a task before its fork record came: it was read at that very moment. */
static bool fork_is_known(struct recorder *r, const struct task_event *e)
{
	struct thread_life *thread = process_table__find_thread(r->lives, e->tid);

	return thread && !thread->end && thread->told && thread->process->pid == e->pid &&
	       same_birth(thread->start, e->header.time);
}

static int fork_process(struct recorder *r, const struct task_event *e, const char *comm)
{
	const struct process_life *parent = process_table__find(r->lives, e->ppid);
	struct process_life *child = process_table__add(r->lives, e->pid, comm, e->header.time,
							e->header.time);

	if (!child)
		return -ENOMEM;
	child->ppid = e->ppid;
	if (!parent || e->ppid == e->pid)
		return 0;
	child->is_target = parent->is_target;
	child->is_kernel = parent->is_kernel;
	child->maps = mapping_table__ref(parent->maps);
	return 0;
}

static int on_fork(void *context, const struct task_event *e)
{
	struct recorder *r = context;
	const struct thread_life *creator;
	const struct process_life *parent;
	struct process_life *process;
	struct thread_life *thread;
	char comm[LIFE_NAME_SIZE];

	advance(r, &e->header);
	if (fork_is_known(r, e)) {
		born_now(process_table__find_thread(r->lives, e->tid));
		return 0;
	}
	creator = process_table__find_thread(r->lives, e->ptid);
	parent = process_table__find(r->lives, e->ppid);
	snprintf(comm, sizeof(comm), "%s",
		 creator  ? creator->comm
		 : parent ? parent->name
			  : LIFE_UNKNOWN_NAME);
	if (e->pid != e->ppid && fork_process(r, e, comm))
		return -ENOMEM;
	process = need_process(r, e->pid, e->header.time);
	thread = process ? process_table__add_thread(r->lives, process, e->tid, comm,
						     e->header.time, e->header.time)
			 : NULL;
	if (!thread)
		return -ENOMEM;
	born_now(thread);
	return result(r);
}

static int on_task_exit(void *context, const struct task_event *e)
{
	struct recorder *r = context;
	struct process_life *process;
	struct thread_life *thread;

	advance(r, &e->header);
	process = process_table__find(r->lives, e->pid);
	if (!process)
		return 0;
	thread = find_thread_of(r, process, e->tid);
	if (thread && !thread->end)
		process_table__exit_thread(r->lives, thread, e->header.time);
	else if (!process->living)
		process_table__exit(r->lives, process, e->header.time);
	if (r->feed && process->end) {
		unwind_feed__withdraw(r->feed, process->pid);
		process->published = 0;
	}
	return result(r);
}

/* ---- names ----------------------------------------------------------------------------------- */

/*
 * Whose clock runs on under the leader's tid: the leader's, or that of the last other thread, since
 * an execve first ends all threads but its caller.
 */
static struct thread_life *caller_of_exec(struct process_life *process, struct thread_life *leader)
{
	struct thread_life *thread, *caller = NULL;

	if (leader && !leader->end)
		return leader;
	TAILQ_FOREACH(thread, &process->threads, sibling)
	if (!thread->end)
		caller = thread;
	return caller;
}

static int exec(struct recorder *r, struct process_life *old, const struct comm_event *e)
{
	struct thread_life *leader = find_thread_of(r, old, e->pid), *thread;
	struct thread_life *caller = caller_of_exec(old, leader);
	struct thread_life before = {};
	struct process_life *process;

	if (caller) {
		before = *caller;
		caller->cpu_seen = caller->cpu_last; /* the rest goes to the next life */
	}
	if (r->feed)
		unwind_feed__withdraw(r->feed, old->pid);
	process = process_table__exec(r->lives, old, e->comm, e->header.time);
	thread = process ? process_table__add_thread(r->lives, process, e->pid, e->comm,
						     e->header.time, e->header.time)
			 : NULL;
	if (!thread)
		return -ENOMEM;
	thread->told = before.told;
	thread->clock_start = before.clock_start;
	thread->sampled = before.sampled;
	thread->cpu_known = before.cpu_known;
	thread->cpu_last = before.cpu_last;
	thread->cpu_seen = before.cpu_seen;
	return result(r);
}

static int on_comm(void *context, const struct comm_event *e)
{
	struct recorder *r = context;
	struct process_life *process;
	struct thread_life *thread;

	advance(r, &e->header);
	process = need_process(r, e->pid, e->header.time);
	if (!process)
		return -ENOMEM;
	if (e->header.flags & EVENT_COMM_EXEC)
		return exec(r, process, e);
	thread = need_thread(r, e->pid, e->tid, e->header.time);
	if (!thread)
		return -ENOMEM;
	thread_life__rename(r->lives, thread, e->comm);
	return result(r);
}

/* ---- mappings -------------------------------------------------------------------------------- */

static int on_mmap(void *context, const struct mmap_event *e)
{
	struct recorder *r = context;
	struct mapping mapping = {
		.start = e->start,
		.end = e->start + e->length,
		.page_offset = e->page_offset,
	};
	struct process_life *process;
	int change;

	advance(r, &e->header);
	process = need_process(r, e->pid, e->header.time);
	if (!process)
		return -ENOMEM;
	mapping.dso = dso_table__of_mapping(&r->dsos, e);
	if (!mapping.dso.v)
		return result(r);
	change = mapping_table__add(&process->maps, &mapping, e->header.flags & EVENT_FROM_PROC);
	if (change == -ENOMEM)
		return change;
	if (change == MAPPING_KNOWN)
		r->stats.known_mappings++;
	else if (change == MAPPING_ADDED)
		process->maps_version++;
	if (change == MAPPING_ADDED && note_change(r, process))
		return -ENOMEM;
	return result(r);
}

static int on_maps_read(void *context, const struct maps_read_event *e)
{
	struct recorder *r = context;
	struct process_life *process;
	int removed;

	advance(r, &e->header);
	process = process_table__find(r->lives, e->pid);
	if (!process)
		return 0;
	removed = mapping_table__end_read(&process->maps);
	if (removed < 0)
		return removed;
	if (removed) {
		process->maps_version++;
		if (note_change(r, process))
			return -ENOMEM;
	}
	r->stats.stale_mappings += removed;
	return 0;
}

/* ---- the session ----------------------------------------------------------------------------- */

/* After lost records any mapping may be wrong. */
static int on_lost(void *context, const struct lost_event *e)
{
	struct recorder *r = context;

	advance(r, &e->header);
	if (e->source >= LOST_SOURCE_COUNT)
		return 0;
	profile_builder__lost(r->builder, e->source, e->count, e->since, e->header.time);
	if (e->source != LOST_SIDEBAND)
		return result(r);
	for (const struct process_life *p = process_table__first(r->lives); p;
	     p = process_life__next(p))
		if (!p->is_kernel)
			ask_reread(r, p->pid);
	return result(r);
}

static int on_clock_anchor(void *context, const struct clock_anchor_event *e)
{
	struct recorder *r = context;
	struct profile *session = r->session;
	bool new_epoch = e->header.flags & EVENT_NEW_EPOCH;
	uint64_t error = e->error_ns;

	advance(r, &e->header);
	if (!r->anchored) {
		r->anchored = true;
		r->first_monotonic = e->monotonic;
		r->first_realtime = e->realtime;
		session->clock_epochs = 1;
	} else if (new_epoch) {
		session->clock_epochs++;
	}
	if (e->tsc_khz)
		session->tsc_khz = e->tsc_khz;
	/* across epochs nothing was extrapolated */
	if (!new_epoch)
		error += e->extrapolation_error_ns < 0 ? -(uint64_t)e->extrapolation_error_ns
						       : (uint64_t)e->extrapolation_error_ns;
	session->clock_error_ns = max_u64(session->clock_error_ns, error);
	return jit_names__anchor(r->jit, e);
}

static int on_books(void *context, const struct books_event *e)
{
	struct recorder *r = context;
	struct profile_cpu_books books = {
		.cpu = e->cpu,
		.period = e->period,
		.time_enabled = e->time_enabled,
		.time_running = e->time_running,
		.due = e->period ? e->time_running / e->period : 0,
		.received = e->received,
	};

	advance(r, &e->header);
	memcpy(books.count, e->count, sizeof(books.count));
	if (!r->session->period)
		r->session->period = e->period;
	profile_builder__books(r->builder, &books);
	return result(r);
}

static int on_meta(void *context, const char *key, const char *value)
{
	struct recorder *r = context;
	uint64_t number;

	profile_builder__meta(r->builder, key, value);
	if (!strcmp(key, META_SAMPLING_START) && !r->start &&
	    !parse_u64(value, 1, UINT64_MAX, &number)) {
		r->start = number;
		r->session->start = number;
	} else if (!strcmp(key, META_PERIOD) && !parse_u64(value, 1, UINT64_MAX, &number)) {
		r->session->period = number;
	} else if (!strcmp(key, META_HZ) && !r->fallback_period &&
		   !parse_u64(value, 1, 1000000000, &number)) {
		r->fallback_period = 1000000000 / number;
	}
	return result(r);
}

static int on_end(void *context, const struct event_header *header)
{
	struct recorder *r = context;

	advance(r, header);
	r->session->end = header->time;
	r->ended = true;
	return 0;
}

int recorder__finish(struct recorder *r)
{
	struct profile *session = r->session;

	if (!r->ended) {
		session->cut_short = true;
		session->end = r->last_time;
	}
	process_table__settle(r->lives, session->end);
	session->period = period_of(r);
	if (r->anchored && !session->start)
		session->start = r->first_monotonic;
	if (r->anchored)
		session->start_realtime = r->first_realtime + (session->start - r->first_monotonic);
	r->failed |= jit_names__finish(r->jit) == -ENOMEM;
	return result(r);
}

/* ---- code that is made as it runs ------------------------------------------------------------ */

static int on_jit_file(void *context, const struct jit_file_event *e)
{
	struct recorder *r = context;
	struct process_life *process = process_table__find(r->lives, e->pid);

	advance(r, &e->header);
	if (process && process->born && e->process_start &&
	    !same_birth(process->born, e->process_start))
		process = NULL;
	return jit_names__file(r->jit, e, process);
}

/* What a jitdump says of frames goes to the unwinder, as tables do. */
static int feed_unwinding(struct recorder *r, const struct jit_bytes_event *e)
{
	_cleanup_free_ struct jit_unwinding *list = NULL;
	_cleanup_free_ struct unwind_piece *pieces = NULL;
	struct process_life *process;
	struct fed_process now;
	uint32_t pid;
	size_t count;
	int err = jit_names__unwinding(r->jit, e->file, &pid, &list, &count);

	process = err ? NULL : process_table__find(r->lives, pid);
	if (!process || process->jit_files[JIT_FILE_DUMP] != e->file || !process->maps)
		return err == -ENOMEM ? err : 0;
	pieces = calloc(count + 1, sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		pieces[i] = (struct unwind_piece){
			.start = list[i].address,
			.end = list[i].address + list[i].size,
			.section = {.data = list[i].eh_frame,
				    .size = list[i].eh_frame_size,
				    .address = list[i].eh_frame_address,
				    .is_eh_frame = true},
		};
	now = as_fed(process, e->header.time);
	err = unwind_feed__describe(r->feed, &now, pieces, count);
	if (err <= 0)
		return err;
	process->published = 0;
	return want_publication(r, process);
}

static int on_jit_bytes(void *context, const struct jit_bytes_event *e)
{
	struct recorder *r = context;
	int err;

	advance(r, &e->header);
	err = jit_names__bytes(r->jit, e);
	return err || !r->feed ? err : feed_unwinding(r, e);
}

/* ---- symbols --------------------------------------------------------------------------------- */

static int on_symbol_dso(void *context, const struct symbol_dso_event *e)
{
	struct recorder *r = context;

	r->symbols_of = (struct dso_id){e->dso};
	if (e->state < SYMBOL_STATE_COUNT)
		profile_builder__dso_state(r->builder, r->symbols_of, e->state);
	return 0;
}

/* A string of `size` bytes with its NUL at *at; "" for none, NULL for a damaged event. */
static const char *take_string(const char **at, const char *end, size_t size)
{
	const char *s = *at;

	if (!size)
		return "";
	if (size > (size_t)(end - s) || s[size - 1])
		return NULL;
	*at += size;
	return s;
}

/* The frame at *at as a line of the profile, and *at behind it. False: damaged. */
static bool take_line(struct recorder *r, const char **at, const char *end,
		      struct profile_line *line)
{
	struct symbol_event_frame frame;
	const char *start = *at, *name, *file, *definition_file;
	struct profile_function function;
	size_t size;

	if ((size_t)(end - start) < sizeof(frame))
		return false;
	memcpy(&frame, start, sizeof(frame));
	*at += sizeof(frame);
	name = take_string(at, end, frame.name_size);
	file = name ? take_string(at, end, frame.file_size) : NULL;
	definition_file = file ? take_string(at, end, frame.definition_file_size) : NULL;
	if (!definition_file)
		return false;
	size = (*at - start + EVENT_ALIGN - 1) & ~(size_t)(EVENT_ALIGN - 1);
	*at = size > (size_t)(end - start) ? end : start + size;

	function = (struct profile_function){
		.name = profile_builder__string(r->builder, name),
		.dso = r->symbols_of,
		.address = frame.function_address,
		.size = frame.function_size,
		.definition_line = frame.definition_line,
		.definition_column = frame.definition_column,
	};
	line->file = profile_builder__string(r->builder, file);
	function.definition_file = profile_builder__string(r->builder, definition_file);
	line->function = function.name.v ? profile_builder__function(r->builder, &function)
					 : (struct function_id){0};
	line->line = frame.line;
	line->column = frame.column;
	return true;
}

static int on_symbol(void *context, const struct symbol_event *e)
{
	struct recorder *r = context;
	struct location_id location = profile_builder__find_location(r->builder, r->symbols_of,
								     e->address);
	const char *at = e->payload, *end = (const char *)e + e->header.size;

	if (!location.v)
		return 0;
	r->lines.count = 0;
	for (uint32_t i = 0; i < min_u64(e->frames, SYMBOL_FRAMES_MAX); i++) {
		struct profile_line line;

		if (!take_line(r, &at, end, &line))
			break;
		if (line.function.v && vec_push(&r->lines, line))
			return -ENOMEM;
	}
	profile_builder__resolve(r->builder, location, e->elf_address, r->lines.data,
				 r->lines.count);
	return result(r);
}

static int on_symbols_end(void *context, const struct event_header *header)
{
	struct recorder *r = context;

	(void)header;
	r->session->finished_symbols = true;
	return 0;
}

struct event_handler recorder__handler(struct recorder *r)
{
	return (struct event_handler){
		.context = r,
		.sample = on_sample,
		.thread_cpu = on_thread_cpu,
		.mmap = on_mmap,
		.comm = on_comm,
		.fork = on_fork,
		.exit = on_task_exit,
		.lost = on_lost,
		.process = on_process,
		.thread = on_thread,
		.maps_read = on_maps_read,
		.clock_anchor = on_clock_anchor,
		.books = on_books,
		.meta = on_meta,
		.end = on_end,
		.jit_file = on_jit_file,
		.jit_bytes = on_jit_bytes,
		.symbol_dso = on_symbol_dso,
		.symbol = on_symbol,
		.symbols_end = on_symbols_end,
	};
}
