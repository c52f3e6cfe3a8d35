/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A regular expression of a file that is not trusted, which whole names are compared with. The time
 * is at most names × pattern: states are followed side by side, nothing is tried again.
 *
 * The syntax is what RE2 has in common with others: . [] * + ? | () (?:) \d \w \s and escaped
 * punctuation, with ^ and $ at the ends. Bytes are compared.
 */
#ifndef FORMATS_IN_NAME_PATTERN_H
#define FORMATS_IN_NAME_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAME_PATTERN_MAX       4096 /* bytes */
#define NAME_PATTERN_STEPS_MAX (1ULL << 30)

struct name_pattern;

/* 0; -EINVAL: not in that syntax, or too long; -ENOMEM */
int name_pattern__new(const char *text, size_t size, struct name_pattern **pattern);
void name_pattern__free(struct name_pattern *pattern);

/* Is all of the name matched? Adds to *steps what it took. At NAME_PATTERN_STEPS_MAX it ends, false. */
bool name_pattern__matches(struct name_pattern *pattern, const char *name, size_t size,
			   uint64_t *steps);

#endif
