/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/reader_child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child_process.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/fd_message.h"
#include "base/log.h"

#define MEMORY_MAX	(2ull << 30)
#define END_PATIENCE_MS 50

#define SOCKET		3 /* of the keeper and of each reader; nothing else is open */

/*
 * To look below /proc/PID (root, map_files, memory), and at files of any user. map_files wants the last two,
 * the second of which is newer (5.9).
 */
static const int kept_capabilities[] = {CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_SYS_ADMIN,
					CAP_CHECKPOINT_RESTORE};

static void close_all(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* ---- a reader -------------------------------------------------------------------------------- */

static void keep_capabilities(void)
{
	struct __user_cap_header_struct version = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct now[_LINUX_CAPABILITY_U32S_3] = {};
	uint32_t wanted[_LINUX_CAPABILITY_U32S_3] = {};

	for (size_t i = 0; i < sizeof(kept_capabilities) / sizeof(kept_capabilities[0]); i++)
		wanted[CAP_TO_INDEX(kept_capabilities[i])] |= CAP_TO_MASK(kept_capabilities[i]);
	if (syscall(SYS_capget, &version, now))
		_exit(EXIT_FAILURE);
	for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		now[i].permitted &= wanted[i];
		now[i].effective = now[i].permitted;
		now[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &version, now) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		_exit(EXIT_FAILURE);
}

static void limit_itself(void)
{
	struct rlimit memory = {MEMORY_MAX, MEMORY_MAX}, none = {0, 0};

#ifndef __SANITIZE_ADDRESS__ /* which reserves terabytes */
	setrlimit(RLIMIT_AS, &memory);
#else
	(void)memory;
#endif
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
}

static void serve_one(const struct reader_pool_options *options, uint64_t service,
		      struct reader_job *job)
{
	static char answer[READER_ANSWER_MAX];
	struct reader_head head = {};
	uint64_t cpu = thread_cpu_ns();
	ssize_t sent;

	memset(answer, 0, sizeof(answer));
	job->answer = answer;
	options->services[service](job);
	head.cpu_ns = thread_cpu_ns() - cpu;
	head.size = (uint32_t)job->answer_size;
	sent = fd_message__send(SOCKET, &head, sizeof(head), answer, job->answer_size,
				job->answer_fds, job->answer_fd_count, 0);
	/* first the answer: closing a file can be held up as well */
	close_all(job->answer_fds, job->answer_fd_count);
	close_all(job->fds, job->fd_count);
	if (sent < 0)
		_exit(EXIT_FAILURE);
}

static void __attribute__((noreturn)) reader_main(const struct reader_pool_options *options)
{
	static struct {
		uint64_t service;
		char data[READER_REQUEST_MAX];
	} request;
	struct reader_head greeting = {.pid = (uint32_t)getpid()};
	int fds[READER_FDS_MAX];

	limit_itself();
	keep_capabilities();
	if (fd_message__send(SOCKET, &greeting, sizeof(greeting), NULL, 0, NULL, 0, 0) < 0)
		_exit(EXIT_FAILURE);
	for (;;) {
		struct reader_job job = {
			.request = request.data, .fds = fds, .fd_count = READER_FDS_MAX};
		ssize_t got = fd_message__receive(SOCKET, &request, sizeof(request), fds,
						  &job.fd_count, 0);

		if (got <= (ssize_t)sizeof(request.service))
			_exit(got ? EXIT_FAILURE : EXIT_SUCCESS);
		job.request_size = (size_t)got - sizeof(request.service);
		serve_one(options, request.service, &job);
	}
}

/* ---- the keeper ------------------------------------------------------------------------------ */

static void fork_reader(const struct reader_pool_options *options, int socket)
{
	pid_t keeper = getpid(), pid = fork();

	if (pid)
		return;
	/* the same number in all of them, and the keeper's own socket is closed with it */
	if (dup2(socket, SOCKET) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != keeper)
		_exit(EXIT_FAILURE);
	child__close_from(SOCKET + 1);
	reader_main(options);
}

/* So that they are nobody else's to bury. Those that are stuck are. */
static void await_readers(void)
{
	for (int i = 0; i < END_PATIENCE_MS && !waitpid(-1, NULL, WNOHANG); i++)
		usleep(1000);
}

static void __attribute__((noreturn)) keeper_main(const struct reader_pool_options *options)
{
	char byte;
	int socket;

	prctl(PR_SET_NAME, options->name);
	for (;;) {
		size_t count = 1;
		ssize_t got = fd_message__receive(SOCKET, &byte, 1, &socket, &count, 0);

		if (got <= 0) {
			await_readers();
			_exit(got < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
		}
		if (count) {
			fork_reader(options, socket);
			close(socket);
		}
	}
}

/* A group of its own: what a terminal sends on Ctrl-C is the collector's. */
static void leave_the_parent(int control)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	log_set_level(LOG_ERROR);
	child__reset_signals();
	signal(SIGCHLD, SIG_IGN); /* nobody waits for readers */
	setpgid(0, 0);
	control = fcntl(control, F_DUPFD, SOCKET + 1);
	nothing = fcntl(nothing, F_DUPFD, SOCKET + 1);
	for (int fd = 0; fd < SOCKET; fd++) {
#ifdef __SANITIZE_ADDRESS__
		if (fd == STDERR_FILENO) /* where the sanitizer reports */
			continue;
#endif
		dup2(nothing, fd);
	}
	if (dup2(control, SOCKET) < 0)
		_exit(EXIT_FAILURE);
	child__close_from(SOCKET + 1);
}

int reader_keeper__start(const struct reader_pool_options *options, pid_t *keeper, int *control)
{
	int socket;
	pid_t pid = child__fork(SOCK_SEQPACKET, &socket);

	if (!pid) {
		leave_the_parent(socket);
		keeper_main(options);
	}
	if (pid < 0)
		return pid;
	*keeper = pid;
	*control = socket;
	return 0;
}
