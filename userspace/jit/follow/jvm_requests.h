/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests perf maps of HotSpot processes like `jcmd PID Compiler.perfmap`: when first seen, every
 * ten seconds, and at the end. A child sends the request; no program is run. Used by one thread.
 */
#ifndef JIT_FOLLOW_JVM_REQUESTS_H
#define JIT_FOLLOW_JVM_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "jit/follow/jit_find.h"

struct jvm_request {
	struct jit_owner owner;
	uint64_t next;
	pid_t child; /* sends the request; 0: none */
	uint64_t began;
	unsigned int tries; /* failed */
	bool gone;
};

/* Zero-initialised. */
struct jvm_requests {
	VEC(struct jvm_request) jvms;
	bool sent_at_end;
};

/* Sends requests from the next round on, if the process is a JVM. 0 or -ENOMEM. */
int jvm_requests__add(struct jvm_requests *a, const struct jit_owner *owner);
/* The process has ended or called execve. */
void jvm_requests__forget(struct jvm_requests *a, pid_t pid);

struct jvm_requests_caller {
	void (*answered)(void *context, pid_t pid); /* a child has ended */
	/* Called before files of this process are used, which may hang; NULL: afterwards. */
	void (*touch)(void *context, const struct jit_owner *owner);
	void *context;
};

/* Sends due requests; `at_end`: one more to each. */
void jvm_requests__send_due(struct jvm_requests *a, bool at_end,
			    const struct jvm_requests_caller *caller);
/* A request has no answer yet. */
bool jvm_requests__are_pending(const struct jvm_requests *a);
/* When there is something to do; UINT64_MAX: never. */
uint64_t jvm_requests__next_due(const struct jvm_requests *a, uint64_t now);

/* Kills the children, and does not wait: one may hang in a file. */
void jvm_requests__stop(struct jvm_requests *a);
void jvm_requests__fini(struct jvm_requests *a);

#endif
