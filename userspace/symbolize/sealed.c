/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parent of sealed children: starts them, listens to them, ends them.
 *
 * A task is a job with what became of it. It is tried at most twice: with everything, and, if the
 * child did not live to its report, with symbol tables alone. Children start in the order of their
 * files' sizes, so that the longest is not the last; answers are kept until all jobs before have
 * been delivered, so results come in the order of the jobs.
 *
 * One poll() waits for everything: children's answers, their requests for files, their deadlines. A
 * child whose socket ends is done. It is killed and reaped: if a whole report has come it has
 * succeeded, else its status has the reason.
 *
 * A child whose file system does not answer neither makes progress nor ends. After some seconds
 * without progress it is killed, and abandoned if it outlives SIGKILL by a second.
 */
#include "symbolize/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/proc_task.h"
#include "symbolize/sealed_child.h"
#include "symbolize/sealed_files.h"
#include "symbolize/sealed_protocol.h"
#include "symbolize/symbol_index.h"
#include "tenants/helper_process.h"
#include "tenants/quota.h"

#define CHILDREN_MAX	 64
#define POLL_MS		 100
#define MESSAGES_AT_ONCE 32
#define MEMORY_DEFAULT	 (1ull << 30) /* where /proc does not say what there is */
#define CPU_SECONDS_BASE 30
#define CPU_SECONDS_MAX	 600
#define BYTES_PER_SECOND (8ull << 20) /* of a file, at the least */
#define WALL_PER_CPU	 4	      /* other processes use the CPU as well */
#define FORK_TRIES	 20
#define ROOT		 0
#define SECOND_NS	 1000000000ull
#define LARGE_WAIT_NS	 (3 * SECOND_NS) /* that a large file waits for others' children */

enum task_state { TASK_WAITING, TASK_RUNNING, TASK_DONE };

/* Why a child is ended: its report is complete, its time is over, it makes no progress. */
enum child_end { CHILD_ENDED, CHILD_TOO_LATE, CHILD_STUCK };

struct task {
	struct sealed_job *job;
	uint64_t size; /* of its files */
	enum task_state state;
	bool symbols_only;	    /* the second try */
	enum dwarf_state first_try; /* why there was a second one */
	struct sealed_answers answers;
};

struct child {
	struct task *task;
	bool is_large; /* and counted */
	struct helper_process process;
	int listener; /* -1: none, or not yet */
	bool greeted;
	uint64_t deadline;
	unsigned int seconds; /* of CPU that it may take */
};

struct run {
	struct task *tasks;  /* in the order of the jobs */
	struct task **order; /* … of their size */
	size_t count, delivered;
	size_t total; /* addresses */
	struct child children[CHILDREN_MAX];
	size_t child_count;
	unsigned int parallel, fork_failures;
	uint64_t memory; /* bytes a child; 0: not known yet */
	const struct sealed_work *work;
	struct quota *cpu;    /* of all children; what a running one may take counts as used */
	uint64_t began;	      /* the run; nothing is given again during it */
	struct quota *large;  /* of children of large files, and of builders of tables */
	uint64_t large_since; /* when the last of these began, or the run */
};

/* ---- how much, how many ---------------------------------------------------------------------- */

static uint64_t file_size(int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

static uint64_t memory_available(void)
{
	uint64_t kilobytes;

	return proc_status_number(AT_FDCWD, "/proc/meminfo", "\nMemAvailable:", &kilobytes)
		       ? 4 * MEMORY_DEFAULT
		       : kilobytes << 10;
}

/* CPUs that no other process uses right now; at least one. */
static unsigned int idle_cpus(size_t children)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/loadavg", "re");
	unsigned int running = 1, cpus = 1, busy;
	cpu_set_t set;

	if (!sched_getaffinity(0, sizeof(set), &set))
		cpus = CPU_COUNT(&set);
	if (!f || fscanf(f, "%*f %*f %*f %u/", &running) != 1)
		running = 1;
	busy = running > 1 + children ? running - 1 - children : 0;
	return cpus > busy ? cpus - busy : 1;
}

