/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forks a confined process of a class (tenants/classes.h); there is no other way to make one. It
 * has /dev/null as its standard streams, a socket to its owner and the descriptors that it is
 * given. It ends with its parent, and terminal signals do not reach it.
 */
#ifndef TENANTS_CHILD_H
#define TENANTS_CHILD_H

#include <stddef.h>
#include <sys/types.h>

#include "tenants/classes.h"
#include "tenants/confine.h"

#define CHILD_FDS_MAX 40

struct filter;

#define CHILD_SOCKET   3
#define CHILD_FIRST_FD 4

/* In the child. */
struct child_self {
	const void *data; /* as in the plan */
	size_t size;
	size_t fd_count; /* from CHILD_FIRST_FD on; those that were -1 are closed */
	int confined;	 /* 0, or the error of confine(), if the class is `unconfined` */
	const struct filter *filter; /* of its class, made before; NULL: none */
	pid_t parent;		     /* the child ends with it */
};

/* The result is the exit status. */
typedef int (*child_run_fn)(const struct child_self *self);

struct child_plan {
	enum helper_class_id class;
	const char *name; /* NULL: the class's */
	child_run_fn run;
	int type;	/* of its socket: SOCK_STREAM, SOCK_SEQPACKET */
	const int *fds; /* the caller's, stay open; -1: that number stays free */
	size_t fd_count;
	const void *data; /* copied by the fork */
	size_t size;
	struct confine_options confine;
};

/*
 * *socket is the caller's end. The child's pid, or negative errno. A caller with much memory or
 * several threads uses a keeper (tenants/keeper.h) instead.
 */
pid_t child__start(const struct child_plan *plan, int *socket);

/* ---- for keepers, which have one thread ------------------------------------------------------ */

struct child_origin {
	int socket;   /* the child's end; the caller keeps its copy */
	bool sibling; /* make it a child of the caller's parent */
	const struct filter *filter;
};

/* The pid, or negative errno. */
pid_t child__fork(const struct child_plan *plan, const struct child_origin *origin);

#endif
