/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Targets by time: see family.h.
 *
 * A pid is forgotten when it is reused by a process that is not a target. The entry of a process whose leader
 * has ended is kept for FORGET_AFTER, because its last records may still be in transit. If it still has
 * threads by then, it is checked again after the same time.
 */
#include "session/family.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/vec.h"

#define FORGET_AFTER 2000000000ull /* ns */
#define NEVER	     UINT64_MAX

struct member {
	pid_t pid, parent;
	bool is_target;
	uint64_t since, until; /* it is a target in [since, until) */
	uint64_t ended;	       /* NEVER while it lives */
};

struct family {
	bool everyone, inherit;
	bool (*exists)(pid_t pid);
	VEC(struct member) members;
	VEC(uint32_t) free_slots;
	VEC(uint32_t) ended; /* slots in order of their end, from `first_ended` on */
	size_t first_ended;
	struct hashmap by_pid;
};

static bool same_pid(const void *owner, uint32_t index, const void *key)
{
	const struct family *f = owner;

	return f->members.data[index].pid == *(const pid_t *)key;
}

struct family *family__new(bool everyone, bool inherit, bool (*exists)(pid_t pid))
{
	struct family *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->everyone = everyone;
	f->inherit = inherit;
	f->exists = exists;
	hashmap__init(&f->by_pid, same_pid, f);
	return f;
}

void family__free(struct family *f)
{
	if (!f)
		return;
	hashmap__fini(&f->by_pid);
	vec_free(&f->members);
	vec_free(&f->free_slots);
	vec_free(&f->ended);
	free(f);
}

static struct member *find(const struct family *f, pid_t pid)
{
	uint32_t slot = hashmap__find(&f->by_pid, hash_u64(pid), &pid);

	return slot == HASHMAP_NONE ? NULL : &f->members.data[slot];
}

static int add(struct family *f, const struct member *member)
{
	struct member *known = find(f, member->pid);
	uint32_t slot;
	int err;

	if (known) {
		*known = *member;
		return 0;
	}
	if (f->free_slots.count) {
		slot = f->free_slots.data[--f->free_slots.count];
		f->members.data[slot] = *member;
	} else {
		slot = f->members.count;
		err = vec_push(&f->members, *member);
		if (err)
			return err;
	}
	err = hashmap__add(&f->by_pid, hash_u64(member->pid), slot);
	if (err) {
		f->members.data[slot].pid = 0;
		vec_push(&f->free_slots, slot);
	}
	return err;
}

int family__add_target(struct family *f, pid_t pid)
{
	struct member *known = find(f, pid);
	struct member member = {.pid = pid, .is_target = true, .until = NEVER, .ended = NEVER};

	if (known)
		member.parent = known->parent;
	return add(f, &member);
}

int family__add_parent(struct family *f, pid_t pid, pid_t parent)
{
	struct member *known = find(f, pid);
	struct member member = {.pid = pid, .parent = parent, .until = NEVER, .ended = NEVER};

	if (known) {
		known->parent = parent;
		return 0;
	}
	return add(f, &member);
}

static void forget(struct family *f, uint32_t slot)
{
	struct member *m = &f->members.data[slot];

	hashmap__remove(&f->by_pid, hash_u64(m->pid), &m->pid);
	m->pid = 0;
	vec_push(&f->free_slots, slot); /* on -ENOMEM the slot stays unused */
}

/* The removed front of the list is freed once it is larger than the rest. */
static void compact_ended(struct family *f)
{
	size_t left = f->ended.count - f->first_ended;

	if (left > f->first_ended)
		return;
	if (left)
		memcpy(f->ended.data, f->ended.data + f->first_ended, left * sizeof(uint32_t));
	f->ended.count = left;
	f->first_ended = 0;
}

static void forget_ended(struct family *f, uint64_t now)
{
	while (f->first_ended < f->ended.count) {
		uint32_t slot = f->ended.data[f->first_ended];
		struct member *m = &f->members.data[slot];

		/* a number that was used again in the meantime has a new life in the same slot */
		if (m->ended != NEVER && now < m->ended + FORGET_AFTER)
			break;
		f->first_ended++;
		if (m->ended == NEVER || !m->pid)
			continue;
		if (m->until != NEVER || !f->exists || !f->exists(m->pid)) {
			forget(f, slot);
			continue;
		}
		m->ended = now;
		vec_push(&f->ended, slot); /* on -ENOMEM it is kept for good */
	}
	compact_ended(f);
}

static bool was_target(const struct family *f, pid_t pid, uint64_t time)
{
	const struct member *m = find(f, pid);

	return m && m->is_target && time >= m->since && time < m->until;
}

int family__fork(struct family *f, const struct task_event *event)
{
	struct member member = {
		.pid = event->pid,
		.parent = event->ppid,
		.since = event->header.time,
		.until = NEVER,
		.ended = NEVER,
	};
	struct member *known;

	if (event->pid == event->ppid)
		return 0;
	forget_ended(f, event->header.time);
	member.is_target = f->inherit && was_target(f, event->ppid, event->header.time);
	known = find(f, event->pid);
	if (member.is_target || f->everyone)
		return add(f, &member);
	if (known)
		known->until = event->header.time;
	return 0;
}

void family__exit(struct family *f, const struct task_event *event)
{
	struct member *m = event->pid == event->tid ? find(f, event->pid) : NULL;

	if (!m || m->ended != NEVER || event->header.time < m->since)
		return;
	m->ended = event->header.time;
	vec_push(&f->ended, (uint32_t)(m - f->members.data)); /* on -ENOMEM it is kept for good */
}

bool family__is_target(const struct family *f, pid_t pid, uint64_t time)
{
	return f->everyone || was_target(f, pid, time);
}

pid_t family__parent(const struct family *f, pid_t pid)
{
	const struct member *m = find(f, pid);

	return m ? m->parent : 0;
}

int family__living_targets(const struct family *f, pid_t **pids, size_t *count)
{
	pid_t *list = calloc(f->members.count + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < f->members.count; i++) {
		const struct member *m = &f->members.data[i];

		if (m->pid && m->is_target && m->until == NEVER)
			list[n++] = m->pid;
	}
	*pids = list;
	*count = n;
	return 0;
}
