/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that forks sealed children for its parent. It was forked while that had little memory, so a child begins and
 * ends sooner, and has nothing of the parent's. The children are the parent's own, who waits for them.
 */
#ifndef SYMBOLIZE_SEALED_KEEPER_H
#define SYMBOLIZE_SEALED_KEEPER_H

#include <sys/types.h>

#include "symbolize/sealed_child.h"

struct sealed_keeper;

/* NULL: it cannot be started. The thread that calls must outlive the children: they end with it. */
struct sealed_keeper *sealed_keeper__new(void);
/* `k` may be NULL. Its children go on. */
void sealed_keeper__free(struct sealed_keeper *k);

/* As sealed_child__start(). An error is no reason not to do without the keeper. */
pid_t sealed_keeper__start(struct sealed_keeper *k, const struct sealed_child_request *request,
			   int *socket);

#endif
