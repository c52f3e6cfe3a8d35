/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns samples into stacks, and accounts for CPU time.
 *
 * A life is added to the profile when it is first sampled, so many short processes without samples cost
 * nothing.
 *
 * Addresses. A return address points behind its call, which may be another line, another function, or
 * (if a call at the end of a mapping never returns) another file. So 1 is subtracted before the address is
 * looked up, here and nowhere else. Exact addresses are kept: the interrupted instruction of user and
 * kernel code, and the instruction interrupted by a signal.
 *
 * CPU time. A sample has the thread's CPU clock. The profile needs differences that add up to the CPU time
 * that the thread used while it was recorded. thread_clock.last is the clock up to which time has been
 * accounted for. It starts at
 *   - 0 for a thread whose start was recorded;
 *   - the clock that /proc reported before sampling began; CPU time between that reading and the start is
 *     removed by limiting the first difference to the time since the start;
 *   - the clock at its first sample minus at most one period, if nothing is known (records were lost).
 * The clock continues across execve, and from one window to the next: the first difference of a window
 * includes what the thread used after its last sample in the previous window. A closed window is never
 * changed. If a later reading is smaller, the surplus is taken back from the open window, and what exceeds
 * that (excess) from later differences.
 */
#include "process/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/vec.h"
#include "jit/jit_runtime.h"
#include "process/frame_address.h"
#include "process/window_lives.h"

struct recorder {
	struct world *world; /* not owned, as the next two */
	struct recording_facts *facts;
	struct profile_builder *builder;
	struct profile *session; /* in the builder */
	uint64_t start;		 /* of the window; 0: the recording's */
	uint64_t last_time;
	bool ended, closed, observes;
	bool failed; /* no memory */

	struct window_lives lives;
	VEC(struct dso_id) dsos;       /* by image */
	VEC(struct image_id) images;   /* by dso */
	struct dso_id kernel, unknown; /* made when first asked for */
	VEC(struct jit_process) jit_processes;
};

static struct process_observer observer_of(struct recorder *r);

struct recorder *recorder__new(struct world *world, struct recording_facts *facts,
			       struct profile_builder *builder, uint64_t start)
{
	struct recorder *r = calloc(1, sizeof(*r));
	struct process_observer observer;

	if (!r)
		return NULL;
	r->world = world;
	r->facts = facts;
	r->builder = r->lives.builder = builder;
	r->session = profile_builder__session(builder);
	r->start = r->session->start = start;
	observer = observer_of(r);
	if (recording_facts__begin_window(facts, builder) ||
	    process_table__observe(world__processes(world), &observer)) {
		recorder__free(r);
		return NULL;
	}
	r->observes = true;
	return r;
}

static void stop_observing(struct recorder *r)
{
	if (r->observes)
		process_table__unobserve(world__processes(r->world), r);
	r->observes = false;
}

void recorder__free(struct recorder *r)
{
	if (!r)
		return;
	stop_observing(r);
	window_lives__fini(&r->lives);
	vec_free(&r->dsos);
	vec_free(&r->images);
	vec_free(&r->jit_processes);
	free(r);
}

/* Called first for every event of the recording. */
static void advance(struct recorder *r, const struct event_header *header)
{
	if (!r->ended)
		r->last_time = max_u64(r->last_time, header->time);
	world__advance(r->world, header->time);
}

/* The result of an event callback: the world's error, or ours. */
static int result_of(const struct recorder *r, int err)
{
	if (err)
		return err;
	return r->failed ? -ENOMEM : profile_builder__error(r->builder);
}

/* ---- what becomes of lives ------------------------------------------------------------------- */

static void on_process_renamed(void *context, struct process_life *process)
{
	struct recorder *r = context;
	struct process_id id = window_lives__process_id(&r->lives, process);

	if (id.v)
		profile_builder__process_name(r->builder, id,
					      profile_builder__string(r->builder, process->name));
}

static void on_process_ended(void *context, struct process_life *process, enum life_end how)
{
	struct recorder *r = context;

	profile_builder__process_end(r->builder, window_lives__process_id(&r->lives, process),
				     process->end, how == LIFE_EXEC);
}

