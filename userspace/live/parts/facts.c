/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/parts/facts.h"

#include <sysprof/event.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/proc_task.h"
#include "base/vec.h"
#include "live/parts/memory.h"
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
	struct meter *turns;
};

struct facts {
	struct facts_options options;
	int proc_fd;
	struct facts_queue fresh;   /* processes without a report */
	struct facts_queue waiting; /* processes that wait for a reader, for the first time */
	struct facts_queue again; /* … not for the first time: they have what the others leave */
	struct meter looks, readings;
	bool stopped;
	int err; /* of `push`, within an answer */
};

/* A request under way. */
struct facts_request {
	struct facts *facts;
	struct task_id task;
	struct fact_reading reading;
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

/* Is its next request due? */
static bool is_due(const struct task_program *program, uint64_t now)
{
	return program->facts_looks < LOOKS &&
	       (!program->facts_looks || now >= program->facts_first + looks[program->facts_looks]);
}

static int facts__sampled(void *facts, struct task *task, const struct sample_event *sample)
{
	struct facts *f = facts;
	const struct task_program *program = &task->slots.program;

	if (program->facts_waits)
		return 0;
	if (!program->facts_reported)
		enqueue(&f->fresh, task);
	else if (is_due(program, sample->header.time))
		enqueue(program->facts_looks ? &f->again : &f->waiting, task);
	return 0;
}

/* ---- reports --------------------------------------------------------------------------------- */

static int report(struct facts *f, pid_t pid, uint64_t since, enum facts_state state,
		  const struct fact_text *facts)
{
	return process_facts__push(pid, since, state, facts, f->options.push, f->options.context);
}

/* A helper_answer_fn. */
static void take_answer(void *context, const struct helper_answer *answer)
{
	_cleanup_free_ struct facts_request *request = context;
	struct facts *f = request->facts;
	char text[PROCESS_FACTS_SIZE];
	struct fact_text facts = {.text = text, .room = sizeof(text), .most = PROCESS_FACTS_MAX};
	enum facts_state state = FACTS_STATE_REFUSED;
	struct task *task;
	int err;

	if (answer->refusal == HELPER_ENDED)
		return;
	if (fact_reading__take(&request->reading, answer, &facts)) {
		state = FACTS_STATE_WHOLE;
		task = tasks__get(f->options.tasks, request->task);
		if (task)
			task->slots.program.facts_answered = true;
		outside_books__add(f->options.books,
				   outside_books__user_of(f->options.books, request->task.pid),
				   OUTSIDE_FACTS, OUTSIDE_BY_ITSELF, facts.left);
	}
	err = report(f, request->task.pid, request->reading.since, state, &facts);
	f->err = f->err ? f->err : err;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The directory of a process that lives and has a program, which is read; -ESRCH: of no such. */
static int open_process(const struct facts *f, struct task *task, struct fact_reading *reading)
{
	_cleanup_close_ int dir = proc_open_process(f->proc_fd, task->id.pid);

	if (dir == -EMFILE || dir == -ENFILE || dir == -ENOMEM)
		return dir;
	if (dir >= 0 && fact_reading__begin(reading, f->options.readers, dir, task->id.pid))
		return steal_fd(dir);
	task->slots.program.facts_looks = LOOKS;
	return -ESRCH;
}

/* Reads the facts that the process cannot block, and queues it for a reader. */
static int read_at_once(struct facts *f, struct task *task)
{
	struct task_program *program = &task->slots.program;
	char text[PATH_MAX + USER_NAME_SIZE + 16];
	struct fact_text facts = {.text = text, .room = sizeof(text), .most = 2};
	struct fact_reading reading;
	_cleanup_close_ int dir = open_process(f, task, &reading);
	int pushed;

	program->facts_reported = true;
	if (dir < 0)
		return dir == -ESRCH ? 0 : dir;
	if (program->facts_looks < LOOKS)
		enqueue(&f->waiting, task);
	pushed = process_facts__cgroup(dir, "cgroup", task->id.pid, reading.since, f->options.push,
				       f->options.context);
	if (pushed < 0)
		return pushed;
	if (pushed)
		program->cgroup_next = reading.since + WATCH_CGROUP_NS;
	fact_reading__add(&reading, &facts);
	return report(f, task->id.pid, reading.since, FACTS_STATE_FIRST, &facts);
}

/* Published memory may not answer, so it is read only after the other facts. */
static int request_facts(struct facts *f, struct task *task, uint64_t now)
{
	struct task_program *program = &task->slots.program;
	_cleanup_free_ struct facts_request *request = malloc(sizeof(*request));
	_cleanup_close_ int dir = -1;
	int err;

	if (program->facts_looks >= LOOKS)
		return 0;
	if (!request)
		return -ENOMEM;
	dir = open_process(f, task, &request->reading);
	if (dir < 0)
		return dir == -ESRCH ? 0 : dir;
	if (!program->facts_looks++)
		program->facts_first = now;
	request->facts = f;
	request->task = task->id;
	err = fact_readers__request(f->options.readers, task__owner(task, request->reading.since),
				    dir, program->facts_answered ? FACT_CONTEXT : 0, take_answer,
				    request);
	if (!err)
		request = NULL;
	return err;
}

/* The next process to get a turn; NULL: none. */
static struct task *next_of(struct facts *f, struct facts_queue *queue, uint64_t now)
{
	while (queue->next < queue->tasks.count &&
	       meter__left(queue->turns, queue->limit, now) > 0) {
		struct task *task = tasks__get(f->options.tasks, queue->tasks.data[queue->next++]);

		if (!task)
			continue;
		task->slots.program.facts_waits = false;
		meter__take(queue->turns, queue->limit, 1, now);
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
	while (!err && !f->stopped &&
	       ((task = next_of(f, &f->waiting, now)) || (task = next_of(f, &f->again, now))))
		err = request_facts(f, task, now);
	return err;
}

static void facts__stop(void *facts)
{
	struct facts *f = facts;

	f->stopped = true;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void facts__free(void *facts)
{
	struct facts *f = facts;

	if (f->proc_fd >= 0)
		close(f->proc_fd);
	vec_free(&f->fresh.tasks);
	vec_free(&f->waiting.tasks);
	vec_free(&f->again.tasks);
	free(f);
}

int facts_part__new(const struct facts_options *options, struct live_part *part)
{
	struct facts *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->options = *options;
	f->fresh = (struct facts_queue){.limit = &quota_row(QUOTA_FACT_LOOKS)->all,
					.turns = &f->looks};
	f->waiting = f->again = (struct facts_queue){.limit = &quota_row(QUOTA_FACT_READINGS)->all,
						     .turns = &f->readings};
	f->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->proc_fd < 0) {
		err = -errno;
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
