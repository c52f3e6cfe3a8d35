/* SPDX-License-Identifier: BSD-2-Clause */
#include "jitwatch/jit_find.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/proc_task.h"
#include "base/tenant_open.h"

#define STATUS_MAX	 (64u * 1024)
#define FUSE_SUPER_MAGIC 0x65735546
#define FDS_MAX		 4096	      /* of a process, that are looked at */
#define BIRTH_SLACK_NS	 1000000000ll /* between the clocks of processes and of files */

/* ---- the process ----------------------------------------------------------------------------- */

/* The text after "\nKEY:", or NULL. */
static const char *find_field(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? at + strlen(key) : NULL;
}

static pid_t last_number(const char *line)
{
	long number = 0;

	for (char *end; *line && *line != '\n'; line = end) {
		long next = strtol(line, &end, 10);

		if (end == line)
			break;
		number = next;
		while (*end == ' ' || *end == '\t')
			end++;
	}
	return (pid_t)number;
}

int jit_owner__read(pid_t pid, struct jit_owner *owner)
{
	_cleanup_free_ char *text = NULL;
	struct proc_identity identity;
	const char *uids, *pids;
	char path[64], *end;
	size_t size;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	err = read_file_at(AT_FDCWD, path, STATUS_MAX, &text, &size);
	if (err)
		return err;
	uids = find_field(text, "\nUid:");
	if (!uids || proc_process_state(pid, &identity) != PROC_ALIVE)
		return -ESRCH;
	pids = find_field(text, "\nNSpid:");
	*owner = (struct jit_owner){.pid = pid, .own_pid = pid, .start = identity.start_time};
	owner->uid = (uid_t)strtoul(uids, &end, 10);
	owner->euid = (uid_t)strtoul(end, NULL, 10);
	if (pids)
		owner->own_pid = last_number(pids);
	return owner->own_pid > 0 ? 0 : -ESRCH;
}

/* ---- the file -------------------------------------------------------------------------------- */

#define CLOCK_TRIES 10
#define CLOCK_ERROR 2000 /* ns */

/* This thread may have been preempted between the two readings of one clock. */
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

/* CLOCK_MONOTONIC ns; negative: before that began. */
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
	default:
		return JIT_FILE_STATE_DENIED;
	}
}

static enum jit_file_state judge_file(const struct jit_owner *owner, int fd, const struct stat *st)
{
	struct statfs fs;

	if (st->st_uid && st->st_uid != owner->uid && st->st_uid != owner->euid)
		return JIT_FILE_STATE_FOREIGN;
	if (fstatfs(fd, &fs))
		return JIT_FILE_STATE_DENIED;
	if (fs.f_type == FUSE_SUPER_MAGIC)
		return JIT_FILE_STATE_FUSE;
	if (owner->start && monotonic_of(&st->st_mtim) + BIRTH_SLACK_NS < (int64_t)owner->start)
		return JIT_FILE_STATE_OUTDATED;
	return JIT_FILE_STATE_FOLLOWED;
}

/* Stores the result of an attempt to open. 0, or -ENOENT. */
static int describe_opened(const struct jit_owner *owner, int fd, struct jit_found *found)
{
	int64_t modified;

	found->fd = -1;
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ESRCH)
		return -ENOENT;
	if (fd < 0) {
		found->state = state_of_error(fd);
		return 0;
	}
	found->state = judge_file(owner, fd, &found->st);
	modified = monotonic_of(&found->st.st_mtim);
	found->modified = modified > 0 ? (uint64_t)modified : 0;
	if (found->state == JIT_FILE_STATE_FOLLOWED || found->state == JIT_FILE_STATE_OUTDATED)
		found->fd = fd;
	else
		close(fd);
	return 0;
}

/* ---- is it somebody else's? ------------------------------------------------------------------ */

bool jit_has_open(pid_t pid, const struct stat *file)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	for (int n = 0; dir && n < FDS_MAX && (entry = readdir(dir)); n++)
		if (!fstatat(dirfd(dir), entry->d_name, &st, 0) && st.st_dev == file->st_dev &&
		    st.st_ino == file->st_ino)
			return true;
	return false;
}

static bool have_one_tmp(pid_t a, pid_t b)
{
	struct stat x, y;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root/tmp", a);
	if (stat(path, &x))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/root/tmp", b);
	return !stat(path, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/*
 * A process in its own pid namespace may share /tmp with a process outside that has the same pid there. The file
 * belongs to the latter, unless our process has it open.
 */
static bool is_taken(const struct jit_owner *owner, pid_t number, const struct stat *file)
{
	struct jit_owner other;

	if (number == owner->pid || jit_owner__read(number, &other) || other.own_pid != number ||
	    !have_one_tmp(owner->pid, number))
		return false;
	return !jit_has_open(owner->pid, file);
}

/* ---- looking --------------------------------------------------------------------------------- */

static int find_in(const struct jit_owner *owner, int root, pid_t number, struct jit_found *found)
{
	int err;

	snprintf(found->path, sizeof(found->path), "/tmp/perf-%d.map", number);
	err = describe_opened(
		owner, tenant_open(root, found->path, O_NOFOLLOW, UINT64_MAX, &found->st), found);
	if (err || found->fd < 0 || !is_taken(owner, number, &found->st))
		return err;
	close(found->fd);
	found->fd = -1;
	return -ENOENT;
}

/*
 * In the process's root another process may have that pid, and its map the same name. So this name is used there
 * only if the /proc in that root shows that no process has the pid.
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
	return host < 0 ? -errno : find_in(owner, host, owner->pid, found);
}

int jit_open_dump(const struct jit_owner *owner, const char *path, uint64_t start, uint64_t end,
		  struct jit_found *found)
{
	_cleanup_close_ int root = -1;
	struct stat st;
	int fd = tenant_open_mapped(owner->pid, start, end, UINT64_MAX, &found->st);

	snprintf(found->path, sizeof(found->path), "%s", path);
	if (fd < 0) {
		root = tenant_root(owner->pid);
		if (root < 0)
			return root;
		fd = tenant_open(root, path, O_NOFOLLOW, UINT64_MAX, &st);
		found->st = st;
	}
	return describe_opened(owner, fd, found);
}

/* Behind a number; NULL: there is none. */
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