static size_t children_wanted(const struct run *r)
{
	size_t wanted = r->parallel ? r->parallel : idle_cpus(r->child_count);

	return min_u64(wanted, CHILDREN_MAX);
}

static unsigned int cpu_seconds(const struct run *r, const struct task *task)
{
	uint64_t seconds = CPU_SECONDS_BASE + task->size / BYTES_PER_SECOND;

	if (r->work->cpu_seconds)
		return r->work->cpu_seconds;
	return min_u64(seconds, CPU_SECONDS_MAX);
}

/* ---- children -------------------------------------------------------------------------------- */

static const char *name_of(const struct task *task)
{
	return task->job->path ? task->job->path : "[a module without a name]";
}

static void give_up_on(struct task *task)
{
	sealed_answers__fini(&task->answers);
	sealed_answers__init(&task->answers, task->job->count);
	task->state = TASK_DONE;
	task->job->report = (struct module_report){.state = SYMBOL_STATE_DAMAGED};
}

static void note_left(const struct task *task, enum outside_reason reason)
{
	outside_books__add(task->job->books, task->job->user, OUTSIDE_SYMBOLS, reason, 1);
}

/* Parts of the module that a limit left out. */
static void note_parts(const struct task *task)
{
	const struct sealed_job *job = task->job;

	for (unsigned int thing = 0; thing < OUTSIDE_THING_COUNT; thing++)
		if (job->report.left & 1u << thing)
			outside_books__add(job->books, job->user, thing, OUTSIDE_BY_ITSELF, 1);
}

/* The quota of the user's files is used up. */
static void leave(struct task *task, bool by_all)
{
	log_debug(LOG_SYMBOLS, "%s: left: its user's files take too much", name_of(task));
	note_left(task, by_all ? OUTSIDE_BY_ALL : OUTSIDE_BY_USER);
	give_up_on(task);
	task->first_try = DWARF_STATE_NONE;
	task->job->report.state = SYMBOL_STATE_LEFT;
}

