/* SPDX-License-Identifier: BSD-2-Clause */
#include "tenants/keeper.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tenants/filter.h"
#include "tenants/message.h"

#define END_PATIENCE_MS 200
#define FORK_SECONDS	2 /* limit for a sibling's fork */

/* A request's bytes, or none. Its descriptors: the helper's end of the socket, then the plan's. */
struct order {
	struct confine_options confine;
	_Alignas(8) char data[KEEPER_DATA_MAX];
};

struct keeper {
	struct child_plan helper;
	struct filter *filter; /* of the helpers' class, made once */
};

/* ---- the keeper ------------------------------------------------------------------------------ */

/* So that their CPU time is in that of this process's children, which the collector reads. */
static void reap_helpers(int number)
{
	int saved = errno;

	(void)number;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	errno = saved;
}

/* Waits until all have ended, 200 ms at most. */
static void await_helpers(void)
{
	for (int i = 0; i < END_PATIENCE_MS && waitpid(-1, NULL, WNOHANG) >= 0; i++)
		usleep(1000);
}

static pid_t fork_helper(const struct keeper *k, const struct message_buffer *request)
{
	const struct order *order = (const void *)request->bytes;
	struct child_plan plan = k->helper;

	if (request->frame.size >= offsetof(struct order, data)) {
		plan.confine = order->confine;
		plan.data = order->data;
		plan.size = request->frame.size - offsetof(struct order, data);
	}
	plan.fds = request->fds + 1;
	plan.fd_count = request->fd_count - 1;
	return child__fork(&plan,
			   &(struct child_origin){.socket = request->fds[0],
						  .sibling = helper_classes[plan.class].reaped,
						  .filter = k->filter});
}

/* 0; negative errno: the collector has ended. */
static int serve(const struct keeper *k, const struct message_buffer *request)
{
	int64_t pid = request->fd_count ? fork_helper(k, request) : -EBADMSG;

	message__close_fds(request->fds, request->fd_count);
	if (!helper_classes[k->helper.class].reaped)
		return 0;
	return message__send(
		CHILD_SOCKET,
		&(struct message){.frame = {.flags = MESSAGE_DONE, .size = sizeof(pid)},
				  .bytes = &pid},
		0);
}

static int run_keeper(const struct child_self *self)
{
	const struct sigaction ended = {.sa_handler = reap_helpers, .sa_flags = SA_RESTART};
	struct keeper k = {.helper = *(const struct child_plan *)self->data};
	enum helper_filter filter = helper_classes[k.helper.class].filter;
	static struct message_buffer request;
	int got;

	sigaction(SIGCHLD, &ended, NULL);
	if (filter != HELPER_FILTER_NONE && !(k.filter = filter__new(filter)))
		return EXIT_FAILURE;
	do
		got = message__receive(CHILD_SOCKET, &request, 0);
	while (got > 0 && !serve(&k, &request));
	await_helpers();
	return got < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- the collector --------------------------------------------------------------------------- */

int keeper__start(enum helper_class_id class, const struct child_plan *helper,
		  struct helper_process *keeper)
{
	const struct child_plan plan = {.class = class,
					.name = helper_classes[helper->class].name,
					.run = run_keeper,
					.type = SOCK_SEQPACKET,
					.data = helper};
	const struct timeval patience = {.tv_sec = FORK_SECONDS};
	int err = helper_process__start(keeper, NULL, &plan);

	if (!err)
		setsockopt(keeper->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return err;
}

static int request_helper(int control, const struct child_plan *helper, int end)
{
	struct message message = {};
	int fds[MESSAGE_FDS_MAX] = {end}, err;
	struct order order;

	if (helper && (helper->size > sizeof(order.data) || helper->fd_count >= MESSAGE_FDS_MAX))
		return -EMSGSIZE;
	if (helper) {
		order.confine = helper->confine;
		memcpy(order.data, helper->data, helper->size);
		if (helper->fd_count)
			memcpy(fds + 1, helper->fds, helper->fd_count * sizeof(*fds));
		message.frame.size = offsetof(struct order, data) + helper->size;
	}
	message.bytes = &order;
	message.fds = fds;
	message.fd_count = 1 + (helper ? helper->fd_count : 0);
	err = message__send(control, &message, MSG_DONTWAIT);
	return message__is_for_now(err) ? -EAGAIN : err;
}

static pid_t await_pid(int control)
{
	struct message_buffer answer;
	int64_t pid;

	if (message__receive(control, &answer, 0) != 1 || answer.frame.size != sizeof(pid))
		return -EPIPE;
	memcpy(&pid, answer.bytes, sizeof(pid));
	return (pid_t)pid;
}

pid_t keeper__fork(int control, const struct child_plan *helper, int *socket)
{
	bool reaped = helper && helper_classes[helper->class].reaped;
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -EAGAIN;
	pid = request_helper(control, helper, ends[1]);
	close(ends[1]);
	if (!pid && reaped)
		pid = await_pid(control);
	if (pid < 0)
		close(ends[0]);
	else
		*socket = ends[0];
	return pid;
}

void keeper__stop(struct helper_process *keeper)
{
	pid_t pid = keeper->pid;

	helper_process__let_go(keeper);
	if (pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
}
