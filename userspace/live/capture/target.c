/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/capture/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <linux/magic.h>
#include <unistd.h>

#include "base/proc_task.h"

bool target_thread_runs(pid_t tid)
{
	struct proc_stat stat;

	return !proc_stat_of(tid, &stat) && !proc_stat__is_dead(&stat);
}

pid_t target_process_of(pid_t tid)
{
	uint64_t process;

	return proc_status_of(tid, "\nTgid:", &process) ?: (pid_t)process;
}

static int check_task(pid_t id, bool is_thread, struct failure *failure)
{
	const char *kind = is_thread ? "thread" : "process";
	struct proc_stat stat;
	int err = proc_stat_of(id, &stat);

	if (err == -ESRCH) {
		fail(failure, err, "no such %s: %d", kind, id);
		return fail_remedy(failure, err, "ps -eLo pid,tid,comm (lists what is running)");
	}
	if (err)
		return fail(failure, err, "cannot read /proc/%d/stat: %s", id, strerror(-err));
	/* if a process's first thread ended before the others, it alone is a zombie */
	if (proc_stat__is_dead(&stat) && (is_thread || stat.threads <= 1))
		return fail(failure, -ECHILD, "%s %d has exited (it is a zombie)", kind, id);
	if (stat.flags & PROC_FLAG_KTHREAD) {
		fail(failure, -ENOTSUP, "%s %d is a kernel thread: it cannot be a target", kind,
		     id);
		return fail_remedy(failure, -ENOTSUP,
				   "-a (a recording of the whole system includes kernel threads)");
	}
	return 0;
}

int target_check_process(pid_t pid, struct failure *failure)
{
	pid_t process = target_process_of(pid);

	if (process > 0 && process != pid) {
		fail(failure, -ESRCH, "%d is a thread of process %d, not a process", pid, process);
		return fail_remedy(failure, -ESRCH,
				   "-t %d for the thread, or -p %d for its process", pid, process);
	}
	return check_task(pid, false, failure);
}

int target_check_thread(pid_t tid, struct failure *failure)
{
	return check_task(tid, true, failure);
}

const char *target_cgroup_root(void)
{
	/* the second: where the older hierarchy has the first place */
	static const char *const places[] = {CGROUP_ROOT, CGROUP_ROOT "/unified"};
	struct statfs fs;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (!statfs(places[i], &fs) && fs.f_type == CGROUP2_SUPER_MAGIC)
			return places[i];
	}
	return NULL;
}

/* ---- the pid namespace ----------------------------------------------------------------------- */

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

int time_namespace__check(struct failure *failure)
{
	int64_t ahead;

	if (proc_clock_ahead(getpid(), &ahead) || !ahead)
		return 0;
	fail(failure, -EXDEV,
	     "sysprof runs in a time namespace: its clock is %.3f s %s the kernel's",
	     (double)(ahead < 0 ? -ahead : ahead) / 1e9, ahead < 0 ? "behind" : "ahead of");
	return fail_remedy(failure, -EXDEV,
			   "run it in the initial time namespace (nsenter -T -t 1 sysprof ...)");
}