static uint64_t cpu_time_of(const struct rusage *usage)
{
	return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * SECOND_NS +
	       (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000ull;
}

/* Returns what was set aside, except for `used` ns. */
static void give_back(struct run *r, uint32_t user, unsigned int seconds, uint64_t used)
{
	if (user == ROOT)
		return;
	quota__give(r->cpu, user, seconds * SECOND_NS);
	quota__take(r->cpu, user, used, r->began);
}

static bool is_large(const struct run *r, const struct task *task)
{
	return r->large->shared && task->size >= QUOTA_LARGE_FILE;
}

/* Is there another large one? With few CPUs it takes long, and builders can follow each other. */
static bool must_wait(const struct run *r, const struct task *task)
{
	return is_large(r, task) && quota__left(r->large, QUOTA_NOBODY, 0) <= 0 &&
	       monotonic_ns() < r->large_since + LARGE_WAIT_NS;
}

static void count_large(struct run *r, struct child *child)
{
	child->is_large = is_large(r, child->task);
	if (!child->is_large)
		return;
	quota__take(r->large, QUOTA_NOBODY, 1, 0);
	r->large_since = monotonic_ns();
}

/* Ends the child, however far it is, and removes it from the run; its wait status. */
static int end_child(struct run *r, struct child *child)
{
	struct sealed_job *job = child->task->job;
	struct rusage usage = {};
	int status = 0;

	if (helper_process__end(&child->process, REAP_NS, &status, &usage))
		job->abandoned++;
	if (child->listener >= 0)
		close(child->listener);
	job->cpu_time += cpu_time_of(&usage);
	job->peak_memory = max_u64(job->peak_memory, (uint64_t)usage.ru_maxrss << 10);
	give_back(r, job->user, child->seconds, cpu_time_of(&usage));
	if (child->is_large)
		quota__give(r->large, QUOTA_NOBODY, 1);
	*child = r->children[--r->child_count];
	return status;
}

static uint64_t deadline_of(const struct run *r, unsigned int seconds)
{
	return monotonic_ns() +
	       (r->work->wall_time ? r->work->wall_time : seconds * WALL_PER_CPU * SECOND_NS);
}

static bool wants_index(const struct task *task)
{
	const struct sealed_job *job = task->job;

	return job->wants_index && !task->symbols_only && !job->files.package_size;
}

/* `seconds` are set aside for it. */
static int start_child(struct run *r, struct task *task, unsigned int seconds)
{
	struct sealed_child_request request = {
		.files = task->job->files,
		.addresses = task->job->addresses,
		.count = task->job->count,
		.limits = {.cpu_seconds = seconds},
		.resolve = r->work->resolve ? r->work->resolve : module_resolve,
		.wants_index = wants_index(task),
		.code_addresses = task->job->code_addresses,
		.code_count = task->symbols_only ? 0 : task->job->code_count,
		.code_least = task->job->code_least,
	};
	struct child *child = &r->children[r->child_count];
	int err;

	if (!r->memory)
		r->memory = r->work->memory ? r->work->memory : memory_available() / 4;
	request.limits.memory = r->memory;
	request.files.symbols_only |= task->symbols_only;
	request.files.memory_limit = r->memory / 2;
	*child = (struct child){.task = task,
				.listener = -1,
				.seconds = seconds,
				.deadline = deadline_of(r, seconds)};
	err = sealed_keeper__fork(r->work->keeper, &request, &child->process);
	if (err)
		return err;
	/* without answers of a child that did not finish */
	sealed_answers__fini(&task->answers);
	sealed_answers__init(&task->answers, task->job->count);
	task->answers.takes_index = request.wants_index;
	task->answers.takes_code = request.code_count > 0;
	task->state = TASK_RUNNING;
	count_large(r, child);
	r->child_count++;
	return 0;
}

static size_t children_of(const struct run *r, uint32_t user)
{
	size_t count = 0;

	for (size_t i = 0; i < r->child_count; i++)
		count += r->children[i].task->job->user == user;
	return count;
}

/* Seconds of CPU that a child of this user may take. Less than one is nothing. */
static unsigned int seconds_left(const struct run *r, uint32_t user)
{
	int64_t left = user == ROOT ? INT64_MAX : quota__left(r->cpu, user, r->began);

	return left > 0 ? (unsigned int)min_u64((uint64_t)left / SECOND_NS, CPU_SECONDS_MAX) : 0;
}

/* Nothing is left, and no child that runs can give anything back. */
static bool is_used_up(const struct run *r, uint32_t user, bool *by_all)
{
	*by_all = quota__refusal(r->cpu, user, SECOND_NS, r->began) == OUTSIDE_BY_ALL;
	if (seconds_left(r, user))
		return false;
	return *by_all ? r->child_count == children_of(r, ROOT) : !children_of(r, user);
}

/* The next one of a user with fewest children; tasks of users without CPU time left are done. */
static struct task *next_task(struct run *r)
{
	struct task *best = NULL;
	bool by_all;

	for (size_t i = 0; i < r->count; i++) {
		struct task *task = r->order[i];
		uint32_t user = task->job->user;

		if (task->state != TASK_WAITING)
			continue;
		if (is_used_up(r, user, &by_all))
			leave(task, by_all);
		else if (seconds_left(r, user) && !must_wait(r, task) &&
			 (!best || children_of(r, user) < children_of(r, best->job->user)))
			best = task;
	}
	return best;
}

static bool has_waiting(const struct run *r)
{
	return any_of(r->tasks, r->count, task, task->state == TASK_WAITING);
}

/* If no process can be made, wait until one ends; after FORK_TRIES without any, give up. */
static void start_children(struct run *r)
{
	struct task *task;
	size_t wanted = has_waiting(r) ? children_wanted(r) : 0;
	unsigned int seconds;

	while (r->child_count < wanted && (task = next_task(r))) {
		uint32_t user = task->job->user;

		seconds = min_u64(cpu_seconds(r, task), seconds_left(r, user));
		if (user != ROOT)
			quota__take(r->cpu, user, seconds * SECOND_NS, r->began);
		if (!start_child(r, task, seconds)) {
			r->fork_failures = 0;
			continue;
		}
		give_back(r, user, seconds, 0);
		if (!r->child_count && ++r->fork_failures > FORK_TRIES) {
			log_debug(LOG_SYMBOLS, "%s: fork failed too often: no names",
				  name_of(task));
			task->first_try = DWARF_STATE_UNSEALED;
			give_up_on(task);
		}
		return;
	}
}

static enum dwarf_state cause_of(int status, enum child_end end, int error)
{
	if (end == CHILD_STUCK)
		return DWARF_STATE_HUNG;
	if (end == CHILD_TOO_LATE || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU))
		return DWARF_STATE_LIMIT;
	return error == -ENOMEM ? DWARF_STATE_TOO_BIG : DWARF_STATE_CRASHED;
}

