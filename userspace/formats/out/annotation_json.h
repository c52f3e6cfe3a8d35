/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines and instructions of a function, for programs. */
#ifndef FORMATS_OUT_ANNOTATION_JSON_H
#define FORMATS_OUT_ANNOTATION_JSON_H

#include <stdio.h>

struct annotation;
struct report_options;

/* 0 or negative errno. */
int annotation_json(const struct annotation *a, const struct report_options *options, FILE *out);

#endif
