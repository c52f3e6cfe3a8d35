/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one way from a fork to a confined process of a class (helpers/classes.h). A child has three standard streams
 * that lead nowhere, one socket to its owner, the descriptors that it is given, and nothing else of its parent's. It
 * ends with its parent. Signals of a terminal do not reach it.
 */
#ifndef HELPERS_CHILD_H
#define HELPERS_CHILD_H

#include <stddef.h>
#include <sys/types.h>

#include "helpers/classes.h"
#include "helpers/confine.h"

#define CHILD_FDS_MAX 40

struct filter;

/* The numbers of a child's descriptors. */
#define CHILD_SOCKET   3
#define CHILD_FIRST_FD 4

/* In the child: what it was given. */
struct child_self {
	const void *data; /* as in the plan */
	size_t size;
	size_t fd_count; /* from CHILD_FIRST_FD on; those that were -1 are closed */
	int confined; /* 0, or the error of confine(), which other classes than HELPER_SYMBOLS do not survive */
	const struct filter *filter; /* of its class, made before; NULL: none */
	pid_t parent;		     /* with which it ends */
};

/* The function of a child, which ends with the status that is returned. */
typedef int (*child_run_fn)(const struct child_self *self);

struct child_plan {
	enum helper_class_id class;
	const char *name; /* NULL: the class's */
	child_run_fn run;
	int type;	/* of its socket: SOCK_STREAM, SOCK_SEQPACKET */
	const int *fds; /* the caller's, and stay open; -1: that number stays free */
	size_t fd_count;
	const void *data; /* copied by the fork */
	size_t size;
	struct confine_options confine;
};

/*
 * Forks this process. *socket is the caller's end. The child's pid, or negative errno. A caller that has much memory or
 * several threads has a keeper do this, a child that was forked early.
 */
pid_t child__start(const struct child_plan *plan, int *socket);

/* ---- for keepers, which have one thread ------------------------------------------------------ */

struct child_origin {
	int socket;   /* the child's end, which stays the caller's too */
	bool sibling; /* a child of the caller's parent, not of the caller */
	const struct filter *filter;
};

/* The pid, or negative errno. */
pid_t child__fork(const struct child_plan *plan, const struct child_origin *origin);

#endif
