/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A copy of a profile without names: of functions, files, modules, paths, threads, processes,
 * control groups, the host and its users. Frames, trees, times, numbers and totals stay.
 *
 * A name is hashed word by word with a key, and what is between the words stays: "shop::Order<int>"
 * becomes "qkd…::wxe…<int>". The same key gives the same names, so files that were made with one key
 * can be compared, and what names have in common stays visible. Without the key a word cannot be
 * found by trying. Names that everybody has are kept: public_names.h.
 */
#ifndef PROFILE_ANONYMIZE_H
#define PROFILE_ANONYMIZE_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

struct anonymous_key {
	uint64_t words[2];
};

/* From secret bytes, as many as there are. */
struct anonymous_key anonymous_key__of(const void *secret, size_t size);

struct anonymous_profile;

/* `p` must outlive it. 0 or -ENOMEM. */
int anonymous_profile__new(const struct profile *p, struct anonymous_key key,
			   struct anonymous_profile **anonymous);
void anonymous_profile__free(struct anonymous_profile *a);
/* Fulfils every invariant of a finished profile. */
const struct profile *anonymous_profile__get(const struct anonymous_profile *a);

#endif