static void on_process_revived(void *context, struct process_life *process)
{
	struct recorder *r = context;

	profile_builder__process_end(r->builder, window_lives__process_id(&r->lives, process), 0,
				     false);
}

static void on_thread_renamed(void *context, struct thread_life *thread)
{
	struct recorder *r = context;
	struct window_thread *entry = window_lives__thread(&r->lives, thread);
	struct string_id name;

	if (!entry)
		return;
	name = profile_builder__string(r->builder, thread->comm);
	if (name.v != entry->comm.v)
		profile_builder__thread_renamed(r->builder, entry->id, thread->renamed, name);
	entry->comm = name;
	profile_builder__thread_name(r->builder, entry->id, entry->comm);
}

/* The end is recorded in the window in which it occurs. */
static void on_thread_ended(void *context, struct thread_life *thread, enum life_end how)
{
	struct recorder *r = context;
	struct window_thread *entry;

	thread->counted |= how == LIFE_EXIT &&
			   process_table__is_asked_for(world__processes(r->world), thread);
	if (thread->counted && !window_lives__show(&r->lives, thread, thread->end, 0))
		r->failed = true;
	entry = window_lives__thread(&r->lives, thread);
	if (entry)
		profile_builder__thread_end(r->builder, entry->id, thread->end);
}

static void settle_thread(struct recorder *r, struct thread_life *thread);

static void on_thread_forgotten(void *context, struct thread_life *thread)
{
	settle_thread(context, thread);
}

static struct process_observer observer_of(struct recorder *r)
{
	return (struct process_observer){
		.context = r,
		.process_renamed = on_process_renamed,
		.process_ended = on_process_ended,
		.process_revived = on_process_revived,
		.thread_renamed = on_thread_renamed,
		.thread_ended = on_thread_ended,
		.thread_forgotten = on_thread_forgotten,
	};
}

/* ---- dsos ------------------------------------------------------------------------------------ */

static struct dso_id add_dso(struct recorder *r, const struct image *image)
{
	struct profile_dso dso = {
		.kind = image->kind,
		.is_library = image->is_library,
		.deleted = image->deleted,
		.file_state = image->file_state,
		.build_id_size = image->build_id_size,
		.major = image->major,
		.minor = image->minor,
		.inode = image->inode,
		.inode_generation = image->inode_generation,
	};

	memcpy(dso.build_id, image->build_id, sizeof(dso.build_id));
	dso.path = profile_builder__string(r->builder, image->path);
	dso.name = profile_builder__string(r->builder, image->name);
	return profile_builder__dso(r->builder, &dso);
}

/* Which image a dso is. */
static int note_image(struct recorder *r, struct dso_id dso, struct image_id image)
{
	while (r->images.count <= dso.v)
		if (vec_push(&r->images, (struct image_id){}))
			return -ENOMEM;
	r->images.data[dso.v] = image;
	return 0;
}

/* The dso of an image in this profile; 0: out of memory. */
static struct dso_id dso_of_image(struct recorder *r, struct image_id id)
{
	struct dso_id dso;

	if (id.v < r->dsos.count && r->dsos.data[id.v].v)
		return r->dsos.data[id.v];
	while (r->dsos.count <= id.v) {
		if (vec_push(&r->dsos, (struct dso_id){})) {
			r->failed = true;
			return (struct dso_id){0};
		}
	}
	dso = add_dso(r, image_table__get(world__images(r->world), id));
	r->failed |= note_image(r, dso, id) != 0;
	r->dsos.data[id.v] = dso;
	return dso;
}

struct image_id recorder__image_of(const struct recorder *r, struct dso_id dso)
{
	return dso.v < r->images.count ? r->images.data[dso.v] : (struct image_id){0};
}

static struct dso_id add_special_dso(struct recorder *r, enum dso_kind kind, const char *path,
				     const char *name)
{
	struct profile_dso dso = {
		.kind = kind,
		.path = profile_builder__string(r->builder, path),
		.name = profile_builder__string(r->builder, name),
	};

	return profile_builder__dso(r->builder, &dso);
}

static struct dso_id kernel_dso(struct recorder *r)
{
	if (!r->kernel.v)
		r->kernel = add_special_dso(r, DSO_KERNEL, "[kernel.kallsyms]", "[kernel]");
	return r->kernel;
}

