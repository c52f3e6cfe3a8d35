/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a JIT watcher does, a process of its own: it runs commands, sends requests to JVMs, follows files, and passes what
 * it has read to the collector by a channel. The owner of a file can make reading it slow, or never end, so no thread of
 * the collector reads such files, and nothing waits for a watcher that hangs.
 */
#ifndef JITWATCH_JIT_WATCHER_H
#define JITWATCH_JIT_WATCHER_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "helpers/child.h"
#include "jitwatch/jit_channel.h"

/* The data of its fork. */
struct jit_begin {
	struct jit_channels *channels; /* at the same address in all processes */
	unsigned int number;	       /* of its own */
};

/* The services of messages to a watcher. */
enum jit_command_kind { JIT_WAKE, JIT_FOLLOW, JIT_FOLLOW_DUMP, JIT_GONE };

/* The bytes of the last three. */
struct jit_command {
	pid_t pid;
	uint64_t start, end;
	char path[PATH_MAX]; /* of a dump; the bytes behind its NUL are not sent */
};

/* A child_run_fn. It runs until the collector closes its socket. */
int jit_watcher__run(const struct child_self *self);

#endif