static void log_death(const struct task *task, int status, enum child_end end, int error)
{
	const char *way = end == CHILD_TOO_LATE ? "took too long, signal"
			  : end == CHILD_STUCK	? "did nothing for too long, signal"
			  : WIFSIGNALED(status) ? "died of signal"
						: "exited with status";
	int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);

	if (!error)
		error = task->answers.finished ? task->answers.error : -EPIPE;
	log_debug(LOG_SYMBOLS, "%s: sealed child %s %d: %s; %s", name_of(task), way, number,
		  strerror(-error),
		  task->symbols_only || end == CHILD_STUCK ? "no names"
							   : "retried with symbol tables alone");
}

/* If a limit ended the child, its module counts as left out. */
static void note_limit(const struct task *task)
{
	if (task->first_try == DWARF_STATE_HUNG)
		note_left(task, OUTSIDE_BY_NO_ANSWER);
	else if (task->first_try == DWARF_STATE_LIMIT || task->first_try == DWARF_STATE_TOO_BIG)
		note_left(task, OUTSIDE_BY_ITSELF);
}

/* Takes and checks the child's index. */
static void take_index(struct task *task)
{
	struct sealed_answers *answers = &task->answers;
	struct symbol_index *index = NULL;
	void *data = answers->index.data;
	size_t size = answers->index.count;
	int err = -ENODATA;

	if (answers->index_finished && size) {
		answers->index.data = NULL;
		data = realloc(data, size) ?: data; /* it stays, and half of it may be unused */
		err = symbol_index__open(data, size, &index);
	}
	vec_free(&answers->index);
	task->job->index = err ? NULL : index;
	log_debug(LOG_SYMBOLS, "%s: index: %s, %zu bytes", name_of(task),
		  err ? strerror(-err) : "complete", size);
}

/* Of a child that was ended before all of it came, or that sent anything else, nothing is used. */
static void take_code(struct task *task)
{
	struct sealed_answers *answers = &task->answers;

	if (sealed_answers__has_code(answers)) {
		task->job->code = answers->code.data;
		task->job->code_size = answers->code.count;
		answers->code.data = NULL;
		answers->code.count = 0;
	}
	vec_free(&answers->code);
	log_debug(LOG_SYMBOLS, "%s: code: %zu bytes", name_of(task), task->job->code_size);
}

