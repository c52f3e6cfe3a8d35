/* SPDX-License-Identifier: BSD-2-Clause */
/* Ending early: see give_up.h. The handler calls async-signal-safe functions only. */
#include "cli/give_up.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/commands.h"

#define FILES_MAX 256

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};
#define ENDING_COUNT (sizeof(ending_signals) / sizeof(ending_signals[0]))

/*
 * The handler may come at any instruction: a path is whole before `count` counts it. All of it is
 * the property of this file.
 */
static struct {
	char paths[FILES_MAX][PATH_MAX];
	volatile sig_atomic_t count;
	volatile sig_atomic_t armed; /* the next signal ends the process */
	volatile sig_atomic_t signalled, from_terminal;
	volatile sig_atomic_t nothing_to_lose;
	int notice_fd; /* an eventfd, to wake the poll loop */
	bool watching;
	sigset_t original_mask;
	struct sigaction original[ENDING_COUNT], original_sigpipe;
} state = {.notice_fd = -1};

static void give_up_now(void)
{
	static const char loss[] = "\nsysprof: aborted; no profile written\n";
	static const char end[] = "\nsysprof: aborted\n";
	ssize_t ignored;

	for (int i = 0; i < state.count; i++)
		unlink(state.paths[i]);
	if (state.nothing_to_lose)
		ignored = write(STDERR_FILENO, end, sizeof(end) - 1);
	else
		ignored = write(STDERR_FILENO, loss, sizeof(loss) - 1);
	(void)ignored;
	_exit(EXIT_FAILED);
}

static void handle_signal(int number, siginfo_t *info, void *context)
{
	const uint64_t one = 1;
	int saved = errno;
	ssize_t ignored;

	(void)context;
	if (state.armed)
		give_up_now();
	state.armed = 1;
	/* a terminal's Ctrl-C comes from the kernel, kill(1) from a process */
	state.from_terminal = number == SIGINT && info->si_code == SI_KERNEL;
	state.signalled = 1;
	ignored = write(state.notice_fd, &one, sizeof(one));
	(void)ignored;
	errno = saved;
}

/*
 * An ignored SIGHUP (nohup) stays ignored. An ignored SIGINT does not: shells ignore it for jobs in
 * the background, where `kill -INT` is how a script ends a recording.
 */
static void install_handlers(void)
{
	struct sigaction action = {.sa_sigaction = handle_signal,
				   .sa_flags = SA_SIGINFO | SA_RESTART};
	sigset_t set;

	if (state.watching)
		return;
	state.watching = true;
	sigfillset(&action.sa_mask);
	sigemptyset(&set);
	for (size_t i = 0; i < ENDING_COUNT; i++) {
		sigaddset(&set, ending_signals[i]);
		sigaction(ending_signals[i], NULL, &state.original[i]);
		if (ending_signals[i] != SIGHUP || state.original[i].sa_handler != SIG_IGN)
			sigaction(ending_signals[i], &action, NULL);
	}
	sigprocmask(SIG_UNBLOCK, &set, &state.original_mask);
}

int give_up__watch(void)
{
	state.notice_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (state.notice_fd < 0)
		return -errno;
	install_handlers();
	return state.notice_fd;
}

bool give_up__signalled(bool *from_terminal)
{
	uint64_t count;
	ssize_t ignored = read(state.notice_fd, &count, sizeof(count));

	(void)ignored;
	if (!state.signalled)
		return false;
	*from_terminal = state.from_terminal;
	return true;
}

void give_up__expect_one_more(void)
{
	state.signalled = 0;
	state.armed = 0;
}

void give_up__arm(void)
{
	state.armed = 1;
	install_handlers();
}

void give_up__ignore_sigpipe(void)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGPIPE, &ignore, &state.original_sigpipe);
}

void give_up__restore_signals(void)
{
	sigaction(SIGPIPE, &state.original_sigpipe, NULL);
	for (size_t i = 0; i < ENDING_COUNT && state.watching; i++)
		sigaction(ending_signals[i], &state.original[i], NULL);
	sigprocmask(SIG_SETMASK, &state.original_mask, NULL);
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

void give_up__nothing_to_lose(void)
{
	give_up__forget_files();
	state.nothing_to_lose = 1;
	give_up__expect_one_more();
}
