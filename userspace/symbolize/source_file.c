/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/source_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/order.h"
#include "tenants/tenant_open.h"

#define ROOT 0

/* "/a/./b/../c" is "/a/c": without links that is the same file. Never above the root. */
static int normalize(const char *path, char out[PATH_MAX])
{
	size_t length = 0;

	if (*path != '/' || strlen(path) >= PATH_MAX)
		return *path == '/' ? -ENAMETOOLONG : -EINVAL;
	for (size_t size; *path; path += size) {
		path += strspn(path, "/");
		size = strcspn(path, "/");
		if (!size || (size == 1 && *path == '.'))
			continue;
		if (size == 2 && path[0] == '.' && path[1] == '.') {
			while (length && out[--length] != '/')
				;
			continue;
		}
		out[length++] = '/';
		memcpy(out + length, path, size);
		length += size;
	}
	out[length] = '\0';
	return length ? 0 : -ENOTSUP;
}

/* May the owner use it: search a directory, or read a file? */
static bool may_use(const struct stat *st, uid_t owner)
{
	mode_t others = S_ISDIR(st->st_mode) ? S_IXOTH : S_IROTH;
	mode_t own = S_ISDIR(st->st_mode) ? S_IXUSR : S_IRUSR;

	return (st->st_mode & (st->st_uid == owner && owner != ROOT ? own : others)) != 0;
}

/* A descriptor (O_PATH) of the file or directory in one. */
static int step(int directory, const char *name, uid_t owner)
{
	_cleanup_close_ int fd = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return -ENOTSUP;
	return may_use(&st, owner) ? steal_fd(fd) : -EACCES;
}

static bool is_made_by_kernel(long type)
{
	static const long types[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC,	    DEBUGFS_MAGIC,
				     TRACEFS_MAGIC,    SECURITYFS_MAGIC,    CGROUP_SUPER_MAGIC,
				     BPF_FS_MAGIC,     CGROUP2_SUPER_MAGIC, SELINUX_MAGIC};

	return any_of(types, sizeof(types) / sizeof(*types), known, *known == type);
}

int source_file__open(int root_fd, const char *path, uid_t owner, uint64_t size_limit)
{
	_cleanup_close_ int at = openat(root_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char parts[PATH_MAX];
	struct statfs fs;
	struct stat st;
	int err = at < 0 ? -errno : normalize(path, parts);

	for (char *rest = parts + 1, *name; !err && (name = strsep(&rest, "/"));) {
		int next = step(at, name, owner);

		if (next < 0)
			return next;
		close(at);
		at = next;
	}
	if (err)
		return err;
	/* what the kernel makes of processes and itself may be for the opener alone */
	if (fstatfs(at, &fs))
		return -errno;
	if (is_made_by_kernel(fs.f_type))
		return -EACCES;
	err = tenant_open_pinned(at, size_limit, &st);
	if (err >= 0 && !st.st_size) {
		close(err);
		return -ENOTSUP;
	}
	return err;
}
