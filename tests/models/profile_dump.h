/* SPDX-License-Identifier: BSD-2-Clause */
/* The whole profile as text, line by line. Equal in, equal out. */
#ifndef MODELS_PROFILE_DUMP_H
#define MODELS_PROFILE_DUMP_H

#include <stdio.h>

#include <sysprof/profile.h>

void profile_dump(const struct profile *p, FILE *out);

#endif
