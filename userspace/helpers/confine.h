/* SPDX-License-Identifier: BSD-2-Clause */
/* Drops the privileges of a process before it reads other users' files: the row of its class, but for the filter. */
#ifndef HELPERS_CONFINE_H
#define HELPERS_CONFINE_H

#include <stdint.h>
#include <sys/types.h>

#include "helpers/classes.h"

struct confine_options {
	uint64_t
		memory; /* bytes; 0: the class's. A limit that the class does not have is not set. */
	unsigned int cpu_seconds; /* the same; then SIGXCPU, which ends it */
	uid_t uid;		  /* of HELPER_USER_GIVEN */
	gid_t gid;
};

/*
 * For a process with one thread; nothing of it can be taken back. 0, or negative errno if something could not be given
 * up: it has dropped what it could by then.
 */
int confine(const struct helper_class *class, const struct confine_options *options);

/* Lower the memory limit; it never rises again. 0 or negative errno. */
int confine__lower_memory(uint64_t by);

/* Keep these capabilities (bits) of those that the process has, and inherit none. 0 or negative errno. */
int capabilities__keep(uint64_t wanted);

#endif
