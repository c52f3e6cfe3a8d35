/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function of a runtime, as its own memory describes it: what is found for the words that a frame has.
 *
 * Everything in it was a tenant's. Text is bounded, and has been through utf8_sanitize().
 */
#ifndef RUNTIMES_MANAGED_FUNCTION_H
#define RUNTIMES_MANAGED_FUNCTION_H

#include <stdint.h>

#include "base/order.h"
#include "base/vec.h"

#define MANAGED_NAME_MAX 1024u /* bytes, with the NUL */
#define MANAGED_FILE_MAX 4096u
#define MANAGED_ROWS_MAX 16384u /* of one function; what is beyond has no line */

/* From this place in the function's code on, up to the next row. The unit is the runtime's: see its reader. */
struct managed_row {
	uint32_t offset;
	uint32_t line, column; /* 1-based; 0: unknown */
};

struct managed_function {
	char name[MANAGED_NAME_MAX]; /* "": it has none */
	char file[MANAGED_FILE_MAX]; /* a path or a URL; "": unknown */
	uint32_t line, column;	     /* where it is defined, 1-based; 0: unknown */
	VEC(struct managed_row)
	rows; /* ascending by offset; where there are none, its lines are unknown */
};

static inline void managed_function__fini(struct managed_function *f)
{
	vec_free(&f->rows);
}

/* The row that covers this offset, or NULL. */
static inline const struct managed_row *managed_function__row(const struct managed_function *f,
							      uint32_t offset)
{
	size_t at = partition_point(f->rows.data, f->rows.count, row, row->offset <= offset);

	return at ? &f->rows.data[at - 1] : NULL;
}

#endif
