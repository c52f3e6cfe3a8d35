/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Computes the state at the current time from events.
 *
 * The state is in two tables: process_table (the life of each pid and tid, and for each process a
 * mapping_table from addresses to images) and image_table (the images). A process may end at any time:
 * nothing is looked up in /proc later.
 *
 * The CPU clock of a thread continues across execve, and so does its accounting. If a thread other than
 * the leader called execve, that thread's clock continues under the leader's tid.
 */
#include "process/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/jit_frames.h"

/* /proc has start times in ticks of 10 ms, converted from another clock. */
#define BIRTH_SLACK_NS 100000000ull

/* This many images are always kept: most are mapped again soon. */
#define IMAGES_KEPT 1024

struct world {
	const struct event_source_requests *requests;
	struct process_table *processes;
	struct image_table *images;
	struct jit_frames *jit_frames; /* made when somebody wants them */
	struct world_stats stats;
};

struct world *world__new(const struct event_source_requests *requests)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->requests = requests;
	w->processes = process_table__new();
	w->images = image_table__new();
	if (!w->processes || !w->images) {
		world__free(w);
		return NULL;
	}
	return w;
}

void world__free(struct world *w)
{
	if (!w)
		return;
	process_table__free(w->processes);
	image_table__free(w->images);
	jit_frames__free(w->jit_frames);
	free(w);
}

struct process_table *world__processes(struct world *w)
{
	return w->processes;
}

struct image_table *world__images(struct world *w)
{
	return w->images;
}

struct world_stats world__stats(const struct world *w)
{
	return w->stats;
}

void world__advance(struct world *w, uint64_t time)
{
	process_table__advance(w->processes, time);
}

void world__ask_reread(struct world *w, uint32_t pid)
{
	w->stats.rereads++;
	if (w->requests && w->requests->reread_process)
		w->requests->reread_process(w->requests->context, pid);
}

/* ---- who is it ------------------------------------------------------------------------------- */

static bool same_birth(uint64_t a, uint64_t b)
{
	return a > b ? a - b < BIRTH_SLACK_NS : b - a < BIRTH_SLACK_NS;
}

/* The process of an event; created if it is unknown. NULL: out of memory. */
static struct process_life *need_process(struct world *w, uint32_t pid, uint64_t time)
{
	struct process_life *process = process_table__find(w->processes, pid);

	if (process)
		return process;
	process = process_table__add(w->processes, pid, LIFE_UNKNOWN_NAME, 0, time);
	if (process)
		world__ask_reread(w, pid);
	return process;
}

static struct thread_life *find_thread_of(struct world *w, const struct process_life *process,
					  uint32_t tid)
{
	struct thread_life *thread = process_table__find_thread(w->processes, tid);

	return thread && thread->process == process ? thread : NULL;
}

/* An unknown thread gets the name of its process. */
struct thread_life *world__thread_at(struct world *w, uint32_t pid, uint32_t tid, uint64_t time)
{
	struct process_life *process = need_process(w, pid, time);
	struct thread_life *thread;

	if (!process)
		return NULL;
	thread = find_thread_of(w, process, tid);
	if (thread)
		return thread;
	w->stats.unknown_tasks++;
	return process_table__add_thread(w->processes, process, tid, process->name, 0, time);
}

/* ---- processes and threads ------------------------------------------------------------------- */

/* Does /proc describe another process than the known one with this pid? */
static bool is_other_process(const struct process_life *process, const struct process_event *e)
{
	if (!process->born || !e->start_time)
		return false;
	return e->start_time > process->born && !same_birth(e->start_time, process->born);
}

int world__process(struct world *w, const struct process_event *e)
{
	struct process_life *process = process_table__find(w->processes, e->pid);

	if (process && !is_other_process(process, e)) {
		if (process->end)
			return 0; /* it ended while it was read */
		process_table__rename(w->processes, process, e->name);
	} else {
		process = process_table__add(w->processes, e->pid, e->name, e->start_time,
					     e->header.time);
		if (!process)
			return -ENOMEM;
	}
	if (!process->born)
		process->born = e->start_time;
	process->ppid = e->ppid;
	process->is_kernel = e->is_kernel;
	if (e->is_target)
		process_table__ask(w->processes, process);
	return 0;
}

int world__thread(struct world *w, const struct thread_event *e)
{
	struct process_life *process = need_process(w, e->pid, e->header.time);
	struct thread_life *thread;
	bool is_new;

	if (!process)
		return -ENOMEM;
	thread = find_thread_of(w, process, e->tid);
	if (thread && thread->end)
		return 0;
	is_new = !thread;
	if (is_new)
		thread = process_table__add_thread(w->processes, process, e->tid, e->comm,
						   e->start_time, e->header.time);
	if (!thread)
		return -ENOMEM;
	if (!is_new)
		process_table__rename_thread(w->processes, thread, e->comm, e->header.time);
	thread->told = true;
	if (!thread->cpu.known && e->cpu_time != UINT64_MAX) {
		thread->cpu.last = thread->cpu.seen = e->cpu_time;
		thread->cpu.known = true;
	}
	return 0;
}

