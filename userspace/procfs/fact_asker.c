/* SPDX-License-Identifier: BSD-2-Clause */
#include "procfs/fact_asker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sysprof/event.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/hashmap.h"
#include "base/proc_task.h"
#include "base/quota.h"
#include "base/vec.h"
#include "procfs/environment.h"
#include "procfs/fact_reader.h"
#include "procfs/process_facts.h"

#define KNOWN_MAX 32768u
#define S	  1000000000ull

/* How long after it was first asked a process is asked again. */
static const uint64_t looks[] = {0, S, 10 * S, 60 * S};
#define LOOKS (sizeof(looks) / sizeof(looks[0]))

struct known_process {
	pid_t pid;	/* 0: the slot is free */
	bool told;	/* what it cannot hold up */
	uint8_t looks;	/* so many times a reader was asked */
	bool waits;	/* it is in a queue */
	uint64_t first; /* when a reader was first asked */
};

/* Processes whose turn comes at a certain rate. Whoever has ended meanwhile takes no turn. */
struct pid_queue {
	VEC(pid_t) pids; /* from `next` on */
	size_t next;
	const struct quota_limit *limit;
	struct meter turns;
};

struct fact_asker {
	struct fact_asker_options options;
	int proc_fd;
	char names[FACT_NAMES_MAX];
	size_t names_size;
	VEC(struct known_process) known;
	VEC(uint32_t) unused; /* numbers of `known` */
	struct hashmap by_pid;
	struct pid_queue fresh;	  /* of which nothing is told yet */
	struct pid_queue waiting; /* for a reader */
	int err;		  /* of `push`, within an answer */
	struct fact_asker_stats stats;
};

/* A request under way. */
struct asked_facts {
	struct fact_asker *asker;
	pid_t pid;
	uint64_t since;
	char path[]; /* of its program */
};

/* ---- queues ---------------------------------------------------------------------------------- */

/* 0, -ENOBUFS: too many wait, -ENOMEM. */
static int pid_queue__add(struct pid_queue *q, pid_t pid)
{
	if (q->next == q->pids.count)
		q->next = q->pids.count = 0;
	if (q->pids.count >= FACT_WAITING_MAX &&
	    q->next) { /* those whose turn has come make room */
		memmove(q->pids.data, q->pids.data + q->next,
			(q->pids.count - q->next) * sizeof(*q->pids.data));
		q->pids.count -= q->next;
		q->next = 0;
	}
	return q->pids.count >= FACT_WAITING_MAX ? -ENOBUFS : vec_push(&q->pids, pid);
}

/* ---- who is known ---------------------------------------------------------------------------- */

static bool has_pid(const void *owner, uint32_t index, const void *key)
{
	const struct fact_asker *a = owner;

	return a->known.data[index].pid == *(const pid_t *)key;
}

static int add_name(struct fact_asker *a, const char *name)
{
	size_t size = strlen(name) + 1;

	if (!environment_name_is_valid(name) || size > sizeof(a->names) - a->names_size)
		return -EINVAL;
	memcpy(a->names + a->names_size, name, size);
	a->names_size += size;
	return 0;
}

static int add_names(struct fact_asker *a, const struct fact_asker_options *options)
{
	int err = 0;

	for (const char *const *name = environment_names; *name && !err; name++)
		err = add_name(a, *name);
	for (size_t i = 0; i < options->name_count && !err; i++)
		err = add_name(a, options->names[i]);
	return err;
}

int fact_asker__new(const struct fact_asker_options *options, struct fact_asker **asker)
{
	struct fact_asker *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return -ENOMEM;
	a->options = *options;
	a->options.names = NULL;
	a->fresh.limit = &quota_row(QUOTA_FACT_LOOKS)->all;
	a->waiting.limit = &quota_row(QUOTA_FACT_READINGS)->all;
	hashmap__init(&a->by_pid, has_pid, a);
	a->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = a->proc_fd < 0 ? -errno : add_names(a, options);
	if (err) {
		fact_asker__free(a);
		return err;
	}
	*asker = a;
	return 0;
}

