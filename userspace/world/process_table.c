/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lives and their ownership.
 *
 * A process life owns its thread lives (the `threads` list). It is in one list of the table,
 * `living` or `dead` (ordered by end), and is freed when its grace period is over and its last
 * thread is freed. An ended thread is in `dead_threads` until its grace period is over. Both are
 * indexed by pid or tid. When a number is reused, or at an execve, the old life is removed from the
 * index at once, so each number has at most one life.
 */
#include "world/process_table.h"

#include <errno.h>
#include <stdio.h>

#include "base/map.h"
#include "base/order.h"
#include "base/suffix.h"
#include "base/vec.h"
#include "jit/jit_code.h"
#include "world/mapping_table.h"

/* ---- pid or tid -> life ---------------------------------------------------------------------- */

struct id_slot {
	uint32_t id;
	void *life;
};

DEFINE_MAP_BY(id_map, struct id_slot, uint32_t, id);

static void *find_life(const struct id_map *m, uint32_t id)
{
	const struct id_slot *slot = id_map__find(m, id);

	return slot ? slot->life : NULL;
}

/* `id` must not be there. */
static int add_life(struct id_map *m, uint32_t id, void *life, bool *indexed)
{
	*indexed = id_map__need(m, &(struct id_slot){id, life}, NULL);
	return *indexed ? 0 : -ENOMEM;
}

static void remove_life(struct id_map *m, uint32_t id, bool *indexed)
{
	if (*indexed)
		id_map__remove(m, id_map__find(m, id));
	*indexed = false;
}

/* ---- the table ------------------------------------------------------------------------------- */

TAILQ_HEAD(process_list, process_life);
TAILQ_HEAD(thread_list, thread_life);

/* Slots in use, and free ones. */
struct life_numbers {
	VEC(uint32_t) unused; /* has room for all */
	uint32_t slots;
	uint64_t serial;
};

struct process_table {
	VEC(struct process_observer) observers;
	struct id_map pids, tids;
	struct life_numbers process_numbers, thread_numbers;
	struct process_list living, dead, dumps;
	struct thread_list dead_threads;
	bool whole_system;
};

#define notify_observers(table, callback, ...)                                                     \
	do {                                                                                       \
		for (size_t i_ = 0; i_ < (table)->observers.count; i_++) {                         \
			const struct process_observer *o_ = &(table)->observers.data[i_];          \
			if (o_->callback)                                                          \
				o_->callback(o_->context, __VA_ARGS__);                            \
		}                                                                                  \
	} while (0)

/* The same for callbacks that may fail: stops at the first error and returns it. */
#define announce(table, callback, ...)                                                             \
	({                                                                                         \
		int err_ = 0;                                                                      \
		for (size_t i_ = 0; i_ < (table)->observers.count && !err_; i_++) {                \
			const struct process_observer *o_ = &(table)->observers.data[i_];          \
			err_ = o_->callback ? o_->callback(o_->context, __VA_ARGS__) : 0;          \
		}                                                                                  \
		err_;                                                                              \
	})

struct process_table *process_table__new(void)
{
	struct process_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	TAILQ_INIT(&table->living);
	TAILQ_INIT(&table->dead);
	TAILQ_INIT(&table->dumps);
	TAILQ_INIT(&table->dead_threads);
	return table;
}

static int number_life(struct life_numbers *numbers, struct life_number *number)
{
	if (vec_reserve(&numbers->unused, numbers->slots + 1))
		return -ENOMEM;
	number->slot = numbers->unused.count ? numbers->unused.data[--numbers->unused.count]
					     : numbers->slots++;
	number->serial = ++numbers->serial;
	return 0;
}

static void release_number(struct life_numbers *numbers, const struct life_number *number)
{
	if (number->serial)
		numbers->unused.data[numbers->unused.count++] = number->slot;
}

static void free_thread(struct process_table *table, struct thread_life *thread)
{
	struct process_life *process = thread->process;

	remove_life(&table->tids, thread->tid, &thread->indexed);
	if (thread->ended)
		TAILQ_REMOVE(&table->dead_threads, thread, link);
	else
		process->living--;
	TAILQ_REMOVE(&process->threads, thread, sibling);
	release_number(&table->thread_numbers, &thread->number);
	free(thread);
}

static void end_dump(struct process_table *table, struct process_life *process)
{
	if (!process->dump)
		return;
	TAILQ_REMOVE(&table->dumps, process, dump_link);
	jit_code__free(process->dump);
	process->dump = NULL;
}

static void free_process(struct process_table *table, struct process_life *process)
{
	struct thread_life *thread;

	while ((thread = TAILQ_FIRST(&process->threads)))
		free_thread(table, thread);
	remove_life(&table->pids, process->pid, &process->indexed);
	TAILQ_REMOVE(process->ended ? &table->dead : &table->living, process, link);
	end_dump(table, process);
	mapping_table__unref(process->maps);
	shared_unref(process->cgroup);
	shared_unref(process->program);
	shared_unref(process->facts);
	release_number(&table->process_numbers, &process->number);
	free(process);
}

