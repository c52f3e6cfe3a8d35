/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lives, and who owns them.
 *
 * A process life owns its thread lives (the `threads` list). It is in one of two lists of the
 * table, `living` or `dead` (in the order of their ends), and is freed when its grace is over and
 * its last thread is gone. An ended thread is in the table's `dead_threads` until its grace is
 * over. Both are found through an index by number; a number that is given out anew, or an execve,
 * takes the old life out of the index at once, so at most one life answers to a number.
 */
#include "process/process_table.h"
#include "base/hashmap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- pid or tid -> life ---------------------------------------------------------------------- */

struct id_slot {
	uint32_t id;
	void *life;
};

/* Must not move once it is initialised. */
struct id_map {
	struct hashmap map;
	VEC(struct id_slot) slots;
	VEC(uint32_t) unused;
};

static bool slot_equal(const void *owner, uint32_t index, const void *key)
{
	const struct id_map *m = owner;

	return m->slots.data[index].id == *(const uint32_t *)key;
}

static void id_map__init(struct id_map *m)
{
	hashmap__init(&m->map, slot_equal, m);
}

static void id_map__fini(struct id_map *m)
{
	hashmap__fini(&m->map);
	vec_free(&m->slots);
	vec_free(&m->unused);
}

static void *id_map__find(const struct id_map *m, uint32_t id)
{
	uint32_t slot = hashmap__find(&m->map, hash_u64(id), &id);

	return slot == HASHMAP_NONE ? NULL : m->slots.data[slot].life;
}

/* `id` must not be there. */
static int id_map__add(struct id_map *m, uint32_t id, void *life)
{
	struct id_slot content = {id, life};
	uint32_t slot;

	/* room in `unused` for every slot, so that removing cannot fail */
	if (vec_reserve(&m->unused, m->slots.count + 1))
		return -ENOMEM;
	if (m->unused.count) {
		slot = m->unused.data[m->unused.count - 1];
	} else {
		if (vec_push(&m->slots, content))
			return -ENOMEM;
		slot = m->slots.count - 1;
		m->unused.data[m->unused.count++] = slot;
	}
	m->slots.data[slot] = content;
	if (hashmap__add(&m->map, hash_u64(id), slot))
		return -ENOMEM;
	m->unused.count--;
	return 0;
}

static void id_map__remove(struct id_map *m, uint32_t id)
{
	uint32_t slot = hashmap__remove(&m->map, hash_u64(id), &id);

	if (slot == HASHMAP_NONE)
		return;
	m->slots.data[slot].life = NULL;
	m->unused.data[m->unused.count++] = slot;
}

/* ---- the table ------------------------------------------------------------------------------- */

TAILQ_HEAD(process_list, process_life);
TAILQ_HEAD(thread_list, thread_life);

struct process_table {
	struct profile_builder *builder; /* not owned */
	struct id_map pids, tids;
	struct process_list living, dead;
	struct thread_list dead_threads;
	bool whole_system;
};

struct process_table *process_table__new(struct profile_builder *builder)
{
	struct process_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->builder = builder;
	id_map__init(&table->pids);
	id_map__init(&table->tids);
	TAILQ_INIT(&table->living);
	TAILQ_INIT(&table->dead);
	TAILQ_INIT(&table->dead_threads);
	return table;
}

static void free_thread(struct process_table *table, struct thread_life *thread)
{
	struct process_life *process = thread->process;

	if (thread->indexed)
		id_map__remove(&table->tids, thread->tid);
	if (thread->ended)
		TAILQ_REMOVE(&table->dead_threads, thread, link);
	else
		process->living--;
	TAILQ_REMOVE(&process->threads, thread, sibling);
	vec_free(&thread->memo.frames);
	vec_free(&thread->memo.stacks);
	free(thread);
}

static void free_process(struct process_table *table, struct process_life *process)
{
	struct thread_life *thread;

	while ((thread = TAILQ_FIRST(&process->threads)))
		free_thread(table, thread);
	if (process->indexed)
		id_map__remove(&table->pids, process->pid);
	TAILQ_REMOVE(process->ended ? &table->dead : &table->living, process, link);
	mapping_table__unref(process->maps);
	for (size_t i = 0; i < PUBLICATIONS; i++)
		mapping_table__unref(process->publications[i].maps);
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
	free(table);
}

