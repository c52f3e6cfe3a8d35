/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Converts /proc to events.
 *
 * A process is read through a descriptor of its directory, which never refers to another process:
 * after its end all files below give ESRCH, even if its pid was reused. Processes choose names and
 * paths in /proc: the comm in stat ends at the last ')', and a path in maps may contain any byte
 * but NUL. The kernel escapes only the newline, as "\012", which a path may contain itself;
 * map_files has the right path.
 *
 * Only small files are read here. proc_maps.c reads what takes a process's memory lock.
 */
#include "live/proc/proc_snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/parse.h"
#include "base/proc_task.h"
#include "base/vec.h"
#include "live/proc/proc_maps.h"
#include "live/proc/process_facts.h"

#define SUSPEND_MIN                                                                                \
	5000000ULL /* ns; a smaller difference is caused by reading the clocks, not by a suspend */
#define CPU_TIME_UNKNOWN UINT64_MAX
#define MEANWHILE_MAX                                                                              \
	256 /* records while a process is read: each of its mappings is compared with all */

_Static_assert(PROC_COMM_SIZE == EVENT_COMM_SIZE, "the names of one kernel");

struct proc_snapshot {
	int proc_fd;
	uint64_t tick_ns;
	uint64_t suspended;	     /* see steady_suspended_ns */
	VEC(pid_t) tids;	     /* of the process being read */
	struct proc_readers readers; /* of mappings; without a pool: none */
	struct maps_source *pending; /* what they are reading */
	int err;		     /* of an answer */
	/* the event being made */
	union {
		struct event_header header;
		struct process_event process;
		struct thread_event thread;
		struct thread_cpu_event thread_cpu;
		struct mmap_event mmap;
		struct comm_event comm;
		struct maps_read_event maps_read;
		char bytes[sizeof(struct mmap_event) + EVENT_PATH_MAX + EVENT_ALIGN];
	} event;
};

int proc_snapshot__new(struct proc_snapshot **snapshot)
{
	struct proc_snapshot *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = s->proc_fd < 0 ? -errno : 0;
	s->tick_ns = NS_PER_SECOND / sysconf(_SC_CLK_TCK);
	s->suspended = proc_suspended_ns();
	return finish_new(err, s, proc_snapshot__free, snapshot);
}

void proc_snapshot__free(struct proc_snapshot *s)
{
	if (!s)
		return;
	if (s->proc_fd >= 0)
		close(s->proc_fd);
	vec_free(&s->tids);
	free(s);
}

/* ---- small files ----------------------------------------------------------------------------- */

static uint64_t read_cpu_time(int dir, const char *path)
{
	char text[128];
	ssize_t size = proc_read_small(dir, path, text, sizeof(text));
	uint64_t run_time;

	if (size <= 0 || proc_parse_number(text, size, &run_time))
		return CPU_TIME_UNKNOWN;
	return run_time;
}

/* The same within the life of a snapshot, so that a process keeps its start time to the ns. */
static uint64_t steady_suspended_ns(struct proc_snapshot *s)
{
	uint64_t now = proc_suspended_ns();

	if (now > s->suspended + SUSPEND_MIN || s->suspended > now + SUSPEND_MIN)
		s->suspended = now;
	return s->suspended;
}

/* Does reading continue after this error? Files that vanish or may not be read are skipped. */
static bool is_fatal(int err)
{
	return err == -ENOMEM || err == -EMFILE || err == -ENFILE;
}

/* ---- directories of numbers ------------------------------------------------------------------ */

