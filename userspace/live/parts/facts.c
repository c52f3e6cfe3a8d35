/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/parts/facts.h"

#include <sysprof/event.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/proc_task.h"
#include "base/suffix.h"
#include "base/vec.h"
#include "live/parts/memory.h"
#include "live/proc/environment.h"
#include "live/proc/fact_reader.h"
#include "live/proc/process_facts.h"
#include "tenants/quota.h"

#define S 1000000000ull

/* Times of the requests about a process, after the first one. */
static const uint64_t looks[] = {0, S, 10 * S, 60 * S};
#define LOOKS (sizeof(looks) / sizeof(looks[0]))

/* Processes that get their turns at a limited rate; ended programs take none. */
struct facts_queue {
	VEC(struct task_id) tasks; /* from `next` on */
	size_t next;
	const struct quota_limit *limit;
	struct meter turns;
};

struct facts {
	struct facts_options options;
	int proc_fd;
	char names[FACT_NAMES_MAX];
	size_t names_size;
	struct facts_queue fresh;   /* processes without a report */
	struct facts_queue waiting; /* processes that wait for a reader */
	bool stopped;
	int err; /* of `push`, within an answer */
};

/* A request under way. */
struct facts_request {
	struct facts *facts;
	struct task_id task;
	uint64_t since;
	char path[]; /* of its program */
};

/* ---- queues ---------------------------------------------------------------------------------- */

/* 0, -ENOBUFS: too many wait, -ENOMEM. */
static int facts_queue__add(struct facts_queue *q, struct task_id id)
{
	/* drop those that had their turn */
	if (q->next == q->tasks.count || q->tasks.count >= FACT_WAITING_MAX) {
		vec_drop(&q->tasks, q->next);
		q->next = 0;
	}
	return q->tasks.count >= FACT_WAITING_MAX ? -ENOBUFS : vec_push(&q->tasks, id);
}

static void enqueue(struct facts_queue *queue, struct task *task)
{
	task->slots.program.facts_waits = !facts_queue__add(queue, task->id);
}

static int facts__sampled(void *facts, struct task *task, const struct sample_event *sample)
{
	struct facts *f = facts;
	const struct task_program *program = &task->slots.program;

	if (program->facts_waits || program->facts_looks == LOOKS)
		return 0;
	if (!program->facts_reported)
		enqueue(&f->fresh, task);
	else if (!program->facts_looks ||
		 sample->header.time >= program->facts_first + looks[program->facts_looks])
		enqueue(&f->waiting, task);
	return 0;
}

/* ---- reports --------------------------------------------------------------------------------- */

static int report(struct facts *f, pid_t pid, uint64_t since, enum facts_state state,
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
	return f->options.push(f->options.context, &e.event.header);
}

/* A helper_answer_fn. */
static void take_answer(void *context, const struct helper_answer *answer)
{
	_cleanup_free_ struct facts_request *request = context;
	struct facts *f = request->facts;
	char text[PROCESS_FACTS_SIZE];
	struct fact_text facts = {.text = text, .room = sizeof(text), .most = PROCESS_FACTS_MAX};
	enum facts_state state = FACTS_STATE_REFUSED;
	bool is_loader = is_loader_path(request->path);
	struct task *task;
	int err;

	if (!is_loader)
		fact_text__add(&facts, "exe", "", request->path, strlen(request->path));
	if (answer->refusal == HELPER_ENDED)
		return;
	if (fact_reader__take(answer, &facts)) {
		state = FACTS_STATE_WHOLE;
		task = tasks__get(f->options.tasks, request->task);
		if (task)
			task->slots.program.facts_answered = true;
		outside_books__add(f->options.books,
				   outside_books__user_of(f->options.books, request->task.pid),
				   OUTSIDE_FACTS, OUTSIDE_BY_ITSELF, facts.left);
	}
	if (is_loader) /* unless the answer has the program that it loaded */
		fact_text__add(&facts, "exe", "", request->path, strlen(request->path));
	err = report(f, request->task.pid, request->since, state, &facts);
	f->err = f->err ? f->err : err;
}

/* ---- requests -------------------------------------------------------------------------------- */

static int request_reader(struct facts *f, struct task *task, uint64_t since, const char *path,
			  bool with_context)
{
	pid_t pid = task->id.pid;
	_cleanup_close_ int dir = proc_open_process(f->proc_fd, pid);
	size_t size = strlen(path) + 1;
	struct facts_request *request;
	int err;

	if (dir < 0)
		return dir == -EMFILE || dir == -ENFILE || dir == -ENOMEM ? dir : 0;
	request = malloc(sizeof(*request) + size);
	if (!request)
		return -ENOMEM;
	*request = (struct facts_request){f, task->id, since};
	memcpy(request->path, path, size);
	err = fact_reader__request(f->options.readers, f->options.service, task__owner(task, since),
				   dir, f->names, f->names_size, with_context, take_answer,
				   request);
	if (err)
		free(request);
	return err;
}