/* The child's report has ended. `error`: of its stream. If code or index are cut, only they are lost. */
static void finish_child(struct run *r, struct child *child, int error, enum child_end end)
{
	struct task *task = child->task;
	bool indexes = task->answers.takes_index, codes = task->answers.takes_code;
	bool good = (!error || indexes || codes) && task->answers.finished && !task->answers.error;
	int status = end_child(r, child);

	if (good) {
		task->state = TASK_DONE;
		task->job->report = task->answers.report;
		note_parts(task);
		if (codes)
			take_code(task);
		if (indexes)
			take_index(task);
		log_debug(LOG_SYMBOLS, "%s: %zu addresses resolved: %.3f s CPU, %.1f MB",
			  name_of(task), task->job->count, task->job->cpu_time / 1e9,
			  task->job->peak_memory / 1048576.0);
		return;
	}
	log_death(task, status, end, error);
	if (!task->symbols_only) {
		task->first_try = cause_of(status, end,
					   task->answers.finished ? task->answers.error : 0);
		note_limit(task);
	}
	/* its file would hold up the next one as well */
	if (task->symbols_only || end == CHILD_STUCK) {
		give_up_on(task);
		return;
	}
	task->symbols_only = true;
	task->state = TASK_WAITING;
}

/* 1: there may be more; 0: the child is done; -EAGAIN: nothing yet; other errors: drop it. */
static int read_message(struct child *child, struct message_buffer *message)
{
	int got = message__receive(child->process.socket, message, MSG_DONTWAIT), err = -EBADMSG;

	if (got <= 0)
		return got;
	if (!child->greeted && message->frame.flags == MESSAGE_PROGRESS && message->fd_count <= 1) {
		child->listener = message->fd_count ? message->fds[0] : -1;
		child->greeted = true;
		return 1;
	}
	message__close_fds(message->fds, message->fd_count);
	if (child->greeted)
		err = sealed_answers__take(&child->task->answers, message);
	return err ?: 1;
}

static int read_messages(struct child *child)
{
	struct message_buffer message;
	int more = 1;

	for (int i = 0; i < MESSAGES_AT_ONCE && more > 0; i++)
		more = read_message(child, &message);
	return more == -EAGAIN ? 1 : more;
}

/* Handles the child's messages and requests, and its deadlines. */
static int attend_child(struct run *r, struct child *child, const struct pollfd *fds, uint64_t now)
{
	uint64_t silence = r->work->silence ?: helper_classes[HELPER_SYMBOLS].silence;
	int more = 1, gone = 0;

	if (fds[0].revents || fds[1].revents)
		child->process.liveness.since = now;
	if (fds[1].revents & POLLIN)
		gone = sealed_files__answer(child->listener, child->task->job);
	else if (fds[1].revents)
		gone = -EPIPE;
	if (gone) {
		/* its further requests fail with ENOSYS */
		close(child->listener);
		child->listener = -1;
	}
	if (fds[0].revents)
		more = read_messages(child);
	if (more == -ENOMEM)
		return more;
	if (more <= 0)
		finish_child(r, child, more, CHILD_ENDED);
	else if (now >= child->deadline)
		finish_child(r, child, 0, CHILD_TOO_LATE);
	else if (liveness__is_stuck(&child->process.liveness, child->process.pid, now, silence))
		finish_child(r, child, 0, CHILD_STUCK);
	return 0;
}

static int wait_for_children(struct run *r)
{
	struct pollfd fds[2 * CHILDREN_MAX];
	size_t count = r->child_count;
	uint64_t now;

	for (size_t i = 0; i < count; i++) {
		const struct child *child = &r->children[i];

		fds[2 * i] = (struct pollfd){.fd = child->process.socket, .events = POLLIN};
		fds[2 * i + 1] = (struct pollfd){.fd = child->listener, .events = POLLIN};
	}
	poll(fds, 2 * count, POLL_MS);
	now = monotonic_ns();
	/* backwards: the last child takes the place of one that ends */
	for (size_t i = count; i-- > 0;) {
		int err = attend_child(r, &r->children[i], &fds[2 * i], now);

		if (err)
			return err;
	}
	return 0;
}

/* ---- the run --------------------------------------------------------------------------------- */

static size_t addresses_done(const struct run *r)
{
	size_t done = 0;

	for (size_t i = 0; i < r->count; i++)
		done += r->tasks[i].state == TASK_DONE ? r->tasks[i].job->count
						       : r->tasks[i].answers.results;
	return done;
}

