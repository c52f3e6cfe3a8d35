/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks a HotSpot process for its perf map, as `jcmd PID Compiler.perfmap` does: through the socket that
 * it opens when it is sent SIGQUIT beside a file of a certain name. No program is run; a child of ours
 * talks to it, as the process's user, so that whatever happens there costs that child.
 */
#ifndef JITWATCH_JVM_ATTACH_H
#define JITWATCH_JVM_ATTACH_H

#include <stdbool.h>
#include <sys/types.h>

#include "jitwatch/jit_find.h"

/* Does the process run HotSpot? */
bool jvm_is_one(const struct jit_owner *owner);
/* ... and would it survive being asked? It does once it has started. */
bool jvm_can_be_asked(const struct jit_owner *owner);

/*
 * Begin. The child's pid, which the caller waits for: it ends with 0 if the map was written. Or negative
 * errno; -ESRCH: it is not to be asked (any more, or yet).
 */
pid_t jvm_attach__begin(const struct jit_owner *owner);

#endif
