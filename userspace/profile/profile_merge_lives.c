/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/profile_merge_lives.h"

#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "profile/profile_merge_private.h"

#define LIVES_SEARCHED 64	 /* of one number */
#define EVENT_SLACK    1000000u	 /* ns between two records of one event */
#define BORN_SLACK     50000000u /* the same; /proc has hundredths of a second */

MAP_FUNCTIONS_BY_BYTES(latest_lives, struct latest_life, struct life_key, key);

void merged_lives__fini(struct profile_merge *m)
{
	vec_free(&m->processes);
	vec_free(&m->threads);
	latest_lives__fini(&m->pids);
	latest_lives__fini(&m->tids);
}

/* ---- lives ----------------------------------------------------------------------------------- */

/* Could both be one? Each profile has a life once. Windows have nothing but names. */
static bool can_be_one(const struct merging *a, const struct merged_life *known,
		       const struct merged_life *life)
{
	if (known->source == a->m->sources)
		return false;
	return a->m->is_windows ||
	       (known->seen_until <= life->end_max && life->seen_until <= known->end_max &&
		known->seen_from >= life->begin_min && life->seen_from >= known->begin_min);
}

/* Time between what was seen of both. */
static uint64_t distance(const struct merged_life *a, const struct merged_life *b)
{
	uint64_t begin = max_u64(a->seen_from, b->seen_from);
	uint64_t end = min_u64(a->seen_until, b->seen_until);

	return begin > end ? begin - end : 0;
}

static void join_life(struct merged_life *known, const struct merged_life *life)
{
	known->begin_min = max_u64(known->begin_min, life->begin_min);
	known->seen_from = min_u64(known->seen_from, life->seen_from);
	known->seen_until = max_u64(known->seen_until, life->seen_until);
	known->end_max = min_u64(known->end_max, life->end_max);
	known->source = life->source;
}

/* What is the same of a known process or thread, apart from its times. */
typedef bool (*same_life_fn)(const struct merging *a, uint32_t known, const void *wanted);

/* The nearest one with the number; 0: none. */
static uint32_t find_life(const struct merging *a, const struct merged_life *lives, uint32_t latest,
			  const struct merged_life *life, same_life_fn is_same, const void *wanted)
{
	uint32_t found = 0;
	unsigned int searched = 0;

	for (uint32_t id = latest; id && searched < LIVES_SEARCHED; id = lives[id].older) {
		searched++;
		if (can_be_one(a, &lives[id], life) && is_same(a, id, wanted) &&
		    (!found || distance(&lives[id], life) < distance(&lives[found], life)))
			found = id;
	}
	return found;
}

static uint64_t earlier(uint64_t time, uint64_t by)
{
	return time > by ? time - by : 0;
}

/* `begin` 0: before that. `end` 0: it goes on. */
static struct merged_life life_of(const struct merging *a, uint64_t begin, uint64_t from,
				  uint64_t end)
{
	return (struct merged_life){
		.clock = a->clock,
		.source = a->m->sources,
		.begin_min = earlier(begin, EVENT_SLACK),
		.seen_from = from,
		.seen_until = end ? end : a->p->end,
		.end_max = end ? end + EVENT_SLACK : UINT64_MAX,
	};
}

static struct profile_process *process_at(const struct profile_merge *m, uint32_t id)
{
	return &m->builder->processes.data[id];
}

static bool is_same_process(const struct merging *a, uint32_t known, const void *wanted)
{
	const struct profile_process *x = process_at(a->m, known), *y = wanted;

	return x->name.v == y->name.v && x->is_kernel == y->is_kernel &&
	       (!x->born || !y->born ||
		max_u64(x->born, y->born) - min_u64(x->born, y->born) <= BORN_SLACK);
}

/* Texts that one of both lacks are the other's. */
static void join_process(struct profile_process *known, const struct profile_process *process)
{
	struct string_id *mine[] = {&known->cgroup, &known->program};
	const struct string_id *others[] = {&process->cgroup, &process->program};

	for (size_t i = 0; i < sizeof(mine) / sizeof(*mine); i++)
		if (!mine[i]->v)
			*mine[i] = *others[i];
#define X(field, label)                                                                            \
	if (!known->names.field.v)                                                                 \
		known->names.field = process->names.field;
	PROCESS_NAMES(X)
#undef X
	if (known->began == PROCESS_WAS_THERE)
		known->began = process->began;
	known->start = min_u64(known->start, process->start);
	known->execs |= process->execs;
	known->is_target |= process->is_target;
	known->born = known->born ? known->born : process->born;
}

struct string_id merged_name(struct merging *a, struct process_id process, struct string_id name)
{
	return a->window && name.v == a->p->processes[process.v].name.v && name.v
		       ? a->service
		       : profile_copy__string(&a->copy, name);
}

static void copy_facts(struct merging *a, uint32_t id, const struct profile_process *process)
{
	struct profile_fact facts[PROCESS_FACTS_MAX];
	uint32_t count = min_u64(process->fact_count, PROCESS_FACTS_MAX);

	if (process_at(a->m, id)->fact_count)
		return;
	for (uint32_t i = 0; i < count; i++) {
		const struct profile_fact *fact = &a->p->facts[process->first_fact + i];

		facts[i].key = profile_copy__string(&a->copy, fact->key);
		facts[i].value = profile_copy__string(&a->copy, fact->value);
	}
	profile_builder__process_facts(a->m->builder, (struct process_id){id}, process->facts_state,
				       facts, count);
}

