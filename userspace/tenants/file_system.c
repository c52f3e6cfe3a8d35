/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any user can mount memory, overlays and FUSE in a user namespace. Disks need the administrator. A
 * mount of the former kinds is the administrator's if it is in the mount namespace of process 1:
 * mounts of a user namespace never propagate to a more privileged one.
 */
#include "tenants/file_system.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/proc_task.h"
#include "base/io.h"

#define MOUNTS_MAX (16u << 20) /* bytes of a mountinfo */
#define COPY_CHUNK (1u << 20)
#define INITIAL_USER_SPACE                                                                         \
	0xEFFFFFFDu /* the inode of the first user namespace: PROC_USER_INIT_INO */

/* not in linux/magic.h of every system */
#define MAGIC_ZFS      0x2fc12fc1
#define MAGIC_BCACHEFS 0xca451a4e
#define MAGIC_NTFS3    0x7366746e

enum served_by { BY_DISK, BY_MEMORY, BY_OVERLAY, BY_SOMEBODY };

static enum served_by server_of(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return BY_SOMEBODY;
	switch ((uint32_t)fs.f_type) {
	case EXT4_SUPER_MAGIC: /* and ext2, ext3 */
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case SQUASHFS_MAGIC:
	case EROFS_SUPER_MAGIC_V1:
	case ISOFS_SUPER_MAGIC:
	case MSDOS_SUPER_MAGIC:
	case EXFAT_SUPER_MAGIC:
	case REISERFS_SUPER_MAGIC:
	case MAGIC_ZFS:
	case MAGIC_BCACHEFS:
	case MAGIC_NTFS3:
		return BY_DISK;
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
	case HUGETLBFS_MAGIC:
		return BY_MEMORY;
	case OVERLAYFS_SUPER_MAGIC:
		return BY_OVERLAY;
	default:
		return BY_SOMEBODY;
	}
}

/* ---- mounts ---------------------------------------------------------------------------------- */

static bool is_initial_user_space(pid_t pid)
{
	struct stat st;

	return !stat(proc_path(pid, "ns/user").text, &st) && st.st_ino == INITIAL_USER_SPACE;
}

/* The mountinfo of a process. NULL: it cannot be read. The caller frees it. */
static char *mounts_of(pid_t pid)
{
	const struct proc_path path = proc_path(pid, "mountinfo");
	char *text;
	size_t size;

	return read_file_at(AT_FDCWD, path.text, MOUNTS_MAX, &text, &size) ? NULL : text;
}

struct mount {
	uint64_t id;
	unsigned int major, minor;
};

/* From "ID PARENT MAJOR:MINOR …"; users choose what follows. *mounts moves on. False: the end. */
static bool next_mount(const char **mounts, struct mount *mount)
{
	const char *line = *mounts, *end = strchrnul(line, '\n');
	char *at;

	*mount = (struct mount){.id = strtoull(line, &at, 10)};
	(void)strtoull(at, &at, 10);
	mount->major = (unsigned int)strtoul(at, &at, 10);
	mount->minor = *at == ':' ? (unsigned int)strtoul(at + 1, &at, 10) : 0;
	*mounts = end + (*end == '\n');
	return *line && at <= end;
}

static bool find_mount(const char *mounts, uint64_t id, struct mount *mount)
{
	while (next_mount(&mounts, mount))
		if (mount->id == id)
			return true;
	return false;
}

bool mountinfo__has_device(const char *mounts, unsigned int major, unsigned int minor)
{
	struct mount mount;

	while (next_mount(&mounts, &mount))
		if (mount.major == major && mount.minor == minor)
			return true;
	return false;
}

static bool mount_of(int fd, uint64_t *id)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &stx) ||
	    !(stx.stx_mask & STATX_MNT_ID))
		return false;
	*id = stx.stx_mnt_id;
	return true;
}

/* Is the file system of this descriptor mounted where only the administrator mounts? */
static bool is_mounted_by_administrator(int fd, pid_t pid)
{
	_cleanup_free_ char *first = is_initial_user_space(1) ? mounts_of(1) : NULL;
	_cleanup_free_ char *theirs = NULL;
	struct mount mount;
	uint64_t id;

	if (!first || !mount_of(fd, &id))
		return false;
	if (find_mount(first, id, &mount))
		return true;
	theirs = pid > 0 ? mounts_of(pid) : NULL;
	return theirs && find_mount(theirs, id, &mount) &&
	       mountinfo__has_device(first, mount.major, mount.minor);
}

/* ---- judging a descriptor -------------------------------------------------------------------- */

bool file_system__answers(int fd, pid_t pid)
{
	switch (server_of(fd)) {
	case BY_DISK:
	case BY_MEMORY:
		return true;
	case BY_OVERLAY:
		return is_mounted_by_administrator(fd, pid);
	default:
		return false;
	}
}

bool file_system__is_administrators(int fd, pid_t pid)
{
	switch (server_of(fd)) {
	case BY_DISK:
		return true;
	case BY_MEMORY:
	case BY_OVERLAY:
		return is_mounted_by_administrator(fd, pid);
	default:
		return false;
	}
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Holes stay holes. 0 or negative errno. */
static int copy_data(int from, int to, uint64_t size, uint64_t room, uint64_t *copied)
{
	_cleanup_free_ char *chunk = malloc(COPY_CHUNK);
	off_t at = 0;

	if (!chunk)
		return -ENOMEM;
	while ((uint64_t)at < size) {
		off_t data = lseek(from, at, SEEK_DATA), hole = -1;

		if (data >= 0)
			hole = lseek(from, data, SEEK_HOLE);
		else if (errno == ENXIO)
			return 0;
		if (hole < 0) { /* some FUSE programs answer with an error */
			data = at;
			hole = (off_t)size;
		}
		for (at = data; at < hole && (uint64_t)at < size;) {
			size_t want = hole - at < COPY_CHUNK ? hole - at : COPY_CHUNK;
			ssize_t got = pread(from, chunk, want, at);

			if (got <= 0)
				return got < 0 ? -errno : 0;
			if ((uint64_t)got > room - *copied)
				return -EFBIG;
			*copied += got;
			if (pwrite(to, chunk, got, at) != got)
				return -ENOSPC;
			at += got;
		}
	}
	return 0;
}

int file_system__copy(int fd, uint64_t size, uint64_t copy_max, uint64_t *copied)
{
	_cleanup_close_ int copy = memfd_create("sysprof-file", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	*copied = 0;
	if (copy < 0)
		return -errno;
	if (ftruncate(copy, size))
		return -errno;
	err = copy_data(fd, copy, size, copy_max, copied);
	if (err)
		return err;
	if (fcntl(copy, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL))
		return -errno;
	return steal_fd(copy);
}

int file_system__make_safe(int *fd, pid_t pid, uint64_t copy_max, uint64_t *copied)
{
	struct stat st;
	int copy;

	*copied = 0;
	if (file_system__answers(*fd, pid))
		return 0;
	if (fstat(*fd, &st))
		return -errno;
	copy = file_system__copy(*fd, st.st_size, copy_max, copied);
	if (copy < 0) {
		*copied = 0;
		return copy;
	}
	close(*fd);
	*fd = copy;
	return 0;
}
