/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COMPARE_OUTPUT_TEXT_H
#define COMPARE_OUTPUT_TEXT_H

#include <stdio.h>

struct compare_output;

/* 0 or negative errno; a write error may show only in ferror(). */
int compare_write_text(const struct compare_output *output, FILE *out);

int compare_write_markdown(const struct compare_output *output, FILE *out);

#endif
