/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/process_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

int process_memory__read(pid_t pid, void *to, size_t size, uint64_t address)
{
	struct iovec local = {to, size}, remote = {(void *)(uintptr_t)address, size};
	ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	if (got < 0)
		return errno == EFAULT ? -ENODATA : -errno;
	return (size_t)got == size ? 0 : -ENODATA;
}

int process_memory__open(pid_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd > 0)
		return fd;
	if (fd < 0)
		return -errno;
	close(fd);
	return -EBADF;
}

int process_memory__read_at(int fd, void *to, size_t size, uint64_t address)
{
	ssize_t got = address > INT64_MAX - size ? -1 : pread(fd, to, size, (off_t)address);

	if (!got && size)
		return -ESRCH;
	return got == (ssize_t)size ? 0 : -ENODATA;
}