static struct dso_id unknown_dso(struct recorder *r)
{
	if (!r->unknown.v)
		r->unknown = add_special_dso(r, DSO_UNKNOWN, "[unknown]", "[unknown]");
	return r->unknown;
}

static enum profile_category category_of(const struct image *image)
{
	switch (image->kind) {
	case DSO_FILE:
		return image->is_library ? CATEGORY_LIBRARY : CATEGORY_USER;
	case DSO_VDSO:
		return CATEGORY_LIBRARY;
	case DSO_KERNEL:
		return CATEGORY_KERNEL;
	case DSO_JIT:
		return CATEGORY_JIT;
	case DSO_NONE:
	case DSO_UNKNOWN:
		break;
	}
	return CATEGORY_OTHER;
}

/* ---- code that is made as it runs ------------------------------------------------------------ */

static const struct jit_runtime *runtime_of(const struct recorder *r,
					    const struct mapping_table *table)
{
	struct mappings maps = mapping_table__all(table);
	const struct jit_runtime *best = NULL;

	for (size_t i = 0; i < maps.count; i++) {
		const struct image *image = image_table__get(world__images(r->world),
							     maps.data[i].image);
		const struct jit_runtime *runtime = image->kind == DSO_FILE
							    ? jit_runtime_of_file(image->name)
							    : NULL;

		if (runtime && (!best || runtime < best))
			best = runtime;
	}
	return best;
}

/* A sampled process that is already in the profile runs JIT code. */
static void note_jit_process(struct recorder *r, const struct process_life *life)
{
	struct window_process *entry = window_lives__process(&r->lives, life);
	struct jit_process process = {};

	if (!entry || entry->jit || !entry->id.v)
		return;
	process.id = entry->id;
	process.runtime = runtime_of(r, life->maps);
	memcpy(process.files, life->jit_files, sizeof(process.files));
	if (vec_push(&r->jit_processes, process))
		r->failed = true;
	else
		entry->jit = r->jit_processes.count;
}

const struct jit_process *recorder__jit_processes(const struct recorder *r, size_t *count)
{
	*count = r->jit_processes.count;
	return r->jit_processes.data;
}

/* A JIT file of a process that may already be in the window. */
static void note_jit_file(struct recorder *r, const struct jit_file_event *e)
{
	const struct process_life *life = process_table__find(world__processes(r->world), e->pid);
	struct window_process *entry;

	if (!life || life->jit_files[e->kind] != e->file ||
	    !window_lives__process_id(&r->lives, life).v)
		return;
	entry = window_lives__process(&r->lives, life);
	if (entry && entry->jit)
		r->jit_processes.data[entry->jit - 1].files[e->kind] = e->file;
}

/* ---- frames to stacks ------------------------------------------------------------------------ */

static struct location_id kernel_location(struct recorder *r, uint64_t address)
{
	return profile_builder__location(r->builder, kernel_dso(r), address, (struct process_id){0},
					 CATEGORY_KERNEL);
}

static struct location_id unknown_location(struct recorder *r, const struct process_life *process,
					   uint64_t address)
{
	return profile_builder__location(r->builder, unknown_dso(r), address,
					 window_lives__process_id(&r->lives, process),
					 CATEGORY_OTHER);
}

/* *mapped is false if the address is in no mapping. */
static struct location_id user_location(struct recorder *r, struct process_life *process,
					uint64_t frame, bool *mapped)
{
	uint64_t address = frame_user_address(frame);
	const struct mapping *m = mapping_table__find(process->maps, address);
	const struct image *image;

	*mapped = m != NULL;
	if (!m)
		return unknown_location(r, process, address);
	image = image_table__get(world__images(r->world), m->image);
	if (image->kind == DSO_JIT)
		note_jit_process(r, process);
	else
		address = address - m->start + m->page_offset;
	return profile_builder__location(r->builder, dso_of_image(r, m->image), address,
					 window_lives__process_id(&r->lives, process),
					 category_of(image));
}

static void remember(struct stack_memo *memo, uint64_t frame, struct stack_id stack)
{
	if (vec_reserve(&memo->stacks, memo->stacks.count + 1) || vec_push(&memo->frames, frame))
		return;
	memo->stacks.data[memo->stacks.count++] = stack;
}

