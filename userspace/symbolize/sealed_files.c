/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A child's open() stops in the kernel until we answer. Its path is in the child's memory, which
 * the child can change at any time: we read it once, check and open that copy, and put the
 * descriptor into the child.
 *
 * Before the copy is used the request must still be valid: if the child has died, its pid may be
 * another process by now, whose memory we read.
 */
#include "symbolize/sealed_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/suffix.h"
#include "symbolize/sealed.h"

#define PATH_SIZE     4096 /* a page */
#define FILE_SIZE_MAX (4ull << 30)
#define MESSAGE_SIZE  1024 /* of the kernel's structures; they may grow */

/* Read the path with its NUL, from two pages: the second one may be behind the end of a mapping. */
static int read_path(pid_t pid, uint64_t address, char path[PATH_SIZE])
{
	const size_t first = PATH_SIZE - address % PATH_SIZE;
	const struct iovec local = {path, PATH_SIZE},
			   remote[] = {{(void *)(uintptr_t)address, first},
				       {(void *)(uintptr_t)(address + first), PATH_SIZE - first}};
	ssize_t got = process_vm_readv(pid, &local, 1, remote, 2, 0);

	if (got <= 0)
		return got ? -errno : -EFAULT;
	return memchr(path, '\0', got) ? 0 : -ENAMETOOLONG;
}

static bool may_be_opened(const char *path)
{
	return path[0] == '/' && (has_suffix(path, ".dwo") || has_suffix(path, ".dwp"));
}

/* The child has its files as numbers only, and libdw looks for others beside them. */
static int place_beside(const char *module, char path[PATH_SIZE])
{
	static const char OPEN_FILES[] = "/proc/self/fd/";
	size_t prefix = sizeof(OPEN_FILES) - 1;
	const char *slash = module ? strrchr(module, '/') : NULL;
	char name[PATH_SIZE];
	int length;

	if (strncmp(path, OPEN_FILES, prefix))
		return 0;
	if (!slash)
		return -ENOENT;
	memcpy(name, path + prefix, strlen(path + prefix) + 1);
	if (has_suffix(name, ".dwp"))
		length = snprintf(path, PATH_SIZE, "%s.dwp", module);
	else
		length = snprintf(path, PATH_SIZE, "%.*s/%s", (int)(slash - module), module, name);
	return length < PATH_SIZE ? 0 : -ENAMETOOLONG;
}

/* The descriptor that answers the question, ours; or negative errno. */
static int judge_open(int listener, const struct seccomp_notif *question, struct sealed_job *job)
{
	bool at = question->data.nr == SYS_openat;
	uint64_t flags = question->data.args[at ? 2 : 1];
	char path[PATH_SIZE];
	int err;

	if ((flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC | O_DIRECTORY))
		return -EACCES;
	err = read_path(question->pid, question->data.args[at], path);
	if (err)
		return -EACCES;
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &question->id))
		return -ENOENT;
	if (!may_be_opened(path))
		return -EACCES;
	err = place_beside(job->path, path);
	if (err)
		return err;
	if (!job->finder)
		return -ENOENT;
	return file_finder__open(job->finder,
				 &(struct debug_file_request){.elf_fd = job->files.elf_fd,
							      .user = job->user,
							      .root_fd = job->root_fd,
							      .path = path},
				 FILE_SIZE_MAX, &job->writers);
}

/* Put our descriptor into the child: its number there, or negative errno. */
static int hand_over(int listener, uint64_t question, int fd)
{
	struct seccomp_notif_addfd add = {
		.id = question,
		.srcfd = fd,
		.newfd_flags = O_CLOEXEC,
	};
	int number = ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);

	return number < 0 ? -errno : number;
}

static bool messages_fit(void)
{
	struct seccomp_notif_sizes sizes;

	return !syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) &&
	       sizes.seccomp_notif <= MESSAGE_SIZE && sizes.seccomp_notif_resp <= MESSAGE_SIZE;
}

int sealed_files__answer(int listener, struct sealed_job *job)
{
	union {
		struct seccomp_notif message;
		char space[MESSAGE_SIZE];
	} question = {};
	union {
		struct seccomp_notif_resp message;
		char space[MESSAGE_SIZE];
	} answer = {};
	_cleanup_close_ int fd = -1;
	int number;

	if (!messages_fit())
		return -ENOTSUP;
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question))
		return errno == EINTR || errno == ENOENT ? 0 : -errno; /* it has died meanwhile */
	number = fd = judge_open(listener, &question.message, job);
	if (fd >= 0)
		number = hand_over(listener, question.message.id, fd);
	answer.message.id = question.message.id;
	if (number < 0)
		answer.message.error = number;
	else
		answer.message.val = number;
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer))
		return errno == ENOENT ? 0 : -errno;
	return 0;
}
