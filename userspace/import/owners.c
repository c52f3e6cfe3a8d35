/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes and threads by what samples say of them. */
#include "import/owners.h"

#include <errno.h>
#include <stdlib.h>

static bool same_owner(const struct owner *a, const struct owner *b)
{
	return a->pid == b->pid && a->tid == b->tid && a->process.v == b->process.v &&
	       a->thread.v == b->thread.v;
}

static bool thread_equal(const void *owner, uint32_t index, const void *key)
{
	return same_owner(&((const struct owners *)owner)->threads.data[index].owner, key);
}

static bool process_equal(const void *owner, uint32_t index, const void *key)
{
	return same_owner(&((const struct owners *)owner)->processes.data[index].owner, key);
}

static uint64_t owner_hash(const struct owner *o)
{
	return hash_combine(hash_u64((uint64_t)o->pid << 32 | o->tid),
			    hash_u64((uint64_t)o->process.v << 32 | o->thread.v));
}

void owners__init(struct owners *o, struct profile_builder *b, uint64_t start)
{
	*o = (struct owners){.b = b, .start = start};
	hashmap__init(&o->process_map, process_equal, o);
	hashmap__init(&o->thread_map, thread_equal, o);
}

void owners__fini(struct owners *o)
{
	vec_free(&o->processes);
	vec_free(&o->threads);
	hashmap__fini(&o->process_map);
	hashmap__fini(&o->thread_map);
}

static int find_process(struct owners *o, const struct owner *owner, uint32_t *number)
{
	const struct owner key = {.pid = owner->pid, .process = owner->process};
	const struct profile_process process = {
		.pid = key.pid,
		.name = key.process.v ? key.process : o->program,
		.cgroup = owner->cgroup,
		.start = o->start,
		.is_target = true,
	};
	struct owner_process added = {.owner = key};
	uint64_t hash = owner_hash(&key);
	int err;

	*number = hashmap__find(&o->process_map, hash, &key);
	if (*number != HASHMAP_NONE)
		return 0;
	added.id = profile_builder__process(o->b, &process);
	*number = (uint32_t)o->processes.count;
	err = added.id.v ? vec_push(&o->processes, added) : -ENOMEM;
	return err ? err : hashmap__add(&o->process_map, hash, *number);
}

int owners__process(struct owners *o, const struct owner *owner, struct process_id *id)
{
	uint32_t number;
	int err = find_process(o, owner, &number);

	if (!err)
		*id = o->processes.data[number].id;
	return err;
}

static int add_thread(struct owners *o, const struct owner *owner, struct string_id comm,
		      uint32_t *number)
{
	struct owner_thread added = {.owner = *owner,
				     .name = owner->thread.v ? owner->thread : comm};
	struct owner_process *process;
	bool is_main;
	uint32_t found;
	int err = find_process(o, owner, &found);

	if (err)
		return err;
	process = &o->processes.data[found];
	if (!added.name.v)
		added.name = owner->process.v ? owner->process : o->program;
	is_main = owner->tid == owner->pid && !process->has_main;
	process->has_main |= is_main;
	added.id = profile_builder__thread(o->b, process->id, owner->tid, is_main, added.name,
					   o->start);
	*number = (uint32_t)o->threads.count;
	return added.id.v ? vec_push(&o->threads, added) : -ENOMEM;
}

int owners__thread(struct owners *o, const struct owner *owner, struct string_id comm,
		   struct owner_thread **thread)
{
	struct owner key = *owner;
	uint64_t hash;
	uint32_t found;
	int err;

	if (key.tid)
		key.thread = (struct string_id){0};
	hash = owner_hash(&key);
	found = hashmap__find(&o->thread_map, hash, &key);
	if (found == HASHMAP_NONE) {
		err = add_thread(o, &key, owner->thread.v ? owner->thread : comm, &found);
		if (!err)
			err = hashmap__add(&o->thread_map, hash, found);
		if (err)
			return err;
	}
	*thread = &o->threads.data[found];
	return 0;
}
