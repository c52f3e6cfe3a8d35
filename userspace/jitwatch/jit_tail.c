/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread and its commands. Commands and the events that it has read are under one lock; everything else is
 * used by the thread only. A round is: wait, take commands, ask JVMs, take inotify events, read the files that
 * have some or are due (jit_follower.c).
 */
#include "jitwatch/jit_tail.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "base/vec.h"
#include "jitwatch/jit_follower.h"
#include "jitwatch/jvm_asker.h"

#define UNTAKEN_MAX	(8u << 20)   /* bytes of events not taken yet */
#define UNTAKEN_LIMIT	(64u << 20)  /* the same at the end, when no more are taken */
#define ROUND_MIN	200000ull    /* ns between two rounds of reading */
#define SETTLE_PATIENCE 600000000ull /* ns for JVMs to answer, at the end */

enum command_kind { FOLLOW, FOLLOW_DUMP, GONE };

struct command {
	enum command_kind kind;
	pid_t pid;
	uint64_t start, end;
	char *path; /* of a dump */
};

typedef VEC(struct command) command_vec;

struct jit_tail {
	pthread_t thread;
	bool started;
	int wake_fd;

	pthread_mutex_t lock;
	pthread_cond_t idle; /* all that was asked for is done */
	command_vec commands;
	VEC(char) untaken;
	bool busy, settling, ending, ended;
	uint64_t cpu;

	/* the thread's */
	int epoll;
	command_vec taken;
	struct jit_follower *follower;
	bool ask_jvms;
	struct jvm_asker asker;
	int err;
};

/* ---- between the threads --------------------------------------------------------------------- */

static void wake_thread(struct jit_tail *t)
{
	eventfd_write(t->wake_fd, 1);
}

static int send_command(struct jit_tail *t, const struct command *command)
{
	int err;

	pthread_mutex_lock(&t->lock);
	err = vec_push(&t->commands, *command);
	pthread_mutex_unlock(&t->lock);
	if (err)
		free(command->path);
	else
		wake_thread(t);
	return err;
}

int jit_tail__follow(struct jit_tail *t, pid_t pid)
{
	const struct command command = {.kind = FOLLOW, .pid = pid};

	return send_command(t, &command);
}

int jit_tail__follow_dump(struct jit_tail *t, pid_t pid, const char *path, uint64_t start,
			  uint64_t end)
{
	const struct command command = {
		.kind = FOLLOW_DUMP, .pid = pid, .start = start, .end = end, .path = strdup(path)};

	return command.path ? send_command(t, &command) : -ENOMEM;
}

int jit_tail__gone(struct jit_tail *t, pid_t pid)
{
	const struct command command = {.kind = GONE, .pid = pid};

	return send_command(t, &command);
}

int jit_tail__take(struct jit_tail *t, uint64_t now, event_push_fn push, void *context)
{
	__typeof__(t->untaken) taken;
	int err = 0;

	pthread_mutex_lock(&t->lock);
	taken = t->untaken;
	t->untaken = (__typeof__(t->untaken)){};
	pthread_mutex_unlock(&t->lock);
	if (taken.count > UNTAKEN_MAX)
		wake_thread(t);
	for (size_t at = 0; at < taken.count && !err;) {
		struct event_header *event = (void *)(taken.data + at);

		at += event->size;
		event->time = now;
		err = push(context, event);
	}
	vec_free(&taken);
	return err;
}

/* An event_push_fn: queues the thread's events for the collector. */
static int keep_event(void *context, struct event_header *event)
{
	struct jit_tail *t = context;
	int err;

	pthread_mutex_lock(&t->lock);
	err = vec_reserve(&t->untaken, t->untaken.count + event->size);
	if (!err) {
		memcpy(t->untaken.data + t->untaken.count, event, event->size);
		t->untaken.count += event->size;
	}
	pthread_mutex_unlock(&t->lock);
	return err;
}

static bool is_full(void *context, bool settle)
{
	struct jit_tail *t = context;
	bool full;

	pthread_mutex_lock(&t->lock);
	full = t->untaken.count > (settle ? UNTAKEN_LIMIT : UNTAKEN_MAX);
	pthread_mutex_unlock(&t->lock);
	return full;
}

