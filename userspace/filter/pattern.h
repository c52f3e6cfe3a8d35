/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regular expressions in RE2's syntax, which is pprof's, by a matcher whose time is linear in the
 * text. The only one of the filters. libc's has another syntax (\d, \b, (?i)), and its time and
 * memory cannot be bounded.
 *
 * It only says whether a text has a match, so "a*?" is "a*", and groups capture nothing. Text is
 * UTF-8; a byte that is not is one U+FFFD, as in Go. Not supported, and rejected: \p, \C, and
 * letters outside of ASCII without regard to case.
 */
#ifndef FILTER_PATTERN_H
#define FILTER_PATTERN_H

#include <stddef.h>

#include "base/log.h"

#define PATTERN_TEXT_MAX  1000		      /* bytes of an expression */
#define PATTERN_NODES_MAX 4096		      /* instructions; "(a{100}){100}" has more */
#define PATTERN_STEPS_MAX (UINT64_C(1) << 30) /* for all texts since the last pattern__begin() */

struct pattern;

/* NULL: no memory, or `failure` says what is wrong, and at which byte. Empty ones are wrong. */
struct pattern *pattern__new(const char *text, struct failure *failure);
void pattern__free(struct pattern *pattern);

/* The steps count from here. */
void pattern__begin(struct pattern *pattern);
/* 1: there is a match; 0: there is none; -E2BIG: that would take more steps. From one thread. */
int pattern__matches(struct pattern *pattern, const char *text, size_t size);

#endif
