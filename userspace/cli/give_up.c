/* SPDX-License-Identifier: BSD-2-Clause */
/* Ending early: see give_up.h. The handler calls async-signal-safe functions only. */
#include "cli/give_up.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/commands.h"

#define FILES_MAX 256

/*
 * The handler may come at any instruction: a path is whole before `count` counts it. All of it is
 * the property of this file.
 */
static struct {
	char paths[FILES_MAX][PATH_MAX];
	volatile sig_atomic_t count;
	sigset_t original;
	struct sigaction original_sigpipe;
} state;

static sigset_t ending_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	return set;
}

int give_up__signal_fd(void)
{
	sigset_t set = ending_signals();
	int fd;

	if (sigprocmask(SIG_BLOCK, &set, &state.original))
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

void give_up__ignore_sigpipe(void)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGPIPE, &ignore, &state.original_sigpipe);
}

void give_up__restore_signals(void)
{
	sigaction(SIGPIPE, &state.original_sigpipe, NULL);
	sigprocmask(SIG_SETMASK, &state.original, NULL);
}

static void give_up_now(int signal_number)
{
	static const char text[] = "sysprof: given up: no profile was written\n";
	ssize_t ignored;

	(void)signal_number;
	for (int i = 0; i < state.count; i++)
		unlink(state.paths[i]);
	ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
	(void)ignored;
	_exit(EXIT_FAILED);
}

void give_up__arm(void)
{
	struct sigaction action = {.sa_handler = give_up_now};
	sigset_t set = ending_signals();

	sigfillset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void give_up__remember_file(const char *path)
{
	if (state.count >= FILES_MAX || strlen(path) >= PATH_MAX)
		return;
	memcpy(state.paths[state.count], path, strlen(path) + 1);
	state.count++;
}

void give_up__forget_files(void)
{
	state.count = 0;
}
