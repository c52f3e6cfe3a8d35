/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbol answers as bytes: in a recording, from a sandboxed child, in the cache on disk and in memory.
 *
 * An answer is a struct symbol_event: its inline chain, each frame with its strings behind it. In a
 * recording an answer stands alone. A blob is a sequence of answers in which a string that an earlier
 * answer has is replaced by its place (SYMBOL_STRING_EARLIER). Strings and chains are bounded, so an
 * encoded answer may be shorter than what went in; encoding it again changes nothing. A live profile
 * takes its names from the encoded event as well, or it would differ from its replay.
 */
#ifndef STREAM_SYMBOL_BLOB_H
#define STREAM_SYMBOL_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>
#include <sysprof/symbol_result.h>

#include "base/vec.h"

#define SYMBOL_CHAIN_MAX  64u	/* frames; the outermost ones are left out */
#define SYMBOL_STRING_MAX 4096u /* with its NUL; cut at a character's edge */

/* One answer, decoded. Its strings point into the bytes it was decoded from. */
struct symbol_answer {
	uint64_t address; /* symbol_event.address */
	struct symbol_result result;
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
};

/* ---- one event ------------------------------------------------------------------------------- */

/*
 * Write the event into `buffer` (EVENT_SIZE_MAX bytes, aligned to 8). Where all strings together are
 * too long for an event, each is cut further, by halves.
 */
void symbol_event__encode(void *buffer, uint64_t time, uint64_t address,
			  const struct symbol_result *result);

/* The event lies in memory in its whole size. 0, or -EBADMSG (never after event_check()). */
int symbol_event__decode(const struct symbol_event *event, struct symbol_answer *answer);

/* ---- many ------------------------------------------------------------------------------------ */

struct strtab;

/* Zeroed at first. */
struct symbol_blob {
	VEC(char) bytes;	/* those that were not taken out yet; aligned to 8 */
	uint64_t taken;		/* bytes before these */
	struct strtab *strings; /* those that the blob has … */
	VEC(uint32_t) places;	/* … and where they begin; number n is element n */
};

void symbol_blob__fini(struct symbol_blob *b);

/* A symbol_sink_fn whose context is the blob; `address` may be any number. 0, -ENOMEM. */
int symbol_blob__add(void *blob, size_t address, const struct symbol_result *result);

/* Bytes that symbol_blob__add() needs at most. */
size_t symbol_blob__size_of(const struct symbol_result *result);

/* Empty `bytes`: the caller has sent them. The reader has to keep all of them in one piece. */
void symbol_blob__take(struct symbol_blob *b);

/*
 * Check and decode the answer at *offset of an untrusted blob (aligned to 8), and move *offset behind it. 1; 0: there
 * is none, or not all of it yet; -EBADMSG: the bytes are no answer.
 */
int symbol_blob__next(const void *blob, size_t size, size_t *offset, struct symbol_answer *answer);

#endif
