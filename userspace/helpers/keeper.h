/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that forks helpers. It is forked early, while the caller has one thread, little memory and no file that
 * matters, so helpers start fast and have nothing of the collector's. It reads nothing but requests of the collector.
 * Helpers are its children: the collector waits for none of them, and init takes those that are stuck. Siblings are the
 * collector's own children, which it reaps.
 */
#ifndef HELPERS_KEEPER_H
#define HELPERS_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "helpers/child.h"

/*
 * Forks a keeper of class `class` for helpers that are made by the plan, which is copied; the caller must have one thread.
 * 0 or negative errno. The end of *control is the keeper's end.
 */
int keeper__start(enum helper_class_id class, const struct child_plan *helper, pid_t *keeper,
		  int *control);
/*
 * Requests a helper and does not wait for it: *socket (SOCK_SEQPACKET) is the caller's end, and is closed by the other side if no helper
 * can be had. `helper`: data (KEEPER_DATA_MAX bytes), descriptors and limits of this one; NULL: as in the keeper's plan.
 * 0; -EAGAIN: too many requests wait; negative errno: the keeper has ended.
 *
 * `sibling`: waits for the fork, two seconds at most. The pid; -EPIPE: the keeper has ended, or does not answer and has
 * to be ended, because a late answer would be taken for another request's; or the error of the fork.
 */
pid_t keeper__fork(int control, const struct child_plan *helper, bool sibling, int *socket);
#define KEEPER_DATA_MAX 512
/*
 * Closes *control, if it is not -1, and waits for the keeper, which ends at once, but for a moment in which helpers may.
 * Those that do not are killed. A pid of 0 is fine.
 */
void keeper__stop(pid_t keeper, int *control);

#endif
