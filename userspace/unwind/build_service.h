/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind tables built by processes without privileges, each of which builds one (build_child.h). Whoever asks believes
 * nothing of what comes back: it is copied from memory that nobody can write any more, and checked.
 *
 * A builder that ends, hangs, or sends something else costs that file its table. A user whose files have builders
 * hang has no tables built any more.
 */
#ifndef UNWIND_BUILD_SERVICE_H
#define UNWIND_BUILD_SERVICE_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/build_child.h"

struct build_service;

struct build_service_options {
	build_work_fn work; /* NULL: build_child__work() */
	uint64_t patience;  /* ns without any progress, until a builder hangs; 0: a second */
	uint64_t wall_time; /* ns that it may take in all, on a busy machine; 0: 20 s */
};

/*
 * Forks the keeper of builders: the caller must have one thread, and should have little memory. NULL options: the
 * defaults. 0 or negative errno.
 */
int build_service__start(const struct build_service_options *options,
			 struct build_service **service);
/* No thread uses it any more. Waits for the keeper, and for no builder. NULL is fine. */
void build_service__free(struct build_service *s);

struct build_request {
	int fd; /* the caller's */
	uint64_t base;
	uint64_t limit; /* bytes of the table */
	enum build_kind kind;
	uint32_t owner; /* the user whose file it is; 0 is trusted not to have builders hang */
};

struct build_result {
	int err; /* as of unwind_table__build(); -EPIPE, -ETIMEDOUT, -EPROTO, -EPERM: as `refusal` says */
	enum table_refusal refusal;
	struct unwind_table_image image; /* the caller's */
	uint64_t cpu_ns;		 /* of the builder, as the kernel counted it */
};

/* Builds one table, and waits for it. One thread at a time. */
void build_service__build(struct build_service *s, const struct build_request *request,
			  struct build_result *result);

#endif
