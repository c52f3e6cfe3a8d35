/* SPDX-License-Identifier: BSD-2-Clause */
/* A growing piece of memory, in which protobuf messages are put together, and a walk through such a message. */
#ifndef AGENT_BYTES_H
#define AGENT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"
#include "base/wire.h"

/* `struct bytes b = {}; … free(b.data);` */
struct bytes {
	uint8_t *data;
	size_t count, capacity;
	bool failed; /* a field did not fit into memory */
};

static inline void cleanup_bytes(struct bytes *b)
{
	free(b->data);
}

#define _cleanup_bytes_ __attribute__((cleanup(cleanup_bytes)))

/* Appends. 0, -ENOMEM. */
int bytes__add(struct bytes *b, const void *data, size_t size);

/*
 * Fields of a protobuf message, at the end. As proto3 has it, a number of 0 and an empty text are left out. Without memory
 * `failed` is set, so that callers need not check each call.
 */
void bytes__number(struct bytes *b, uint32_t field, uint64_t value);
void bytes__text(struct bytes *b, uint32_t field, const char *text);
void bytes__field(struct bytes *b, uint32_t field, const void *data,
		  size_t size);				 /* also of none */
void bytes__varint(struct bytes *b, uint64_t value);	 /* alone: of a packed field */
void bytes__append(struct bytes *b, struct wire fields); /* as they are */
/* What was added since b->count was `at` becomes one field: a message, or packed numbers. */
void bytes__wrap(struct bytes *b, uint32_t field, size_t at);

/*
 * Calls `take` with each field of the messages that lie at `path` (numbers of fields, from outside) in a message;
 * field->start is where it begins. 0; -EBADMSG: damaged; what `take` returns, which ends it unless it is 0.
 */
int wire_each(struct wire message, const uint32_t *path, size_t depth,
	      int (*take)(void *context, const struct wire *field), void *context);

/* The last field of each number below `count`; those that are not there are all zero. 0, -EBADMSG. */
int wire_last(struct wire message, struct wire *fields, uint32_t count);

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
