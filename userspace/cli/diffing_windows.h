/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Spans of time of a service (service_windows.h). A span takes the place of a file in other
 * comparisons; its windows are blocks of its time.
 */
#ifndef CLI_DIFFING_WINDOWS_H
#define CLI_DIFFING_WINDOWS_H

struct comparison;
struct diffing;
struct failure;

/* The spans of a service as files. 0 or negative errno with `failure` filled. */
int diffing__add_windows(struct comparison *c, const struct diffing *d, struct failure *failure);

#endif
