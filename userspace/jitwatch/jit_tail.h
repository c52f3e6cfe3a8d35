/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Follows what processes tell of the code that they make, in a thread of its own: whoever owns such a
 * file can make reading it slow, and the sooner a line is read, the better it is known when it was
 * written.
 *
 * inotify wakes the thread. A single line is as old as the file's own time says. Of several, none is
 * older than the last look at the file that found nothing new; where there are no signs it is glanced
 * at, after 5 ms and then each time that it has been quiet for a 64th longer. At most one round of
 * reading in 200 us, and 20 ms of CPU a second for one file.
 */
#ifndef JITWATCH_JIT_TAIL_H
#define JITWATCH_JIT_TAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "stream/event_queue.h"

struct jit_tail;

/*
 * `ask_jvms`: HotSpot processes write their map when they are asked: when they are followed, each ten
 * seconds, and at the end. 0 or negative errno. Everything may be called while the thread works; nothing blocks. */
int jit_tail__new(bool ask_jvms, struct jit_tail **tail);
/* A thread that hangs in somebody's file is left behind, with what it works on. */
void jit_tail__free(struct jit_tail *t);

/* The process runs code that it has made: look for its perf map, now and again. Again is nothing. */
int jit_tail__follow(struct jit_tail *t, pid_t pid);
/* It has mapped a jitdump at [start, end). */
int jit_tail__follow_dump(struct jit_tail *t, pid_t pid, const char *path, uint64_t start,
			  uint64_t end);
/* The process has ended, or has become another program: its files are read once more. */
int jit_tail__gone(struct jit_tail *t, pid_t pid);

/*
 * Give what was read to `push`, as events of the time `now`. 0, or what `push` returned.
 */
int jit_tail__take(struct jit_tail *t, uint64_t now, event_push_fn push, void *context);

/* Wait until everything that was asked for so far is done, at most `timeout` ns. True: it is. */
bool jit_tail__settle(struct jit_tail *t, uint64_t timeout);
/* The same at the end: every file is read once more, without waiting for writers. */
bool jit_tail__finish(struct jit_tail *t, uint64_t timeout);

/* CPU time of the thread so far, ns. */
uint64_t jit_tail__cpu(const struct jit_tail *t);

#endif