static bool wait_until_idle(struct jit_tail *t, uint64_t timeout, bool settling)
{
	struct timespec deadline;
	uint64_t until = monotonic_ns() + timeout;
	bool done;
	int err = 0;

	deadline.tv_sec = until / 1000000000ull;
	deadline.tv_nsec = until % 1000000000ull;
	pthread_mutex_lock(&t->lock);
	t->settling |= settling;
	t->busy = true;
	wake_thread(t);
	while (t->busy && !t->ended && !err)
		err = pthread_cond_timedwait(&t->idle, &t->lock, &deadline);
	done = !t->busy || t->ended;
	pthread_mutex_unlock(&t->lock);
	return done;
}

bool jit_tail__settle(struct jit_tail *t, uint64_t timeout)
{
	return wait_until_idle(t, timeout, false);
}

bool jit_tail__finish(struct jit_tail *t, uint64_t timeout)
{
	return wait_until_idle(t, timeout, true);
}

uint64_t jit_tail__cpu(const struct jit_tail *t)
{
	struct jit_tail *writable = (struct jit_tail *)t;
	uint64_t cpu;

	pthread_mutex_lock(&writable->lock);
	cpu = t->cpu;
	pthread_mutex_unlock(&writable->lock);
	return cpu;
}

/* ---- commands -------------------------------------------------------------------------------- */

static void follow_process(struct jit_tail *t, pid_t pid)
{
	struct jit_owner owner;

	if (jit_follower__knows_map(t->follower, pid) || jit_owner__read(pid, &owner))
		return;
	if (t->ask_jvms && jvm_asker__add(&t->asker, &owner))
		t->err = -ENOMEM;
	jit_follower__follow_map(t->follower, &owner);
}

static void obey_command(struct jit_tail *t, const struct command *command)
{
	switch (command->kind) {
	case FOLLOW:
		follow_process(t, command->pid);
		break;
	case FOLLOW_DUMP:
		jit_follower__follow_dump(t->follower, command->pid, command->path, command->start,
					  command->end);
		break;
	case GONE:
		jvm_asker__forget(&t->asker, command->pid);
		jit_follower__let_go(t->follower, command->pid);
		break;
	}
}

static void take_commands(struct jit_tail *t)
{
	command_vec done = t->taken;
	eventfd_t count;

	done.count = 0;
	eventfd_read(t->wake_fd, &count);
	pthread_mutex_lock(&t->lock);
	t->taken = t->commands;
	t->commands = done;
	pthread_mutex_unlock(&t->lock);
	for (size_t i = 0; i < t->taken.count; i++) {
		obey_command(t, &t->taken.data[i]);
		free(t->taken.data[i].path);
	}
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* A JVM was asked: its map may exist now. An `answered` of jvm_asker__ask_due(). */
static void note_answer(void *context, pid_t pid)
{
	struct jit_tail *t = context;

	jit_follower__expect_map(t->follower, pid);
}

/* ms until something is due; -1: nothing is. */
static int time_to_wait(struct jit_tail *t)
{
	uint64_t now = monotonic_ns(), next;
	bool full = is_full(t, false); /* who takes will wake us */

	if (jit_follower__has_more(t->follower, false) && !full)
		return 0;
	next = min_u64(jit_follower__next_due(t->follower, full),
		       jvm_asker__next_due(&t->asker, now));
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int)((next - now) / 1000000 + 1);
}

/* Limits the rate of rounds: all that came meanwhile is read at once. */
static void keep_distance(const struct jit_tail *t)
{
	uint64_t now = monotonic_ns(), next = jit_follower__last_read(t->follower) + ROUND_MIN;
	struct timespec rest = {};

	if (now >= next)
		return;
	rest.tv_nsec = (long)(next - now);
	nanosleep(&rest, NULL);
}

/* Whoever waits for it is told. */
static void tell_idle(struct jit_tail *t, bool settled)
{
	pthread_mutex_lock(&t->lock);
	t->cpu = thread_cpu_ns();
	if (!t->commands.count && !jit_follower__has_more(t->follower, settled) &&
	    (settled || (!t->settling && !jvm_asker__is_asking(&t->asker)))) {
		t->busy = t->settling = false;
		pthread_cond_broadcast(&t->idle);
	}
	pthread_mutex_unlock(&t->lock);
}