struct process_life *process_table__find(const struct process_table *table, uint32_t pid)
{
	return id_map__find(&table->pids, pid);
}

struct thread_life *process_table__find_thread(const struct process_table *table, uint32_t tid)
{
	return id_map__find(&table->tids, tid);
}

struct process_life *process_table__first(const struct process_table *table)
{
	return TAILQ_FIRST(&table->living);
}

struct process_life *process_life__next(const struct process_life *process)
{
	return TAILQ_NEXT(process, link);
}

/* ---- in the profile -------------------------------------------------------------------------- */

static void show_process(struct process_table *table, struct process_life *process, uint64_t start)
{
	struct profile_process p = {
		.pid = process->pid,
		.ppid = process->ppid,
		.name = profile_builder__string(table->builder, process->name),
		.start = process->start ? process->start : start,
		.end = process->end,
		.is_kernel = process->is_kernel,
		.is_target = process->is_target,
	};

	if (!process->id.v)
		process->id = profile_builder__process(table->builder, &p);
}

void thread_life__show(struct process_table *table, struct thread_life *thread, uint64_t time,
		       uint64_t earlier)
{
	struct process_life *process = thread->process;
	bool is_main = thread_life__is_main(thread) && !process->has_main;
	uint64_t start = thread->start;

	if (thread->id.v)
		return;
	if (!start || start >= time)
		start = time > earlier + 1 ? time - earlier - 1 : 0;
	show_process(table, process, start);
	thread->comm_id = profile_builder__string(table->builder, thread->comm);
	thread->id = profile_builder__thread(table->builder, process->id, thread->tid, is_main,
					     thread->comm_id, start);
	if (is_main)
		process->has_main = true;
	if (thread->ended)
		profile_builder__thread_end(table->builder, thread->id, thread->end);
}

static void settle_thread(struct process_table *table, struct thread_life *thread)
{
	if (thread->id.v)
		profile_builder__thread_cpu_tail(table->builder, thread->id,
						 thread->cpu_seen - thread->cpu_last);
}

/* A thread of a process that was asked for by name is shown, sampled or not. */
static void show_if_asked(struct process_table *table, struct thread_life *thread, uint64_t time)
{
	if (thread->told && thread->process->asked && !table->whole_system)
		thread_life__show(table, thread, time, 0);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void end_thread(struct process_table *table, struct thread_life *thread, uint64_t time)
{
	if (thread->ended)
		return;
	thread->ended = true;
	thread->end = time;
	thread->process->living--;
	TAILQ_INSERT_TAIL(&table->dead_threads, thread, link);
	profile_builder__thread_end(table->builder, thread->id, time);
}

static void end_process(struct process_table *table, struct process_life *process, uint64_t time)
{
	struct thread_life *thread;

	TAILQ_FOREACH(thread, &process->threads, sibling)
	end_thread(table, thread, time);
	if (process->ended)
		return;
	process->ended = true;
	process->end = time;
	TAILQ_REMOVE(&table->living, process, link);
	TAILQ_INSERT_TAIL(&table->dead, process, link);
	profile_builder__process_end(table->builder, process->id, time);
}

void process_table__exit(struct process_table *table, struct process_life *process, uint64_t time)
{
	struct thread_life *thread;

	TAILQ_FOREACH(thread, &process->threads, sibling)
	show_if_asked(table, thread, time);
	end_process(table, process, time);
}

void process_table__exit_thread(struct process_table *table, struct thread_life *thread,
				uint64_t time)
{
	show_if_asked(table, thread, time);
	end_thread(table, thread, time);
	if (!thread->process->living)
		process_table__exit(table, thread->process, time);
}

void process_table__revive(struct process_table *table, struct process_life *process)
{
	if (!process->ended)
		return;
	process->ended = false;
	process->end = 0;
	TAILQ_REMOVE(&table->dead, process, link);
	TAILQ_INSERT_TAIL(&table->living, process, link);
	profile_builder__process_end(table->builder, process->id, 0);
}

static bool grace_is_over(uint64_t end, uint64_t now)
{
	return now > end && now - end > LIFE_GRACE_NS;
}

static void bury_thread(struct process_table *table, struct thread_life *thread)
{
	settle_thread(table, thread);
	free_thread(table, thread);
}

void process_table__advance(struct process_table *table, uint64_t now)
{
	struct thread_life *thread;
	struct process_life *process;

	while ((thread = TAILQ_FIRST(&table->dead_threads)) && grace_is_over(thread->end, now))
		bury_thread(table, thread);
	while ((process = TAILQ_FIRST(&table->dead)) && grace_is_over(process->end, now) &&
	       TAILQ_EMPTY(&process->threads))
		free_process(table, process);
}

/* ---- beginnings ------------------------------------------------------------------------------ */

static void unindex_process(struct process_table *table, struct process_life *process)
{
	if (!process->indexed)
		return;
	id_map__remove(&table->pids, process->pid);
	process->indexed = false;
}

static void unindex_thread(struct process_table *table, struct thread_life *thread)
{
	if (!thread->indexed)
		return;
	id_map__remove(&table->tids, thread->tid);
	thread->indexed = false;
}

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
	if (id_map__add(&table->pids, pid, process)) {
		free_process(table, process);
		return NULL;
	}
	process->indexed = true;
	return process;
}

