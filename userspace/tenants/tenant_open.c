/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file is opened in two steps. O_PATH resolves the name and pins the file without opening it: no
 * driver runs, no FIFO waits for a writer, no tape rewinds. Only a regular file of acceptable size
 * (fstat) is then opened for reading, through /proc/self/fd, which leads to the pinned inode
 * whatever happens to the name.
 */
#include "tenants/tenant_open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/proc_task.h"

#define MAX_TRIES 8

int tenant_root(pid_t pid)
{
	int fd = open(proc_path(pid, "root").text, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int check_file(int fd, uint64_t size_limit, struct stat *st)
{
	if (fstat(fd, st))
		return -errno;
	if (S_ISLNK(st->st_mode)) /* O_PATH with O_NOFOLLOW pins the link itself */
		return -ELOOP;
	if (!S_ISREG(st->st_mode))
		return -ENOTSUP;
	return (uint64_t)st->st_size > size_limit ? -EFBIG : 0;
}

int tenant_open_pinned(int path_fd, uint64_t size_limit, struct stat *st)
{
	_cleanup_close_ int fd = -1;
	struct stat found;
	char path[64];
	int err = check_file(path_fd, size_limit, &found);

	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	/* O_NONBLOCK: the owner may hold a lease on the file */
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	err = check_file(fd, size_limit, &found);
	if (err)
		return err;
	*st = found;
	return steal_fd(fd);
}

int tenant_pin(int root_fd, const char *path, int flags)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int path_fd = -1;

	/* EAGAIN: something was renamed below the root while ".." was being followed */
	for (int i = 0; i < MAX_TRIES; i++) {
		path_fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
		if (path_fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return path_fd < 0 ? -errno : path_fd;
}

int tenant_open(int root_fd, const char *path, int flags, uint64_t size_limit, struct stat *st)
{
	_cleanup_close_ int path_fd = tenant_pin(root_fd, path, flags);

	return path_fd < 0 ? path_fd : tenant_open_pinned(path_fd, size_limit, st);
}

#define MAP_FILE_SIZE 96

static void name_map_file(char path[MAP_FILE_SIZE], pid_t pid, uint64_t start, uint64_t end)
{
	snprintf(path, MAP_FILE_SIZE, "/proc/%d/map_files/%llx-%llx", pid,
		 (unsigned long long)start, (unsigned long long)end);
}

int tenant_pin_mapped(pid_t pid, uint64_t start, uint64_t end)
{
	char path[MAP_FILE_SIZE];
	int path_fd;

	name_map_file(path, pid, start, end);
	path_fd = open(path, O_PATH | O_CLOEXEC);
	return path_fd < 0 ? -errno : path_fd;
}

int tenant_mapped_name(pid_t pid, uint64_t start, uint64_t end, char *name, size_t size)
{
	char path[MAP_FILE_SIZE];
	ssize_t length;

	name_map_file(path, pid, start, end);
	length = readlink(path, name, size - 1);
	if (length < 0)
		return -errno;
	name[length] = '\0';
	return 0;
}

int tenant_open_mapped(pid_t pid, uint64_t start, uint64_t end, uint64_t size_limit,
		       struct stat *st)
{
	_cleanup_close_ int path_fd = tenant_pin_mapped(pid, start, end);

	return path_fd < 0 ? path_fd : tenant_open_pinned(path_fd, size_limit, st);
}
