/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_PROFILE_CHECK_H
#define PROFILE_PROFILE_CHECK_H

#include <stddef.h>

struct profile;

/*
 * 0; -EINVAL with a sentence in `why` (n bytes, may be NULL / 0) about the first broken one;
 * -ENOMEM.
 */
int profile_check(const struct profile *p, char *why, size_t n);

#endif
