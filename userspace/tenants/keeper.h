/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that forks helpers. It is forked early, while the caller has one thread, little
 * memory and no important files, so helpers start fast and inherit nothing of the collector's. It
 * reads only requests of the collector. Helpers are its children: the collector never waits for
 * them, and init gets those that are stuck. Those of a class that is `reaped` are children of the
 * collector.
 */
#ifndef TENANTS_KEEPER_H
#define TENANTS_KEEPER_H

#include <sys/types.h>

#include "tenants/child.h"
#include "tenants/helper_process.h"

/*
 * Forks a keeper for helpers of this plan, which is copied. The caller must have one thread. 0 or
 * negative errno. The keeper ends when its socket, the control, is closed.
 */
int keeper__start(enum helper_class_id class, const struct child_plan *helper,
		  struct helper_process *keeper);
/*
 * Requests a helper and does not wait for it. *socket (SOCK_SEQPACKET) is the caller's end; the
 * other end is closed if the fork fails. `helper`: data (up to KEEPER_DATA_MAX bytes), descriptors
 * and limits of this one; NULL: as in the keeper's plan. 0; -EAGAIN: too many requests wait, or
 * there is no socket or memory now; -EMSGSIZE: too much data; other negative errno: the keeper has ended.
 *
 * If its class is `reaped`, waits for the fork, two seconds at most. The pid; -EPIPE: the keeper has
 * ended or does not answer, and must be ended, because the next fork would get its answer; or the
 * fork's error.
 */
pid_t keeper__fork(int control, const struct child_plan *helper, int *socket);
#define KEEPER_DATA_MAX 512
/*
 * Closes its control and waits for the keeper, which gives helpers 200 ms to end; the rest are
 * killed. HELPER_PROCESS_NONE is fine.
 */
void keeper__stop(struct helper_process *keeper);

#endif