void fact_asker__free(struct fact_asker *a)
{
	if (!a)
		return;
	if (a->proc_fd >= 0)
		close(a->proc_fd);
	hashmap__fini(&a->by_pid);
	vec_free(&a->known);
	vec_free(&a->unused);
	vec_free(&a->fresh.pids);
	vec_free(&a->waiting.pids);
	free(a);
}

static struct known_process *find(struct fact_asker *a, pid_t pid)
{
	uint32_t index = hashmap__find(&a->by_pid, hash_u64(pid), &pid);

	return index == HASHMAP_NONE ? NULL : &a->known.data[index];
}

/* Whoever is asked once more answers the same. */
static void forget_all(struct fact_asker *a)
{
	hashmap__clear(&a->by_pid);
	a->known.count = a->unused.count = 0;
	a->fresh.pids.count = a->fresh.next = a->waiting.pids.count = a->waiting.next = 0;
}

/* NULL: no memory. */
static struct known_process *need(struct fact_asker *a, pid_t pid)
{
	struct known_process *known = find(a, pid);
	uint32_t slot;

	if (known)
		return known;
	if (a->known.count >= KNOWN_MAX && !a->unused.count)
		forget_all(a);
	if (a->unused.count) {
		slot = a->unused.data[--a->unused.count];
	} else {
		slot = a->known.count;
		if (vec_reserve(&a->unused, slot + 1) ||
		    vec_push(&a->known, (struct known_process){}))
			return NULL;
	}
	a->known.data[slot] = (struct known_process){.pid = pid};
	if (hashmap__add(&a->by_pid, hash_u64(pid), slot)) {
		a->known.data[slot].pid = 0;
		a->unused.data[a->unused.count++] = slot;
		return NULL;
	}
	return &a->known.data[slot];
}

void fact_asker__forget(struct fact_asker *a, pid_t pid)
{
	uint32_t slot = hashmap__remove(&a->by_pid, hash_u64(pid), &pid);

	if (slot == HASHMAP_NONE)
		return;
	a->known.data[slot].pid = 0;
	a->unused.data[a->unused.count++] = slot; /* it has room for every slot */
}

static void enqueue(struct fact_asker *a, struct pid_queue *queue, struct known_process *known)
{
	int err = pid_queue__add(queue, known->pid);

	known->waits = !err;
	a->stats.dropped += err != 0;
}

void fact_asker__sampled(struct fact_asker *a, pid_t pid, uint64_t time)
{
	struct known_process *known = pid ? need(a, pid) : NULL;

	if (!known || known->waits || known->looks == LOOKS)
		return;
	if (!known->told)
		enqueue(a, &a->fresh, known);
	else if (!known->looks || time >= known->first + looks[known->looks])
		enqueue(a, &a->waiting, known);
}

/* ---- what is told ---------------------------------------------------------------------------- */

static int tell(struct fact_asker *a, pid_t pid, uint64_t since, enum facts_state state,
		const struct fact_text *facts)
{
	union {
		struct facts_event event;
		char bytes[sizeof(struct facts_event) + PROCESS_FACTS_SIZE];
	} e;
	size_t size = event_aligned(sizeof(e.event) + facts->size);

	memset(&e, 0, size);
	e.event = (struct facts_event){
		.header = {.size = (uint32_t)size,
			   .type = EVENT_FACTS,
			   .flags = EVENT_FROM_PROC,
			   .time = monotonic_ns()},
		.pid = (uint32_t)pid,
		.state = (uint8_t)state,
		.since = since,
		.count = facts->count,
		.size = (uint32_t)facts->size,
	};
	memcpy(e.event.text, facts->text, facts->size);
	return a->options.push(a->options.context, &e.event.header);
}

