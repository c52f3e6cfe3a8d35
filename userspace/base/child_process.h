/* SPDX-License-Identifier: BSD-2-Clause */
/* What a fork of this program does first, to have nothing of its parent's that it has no use for. */
#ifndef BASE_CHILD_PROCESS_H
#define BASE_CHILD_PROCESS_H

#include <sys/types.h>

/*
 * fork() with a socket pair of this type (SOCK_STREAM, …) between the two: *socket is the end of whoever it returns to.
 * In the child all signals are blocked until child__reset_signals(): no handler of its parent's runs there. The child's
 * pid, 0 in the child, or negative errno.
 */
pid_t child__fork(int type, int *socket);

/* No handlers, nothing blocked. What a terminal sends is ignored: the parent knows what it means. */
void child__reset_signals(void);
/* Closes all descriptors from this one on, or ends the process. */
void child__close_from(int first);

#endif
