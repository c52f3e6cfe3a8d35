/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOLIZE_SEALED_CHILD_H
#define SYMBOLIZE_SEALED_CHILD_H

struct helper_process;
struct sealed_child_request;
struct sealed_keeper;

/*
 * Has a process (tenants/keeper.h), if one can be started, that forks children from now on. They end
 * with the calling thread, so it must outlive them. NULL: no memory.
 */
struct sealed_keeper *sealed_keeper__new(void);
void sealed_keeper__free(struct sealed_keeper *k); /* NULL is fine */

/*
 * The keeper forks the child if it can; `k` may be NULL. Its first message (MESSAGE_PROGRESS) has
 * the descriptor for file requests, if the kernel supports it. 0 or negative errno.
 */
int sealed_keeper__fork(struct sealed_keeper *k, const struct sealed_child_request *request,
			struct helper_process *child);

#endif
