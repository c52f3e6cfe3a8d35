/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which numbers processes have for us.
 *
 * The kernel's programs see the numbers of the initial pid namespace; targets, /proc and side-band
 * records speak those of ours. In a namespace of our own the program translates each task (see
 * bpf/filter.bpf.h), so that every event carries our numbers.
 */
#ifndef CAPTURE_PID_NAMESPACE_H
#define CAPTURE_PID_NAMESPACE_H

#include <stdint.h>

#include "base/log.h"

struct pid_namespace {
	uint32_t inode; /* of our namespace; 0: the initial one, nothing to translate */
};

/*
 * Look at ourselves. Fails (with the remedy) where /proc is missing or shows another namespace than
 * ours, since then every number read from it would name a stranger.
 */
int pid_namespace__detect(struct pid_namespace *ns, struct failure *failure);

#endif
