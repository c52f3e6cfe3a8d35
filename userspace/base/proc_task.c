/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/proc_task.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"

#define SMALL_FILE    4096u
#define NS_PER_SECOND 1000000000ULL

uint64_t proc_suspended_ns(void)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 3; i++) { /* being interrupted between the clocks makes it larger */
		uint64_t monotonic = monotonic_ns();
		uint64_t suspended = boottime_ns() - monotonic;

		if (suspended < best)
			best = suspended;
	}
	return best;
}

ssize_t proc_read_small(int dir, const char *path, char *buffer, size_t size)
{
	_cleanup_close_ int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : read_full(fd, buffer, size);
}

int proc_read_stat(int dir, const char *path, struct proc_stat *stat)
{
	char text[SMALL_FILE];
	ssize_t size = proc_read_small(dir, path, text, sizeof(text));

	return size < 0 ? size : proc_parse_stat(text, size, stat);
}

int proc_open_process(int proc_fd, pid_t pid)
{
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "%d", pid);
	fd = openat(proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

uint64_t proc_start_time(uint64_t ticks, uint64_t tick_ns, uint64_t suspended)
{
	uint64_t since_boot;

	if (__builtin_mul_overflow(ticks, tick_ns, &since_boot))
		return 0;
	return since_boot > suspended ? since_boot - suspended : 0;
}

bool proc_stat__is_dead(const struct proc_stat *stat)
{
	return stat->state == 'Z' || stat->state == 'X' || stat->state == 'x';
}

/*
 * The 15 bytes that perf calls a thread. For a kernel worker stat appends its current work ("kworker/0:1-events"),
 * which changes all the time and is no part of the name.
 */
void proc_stat__comm(const struct proc_stat *stat, char comm[PROC_COMM_SIZE])
{
	size_t length = strnlen(stat->comm, sizeof(stat->comm));

	if ((stat->flags & PROC_FLAG_KTHREAD) && !strncmp(stat->comm, "kworker/", 8) &&
	    strncmp(stat->comm, "kworker/R-", 10))
		length = strcspn(stat->comm, "+-");
	if (length > PROC_COMM_SIZE - 1)
		length = PROC_COMM_SIZE - 1;
	memset(comm, 0, PROC_COMM_SIZE);
	memcpy(comm, stat->comm, length);
}

/* The process a thread belongs to: "Tgid:" of status, where newlines in names are escaped. */
static pid_t read_tgid(int dir, pid_t otherwise)
{
	char text[SMALL_FILE + 1];
	ssize_t size = proc_read_small(dir, "status", text, SMALL_FILE);
	const char *at;
	uint64_t tgid;

	if (size <= 0)
		return otherwise;
	text[size] = '\0';
	at = strstr(text, "\nTgid:\t");
	if (!at)
		return otherwise;
	at += strlen("\nTgid:\t");
	if (proc_parse_number(at, text + size - at, &tgid) || !tgid || tgid > INT_MAX)
		return otherwise;
	return tgid;
}

int proc_real_uid(pid_t pid, uid_t *uid)
{
	_cleanup_close_ int fd = -1;
	char path[32], text[SMALL_FILE + 1];
	const char *at;
	ssize_t size;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return pid > 0 ? -errno : -ESRCH;
	size = read(fd, text, SMALL_FILE); /* it is among the first lines: no second look */
	if (size < 0)
		return -errno;
	text[size] = '\0';
	at = strstr(text, "\nUid:\t");
	if (!at)
		return -ESRCH;
	*uid = (uid_t)strtoul(at + strlen("\nUid:\t"), NULL, 10);
	return 0;
}

/* A process that /proc does not show may exist all the same. */
static enum proc_state hidden_or_none(pid_t pid)
{
	_cleanup_close_ int fd = syscall(SYS_pidfd_open, pid, 0);

	/* EINVAL: a thread that leads no process */
	return fd >= 0 || errno == EINVAL ? PROC_HIDDEN : PROC_NONE;
}

enum proc_state proc_process_state(pid_t pid, struct proc_identity *identity)
{
	_cleanup_close_ int proc = -1, dir = -1;
	struct proc_stat stat;

	if (pid <= 0)
		return PROC_NONE;
	proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return hidden_or_none(pid);
	dir = proc_open_process(proc, pid);
	if (dir < 0 || proc_read_stat(dir, "stat", &stat))
		return hidden_or_none(pid);
	if (identity) {
		identity->tgid = read_tgid(dir, pid);
		identity->ppid = stat.ppid;
		identity->start_time = proc_start_time(stat.start_ticks,
						       NS_PER_SECOND / sysconf(_SC_CLK_TCK),
						       proc_suspended_ns());
		proc_stat__comm(&stat, identity->comm);
	}
	if (stat.flags & PROC_FLAG_KTHREAD)
		return PROC_KERNEL;
	return proc_stat__is_dead(&stat) && stat.threads <= 1 ? PROC_ZOMBIE : PROC_ALIVE;
}