/* The next name that is a number, or 0 at the end. */
static pid_t next_number(DIR *numbers)
{
	struct dirent *entry;
	uint64_t number;

	while ((entry = readdir(numbers))) {
		if (!parse_u64(entry->d_name, 1, INT_MAX, &number))
			return number;
	}
	return 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void begin_event(struct proc_snapshot *s, enum event_type type, size_t size, uint64_t time)
{
	memset(&s->event, 0, size);
	s->event.header = (struct event_header){
		.size = size,
		.type = type,
		.flags = EVENT_FROM_PROC,
		.time = time,
	};
}

static int push_process(struct proc_snapshot *s, pid_t pid, const struct proc_stat *stat,
			bool is_target, uint64_t time, event_push_fn push, void *context)
{
	struct process_event *e = &s->event.process;

	begin_event(s, EVENT_PROCESS, sizeof(*e) + EVENT_COMM_SIZE, time);
	e->pid = pid;
	e->ppid = stat->ppid;
	e->start_time = proc_start_time(stat->start_ticks, s->tick_ns, steady_suspended_ns(s));
	e->is_target = is_target;
	e->is_kernel = (stat->flags & PROC_FLAG_KTHREAD) != 0;
	proc_stat__comm(stat, e->name);
	return push(context, &e->header);
}

/* With a time of its own: a process has thousands of threads, which may be renamed meanwhile. */
static int push_thread(struct proc_snapshot *s, int dir, pid_t pid, pid_t tid, event_push_fn push,
		       void *context)
{
	uint64_t time = monotonic_ns();
	struct thread_event *e = &s->event.thread;
	struct proc_stat stat;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "task/%d/stat", tid);
	err = proc_read_stat(dir, path, &stat);
	if (err)
		return is_fatal(err) ? err : 0;
	if (proc_stat__is_dead(&stat))
		return 0;
	begin_event(s, EVENT_THREAD, sizeof(*e), time);
	e->pid = pid;
	e->tid = tid;
	e->start_time = proc_start_time(stat.start_ticks, s->tick_ns, steady_suspended_ns(s));
	snprintf(path, sizeof(path), "task/%d/schedstat", tid);
	e->cpu_time = read_cpu_time(dir, path);
	if (e->cpu_time == 0 && stat.cpu_ticks > 0) /* a kernel that does not keep it */
		e->cpu_time = CPU_TIME_UNKNOWN;
	proc_stat__comm(&stat, e->comm);
	return push(context, &e->header);
}

/* All living threads into s->tids. */
static int list_threads(struct proc_snapshot *s, int dir)
{
	_cleanup_closedir_ DIR *tasks = open_names(dir, "task");
	int err = tasks ? 0 : -errno;
	pid_t tid;

	s->tids.count = 0;
	if (err)
		return is_fatal(err) ? err : 0;
	while ((tid = next_number(tasks))) {
		if (vec_push(&s->tids, tid))
			return -ENOMEM;
	}
	return 0;
}

static int push_threads(struct proc_snapshot *s, int dir, pid_t pid, event_push_fn push,
			void *context)
{
	int err = list_threads(s, dir);

	for (size_t i = 0; i < s->tids.count && !err; i++)
		err = push_thread(s, dir, pid, s->tids.data[i], push, context);
	return err;
}

/* ---- mappings -------------------------------------------------------------------------------- */

/* What a process has mapped while its mappings were being read. */
struct mapped_meanwhile {
	uint64_t start, end, time;
};

/* The process whose mappings are being read. */
struct maps_source {
	struct maps_source *next; /* of those that readers read */
	struct proc_snapshot *snapshot;
	pid_t pid, tid;
	uint64_t time;
	event_push_fn push;
	void *context;
	/* the last MEANWHILE_MAX, each in the place of the oldest */
	VEC(struct mapped_meanwhile) meanwhile;
	size_t oldest;
	uint64_t forgotten;		/* the time of the last one without a place; 0: none */
	uint64_t execed;		/* of the last execve since the request; 0: none */
	bool left_out;			/* something that is not in a record of the kernel either */
	struct proc_maps_result result; /* of the reading, with its times */
};

/*
 * Was something mapped there before the reading ended? Then the record says since when that has been
 * there, and what was read may be it: it was not there at the beginning.
 */
