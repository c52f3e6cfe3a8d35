/* SPDX-License-Identifier: BSD-2-Clause */
#include "jit/follow/jit_find.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/order.h"
#include "base/proc_task.h"
#include "tenants/tenant_open.h"

#define FUSE_SUPER_MAGIC 0x65735546
#define FDS_MAX		 4096	      /* descriptors checked of a process */
#define BIRTH_SLACK_NS	 1000000000ll /* between the clocks of processes and of files */

/* ---- the file -------------------------------------------------------------------------------- */

#define CLOCK_TRIES 10
#define CLOCK_ERROR 2000 /* ns */

/* Repeats if this thread was preempted between the readings. */
bool jit_clock_offset(int64_t *offset)
{
	for (int i = 0; i < CLOCK_TRIES; i++) {
		uint64_t began = monotonic_ns(), real = realtime_ns(), ended = monotonic_ns();

		*offset = (int64_t)(real - began);
		if (ended - began < CLOCK_ERROR)
			return true;
	}
	return false;
}

/* CLOCK_MONOTONIC ns; negative: before boot. */
static int64_t monotonic_of(const struct timespec *realtime)
{
	int64_t offset;

	jit_clock_offset(&offset);
	return realtime->tv_sec * 1000000000ll + realtime->tv_nsec - offset;
}

static enum jit_file_state state_of_error(int err)
{
	switch (err) {
	case -ELOOP:
		return JIT_FILE_STATE_LINK;
	case -ENOTSUP:
		return JIT_FILE_STATE_NOT_REGULAR;
	case -EACCES:
		return JIT_FILE_STATE_UNREADABLE;
	default:
		return JIT_FILE_STATE_DENIED;
	}
}

/* A setuid program may own files as either user, but reads as its real user. */
static bool is_own_file(const struct jit_owner *owner, const struct stat *st)
{
	if (st->st_uid != owner->uid && st->st_uid != owner->euid)
		return false;
	return st->st_uid || !owner->apart;
}

/*
 * File systems that programs write to. Others are refused: opening or reading files of /proc or
 * /sys has side effects, and FUSE is a user's program. Only administrators mount network file
 * systems.
 */
static bool holds_data(uint32_t type)
{
	static const uint32_t types[] = {
		0xef53,			/* ext2, ext3, ext4 */
		0x58465342,		/* xfs */
		0x9123683e,		/* btrfs */
		0x01021994,		/* tmpfs */
		0x794c7630,		/* overlayfs */
		0x858458f6,		/* ramfs */
		0x2fc12fc1,		/* zfs */
		0xf2f52010,		/* f2fs */
		0xca451a4e,		/* bcachefs */
		0x3153464a,		/* jfs */
		0x52654973,		/* reiserfs */
		0x3434,			/* nilfs2 */
		0x24051905,		/* ubifs */
		0xf15f,			/* ecryptfs */
		0x61756673,		/* aufs */
		0x4d44,	    0x2011bab0, /* vfat, exfat */
		0x7366746e,		/* ntfs3 */
		0x6969,			/* nfs */
		0xff534d42,		/* cifs */
		0xfe534d42,		/* smb */
		0x00c36400,		/* ceph */
		0x01021997,		/* 9p: a host's directory in a virtual machine */
		0x01161970,		/* gfs2 */
		0x7461636f,		/* ocfs2 */
		0x0bd00bd0,		/* lustre */
		0x47504653,		/* gpfs */
	};

	return any_of(types, sizeof(types) / sizeof(types[0]), known, *known == type);
}

/*
 * The file itself is a mount point: in a mount namespace of their own, users can mount any file
 * over any name. Its directory may be one: only a user who can write there can name a file in it.
 */
