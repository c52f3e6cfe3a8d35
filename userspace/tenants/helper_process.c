/* SPDX-License-Identifier: BSD-2-Clause */
#include "tenants/helper_process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/proc_task.h"
#include "tenants/keeper.h"

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

/* ---- a process ------------------------------------------------------------------------------- */

int helper_process__send_start(void)
{
	const uint32_t pid = (uint32_t)getpid();

	return message__send(
		CHILD_SOCKET,
		&(struct message){.frame = {.flags = MESSAGE_PROGRESS, .size = sizeof(pid)},
				  .bytes = &pid},
		0);
}

int helper_process__start(struct helper_process *h, const struct helper_process *keeper,
			  const struct child_plan *plan)
{
	int socket;
	pid_t pid = keeper ? keeper__fork(keeper->socket, plan, &socket)
			   : child__start(plan, &socket);

	if (pid < 0)
		return pid;
	*h = (struct helper_process){.socket = socket, .pid = pid, .pidfd = -1};
	return 0;
}

int helper_process__receive(struct helper_process *h, struct message_buffer *buffer)
{
	int got = message__receive(h->socket, buffer, MSG_DONTWAIT);
	uint32_t pid;

	if (got <= 0 || h->pid || buffer->frame.flags != MESSAGE_PROGRESS ||
	    buffer->frame.size != sizeof(pid))
		return got;
	message__close_fds(buffer->fds, buffer->fd_count);
	memcpy(&pid, buffer->bytes, sizeof(pid));
	h->pid = (pid_t)pid;
	h->pidfd = (int)syscall(SYS_pidfd_open, h->pid, 0);
	return -EAGAIN;
}

bool helper_process__has_ended(struct helper_process *h)
{
	struct message_buffer buffer;
	int got = helper_process__receive(h, &buffer);

	if (got > 0)
		message__close_fds(buffer.fds, buffer.fd_count);
	return got != -EAGAIN;
}

void helper_process__let_go(struct helper_process *h)
{
	cleanup_close(&h->pidfd);
	cleanup_close(&h->socket);
	*h = HELPER_PROCESS_NONE;
}

void helper_process__kill(const struct helper_process *h)
{
	if (h->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, h->pidfd, SIGKILL, NULL, 0);
}

int helper_process__end(struct helper_process *h, uint64_t wait_ns, int *status,
			struct rusage *usage)
{
	pid_t pid = h->pid;
	int err;

	helper_process__let_go(h);
	if (pid <= 0) /* to kill() that is a process group */
		return -ESRCH;
	err = end_process(pid, wait_ns, status, usage);
	if (err)
		log_debug(LOG_SESSION, "helper %d does not end: left behind", pid);
	return err;
}
