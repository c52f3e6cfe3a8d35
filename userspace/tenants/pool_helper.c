/* SPDX-License-Identifier: BSD-2-Clause */
#include "tenants/pool_helper.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tenants/filter.h"
#include "tenants/pool.h"
#include "tenants/requests.h"

static struct message_buffer request, answer;

static int send_start(void)
{
	const uint32_t pid = (uint32_t)getpid();

	return message__send(
		CHILD_SOCKET,
		&(struct message){.frame = {.flags = MESSAGE_PROGRESS, .size = sizeof(pid)},
				  .bytes = &pid},
		0);
}

static int send_answer(const struct helper_job *job)
{
	answer.frame = (struct message_frame){.ticket = request.frame.ticket,
					      .service = request.frame.service,
					      .flags = MESSAGE_DONE,
					      .size = job->answer_size};
	if (!job->answer_fd_count)
		return message__write(CHILD_SOCKET, &answer);
	return message__send(CHILD_SOCKET,
			     &(struct message){.frame = answer.frame,
					       .bytes = answer.bytes,
					       .fds = job->answer_fds,
					       .fd_count = job->answer_fd_count},
			     0);
}

static int serve_one(const struct helper_pool_options *options)
{
	struct helper_job job = {.request = request.bytes,
				 .request_size = request.frame.size,
				 .fds = request.fds,
				 .fd_count = request.fd_count,
				 .answer = answer.bytes};
	int err;

	memset(answer.bytes, 0, sizeof(answer.bytes));
	options->services[request.frame.service](&job);
	err = send_answer(&job);
	/* after the answer: closing a file can hang as well */
	message__close_fds(job.answer_fds, job.answer_fd_count);
	message__close_fds(job.fds, job.fd_count);
	return err;
}

/* The pool reads the kernel's account of this process before it closes the socket. */
static int await_end(void)
{
	char byte;

	return read(CHILD_SOCKET, &byte, 1) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int pool_helper__run(const struct child_self *self)
{
	const struct helper_pool_options *options = self->data;

	if (send_start())
		return EXIT_FAILURE;
	for (;;) {
		int got = message__receive(CHILD_SOCKET, &request, 0);

		if (got <= 0)
			return got ? EXIT_FAILURE : EXIT_SUCCESS;
		if (options->once && filter__enter(self->filter))
			return EXIT_FAILURE;
		if (serve_one(options))
			return EXIT_FAILURE;
		if (options->once)
			return await_end();
	}
}