static int deliver_answers(struct task *task)
{
	struct sealed_job *job = task->job;
	int err;

	if (task->first_try != DWARF_STATE_NONE)
		job->report.dwarf = task->first_try;
	job->report.addresses = job->count;
	err = sealed_answers__deliver(&task->answers, job->sink, job->context);
	sealed_answers__fini(&task->answers);
	return err;
}

static int deliver_in_order(struct run *r)
{
	while (r->delivered < r->count && r->tasks[r->delivered].state == TASK_DONE) {
		int err = deliver_answers(&r->tasks[r->delivered++]);

		if (err)
			return err;
	}
	return 0;
}

static void end_all(struct run *r)
{
	while (r->child_count)
		end_child(r, &r->children[r->child_count - 1]);
}

/* The user cancelled: keep what was answered, the rest is unknown. */
static int cancel_tasks(struct run *r)
{
	end_all(r);
	for (size_t i = r->delivered; i < r->count; i++) {
		struct task *task = &r->tasks[i];

		if (task->state == TASK_DONE)
			continue;
		task->state = TASK_DONE;
		task->first_try = DWARF_STATE_NONE;
		task->job->report = (struct module_report){.state = SYMBOL_STATE_CANCELLED};
	}
	return deliver_in_order(r);
}

static int run_tasks(struct run *r, sealed_poll_fn poll_fn, void *context)
{
	int err = 0;

	while (r->delivered < r->count && !err) {
		start_children(r);
		err = wait_for_children(r) ?: deliver_in_order(r);
		if (!err && poll_fn && poll_fn(context, addresses_done(r), r->total))
			return cancel_tasks(r);
	}
	return err;
}

DEFINE_ORDER(compare_sizes, struct task *, order_of((*y)->size, (*x)->size) ?: order_of(*x, *y));

static void prepare_tasks(struct run *r, struct sealed_job *jobs)
{
	for (size_t i = 0; i < r->count; i++) {
		struct sealed_job *job = &jobs[i];

		job->report = (struct module_report){};
		job->cpu_time = job->peak_memory = 0;
		job->abandoned = 0;
		job->index = NULL;
		job->code = NULL;
		job->code_size = 0;
		r->tasks[i].job = job;
		r->tasks[i].size = job->size ? job->size
					     : file_size(job->files.elf_fd) +
						       file_size(job->files.debug_fd) +
						       file_size(job->files.alt_fd);
		sealed_answers__init(&r->tasks[i].answers, job->count);
		r->order[i] = &r->tasks[i];
		r->total += job->count;
	}
	qsort(r->order, r->count, sizeof(*r->order), compare_sizes);
}

int sealed_run(struct sealed_job *jobs, size_t count, unsigned int parallel, sealed_poll_fn poll,
	       void *context, const struct sealed_work *work)
{
	_cleanup_free_ struct task *tasks = calloc(count + 1, sizeof(*tasks));
	_cleanup_free_ struct task **order = calloc(count + 1, sizeof(*order));
	_cleanup_free_ struct quota *own = malloc(sizeof(*own));
	_cleanup_free_ struct quota *large = malloc(sizeof(*large));
	struct run r = {
		.tasks = tasks,
		.order = order,
		.count = count,
		.parallel = parallel,
		.work = work,
		.cpu = work->cpu ? work->cpu : own,
		.large = large,
		.began = monotonic_ns(),
	};
	int err;

	if (!tasks || !order || !own || !large)
		return -ENOMEM;
	quota__init(own, QUOTA_SYMBOLS);
	quota__init(large, QUOTA_LARGE_CHILDREN);
	large->shared = work->large;
	r.large_since = r.began;
	prepare_tasks(&r, jobs);
	err = run_tasks(&r, poll, context);
	end_all(&r);
	for (size_t i = 0; i < count; i++)
		sealed_answers__fini(&tasks[i].answers);
	return err;
}
