/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests perf maps of HotSpot processes, as `jcmd PID Compiler.perfmap` does: when they are first seen, every ten
 * seconds, and at the end. A child process sends the request; no program is run. Used by one thread.
 */
#ifndef JITWATCH_JVM_REQUESTS_H
#define JITWATCH_JVM_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "jitwatch/jit_find.h"

struct jvm_request {
	struct jit_owner owner;
	uint64_t next;
	pid_t child; /* the process that sends the request; 0: none */
	uint64_t began;
	unsigned int tries; /* failed */
	bool gone;
};

/* Zero-initialised. */
struct jvm_requests {
	VEC(struct jvm_request) jvms;
	bool sent_at_end;
};

/* The process gets requests from the next round on, if it is a JVM. 0 or -ENOMEM. */
int jvm_requests__add(struct jvm_requests *a, const struct jit_owner *owner);
/* It has ended, or has become another program. */
void jvm_requests__forget(struct jvm_requests *a, pid_t pid);

struct jvm_requests_caller {
	void (*answered)(void *context, pid_t pid); /* a child has ended */
	/* Files of this process are about to be used, which may never return; NULL: no more. */
	void (*touch)(void *context, const struct jit_owner *owner);
	void *context;
};

/* Send the requests that are due; `at_end`: once more. */
void jvm_requests__send_due(struct jvm_requests *a, bool at_end,
			    const struct jvm_requests_caller *caller);
/* Is a request under way? */
bool jvm_requests__are_pending(const struct jvm_requests *a);
/* When there is something to do; UINT64_MAX: never. */
uint64_t jvm_requests__next_due(const struct jvm_requests *a, uint64_t now);

/* Kill the children. One that hangs in a file is not waited for. */
void jvm_requests__stop(struct jvm_requests *a);
void jvm_requests__fini(struct jvm_requests *a);

#endif