static void begin_clock(struct thread_life *thread)
{
	thread->cpu.last = thread->cpu.seen = 0;
	thread->cpu.known = true;
}

/* /proc may have reported a task before its fork record, if it was read at that moment. */
static bool fork_is_known(struct world *w, const struct task_event *e)
{
	struct thread_life *thread = process_table__find_thread(w->processes, e->tid);

	return thread && !thread->end && thread->told && thread->process->pid == e->pid &&
	       same_birth(thread->start, e->header.time);
}

static int fork_process(struct world *w, const struct task_event *e, const char *comm)
{
	const struct process_life *parent = process_table__find(w->processes, e->ppid);
	struct process_life *child = process_table__add(w->processes, e->pid, comm, e->header.time,
							e->header.time);

	if (!child)
		return -ENOMEM;
	child->ppid = e->ppid;
	child->began = PROCESS_FORKED;
	if (!parent || e->ppid == e->pid)
		return 0;
	child->is_target = parent->is_target;
	child->is_kernel = parent->is_kernel;
	child->maps = mapping_table__ref(parent->maps);
	child->cgroup = shared_text__ref(parent->cgroup);
	return 0;
}

int world__fork(struct world *w, const struct task_event *e)
{
	const struct thread_life *creator;
	const struct process_life *parent;
	struct process_life *process;
	struct thread_life *thread;
	char comm[LIFE_NAME_SIZE];

	if (fork_is_known(w, e)) {
		thread = process_table__find_thread(w->processes, e->tid);
		if (e->pid != e->ppid && thread->process->began == PROCESS_WAS_THERE)
			thread->process->began = PROCESS_FORKED;
		begin_clock(thread);
		return 0;
	}
	creator = process_table__find_thread(w->processes, e->ptid);
	parent = process_table__find(w->processes, e->ppid);
	snprintf(comm, sizeof(comm), "%s",
		 creator  ? creator->comm
		 : parent ? parent->name
			  : LIFE_UNKNOWN_NAME);
	if (e->pid != e->ppid && fork_process(w, e, comm))
		return -ENOMEM;
	process = need_process(w, e->pid, e->header.time);
	thread = process ? process_table__add_thread(w->processes, process, e->tid, comm,
						     e->header.time, e->header.time)
			 : NULL;
	if (!thread)
		return -ENOMEM;
	begin_clock(thread);
	return 0;
}

int world__exit(struct world *w, const struct task_event *e)
{
	struct process_life *process = process_table__find(w->processes, e->pid);
	struct thread_life *thread;

	if (!process)
		return 0;
	thread = find_thread_of(w, process, e->tid);
	if (thread && !thread->end)
		process_table__exit_thread(w->processes, thread, e->header.time);
	else if (!process->living)
		process_table__exit(w->processes, process, e->header.time);
	return 0;
}

int world__cgroup(struct world *w, const struct cgroup_event *e)
{
	struct process_life *process = process_table__find(w->processes, e->pid);
	struct shared_text *text;

	if (!process || (process->cgroup && !strcmp(process->cgroup->text, e->path)))
		return 0;
	text = shared_text__new(e->path);
	if (!text)
		return -ENOMEM;
	shared_text__unref(process->cgroup);
	process->cgroup = text;
	return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

/*
 * The thread whose clock continues under the leader's tid: the leader, or the last other thread, since an
 * execve first ends all threads but its caller.
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

static int exec_process(struct world *w, struct process_life *old, const struct comm_event *e)
{
	struct thread_life *leader = find_thread_of(w, old, e->pid), *thread;
	struct thread_life *caller = caller_of_exec(old, leader);
	struct thread_clock clock = {};
	struct process_life *process;
	bool told = false;

	if (caller) {
		clock = caller->cpu;
		clock.excess = 0;
		told = caller->told;
		caller->cpu.seen = caller->cpu.last; /* the rest goes to the next life */
	}
	process = process_table__exec(w->processes, old, e->comm, e->header.time);
	thread = process ? process_table__add_thread(w->processes, process, e->pid, e->comm,
						     e->header.time, e->header.time)
			 : NULL;
	if (!thread)
		return -ENOMEM;
	thread->told = told;
	thread->cpu = clock;
	return 0;
}

int world__comm(struct world *w, const struct comm_event *e)
{
	struct process_life *process = need_process(w, e->pid, e->header.time);
	struct thread_life *thread;

	if (!process)
		return -ENOMEM;
	if (e->header.flags & EVENT_COMM_EXEC)
		return exec_process(w, process, e);
	thread = world__thread_at(w, e->pid, e->tid, e->header.time);
	if (!thread)
		return -ENOMEM;
	process_table__rename_thread(w->processes, thread, e->comm, e->header.time);
	return 0;
}

