/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Computes the state at the current time from events.
 *
 * The state is in two tables: process_table (the lives of each pid and tid, and for each process a
 * mapping_table from addresses to images) and image_table. A process may end at any time, so
 * nothing is looked up in /proc later.
 *
 * The CPU clock of a thread and its accounting continue across execve. If a thread other than the
 * leader called execve, its clock continues under the leader's tid.
 */
#include "world/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/proc_task.h"
#include "base/suffix.h"
#include "jit/names/jit_sources.h"
#include "world/mapping_table.h"
#include "world/wall_accounts.h"

/* This many images are always kept: most are mapped again soon. */
#define IMAGES_KEPT 1024

/*
 * The kernel reports no munmap, so a process can seem to have far more mappings than it has. If
 * there are too many, those of the process with the most are dropped and read again.
 */
#define MAPPINGS_LOOK  65536u /* new ones between two counts of all */
#define MAPPINGS_SMALL 16384u /* of one process; it is left alone */

struct world {
	const struct event_source_requests *requests;
	struct process_table *processes;
	struct image_table *images;
	struct code_functions *code;
	struct outside_books *books; /* or NULL */
	uint32_t new_mappings;	     /* since all were counted */
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
	w->code = code_functions__new();
	if (!w->processes || !w->images || !w->code) {
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
	code_functions__free(w->code);
	free(w);
}

void world__count_in(struct world *w, struct outside_books *books)
{
	w->books = books;
}

/* In a replay the recording has it. */
static void note_left(struct world *w, uint32_t pid, enum outside_reason reason, uint64_t count)
{
	if (w->books)
		outside_books__add(w->books, outside_books__user_of(w->books, (pid_t)pid),
				   OUTSIDE_MAPPINGS, reason, count);
}

static int emit_left(enum outside_reason reason, uint64_t count, uint64_t time, event_sink_fn sink,
		     void *context)
{
	const struct outside_event event = {
		.header = {.size = sizeof(event), .type = EVENT_OUTSIDE, .time = time},
		.user = OUTSIDE_USER_UNKNOWN,
		.thing = OUTSIDE_MAPPINGS,
		.reason = reason,
		.count = count,
	};

	return count ? sink(context, &event.header) : 0;
}

int world__emit_left(const struct world *w, uint64_t time, event_sink_fn sink, void *context)
{
	return emit_left(OUTSIDE_BY_ITSELF, w->stats.refused_mappings, time, sink, context)
		       ?: emit_left(OUTSIDE_BY_ALL, w->stats.dropped_mappings, time, sink, context);
}

struct process_table *world__processes(struct world *w)
{
	return w->processes;
}

struct image_table *world__images(struct world *w)
{
	return w->images;
}

const struct code_functions *world__code(const struct world *w)
{
	return w->code;
}

struct world_stats world__stats(const struct world *w)
{
	return w->stats;
}

void world__advance(struct world *w, uint64_t time)
{
	process_table__advance(w->processes, time);
}

void world__request_reread(struct world *w, uint32_t pid)
{
	if (w->requests && w->requests->reread_process)
		w->requests->reread_process(w->requests->context, pid);
}

/* ---- identity ----------------------------------------------------------------------------- */

/* The process of an event; created if it is unknown. NULL: out of memory. */
static struct process_life *need_process(struct world *w, uint32_t pid, uint64_t time)
{
	struct process_life *process = process_table__find(w->processes, pid);

