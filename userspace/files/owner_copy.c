/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/owner_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/proc_task.h"
#include "tenants/confine.h"
#include "tenants/file_system.h"
#include "tenants/message.h"
#include "tenants/tenant_open.h"

#define GROUPS_MAX  64
#define STATUS_SIZE (64u * 1024)

struct ids {
	uid_t uid;
	gid_t gid;
	gid_t groups[GROUPS_MAX];
	size_t group_count;
};

/* What the child reports. */
struct report {
	int err;
	struct stat st;
};

/* ---- whose file it is ------------------------------------------------------------------------ */

static int read_ids(pid_t pid, struct ids *ids)
{
	_cleanup_free_ char *text = NULL;
	const char *uids, *gids, *groups;
	size_t size;
	int err = read_file_at(AT_FDCWD, proc_path(pid, "status").text, STATUS_SIZE, &text, &size);
	int length;

	if (err)
		return err;
	uids = strstr(text, "\nUid:");
	gids = strstr(text, "\nGid:");
	groups = strstr(text, "\nGroups:");
	if (!uids || !gids || sscanf(uids, "\nUid: %u", &ids->uid) != 1 ||
	    sscanf(gids, "\nGid: %u", &ids->gid) != 1)
		return -EBADMSG;
	for (groups = groups ? groups + strlen("\nGroups:") : "";
	     ids->group_count < GROUPS_MAX &&
	     sscanf(groups, "%*[ \t]%u%n", &ids->groups[ids->group_count], &length) == 1;
	     groups += length)
		ids->group_count++;
	return 0;
}

/* The id that 0 of the namespace is outside. */
static bool read_root_of(pid_t pid, const char *map, unsigned int *id)
{
	_cleanup_free_ char *text = NULL;
	size_t size;

	return !read_file_at(AT_FDCWD, proc_path(pid, map).text, STATUS_SIZE, &text, &size) &&
	       sscanf(text, " 0 %u", id) == 1;
}

/* The ids of its user namespace's owner. -ENOENT: it is in ours, or the owner has others there. */
static int read_owner(pid_t pid, int namespace, struct ids *ids)
{
	uid_t owner;

	if (namespace < 0 || ioctl(namespace, NS_GET_OWNER_UID, &owner) ||
	    !read_root_of(pid, "uid_map", &ids->uid) || !read_root_of(pid, "gid_map", &ids->gid))
		return -ENOENT;
	return ids->uid == owner ? 0 : -ENOENT;
}

/* ---- the child ------------------------------------------------------------------------------- */

/* -EACCES: not without privileges, or we may not. */
static int become(const struct ids *ids)
{
	if (!ids->uid || setgroups(ids->group_count, ids->groups) ||
	    setresgid(ids->gid, ids->gid, ids->gid) || setresuid(ids->uid, ids->uid, ids->uid) ||
	    capabilities__keep(0))
		return -EACCES;
	return 0;
}

/* A change of ids resets it. */
static void end_with_parent(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		_exit(1);
}

struct errand {
	const struct ids *ids;
	int path_fd, namespace;
	uint64_t size_max;
};

static void run_errand(const struct errand *e, pid_t parent, int socket)
{
	struct report report = {.err = become(e->ids)};
	int fd = -1;

	end_with_parent(parent);
	if (!report.err)
		report.err = fd = tenant_open_pinned(e->path_fd, e->size_max, &report.st);
	if (report.err == -EACCES && e->namespace >= 0 && !setns(e->namespace, CLONE_NEWUSER)) {
		end_with_parent(parent);
		report.err = fd = tenant_open_pinned(e->path_fd, e->size_max, &report.st);
	}
	message__send(socket,
		      &(struct message){.frame.size = sizeof(report),
					.bytes = &report,
					.fds = &fd,
					.fd_count = fd >= 0},
		      0);
	_exit(0);
}

/* The descriptor that the child has opened, or negative errno. */
static int take_report(int socket, struct stat *st)
{
	struct message_buffer answer;
	struct report report;

	if (message__receive(socket, &answer, 0) != 1)
		return -EACCES;
	if (answer.frame.size != sizeof(report) || answer.fd_count > 1) {
		message__close_fds(answer.fds, answer.fd_count);
		return -EACCES;
	}
	memcpy(&report, answer.bytes, sizeof(report));
	*st = report.st;
	if (answer.fd_count)
		return answer.fds[0];
	return report.err < 0 ? report.err : -EACCES;
}

static int send_child(const struct errand *e, struct stat *st)
{
	_cleanup_close_ int own = -1, other = -1;
	pid_t child, parent = getpid();
	int pair[2], fd;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	own = pair[0];
	other = pair[1];
	child = fork();
	if (child < 0)
		return -errno;
	if (!child)
		run_errand(e, parent, other);
	close(steal_fd(other));
	fd = take_report(own, st);
	waitpid(child, NULL, 0);
	return fd;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int namespace_of(pid_t pid)
{
	_cleanup_close_ int fd = open(proc_path(pid, "ns/user").text, O_RDONLY | O_CLOEXEC);
	struct stat own, other;

	if (fd < 0 || fstat(fd, &other) || stat("/proc/self/ns/user", &own) ||
	    own.st_ino == other.st_ino)
		return -1;
	return steal_fd(fd);
}

int owner_copy__of_mapping(pid_t pid, uint64_t start, uint64_t end, uint64_t size_max,
			   struct stat *st, uint64_t *copied)
{
	_cleanup_close_ int path_fd = tenant_pin_mapped(pid, start, end), fd = -1;
	_cleanup_close_ int namespace = namespace_of(pid);
	struct ids ids = {}, owner = {};
	struct errand e = {&ids, path_fd, namespace, size_max};
	int err;

	if (path_fd < 0)
		return path_fd;
	err = read_ids(pid, &ids);
	if (err)
		return err;
	fd = send_child(&e, st);
	if (fd == -EACCES && !read_owner(pid, namespace, &owner)) {
		e.ids = &owner;
		fd = send_child(&e, st);
	}
	/* reads of an open file are not refused */
	return fd < 0 ? fd : file_system__copy(fd, st->st_size, size_max, copied);
}
