/* SPDX-License-Identifier: BSD-2-Clause */
/* Facts of a recording in plain lines, for formats that have no fields for them; and the program. */
#ifndef EXPORT_COMMENTS_H
#define EXPORT_COMMENTS_H

#include <sysprof/profile.h>

/*
 * The product, the command, the machine, the start on CLOCK_MONOTONIC, what became of every tick, what was lost
 * and which stacks were cut: `add` gets a line each, of any bytes. 0, or the first error of `add`.
 */
int export_comments(const struct profile *p, int (*add)(void *context, const char *text),
		    void *context);

/*
 * The program that most ticks are of, by the outermost frame of a stack that is in no library; 0 if there is
 * none.
 */
struct dso_id export_main_program(const struct profile *p);

#endif
