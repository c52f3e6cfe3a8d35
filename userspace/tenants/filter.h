/* SPDX-License-Identifier: BSD-2-Clause */
/* The only use of libseccomp: system calls that a process may still make once it has its files. */
#ifndef TENANTS_FILTER_H
#define TENANTS_FILTER_H

#include <stdbool.h>

#include "tenants/classes.h"

/*
 * A filter that is made once and entered by many children, because making it takes longer. WORKER
 * is narrower than SEALED: no paths, no new descriptors, no signals. SEALED is filter__seal(true,
 * false) without the signal of abort(), which then ends the process in another way. NULL: it
 * failed.
 */
struct filter;
struct filter *filter__new(enum helper_filter kind);
void filter__free(struct filter *filter);
/* For the calling process, after confine(). 0 or negative errno; -EINVAL for NULL. */
int filter__enter(const struct filter *filter);

/*
 * Each open() of this process now notifies the owner of *listener. `made`: a SEALED filter, or
 * NULL. Negative errno: not supported, or there is a listener; pass `files` = false to
 * filter__seal() then.
 */
int filter__notify_opens(const struct filter *made, int *listener);

/*
 * Allows only reading open files, memory, and writing an answer. `files`: filter__notify_opens()
 * succeeded. Calls with paths give EACCES, other calls EPERM; calls without an innocent use end the
 * process. `no_links`: readlink() gives EINVAL, so libdw names open files /proc/self/fd/N.
 */
int filter__seal(bool files, bool no_links);

#endif
