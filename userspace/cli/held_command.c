/* SPDX-License-Identifier: BSD-2-Clause */
/* Fork, wait on a pipe, exec: see held_command.h. */
#include "cli/held_command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/command_libraries.h"
#include "cli/commands.h"
#include "cli/give_up.h"

#define READY_MS 250 /* libraries on a disk that is slower than that are not waited for */

/* Is it what execvp() runs? execvp() reports errors. */
static bool map_if_executable(const char *path)
{
	struct stat st;

	if (access(path, X_OK) || stat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	command_libraries__map(path);
	return true;
}

/*
 * Maps COMMAND's file and its libraries. Unwind tables of targets are built before the first tick,
 * so those of the program, and of its loader and the C library, which this process has mapped, too,
 * are there at its first instruction.
 */
static void map_program(const char *name)
{
	const char *directory = getenv("PATH") ?: "/bin:/usr/bin"; /* as execvp() */
	char path[PATH_MAX];
	bool found = false;

	if (strchr(name, '/')) {
		map_if_executable(name);
		return;
	}
	while (!found && directory) {
		const char *end = strchrnul(directory, ':');
		int length = (int)(end - directory); /* 0: the working directory */
		int size = snprintf(path, sizeof(path), "%.*s%s%s", length, directory,
				    length ? "/" : "", name);

		found = size < (int)sizeof(path) && map_if_executable(path);
		directory = *end ? end + 1 : NULL;
	}
}

/* In the child. Its parent has no thread but one, so no lock is held. */
static void wait_and_exec(int release_fd, int error_fd, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	int error = 0;
	char go;

	/* a tick on the way to exec must not show sysprof */
	prctl(PR_SET_NAME, slash ? slash + 1 : argv[0]);
	give_up__restore_signals();
	map_program(argv[0]);
	write_full(error_fd, &error, sizeof(error));
	/* end of file: the recording could not begin, so nothing is run */
	if (read(release_fd, &go, 1) != 1)
		_exit(EXIT_FAILED);
	execvp(argv[0], argv);
	error = errno;
	write_full(error_fd, &error, sizeof(error));
	_exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

int held_command__start(struct held_command *c, char **argv, struct failure *failure)
{
	_cleanup_close_ int release_read = -1, release_write = -1;
	_cleanup_close_ int error_read = -1, error_write = -1;
	sigset_t all, mask;
	int pipes[2];
	pid_t pid;

	*c = (struct held_command){.pidfd = -1, .release_fd = -1, .error_fd = -1};
	if (pipe2(pipes, O_CLOEXEC))
		return fail(failure, -errno, "cannot start %s: %s", argv[0], strerror(errno));
	release_read = pipes[0];
	release_write = pipes[1];
	if (pipe2(pipes, O_CLOEXEC))
		return fail(failure, -errno, "cannot start %s: %s", argv[0], strerror(errno));
	error_read = pipes[0];
	error_write = pipes[1];
	/* a signal is for the child or for us, not for our handler in the child */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	pid = fork();
	if (pid)
		sigprocmask(SIG_SETMASK, &mask, NULL);
	if (pid < 0)
		return fail(failure, -errno, "cannot start %s: %s", argv[0], strerror(errno));
	if (pid == 0) {
		close(steal_fd(release_write)); /* or our own end would hold us forever */
		wait_and_exec(release_read, error_write, argv);
	}
	c->pid = pid;
	c->pidfd = syscall(SYS_pidfd_open, pid, 0);
	c->release_fd = steal_fd(release_write);
	c->error_fd = steal_fd(error_read);
	if (c->pidfd < 0)
		return fail(failure, -errno, "cannot watch %s: %s", argv[0], strerror(errno));
	fcntl(c->pidfd, F_SETFD, FD_CLOEXEC);
	return 0;
}

/* The next error of the child; 0: none. */
static int read_error(const struct held_command *c)
{
	int error = 0;
	ssize_t got;

	do {
		got = read(c->error_fd, &error, sizeof(error));
	} while (got < 0 && errno == EINTR);
	return got == sizeof(error) ? error : 0;
}

void held_command__await(struct held_command *c)
{
	struct pollfd ready = {.fd = c->error_fd, .events = POLLIN};

	if (poll(&ready, 1, READY_MS) == 1) {
		read_error(c);
		c->ready = true;
	}
}

int held_command__release(struct held_command *c, const char *name, struct failure *failure)
{
	int error;

	if (write_full(c->release_fd, "g", 1))
		return fail(failure, -ESRCH, "cannot run %s: it was killed before it started",
			    name);
	close(steal_fd(c->release_fd));
	if (!c->ready)
		read_error(c);
	error = read_error(c);
	close(steal_fd(c->error_fd));
	c->running = true;
	if (error)
		return fail(failure, -error, "cannot run %s: %s", name, strerror(error));
	return 0;
}

bool held_command__poll(struct held_command *c)
{
	struct rusage usage;

	if (c->ended || !c->pid)
		return c->ended;
	if (wait4(c->pid, &c->status, WNOHANG, &usage) != c->pid)
		return false;
	c->ended = true;
	c->cpu_time = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000ull +
		      (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000ull;
	return true;
}

int held_command__exit_code(const struct held_command *c)
{
	if (WIFSIGNALED(c->status))
		return EXIT_SIGNAL_BASE + WTERMSIG(c->status);
	return WEXITSTATUS(c->status);
}

void held_command__fini(struct held_command *c)
{
	if (c->release_fd >= 0)
		close(steal_fd(c->release_fd));
	if (c->pid && !c->running && !c->ended)
		waitpid(c->pid, &c->status, 0); /* it meets the end of file and exits */
	if (c->error_fd >= 0)
		close(steal_fd(c->error_fd));
	if (c->pidfd >= 0)
		close(steal_fd(c->pidfd));
	c->pid = 0;
}