/* False: a kernel thread, or the process is gone. A path that is too long is reported as "". */
static bool read_program(struct facts *f, pid_t pid, char path[PATH_MAX])
{
	char link[32];
	ssize_t length;

	snprintf(link, sizeof(link), "%d/exe", pid);
	length = readlinkat(f->proc_fd, link, path, PATH_MAX - 1);
	if (length < 0 && errno == ENAMETOOLONG)
		length = 0;
	else if (length <= 0)
		return false;
	path[length] = '\0';
	path[mapping_path_length(path)] = '\0';
	return true;
}

static int report_first(struct facts *f, struct task *task, uint64_t since, const char *path)
{
	char name[32], text[PATH_MAX + 8];
	struct fact_text facts = {.text = text, .room = sizeof(text), .most = 1};
	pid_t pid = task->id.pid;
	int pushed;

	snprintf(name, sizeof(name), "%d/cgroup", pid);
	pushed = process_facts__cgroup(f->proc_fd, name, pid, since, f->options.push,
				       f->options.context);
	if (pushed < 0)
		return pushed;
	if (pushed)
		task->slots.program.cgroup_next = since + WATCH_CGROUP_NS;
	if (!is_loader_path(path)) /* the program it loads may be read later */
		fact_text__add(&facts, "exe", "", path, strlen(path));
	return report(f, pid, since, FACTS_STATE_FIRST, &facts);
}

/* Reads the facts that the process cannot block, and queues it for a reader. */
static int read_at_once(struct facts *f, struct task *task)
{
	uint64_t since = monotonic_ns();
	char path[PATH_MAX];

	task->slots.program.facts_reported = true;
	if (!read_program(f, task->id.pid, path)) {
		task->slots.program.facts_looks = LOOKS;
		return 0;
	}
	enqueue(&f->waiting, task);
	return report_first(f, task, since, path);
}

static int request_facts(struct facts *f, struct task *task, uint64_t now)
{
	struct task_program *program = &task->slots.program;
	uint64_t since = monotonic_ns();
	char path[PATH_MAX];

	if (!read_program(f, task->id.pid, path)) {
		program->facts_looks = LOOKS;
		return 0;
	}
	if (!program->facts_looks)
		program->facts_first = now;
	program->facts_looks++;
	/* published memory may not answer, so the other facts are read first */
	return request_reader(f, task, since, path, program->facts_answered);
}

/* The next process to get a turn; NULL: none. */
static struct task *next_of(struct facts *f, struct facts_queue *queue, uint64_t now)
{
	while (queue->next < queue->tasks.count &&
	       meter__left(&queue->turns, queue->limit, now) > 0) {
		struct task *task = tasks__get(f->options.tasks, queue->tasks.data[queue->next++]);

		if (!task)
			continue;
		task->slots.program.facts_waits = false;
		meter__take(&queue->turns, queue->limit, 1, now);
		return task;
	}
	return NULL;
}

static int facts__tick(void *facts, uint64_t now)
{
	struct facts *f = facts;
	struct task *task;
	int err = f->err;

	f->err = 0;
	while (!err && !f->stopped && (task = next_of(f, &f->fresh, now)))
		err = read_at_once(f, task);
	while (!err && !f->stopped && (task = next_of(f, &f->waiting, now)))
		err = request_facts(f, task, now);
	return err;
}

static void facts__stop(void *facts)
{
	struct facts *f = facts;

	f->stopped = true;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int add_name(struct facts *f, const char *name)
{
	size_t size = strlen(name) + 1;

	if (!environment_name_is_valid(name) || size > sizeof(f->names) - f->names_size)
		return -EINVAL;
	memcpy(f->names + f->names_size, name, size);
	f->names_size += size;
	return 0;
}

static int add_names(struct facts *f, const struct facts_options *options)
{
	int err = 0;

	for (const char *const *name = environment_names; *name && !err; name++)
		err = add_name(f, *name);
	for (size_t i = 0; i < options->name_count && !err; i++)
		err = add_name(f, options->names[i]);
	return err;
}

static void facts__free(void *facts)
{
	struct facts *f = facts;

	if (f->proc_fd >= 0)
		close(f->proc_fd);
	vec_free(&f->fresh.tasks);
	vec_free(&f->waiting.tasks);
	free(f);
}

int facts_part__new(const struct facts_options *options, struct live_part *part)
{
	struct facts *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->options = *options;
	f->options.names = NULL;
	f->fresh.limit = &quota_row(QUOTA_FACT_LOOKS)->all;
	f->waiting.limit = &quota_row(QUOTA_FACT_READINGS)->all;
	f->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = f->proc_fd < 0 ? -errno : add_names(f, options);
	if (err) {
		facts__free(f);
		return err;
	}
	*part = (struct live_part){.object = f,
				   .sampled = facts__sampled,
				   .tick = facts__tick,
				   .stop = facts__stop,
				   .free = facts__free};
	return 0;
}
