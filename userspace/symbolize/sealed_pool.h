/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sealed children that have answered and wait for further requests: opening a module, which reads all its debug
 * information, takes many times as long as a few more addresses. A child is still of one module alone. The memory of
 * all of them is limited. There are requests in each window, so the child that saves the least time for its memory
 * ends first, not the one with the oldest request.
 */
#ifndef SYMBOLIZE_SEALED_POOL_H
#define SYMBOLIZE_SEALED_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "symbolize/symbol_answers.h"
#include "symbolize/sealed_child.h"

struct sealed_pool;

/* A child that waits for a question, or works on one. */
struct kept_child {
	pid_t pid;
	int socket, listener;
	uint64_t used;	  /* ns of CPU time … */
	uint64_t opening; /* … of which until its first answer: what another one would cost */
};

/* With a keeper that forks children from now on, if one can be started. NULL: no memory. */
struct sealed_pool *sealed_pool__new(size_t bytes);
void sealed_pool__free(struct sealed_pool *p);
/* Another limit; those beyond it end. */
void sealed_pool__limit(struct sealed_pool *p, size_t bytes);

/* As sealed_child__start(), by the keeper if it can. `p` may be NULL. */
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
