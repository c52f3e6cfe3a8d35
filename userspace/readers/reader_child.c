/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/reader_child.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/fd_message.h"
#include "helpers/child.h"

#define END_PATIENCE_MS 50

static void close_all(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* ---- a reader -------------------------------------------------------------------------------- */

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
	sent = fd_message__send(CHILD_SOCKET, &head, sizeof(head), answer, job->answer_size,
				job->answer_fds, job->answer_fd_count, 0);
	/* first the answer: closing a file can be held up as well */
	close_all(job->answer_fds, job->answer_fd_count);
	close_all(job->fds, job->fd_count);
	if (sent < 0)
		_exit(EXIT_FAILURE);
}

static int run_reader(const struct child_self *self)
{
	static struct {
		uint64_t service;
		char data[READER_REQUEST_MAX];
	} request;
	struct reader_head greeting = {.pid = (uint32_t)getpid()};
	int fds[READER_FDS_MAX];

	if (fd_message__send(CHILD_SOCKET, &greeting, sizeof(greeting), NULL, 0, NULL, 0, 0) < 0)
		return EXIT_FAILURE;
	for (;;) {
		struct reader_job job = {
			.request = request.data, .fds = fds, .fd_count = READER_FDS_MAX};
		ssize_t got = fd_message__receive(CHILD_SOCKET, &request, sizeof(request), fds,
						  &job.fd_count, 0);

		if (got <= (ssize_t)sizeof(request.service))
			return got ? EXIT_FAILURE : EXIT_SUCCESS;
		job.request_size = (size_t)got - sizeof(request.service);
		serve_one(self->data, request.service, &job);
	}
}

/* ---- the keeper ------------------------------------------------------------------------------ */

static void fork_reader(const struct reader_pool_options *options, int socket)
{
	const struct child_plan plan = {
		.class = HELPER_READER, .name = options->name, .run = run_reader, .data = options};

	child__fork(&plan, &(struct child_origin){.socket = socket});
}

/* Readers are reaped here; those that are stuck are left to init. */
static void await_readers(void)
{
	for (int i = 0; i < END_PATIENCE_MS && !waitpid(-1, NULL, WNOHANG); i++)
		usleep(1000);
}

static int run_keeper(const struct child_self *self)
{
	signal(SIGCHLD, SIG_IGN); /* readers that end need no wait */
	for (;;) {
		size_t count = 1;
		int socket;
		char byte;
		ssize_t got = fd_message__receive(CHILD_SOCKET, &byte, 1, &socket, &count, 0);

		if (got <= 0) {
			await_readers();
			return got < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
		}
		if (count) {
			fork_reader(self->data, socket);
			close(socket);
		}
	}
}

int reader_keeper__start(const struct reader_pool_options *options, pid_t *keeper, int *control)
{
	const struct child_plan plan = {.class = HELPER_KEEPER,
					.name = options->name,
					.run = run_keeper,
					.type = SOCK_SEQPACKET,
					.data = options};
	pid_t pid = child__start(&plan, control);

	if (pid < 0)
		return pid;
	*keeper = pid;
	return 0;
}