/* How many outermost frames are the same as in the thread's last sample. */
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

/* For a sample whose frames were not requested or could not be read. */
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
static struct stack_id make_stack(struct recorder *r, struct process_life *process,
				  struct stack_memo *memo, const struct sample_event *e)
{
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
		world__ask_reread(r->world, process->pid);
	}
	return stack;
}

/* ---- samples and CPU time -------------------------------------------------------------------- */

/*
 * A reading can be too large, by time stolen by a hypervisor that the kernel has not noticed yet, but never
 * too small. So a later, smaller reading corrects the earlier ones: in the end each reading counts as the
 * smallest value from then on.
 */
static void correct_cpu(struct recorder *r, struct thread_life *thread, uint64_t cpu_time)
{
	struct thread_clock *cpu = &thread->cpu;
	struct window_thread *entry = window_lives__thread(&r->lives, thread);
	uint64_t surplus;

	if (!cpu->sampled || cpu_time >= cpu->last)
		return;
	surplus = cpu->last - cpu_time;
	if (entry)
		surplus -= profile_builder__take_back_cpu(r->builder, entry->id, surplus);
	cpu->excess += surplus;
	cpu->last = cpu->seen = cpu_time;
}

/* More CPU time was used: accounts for it, minus the excess of earlier differences. */
static uint64_t pay_excess(struct thread_clock *cpu, uint64_t used)
{
	uint64_t paid = min_u64(used, cpu->excess);

	cpu->excess -= paid;
	return used - paid;
}

static uint64_t account_cpu(struct recorder *r, struct thread_life *thread, uint64_t time,
			    uint64_t cpu_time)
{
	struct thread_clock *cpu = &thread->cpu;
	uint64_t start = recording_facts__start(r->facts), delta;
	bool older = start && cpu->start < start;

	if (!cpu->known) {
		cpu->last = cpu_time - min_u64(cpu_time, recording_facts__period(r->facts));
		cpu->known = true;
	}
	correct_cpu(r, thread, cpu_time);
	delta = cpu_time > cpu->last ? cpu_time - cpu->last : 0;
	if (!cpu->sampled && older)
		delta = min_u64(delta, time > start ? time - start : 0);
	cpu->sampled = true;
	cpu->last = max_u64(cpu->last, cpu_time);
	cpu->seen = max_u64(cpu->seen, cpu->last);
	return pay_excess(cpu, delta);
}

/*
 * The CPU time that the thread used after its last sample. It is set when there are no more events of the
 * thread, in this window, if any window has the thread.
 */
static void settle_thread(struct recorder *r, struct thread_life *thread)
{
	struct window_thread *entry = window_lives__thread(&r->lives, thread);
	uint64_t tail = thread->cpu.seen - thread->cpu.last;

	if (!entry && thread->counted && (tail || thread->cpu.excess))
		entry = window_lives__show(&r->lives, thread, r->last_time, 0);
	if (!entry)
		return;
	tail = pay_excess(&thread->cpu, tail);
	profile_builder__thread_cpu_tail(r->builder, entry->id, tail);
	profile_builder__thread_cpu_excess(r->builder, entry->id, thread->cpu.excess);
}

static void count_frames(struct recorder *r, const struct sample_event *e)
{
	for (size_t i = 0; i < e->user_frames; i++) {
		enum frame_kind kind = frame_kind(e->frames[e->kernel_frames + i]);

		r->session->frames_found[kind < FRAME_KIND_COUNT ? kind : FRAME_NONE]++;
	}
}

static int on_sample(void *context, const struct sample_event *e)
{
	struct recorder *r = context;
	struct profile_sample sample = {
		.kind = SAMPLE_CPU,
		.time = e->header.time,
		.end = e->user_end < STACK_END_COUNT ? e->user_end : STACK_END_NO_REGS,
	};
	struct window_thread *entry;
	struct thread_life *thread;

	advance(r, &e->header);
	thread = world__thread_at(r->world, e->tgid, e->tid, sample.time);
	if (!thread)
		return -ENOMEM;
	entry = window_lives__show(&r->lives, thread, sample.time,
				   recording_facts__period(r->facts));
	if (!entry)
		return -ENOMEM;
	thread->counted = true;
	sample.weight = account_cpu(r, thread, sample.time, e->cpu_time);
	/* no two samples of a thread have the same time, also across windows */
	sample.time = thread->last_sample = max_u64(sample.time, thread->last_sample + 1);
	sample.stack = make_stack(r, thread->process, &entry->memo, e);
	sample.comm = entry->comm;
	count_frames(r, e);
	profile_builder__sample(r->builder, entry->id, &sample);
	return result_of(r, 0);
}

