/* SPDX-License-Identifier: BSD-2-Clause */
/* One sealed child: from fork to the last byte of its answer. */
#ifndef SYMBOLIZE_SEALED_CHILD_H
#define SYMBOLIZE_SEALED_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "helpers/child.h"
#include "symbolize/module.h"

/* What a child does, module_resolve() but for tests. */
typedef int (*sealed_resolve_fn)(const struct module_files *files, const uint64_t *addresses,
				 size_t count, symbol_sink_fn sink, void *context,
				 struct module_report *report);

struct sealed_child_request {
	struct module_files files;
	const uint64_t *addresses; /* read before the call returns … */
	int addresses_fd;	   /* … and passed as a file in memory */
	size_t count;
	struct confine_options limits;
	sealed_resolve_fn resolve;
	bool keeps; /* by module__resolve(): then it waits for more questions (sealed_child__request()) */
};

/* Forks a keeper (helpers/keeper.h). The thread that calls must outlive the children: they end with it. */
int sealed_child__start_keeper(pid_t *keeper, int *control);

/*
 * The child's pid; *socket is the caller's. `keeper`: the control of one, or -1: this process forks. Its first message (MESSAGE_PROGRESS) has the descriptor that requests
 * files, if the kernel has such a thing; then follow those of sealed_protocol.h.
 */
pid_t sealed_child__start(const struct sealed_child_request *request, int keeper, int *socket);

/*
 * Send another request to a child that keeps its module and has answered. 0; negative errno, and a part of the
 * question may have gone.
 */
int sealed_child__request(int socket, const uint64_t *addresses, size_t count);
#define SEALED_QUESTION_MAX 8192u /* addresses, at most, of a further request */

/* What a child writes to this one, the parent reads. */
#define SEALED_SOCKET CHILD_SOCKET

#endif