static bool is_mounted_itself(int path_fd)
{
	struct statx stx;

	if (statx(path_fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_TYPE, &stx) ||
	    !(stx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
		return true;
	return stx.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

/* Call before opening. FOLLOWED: it may be opened. */
static enum jit_file_state judge_pinned(const struct jit_owner *owner, int path_fd)
{
	struct statfs fs;
	struct stat st;

	/* FUSE is refused before fstat(), which would call the user's program */
	if (fstatfs(path_fd, &fs))
		return JIT_FILE_STATE_DENIED;
	if ((uint32_t)fs.f_type == FUSE_SUPER_MAGIC)
		return JIT_FILE_STATE_FUSE;
	if (fstat(path_fd, &st))
		return JIT_FILE_STATE_DENIED;
	if (S_ISLNK(st.st_mode)) /* O_NOFOLLOW pins the link itself */
		return JIT_FILE_STATE_LINK;
	if (!S_ISREG(st.st_mode))
		return JIT_FILE_STATE_NOT_REGULAR;
	if (is_mounted_itself(path_fd))
		return JIT_FILE_STATE_MOUNTED;
	if (!holds_data((uint32_t)fs.f_type))
		return JIT_FILE_STATE_NO_DATA;
	if (!is_own_file(owner, &st))
		return JIT_FILE_STATE_FOREIGN;
	/* other writers could forge names of code, and use up the user's budget */
	return st.st_mode & S_IWOTH ? JIT_FILE_STATE_WRITABLE : JIT_FILE_STATE_FOLLOWED;
}

static int open_as_owner(const struct jit_owner *owner, int path_fd, struct stat *st)
{
	struct jit_own_rights own;
	int fd = jit_rights__borrow(&owner->rights, &own);

	if (fd)
		return fd;
	fd = tenant_open_pinned(path_fd, UINT64_MAX, st);
	jit_rights__give_back(&own);
	return fd;
}

static bool is_outdated(const struct jit_owner *owner, const struct stat *st)
{
	return owner->start && monotonic_of(&st->st_mtim) + BIRTH_SLACK_NS < (int64_t)owner->start;
}

/* Judges and opens what was pinned. Takes path_fd, which may be an error. 0 or -ENOENT. */
static int describe_pinned(const struct jit_owner *owner, int path_fd, struct jit_found *found)
{
	_cleanup_close_ int pinned = path_fd;
	int64_t modified;
	int fd;

	found->fd = -1;
	found->st = (struct stat){};
	if (path_fd == -ENOENT || path_fd == -ENOTDIR || path_fd == -ESRCH)
		return -ENOENT;
	found->state = pinned < 0 ? state_of_error(pinned) : judge_pinned(owner, pinned);
	if (found->state != JIT_FILE_STATE_FOLLOWED)
		return 0;
	fd = open_as_owner(owner, pinned, &found->st);
	if (fd < 0) {
		found->state = state_of_error(fd);
		return 0;
	}
	found->fd = fd;
	modified = monotonic_of(&found->st.st_mtim);
	found->modified = modified > 0 ? (uint64_t)modified : 0;
	if (is_outdated(owner, &found->st))
		found->state = JIT_FILE_STATE_OUTDATED;
	return 0;
}

/* With the process's rights: a file that it cannot reach is not its own. */
static int pin_as_owner(const struct jit_owner *owner, int root, const char *path)
{
	struct jit_own_rights own;
	int path_fd = jit_rights__borrow(&owner->rights, &own);

	if (path_fd)
		return path_fd;
	path_fd = tenant_pin(root, path, O_NOFOLLOW);
	jit_rights__give_back(&own);
	return path_fd;
}

/* ---- is it another process's? ---------------------------------------------------------------- */

int jit_has_open(pid_t pid, const struct stat *file)
{
	_cleanup_closedir_ DIR *dir = opendir(proc_path(pid, "fd").text);
	struct dirent *entry;
	struct stat st;

	for (int n = 0; dir && (entry = readdir(dir)); n++) {
		if (n == FDS_MAX)
			return -EFBIG;
		if (!fstatat(dirfd(dir), entry->d_name, &st, 0) && is_same_inode(&st, file))
			return 1;
	}
	return 0;
}

static bool have_one_tmp(pid_t a, pid_t b)
{
	struct stat x, y;

	return !stat(proc_path(a, "root/tmp").text, &x) &&
	       !stat(proc_path(b, "root/tmp").text, &y) && is_same_inode(&x, &y);
}

/*
 * A process in its own pid namespace may share /tmp with one outside that has the same pid there.
 * The file is the latter's unless ours has it open. Another user's process cannot have made it, and
 * its files are not touched: a hang would be charged to the wrong user. 1, 0; -EFBIG: unknown.
 */
static int is_taken(const struct jit_owner *owner, pid_t number, const struct stat *file)
{
	struct jit_owner other;
	int open;

	if (number == owner->pid || jit_owner__read(number, &other) || other.own_pid != number ||
	    other.user != owner->user || !is_own_file(&other, file) ||
	    !have_one_tmp(owner->pid, number))
		return 0;
	open = jit_has_open(owner->pid, file);
	return open < 0 ? open : !open;
}

/* ---- looking --------------------------------------------------------------------------------- */

/* Mostly there is no such file, which is found without borrowing rights. */
static int find_in(const struct jit_owner *owner, int root, pid_t number, struct jit_found *found)
{
	_cleanup_close_ int any = -1;
	int err, taken;

	snprintf(found->path, sizeof(found->path), "/tmp/perf-%d.map", number);
	any = tenant_pin(root, found->path, O_NOFOLLOW);
	if (any == -ENOENT)
		return -ENOENT;
	err = describe_pinned(owner, pin_as_owner(owner, root, found->path), found);
	taken = err || found->fd < 0 ? 0 : is_taken(owner, number, &found->st);
	if (!taken)
		return err;
	close(found->fd);
	found->fd = -1;
	found->state = JIT_FILE_STATE_TOO_MANY_OPEN;
	return taken < 0 ? 0 : -ENOENT;
}

/*
 * In the process's root another process may have our pid for it, and a map of that name. So the
 * name counts there only if that root's /proc shows that no process has the pid.
 */
static bool is_free_in(int root, pid_t number)
{
	struct stat st;
	char path[64];

	if (fstatat(root, "proc/self/status", &st, 0))
		return false;
	snprintf(path, sizeof(path), "proc/%d", number);
	return fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT;
}

static bool is_same_root(int a, int b)
{
	const unsigned int mask = STATX_INO | STATX_MNT_ID;
	struct statx x, y;

	return !statx(a, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, mask, &x) &&
	       !statx(b, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, mask, &y) &&
	       x.stx_mask & y.stx_mask & STATX_MNT_ID && x.stx_mnt_id == y.stx_mnt_id &&
	       x.stx_ino == y.stx_ino;
}

int jit_find_map(const struct jit_owner *owner, struct jit_found *found)
{
	_cleanup_close_ int root = tenant_root(owner->pid), host = -1;
	int err;

	found->fd = -1;
	if (root < 0)
		return root;
	err = find_in(owner, root, owner->own_pid, found);
	if (err != -ENOENT)
		return err;
	if (owner->own_pid != owner->pid && is_free_in(root, owner->pid)) {
		err = find_in(owner, root, owner->pid, found);
		if (err != -ENOENT)
			return err;
	}
	host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (host < 0)
		return -errno;
	if (owner->own_pid == owner->pid && is_same_root(root, host))
		return -ENOENT; /* already searched */
	return find_in(owner, host, owner->pid, found);
}

/* A runtime's options decide where its jitdump is: any mount that holds data will do. */
int jit_open_dump(const struct jit_owner *owner, const char *path, uint64_t start, uint64_t end,
		  struct jit_found *found)
{
	_cleanup_close_ int root = -1;
	int path_fd = tenant_pin_mapped(owner->pid, start, end);

	snprintf(found->path, sizeof(found->path), "%s", path);
	if (path_fd < 0) {
		root = tenant_root(owner->pid);
		if (root < 0)
			return root;
		path_fd = pin_as_owner(owner, root, path);
	}
	return describe_pinned(owner, path_fd, found);
}

/* The end of a number; NULL: there is none. */
static const char *skip_number(const char *at)
{
	const char *end = at;

	while (isdigit((unsigned char)*end))
		end++;
	return end > at ? end : NULL;
}

bool jit_is_dump(const char *path)
{
	const char *at = strrchr(path, '/');

	if (!at || strncmp(at, "/jit-", 5))
		return false;
	at = skip_number(at + 5);
	if (at && *at == '-') /* JavaScriptCore: jit-TID-PID.dump */
		at = skip_number(at + 1);
	return at && (!strcmp(at, ".dump") || !strcmp(at, ".dump (deleted)"));
}
