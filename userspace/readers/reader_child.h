/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes of a pool: the keeper, which forks readers, and the readers. */
#ifndef READERS_READER_CHILD_H
#define READERS_READER_CHILD_H

#include <sys/types.h>

#include "readers/reader_pool.h"

/* Before the bytes of each message from a reader. */
struct reader_head {
	uint64_t cpu_ns; /* that serving took */
	uint32_t
		pid; /* of a reader that says that it is there: the only message without a request */
	uint32_t size; /* of the answer */
};

/*
 * Forks the keeper. Each byte with a descriptor that is written to *control makes it fork a reader which serves at
 * that socket. Its end, and that of all readers that are not stuck, is the end of *control. 0 or negative errno.
 */
int reader_keeper__start(const struct reader_pool_options *options, pid_t *keeper, int *control);

#endif
