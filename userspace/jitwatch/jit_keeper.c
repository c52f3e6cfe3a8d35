/* SPDX-License-Identifier: BSD-2-Clause */
#include "jitwatch/jit_keeper.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "helpers/child.h"
#include "jitwatch/jit_watcher.h"

#define LINE_MAX_SIZE 512
#define END_PATIENCE  200000000ull  /* ns, for watchers to end */
#define STOP_PATIENCE 1000000000ull /* ns, for the keeper to end */
#define STEP	      500000	    /* ns between two looks */

static void rest(void)
{
	const struct timespec step = {.tv_nsec = STEP};

	nanosleep(&step, NULL);
}

/* ---- the keeper ------------------------------------------------------------------------------ */

/* The keeper's own: pids of the watchers; 0: none, or it has ended. */
struct children {
	pid_t pid[JIT_WATCHERS_MAX];
};

/* What they have used counts as the collector's only if they were waited for. */
static unsigned int reap_children(struct children *c)
{
	unsigned int left = 0;

	for (int i = 0; i < JIT_WATCHERS_MAX; i++) {
		if (c->pid[i] && waitpid(c->pid[i], NULL, WNOHANG))
			c->pid[i] = 0;
		left += c->pid[i] != 0;
	}
	return left;
}

/* Whoever does not end, not even by force, is left. */
static void end_children(struct children *c)
{
	uint64_t until = monotonic_ns() + END_PATIENCE;

	while (reap_children(c) && monotonic_ns() < until)
		rest();
	for (int i = 0; i < JIT_WATCHERS_MAX; i++)
		if (c->pid[i])
			kill(c->pid[i], SIGKILL);
}

static int run_watcher(const struct child_self *self)
{
	struct jit_channel *channel = *(struct jit_channel *const *)self->data;

	return jit_watcher__run(channel, CHILD_FIRST_FD, CHILD_SOCKET) ? EXIT_FAILURE
								       : EXIT_SUCCESS;
}

static pid_t begin_watcher(struct jit_keeper *k, unsigned char number)
{
	struct jit_channel *channel = k->channels[number];
	const int wake_fd = CHILD_FIRST_FD + number;
	const struct child_plan plan = {.class = HELPER_WATCHER,
					.run = run_watcher,
					.fds = &wake_fd,
					.fd_count = 1,
					.data = &channel};
	pid_t child = child__fork(&plan, &(struct child_origin){.socket = CHILD_SOCKET});

	channel->pid = child < 0 ? -1 : child;
	return child < 0 ? 0 : child;
}

/* Its children are waited for at its end only: until then their numbers are theirs. */
static int run_keeper(const struct child_self *self)
{
	struct jit_keeper *k = *(struct jit_keeper *const *)self->data;
	struct children children = {};
	unsigned char number;

	while (read(CHILD_SOCKET, &number, 1) == 1)
		if (number < JIT_WATCHERS_MAX)
			children.pid[number] = begin_watcher(k, number);
	end_children(&children);
	return EXIT_SUCCESS;
}

/* ---- the collector --------------------------------------------------------------------------- */

static int make_channels(struct jit_keeper *k)
{
	const uint64_t now = monotonic_ns();

	for (int i = 0; i < JIT_WATCHERS_MAX; i++) {
		k->wake_fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (k->wake_fds[i] < 0)
			return -errno;
		k->channels[i] = jit_channel__new();
		if (!k->channels[i])
			return -ENOMEM;
		/* at the same address in all of them */
		quota__init(&k->channels[i]->bytes, QUOTA_JIT_BYTES);
		quota__begin(&k->channels[i]->bytes, now);
		k->channels[i]->bytes.shared = &k->channels[0]->bytes_read;
	}
	return 0;
}

int jit_keeper__start(struct jit_keeper *k)
{
	const struct child_plan plan = {.class = HELPER_KEEPER,
					.name = "sysprof-jit",
					.run = run_keeper,
					.type = SOCK_STREAM,
					.fds = k->wake_fds,
					.fd_count = JIT_WATCHERS_MAX,
					.data = &k};
	pid_t pid;
	int err;

	*k = (struct jit_keeper){.request_fd = -1};
	for (int i = 0; i < JIT_WATCHERS_MAX; i++)
		k->wake_fds[i] = -1;
	err = make_channels(k);
	if (err)
		return err;
	pid = child__start(&plan, &k->request_fd);
	if (pid < 0)
		return pid;
	k->pid = pid;
	return 0;
}

static bool has_ended(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) != 0;
}

/* Somebody may have killed it. */
static bool is_alive(struct jit_keeper *k)
{
	if (k->pid > 0 && has_ended(k->pid))
		k->pid = 0;
	return k->pid > 0;
}

void jit_keeper__stop(struct jit_keeper *k)
{
	uint64_t until = monotonic_ns() + STOP_PATIENCE;
	bool ended = k->pid <= 0;

	for (unsigned int i = 0; i < JIT_WATCHERS_MAX; i++) {
		if (k->channels[i])
			k->channels[i]->ending = true;
		jit_keeper__wake(k, i);
	}
	cleanup_close(&k->request_fd);
	k->request_fd = -1;
	while (!ended && monotonic_ns() < until) {
		ended = has_ended(k->pid);
		if (!ended)
			rest();
	}
	for (unsigned int i = 0; i < JIT_WATCHERS_MAX && !ended; i++)
		jit_keeper__kill(k, i);
	if (!ended) {
		kill(k->pid, SIGKILL);
		waitpid(k->pid, NULL, 0);
	}
	k->pid = 0;
	for (unsigned int i = 0; i < JIT_WATCHERS_MAX; i++) {
		cleanup_close(&k->wake_fds[i]);
		k->wake_fds[i] = -1;
		jit_channel__free(k->channels[i]);
		k->channels[i] = NULL;
	}
}

int jit_keeper__begin(struct jit_keeper *k, unsigned int number)
{
	unsigned char request = (unsigned char)number;

	if (!is_alive(k))
		return -ESRCH;
	return send(k->request_fd, &request, 1, MSG_NOSIGNAL) == 1 ? 0 : -errno;
}

void jit_keeper__wake(const struct jit_keeper *k, unsigned int number)
{
	if (k->wake_fds[number] >= 0)
		eventfd_write(k->wake_fds[number], 1);
}

void jit_keeper__kill(const struct jit_keeper *k, unsigned int number)
{
	pid_t pid = k->channels[number] ? k->channels[number]->pid : 0;

	if (pid > 0)
		kill(pid, SIGKILL);
}

enum jit_watcher_state jit_keeper__look(struct jit_keeper *k, unsigned int number)
{
	pid_t pid = k->channels[number]->pid;
	char path[64], line[LINE_MAX_SIZE];
	const char *state;

	if (pid < 0)
		return JIT_WATCHER_ENDED; /* there was no room for another process */
	if (!pid)			  /* it is just being started */
		return is_alive(k) ? JIT_WATCHER_RUNS : JIT_WATCHER_ENDED;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (read_line(path, line, sizeof(line)))
		return JIT_WATCHER_ENDED;
	state = strrchr(line, ')');
	if (!state || strlen(state) < 3)
		return JIT_WATCHER_RUNS;
	switch (state[2]) {
	case 'Z':
	case 'X':
		return JIT_WATCHER_ENDED;
	case 'S':
	case 'D':
		return JIT_WATCHER_WAITS;
	default:
		return JIT_WATCHER_RUNS;
	}
}
