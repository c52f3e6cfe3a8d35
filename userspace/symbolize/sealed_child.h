/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOLIZE_SEALED_CHILD_H
#define SYMBOLIZE_SEALED_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct kept_child;
struct rusage;
struct sealed_child_request;
struct sealed_pool;
struct symbol_key;

/*
 * Send another request to a child that keeps its module and has answered. 0; negative errno: a part
 * may have been sent.
 */
int sealed_child__request(int socket, const uint64_t *addresses, size_t count, bool wants_index);

/*
 * Has a keeper (tenants/keeper.h), if one can be started, that forks children from now on. They end
 * with the calling thread, so it must outlive them. NULL: no memory.
 */
struct sealed_pool *sealed_pool__new(size_t bytes);
void sealed_pool__free(struct sealed_pool *p);
/* Does it keep any? `p` may be NULL. */
bool sealed_pool__keeps(const struct sealed_pool *p);
/* Another limit; those beyond it end. */
void sealed_pool__limit(struct sealed_pool *p, size_t bytes);

/* Ends all that are kept: another child needs as much memory as they have. `p` may be NULL. */
void sealed_pool__make_room(struct sealed_pool *p);

/*
 * The child's pid; *socket is the caller's. The keeper forks it if it can; `p` may be NULL. Its
 * first message (MESSAGE_PROGRESS) has the descriptor for file requests, if the kernel supports it.
 */
pid_t sealed_pool__start(struct sealed_pool *p, const struct sealed_child_request *request,
			 int *socket);

/* False: there is none for these files. */
bool sealed_pool__take(struct sealed_pool *p, const struct symbol_key *key,
		       struct kept_child *child);
/* It is the pool's now, which may end it at once. */
void sealed_pool__put(struct sealed_pool *p, const struct symbol_key *key,
		      const struct kept_child *child);
/* Ends a child that is not the pool's, as end_process(); `status` and `usage` may be NULL. */
int sealed_pool__end(const struct kept_child *child, int *status, struct rusage *usage);
/* Ends those without a request for some time. */
void sealed_pool__tidy(struct sealed_pool *p);

#endif
