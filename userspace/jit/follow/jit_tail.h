/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Follows perf maps and jitdumps of processes in watchers, processes of their own: a file's owner
 * can make reading it slow or endless, and the time of a line is more exact the earlier it is read.
 *
 * inotify wakes a watcher. The time of a single new line is the file's modification time. Several
 * new lines are younger than the last check that found nothing new. Without inotify events a file
 * is checked after 5 ms and then each time that it has been quiet for a 64th longer. There is at
 * most one round of reading in 200 us, and 20 ms of CPU per second for one file.
 *
 * Each user has a watcher. If it makes no progress in the user's files for a second, it is
 * abandoned, and that user's files are given up. A recording has at most 32 watchers at a time;
 * further users share those with the fewest processes. If a watcher dies or is abandoned, another
 * one reads the files of its other users anew. All are given up if that happens four times without
 * a user to blame, or if 32 abandoned watchers have not ended. The state of a file has the reason.
 */
#ifndef JIT_FOLLOW_JIT_TAIL_H
#define JIT_FOLLOW_JIT_TAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "stream/event_queue.h"
#include "tenants/outside_books.h"

struct jit_tail;

/*
 * Forks, so call it early. `attach_jvms`: request maps of HotSpot processes (jvm_requests.h). 0 or
 * negative errno. Used by one thread; only functions with a timeout block.
 */
int jit_tail__new(bool attach_jvms, struct jit_tail **tail);
/* Takes a second at most. NULL is fine. */
void jit_tail__free(struct jit_tail *t);

/* Counts files that are not read there; NULL: nowhere. */
void jit_tail__count_in(struct jit_tail *t, struct outside_books *books);

/* The process runs JIT code: search its perf map, repeatedly. Further calls have no effect. */
int jit_tail__follow(struct jit_tail *t, pid_t pid);
/* It has mapped a jitdump at [start, end): call jit_tail__follow() first. One request a path. */
int jit_tail__follow_dump(struct jit_tail *t, pid_t pid, const char *path, uint64_t start,
			  uint64_t end);
/* The process has ended or called execve: its files are read once more. */
int jit_tail__gone(struct jit_tail *t, pid_t pid);

/* A process was followed. */
bool jit_tail__follows(const struct jit_tail *t);

/*
 * Passes what was read to `push`, as events of the time `now`. 0, or what `push` returned. Call it
 * regularly: it also detects watchers that hang.
 */
int jit_tail__take(struct jit_tail *t, uint64_t now, event_push_fn push, void *context);

/*
 * During a pause files are read only when their process ends or at jit_tail__finish(). Times of
 * lines written meanwhile are uncertain by its length. Files that a process deletes meanwhile are
 * lost.
 */
void jit_tail__pause(struct jit_tail *t, bool pause);

/* Waits until all requests so far are done, at most `timeout` ns. True: they are. */
bool jit_tail__settle(struct jit_tail *t, uint64_t timeout);
/* The same at the end: every file is read once more, without waiting for writers. */
bool jit_tail__finish(struct jit_tail *t, uint64_t timeout);

#endif
