/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests the perf map of a HotSpot process, as `jcmd PID Compiler.perfmap` does: through the socket that it opens
 * on SIGQUIT if a file of a certain name exists. No program is run. A child process of ours does it, as the user of
 * the target process, so that a hang or crash affects only that child.
 */
#ifndef JITWATCH_JVM_ATTACH_H
#define JITWATCH_JVM_ATTACH_H

#include <stdbool.h>
#include <sys/types.h>

#include "jitwatch/jit_find.h"

/* Does the process run HotSpot? */
bool jvm_is_one(pid_t pid);

/*
 * Starts the child. Returns its pid, for which the caller waits: its status is 0 if the map was written. Or negative
 * errno; -ESRCH: the process takes no requests (any more, or yet: it would not
 * survive one before it has started).
 */
pid_t jvm_attach__begin(const struct jit_owner *owner);

#endif
