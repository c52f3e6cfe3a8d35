/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that decides which processes are targets by name, where the kernel side cannot
 * (bpf/names.bpf.h): by the path of their control group or program, or by their service. The kernel
 * side has its verdict on a group, file or program from then on. Until then samples are tentative:
 * they wait here until all rings have been read, because the path of a new group may be in any of
 * them, and until the process has been read for its service.
 */
#ifndef LIVE_NAMES_H
#define LIVE_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <sysprof/bpf_shared.h>

#include "live/part.h"
#include "stream/event_queue.h"
#include "tenants/outside_books.h"

/* Of a judge: soon it may have another verdict, so it is asked again. */
#define NAME_MAY_CHANGE 4u

/*
 * The verdict (NAME_…) on a path, of a group (NAMED_BY_GROUP) or a program (NAMED_BY_EXE), or on the
 * name of a service (NAMED_BY_SERVICE).
 */
typedef uint32_t (*name_judge_fn)(void *context, uint32_t kind, const char *path);

struct name_judge {
	const struct name_rules *rules; /* NULL: there are no targets by name */
	name_judge_fn judge;
	void *context;
};

struct service_names;

struct names_options {
	struct name_judge judge;
	struct service_names *services; /* NULL: no rule is about services */
	int proc_fd; /* /proc, for paths that are longer than the kernel side reads */
	struct outside_books *books;
	event_push_fn keep, drop; /* for tentative samples */
	void *context;
};

/* 0 or -ENOMEM. */
int names_part__new(const struct names_options *options, struct live_part *part);

/*
 * The verdict on a process, by what /proc (`proc_fd`) shows of it, but for its service; 0 as well if
 * it is gone.
 */
uint32_t name_judge__process(const struct name_judge *judge, int proc_fd, pid_t pid);

#endif
