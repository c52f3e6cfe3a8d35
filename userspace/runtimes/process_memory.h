/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of a process that runs. It is a tenant's: what it has may be anything, and may change. */
#ifndef RUNTIMES_PROCESS_MEMORY_H
#define RUNTIMES_PROCESS_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All of it. 0; -ENODATA: it is not there; -ESRCH, -EPERM. */
int process_memory__read(pid_t pid, void *to, size_t size, uint64_t address);

/*
 * The same by /proc/PID/mem, whose descriptor stands for the program that the process was when it was opened: whether it may
 * be read was looked at then, and not each time. -ESRCH: that has ended, or executed another one.
 */
int process_memory__open(pid_t pid); /* a descriptor, never 0, or negative errno */
int process_memory__read_at(int fd, void *to, size_t size, uint64_t address);

#endif
