/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/in/owners.h"

#include <errno.h>
#include <string.h>

/* What it belongs to is a part of it: an execve may change that, and keeps pid and name. */
static bool same_owner(const struct sample_owner *a, const struct sample_owner *b)
{
	return a->pid == b->pid && a->tid == b->tid && a->process.v == b->process.v &&
	       a->thread.v == b->thread.v && !memcmp(&a->names, &b->names, sizeof(a->names));
}

static uint64_t hash_owner(const struct sample_owner *o)
{
	return hash_combine(hash_combine(hash_u64((uint64_t)o->pid << 32 | o->tid),
					 hash_u64((uint64_t)o->process.v << 32 | o->thread.v)),
			    hash_u64(o->names.service.v));
}

MAP_KEY(owner_processes, struct owner_process, const struct sample_owner *, &entry->owner)
MAP_FUNCTIONS(owner_processes, struct owner_process, const struct sample_owner *,
	      owner_processes__key, hash_owner, same_owner);
MAP_KEY(owner_threads, struct owner_thread, const struct sample_owner *, &entry->owner)
MAP_FUNCTIONS(owner_threads, struct owner_thread, const struct sample_owner *, owner_threads__key,
	      hash_owner, same_owner);

void owners__fini(struct owners *o)
{
	owner_processes__fini(&o->processes);
	owner_threads__fini(&o->threads);
}

/* NULL: no memory. */
static struct owner_process *need_process(struct owners *o, const struct sample_owner *owner)
{
	const struct owner_process wanted = {
		.owner = {.pid = owner->pid, .process = owner->process, .names = owner->names}};
	const struct profile_process process = {
		.pid = owner->pid,
		.name = owner->process.v ? owner->process : o->program,
		.cgroup = owner->cgroup,
		.names = owner->names,
		.start = o->start,
		.is_target = true,
	};
	bool is_new;
	struct owner_process *known = owner_processes__need(&o->processes, &wanted, &is_new);

	if (known && is_new)
		known->id = profile_builder__process(o->b, &process);
	return known && known->id.v ? known : NULL;
}

int owners__process(struct owners *o, const struct sample_owner *owner, struct process_id *id)
{
	const struct owner_process *process = need_process(o, owner);

	if (!process)
		return -ENOMEM;
	*id = process->id;
	return 0;
}

static int fill_thread(struct owners *o, struct owner_thread *thread, struct string_id name)
{
	const struct sample_owner *owner = &thread->owner;
	struct owner_process *process = need_process(o, owner);
	bool is_main;

	if (!process)
		return -ENOMEM;
	thread->name = name.v ? name : owner->process.v ? owner->process : o->program;
	is_main = owner->tid == owner->pid && !process->has_main;
	process->has_main |= is_main;
	thread->id = profile_builder__thread(o->b, process->id, owner->tid, is_main, thread->name,
					     o->start);
	return thread->id.v ? 0 : -ENOMEM;
}

int owners__thread(struct owners *o, const struct sample_owner *owner, struct string_id comm,
		   struct owner_thread **thread)
{
	struct owner_thread wanted = {.owner = *owner}, *known;
	bool is_new;
	int err = 0;

	if (owner->tid)
		wanted.owner.thread = (struct string_id){0};
	known = owner_threads__need(&o->threads, &wanted, &is_new);
	if (!known)
		return -ENOMEM;
	if (is_new)
		err = fill_thread(o, known, owner->thread.v ? owner->thread : comm);
	if (!err)
		*thread = known;
	return err;
}
