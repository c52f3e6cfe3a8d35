/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns samples into stacks, and accounts for CPU time.
 *
 * A life is added to the profile at its first sample, so processes without samples cost nothing.
 *
 * A return address points behind its call, which may be another line, another function, or (if a
 * call at the end of a mapping never returns) another file. So 1 is subtracted before the address
 * is looked up. Exact addresses are kept: the interrupted instruction of user and kernel code, and
 * the instruction interrupted by a signal.
 */
#include "world/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/parse.h"
#include "runtimes/place/managed_frames.h"
#include "runtimes/runtime.h"
#include "runtimes/table.h"
#include "stream/kernel_code.h"
#include "world/image_table.h"
#include "world/kernel_changes.h"
#include "world/mapping_table.h"
#include "world/process_table.h"
#include "world/profile_symbols.h"
#include "world/recording_facts.h"
#include "world/thread_accounts.h"
#include "world/wall_accounts.h"
#include "world/wall_states.h"
#include "world/window_lives.h"

#define RUNTIME_LOOKS (4u << 20) /* mappings, of one window */

/*
 * The location of an address that was looked up lately, in the mappings of a process at the time
 * or in the kernel. Samples are mostly of few addresses: these fit into a CPU's cache, in which the
 * table of all locations does not.
 */
struct recent_place {
	uint64_t address;
	uint64_t serial, version; /* of the process and its mappings; 0 and the kernel's changes */
	struct location_id location; /* 0: not looked up */
	bool is_mapped;
};
#define RECENT_PLACES 4096

struct recorder {
	struct world *world; /* not owned, as the next two */
	struct recording_facts *facts;
	struct profile_builder *builder;
	struct profile *session; /* in the builder */
	uint64_t start;		 /* of the window; 0: the recording's */
	uint64_t last_time;
	uint64_t visited; /* CLOCK_MONOTONIC ns: when the latest visit began, as far as known */
	bool ended, closed, observes;
	bool failed;	 /* no memory */
	bool has_events; /* samples of an event that is no clock */

	struct window_lives lives;
	struct thread_accounts accounts;
	struct managed_frames *managed;
	struct kernel_changes kernel_changes;
	VEC(struct dso_id) dsos;       /* by image */
	struct dso_id kernel, unknown; /* made when first needed */
	struct recent_place recent[RECENT_PLACES];
	VEC(struct jit_process) jit_processes;
	struct gil_counts gil;
	size_t runtime_looks; /* mappings that may still be looked at, for runtimes of processes */
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
	r->accounts = (struct thread_accounts){builder, &r->lives, facts};
	r->session = profile_builder__session(builder);
	r->start = r->session->start = start;
	r->runtime_looks = RUNTIME_LOOKS;
	observer = observer_of(r);
	r->managed = managed_frames__new(builder, world__images(world), world__code(world));
	if (!r->managed || recording_facts__begin_window(facts, builder) ||
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
	managed_frames__free(r->managed);
	kernel_changes__fini(&r->kernel_changes);
	vec_free(&r->dsos);
	vec_free(&r->jit_processes);
	vec_free(&r->gil.rows);
	free(r);
}

/* Called first for every event of the recording. */
static struct recorder *advance(void *context, const struct event_header *header)
{
	struct recorder *r = context;

