/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests and their delays: see proc_reread.h. */
#include "procfs/proc_reread.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clocks.h"
#include "base/hashmap.h"
#include "base/vec.h"

#define REREAD_FIRST	  100000000ULL /* ns */
#define REREAD_STEPS	  7u
#define REREAD_PROCESSES  65536u
#define REREADS_PER_ROUND 32u

struct reread_entry {
	uint32_t pid;
	uint32_t times; /* read so far, up to REREAD_STEPS */
	uint64_t next;	/* not before this time */
	bool wanted;
};

struct proc_reread {
	struct proc_snapshot *snapshot;
	event_push_fn push;
	void *context;
	VEC(struct reread_entry) entries;
	VEC(uint32_t) wanted; /* numbers of entries */
	struct hashmap by_pid;
	bool running; /* entries are being walked: none may go */
};

static bool reread_has_pid(const void *owner, uint32_t index, const void *key)
{
	const struct proc_reread *r = owner;

	return r->entries.data[index].pid == *(const uint32_t *)key;
}

struct proc_reread *proc_reread__new(struct proc_snapshot *s, event_push_fn push, void *context)
{
	struct proc_reread *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->snapshot = s;
	r->push = push;
	r->context = context;
	hashmap__init(&r->by_pid, reread_has_pid, r);
	return r;
}

void proc_reread__free(struct proc_reread *r)
{
	if (!r)
		return;
	hashmap__fini(&r->by_pid);
	vec_free(&r->entries);
	vec_free(&r->wanted);
	free(r);
}

/* The entry of a process, created if there is none; NULL: out of memory, then the request is dropped. */
static struct reread_entry *reread_entry(struct proc_reread *r, uint32_t pid)
{
	uint64_t hash = hash_u64(pid);
	uint32_t index = hashmap__find(&r->by_pid, hash, &pid);

	if (index != HASHMAP_NONE)
		return &r->entries.data[index];
	if (r->entries.count >= REREAD_PROCESSES) { /* it holds only delays: reset it */
		if (r->running)
			return NULL;
		hashmap__clear(&r->by_pid);
		r->entries.count = r->wanted.count = 0;
	}
	if (vec_push(&r->entries, (struct reread_entry){.pid = pid}))
		return NULL;
	if (hashmap__add(&r->by_pid, hash, r->entries.count - 1)) {
		r->entries.count--;
		return NULL;
	}
	return &r->entries.data[r->entries.count - 1];
}

void proc_reread__request(void *reread, __u32 pid)
{
	struct proc_reread *r = reread;
	struct reread_entry *entry = reread_entry(r, pid);

	if (!entry || entry->wanted)
		return;
	entry->wanted = !vec_push(&r->wanted, (uint32_t)(entry - r->entries.data));
}

int proc_reread__run(struct proc_reread *r)
{
	uint64_t now = monotonic_ns();
	unsigned int reads = 0;
	size_t kept = 0;
	int err = 0;

	r->running = true;
	for (size_t i = 0; i < r->wanted.count; i++) {
		uint32_t number = r->wanted.data[i];
		struct reread_entry *entry = &r->entries.data[number];

		if (entry->next > now || reads == REREADS_PER_ROUND || err) {
			r->wanted.data[kept++] = number;
			continue;
		}
		reads++;
		entry->wanted = false;
		entry->next = now + (REREAD_FIRST << entry->times);
		entry->times += entry->times < REREAD_STEPS;
		err = proc_snapshot__process(r->snapshot, entry->pid, false, r->push, r->context);
	}
	r->wanted.count = kept;
	r->running = false;
	return err;
}

void proc_reread__forget(struct proc_reread *r, __u32 pid)
{
	uint32_t index = hashmap__find(&r->by_pid, hash_u64(pid), &pid);

	if (index == HASHMAP_NONE)
		return;
	r->entries.data[index].times = 0;
	r->entries.data[index].next = 0;
}
