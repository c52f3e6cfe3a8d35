/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/child_process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

pid_t child__fork(int type, int *socket)
{
	sigset_t all, before;
	int ends[2], err;
	pid_t pid;

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends))
		return -errno;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	err = errno;
	if (pid)
		sigprocmask(SIG_SETMASK, &before, NULL);
	close(ends[pid != 0]);
	if (pid < 0) {
		close(ends[0]);
		return -err;
	}
	*socket = ends[!pid];
	return pid;
}

static int signal_is_ignored(int number)
{
	/* SIGPIPE and SIGXFSZ: write fails */
	return number == SIGINT || number == SIGHUP || number == SIGQUIT || number == SIGPIPE ||
	       number == SIGXFSZ || number == SIGTSTP;
}

void child__reset_signals(void)
{
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		signal(number, signal_is_ignored(number) ? SIG_IGN : SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void child__close_from(int first)
{
	struct rlimit limit;

	if (!syscall(SYS_close_range, first, ~0u, 0))
		return;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		_exit(EXIT_FAILURE);
	for (int fd = first; fd < (int)limit.rlim_cur; fd++)
		close(fd);
}