/* A reader_answer_fn. */
static void take_answer(void *context, const struct reader_answer *answer)
{
	_cleanup_free_ struct asked_facts *asked = context;
	struct fact_asker *a = asked->asker;
	char text[PROCESS_FACTS_SIZE];
	struct fact_text facts = {.text = text, .room = sizeof(text), .most = PROCESS_FACTS_MAX};
	enum facts_state state = FACTS_STATE_REFUSED;
	int err;

	fact_text__add(&facts, "exe", "", asked->path, strlen(asked->path));
	if (answer->refusal == READER_ENDED)
		return;
	if (fact_reader__take(answer, &facts)) {
		a->stats.answered++;
		state = FACTS_STATE_WHOLE;
	} else {
		a->stats.refused++;
	}
	err = tell(a, asked->pid, asked->since, state, &facts);
	a->err = a->err ? a->err : err;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int ask_reader(struct fact_asker *a, pid_t pid, uint64_t since, const char *path,
		      bool with_context)
{
	_cleanup_close_ int dir = proc_open_process(a->proc_fd, pid);
	size_t size = strlen(path) + 1;
	struct asked_facts *asked;
	int err;

	if (dir < 0)
		return dir == -EMFILE || dir == -ENFILE || dir == -ENOMEM ? dir : 0;
	asked = malloc(sizeof(*asked) + size);
	if (!asked)
		return -ENOMEM;
	*asked = (struct asked_facts){a, pid, since};
	memcpy(asked->path, path, size);
	err = fact_reader__ask(a->options.readers, a->options.service, pid, dir, a->names,
			       a->names_size, with_context, take_answer, asked);
	if (err)
		free(asked);
	a->stats.asked += !err;
	return err;
}

/*
 * False: a kernel thread has no program, and neither has a process that is gone. A path that is too long for anybody to
 * read is told as "".
 */
static bool read_program(struct fact_asker *a, pid_t pid, char path[PATH_MAX])
{
	char link[32];
	ssize_t length;

	snprintf(link, sizeof(link), "%d/exe", pid);
	length = readlinkat(a->proc_fd, link, path, PATH_MAX - 1);
	if (length < 0 && errno == ENAMETOOLONG)
		length = 0;
	else if (length <= 0)
		return false;
	path[length] = '\0';
	fact_program_path(path);
	return true;
}

static int report_first(struct fact_asker *a, pid_t pid, uint64_t since, const char *path)
{
	char name[32], text[PATH_MAX + 8];
	struct fact_text facts = {.text = text, .room = sizeof(text), .most = 1};
	int told;

	snprintf(name, sizeof(name), "%d/cgroup", pid);
	told = process_facts__cgroup(a->proc_fd, name, pid, since, a->options.push,
				     a->options.context);
	if (told < 0)
		return told;
	fact_text__add(&facts, "exe", "", path, strlen(path));
	return tell(a, pid, since, FACTS_STATE_FIRST, &facts);
}

/* What it cannot hold up; then it waits for a reader. */
static int look_at(struct fact_asker *a, struct known_process *known)
{
	uint64_t since = monotonic_ns();
	char path[PATH_MAX];

	known->told = true;
	if (!read_program(a, known->pid, path)) {
		known->looks = LOOKS;
		return 0;
	}
	enqueue(a, &a->waiting, known);
	return report_first(a, known->pid, since, path);
}

static int ask(struct fact_asker *a, struct known_process *known, uint64_t now)
{
	uint64_t since = monotonic_ns();
	bool first = !known->looks;
	char path[PATH_MAX];

	if (!read_program(a, known->pid, path)) {
		known->looks = LOOKS;
		return 0;
	}
	known->first = first ? now : known->first;
	known->looks++;
	return ask_reader(a, known->pid, since, path, !first);
}

/* The next one whose turn it is; NULL: none. */
static struct known_process *next_of(struct fact_asker *a, struct pid_queue *queue, uint64_t now)
{
	while (queue->next < queue->pids.count &&
	       meter__left(&queue->turns, queue->limit, now) > 0) {
		struct known_process *known = find(a, queue->pids.data[queue->next++]);

		/* it has ended since, or it is there twice */
		if (!known || !known->waits || known->told != (queue == &a->waiting))
			continue;
		known->waits = false;
		meter__take(&queue->turns, queue->limit, 1, now);
		return known;
	}
	return NULL;
}

int fact_asker__run(struct fact_asker *a, uint64_t now)
{
	struct known_process *known;
	int err = a->err;

	a->err = 0;
	while (!err && (known = next_of(a, &a->fresh, now)))
		err = look_at(a, known);
	while (!err && (known = next_of(a, &a->waiting, now)))
		err = ask(a, known, now);
	return err;
}

void fact_asker__stats(const struct fact_asker *a, struct fact_asker_stats *stats)
{
	*stats = a->stats;
}
