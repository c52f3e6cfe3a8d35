/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines and instructions of a function, for people. */
#ifndef FORMATS_OUT_ANNOTATION_TEXT_H
#define FORMATS_OUT_ANNOTATION_TEXT_H

#include <stdio.h>

struct annotation;
struct report_options;

/* 0 or negative errno; write errors may be visible in ferror() only. */
int annotation_text(const struct annotation *a, const struct report_options *options, FILE *out);

#endif
