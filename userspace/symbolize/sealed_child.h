/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOLIZE_SEALED_CHILD_H
#define SYMBOLIZE_SEALED_CHILD_H

#include <sys/types.h>

struct sealed_child_request;
struct sealed_keeper;

/*
 * Has a process (tenants/keeper.h), if one can be started, that forks children from now on. They end
 * with the calling thread, so it must outlive them. NULL: no memory.
 */
struct sealed_keeper *sealed_keeper__new(void);
void sealed_keeper__free(struct sealed_keeper *k); /* NULL is fine */

/*
 * The child's pid; *socket is the caller's. The keeper forks it if it can; `k` may be NULL. Its
 * first message (MESSAGE_PROGRESS) has the descriptor for file requests, if the kernel supports it.
 */
pid_t sealed_keeper__fork(struct sealed_keeper *k, const struct sealed_child_request *request,
			  int *socket);

#endif
