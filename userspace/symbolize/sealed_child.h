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
	const uint64_t *addresses;
	size_t count;
	struct confine_options limits;
	sealed_resolve_fn resolve;
	bool keeps; /* by module__resolve(): then it waits for more questions (sealed_child__ask()) */
};

/*
 * The child's pid; *socket is the caller's. Its first byte comes with the descriptor that asks for files
 * (SCM_RIGHTS), if the kernel has such a thing; then follows what sealed_protocol.h says.
 */
pid_t sealed_child__start(const struct sealed_child_request *request, int *socket);

/* How to start one. `fds` and the request stay the caller's, until the fork. */
struct child_plan sealed_child__plan(const struct sealed_child_request *request, int fds[3]);

/*
 * Ask a child that keeps its module, and has answered, for more. 0; -EAGAIN: there is no room for the question, of which
 * a part may have gone; negative errno.
 */
int sealed_child__ask(int socket, const uint64_t *addresses, size_t count);
#define SEALED_QUESTION_MAX 8192u /* addresses; a child is not asked again for more */

/* The first byte: it asks for files, or it will do without. */
#define SEALED_GREETING_FILES 'f'
#define SEALED_GREETING_ALONE 'a'

/* Where a child has its descriptors. What it writes to SEALED_SOCKET, the parent reads. */
enum { SEALED_SOCKET = CHILD_SOCKET, SEALED_ELF = CHILD_FIRST_FD, SEALED_DEBUG, SEALED_ALT };

#endif