static int on_thread_cpu(void *context, const struct thread_cpu_event *e)
{
	struct recorder *r = context;
	struct thread_life *thread;
	struct thread_clock *cpu;

	advance(r, &e->header);
	thread = process_table__find_thread(world__processes(r->world), e->tid);
	if (!thread || thread->process->pid != e->tgid)
		return 0;
	cpu = &thread->cpu;
	/* before sampling began each reading is a new baseline */
	if (!cpu->known || (!recording_facts__start(r->facts) && !cpu->sampled)) {
		cpu->last = max_u64(cpu->last, e->cpu_time);
		cpu->known = true;
	}
	/* a reading of a running thread from /proc is up to a tick old, so it corrects nothing */
	if (e->header.flags & EVENT_EXITED)
		correct_cpu(r, thread, e->cpu_time);
	cpu->seen = max_u64(max_u64(cpu->seen, cpu->last), e->cpu_time);
	return 0;
}

/* ---- processes, threads, mappings: the world's ----------------------------------------------- */

#define PASS_ON(name, event_type)                                                                  \
	static int on_##name(void *context, const struct event_type *e)                            \
	{                                                                                          \
		struct recorder *r = context;                                                      \
                                                                                                   \
		advance(r, &e->header);                                                            \
		return result_of(r, world__##name(r->world, e));                                   \
	}

PASS_ON(process, process_event)
PASS_ON(thread, thread_event)
PASS_ON(fork, task_event)
PASS_ON(comm, comm_event)
static int on_task_exit(void *context, const struct task_event *e)
{
	struct recorder *r = context;

	advance(r, &e->header);
	return result_of(r, world__exit(r->world, e));
}

static int on_cgroup(void *context, const struct cgroup_event *e)
{
	struct recorder *r = context;
	const struct process_life *life;
	int err;

	advance(r, &e->header);
	err = world__cgroup(r->world, e);
	life = process_table__find(world__processes(r->world), e->pid);
	if (!err && life)
		profile_builder__process_cgroup(r->builder,
						window_lives__process_id(&r->lives, life),
						profile_builder__string(r->builder, e->path));
	return result_of(r, err);
}

/* Whose memory is known is in the profile, sampled in this window or not. */
static int on_memory(void *context, const struct memory_event *e)
{
	struct recorder *r = context;
	const struct process_life *life;
	struct process_id id = {0};
	bool is_recorder = e->header.flags & EVENT_RECORDER;

	advance(r, &e->header);
	life = process_table__find(world__processes(r->world), e->pid);
	if (life && !life->end)
		id = window_lives__show_process(&r->lives, life, e->header.time);
	if (id.v || (is_recorder && !life))
		profile_builder__memory(r->builder, id, e->pid, is_recorder, e->header.time,
					e->resident);
	return result_of(r, 0);
}

PASS_ON(maps_read, maps_read_event)
PASS_ON(jit_bytes, jit_bytes_event)

/* Every image is a dso in the window in which it was mapped, sampled or not. */
static int on_mmap(void *context, const struct mmap_event *e)
{
	struct recorder *r = context;
	struct image_id image = {0};
	struct dso_id dso;
	int err;

	advance(r, &e->header);
	err = world__mmap(r->world, e, &image);
	if (err)
		return err;
	dso = dso_of_image(r, image);
	/* the image may have been opened since */
	if (dso.v && profile_builder__get_dso(r->builder, dso)->file_state != FILE_STATE_RIGHT)
		add_dso(r, image_table__get(world__images(r->world), image));
	return result_of(r, 0);
}

static int on_jit_file(void *context, const struct jit_file_event *e)
{
	struct recorder *r = context;
	int err;

	advance(r, &e->header);
	err = world__jit_file(r->world, e);
	note_jit_file(r, e);
	return result_of(r, err);
}

/* ---- the recording --------------------------------------------------------------------------- */

static int on_lost(void *context, const struct lost_event *e)
{
	struct recorder *r = context;

	advance(r, &e->header);
	if (e->source >= LOST_SOURCE_COUNT)
		return 0;
	profile_builder__lost(r->builder, e->source, e->count, e->since, e->header.time);
	if (e->source == LOST_SIDEBAND)
		world__lost_sideband(r->world);
	return result_of(r, 0);
}

static int on_clock_anchor(void *context, const struct clock_anchor_event *e)
{
	struct recorder *r = context;
	struct profile *session = r->session;
	bool new_epoch = e->header.flags & EVENT_NEW_EPOCH;
	uint64_t error = e->error_ns;

	advance(r, &e->header);
	recording_facts__anchor(r->facts, e);
	if (!session->clock_epochs) {
		session->clock_epochs = 1;
	} else if (new_epoch) {
		session->clock_epochs++;
		profile_builder__epoch(r->builder, e->header.time);
	}
	if (e->tsc_khz)
		session->tsc_khz = e->tsc_khz;
	/* across epochs nothing was extrapolated */
	if (!new_epoch)
		error += e->extrapolation_error_ns < 0 ? -(uint64_t)e->extrapolation_error_ns
						       : (uint64_t)e->extrapolation_error_ns;
	session->clock_error_ns = max_u64(session->clock_error_ns, error);
	return 0;
}

static int on_books(void *context, const struct books_event *e)
{
	struct recorder *r = context;
	struct profile_cpu_books books;
	int err;

	advance(r, &e->header);
	err = recording_facts__books(r->facts, e);
	books = recording_facts__window_books(r->facts, e);
	profile_builder__books(r->builder, &books);
	return result_of(r, err);
}

static int on_meta(void *context, const char *key, const char *value)
{
	struct recorder *r = context;
	uint64_t started = recording_facts__start(r->facts);
	int err = recording_facts__meta(r->facts, key, value);

	profile_builder__meta(r->builder, key, value);
	if (!started && !r->start)
		r->session->start = recording_facts__start(r->facts);
	return result_of(r, err);
}

static int on_end(void *context, const struct event_header *header)
{
	struct recorder *r = context;

	advance(r, header);
	r->session->end = header->time;
	r->ended = true;
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
		.memory = on_memory,
		.cgroup = on_cgroup,
		.clock_anchor = on_clock_anchor,
		.books = on_books,
		.meta = on_meta,
		.end = on_end,
		.jit_file = on_jit_file,
		.jit_bytes = on_jit_bytes,
	};
}