static bool is_newer(struct maps_source *source, const struct proc_mapping *mapping)
{
	const struct proc_maps_result *result = &source->result;

	if (source->forgotten > result->began)
		return source->left_out = true;
	for (size_t i = 0; i < source->meanwhile.count; i++) {
		const struct mapped_meanwhile *later = &source->meanwhile.data[i];

		if (later->time <= result->began || later->time > result->ended ||
		    later->start >= mapping->end || mapping->start >= later->end)
			continue;
		source->left_out |= mapping->start < later->start || mapping->end > later->end;
		return true;
	}
	return false;
}

/* A maps_line_fn. */
static int push_mapping(void *context, const struct proc_mapping *mapping)
{
	struct maps_source *source = context;
	struct mmap_event *e = &source->snapshot->event.mmap;
	size_t path_size = mapping->path_size, size;

	if (is_newer(source, mapping))
		return 0;
	if (path_size > EVENT_PATH_MAX - 1)
		path_size = EVENT_PATH_MAX - 1;
	size = offsetof(struct mmap_event, path) + path_size + 1;
	begin_event(source->snapshot, EVENT_MMAP, event_aligned(size), source->result.began);
	e->pid = source->pid;
	e->tid = source->tid;
	e->start = mapping->start;
	e->length = mapping->end - mapping->start;
	e->page_offset = mapping->offset;
	e->protection = mapping->protection;
	e->map_flags = mapping->map_flags;
	e->major = mapping->major;
	e->minor = mapping->minor;
	e->inode = mapping->inode;
	e->file_state = FILE_STATE_UNOPENED;
	memcpy(e->path, mapping->path, path_size);
	return source->push(source->context, &e->header);
}

static int push_maps_read(const struct maps_source *source)
{
	struct maps_read_event *e = &source->snapshot->event.maps_read;

	begin_event(source->snapshot, EVENT_MAPS_READ, sizeof(*e), source->result.ended);
	e->pid = source->pid;
	return source->push(source->context, &e->header);
}

static int push_program_name(const struct maps_source *source)
{
	const char *name = source->result.name;
	struct comm_event *e = &source->snapshot->event.comm;

	if (!*name || source->execed > source->result.began)
		return 0;
	begin_event(source->snapshot, EVENT_COMM, sizeof(*e), source->result.began);
	e->pid = e->tid = source->pid;
	snprintf(e->comm, sizeof(e->comm), "%s", name);
	return source->push(source->context, &e->header);
}

/* What follows the mappings. */
static int finish_maps(const struct maps_source *source)
{
	int err = push_program_name(source);

	return err || !source->result.lines ? err : push_maps_read(source);
}

static int push_maps_in_place(struct maps_source *source, int dir)
{
	int err = proc_maps__read(dir, source->pid, &source->tid, push_mapping, source,
				  &source->result);

	if (err)
		return is_fatal(err) || source->result.sink_failed ? err : 0;
	return finish_maps(source);
}

/* ---- mappings that a reader reads ------------------------------------------------------------ */

static void unlink_source(struct maps_source *source)
{
	struct maps_source **link = &source->snapshot->pending;

	while (*link != source)
		link = &(*link)->next;
	*link = source->next;
}

static void maps_source__free(struct maps_source *source)
{
	vec_free(&source->meanwhile);
	free(source);
}

/* A helper_answer_fn. Mappings that cannot be read cause no events. */
static void take_maps(void *context, const struct helper_answer *answer)
{
	struct maps_source *source = context;
	struct proc_snapshot *s = source->snapshot;
	/* without an answer perhaps at the end, when there are no more records */
	int err = answer->refusal ? 0 : s->readers.catch_up(s->readers.context);
	bool is_final = err != 0;

	unlink_source(source);
	if (!err) {
		err = proc_maps__take(answer, source->time, &source->tid, push_mapping, source,
				      &source->result)
			      ?: finish_maps(source);
		is_final = is_fatal(err) || source->result.sink_failed;
	}
	if (err && is_final && !s->err)
		s->err = err;
	if (source->left_out || source->execed > source->result.began)
		s->readers.read_again(s->readers.context, (uint32_t)source->pid);
	maps_source__free(source);
}