/* ---- mappings -------------------------------------------------------------------------------- */

static int note_new_mappings(struct world *w, struct process_life *process)
{
	process->maps_version++;
	return process_table__tell_mapped(w->processes, process);
}

int world__mmap(struct world *w, const struct mmap_event *e, struct image_id *image)
{
	struct mapping mapping = {
		.start = e->start,
		.end = e->start + e->length,
		.page_offset = e->page_offset,
	};
	struct process_life *process = need_process(w, e->pid, e->header.time);
	int change;

	if (!process)
		return -ENOMEM;
	*image = mapping.image = image_table__add(w->images, e);
	if (!mapping.image.v)
		return -ENOMEM;
	change = mapping_table__add(&process->maps, &mapping, e->header.flags & EVENT_FROM_PROC);
	if (change == -ENOMEM)
		return change;
	if (change == MAPPING_KNOWN)
		w->stats.known_mappings++;
	return change == MAPPING_ADDED ? note_new_mappings(w, process) : 0;
}

int world__maps_read(struct world *w, const struct maps_read_event *e)
{
	struct process_life *process = process_table__find(w->processes, e->pid);
	int removed;

	if (!process)
		return 0;
	removed = mapping_table__end_read(&process->maps);
	if (removed <= 0)
		return removed;
	w->stats.stale_mappings += removed;
	return note_new_mappings(w, process);
}

void world__lost_sideband(struct world *w)
{
	for (const struct process_life *p = process_table__first_living(w->processes); p;
	     p = process_life__next(p))
		if (!p->is_kernel)
			world__ask_reread(w, p->pid);
}

/* ---- code that is made as it runs ------------------------------------------------------------ */

int world__jit_file(struct world *w, const struct jit_file_event *e)
{
	struct process_life *process = process_table__find(w->processes, e->pid);

	if (process && process->born && e->process_start &&
	    !same_birth(process->born, e->process_start))
		process = NULL;
	if (process)
		process->jit_files[e->kind] = e->file;
	if (e->kind != JIT_FILE_DUMP || !process_table__wants_jit_frames(w->processes))
		return 0;
	if (!w->jit_frames)
		w->jit_frames = jit_frames__new();
	return w->jit_frames ? jit_frames__file(w->jit_frames, e) : -ENOMEM;
}

int world__jit_bytes(struct world *w, const struct jit_bytes_event *e)
{
	struct jit_unwinding *list;
	struct process_life *process;
	uint32_t pid;
	size_t count;
	int err;

	if (!w->jit_frames)
		return 0;
	err = jit_frames__bytes(w->jit_frames, e, &pid, &list, &count);
	if (err)
		return err == -ENOMEM ? err : 0;
	process = process_table__find(w->processes, pid);
	if (process && process->jit_files[JIT_FILE_DUMP] == e->file && process->maps)
		err = process_table__tell_jit_frames(w->processes, process, e->header.time, list,
						     count);
	free(list);
	return err;
}

/* ---- forgetting ------------------------------------------------------------------------------ */

static void mark_images(struct world *w, const struct process_life *first)
{
	for (const struct process_life *p = first; p; p = process_life__next(p)) {
		struct mappings maps = mapping_table__all(p->maps);

		for (size_t i = 0; i < maps.count; i++)
			image_table__mark(w->images, maps.data[i].image);
	}
}

static int tell_jit_files(const struct process_life *first,
			  int (*tell)(void *context, uint32_t file), void *context)
{
	int err = 0;

	for (const struct process_life *p = first; p && !err; p = process_life__next(p))
		for (int kind = 0; kind < JIT_FILE_KIND_COUNT && !err; kind++)
			err = p->jit_files[kind] ? tell(context, p->jit_files[kind]) : 0;
	return err;
}

int world__each_jit_file(struct world *w, int (*tell)(void *context, uint32_t file), void *context)
{
	int err = tell_jit_files(process_table__first_living(w->processes), tell, context);

	return err ? err : tell_jit_files(process_table__first_dead(w->processes), tell, context);
}

static bool process_is_known(void *world, uint32_t pid)
{
	struct world *w = world;

	return process_table__find(w->processes, pid) != NULL;
}

void world__forget(struct world *w, bool (*may_forget)(void *context, struct image_id id),
		   void *context)
{
	if (w->jit_frames)
		jit_frames__forget(w->jit_frames, process_is_known, w);
	if (image_table__count(w->images) <= IMAGES_KEPT)
		return;
	mark_images(w, process_table__first_living(w->processes));
	mark_images(w, process_table__first_dead(w->processes));
	image_table__forget(w->images, may_forget, context);
}
