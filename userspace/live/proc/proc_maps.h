/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The executable mappings of a process, from /proc/PID/maps, and the name of its program. Reading
 * them takes the lock of the process's memory, which a mapping on a hanging file system can hold
 * for ever. So a live session has a reader process read them (proc_maps__request); without readers
 * this process does.
 */
#ifndef LIVE_PROC_PROC_MAPS_H
#define LIVE_PROC_PROC_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/proc_task.h"
#include "tenants/pool.h"

/* One executable mapping, its path exact; valid until this returns. 0 or negative errno. */
typedef int (*maps_line_fn)(void *context, const struct proc_mapping *mapping);

struct proc_maps_result {
	size_t lines;	  /* of all mappings; 0: the process is gone, or not all were read */
	bool sink_failed; /* the error is what `take` has returned */
	char name[PROC_COMM_SIZE]; /* of its program (live/proc/exec_name.h); "": unknown */
	uint64_t began, ended;	   /* CLOCK_MONOTONIC ns: all of it is of times in between */
};

/*
 * `dir`: of the process, below /proc. A leader that has ended has no mappings, but other threads
 * do: *tid becomes one that has them. 0, -ENOMEM, -EMFILE, …; unreadable maps are no error.
 */
int proc_maps__read(int dir, pid_t pid, pid_t *tid, maps_line_fn take, void *context,
		    struct proc_maps_result *result);

/* The same by a reader: the pool's answer is for proc_maps__take(). 0, -EINVAL or -ENOMEM. */
int proc_maps__request(struct helper_pool *pool, unsigned int service, pid_t pid, int dir,
		       helper_answer_fn answer, void *context);
/* A helper_serve_fn. */
void proc_maps__serve(struct helper_job *job);
/* -ENOMEM, or as above. `requested`: the reading began no earlier. */
int proc_maps__take(const struct helper_answer *answer, uint64_t requested, pid_t *tid,
		    maps_line_fn take, void *context, struct proc_maps_result *result);

#endif
