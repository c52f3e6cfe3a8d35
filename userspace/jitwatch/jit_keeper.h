/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts JIT watchers: a small process that is forked before the collector has much in its
 * memory, and touches nobody's files.
 *
 * Whoever reads somebody's file can be made to wait for ever, by a file system that is the owner's program
 * (FUSE; also below an overlayfs that he has mounted). SIGKILL does not end such a wait, and a process of which one
 * thread waits cannot end: its parent waits for it. So no thread of the collector reads such files, and nobody waits
 * for a watcher that hangs: it is the keeper's child, and init's when that has ended.
 */
#ifndef JITWATCH_JIT_KEEPER_H
#define JITWATCH_JIT_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "jitwatch/jit_channel.h"

struct jit_keeper {
	pid_t pid;	/* 0: there is none */
	int request_fd; /* its other end also tells the watchers that we live */
	int wake_fds[JIT_WATCHERS_MAX];
	struct jit_channel *channels[JIT_WATCHERS_MAX];
};

/* Forks it. 0 or negative errno. */
int jit_keeper__start(struct jit_keeper *k);
/*
 * The watchers are asked to end, and what has not ended within a second is killed, and left if that does not help.
 * Returns once the keeper has ended. A zeroed one whose request_fd is -1 is fine.
 */
void jit_keeper__stop(struct jit_keeper *k);

/* Starts watcher `number`, by its channel. 0 or negative errno. */
int jit_keeper__begin(struct jit_keeper *k, unsigned int number);
void jit_keeper__wake(const struct jit_keeper *k, unsigned int number);
void jit_keeper__kill(const struct jit_keeper *k, unsigned int number);

enum jit_watcher_state {
	JIT_WATCHER_RUNS, /* or would, if it got a CPU; or somebody has stopped it */
	JIT_WATCHER_WAITS,
	JIT_WATCHER_ENDED,
};
enum jit_watcher_state jit_keeper__look(struct jit_keeper *k, unsigned int number);

#endif
