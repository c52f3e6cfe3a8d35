/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Follows perf maps and jitdumps of processes, in a process of its own: the owner of a file can make reading
 * it slow, or never end, and the earlier a line is read, the more exactly its time is known.
 *
 * inotify wakes that process, the watcher. The time of a single new line is the file's modification time. If there
 * are several, none is older than the last check of the file that found nothing new. Without inotify events a
 * file is checked after 5 ms and then whenever it has been quiet for a 64th longer. There is at most one
 * round of reading in 200 us, and 20 ms of CPU per second for one file.
 *
 * Each user has a separate watcher. One that makes no progress in a user's files for a second is abandoned, and files
 * of that user are not read any more; other users are not affected. There are 32 watchers in a recording: users
 * beyond that share one, and there another watcher begins, which reads all files of the line anew but those of that
 * user. That can happen three times to a line; then its files are not read any more. Files say so by their state.
 */
#ifndef JITWATCH_JIT_TAIL_H
#define JITWATCH_JIT_TAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/outside_books.h"
#include "stream/event_queue.h"

struct jit_tail;

/*
 * `attach_jvms`: request the maps of HotSpot processes: when they are followed, each ten seconds, and at the end. 0 or
 * negative errno. It forks, so it comes early. By one thread; nothing blocks, but for
 * what has a timeout. */
int jit_tail__new(bool attach_jvms, struct jit_tail **tail);
/* Takes a second at most. NULL is fine. */
void jit_tail__free(struct jit_tail *t);

/* Files that are left are counted there; NULL: nowhere. */
void jit_tail__count_in(struct jit_tail *t, struct outside_books *books);

/* The process runs JIT code: look for its perf map, repeatedly. Further calls have no effect. */
int jit_tail__follow(struct jit_tail *t, pid_t pid);
/* It has mapped a jitdump at [start, end). */
int jit_tail__follow_dump(struct jit_tail *t, pid_t pid, const char *path, uint64_t start,
			  uint64_t end);
/* The process has ended or called execve: its files are read once more. */
int jit_tail__gone(struct jit_tail *t, pid_t pid);

/* Is any file followed, or a process that may have one? */
bool jit_tail__follows(const struct jit_tail *t);

/*
 * Give what was read to `push`, as events of the time `now`. 0, or what `push` returned. To be called regularly: here
 * it is noticed that a watcher hangs.
 */
int jit_tail__take(struct jit_tail *t, uint64_t now, event_push_fn push, void *context);

/*
 * No file is read until this is taken back (or everything is read once more, at the end): what was written meanwhile is
 * read then, and its times are as uncertain as the pause was long. What a process deletes before it ends is not had.
 */
void jit_tail__pause(struct jit_tail *t, bool pause);

/* Waits until all requests so far are done, at most `timeout` ns. True: they are. */
bool jit_tail__settle(struct jit_tail *t, uint64_t timeout);
/* The same at the end: every file is read once more, without waiting for writers. */
bool jit_tail__finish(struct jit_tail *t, uint64_t timeout);

/* CPU time of the watchers so far, ns. */
uint64_t jit_tail__cpu(const struct jit_tail *t);

#endif
