/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attach protocol (OpenJDK, src/hotspot/os/posix/attachListener_posix.cpp): beside .attach_pidNUMBER in its /tmp,
 * SIGQUIT makes a JVM listen on .java_pidNUMBER there. It takes "1", a command and three arguments, each ended by
 * NUL, and answers with a status line. It speaks only to its own user. Without that file SIGQUIT makes it print its
 * threads. A process that does not catch SIGQUIT would be killed, so that is checked first.
 */
#include "jitwatch/jvm_attach.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/minmax.h"
#include "base/tenant_open.h"
#include "helpers/child.h"

#define MAPS_MAX	(64u << 20)
#define LISTEN_TRIES	50
#define TRY_MS		20
#define ANSWER_MS	3000
#define REQUEST_SECONDS 5 /* all of it */

/* ---- may it get a request? ------------------------------------------------------------------- */

bool jvm_is_one(pid_t pid)
{
	_cleanup_free_ char *maps = NULL;
	char path[64];
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	return !read_file_at(AT_FDCWD, path, MAPS_MAX, &maps, &size) &&
	       strstr(maps, "/libjvm.so\n");
}

/* ---- the child ------------------------------------------------------------------------------- */

/* Its descriptors: the process's /tmp, and a pidfd of it. */
enum { JVM_TMP = CHILD_FIRST_FD, JVM_PIDFD };

struct attach_names {
	char trigger[32]; /* names in /tmp */
	char socket[32];
};

static const char REQUEST[] = "1\0jcmd\0Compiler.perfmap\0\0";

/* The socket itself, wherever a link of that name would lead. */
static int connect_to(const struct attach_names *a)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int at = openat(JVM_TMP, a->socket, O_PATH | O_NOFOLLOW | O_CLOEXEC), fd = -1;
	struct stat st;

	if (at < 0)
		return -1;
	if (!fstat(at, &st) && S_ISSOCK(st.st_mode))
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", at);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		fd = -1;
	}
	close(at);
	return fd;
}

/* It listens already, or is made to. */
static int reach_listener(const struct attach_names *a)
{
	int fd = connect_to(a), trigger;

	if (fd >= 0)
		return fd;
	trigger = openat(JVM_TMP, a->trigger, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC,
			 0600);
	if (trigger < 0)
		return -1;
	if (!syscall(SYS_pidfd_send_signal, JVM_PIDFD, SIGQUIT, NULL, 0))
		for (int i = 0; i < LISTEN_TRIES && fd < 0; i++) {
			poll(NULL, 0, TRY_MS);
			fd = connect_to(a);
		}
	unlinkat(JVM_TMP, a->trigger, 0);
	return fd;
}

static bool request_map(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	char status = 0, rest[512];

	/* three arguments: the literal's own NUL is the last one */
	if (write(fd, REQUEST, sizeof(REQUEST)) != sizeof(REQUEST))
		return false;
	if (poll(&ready, 1, ANSWER_MS) != 1 || read(fd, &status, 1) != 1)
		return false;
	while (poll(&ready, 1, ANSWER_MS) == 1 && read(fd, rest, sizeof(rest)) > 0)
		;
	return status == '0';
}

static int talk_to_jvm(const struct child_self *self)
{
	const struct attach_names *a = self->data;
	int fd;

	alarm(REQUEST_SECONDS);
	fd = reach_listener(a);
	return fd >= 0 && request_map(fd) ? 0 : 1;
}

/* ---- the parent ------------------------------------------------------------------------------ */

static int open_tmp(pid_t pid)
{
	_cleanup_close_ int root = tenant_root(pid);
	int tmp;

	if (root < 0)
		return root;
	tmp = openat(root, "tmp", O_DIRECTORY | O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return tmp < 0 ? -errno : tmp;
}

pid_t jvm_attach__begin(const struct jit_owner *owner)
{
	_cleanup_close_ int tmp = open_tmp(owner->pid);
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, owner->pid, 0);
	const int fds[] = {tmp, pidfd};
	struct attach_names a = {};
	struct child_plan plan = {.class = HELPER_JVM_CLIENT,
				  .run = talk_to_jvm,
				  .type = SOCK_STREAM,
				  .fds = fds,
				  .fd_count = 2,
				  .data = &a};
	struct jit_owner now;
	pid_t child;
	int socket;

	if (tmp < 0)
		return tmp;
	if (pidfd < 0)
		return -errno;
	/* the number may be another process's by now, or the same one's that is another program */
	if (jit_owner__read(owner->pid, &now) || !jit_owner__is_process(&now, owner) ||
	    !now.has_quit_handler || !jvm_is_one(owner->pid))
		return -ESRCH;
	plan.confine.uid = owner->euid;
	plan.confine.gid = now.egid;
	snprintf(a.trigger, sizeof(a.trigger), ".attach_pid%d", owner->own_pid);
	snprintf(a.socket, sizeof(a.socket), ".java_pid%d", owner->own_pid);
	child = child__start(&plan, &socket);
	if (child > 0)
		close(socket);
	return child;
}
