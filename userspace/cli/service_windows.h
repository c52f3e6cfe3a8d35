/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Spans of time of a service, from the files of an agent's directory (--sink dir:) or the windows
 * waiting in its spool. A file is a window.
 */
#ifndef CLI_SERVICE_WINDOWS_H
#define CLI_SERVICE_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/profile.h>

#include "base/log.h"
#include "compare/time_span.h"

struct service_windows;

/* All windows in a directory. 0 or negative errno with `failure` filled. */
int service_windows__list(const char *directory, struct service_windows **windows,
			  struct failure *failure);
void service_windows__free(struct service_windows *w);

/* A profile of a window. */
struct service_window {
	const char *path;	/* of its file */
	uint64_t start, length; /* ns since the epoch; ns */
	const char *process;	/* which one of the profile is the service; NULL: all of it */
	bool is_more;		/* of the same window as the profile before */
};

/* `p` NULL: the service did not run in the window. 0 or negative errno with `failure` filled. */
typedef int (*take_window_fn)(void *context, const struct service_window *window,
			      const struct profile *p, struct failure *failure);

/*
 * Passes the windows of a span on, in time order, one profile at a time. 0; what `take` returned;
 * negative errno with `failure` filled. -ENODATA: there is no window, or no sample of the service.
 */
int service_windows__each(const struct service_windows *w, const char *service,
			  const struct time_span *span, take_window_fn take, void *context,
			  struct failure *failure);

/* "shop, 2026-11-26 10:00:00Z to 2026-11-26 11:00:00Z"; the caller frees. 0 or -ENOMEM. */
int name_span(const char *service, const struct time_span *span, char **name);

#endif