	if (!r->ended)
		r->last_time = max_u64(r->last_time, header->time);
	world__advance(r->world, header->time);
	return r;
}

/* The result of an event callback: the world's error, or ours. */
static int result_of(const struct recorder *r, int err)
{
	if (err)
		return err;
	return r->failed ? -ENOMEM : profile_builder__error(r->builder);
}

/* ---- what becomes of lives ------------------------------------------------------------------- */

/* Is the name to be entered now? Otherwise with the next sample, or at the end. */
static bool is_early(struct window_name *name)
{
	name->is_old = name->changes >= PROFILE_RENAMES_MAX;
	name->changes += !name->is_old;
	return !name->is_old;
}

static void name_process(struct recorder *r, const struct process_life *process)
{
	struct process_id id = window_lives__process_id(&r->lives, process);

	if (id.v)
		profile_builder__process_name(r->builder, id,
					      profile_builder__string(r->builder, process->name));
}

static void on_process_renamed(void *context, struct process_life *process)
{
	struct recorder *r = context;
	struct window_process *entry = life_entry(&r->lives.processes, process);

	if (entry && is_early(&entry->name))
		name_process(r, process);
}

static void settle_process_name(struct recorder *r, const struct process_life *process)
{
	struct window_process *entry = life_entry(&r->lives.processes, process);

	if (!entry || !entry->name.is_old)
		return;
	entry->name.is_old = false;
	name_process(r, process);
}

static void on_process_ended(void *context, struct process_life *process, enum life_end how)
{
	struct recorder *r = context;

	settle_process_name(r, process);
	profile_builder__process_end(r->builder, window_lives__process_id(&r->lives, process),
				     process->end, how == LIFE_EXEC);
}

static void on_process_revived(void *context, struct process_life *process)
{
	struct recorder *r = context;

	profile_builder__process_end(r->builder, window_lives__process_id(&r->lives, process), 0,
				     false);
}

static void name_thread(struct recorder *r, const struct thread_life *thread,
			struct window_thread *entry)
{
	struct string_id name = profile_builder__string(r->builder, thread->comm);

	entry->name.is_old = false;
	if (name.v != entry->comm.v)
		profile_builder__thread_renamed(r->builder, entry->id, thread->renamed, name);
	entry->comm = name;
	profile_builder__thread_name(r->builder, entry->id, entry->comm);
}

static void on_thread_renamed(void *context, struct thread_life *thread)
{
	struct recorder *r = context;
	struct window_thread *entry = window_lives__thread(&r->lives, thread);

	if (entry && is_early(&entry->name))
		name_thread(r, thread, entry);
}

static void settle_thread_name(struct recorder *r, const struct thread_life *thread)
{
	struct window_thread *entry = window_lives__thread(&r->lives, thread);

	if (entry && entry->name.is_old)
		name_thread(r, thread, entry);
}

/* The end is recorded in the window in which it occurs. */
static void on_thread_ended(void *context, struct thread_life *thread, enum life_end how)
{
	struct recorder *r = context;
	struct window_thread *entry;

	thread->counted |= how == LIFE_EXIT &&
			   process_table__is_target(world__processes(r->world), thread);
	if (thread->counted && !window_lives__show(&r->lives, thread, thread->end, 0))
		r->failed = true;
	settle_thread_name(r, thread);
	entry = window_lives__thread(&r->lives, thread);
	if (entry)
		profile_builder__thread_end(r->builder, entry->id, thread->end);
}

static void on_thread_forgotten(void *context, struct thread_life *thread)
{
	struct recorder *r = context;

	thread_accounts__settle(&r->accounts, thread, r->last_time);
	if (wall_accounts__settle(&r->accounts, thread))
		r->failed = true;
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
	struct profile_dso dso = image->dso;

	dso.path = profile_builder__string(r->builder, image->path);
	dso.name = profile_builder__string(r->builder, image->name);
	return profile_builder__dso(r->builder, &dso);
}

/* The dso of an image in this profile; 0: out of memory. */
static struct dso_id dso_of_image(struct recorder *r, struct image_id id)
{
	struct dso_id *dso = vec_at(&r->dsos, id.v);

