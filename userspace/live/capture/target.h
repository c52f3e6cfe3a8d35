/* SPDX-License-Identifier: BSD-2-Clause */
/* The targets, and whether they can be sampled. */
#ifndef LIVE_CAPTURE_TARGET_H
#define LIVE_CAPTURE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"

enum target_mode {
	TARGET_ALL,	  /* -a: every process, without idle */
	TARGET_PROCESSES, /* -p and COMMAND: ids are processes */
	TARGET_THREADS,	  /* -t: ids are threads */
};

struct target {
	enum target_mode mode;
	bool inherit;	    /* children too: new processes; in TARGET_THREADS new threads as well */
	bool exclude_self;  /* not our own process */
	const char *cgroup; /* only in this group: absolute, or below the root; NULL: no limit */
	const uint32_t *cpus; /* sample on these CPUs only; NULL: on all */
	size_t cpu_count;
};

/*
 * Can this process (thread) be sampled in user space? 0; -ESRCH: there is none; -ECHILD: a zombie;
 * -ENOTSUP: a kernel thread (only -a shows those). `failure` has the sentence.
 */
int target_check_process(pid_t pid, struct failure *failure);
int target_check_thread(pid_t tid, struct failure *failure);

/* Does it exist, and is no zombie? */
bool target_thread_runs(pid_t tid);

#define CGROUP_ROOT "/sys/fs/cgroup" /* where they are by convention */
/* Where cgroups of version 2 are mounted; NULL: nowhere. */
const char *target_cgroup_root(void);

/* The process a thread belongs to, or negative errno. */
pid_t target_process_of(pid_t tid);

/* ---- the pid namespace ----------------------------------------------------------------------- */

/*
 * Which numbers processes have for us.
 *
 * The kernel's programs see the numbers of the initial pid namespace; targets, /proc and side-band
 * records speak those of ours. In a namespace of our own the program translates each task (see
 * bpf/filter.bpf.h), so that every event carries our numbers.
 */

struct pid_namespace {
	uint32_t inode; /* of our namespace; 0: the initial one, nothing to translate */
};

/*
 * Look at ourselves. Fails (with the remedy) where /proc is missing or shows another namespace than
 * ours, since then every number read from it would name a stranger.
 */
int pid_namespace__detect(struct pid_namespace *ns, struct failure *failure);

/* The kernel's times are not those of another time namespace: 0, or -EXDEV if ours has an offset. */
int time_namespace__check(struct failure *failure);

#endif
