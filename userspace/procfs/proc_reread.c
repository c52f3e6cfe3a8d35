/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests and their delays: see proc_reread.h. */
#include "procfs/proc_reread.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clocks.h"
#include "base/map.h"
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

DEFINE_MAP_BY(reread_map, struct reread_entry, uint32_t, pid);

struct proc_reread {
	struct proc_snapshot *snapshot;
	event_push_fn push;
	void *context;
	struct reread_map entries;
	VEC(uint32_t) wanted; /* numbers of entries */
	bool running;	      /* entries are being walked: none may go */
};

struct proc_reread *proc_reread__new(struct proc_snapshot *s, event_push_fn push, void *context)
{
	struct proc_reread *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->snapshot = s;
	r->push = push;
	r->context = context;
	return r;
}

void proc_reread__free(struct proc_reread *r)
{
	if (!r)
		return;
	reread_map__fini(&r->entries);
	vec_free(&r->wanted);
	free(r);
}

/* The entry of a process, created if there is none; NULL: out of memory, then the request is dropped. */
static struct reread_entry *reread_entry(struct proc_reread *r, uint32_t pid)
{
	struct reread_entry *known = reread_map__find(&r->entries, pid);

	if (known)
		return known;
	if (r->entries.count >= REREAD_PROCESSES) { /* it holds only delays: reset it */
		if (r->running)
			return NULL;
		reread_map__clear(&r->entries);
		r->wanted.count = 0;
	}
	return reread_map__need(&r->entries, &(struct reread_entry){.pid = pid}, NULL);
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
	struct reread_entry *entry = reread_map__find(&r->entries, pid);

	if (!entry)
		return;
	entry->times = 0;
	entry->next = 0;
}