static void note_mapped(struct maps_source *source, const struct mapped_meanwhile *mapped)
{
	struct mapped_meanwhile *place;

	if (source->meanwhile.count < MEANWHILE_MAX && !vec_push(&source->meanwhile, *mapped))
		return;
	if (source->meanwhile.count < MEANWHILE_MAX) { /* no memory */
		source->forgotten = max_u64(source->forgotten, mapped->time);
		return;
	}
	place = &source->meanwhile.data[source->oldest++ % MEANWHILE_MAX];
	source->forgotten = max_u64(source->forgotten, place->time);
	*place = *mapped;
}

void proc_snapshot__mapped(struct proc_snapshot *s, const struct mmap_event *record)
{
	const struct mapped_meanwhile mapped = {.start = record->start,
						.end = record->start + record->length,
						.time = record->header.time};

	for (struct maps_source *source = s->pending; source; source = source->next)
		if ((uint32_t)source->pid == record->pid)
			note_mapped(source, &mapped);
}

void proc_snapshot__execed(struct proc_snapshot *s, const struct comm_event *record)
{
	for (struct maps_source *source = s->pending; source; source = source->next)
		if ((uint32_t)source->pid == record->pid)
			source->execed = max_u64(source->execed, record->header.time);
}

static int request_maps(const struct maps_source *source, int dir)
{
	struct proc_snapshot *s = source->snapshot;
	struct maps_source *pending = malloc(sizeof(*pending));
	int err;

	if (!pending)
		return -ENOMEM;
	*pending = *source;
	pending->next = s->pending;
	s->pending = pending;
	err = proc_maps__request(s->readers.pool, s->readers.service, source->pid, dir, take_maps,
				 pending);
	if (!err)
		return 0;
	s->pending = pending->next;
	free(pending);
	return err == -ENOMEM ? err : 0;
}

uint64_t proc_snapshot__pending_since(const struct proc_snapshot *s)
{
	uint64_t since = UINT64_MAX;

	for (const struct maps_source *pending = s->pending; pending; pending = pending->next)
		since = min_u64(since, pending->time);
	return since;
}

int proc_snapshot__error(struct proc_snapshot *s)
{
	int err = s->err;

	s->err = 0;
	return err;
}

void proc_snapshot__use_readers(struct proc_snapshot *s, const struct proc_readers *readers)
{
	s->readers = *readers;
}

/* ---- processes ------------------------------------------------------------------------------- */

int proc_snapshot__process(struct proc_snapshot *s, pid_t pid, bool is_target, event_push_fn push,
			   void *context)
{
	uint64_t time = monotonic_ns();
	_cleanup_close_ int dir = proc_open_process(s->proc_fd, pid);
	struct maps_source source = {.snapshot = s,
				     .pid = pid,
				     .tid = pid,
				     .time = time,
				     .push = push,
				     .context = context};
	struct proc_stat stat;
	int err;

	if (dir < 0)
		return is_fatal(dir) ? dir : 0;
	err = proc_read_stat(dir, "stat", &stat);
	if (err)
		return is_fatal(err) ? err : 0;
	if (proc_stat__is_dead(&stat) && stat.threads <= 1)
		return 0; /* a zombie */
	err = push_process(s, pid, &stat, is_target, time, push, context)
		      ?: process_facts__cgroup(dir, "cgroup", pid, time, push, context);
	if (err >= 0)
		err = push_threads(s, dir, pid, push, context);
	if (err || (stat.flags & PROC_FLAG_KTHREAD))
		return err;
	return s->readers.pool ? request_maps(&source, dir) : push_maps_in_place(&source, dir);
}

int proc_snapshot__all(struct proc_snapshot *s, bool is_target, event_push_fn push, void *context)
{
	_cleanup_closedir_ DIR *processes = open_names(s->proc_fd, ".");
	int err = processes ? 0 : -errno;
	pid_t pid;

	while (!err && (pid = next_number(processes)))
		err = proc_snapshot__process(s, pid, is_target, push, context);
	return err;
}