void process_table__free(struct process_table *table)
{
	struct process_life *process;

	if (!table)
		return;
	while ((process = TAILQ_FIRST(&table->dead)) || (process = TAILQ_FIRST(&table->living)))
		free_process(table, process);
	id_map__fini(&table->pids);
	id_map__fini(&table->tids);
	vec_free(&table->process_numbers.unused);
	vec_free(&table->thread_numbers.unused);
	vec_free(&table->observers);
	free(table);
}

struct process_life *process_table__find(const struct process_table *table, uint32_t pid)
{
	return find_life(&table->pids, pid);
}

struct thread_life *process_table__find_thread(const struct process_table *table, uint32_t tid)
{
	return find_life(&table->tids, tid);
}

struct process_life *process_table__first_living(const struct process_table *table)
{
	return TAILQ_FIRST(&table->living);
}

struct process_life *process_table__first_dead(const struct process_table *table)
{
	return TAILQ_FIRST(&table->dead);
}

struct process_life *process_life__next(const struct process_life *process)
{
	return TAILQ_NEXT(process, link);
}

struct process_life *process_table__next(const struct process_table *table,
					 const struct process_life *process)
{
	struct process_life *next = process ? process_life__next(process)
					    : process_table__first_living(table);

	return next || (process && process->ended) ? next : process_table__first_dead(table);
}

struct process_table_counts process_table__counts(const struct process_table *table)
{
	return (struct process_table_counts){
		.processes = table->process_numbers.slots - table->process_numbers.unused.count,
		.threads = table->thread_numbers.slots - table->thread_numbers.unused.count,
	};
}

/* ---- observers ------------------------------------------------------------------------------- */

int process_table__observe(struct process_table *table, const struct process_observer *observer)
{
	return vec_push(&table->observers, *observer);
}

void process_table__unobserve(struct process_table *table, const void *context)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->observers.count; i++)
		if (table->observers.data[i].context != context)
			table->observers.data[kept++] = table->observers.data[i];
	table->observers.count = kept;
}

int process_table__announce_mapped(struct process_table *table, struct process_life *process,
				   const struct mapping *mapping)
{
	return announce(table, mapped, process, mapping);
}

bool process_table__wants_jit_frames(const struct process_table *table)
{
	return any_of(table->observers.data, table->observers.count, o, o->jit_frames);
}

int process_table__announce_jit_frames(struct process_table *table, struct process_life *process,
				       uint64_t time)
{
	return announce(table, jit_frames, process, time);
}

int process_table__follow_dump(struct process_table *table, struct process_life *process)
{
	end_dump(table, process);
	process->dump = jit_code__new(JIT_CODE_FRAMES);
	if (!process->dump)
		return -ENOMEM;
	TAILQ_INSERT_TAIL(&table->dumps, process, dump_link);
	return 0;
}

struct process_life *process_table__find_dump(const struct process_table *table, uint32_t file)
{
	struct process_life *process;

	TAILQ_FOREACH (process, &table->dumps, dump_link)
		if (process->jit_files[JIT_FILE_DUMP] == file)
			break;
	return process;
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void end_thread(struct process_table *table, struct thread_life *thread, enum life_end how,
		       uint64_t time)
{
	if (thread->ended)
		return;
	thread->ended = true;
	thread->end = time;
	thread->process->living--;
	TAILQ_INSERT_TAIL(&table->dead_threads, thread, link);
	notify_observers(table, thread_ended, thread, how);
}

static void end_process(struct process_table *table, struct process_life *process,
			enum life_end how, uint64_t time)
{
	struct thread_life *thread;