struct process_life *process_table__add(struct process_table *table, uint32_t pid, const char *name,
					uint64_t start, uint64_t time)
{
	struct process_life *old = process_table__find(table, pid);

	if (old) {
		process_table__exit(table, old, time);
		unindex_process(table, old);
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

		show_if_asked(table, old, time);
		end_thread(table, old, time);
		unindex_thread(table, old);
		if (former != process && !former->living)
			process_table__exit(table, former, time);
	}
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	thread->process = process;
	thread->tid = tid;
	thread->start = thread->clock_start = start;
	set_name(thread->comm, comm);
	TAILQ_INSERT_TAIL(&process->threads, thread, sibling);
	process->living++;
	if (id_map__add(&table->tids, tid, thread)) {
		free_thread(table, thread);
		return NULL;
	}
	thread->indexed = true;
	process_table__revive(table, process);
	return thread;
}

struct process_life *process_table__exec(struct process_table *table, struct process_life *old,
					 const char *name, uint64_t time)
{
	struct process_life *process;
	struct thread_life *main_thread = process_table__find_thread(table, old->pid);

	end_process(table, old, time);
	unindex_process(table, old);
	if (main_thread)
		unindex_thread(table, main_thread);
	process = insert_process(table, old->pid, name, time);
	if (!process)
		return NULL;
	process->born = old->born;
	process->ppid = old->ppid;
	process->is_target = old->is_target;
	process->is_kernel = false;
	process->asked = old->asked;
	process->maps_version = old->maps_version + 1;
	return process;
}

void process_table__ask(struct process_table *table, struct process_life *process)
{
	process->is_target = true;
	process->asked = true;
	if (process->is_kernel)
		table->whole_system = true;
}

/* ---- names ----------------------------------------------------------------------------------- */

void process_life__rename(struct process_table *table, struct process_life *process,
			  const char *name)
{
	set_name(process->name, name);
	if (process->id.v)
		profile_builder__process_name(
			table->builder, process->id,
			profile_builder__string(table->builder, process->name));
}

void thread_life__rename(struct process_table *table, struct thread_life *thread, const char *comm)
{
	set_name(thread->comm, comm);
	if (thread->id.v) {
		thread->comm_id = profile_builder__string(table->builder, thread->comm);
		profile_builder__thread_name(table->builder, thread->id, thread->comm_id);
	}
	if (thread_life__is_main(thread))
		process_life__rename(table, thread->process, comm);
}

/* ---- the end of the stream ------------------------------------------------------------------- */

static void settle_process(struct process_table *table, struct process_life *process, uint64_t time)
{
	struct thread_life *thread;

	TAILQ_FOREACH(thread, &process->threads, sibling)
	{
		if (!thread->ended)
			show_if_asked(table, thread, time);
		settle_thread(table, thread);
	}
}

void process_table__settle(struct process_table *table, uint64_t time)
{
	struct process_life *process;

	TAILQ_FOREACH(process, &table->dead, link)
	settle_process(table, process, time);
	TAILQ_FOREACH(process, &table->living, link)
	settle_process(table, process, time);
}
