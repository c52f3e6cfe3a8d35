/* SPDX-License-Identifier: BSD-2-Clause */
/* The door to libseccomp: the system calls that a process has left once it has its files. */
#ifndef HELPERS_FILTER_H
#define HELPERS_FILTER_H

#include <stdbool.h>

#include "helpers/classes.h"

/*
 * A filter that is made once, for children that are forked often: making it takes more time than entering it. WORKER
 * is narrower than SEALED: no path, no new descriptor, no signal. SEALED is filter__seal(true, false), but for the
 * signal of abort(), which ends the process in another way. NULL: it cannot be made.
 */
struct filter;
struct filter *filter__new(enum helper_filter kind);
void filter__free(struct filter *filter);
/* For the calling process, after confine(). 0 or negative errno; -EINVAL for NULL. */
int filter__enter(const struct filter *filter);

/*
 * From now on opening a file notifies the owner of *listener. `made`: a filter of SEALED, or NULL. Negative errno: the
 * kernel cannot, or there is a listener already; then opening is refused once the process is sealed.
 */
int filter__notify_opens(const struct filter *made, int *listener);

/*
 * Allows only reading open files, memory, and writing an answer. `files`: filter__notify_opens() succeeded. Paths
 * give EACCES, all else EPERM, and what has no innocent use ends the process. `no_links`: no path is a symbolic link
 * (EINVAL), and so /proc/self/fd/N is the name that libdw gives to a file that is open.
 */
int filter__seal(bool files, bool no_links);

#endif
