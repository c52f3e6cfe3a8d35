/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/pid_namespace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INITIAL_INODE 0xEFFFFFFCu /* of the initial pid namespace, on every kernel */

int pid_namespace__detect(struct pid_namespace *ns, struct failure *failure)
{
	char self[32] = "";
	struct stat st;
	ssize_t size = readlink("/proc/self", self, sizeof(self) - 1);

	if (size < 0) {
		fail(failure, -errno, "cannot read /proc/self: %s", strerror(errno));
		return fail_remedy(failure, -ENOENT, "mount /proc: mount -t proc proc /proc");
	}
	self[size] = '\0';
	if (strtol(self, NULL, 10) != getpid()) {
		fail(failure, -EXDEV,
		     "/proc belongs to another pid namespace: this process is %s there, %d here",
		     self, getpid());
		return fail_remedy(failure, -EXDEV,
				   "mount this namespace's /proc (unshare --mount-proc), "
				   "or run in the initial pid namespace");
	}
	if (stat("/proc/self/ns/pid", &st))
		return fail(failure, -errno, "cannot stat /proc/self/ns/pid: %s", strerror(errno));
	ns->inode = st.st_ino == INITIAL_INODE ? 0 : (uint32_t)st.st_ino;
	return 0;
}
