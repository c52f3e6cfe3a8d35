/* SPDX-License-Identifier: BSD-2-Clause */
/* A growing piece of memory, for messages that are put together. */
#ifndef AGENT_BYTES_H
#define AGENT_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"

/* `struct bytes b = {}; … free(b.data);` */
struct bytes {
	uint8_t *data;
	size_t count, capacity;
};

static inline void cleanup_bytes(struct bytes *b)
{
	free(b->data);
}

#define _cleanup_bytes_ __attribute__((cleanup(cleanup_bytes)))

/* Appends. 0, -ENOMEM. */
int bytes__add(struct bytes *b, const void *data, size_t size);

/* What `write` writes to a FILE. *out is fresh, and to be freed if it fails as well. 0, -ENOMEM, what `write` returns. */
int bytes__write(int (*write)(void *context, FILE *out), void *context, struct bytes *out);

/*
 * A protobuf message compressed by gzip, always the same for the same input. In the messages that lie at `path` in it
 * (numbers of fields, from outside) are tables of many rows. *out is fresh. 0, -ENOMEM.
 */
int bytes__gzip(const struct bytes *in, const uint32_t *path, size_t depth, struct bytes *out);

/* Where tables of another kind begin in a message: gzip codes each better by itself. */

typedef VEC(size_t) sections;

/*
 * Adds the offsets, ascending, at which another field follows in the messages that lie at `path` (numbers of fields, from
 * outside) in a protobuf message; not so near to each other that a code of their own would cost more. 0, -ENOMEM. Of what is
 * no message there is none.
 */
int sections__find(const uint8_t *message, size_t size, const uint32_t *path, size_t depth,
		   sections *found);

#endif
