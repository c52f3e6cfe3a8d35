/* SPDX-License-Identifier: BSD-2-Clause */
/* Python's str and bytes objects in the memory of a process. Part of code.h. */
#ifndef RUNTIMES_PYTHON_TEXT_H
#define RUNTIMES_PYTHON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/python/layout.h"
#include "runtimes/target_memory.h"

/*
 * Whether an object lives, by its first word: the count of references, and bits that are 0 in one (3.11 to 3.15, with a
 * GIL). In memory that was given back there is a pointer to the next free block, or 0.
 */
bool cpython_object__is_alive(uint64_t first_word);

/*
 * The text of a str as UTF-8, fit to be shown; what does not fit is cut. 0; -ESTALE: the object is gone; -EBADMSG: it is
 * no str; else as target_memory__read().
 */
int cpython_str__read(const struct cpython *py, struct target_memory *m, uint64_t address, char *to,
		      size_t size);

/*
 * The contents of a bytes object, `limit` of them at most; the caller frees. As above, and -ENOMEM.
 */
int cpython_bytes__read(const struct cpython *py, struct target_memory *m, uint64_t address,
			size_t limit, uint8_t **bytes, size_t *size);

#endif
