/* SPDX-License-Identifier: BSD-2-Clause */
#include "jitwatch/process_memory.h"

#include <errno.h>
#include <sys/uio.h>

int process_memory__read(pid_t pid, void *to, size_t size, uint64_t address)
{
	struct iovec local = {to, size}, remote = {(void *)(uintptr_t)address, size};
	ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	if (got < 0)
		return errno == EFAULT ? -ENODATA : -errno;
	return (size_t)got == size ? 0 : -ENODATA;
}
