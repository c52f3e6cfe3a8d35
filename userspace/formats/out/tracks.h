/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads of a file that shows all of them: which, in which order, and under which numbers. */
#ifndef FORMATS_OUT_TRACKS_H
#define FORMATS_OUT_TRACKS_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

/* A thread of the file. */
struct track {
	uint32_t thread;
	uint32_t group; /* first written thread of its process: orders the groups */
	/*
	 * Earlier users of the number in this file. A pid that was reused, or whose process called
	 * execve, is several processes, which viewers separate by number only. Tids likewise.
	 */
	uint32_t pid_life, tid_life;
};

/* A VEC(struct track). Processes by first appearance, in each of them the main thread first. */
struct tracks {
	struct track *data;
	size_t count, capacity;
};

/*
 * Threads without a CPU sample and without a wait are left out. If none is left, the target's are
 * taken, or all, because viewers do not open a file without threads. 0, -ENOMEM.
 */
int tracks__init(struct tracks *tracks, const struct profile *p);
void tracks__fini(struct tracks *tracks);

#endif