/* ---- the end of the window ------------------------------------------------------------------- */

/* `final`: nothing comes any more. */
static void settle_threads(struct recorder *r, const struct process_life *first, bool final)
{
	struct process_table *table = world__processes(r->world);
	struct thread_life *thread;

	for (const struct process_life *p = first; p; p = process_life__next(p)) {
		TAILQ_FOREACH(thread, &p->threads, sibling)
		{
			if (!thread->ended && process_table__is_asked_for(table, thread))
				window_lives__show(&r->lives, thread, r->session->end, 0);
			if (final)
				settle_thread(r, thread);
		}
	}
}

/* The wall clock at the start, from the nearest anchor. */
static void settle_realtime(struct recorder *r)
{
	struct profile *session = r->session;
	struct clock_moment moment;

	if (!recording_facts__first_anchor(r->facts, &moment))
		return;
	if (r->start)
		recording_facts__last_anchor(r->facts, &moment);
	if (!session->start)
		session->start = moment.monotonic;
	session->start_realtime = moment.realtime + (session->start - moment.monotonic);
}

int recorder__close(struct recorder *r, uint64_t end)
{
	struct profile *session = r->session;
	struct process_table *table = world__processes(r->world);

	if (r->closed)
		return result_of(r, 0);
	r->closed = true;
	if (end) {
		session->end = end;
	} else if (!r->ended) {
		session->cut_short = true;
		session->end = r->last_time;
	}
	settle_threads(r, process_table__first_dead(table), !end);
	settle_threads(r, process_table__first_living(table), !end);
	session->period = recording_facts__period(r->facts);
	settle_realtime(r);
	stop_observing(r);
	return result_of(r, 0);
}