static bool is_ending(struct jit_tail *t, bool *settle)
{
	bool ending;

	pthread_mutex_lock(&t->lock);
	ending = t->ending || t->err || jit_follower__error(t->follower);
	*settle = t->settling;
	pthread_mutex_unlock(&t->lock);
	return ending;
}

static void *run_thread(void *context)
{
	struct jit_tail *t = context;
	bool settle = false, last;
	uint64_t settle_began = 0;

	while (!is_ending(t, &settle)) {
		struct epoll_event events[2];

		epoll_wait(t->epoll, events, 2,
			   settle && !jvm_asker__is_asking(&t->asker) ? 0 : time_to_wait(t));
		take_commands(t);
		is_ending(t, &settle);
		settle_began = settle && !settle_began ? monotonic_ns() : settle_began;
		jvm_asker__ask_due(&t->asker, settle, note_answer, t);
		jit_follower__take_signs(t->follower);
		jit_follower__look_for_files(t->follower);
		/* an asked JVM writes a snapshot, which is complete when the file is closed */
		last = settle && (!jvm_asker__is_asking(&t->asker) ||
				  monotonic_ns() > settle_began + SETTLE_PATIENCE);
		jit_follower__read_due(t->follower, last);
		tell_idle(t, last);
		if (!settle)
			keep_distance(t);
	}
	jvm_asker__stop(&t->asker);
	pthread_mutex_lock(&t->lock);
	t->ended = true;
	pthread_cond_broadcast(&t->idle);
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int add_to_epoll(struct jit_tail *t, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int open_descriptors(struct jit_tail *t)
{
	int err, signs_fd;

	t->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (t->wake_fd < 0 || t->epoll < 0)
		return -errno;
	err = add_to_epoll(t, t->wake_fd);
	signs_fd = jit_follower__signs_fd(t->follower);
	return err || signs_fd < 0 ? err : add_to_epoll(t, signs_fd);
}

/* Signals are for the thread that waits for them. */
static int start_thread(struct jit_tail *t)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&t->thread, NULL, run_thread, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	t->started = !err;
	return -err;
}

int jit_tail__new(bool ask_jvms, struct jit_tail **tail)
{
	struct jit_tail *t = calloc(1, sizeof(*t));
	const struct jit_follower_output output = {
		.push = keep_event, .is_full = is_full, .context = t};
	pthread_condattr_t monotonic;
	int err;

	if (!t)
		return -ENOMEM;
	t->wake_fd = t->epoll = -1;
	t->ask_jvms = ask_jvms;
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&t->idle, &monotonic);
	pthread_condattr_destroy(&monotonic);
	err = jit_follower__new(&output, &t->follower);
	if (!err)
		err = open_descriptors(t);
	if (!err)
		err = start_thread(t);
	if (err) {
		jit_tail__free(t);
		return err;
	}
	*tail = t;
	return 0;
}

/* False: it hangs in a system call on a file of another process. */
static bool end_thread(struct jit_tail *t)
{
	struct timespec deadline;
	bool ended;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec++;
	pthread_mutex_lock(&t->lock);
	t->ending = true;
	wake_thread(t);
	while (!t->ended && !err)
		err = pthread_cond_timedwait(&t->idle, &t->lock, &deadline);
	ended = t->ended;
	pthread_mutex_unlock(&t->lock);
	if (ended)
		pthread_join(t->thread, NULL);
	else
		pthread_detach(t->thread);
	return ended;
}

void jit_tail__free(struct jit_tail *t)
{
	if (!t || (t->started && !end_thread(t)))
		return;
	for (size_t i = 0; i < t->commands.count; i++)
		free(t->commands.data[i].path);
	vec_free(&t->commands);
	vec_free(&t->taken);
	vec_free(&t->untaken);
	jit_follower__free(t->follower);
	jvm_asker__fini(&t->asker);
	cleanup_close(&t->wake_fd);
	cleanup_close(&t->epoll);
	pthread_cond_destroy(&t->idle);
	pthread_mutex_destroy(&t->lock);
	free(t);
}
