/* SPDX-License-Identifier: BSD-2-Clause */
/* Drops a process's privileges as its class says (tenants/classes.h), except for the filter. */
#ifndef TENANTS_CONFINE_H
#define TENANTS_CONFINE_H

#include <stdint.h>
#include <sys/types.h>

#include "tenants/classes.h"

struct confine_options {
	uint64_t memory;	  /* bytes; 0: the class's; ignored if the class has no limit */
	unsigned int cpu_seconds; /* the same; SIGXCPU ends the process then */
	uid_t uid;		  /* for HELPER_USER_GIVEN */
	gid_t gid;
};

/* For a process with one thread; cannot be undone. Negative errno: not all steps succeeded. */
int confine(const struct helper_class *class, const struct confine_options *options);

/* Lowers the memory limit for good. 0 or negative errno. */
int confine__lower_memory(uint64_t by);

/* Drops all capabilities but these (bits); none are inheritable. 0 or negative errno. */
int capabilities__keep(uint64_t wanted);

#endif