	if (!dso) {
		r->failed = true;
		return (struct dso_id){0};
	}
	if (!dso->v)
		*dso = add_dso(r, image_table__get(world__images(r->world), id));
	return *dso;
}

const struct dso_id *recorder__dsos(const struct recorder *r, size_t *count)
{
	*count = r->dsos.count;
	return r->dsos.data;
}

const struct image *recorder__image(const struct recorder *r, struct image_id id)
{
	return image_table__get(world__images(r->world), id);
}

/* A dso without a file, made when it is first needed. */
static struct dso_id special_dso(struct recorder *r, struct dso_id *known, enum dso_kind kind,
				 const char *path, const char *name)
{
	struct profile_dso dso = {.kind = kind};

	if (known->v)
		return *known;
	dso.path = profile_builder__string(r->builder, path);
	dso.name = profile_builder__string(r->builder, name);
	*known = profile_builder__dso(r->builder, &dso);
	return *known;
}

static enum profile_category category_of(const struct image *image)
{
	switch (image->dso.kind) {
	case DSO_FILE:
		return image->dso.is_library ? CATEGORY_LIBRARY : CATEGORY_USER;
	case DSO_VDSO:
		return CATEGORY_LIBRARY;
	case DSO_KERNEL:
		return CATEGORY_KERNEL;
	case DSO_JIT:
		return CATEGORY_JIT;
	case DSO_NONE:
	case DSO_UNKNOWN:
	case DSO_RUNTIME:
		break;
	}
	return CATEGORY_OTHER;
}

/* ---- JIT code -------------------------------------------------------------------------------- */

struct runtime_search {
	struct recorder *r;
	const struct runtime *best;
};

static int look_for_runtime(void *context, const struct mapping *mapping)
{
	struct runtime_search *search = context;
	const struct image *image = image_table__get(world__images(search->r->world),
						     mapping->image);
	const struct runtime *runtime = image->dso.kind == DSO_FILE ? runtime_of_file(image->name)
								    : NULL;

	if (!search->r->runtime_looks)
		return 1;
	search->r->runtime_looks--;
	if (runtime && (!search->best || runtime_rank(runtime) < runtime_rank(search->best)))
		search->best = runtime;
	return 0;
}

/* Forks share mappings, however many: after RUNTIME_LOOKS of them no runtime is looked for. */
static const struct runtime *runtime_of(struct recorder *r, const struct mapping_table *table)
{
	struct runtime_search search = {.r = r};

	return mapping_table__visit(table, look_for_runtime, &search) ? NULL : search.best;
}

/* A sampled process that is already in the profile runs JIT code. */
static void note_jit_process(struct recorder *r, const struct process_life *life)
{
	struct window_process *entry = window_lives__process(&r->lives, life);
	struct jit_process process = {};

	if (!entry || entry->jit || !entry->id.v)
		return;
	process.id = entry->id;
	process.life = life->number.serial;
	process.runtime = runtime_of(r, life->maps);
	memcpy(process.files, life->jit_files, sizeof(process.files));
	if (vec_push(&r->jit_processes, process))
		r->failed = true;
	else
		entry->jit = r->jit_processes.count;
}

/* Report processes whose interpreter cannot be read, unless they write a perf map or jitdump. */
static void note_refused(struct recorder *r, const struct process_life *first)
{
	for (const struct process_life *p = first; p; p = process_life__next(p)) {
		struct jit_process process = {.life = p->number.serial, .refused = p->unread};
		struct window_process *entry;

		if (p->unread == CODE_RUNTIME_READ || p->has_followed_file)
			continue;
		process.id = window_lives__process_id(&r->lives, p);
		entry = process.id.v ? window_lives__process(&r->lives, p) : NULL;
		if (!entry)
			continue;
		process.runtime = runtime_of_note(p->unread_kind);
		if (entry->jit)
			r->jit_processes.data[entry->jit - 1].refused = p->unread;
		else if (vec_push(&r->jit_processes, process))
			r->failed = true;
		else
			entry->jit = r->jit_processes.count;
	}
}

/* Of frames that nothing else names. 0 or -ENOMEM. */
static int suggest_names(struct recorder *r)
{
	_cleanup_free_ uint64_t *lives = NULL;
	size_t count = 0;

	for (size_t i = 0; i < r->jit_processes.count; i++)
		count = max_u64(count, r->jit_processes.data[i].id.v + 1);
	if (!count)
		return 0;
	lives = calloc(count, sizeof(*lives));
	if (!lives)
		return -ENOMEM;
	for (size_t i = 0; i < r->jit_processes.count; i++)
		lives[r->jit_processes.data[i].id.v] = r->jit_processes.data[i].life;
	return managed_frames__suggest(r->managed, lives, count);
}

const uint64_t *recorder__kernel_changes(const struct recorder *r, size_t *count)
{
	*count = r->kernel_changes.times.count;
	return r->kernel_changes.times.data;
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

/* Where the location of an address is, or is to be kept. */
static struct recent_place *recent_place(struct recorder *r, uint64_t address, uint64_t serial,
					 uint64_t version)
{
	uint64_t scrambled = (address + (serial << 48)) * UINT64_C(0x9e3779b97f4a7c15);
	struct recent_place *place = &r->recent[scrambled >> 32 & (RECENT_PLACES - 1)];

	if (place->address != address || place->serial != serial || place->version != version)
		*place = (struct recent_place){address, serial, version, {0}, true};
	return place;
}

static struct location_id kernel_location(struct recorder *r, uint64_t address)
{
	struct recent_place *recent = recent_place(r, address, 0, r->kernel_changes.times.count);
	struct profile_location l = {.address = address, .category = CATEGORY_KERNEL};

	if (recent->location.v)
		return recent->location;
	l.dso = special_dso(r, &r->kernel, DSO_KERNEL, "[kernel.kallsyms]", "[kernel]");
	recent->location = profile_builder__version(
		r->builder, &l, kernel_changes__version(&r->kernel_changes, address));
	return recent->location;
}

static struct location_id unknown_location(struct recorder *r, const struct process_life *process,
					   uint64_t address)
{
	return profile_builder__location(
		r->builder, special_dso(r, &r->unknown, DSO_UNKNOWN, "[unknown]", "[unknown]"),
		address, window_lives__process_id(&r->lives, process), CATEGORY_OTHER);
}

/* *mapped is false if the address is in no mapping. */
static struct location_id user_location(struct recorder *r, struct process_life *process,
					uint64_t frame, bool *mapped)
{
	uint64_t address = frame_user_address(frame);
	struct recent_place *recent;
	const struct mapping *m;
	const struct image *image;

	if (frame >> FRAME_KIND_SHIFT == FRAME_MANAGED) {
		if (managed_frames__is_made(r->managed, frame))
			note_jit_process(r, process);
		return managed_frames__location(r->managed, frame);
	}
	recent = recent_place(r, address, process->number.serial, process->maps_version);
	*mapped = recent->is_mapped;
	if (recent->location.v)
		return recent->location;
	m = mapping_table__find(process->maps, address);
	*mapped = recent->is_mapped = m != NULL;
	if (!m) {
		recent->location = unknown_location(r, process, address);
		return recent->location;
	}
	image = image_table__get(world__images(r->world), m->image);
	if (image->dso.kind == DSO_UNKNOWN) /* not admitted */
		return unknown_location(r, process, address);
	if (image->dso.kind != DSO_JIT) {
		recent->location = profile_builder__location(
			r->builder, dso_of_image(r, m->image), address - m->start + m->page_offset,
			window_lives__process_id(&r->lives, process), category_of(image));
		return recent->location;
	}
	note_jit_process(r, process);
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
static size_t recall(struct stack_memo *memo, const struct process_life *process,
		     size_t kernel_changes, struct stack_id root, const __u64 *leaf, size_t count)
{
	size_t same = 0;

	if (memo->maps_version == process->maps_version && memo->root.v == root.v &&
	    memo->kernel_changes == kernel_changes)
		while (same < memo->frames.count && same < count &&
		       memo->frames.data[same] == leaf[count - 1 - same])
			same++;
	memo->maps_version = process->maps_version;
	memo->kernel_changes = kernel_changes;
	memo->root = root;
	memo->frames.count = memo->stacks.count = same;
	return same;
}

/* For a sample whose frames were not requested or could not be read. */
static struct stack_id stack_without_frames(struct recorder *r, const struct process_life *process,
					    struct stack_id root, const struct sample_event *e)
{
	return profile_builder__stack(r->builder, root,
				      e->from_user ? unknown_location(r, process, 0)
						   : kernel_location(r, 0));
}

/*
 * Outermost frame first, as stacks grow. The kernel's innermost frame is never in the memo: the
 * same value further out would be a return address. Nor is anything inside of an unmapped frame,
 * which may be mapped, and must be counted, the next time.
 */
static struct stack_id make_stack(struct recorder *r, struct process_life *process,
				  struct stack_memo *memo, struct stack_id root,
				  const struct sample_event *e)
{
	size_t kernel_leaf = e->kernel_frames ? 1 : 0, unmapped = 0;
	struct stack_id stack = root;
	struct sample_frames all;
	const __u64 *frames;
	size_t count, done;

	if (managed_frames__of(r->managed, process, e, &all))
		r->failed = true;
	frames = all.frames;
	count = all.count;
	if (!count)
		return stack_without_frames(r, process, root, e);
	done = recall(memo, process, r->kernel_changes.times.count, root, frames + kernel_leaf,
		      count - kernel_leaf);
	if (done)
		stack = memo->stacks.data[done - 1];
	for (size_t i = count - done; i-- > 0;) {
		bool mapped = true;
		struct location_id location;

		if (i < all.kernel)
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
		world__request_reread(r->world, process->pid);
	}
	return stack;
}

/* ---- samples and CPU time -------------------------------------------------------------------- */

static void count_frames(struct recorder *r, const struct sample_event *e)
{
	for (size_t i = 0; i < e->user_frames; i++) {
		enum frame_kind kind = frame_kind(e->frames[e->kernel_frames + i]);

		r->session->frames_found[kind < FRAME_KIND_COUNT ? kind : FRAME_NONE]++;
	}
}

static enum sample_context context_of(const struct sample_event *e)
{
	if (e->header.flags & EVENT_IN_SOFTIRQ)
		return CONTEXT_SOFTIRQ;
	return e->header.flags & EVENT_IN_HARDIRQ ? CONTEXT_HARDIRQ : CONTEXT_NONE;
}

/* The stack of a tick. Interrupts have a root frame on request, guests a leaf. */
static struct stack_id stack_of_tick(struct recorder *r, struct thread_life *thread,
				     struct stack_memo *memo, enum sample_context context,
				     const struct sample_event *e)
{
	struct stack_id stack = {0};

	if (context != CONTEXT_NONE && recording_facts__marks_interrupts(r->facts))
		stack = thread_accounts__made_up_frame(&r->accounts, thread, stack,
						       context == CONTEXT_SOFTIRQ ? PLACE_SOFTIRQ
										  : PLACE_HARDIRQ);
	stack = make_stack(r, thread->process, memo, stack, e);
	if (e->header.flags & EVENT_IN_GUEST)
		stack = thread_accounts__made_up_frame(&r->accounts, thread, stack, PLACE_GUEST);
	return stack;
}

static int on_sample(void *context, const struct sample_event *e)
{
	struct recorder *r = advance(context, &e->header);
	struct profile_sample sample = {
		.kind = SAMPLE_CPU,
		.time = e->header.time,
		.end = e->user_end < STACK_END_COUNT ? e->user_end : STACK_END_NO_REGS,
		.events = e->period,
	};
	struct window_thread *entry;
	struct thread_life *thread = world__thread_at(r->world, e->tgid, e->tid, sample.time);

	if (!thread)
		return -ENOMEM;
	entry = window_lives__show(&r->lives, thread, sample.time,
				   recording_facts__period(r->facts));
	if (!entry)
		return -ENOMEM;
	thread->counted = true;
	r->has_events |= e->period > 0;
	sample.weight = e->header.flags & EVENT_OWN_WEIGHT
				? e->cpu_time
				: thread_accounts__sample(&r->accounts, thread, sample.time,
							  e->cpu_time);
	/* no two samples of a thread have the same time, also across windows */
	sample.time = thread->last_sample = max_u64(sample.time, thread->last_sample + 1);
	sample.context = context_of(e);
	sample.cpu = e->cpu < UINT16_MAX ? (uint16_t)(e->cpu + 1) : 0;
	sample.stack = stack_of_tick(r, thread, &entry->memo, sample.context, e);
	settle_thread_name(r, thread);
	sample.comm = entry->comm;
	count_frames(r, e);
	sample.gil = gil_state_of(e);
	if (gil_counts__sample(&r->gil, &entry->gil,
			       window_lives__process_id(&r->lives, thread->process), entry->id,
			       sample.gil, sample.weight))
		return -ENOMEM;
	profile_builder__sample(r->builder, entry->id, &sample);
	return result_of(r, 0);
}

/* Account and stack of a thread that does not run. */
static int on_visit(void *context, const struct visit_event *e)
{
	struct recorder *r = advance(context, &e->account.header);
	struct wall_visit visit = {};
	struct window_thread *entry;
	struct thread_life *thread = world__thread_at(r->world, e->stack.tgid, e->stack.tid,
						      e->account.header.time);
	int err;

	if (!thread)
		return -ENOMEM;
	entry = window_lives__show(&r->lives, thread, e->account.header.time,
				   recording_facts__period(r->facts));
	if (!entry)
		return -ENOMEM;
	r->visited = max_u64(r->visited, e->account.seen);
	visit.state = wall_state_of_visit(&e->account, &visit.open);
	settle_thread_name(r, thread);
	visit.comm = entry->comm;
	if (visit.state != WALL_NONE)
		visit.holder = wall_accounts__holder(&r->accounts, world__processes(r->world),
						     thread, e);
	entry = window_lives__thread(&r->lives, thread); /* it may have moved */
	if (visit.state != WALL_NONE)
		visit.stack = make_stack(r, thread->process, &entry->memo, (struct stack_id){0},
					 &e->stack);
	err = wall_accounts__visit(&r->accounts, thread, e, &visit);
	return result_of(r, err);
}

static int on_visit_books(void *context, const struct visit_books_event *e)
{
	struct recorder *r = advance(context, &e->header);

	r->visited = max_u64(r->visited, e->made_at);
	r->session->visits = recording_facts__visits(r->facts, e);
	return 0;
}

static int on_thread_cpu(void *context, const struct thread_cpu_event *e)
{
	struct recorder *r = advance(context, &e->header);
	struct thread_life *thread = process_table__find_thread(world__processes(r->world), e->tid);
	struct thread_clock *cpu;

	if (!thread || thread->process->pid != e->tgid)
		return 0;
	cpu = &thread->cpu;
	if (e->header.flags & EVENT_BASELINE) {
		cpu->last = cpu->seen = max_u64(cpu->last, e->cpu_time);
		cpu->known = true;
		return 0;
	}
	/* before sampling began each reading is a new baseline */
	if (!cpu->known || (!recording_facts__start(r->facts) && !cpu->sampled)) {
		cpu->last = max_u64(cpu->last, e->cpu_time);
		cpu->known = true;
	}
	/* a reading of a running thread from /proc is up to a tick old, so it corrects nothing */
	if (e->header.flags & EVENT_EXITED) {
		thread_accounts__correct(&r->accounts, thread, e->cpu_time);
		wall_accounts__exit(thread, e->header.time, e->cpu_time, r->visited);
	}
	cpu->seen = max_u64(max_u64(cpu->seen, cpu->last), e->cpu_time);
	return 0;
}

/* ---- processes, threads, mappings: the world's ----------------------------------------------- */

#define PASS_ON(name, event_type)                                                                  \
	static int on_##name(void *context, const struct event_type *e)                            \
	{                                                                                          \
		struct recorder *r = advance(context, &e->header);                                 \
                                                                                                   \
		return result_of(r, world__##name(r->world, e));                                   \
	}

PASS_ON(process, process_event)
PASS_ON(thread, thread_event)
PASS_ON(fork, task_event)
PASS_ON(comm, comm_event)

/* The report of the thread's CPU time comes first, unless it was lost. */
static int on_task_exit(void *context, const struct task_event *e)
{
	struct recorder *r = advance(context, &e->header);
	struct thread_life *thread = process_table__find_thread(world__processes(r->world), e->tid);

	if (thread && thread->process->pid == e->pid && !(e->header.flags & EVENT_FROM_PROC))
		wall_accounts__exit(thread, e->header.time, thread->cpu.last, r->visited);
	return result_of(r, world__task_exit(r->world, e));
}

static int on_cgroup(void *context, const struct cgroup_event *e)
{
	struct recorder *r = advance(context, &e->header);
	const struct process_life *life;
	struct profile_process *process = NULL;
	int err = world__cgroup(r->world, e);

	life = process_table__find(world__processes(r->world), e->pid);
	if (!err && life)
		process = profile_builder__get_process(r->builder,
						       window_lives__process_id(&r->lives, life));
	if (process)
		process->cgroup = profile_builder__string(r->builder, e->path);
	return result_of(r, err);
}

static int on_facts(void *context, const struct facts_event *e)
{
	struct recorder *r = advance(context, &e->header);
	const struct process_life *life;
	int err = world__facts(r->world, e);

	life = process_table__find(world__processes(r->world), e->pid);
	if (!err && life)
		window_lives__set_facts(&r->lives, life);
	return result_of(r, err);
}

/* A process with a reading of its memory is in the profile, sampled in this window or not. */
static int on_memory(void *context, const struct memory_event *e)
{
	struct recorder *r = advance(context, &e->header);
	const struct process_life *life = process_table__find(world__processes(r->world), e->pid);
	struct process_id id = {0};
	bool is_recorder = e->header.flags & EVENT_RECORDER;

	if (life && !life->end)
		id = window_lives__show_process(&r->lives, life, e->header.time);
	if (id.v || (is_recorder && !life))
		profile_builder__memory(r->builder, id, e->pid, is_recorder, e->header.time,
					e->resident);
	return result_of(r, 0);
}

/* Code of the kernel that comes or goes. */
static int on_kallsyms(void *context, const struct kallsyms_event *e)
{
	struct recorder *r = context;
	struct kernel_code code;

	if (!(e->header.flags & EVENT_KALLSYMS_ADDED) ||
	    !kernel_code__parse(e->text, e->text_size, &code))
		return 0;
	return kernel_changes__add(&r->kernel_changes, code.start, code.end, e->header.time);
}

PASS_ON(maps_read, maps_read_event)
PASS_ON(jit_bytes, jit_bytes_event)

/* Every image is a dso in the window in which it was mapped, sampled or not. */
static int on_mmap(void *context, const struct mmap_event *e)
{
	struct recorder *r = advance(context, &e->header);
	struct image_id image = {0};
	struct dso_id dso;
	int err = world__mmap(r->world, e, &image);

	if (err)
		return err;
	window_lives__set_program(&r->lives,
				  process_table__find(world__processes(r->world), e->pid), e->path);
	dso = dso_of_image(r, image);
	/* the image may have been opened since */
	if (dso.v && profile_builder__get_dso(r->builder, dso)->file_state != FILE_STATE_RIGHT)
		add_dso(r, image_table__get(world__images(r->world), image));
	return result_of(r, 0);
}

PASS_ON(code_function, code_function_event)
PASS_ON(code_chain, code_chain_event)
PASS_ON(code_runtime, code_runtime_event)

static int on_jit_file(void *context, const struct jit_file_event *e)
{
	struct recorder *r = advance(context, &e->header);
	int err = world__jit_file(r->world, e);

	note_jit_file(r, e);
	return result_of(r, err);
}

/* ---- the recording --------------------------------------------------------------------------- */

static int on_lost(void *context, const struct lost_event *e)
{
	struct recorder *r = advance(context, &e->header);

	if (e->source >= LOST_SOURCE_COUNT)
		return 0;
	profile_builder__lost(r->builder, e->source, e->count, e->since, e->header.time);
	if (e->source == LOST_SIDEBAND)
		world__lost_sideband(r->world);
	return result_of(r, 0);
}

static int on_clock_anchor(void *context, const struct clock_anchor_event *e)
{
	struct recorder *r = advance(context, &e->header);
	struct profile *session = r->session;
	bool new_epoch = e->header.flags & EVENT_NEW_EPOCH;
	uint64_t error = e->error_ns;

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
	struct recorder *r = advance(context, &e->header);
	struct profile_cpu_books books;
	int err = recording_facts__books(r->facts, e);

	books = recording_facts__window_books(r->facts, e);
	profile_builder__books(r->builder, &books);
	return result_of(r, err);
}

static int on_cpu_times(void *context, const struct cpu_times_event *e)
{
	struct recorder *r = advance(context, &e->header);

	return result_of(r, recording_facts__cpu_times(r->facts, e));
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

static int on_outside(void *context, const struct outside_event *e)
{
	struct recorder *r = advance(context, &e->header);

	outside_event__add_to(e, r->builder);
	return result_of(r, 0);
}

static int on_end(void *context, const struct event_header *header)
{
	struct recorder *r = advance(context, header);

	r->session->end = header->time;
	r->ended = true;
	return 0;
}

struct event_handler recorder__handler(struct recorder *r)
{
	return (struct event_handler){
		.context = r,
		.sample = on_sample,
		.visit = on_visit,
		.visit_books = on_visit_books,
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
		.facts = on_facts,
		.kallsyms = on_kallsyms,
		.clock_anchor = on_clock_anchor,
		.books = on_books,
		.cpu_times = on_cpu_times,
		.meta = on_meta,
		.outside = on_outside,
		.end = on_end,
		.jit_file = on_jit_file,
		.jit_bytes = on_jit_bytes,
		.code_function = on_code_function,
		.code_chain = on_code_chain,
		.code_runtime = on_code_runtime,
	};
}

/* ---- the end of the window ------------------------------------------------------------------- */

/* `final`: no more events follow. */
static void settle_threads(struct recorder *r, const struct process_life *first, bool final)
{
	struct process_table *table = world__processes(r->world);
	struct thread_life *thread;

	for (const struct process_life *p = first; p; p = process_life__next(p)) {
		settle_process_name(r, p);
		TAILQ_FOREACH (thread, &p->threads, sibling) {
			if (!thread->ended && process_table__is_target(table, thread))
				window_lives__show(&r->lives, thread, r->session->end, 0);
			settle_thread_name(r, thread);
			if (final)
				thread_accounts__settle(&r->accounts, thread, r->last_time);
			if (wall_accounts__settle(&r->accounts, thread))
				r->failed = true;
		}
	}
}

/* The wall clock at the start, from the nearest anchor. */
static void settle_realtime(struct recorder *r)
{
	struct profile *session = r->session;
	struct clock_moment moment, last;

	if (!recording_facts__anchors(r->facts, &moment, &last))
		return;
	if (r->start)
		moment = last;
	if (!session->start)
		session->start = moment.monotonic;
	session->start_realtime = moment.realtime + (session->start - moment.monotonic);
}

/* The event of the samples, if it is no clock, or one whose samples weigh their CPU time. */
static void settle_event(struct recorder *r)
{
	const char *name = recording_facts__find(r->facts, META_EVENT);
	const char *unit = recording_facts__find(r->facts, META_EVENT_UNIT);
	const char *period = recording_facts__find(r->facts, META_EVENT_PERIOD);
	struct profile *session = r->session;

	if (!unit && !r->has_events)
		return;
	if (unit && !strcmp(unit, EVENT_CPU_UNIT) && name && strcmp(name, META_EVENT_OFF_CPU))
		name = EVENT_CPU;
	session->event = profile_builder__string(r->builder, name && *name ? name : "events");
	session->event_unit = profile_builder__string(r->builder, unit && *unit ? unit : "count");
	if (period)
		parse_u64(period, 1, UINT64_MAX, &session->event_period);
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
	note_refused(r, process_table__first_dead(table));
	note_refused(r, process_table__first_living(table));
	managed_frames__resolve(r->managed);
	if (suggest_names(r))
		r->failed = true;
	gil_counts__report(&r->gil, r->builder);
	session->period = recording_facts__period(r->facts);
	session->untimed = recording_facts__find(r->facts, META_UNTIMED) != NULL;
	settle_realtime(r);
	settle_event(r);
	stop_observing(r);
	return result_of(r, 0);
}
