/* SPDX-License-Identifier: BSD-2-Clause */
#include "tenants/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "base/proc_task.h"

#define MS_NS	    UINT64_C(1000000)
#define CPU_GETS_ON MS_NS /* this much CPU time is progress */
#define LOOKS	    4	  /* minimum of checks before a child is stuck */

/* 1: reaped, 0: not yet, negative errno: it is not ours. */
static int try_reap(pid_t pid, int *status, struct rusage *usage)
{
	pid_t got;

	do
		got = wait4(pid, status, WNOHANG, usage);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got == pid;
}

/* Sleeps until it ends, `ns` at most; without a pidfd for 1 ms. */
static void await_end(int pidfd, uint64_t ns)
{
	struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};
	struct timespec short_while = {.tv_nsec = MS_NS};

	if (pidfd >= 0)
		poll(&poll_fd, 1, (int)(ns / MS_NS) + 1);
	else
		nanosleep(&short_while, NULL);
}

int end_process(pid_t pid, uint64_t wait_ns, int *status, struct rusage *usage)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	uint64_t now = monotonic_ns(), end = now + wait_ns;
	int result;

	kill(pid, SIGKILL);
	while (!(result = try_reap(pid, status, usage)) && now < end) {
		await_end(pidfd, end - now);
		now = monotonic_ns();
	}
	return result ? 0 : -ETIMEDOUT;
}

bool process_is_runnable(pid_t pid)
{
	struct proc_stat stat;

	return !proc_stat_of(pid, &stat) && !strchr("SDZX", stat.state);
}

bool liveness__is_stuck(struct liveness *l, pid_t pid, uint64_t now, uint64_t wait_ns)
{
	uint64_t cpu = l->cpu_ns, pause = now - max_u64(l->looked, l->since);

	if (!l->since)
		l->since = now;
	else if (pause > wait_ns / LOOKS)
		l->since += pause - wait_ns / LOOKS;
	l->looked = now;
	if (now - l->since < wait_ns)
		return false;
	if (process_cpu_ns_of(pid, &cpu) && cpu <= l->cpu_ns + CPU_GETS_ON &&
	    !process_is_runnable(pid))
		return true;
	l->since = now;
	l->cpu_ns = cpu;
	return false;
}
