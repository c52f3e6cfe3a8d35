/* SPDX-License-Identifier: BSD-2-Clause */
#include "tenants/child.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"

#define ABOVE_ALL 64 /* descriptors are first moved above this number */

/* ---- signals --------------------------------------------------------------------------------- */

static bool signal_is_ignored(int number)
{
	/* SIGTERM: the collector ends its children itself; SIGPIPE, SIGXFSZ: write() fails */
	return number == SIGINT || number == SIGHUP || number == SIGQUIT || number == SIGTERM ||
	       number == SIGPIPE || number == SIGXFSZ || number == SIGTSTP;
}

static void reset_signals(void)
{
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		signal(number, signal_is_ignored(number) ? SIG_IGN : SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static void close_from(int first)
{
	struct rlimit limit;

	if (!syscall(SYS_close_range, first, ~0u, 0))
		return;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		_exit(EXIT_FAILURE);
	for (int fd = first; fd < (int)limit.rlim_cur; fd++)
		close(fd);
}

static void set_aside(int *fd)
{
	if (*fd < 0)
		return;
	*fd = fcntl(*fd, F_DUPFD, ABOVE_ALL);
	if (*fd < 0)
		_exit(EXIT_FAILURE);
}

static void place(int from, int to)
{
	if (from < 0)
		close(to);
	else if (dup2(from, to) != to)
		_exit(EXIT_FAILURE);
}

/* Otherwise an abandoned process would keep the output's pipe open. */
static void detach_streams(const struct helper_class *class)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC), last = STDERR_FILENO;

#ifdef __SANITIZE_ADDRESS__
	last = STDOUT_FILENO; /* the sanitizer reports on standard error */
#endif
	if (class->shows_debug && log_debug_wanted)
		last = STDOUT_FILENO;
	set_aside(&nothing);
	if (nothing < 0)
		_exit(EXIT_FAILURE);
	for (int fd = 0; fd <= last; fd++)
		place(nothing, fd);
}

/* Gives descriptors their numbers and closes all others. */
static void arrange_descriptors(const struct child_plan *plan, int socket,
				const struct helper_class *class)
{
	int fds[CHILD_FDS_MAX] = {};

	if (plan->fd_count > CHILD_FDS_MAX)
		_exit(EXIT_FAILURE);
	set_aside(&socket);
	for (size_t i = 0; i < plan->fd_count; i++) {
		fds[i] = plan->fds[i];
		set_aside(&fds[i]);
	}
	if (!class->as_parent)
		detach_streams(class);
	place(socket, CHILD_SOCKET);
	for (size_t i = 0; i < plan->fd_count; i++)
		place(fds[i], CHILD_FIRST_FD + (int)i);
	close_from(CHILD_FIRST_FD + (int)plan->fd_count);
}

/* ---- the child ------------------------------------------------------------------------------- */

static void end_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(EXIT_FAILURE);
}

static void give_up_rights(const struct child_plan *plan, const struct helper_class *class,
			   struct child_self *self)
{
	if (!class->shows_debug)
		log_set_level(LOG_ERROR); /* its owner reports errors */
	reset_signals();
	prctl(PR_SET_NAME, plan->name ? plan->name : class->name);
	end_with(self->parent);
	self->confined = confine(class, &plan->confine);
	if (self->confined && !class->unconfined)
		_exit(EXIT_FAILURE);
	/* a change of user resets dumpable and the death signal */
	if (!class->read_by_parent)
		prctl(PR_SET_DUMPABLE, 0);
	end_with(self->parent);
}

static void __attribute__((noreturn))
become_child(const struct child_plan *plan, const struct child_origin *origin, pid_t parent)
{
	const struct helper_class *class = &helper_classes[plan->class];
	struct child_self self = {.data = plan->data,
				  .size = plan->size,
				  .fd_count = plan->fd_count,
				  .filter = origin->filter,
				  .parent = parent};

	arrange_descriptors(plan, origin->socket, class);
	setpgid(0, 0); /* Ctrl-C in a terminal is for the collector only */
	if (!class->as_parent)
		give_up_rights(plan, class, &self);
	_exit(plan->run(&self));
}

/* ---- the parent ------------------------------------------------------------------------------ */

/* Only fork() resets the C library's locks; callers of the other have one thread. */
static pid_t fork_now(bool sibling)
{
	return sibling ? (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL)
		       : fork();
}

pid_t child__fork(const struct child_plan *plan, const struct child_origin *origin)
{
	pid_t parent = origin->sibling ? getppid() : getpid(), pid;
	bool as_parent = helper_classes[plan->class].as_parent;
	sigset_t all, before;
	int err;

	/* so that no handler of the parent runs in the child */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork_now(origin->sibling);
	err = errno;
	if (pid || as_parent)
		sigprocmask(SIG_SETMASK, &before, NULL);
	if (!pid)
		become_child(plan, origin, parent);
	return pid < 0 ? -err : pid;
}

pid_t child__start(const struct child_plan *plan, int *socket)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, plan->type | SOCK_CLOEXEC, 0, ends))
		return -errno;
	pid = child__fork(plan, &(struct child_origin){.socket = ends[1]});
	close(ends[1]);
	if (pid < 0)
		close(ends[0]);
	else
		*socket = ends[0];
	return pid;
}
