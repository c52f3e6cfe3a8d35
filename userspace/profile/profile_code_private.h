/* SPDX-License-Identifier: BSD-2-Clause */
/* Machine code and sources of a profile in the making, for the rest of its builder. */
#ifndef PROFILE_PROFILE_CODE_PRIVATE_H
#define PROFILE_PROFILE_CODE_PRIVATE_H

#include <sysprof/profile_code.h>

/* Puts codes and sources in order; code that overlaps other code is left out. */
void builder_settle_code(struct profile_builder *b);
void builder_free_code(struct profile_builder *b);
/* The source with this path and root. */
struct profile_source *builder_find_source(struct profile_builder *b,
					   const struct profile_source *like);
/* The first number that no root of its sources or programs has, nor any behind it. */
unsigned int builder_next_source_root(const struct profile_builder *b);

#endif
