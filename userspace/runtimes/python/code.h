/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIMES_PYTHON_CODE_H
#define RUNTIMES_PYTHON_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <sysprof/event.h>

#include "runtimes/answers.h"
#include "runtimes/python/layout.h"
#include "runtimes/target_memory.h"

/*
 * A code object of CPython: its name, file and lines; and whether it still is the sampled one.
 *
 * Dropped code leaves its memory to other objects within milliseconds, its name's first. So the
 * frame's words of it (its identity) are compared, each object that is read must be alive, and the
 * code's head is read again at the end: while the code lives, so does what it refers to.
 */

/*
 * Is an object alive, by its first word? It has the count of references, and bits that are 0 (3.11
 * to 3.15, with a GIL); freed memory has a pointer to the next free block, or 0.
 */
bool cpython_object__is_alive(uint64_t first_word);

/*
 * The text of a str as UTF-8, fit to be shown, cut to `size`. 0; -ESTALE: the object is gone;
 * -EBADMSG: it is no str; else as target_memory__read().
 */
int cpython_str__read(const struct cpython *py, struct target_memory *m, uint64_t address, char *to,
		      size_t size);

/* The contents of a bytes object, `limit` at most; the caller frees. As above, and -ENOMEM. */
int cpython_bytes__read(const struct cpython *py, struct target_memory *m, uint64_t address,
			size_t limit, uint8_t **bytes, size_t *size);

static inline uint64_t cpython_word(const uint8_t *bytes, uint32_t offset)
{
	uint64_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

#define CPYTHON_TYPE_AT 8u /* ob_type */

/*
 * The head of a code object, by which it is recognized later: memory of dropped code is reused.
 * Words of the process, none of which is followed but those to 3.11's names.
 */
struct cpython_identity {
	uint32_t version; /* co_version; 3.11: runtime_python_version() */
	uint32_t firstline;
	uint64_t qualname; /* pointers */
	uint64_t others;   /* of pointers to the file's name and the lines */
};

/* Bytes of a code object that have its identity; CPYTHON_HEAD_MAX at most. */
static inline size_t cpython_head__size(const struct cpython *py)
{
	return py->layout.code_linetable + 8;
}

/*
 * The identity in a head. 0; 3.11: else as target_memory__read(): what cannot be read of its names
 * then counts as 0, as in the kernel.
 */
int cpython_identity__of_head(const struct cpython *py, struct target_memory *m,
			      const uint8_t *head, struct cpython_identity *identity);

/* Is it the one that a note has? frame_note.check of include/sysprof/sample.h */
static inline bool cpython_identity__has(const struct cpython_identity *identity, uint64_t check)
{
	return identity->firstline == (uint32_t)check && identity->version == check >> 32;
}

#define CPYTHON_LINETABLE_MAX (256u << 10) /* bytes; what is beyond has no lines */
/* Enough for any one code object. */
#define CPYTHON_CODE_READS 18u
#define CPYTHON_CODE_SPENT (CPYTHON_LINETABLE_MAX + (32u << 10))

/*
 * CONFIRMED: it is the code of that identity. STALE: it is gone, or going; UNKNOWN: unreadable:
 * nothing is reported of these. *f must be empty; the caller ends it with managed_function__fini().
 * Rows: `offset` is in bytes from the start of the bytecode, line 0 is none.
 */
enum code_state cpython_code__read(const struct cpython *py, struct target_memory *m, uint64_t code,
				   const struct cpython_identity *identity,
				   struct managed_function *f);

/*
 * Adds the rows of a table to f->rows, as above. Neighbours of one line are one row; columns are
 * left out. The last row has line 0 and begins where the table ends, is damaged, or has more rows
 * than there is room for. 0 or -ENOMEM.
 */
int cpython_lines__read(const uint8_t *table, size_t size, uint32_t firstline,
			struct managed_function *f);

#endif
