/* SPDX-License-Identifier: BSD-2-Clause */
/* Where tables of another kind begin in a message: gzip codes each better by itself. */
#ifndef AGENT_SECTIONS_H
#define AGENT_SECTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

typedef VEC(size_t) sections;

/*
 * Adds the offsets, ascending, at which another field follows in the messages that lie at `path` (numbers of fields, from
 * outside) in a protobuf message; not so near to each other that a code of their own would cost more. 0, -ENOMEM. Of what is
 * no message there is none.
 */
int sections__find(const uint8_t *message, size_t size, const uint32_t *path, size_t depth,
		   sections *found);

#endif