/* A new life, the latest one of its number. */
static int add_life(struct latest_life *latest, struct merged_life *life, uint32_t id)
{
	life->older = latest->id;
	latest->id = id;
	return id ? 0 : -ENOMEM;
}

/* A field that is added to one of these is copied and joined here. */
_Static_assert(sizeof(struct profile_process) == 120, "a process");
_Static_assert(sizeof(struct profile_thread) == 512, "a thread");

static int merge_process(struct merging *a, uint32_t number)
{
	struct profile_process process = a->p->processes[number];
	struct profile_merge *m = a->m;
	const struct latest_life key = {.key = {a->clock, process.pid}};
	struct latest_life *latest = latest_lives__need(&m->pids, &key, NULL);
	struct merged_life life = life_of(a, process.began ? process.start : 0, process.start,
					  process.end);
	uint32_t id;

	if (!latest)
		return -ENOMEM;
	process.name = merged_name(a, (struct process_id){number}, process.name);
	process.cgroup = profile_copy__string(&a->copy, process.cgroup);
	process.program = profile_copy__string(&a->copy, process.program);
#define X(field, label) process.names.field = profile_copy__string(&a->copy, process.names.field);
	PROCESS_NAMES(X)
#undef X
	process.first_fact = process.fact_count = 0;
	process.life = 0; /* of its own session */
	id = find_life(a, m->processes.data, latest->id, &life, is_same_process, &process);
	a->copy.processes[number] = id;
	if (id) {
		join_life(&m->processes.data[id], &life);
		join_process(process_at(m, id), &process);
	} else {
		id = profile_builder__process(m->builder, &process).v;
		a->copy.processes[number] = id;
		if (add_life(latest, &life, id) || vec_push(&m->processes, life))
			return -ENOMEM;
	}
	copy_facts(a, id, &a->p->processes[number]);
	return profile_builder__error(m->builder);
}

struct wanted_thread {
	struct string_id name;
	bool has_number;
};

/* Without a tid only the name distinguishes threads. */
static bool is_same_thread(const struct merging *a, uint32_t known, const void *wanted)
{
	const struct wanted_thread *w = wanted;

	return w->has_number || a->m->builder->threads.data[known].name.v == w->name.v;
}

/* A process has one main thread. */
static int add_thread(struct merging *a, const struct profile_thread *t, struct string_id name,
		      struct latest_life *latest, struct merged_life *life, uint32_t *id)
{
	struct profile_merge *m = a->m;
	struct process_id process = {latest->key.owner};
	struct merged_life *owner = &m->processes.data[process.v];
	bool is_main = t->is_main && !owner->has_main;

	owner->has_main |= is_main;
	*id = profile_builder__thread(m->builder, process, t->tid, is_main, name, t->start).v;
	return add_life(latest, life, *id) ?: vec_push(&m->threads, *life);
}

static int merge_thread(struct merging *a, uint32_t number)
{
	const struct profile_thread *t = &a->p->threads[number];
	struct profile_merge *m = a->m;
	const struct latest_life key = {.key = {a->copy.processes[t->process.v], t->tid}};
	struct merged_life life = life_of(a, 0, t->start, t->end);
	const struct wanted_thread wanted = {merged_name(a, t->process, t->name), t->tid != 0};
	struct latest_life *latest = latest_lives__need(&m->tids, &key, NULL);
	uint32_t id;
	int err = latest ? 0 : -ENOMEM;

	if (err)
		return err;
	id = find_life(a, m->threads.data, latest->id, &life, is_same_thread, &wanted);
	if (!id)
		err = add_thread(a, t, wanted.name, latest, &life, &id);
	a->threads[number] = id;
	if (err)
		return err;
	if (life.seen_until >= m->threads.data[id].seen_until)
		m->builder->threads.data[id].name = wanted.name;
	join_life(&m->threads.data[id], &life);
	m->builder->threads.data[id].start = min_u64(m->builder->threads.data[id].start, t->start);
	return profile_builder__error(m->builder);
}

/* Of a window's service alone. */
static bool is_taken(const struct merging *a, uint32_t process)
{
	return !a->window || a->window->is_alone ||
	       !strcmp(profile__string(a->p, a->p->processes[process].name), a->window->process);
}

/* Code that is private to a process is the service's, whichever process the file has it for. */
static void own_all_code(struct merging *a)
{
	uint32_t taken = 0;

	for (uint32_t i = 1; i < a->p->process_count && !taken; i++)
		taken = a->copy.processes[i];
	for (uint32_t i = 1; i < a->p->process_count; i++)
		if (!a->copy.processes[i])
			a->copy.processes[i] = taken;
}

int merge_lives(struct merging *a)
{
	int err = 0;

	for (uint32_t i = 1; i < a->p->process_count && !err; i++)
		if (is_taken(a, i))
			err = merge_process(a, i);
	for (uint32_t i = 1; i < a->p->thread_count && !err; i++)
		if (a->copy.processes[a->p->threads[i].process.v])
			err = merge_thread(a, i);
	if (a->window)
		own_all_code(a);
	return err;
}
