/* SPDX-License-Identifier: BSD-2-Clause */
#include "jitwatch/jit_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "jitwatch/jit_watcher.h"

#define LINE_MAX_SIZE	512
#define FILES_WANTED	2048
#define END_PATIENCE	200000000ull  /* ns, for watchers to end */
#define STOP_PATIENCE	1000000000ull /* ns, for the keeper to end */
#define STEP		500000	      /* ns between two looks */

#define BIT(capability) (1ull << (capability))
/* The processes' roots and mapped files, identities to be borrowed, and JVMs to be asked. */
#define NEEDED                                                                                     \
	(BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_FOWNER) |                      \
	 BIT(CAP_MAC_OVERRIDE) | BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_KILL) |               \
	 BIT(CAP_SYS_PTRACE) | BIT(CAP_CHECKPOINT_RESTORE))

static void rest(void)
{
	const struct timespec step = {.tv_nsec = STEP};

	nanosleep(&step, NULL);
}

/* ---- the keeper ------------------------------------------------------------------------------ */

/* /proc/PID/map_files is for CAP_CHECKPOINT_RESTORE, or for CAP_SYS_ADMIN where there is no other. */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	uint64_t kept = NEEDED;

	if (syscall(SYS_capget, &header, data))
		return;
	if (!(data[1].effective & BIT(CAP_CHECKPOINT_RESTORE - 32)))
		kept |= BIT(CAP_SYS_ADMIN);
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		uint32_t mask = (uint32_t)(kept >> (32 * i));

		data[i].effective &= mask;
		data[i].permitted &= mask;
		data[i].inheritable = 0;
	}
	(void)!syscall(SYS_capset, &header, data);
}

/* Are descriptors of these numbers kept? `fds` ends with -1. */
static bool is_kept(const int *fds, int fd)
{
	for (; *fds >= 0; fds++)
		if (*fds == fd)
			return true;
	return false;
}

/*
 * Nothing of the recording is the watchers' business. And who waits for the end of our output must not wait for one
 * of them.
 */
static void close_others(const int *kept)
{
	int last = -1, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; kept[i] >= 0; i++)
		last = kept[i] > last ? kept[i] : last;
	for (int fd = 3; fd <= last; fd++)
		if (!is_kept(kept, fd) && fd != null)
			close(fd);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		if (!is_kept(kept, fd))
			dup3(null, fd, 0);
	if (null > last)
		last = null;
	syscall(SYS_close_range, last + 1, ~0u, 0);
}

/* So many files may be open, and some more while they are looked for (jit_follower.c). */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= FILES_WANTED)
		return;
	limit.rlim_cur = limit.rlim_max < FILES_WANTED ? limit.rlim_max : FILES_WANTED;
	(void)!setrlimit(RLIMIT_NOFILE, &limit);
}

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

static pid_t begin_watcher(struct jit_keeper *k, unsigned char number, int life_fd)
{
	struct jit_channel *channel = k->channels[number];
	pid_t child = fork();

	if (!child)
		_exit(jit_watcher__run(channel, k->wake_fds[number], life_fd) ? 1 : 0);
	channel->pid = child < 0 ? -1 : child;
	return child < 0 ? 0 : child;
}

/* Its children are waited for at its end only: until then their numbers are theirs. */
static void keep_watchers(struct jit_keeper *k, int life_fd)
{
	int kept[JIT_WATCHERS_MAX + 2] = {};
	struct children children = {};
	unsigned char number;
	sigset_t all;

	for (int i = 0; i < JIT_WATCHERS_MAX; i++)
		kept[i] = k->wake_fds[i];
	kept[JIT_WATCHERS_MAX] = life_fd;
	kept[JIT_WATCHERS_MAX + 1] = -1;
	close_others(kept);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	/* what is pressed on the terminal is not for us; a session would be scheduled as somebody else's work */
	setpgid(0, 0);
	prctl(PR_SET_NAME, "sysprof-jit");
	drop_capabilities();
	raise_file_limit();
	while (read(life_fd, &number, 1) == 1)
		if (number < JIT_WATCHERS_MAX)
			children.pid[number] = begin_watcher(k, number, life_fd);
	end_children(&children);
	_exit(0);
}

/* ---- the collector --------------------------------------------------------------------------- */

static int make_channels(struct jit_keeper *k)
{
	for (int i = 0; i < JIT_WATCHERS_MAX; i++) {
		k->wake_fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (k->wake_fds[i] < 0)
			return -errno;
		k->channels[i] = jit_channel__new();
		if (!k->channels[i])
			return -ENOMEM;
		/* at the same address in all of them */
		k->channels[i]->ledger.all = &k->channels[0]->bytes_read;
	}
	return 0;
}

int jit_keeper__start(struct jit_keeper *k)
{
	int life[2], err;

	*k = (struct jit_keeper){.request_fd = -1};
	for (int i = 0; i < JIT_WATCHERS_MAX; i++)
		k->wake_fds[i] = -1;
	err = make_channels(k);
	if (!err && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, life))
		err = -errno;
	if (err)
		return err;
	k->pid = fork();
	if (!k->pid) {
		close(life[1]);
		keep_watchers(k, life[0]);
	}
	close(life[0]);
	k->request_fd = life[1];
	if (k->pid > 0)
		return 0;
	err = -errno;
	k->pid = 0;
	return err;
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
