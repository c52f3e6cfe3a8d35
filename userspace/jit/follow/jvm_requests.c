/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attach protocol (OpenJDK, src/hotspot/os/posix/attachListener_posix.cpp): with a file
 * .attach_pidNUMBER in its /tmp, SIGQUIT makes a JVM listen on .java_pidNUMBER there; without it,
 * print its threads. The JVM reads "1", a command and three arguments, each ended by NUL, and
 * answers with a status line. It accepts only its own user. SIGQUIT would kill a process that does
 * not catch it, so that is checked first.
 */
#include "jit/follow/jvm_requests.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/proc_task.h"
#include "jit/follow/jit_owner.h"
#include "tenants/child.h"
#include "tenants/tenant_open.h"

#define MAPS_MAX	(64u << 20)
#define LISTEN_TRIES	50
#define TRY_MS		20
#define ANSWER_MS	3000
#define REQUEST_SECONDS 5 /* for a whole request */

/* ---- may it get a request? ------------------------------------------------------------------- */

static bool is_jvm(pid_t pid)
{
	_cleanup_free_ char *maps = NULL;
	size_t size;

	return !read_file_at(AT_FDCWD, proc_path(pid, "maps").text, MAPS_MAX, &maps, &size) &&
	       strstr(maps, "/libjvm.so\n");
}

/* ---- the child ------------------------------------------------------------------------------- */

/* The child's descriptors: the process's /tmp and pidfd. */
enum { JVM_TMP = CHILD_FIRST_FD, JVM_PIDFD };

struct attach_names {
	char trigger[32]; /* names in /tmp */
	char socket[32];
};

static const char REQUEST[] = "1\0jcmd\0Compiler.perfmap\0\0";

/* Does not follow a link of that name. */
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

/* Connects; makes the JVM listen first if it does not yet. */
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

/*
 * Starts a child with the process's user, so that a hang or crash affects only the child. Its pid
 * (exit status 0: the map was written) or negative errno. -ESRCH: the process takes no requests, or
 * not yet: a JVM that is just starting would not survive SIGQUIT.
 */
static pid_t begin_attach(const struct jit_owner *owner)
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
	/* the pid may have been reused, or the process may have called execve */
	if (jit_owner__read(owner->pid, &now) || !jit_owner__is_process(&now, owner) ||
	    !now.has_quit_handler || !is_jvm(owner->pid))
		return -ESRCH;
	plan.confine.uid = now.euid;
	plan.confine.gid = now.egid;
	snprintf(a.trigger, sizeof(a.trigger), ".attach_pid%d", owner->own_pid);
	snprintf(a.socket, sizeof(a.socket), ".java_pid%d", owner->own_pid);
	child = child__start(&plan, &socket);
	if (child > 0)
		close(socket);
	return child;
}

/* ---- requests -------------------------------------------------------------------------------- */

#define REQUEST_INTERVAL 10000000000ull /* ns */
#define KILL_PATIENCE	 1000000000ull
#define REQUEST_TRIES	 20 /* of a JVM that does not catch SIGQUIT yet */
#define RETRY_INTERVAL	 200000000ull
#define REAP_INTERVAL	 5000000ull

int jvm_requests__add(struct jvm_requests *a, const struct jit_owner *owner)
{
	const struct jvm_request jvm = {.owner = *owner};

	return is_jvm(owner->pid) ? vec_push(&a->jvms, jvm) : 0;
}

void jvm_requests__forget(struct jvm_requests *a, pid_t pid)
{
	for (size_t i = 0; i < a->jvms.count; i++)
		a->jvms.data[i].gone |= a->jvms.data[i].owner.pid == pid;
}

/*
 * True: the child has ended, or was killed and abandoned because it hangs in a file of the JVM. A
 * JVM that did not answer gets no further request.
 */
static bool reap_child(struct jvm_request *jvm, uint64_t now)
{
	uint64_t end = jvm->began + helper_classes[HELPER_JVM_CLIENT].wall_time;
	int status = 0;

	if (now > end)
		kill(jvm->child, SIGKILL);
	if (waitpid(jvm->child, &status, WNOHANG) == 0) {
		if (now < end + KILL_PATIENCE)
			return false;
		status = -1;
	}
	jvm->child = 0;
	jvm->gone |= !WIFEXITED(status) || WEXITSTATUS(status);
	jvm->next = jvm->began + REQUEST_INTERVAL;
	return true;
}

static void begin_request(struct jvm_request *jvm, uint64_t now)
{
	pid_t child = begin_attach(&jvm->owner);

	if (child > 0) {
		jvm->began = now;
		jvm->child = child;
	} else if (++jvm->tries < REQUEST_TRIES) { /* it may have just started */
		jvm->next = now + RETRY_INTERVAL;
	} else {
		jvm->gone = true;
	}
}

static void update_request(struct jvm_requests *a, size_t i, uint64_t now,
			   const struct jvm_requests_caller *caller)
{
	struct jvm_request *jvm = &a->jvms.data[i];

	if (jvm->child) {
		if (reap_child(jvm, now))
			caller->answered(caller->context, jvm->owner.pid);
	} else if (jvm->gone) {
		*jvm = a->jvms.data[--a->jvms.count];
	} else if (now >= jvm->next) {
		caller->touch(caller->context, &jvm->owner);
		begin_request(jvm, now);
		caller->touch(caller->context, NULL);
	}
}

void jvm_requests__send_due(struct jvm_requests *a, bool at_end,
			    const struct jvm_requests_caller *caller)
{
	uint64_t now = monotonic_ns();

	for (size_t i = 0; i < a->jvms.count && at_end && !a->sent_at_end; i++)
		a->jvms.data[i].next = 0;
	a->sent_at_end |= at_end;
	for (size_t i = a->jvms.count; i-- > 0;)
		update_request(a, i, now, caller);
}

bool jvm_requests__are_pending(const struct jvm_requests *a)
{
	return any_of(a->jvms.data, a->jvms.count, jvm, jvm->child);
}

uint64_t jvm_requests__next_due(const struct jvm_requests *a, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < a->jvms.count; i++)
		next = min_u64(next,
			       a->jvms.data[i].child ? now + REAP_INTERVAL : a->jvms.data[i].next);
	return next;
}

void jvm_requests__stop(struct jvm_requests *a)
{
	for (size_t i = 0; i < a->jvms.count; i++) {
		if (!a->jvms.data[i].child)
			continue;
		kill(a->jvms.data[i].child, SIGKILL);
		waitpid(a->jvms.data[i].child, NULL, WNOHANG);
		a->jvms.data[i].child = 0;
	}
}

void jvm_requests__fini(struct jvm_requests *a)
{
	vec_free(&a->jvms);
}
