/* SPDX-License-Identifier: BSD-2-Clause */
/* The program of a regular expression. */
#ifndef FILTER_PATTERN_PARSE_H
#define FILTER_PATTERN_PARSE_H

#include "filter/pattern_private.h"

/* 0 or negative errno, with `failure`; there is something to finish in any case. */
int pattern_program__parse(struct pattern_program *program, const char *text,
			   struct failure *failure);
void pattern_program__fini(struct pattern_program *program);

#endif