	if (process->living) /* there may be many dead ones, time and again */
		TAILQ_FOREACH (thread, &process->threads, sibling)
			end_thread(table, thread, how, time);
	if (process->ended)
		return;
	process->ended = true;
	process->how = how;
	process->end = time;
	TAILQ_REMOVE(&table->living, process, link);
	TAILQ_INSERT_TAIL(&table->dead, process, link);
	notify_observers(table, process_ended, process, how);
}

void process_table__exit(struct process_table *table, struct process_life *process, uint64_t time)
{
	end_process(table, process, LIFE_EXIT, time);
}

void process_table__exit_thread(struct process_table *table, struct thread_life *thread,
				uint64_t time)
{
	end_thread(table, thread, LIFE_EXIT, time);
	if (!thread->process->living)
		process_table__exit(table, thread->process, time);
}

static void revive_process(struct process_table *table, struct process_life *process)
{
	if (!process->ended)
		return;
	process->ended = false;
	process->end = 0;
	TAILQ_REMOVE(&table->dead, process, link);
	TAILQ_INSERT_TAIL(&table->living, process, link);
	notify_observers(table, process_revived, process);
}

static bool grace_is_over(uint64_t end, uint64_t now)
{
	return now > end && now - end > LIFE_GRACE_NS;
}

void process_table__advance(struct process_table *table, uint64_t now)
{
	struct thread_life *thread;
	struct process_life *process;

	while ((thread = TAILQ_FIRST(&table->dead_threads)) && grace_is_over(thread->end, now)) {
		notify_observers(table, thread_forgotten, thread);
		free_thread(table, thread);
	}
	while ((process = TAILQ_FIRST(&table->dead)) && grace_is_over(process->end, now) &&
	       TAILQ_EMPTY(&process->threads)) {
		notify_observers(table, process_forgotten, process);
		free_process(table, process);
	}
}

/* ---- beginnings ------------------------------------------------------------------------------ */

static void set_name(char *to, const char *name)
{
	snprintf(to, LIFE_NAME_SIZE, "%s", name);
}

static struct process_life *insert_process(struct process_table *table, uint32_t pid,
					   const char *name, uint64_t start)
{
	struct process_life *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->pid = pid;
	process->born = process->start = start;
	set_name(process->name, name);
	TAILQ_INIT(&process->threads);
	TAILQ_INSERT_TAIL(&table->living, process, link);
	if (number_life(&table->process_numbers, &process->number) ||
	    add_life(&table->pids, pid, process, &process->indexed)) {
		free_process(table, process);
		return NULL;
	}
	return process;
}

struct process_life *process_table__add(struct process_table *table, uint32_t pid, const char *name,
					uint64_t start, uint64_t time)
{
	struct process_life *old = process_table__find(table, pid);

	if (old) {
		process_table__exit(table, old, time);
		remove_life(&table->pids, old->pid, &old->indexed);
	}
	return insert_process(table, pid, name, start);
}

struct thread_life *process_table__add_thread(struct process_table *table,
					      struct process_life *process, uint32_t tid,
					      const char *comm, uint64_t start, uint64_t time)
{
	struct thread_life *old = process_table__find_thread(table, tid);
	struct thread_life *thread;

	if (old) {
		struct process_life *former = old->process;

		end_thread(table, old, LIFE_EXIT, time);
		remove_life(&table->tids, tid, &old->indexed);
		if (former != process && !former->living)
			process_table__exit(table, former, time);
	}
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	thread->process = process;
	thread->tid = tid;
	thread->start = thread->cpu.start = start;
	set_name(thread->comm, comm);
	TAILQ_INSERT_TAIL(&process->threads, thread, sibling);
	process->living++;
	if (number_life(&table->thread_numbers, &thread->number) ||
	    add_life(&table->tids, tid, thread, &thread->indexed)) {
		free_thread(table, thread);
		return NULL;
	}
	revive_process(table, process);
	return thread;
}

struct process_life *process_table__exec(struct process_table *table, struct process_life *old,
					 const char *name, uint64_t time)
{
	struct process_life *process;
	struct thread_life *main_thread = process_table__find_thread(table, old->pid);

	end_process(table, old, LIFE_EXEC, time);
	remove_life(&table->pids, old->pid, &old->indexed);
	if (main_thread)
		remove_life(&table->tids, old->pid, &main_thread->indexed);
	process = insert_process(table, old->pid, name, time);
	if (!process)
		return NULL;
	process->born = old->born;
	process->ppid = old->ppid;
	process->is_target = old->is_target;
	process->is_kernel = false;
	process->is_requested = old->is_requested;
	process->began = PROCESS_EXECED;
	process->cgroup = shared_ref(old->cgroup);
	process->maps_version = old->maps_version + 1;
	return process;
}

void process_table__set_target(struct process_table *table, struct process_life *process)
{
	process->is_target = true;
	process->is_requested = true;
	if (process->is_kernel)
		table->whole_system = true;
}

bool process_table__is_target(const struct process_table *table, const struct thread_life *thread)
{
	return thread->from_proc && thread->process->is_requested && !table->whole_system;
}

/* ---- names ----------------------------------------------------------------------------------- */

void process_table__rename(struct process_table *table, struct process_life *process,
			   const char *name)
{
	set_name(process->name, name);
	notify_observers(table, process_renamed, process);
}

void process_table__rename_to_file(struct process_table *table, struct process_life *process,
				   const char *path)
{
	char comm[EVENT_COMM_SIZE];

	snprintf(comm, sizeof(comm), "%s", path_base(path));
	process_table__rename(table, process, comm);
}

void process_table__rename_thread(struct process_table *table, struct thread_life *thread,
				  const char *comm, uint64_t time)
{
	if (strcmp(thread->comm, comm)) {
		thread->renamed = time;
		set_name(thread->comm, comm);
		notify_observers(table, thread_renamed, thread);
	}
	if (thread_life__is_main(thread) && !process_life__is_named(thread->process))
		process_table__rename(table, thread->process, comm);
}
