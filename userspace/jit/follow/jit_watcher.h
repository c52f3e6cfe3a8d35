/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef JIT_FOLLOW_JIT_WATCHER_H
#define JIT_FOLLOW_JIT_WATCHER_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

struct child_self;
struct jit_channels;

/*
 * A JIT watcher is a process that runs commands, sends requests to JVMs, follows files, and passes
 * their contents through its channel. The owner of a file can make a read slow or endless, so the
 * collector does not read such files, and does not wait for a watcher that hangs.
 */

/* The data of its fork. */
struct jit_begin {
	struct jit_channels *channels; /* at the same address in all processes */
	unsigned int number;	       /* of its own channel */
};

/* The service in a message's frame. */
enum jit_command_kind { JIT_WAKE, JIT_FOLLOW, JIT_FOLLOW_DUMP, JIT_GONE };

/* The bytes of all but JIT_WAKE. */
struct jit_command {
	pid_t pid;
	uint64_t start, end;
	char path[PATH_MAX]; /* of a dump; the bytes behind its NUL are not sent */
};

/* A child_run_fn. Runs until the collector closes the socket. */
int jit_watcher__run(const struct child_self *self);

#endif
