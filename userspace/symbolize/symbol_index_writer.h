/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a symbol index: the answers of one file, in the order of their addresses. */
#ifndef SYMBOLIZE_SYMBOL_INDEX_WRITER_H
#define SYMBOLIZE_SYMBOL_INDEX_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

struct symbol_frame;

struct index_writer;

/* The form of a name that is shown, in a buffer, and its length. */
typedef size_t (*index_readable_fn)(const char *name, char *buffer, size_t size);

/* At most `limit` bytes; `readable` NULL: names are shown as they are. NULL: no memory. */
struct index_writer *index_writer__new(size_t limit, index_readable_fn readable);
void index_writer__free(struct index_writer *w);

/* An elf_load_fn of the writer: the first segment that covers an offset counts. 0, -ENOMEM. */
int index_writer__segment(void *writer, uint64_t offset, uint64_t size, uint64_t address);

/*
 * The answer from this address on, which is behind the last one. Strings must not change or move
 * until index_writer__finish(). 0; -EFBIG: the limit; -ENOMEM.
 */
int index_writer__answer(struct index_writer *w, uint64_t address,
			 const struct symbol_frame *frames, size_t count);
/* Bytes so far. */
size_t index_writer__size(const struct index_writer *w);
/* From this address on the index does not have an answer. */
int index_writer__gap(struct index_writer *w, uint64_t address);

/* The index, which the caller frees. Nothing can be added then. 0; -EFBIG; -ENOMEM. */
int index_writer__finish(struct index_writer *w, enum symbol_state state, void **data,
			 size_t *size);

#endif
