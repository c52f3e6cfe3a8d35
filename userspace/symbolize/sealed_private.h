/* SPDX-License-Identifier: BSD-2-Clause */
/* What tests may have otherwise: what the children do, and how long they may. */
#ifndef SYMBOLIZE_SEALED_PRIVATE_H
#define SYMBOLIZE_SEALED_PRIVATE_H

#include "symbolize/sealed.h"
#include "symbolize/sealed_child.h"

struct sealed_work {
	sealed_resolve_fn resolve;
	struct sealed_pool *pool; /* NULL: no child is kept */
	uint64_t memory;	  /* bytes a child; 0: a quarter of what is available */
	unsigned int cpu_seconds; /* a child; 0: by the size of its files */
	uint64_t wall_time;	  /* ns a child; 0: a multiple of its CPU time */
	uint64_t stuck_time;	  /* ns without any sign of life; 0: some seconds */
	/* of CPU, of a user, of all but root; 0: by the table of quotas */
	unsigned int user_seconds, others_seconds;
};

int sealed_run_work(struct sealed_job *jobs, size_t count, unsigned int parallel,
		    sealed_poll_fn poll, void *context, const struct sealed_work *work);

#endif
