/* SPDX-License-Identifier: BSD-2-Clause */
/* First steps of a forked child: it drops descriptors and signal handlers of its parent. */
#ifndef BASE_CHILD_PROCESS_H
#define BASE_CHILD_PROCESS_H

#include <sys/types.h>

/*
 * fork() with a socket pair of this type (SOCK_STREAM, …) between the two: *socket is the end of the process that it
 * returns in. In the child all signals are blocked until child__reset_signals(): so that no handler of its parent
 * runs there. The child's pid, 0 in the child, or negative errno.
 */
pid_t child__fork(int type, int *socket);

/* Resets handlers and unblocks all signals. Signals from a terminal are ignored: the parent handles them. */
void child__reset_signals(void);
/* Closes all descriptors from this one on, or ends the process. */
void child__close_from(int first);

#endif
