/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Follows perf maps and jitdumps of processes, in a thread of its own: the owner of a file can make reading
 * it slow, and the earlier a line is read, the more exactly its time is known.
 *
 * inotify wakes the thread. The time of a single new line is the file's modification time. If there are
 * several, none is older than the last check of the file that found nothing new. Without inotify events a
 * file is checked after 5 ms and then whenever it has been quiet for a 64th longer. There is at most one
 * round of reading in 200 us, and 20 ms of CPU per second for one file.
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
/* If the thread hangs in a file, it and its data are leaked. */
void jit_tail__free(struct jit_tail *t);

/* The process runs JIT code: look for its perf map, repeatedly. Further calls have no effect. */
int jit_tail__follow(struct jit_tail *t, pid_t pid);
/* It has mapped a jitdump at [start, end). */
int jit_tail__follow_dump(struct jit_tail *t, pid_t pid, const char *path, uint64_t start,
			  uint64_t end);
/* The process has ended or called execve: its files are read once more. */
int jit_tail__gone(struct jit_tail *t, pid_t pid);

/*
 * Give what was read to `push`, as events of the time `now`. 0, or what `push` returned.
 */
int jit_tail__take(struct jit_tail *t, uint64_t now, event_push_fn push, void *context);

/* Waits until all requests so far are done, at most `timeout` ns. True: they are. */
bool jit_tail__settle(struct jit_tail *t, uint64_t timeout);
/* The same at the end: every file is read once more, without waiting for writers. */
bool jit_tail__finish(struct jit_tail *t, uint64_t timeout);

/* CPU time of the thread so far, ns. */
uint64_t jit_tail__cpu(const struct jit_tail *t);

#endif
