/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the JIT watcher does, a process of its own (jit_keeper.h): it obeys commands, asks JVMs, follows files, and
 * gives what it has read to the collector, by a channel.
 */
#ifndef JITWATCH_JIT_WATCHER_H
#define JITWATCH_JIT_WATCHER_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "jitwatch/jit_channel.h"

enum jit_command_kind { JIT_FOLLOW, JIT_FOLLOW_DUMP, JIT_GONE };

struct jit_command {
	uint32_t kind;
	pid_t pid;
	uint64_t start, end;
	char path[PATH_MAX]; /* of a dump; the bytes behind its NUL are not sent */
};

/*
 * Until the channel says so, or nobody has the other end of `life_fd` any more. `wake_fd`, an eventfd: there is
 * something new in the channel. 0 or negative errno.
 */
int jit_watcher__run(struct jit_channel *channel, int wake_fd, int life_fd);

#endif
