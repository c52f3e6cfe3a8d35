/* SPDX-License-Identifier: BSD-2-Clause */
#include "helpers/keeper.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd_message.h"
#include "helpers/filter.h"

#define END_PATIENCE_MS 50

struct keeper {
	struct child_plan helper;
	struct filter *filter; /* of the helpers' class, made once */
};

/* ---- the keeper ------------------------------------------------------------------------------ */

/* Helpers are reaped here; those that are stuck are left to init. */
static void await_helpers(void)
{
	for (int i = 0; i < END_PATIENCE_MS && !waitpid(-1, NULL, WNOHANG); i++)
		usleep(1000);
}

static int run_keeper(const struct child_self *self)
{
	struct keeper k = {.helper = *(const struct child_plan *)self->data};
	enum helper_filter filter = helper_classes[k.helper.class].filter;

	signal(SIGCHLD, SIG_IGN); /* helpers that end need no wait */
	if (filter != HELPER_FILTER_NONE && !(k.filter = filter__new(filter)))
		return EXIT_FAILURE;
	for (;;) {
		size_t count = 1;
		int socket;
		char byte;
		ssize_t got = fd_message__receive(CHILD_SOCKET, &byte, 1, &socket, &count, 0);

		if (got <= 0) {
			await_helpers();
			return got < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
		}
		if (!count)
			continue;
		child__fork(&k.helper,
			    &(struct child_origin){.socket = socket, .filter = k.filter});
		close(socket);
	}
}

/* ---- the collector --------------------------------------------------------------------------- */

int keeper__start(enum helper_class_id class, const struct child_plan *helper, pid_t *keeper,
		  int *control)
{
	const struct child_plan plan = {.class = class,
					.name = helper_classes[helper->class].name,
					.run = run_keeper,
					.type = SOCK_SEQPACKET,
					.data = helper};
	pid_t pid = child__start(&plan, control);

	if (pid < 0)
		return pid;
	*keeper = pid;
	return 0;
}

int keeper__fork(int control, int *socket)
{
	int ends[2];
	ssize_t sent;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -EAGAIN;
	sent = fd_message__send(control, "", 1, NULL, 0, &ends[1], 1, MSG_DONTWAIT);
	close(ends[1]);
	if (sent < 0)
		close(ends[0]);
	else
		*socket = ends[0];
	return sent < 0 ? (int)sent : 0;
}
