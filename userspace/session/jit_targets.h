/* SPDX-License-Identifier: BSD-2-Clause */
/* Which processes are followed by the JIT watcher: those that map memory for code. */
#ifndef SESSION_JIT_TARGETS_H
#define SESSION_JIT_TARGETS_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "jitwatch/jit_tail.h"

/* Must not move once it is initialised. */
struct jit_targets {
	struct jit_tail *tail; /* not owned */
	VEC(pid_t) pids;
	struct hashmap index;
};

void jit_targets__init(struct jit_targets *t, struct jit_tail *tail);
void jit_targets__fini(struct jit_targets *t);

/* Whoever maps memory for code will tell what that is, if at all. 0 or -ENOMEM. */
int jit_targets__see(struct jit_targets *t, const struct mmap_event *mmap);
/* The process has ended, or has become another program. 0 or -ENOMEM. */
int jit_targets__forget(struct jit_targets *t, pid_t pid);

#endif
