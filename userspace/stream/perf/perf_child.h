/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf.data read by a sandboxed child (HELPER_PERF_READER): the program's way to read it. The child
 * has no file system, so it gets descriptors of the file and of the kernel's symbols, and what else
 * is to be known of this machine.
 */
#ifndef STREAM_PERF_PERF_CHILD_H
#define STREAM_PERF_PERF_CHILD_H

#include "stream/perf/perf_data.h"

/* What is unset is as in the program. */
struct perf_child_work {
	perf_read_fn read; /* what the child does: perf_data_read() */
	unsigned int cpu_seconds;
	uint64_t silence; /* ns after which a child without progress is ended */
};

/*
 * As perf_data_read() in this process: the same events, summary and errors. What the child sends is
 * checked as events of a recording are. Also -EIO: the child died, -ETIMEDOUT: it makes no progress,
 * -EBADMSG: it sent what no child sends, -EFBIG: too much, or no child could be started. `work`: NULL
 * is fine.
 */
int perf_child__read(int fd, bool copies, const struct perf_child_work *work, event_sink_fn sink,
		     void *context, struct perf_data_summary *summary, struct failure *failure);

#endif
