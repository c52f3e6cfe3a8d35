/* SPDX-License-Identifier: BSD-2-Clause */
/* The whole profile as text, line by line, for debugging and golden tests. Equal in, equal out. */
#ifndef PROFILE_PROFILE_DUMP_H
#define PROFILE_PROFILE_DUMP_H

#include <stdio.h>

#include <sysprof/profile.h>

void profile_dump(const struct profile *p, FILE *out);

#endif