int proc_snapshot__thread_cpu(struct proc_snapshot *s, pid_t pid, event_push_fn push, void *context)
{
	_cleanup_close_ int dir = proc_open_process(s->proc_fd, pid);
	struct thread_cpu_event *e = &s->event.thread_cpu;
	int err;

	if (dir < 0)
		return is_fatal(dir) ? dir : 0;
	err = list_threads(s, dir);
	for (size_t i = 0; i < s->tids.count && !err; i++) {
		char path[64];

		begin_event(s, EVENT_THREAD_CPU, sizeof(*e), monotonic_ns());
		e->tgid = pid;
		e->tid = s->tids.data[i];
		snprintf(path, sizeof(path), "task/%d/schedstat", s->tids.data[i]);
		e->cpu_time = read_cpu_time(dir, path);
		/* 0: also a kernel that does not account for it; nothing new either way */
		if (e->cpu_time != CPU_TIME_UNKNOWN && e->cpu_time != 0)
			err = push(context, &e->header);
	}
	return err;
}

int proc_snapshot__thread_cpu_all(struct proc_snapshot *s, event_push_fn push, void *context)
{
	_cleanup_closedir_ DIR *processes = open_names(s->proc_fd, ".");
	int err = processes ? 0 : -errno;
	pid_t pid;

	while (!err && (pid = next_number(processes)))
		err = proc_snapshot__thread_cpu(s, pid, push, context);
	return err;
}

/* ---- families -------------------------------------------------------------------------------- */

struct kinship {
	pid_t parent, pid;
	bool taken;
};

DEFINE_ORDER(compare_parents, struct kinship, ASCENDING(parent) ?: ASCENDING(pid));

typedef VEC(struct kinship) kinships;
typedef VEC(pid_t) pids;

/* Every process and its parent, by parent. */
static int list_kinships(struct proc_snapshot *s, kinships *all)
{
	_cleanup_closedir_ DIR *processes = open_names(s->proc_fd, ".");
	int err = processes ? 0 : -errno;
	pid_t pid;

	if (err)
		return err;
	while ((pid = next_number(processes))) {
		struct proc_stat stat;
		char path[32];

		snprintf(path, sizeof(path), "%d/stat", pid);
		err = proc_read_stat(s->proc_fd, path, &stat);
		if (is_fatal(err) ||
		    (!err && vec_push(all, (struct kinship){stat.ppid, pid, false})))
			return err ? err : -ENOMEM;
	}
	if (all->count > 0)
		qsort(all->data, all->count, sizeof(*all->data), compare_parents);
	return 0;
}

/* Number of the first child of `parent`, or where it would be. */
static size_t first_child(const kinships *all, pid_t parent)
{
	return partition_point(all->data, all->count, k, k->parent < parent);
}

static bool is_among(const pid_t *list, size_t count, pid_t pid)
{
	for (size_t i = 0; i < count; i++) {
		if (list[i] == pid)
			return true;
	}
	return false;
}

/* The children of `parent` that are neither roots nor found before. */
static int add_children(kinships *all, pid_t parent, const pid_t *roots, size_t root_count,
			pids *found)
{
	for (size_t i = first_child(all, parent); i < all->count && all->data[i].parent == parent;
	     i++) {
		struct kinship *child = &all->data[i];

		if (child->taken || is_among(roots, root_count, child->pid))
			continue;
		child->taken = true;
		if (vec_push(found, child->pid))
			return -ENOMEM;
	}
	return 0;
}

int proc_snapshot__descendants(struct proc_snapshot *s, const pid_t *roots, size_t root_count,
			       pid_t **list, size_t *count)
{
	kinships all = {};
	pids found = {};
	int err = list_kinships(s, &all);

	for (size_t i = 0; i < root_count && !err; i++)
		err = add_children(&all, roots[i], roots, root_count, &found);
	for (size_t i = 0; i < found.count && !err; i++)
		err = add_children(&all, found.data[i], roots, root_count, &found);
	vec_free(&all);
	if (err) {
		vec_free(&found);
		return err;
	}
	*list = found.data;
	*count = found.count;
	return 0;
}
