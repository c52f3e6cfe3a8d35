/* SPDX-License-Identifier: BSD-2-Clause */
/* The header of a text report: the recording, losses, how stacks end. */
#ifndef FORMATS_OUT_REPORT_HEADER_H
#define FORMATS_OUT_REPORT_HEADER_H

#include <stdio.h>

struct profile;

/* All return 0 or negative errno; write errors may be visible in ferror() only. */
int report_header(const struct profile *p, FILE *out);

#endif
