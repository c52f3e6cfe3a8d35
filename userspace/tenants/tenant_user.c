/* SPDX-License-Identifier: BSD-2-Clause */
#include "tenants/tenant_user.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/proc_task.h"

#define NESTED_MAX 64 /* user namespaces; the kernel has 33 at most */

static bool is_same_file(int a, const struct stat *b)
{
	struct stat st;

	return !fstat(a, &st) && is_same_inode(&st, b);
}

/* 0 or negative errno. Cached for each process: a child may enter another namespace. */
static int own_namespace(struct stat *st)
{
	static _Thread_local struct stat own;
	static _Thread_local pid_t whose;
	pid_t self = getpid();

	if (whose != self && stat("/proc/self/ns/user", &own))
		return -errno;
	whose = self;
	*st = own;
	return 0;
}

/* The outermost of the namespaces that `fd` is in, below ours: a descriptor. Takes fd. */
static int outermost_below(int fd, const struct stat *ours)
{
	for (int i = 0; i < NESTED_MAX; i++) {
		int parent = ioctl(fd, NS_GET_PARENT);

		if (parent < 0)
			break;
		if (is_same_file(parent, ours)) {
			close(parent);
			break;
		}
		close(fd);
		fd = parent;
	}
	return fd;
}

/*
 * The creator of a namespace can take any uid mapped there and create any number of namespaces. All
 * are charged to the creator of the outermost one. Root creates them for others: each has a number.
 */
static uint32_t maker_of(int ns)
{
	struct stat st;
	uid_t uid = 0;

	if (!ioctl(ns, NS_GET_OWNER_UID, &uid) && uid)
		return uid;
	return fstat(ns, &st) ? 0 : (uint32_t)st.st_ino;
}

int tenant_user__of(pid_t pid, uid_t uid, uint32_t *user, bool *apart)
{
	_cleanup_close_ int ns = -1;
	struct stat ours = {}, theirs;
	const struct proc_path path = proc_path(pid, "ns/user");
	int err;

	*user = uid;
	*apart = false;
	err = own_namespace(&ours);
	if (err) /* a kernel without them */
		return err == -ENOENT ? 0 : err;
	if (!stat(path.text, &theirs) && is_same_inode(&theirs, &ours))
		return 0;
	ns = open(path.text, O_RDONLY | O_CLOEXEC);
	*apart = ns < 0 || !is_same_file(ns, &ours);
	if (!*apart)
		return 0;
	if (ns < 0)
		return errno == ENOENT || errno == ESRCH ? -ESRCH : 0;
	ns = outermost_below(ns, &ours);
	*user = maker_of(ns);
	return 0;
}

uint32_t tenant_user(pid_t pid)
{
	uint32_t user;
	bool apart;
	uid_t uid;

	if (proc_real_uid(pid, &uid) || tenant_user__of(pid, uid, &user, &apart))
		return TENANT_UNKNOWN;
	return user;
}
