/* SPDX-License-Identifier: BSD-2-Clause */
/* The merged tree as a profile, for formats and the page. */
#ifndef COMPARE_MERGED_PROFILE_H
#define COMPARE_MERGED_PROFILE_H

struct merged;
struct profile_builder;

int merged__build_profile(const struct merged *m, const struct merged *waiting,
			  struct profile_builder *b);

#endif