	if (process)
		return process;
	process = process_table__add(w->processes, pid, LIFE_UNKNOWN_NAME, 0, time);
	if (process)
		world__request_reread(w, pid);
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
	return process_table__add_thread(w->processes, process, tid, process->name, 0, time);
}

/* ---- processes and threads ------------------------------------------------------------------- */

/* Does /proc describe another process than the known one with this pid? */
static bool is_other_process(const struct process_life *process, const struct process_event *e)
{
	if (!process->born || !e->start_time)
		return false;
	return e->start_time > process->born && !proc_same_birth(e->start_time, process->born);
}

int world__process(struct world *w, const struct process_event *e)
{
	struct process_life *process = process_table__find(w->processes, e->pid);

	if (process && !is_other_process(process, e)) {
		if (process->end)
			return 0; /* it ended while it was read */
		if (!process_life__is_named(process))
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
		process_table__set_target(w->processes, process);
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
	thread->from_proc = true;
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

	return thread && !thread->end && thread->from_proc && thread->process->pid == e->pid &&
	       proc_same_birth(thread->start, e->header.time);
}

/* A child has its parent's memory, and the functions in it. */
static void inherit_code(struct process_life *child, const struct process_life *parent,
			 uint64_t time)
{
	child->unread = parent->unread;
	child->unread_kind = parent->unread_kind;
	child->kin[0] = (struct code_kin){parent->number.serial, time};
	memcpy(child->kin + 1, parent->kin, sizeof(child->kin) - sizeof(child->kin[0]));
}

static int fork_process(struct world *w, const struct task_event *e, const char *comm)
{
	const struct process_life *parent = process_table__find(w->processes, e->ppid);
	struct process_life *child = process_table__add(
		w->processes, e->pid, parent ? parent->name : comm, e->header.time, e->header.time);

	if (!child)
		return -ENOMEM;
	child->ppid = e->ppid;
	child->began = PROCESS_FORKED;
	if (!parent || e->ppid == e->pid)
		return 0;
	child->is_target = parent->is_target;
	child->is_kernel = parent->is_kernel;
	child->maps = mapping_table__fork(parent->maps);
	if (parent->maps && !child->maps)
		return -ENOMEM;
	/* its parent is still being read */
	if (!parent->maps && !parent->is_kernel)
		world__request_reread(w, e->pid);
	child->cgroup = shared_ref(parent->cgroup);
	child->program = shared_ref(parent->program);
	child->facts = shared_ref(parent->facts);
	inherit_code(child, parent, e->header.time);
	return 0;
}

int world__fork(struct world *w, const struct task_event *e)
{
	const struct process_life *parent = process_table__find(w->processes, e->ppid);
	const struct thread_life *creator;
	struct process_life *process;
	struct thread_life *thread;
	char comm[LIFE_NAME_SIZE];

	if (fork_is_known(w, e)) {
		thread = process_table__find_thread(w->processes, e->tid);
		if (e->pid != e->ppid && thread->process->began == PROCESS_WAS_THERE) {
			thread->process->began = PROCESS_FORKED;
			if (parent)
				inherit_code(thread->process, parent, e->header.time);
		}
		begin_clock(thread);
		return 0;
	}
	creator = process_table__find_thread(w->processes, e->ptid);
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

int world__task_exit(struct world *w, const struct task_event *e)
{
	struct process_life *process = process_table__find(w->processes, e->pid);
	struct thread_life *thread;

	if (!process)
		return 0;
	if (e->header.flags & EVENT_FROM_PROC) {
		process_table__exit(w->processes, process, e->header.time);
		return 0;
	}
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
	struct shared_bytes *text;

	if (!process || (process->cgroup && !strcmp(process->cgroup->bytes, e->path)))
		return 0;
	text = shared_text__new(e->path);
	if (!text)
		return -ENOMEM;
	shared_unref(process->cgroup);
	process->cgroup = text;
	return 0;
}

/* The value of a fact; NULL: it is not there. */
static const char *fact_value(const struct facts_event *e, const char *key)
{
	const char *at = e->text;

	for (uint32_t i = 0; i < e->count; i++) {
		const char *value = at + strlen(at) + 1;

		if (!strcmp(at, key))
			return value;
		at = value + strlen(value) + 1;
	}
	return NULL;
}

/*
 * The whole facts of a life may be those of its parent, with the parent's user. A later report has
 * the user of now, if it has nothing else.
 */
static int change_user(struct process_life *process, const struct facts_event *e)
{
	const struct facts_event *known = (const void *)process->facts->bytes;
	const char *old = fact_value(known, "user"), *user = fact_value(e, "user");
	size_t before = old ? old - known->text : 0, size, old_size;
	union {
		struct facts_event event;
		char bytes[sizeof(struct facts_event) + PROCESS_FACTS_SIZE];
	} changed;
	struct shared_bytes *facts;

	if (!old || !user || !strcmp(old, user))
		return 0;
	size = strlen(user);
	old_size = strlen(old);
	if (known->size - old_size + size > PROCESS_FACTS_SIZE)
		return 0;
	memcpy(&changed, known, sizeof(*known) + before);
	memcpy(changed.event.text + before, user, size);
	memcpy(changed.event.text + before + size, old + old_size, known->size - before - old_size);
	changed.event.size = (uint32_t)(known->size - old_size + size);
	facts = shared_bytes__new(&changed, sizeof(*known) + changed.event.size);
	if (!facts)
		return -ENOMEM;
	shared_unref(process->facts);
	process->facts = facts;
	return 0;
}

int world__facts(struct world *w, const struct facts_event *e)
{
	struct process_life *process = process_table__find(w->processes, e->pid);
	const struct facts_event *known;
	struct shared_bytes *facts;

	if (!process || process->start > e->since)
		return 0;
	/* if the life or its parent was read before, less is not reported, but for its user */
	known = process->facts ? (const void *)process->facts->bytes : NULL;
	if (known && known->state == FACTS_STATE_WHOLE && e->state != FACTS_STATE_WHOLE)
		return change_user(process, e);
	facts = shared_bytes__new(e, sizeof(*e) + e->size);
	if (!facts)
		return -ENOMEM;
	shared_unref(process->facts);
	process->facts = facts;
	return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

/*
 * The thread whose clock continues under the leader's tid: the leader, or the last other thread,
 * because an execve first ends all threads but its caller.
 */
static struct thread_life *caller_of_exec(struct process_life *process, struct thread_life *leader)
{
	struct thread_life *thread, *caller = NULL;

	if (leader && !leader->end)
		return leader;
	TAILQ_FOREACH (thread, &process->threads, sibling)
		if (!thread->end)
			caller = thread;
	return caller;
}

static int exec_process(struct world *w, struct process_life *old, const struct comm_event *e)
{
	struct thread_life *leader = find_thread_of(w, old, e->pid), *thread;
	struct thread_life *caller = caller_of_exec(old, leader);
	struct thread_clock clock = {};
	struct thread_wall wall = {};
	struct process_life *process;
	bool from_proc = false;

	if (caller) {
		clock = caller->cpu;
		clock.excess = 0;
		wall_accounts__exec(caller, e->header.time);
		wall = caller->wall;
		from_proc = caller->from_proc;
		caller->cpu.seen = caller->cpu.last; /* the rest goes to the next life */
	}
	process = process_table__exec(w->processes, old, e->comm, e->header.time);
	thread = process ? process_table__add_thread(w->processes, process, e->pid, e->comm,
						     e->header.time, e->header.time)
			 : NULL;
	if (!thread)
		return -ENOMEM;
	thread->from_proc = from_proc;
	thread->cpu = clock;
	thread_wall__go_on(&thread->wall, &wall);
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
	if (e->header.flags & EVENT_FROM_PROC) {
		process_table__rename(w->processes, process, e->comm);
		return 0;
	}
	thread = world__thread_at(w, e->pid, e->tid, e->header.time);
	if (!thread)
		return -ENOMEM;
	process_table__rename_thread(w->processes, thread, e->comm, e->header.time);
	return 0;
}

/* ---- mappings -------------------------------------------------------------------------------- */

/* `mapping` NULL: some were removed. */
static int note_new_mappings(struct world *w, struct process_life *process,
			     const struct mapping *mapping)
{
	process->maps_version++;
	return process_table__announce_mapped(w->processes, process, mapping);
}

static struct process_life *with_most_mappings(struct world *w, uint64_t *sum)
{
	struct process_life *most = NULL;

	*sum = 0;
	for (struct process_life *p = process_table__first_living(w->processes); p;
	     p = process_life__next(p)) {
		*sum += mapping_table__count(p->maps);
		if (!most || mapping_table__count(p->maps) > mapping_table__count(most->maps))
			most = p;
	}
	return most;
}

/* 0 or -ENOMEM. */
static int bound_mappings(struct world *w)
{
	uint64_t sum;
	struct process_life *most;
	int err;

	if (++w->new_mappings < MAPPINGS_LOOK)
		return 0;
	w->new_mappings = 0;
	most = with_most_mappings(w, &sum);
	if (sum <= WORLD_MAPPINGS_MAX || mapping_table__count(most->maps) <= MAPPINGS_SMALL)
		return 0;
	w->stats.dropped_mappings += mapping_table__count(most->maps);
	note_left(w, most->pid, OUTSIDE_BY_ALL, mapping_table__count(most->maps));
	mapping_table__unref(most->maps);
	most->maps = NULL;
	err = note_new_mappings(w, most, NULL);
	world__request_reread(w, most->pid);
	return err;
}

/* Most of them are gone, because the kernel reports no munmap: a reading of /proc drops those. */
static void refuse_mapping(struct world *w, const struct process_life *process)
{
	w->stats.refused_mappings++;
	note_left(w, process->pid, OUTSIDE_BY_ITSELF, 1);
	world__request_reread(w, process->pid);
}

#define PATH_TOO_LONG "//toolong" /* perf's name for a file whose path is too long */

/*
 * The kernel maps a program before its loader and its libraries. In /proc, which is sorted by
 * address, the program is first as well, unless its path is too long. 0 or -ENOMEM.
 */
static bool may_be_program(const struct process_life *process, const struct mmap_event *e)
{
	const char *known = process->program ? process->program->bytes : NULL;

	if (e->path[0] != '/' || (e->path[1] == '/' && strcmp(e->path, PATH_TOO_LONG)) ||
	    (e->header.flags & EVENT_FROM_PROC && is_library_path(e->path)))
		return false;
	return !known || (is_loader_path(known) && strcmp(known, e->path));
}

/* A loader that was started as a program maps that program first. The process has its name. */
static int note_program(struct world *w, struct process_life *process, const struct mmap_event *e)
{
	struct shared_bytes *loader;

	if (!may_be_program(process, e))
		return 0;
	loader = process->program;
	process->program = shared_text__new(e->path);
	if (loader && process->program)
		process_table__rename_to_file(w->processes, process, e->path);
	shared_unref(loader);
	return process->program ? 0 : -ENOMEM;
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

	if (!process || note_program(w, process, e))
		return -ENOMEM;
	*image = mapping.image = image_table__add(w->images, e);
	if (!mapping.image.v)
		return -ENOMEM;
	change = mapping_table__add(&process->maps, &mapping, e->header.flags & EVENT_FROM_PROC);
	if (change == -ENOMEM)
		return change;
	if (change == -E2BIG)
		refuse_mapping(w, process);
	if (change != MAPPING_ADDED)
		return 0;
	change = note_new_mappings(w, process, &mapping);
	return change ? change : bound_mappings(w);
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
	return note_new_mappings(w, process, NULL);
}

void world__lost_sideband(struct world *w)
{
	if (!w->requests) /* a replay cannot read anything again */
		return;
	for (const struct process_life *p = process_table__first_living(w->processes); p;
	     p = process_life__next(p))
		if (!p->is_kernel)
			world__request_reread(w, p->pid);
}

/* ---- JIT code -------------------------------------------------------------------------------- */

int world__jit_file(struct world *w, const struct jit_file_event *e)
{
	struct process_life *process = process_table__find(w->processes, e->pid);
	bool is_new;

	if (!process || (process->born && e->process_start &&
			 !proc_same_birth(process->born, e->process_start)))
		return 0;
	is_new = process->jit_files[e->kind] != e->file;
	process->jit_files[e->kind] = e->file;
	if (!jit_file_state_is_followed(e->state))
		return 0;
	if (!process->has_followed_file)
		process->followed_since = e->header.time;
	process->has_followed_file = true;
	if (e->kind != JIT_FILE_DUMP || (process->dump && !is_new) ||
	    !process_table__wants_jit_frames(w->processes))
		return 0;
	return process_table__follow_dump(w->processes, process);
}

int world__jit_bytes(struct world *w, const struct jit_bytes_event *e)
{
	struct process_life *process = process_table__find_dump(w->processes, e->file);
	const struct jit_piece piece = jit_piece_of(e);
	int err;

	if (!process)
		return 0;
	err = jit_code__feed(process->dump, &piece);
	if (err)
		return err == -ENOMEM ? err : 0;
	if (process->maps && process_table__find(w->processes, process->pid) == process)
		err = process_table__announce_jit_frames(w->processes, process, e->header.time);
	return err;
}

/* ---- forgetting ------------------------------------------------------------------------------ */

static int mark_image(void *world, const struct mapping *mapping)
{
	struct world *w = world;

	image_table__mark(w->images, mapping->image);
	return 0;
}

int world__each_jit_file(struct world *w, int (*visit)(void *context, uint32_t file), void *context)
{
	const struct process_life *p = NULL;
	int err = 0;

	while (!err && (p = process_table__next(w->processes, p)))
		for (int kind = 0; kind < JIT_FILE_KIND_COUNT && !err; kind++)
			err = p->jit_files[kind] ? visit(context, p->jit_files[kind]) : 0;
	return err;
}

/* The life that a reading at this time is of; 0: it ended, or executed another program. */
static uint64_t life_read(const struct world *w, uint32_t pid, uint64_t time)
{
	const struct process_life *life = process_table__find(w->processes, pid);

	return life && life->start <= time ? life->number.serial : 0;
}

int world__code_function(struct world *w, const struct code_function_event *e)
{
	uint64_t life = life_read(w, e->pid, e->header.time);

	return life ? code_functions__add(w->code, life, e) : 0;
}

int world__code_chain(struct world *w, const struct code_chain_event *e)
{
	uint64_t life = life_read(w, e->pid, e->header.time);

	return life ? code_functions__add_chain(w->code, life, e) : 0;
}

int world__code_runtime(struct world *w, const struct code_runtime_event *e)
{
	struct process_life *life = process_table__find(w->processes, e->pid);

	if (life && life->start <= e->header.time) {
		life->unread = (enum code_runtime_state)e->state;
		life->unread_kind = (enum frame_note_kind)e->kind;
	}
	return 0;
}

DEFINE_SET(life_set, uint64_t);

static bool is_life(void *lives, uint64_t life)
{
	return life_set__find(lives, life);
}

/*
 * Forget the functions of processes that cannot be found any more and have no child that can.
 * Without memory, this is left to the next time.
 */
static void forget_code(struct world *w)
{
	const struct process_life *p = NULL;
	struct life_set lives = {};
	bool failed = !code_functions__bytes(w->code);

	while (!failed && (p = process_table__next(w->processes, p))) {
		failed = !life_set__need(&lives, &p->number.serial, NULL);
		for (size_t i = 0; i < CODE_KIN_MAX && p->kin[i].life && !failed; i++)
			failed = !life_set__need(&lives, &p->kin[i].life, NULL);
	}
	if (!failed)
		code_functions__forget(w->code, is_life, &lives);
	life_set__fini(&lives);
}

void world__forget(struct world *w, image_forget_fn may_forget, void *context)
{
	const struct process_life *p = NULL;

	forget_code(w);
	while ((p = process_table__next(w->processes, p)))
		mapping_table__visit(p->maps, mark_image, w);
	image_table__forget(w->images, image_table__count(w->images) > IMAGES_KEPT, may_forget,
			    context);
}
