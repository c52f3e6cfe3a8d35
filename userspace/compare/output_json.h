/* SPDX-License-Identifier: BSD-2-Clause */
/* A comparison as JSON. */
#ifndef COMPARE_OUTPUT_JSON_H
#define COMPARE_OUTPUT_JSON_H

#include <stdio.h>

struct compare_output;

int compare_write_json(const struct compare_output *output, FILE *out);

#endif
