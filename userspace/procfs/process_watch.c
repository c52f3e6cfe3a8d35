/* SPDX-License-Identifier: BSD-2-Clause */
#include "procfs/process_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hashmap.h"
#include "base/vec.h"
#include "procfs/process_facts.h"

#define WATCHED_MAX 16384u

struct watched {
	pid_t pid;	      /* 0: the slot is free */
	uint32_t samples;     /* since the last round */
	uint64_t cgroup_next; /* when its control group is read again */
	bool has_no_memory;   /* a kernel thread: there is nothing to look at */
};

struct process_watch {
	int proc_fd;
	pid_t self;
	bool groups_only;
	VEC(struct watched) watched;
	VEC(uint32_t) unused, sampled; /* numbers of `watched` */
	struct hashmap by_pid;
};

static bool has_pid(const void *owner, uint32_t index, const void *key)
{
	const struct process_watch *w = owner;

	return w->watched.data[index].pid == *(const pid_t *)key;
}

int process_watch__new(bool groups_only, struct process_watch **watch)
{
	struct process_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	hashmap__init(&w->by_pid, has_pid, w);
	w->self = getpid();
	w->groups_only = groups_only;
	w->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->proc_fd < 0) {
		int err = -errno;

		process_watch__free(w);
		return err;
	}
	*watch = w;
	return 0;
}

void process_watch__free(struct process_watch *w)
{
	if (!w)
		return;
	if (w->proc_fd >= 0)
		close(w->proc_fd);
	hashmap__fini(&w->by_pid);
	vec_free(&w->watched);
	vec_free(&w->unused);
	vec_free(&w->sampled);
	free(w);
}

static struct watched *find(struct process_watch *w, pid_t pid)
{
	uint32_t index = hashmap__find(&w->by_pid, hash_u64(pid), &pid);

	return index == HASHMAP_NONE ? NULL : &w->watched.data[index];
}

static void clear(struct process_watch *w)
{
	hashmap__clear(&w->by_pid);
	w->watched.count = w->unused.count = w->sampled.count = 0;
}

/* The entry of a process, made if there is none; NULL: no memory, then it is not watched for now. */
static struct watched *need(struct process_watch *w, pid_t pid)
{
	struct watched *known = find(w, pid);
	uint32_t slot;

	if (known)
		return known;
	/* it forgets only when things were last looked at, or what ends unseen would stay */
	if (w->watched.count >= WATCHED_MAX && !w->unused.count)
		clear(w);
	if (w->unused.count) {
		slot = w->unused.data[--w->unused.count];
	} else {
		slot = w->watched.count;
		if (vec_reserve(&w->unused, slot + 1) || vec_reserve(&w->sampled, slot + 1) ||
		    vec_push(&w->watched, (struct watched){}))
			return NULL;
	}
	w->watched.data[slot] = (struct watched){.pid = pid};
	if (hashmap__add(&w->by_pid, hash_u64(pid), slot)) {
		w->watched.data[slot].pid = 0;
		w->unused.data[w->unused.count++] = slot;
		return NULL;
	}
	return &w->watched.data[slot];
}

void process_watch__sampled(struct process_watch *w, pid_t pid)
{
	struct watched *entry = need(w, pid);

	/* `sampled` has room for every slot, and a slot that was freed and used again is in it once more */
	if (entry && !entry->samples++)
		(void)vec_push(&w->sampled, (uint32_t)(entry - w->watched.data));
}

void process_watch__exec(struct process_watch *w, pid_t pid)
{
	struct watched *entry = find(w, pid);

	if (entry)
		entry->cgroup_next = 0;
}

void process_watch__forget(struct process_watch *w, pid_t pid)
{
	uint32_t slot = hashmap__remove(&w->by_pid, hash_u64(pid), &pid);

	if (slot == HASHMAP_NONE)
		return;
	w->watched.data[slot].pid = 0;
	w->watched.data[slot].samples = 0;
	w->unused.data[w->unused.count++] = slot; /* it has room for every slot */
}

static bool is_due(const struct process_watch *w, const struct watched *entry, uint64_t time)
{
	return !entry->has_no_memory && (!w->groups_only || time >= entry->cgroup_next);
}

static int look_at(struct process_watch *w, struct watched *entry, uint64_t time,
		   event_push_fn push, void *context)
{
	char path[32];
	uint16_t flags = entry->pid == w->self ? EVENT_RECORDER : 0;
	int told;

	if (!is_due(w, entry, time))
		return 0;
	snprintf(path, sizeof(path), "%d/statm", entry->pid);
	told = process_facts__memory(w->proc_fd, path, entry->pid, flags, time, push, context);
	if (told < 0)
		return told;
	entry->has_no_memory = !told;
	if (!told || time < entry->cgroup_next)
		return 0;
	entry->cgroup_next = time + WATCH_CGROUP_NS;
	snprintf(path, sizeof(path), "%d/cgroup", entry->pid);
	told = process_facts__cgroup(w->proc_fd, path, entry->pid, time, push, context);
	return told < 0 ? told : 0;
}

static int compare_busy(const void *a, const void *b, void *watch)
{
	const struct process_watch *w = watch;
	const struct watched *x = &w->watched.data[*(const uint32_t *)a];
	const struct watched *y = &w->watched.data[*(const uint32_t *)b];

	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static int look_at_sampled(struct process_watch *w, uint64_t time, event_push_fn push,
			   void *context)
{
	unsigned int looks = 0;
	int err = 0;

	if (w->sampled.count)
		qsort_r(w->sampled.data, w->sampled.count, sizeof(*w->sampled.data), compare_busy,
			w);
	for (size_t i = 0; i < w->sampled.count; i++) {
		struct watched *entry = &w->watched.data[w->sampled.data[i]];

		/* samples 0: it has ended, or it was looked at already */
		if (!entry->samples)
			continue;
		entry->samples = 0;
		if (!err && looks < WATCH_MOST && is_due(w, entry, time)) {
			looks++;
			err = look_at(w, entry, time, push, context);
		}
	}
	w->sampled.count = 0;
	return err;
}

/* Whether or not it was sampled. */
static int look_anyway(struct process_watch *w, pid_t pid, uint64_t time, event_push_fn push,
		       void *context)
{
	struct watched *entry = need(w, pid);

	if (!entry)
		return 0;
	entry->samples = 0;
	return look_at(w, entry, time, push, context);
}

int process_watch__look(struct process_watch *w, const pid_t *always, size_t count, uint64_t time,
			event_push_fn push, void *context)
{
	int err = look_anyway(w, w->self, time, push, context);

	for (size_t i = 0; i < count && i < WATCH_MOST && !err; i++)
		err = look_anyway(w, always[i], time, push, context);
	return err ? err : look_at_sampled(w, time, push, context);
}
