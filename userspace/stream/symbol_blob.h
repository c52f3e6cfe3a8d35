/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbol answers as bytes: in a recording, from a sandboxed child, in the cache on disk and in
 * memory.
 *
 * An answer is a struct symbol_event: an inline chain, each frame followed by its strings. In a
 * recording it stands alone. A blob is a sequence of answers in which a repeated string is replaced
 * by its place (SYMBOL_STRING_EARLIER). Strings and chains are bounded, so encoding can shorten an
 * answer; encoding it again changes nothing. A live profile takes names from the encoded event,
 * like a replay.
 */
#ifndef STREAM_SYMBOL_BLOB_H
#define STREAM_SYMBOL_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>
#include <sysprof/symbol_result.h>

#include "base/vec.h"

#define SYMBOL_CHAIN_MAX  64u	/* frames; outermost ones beyond are left out */
#define SYMBOL_STRING_MAX 4096u /* with NUL; cut between characters */

/* A decoded answer. Its strings point into the encoded bytes. */
struct symbol_answer {
	uint64_t address; /* symbol_event.address */
	struct symbol_result result;
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
};

/* ---- one event ------------------------------------------------------------------------------- */

/*
 * Writes the event to `buffer` (EVENT_SIZE_MAX bytes, aligned to 8). If the strings are too long
 * for an event, the limit of each is halved until they fit.
 */
void symbol_event__encode(void *buffer, uint64_t time, uint64_t address,
			  const struct symbol_result *result);

/* The whole event is readable. 0, or -EBADMSG (never after event_check()). */
int symbol_event__decode(const struct symbol_event *event, struct symbol_answer *answer);

/* ---- many ------------------------------------------------------------------------------------ */

struct strtab;

/* Zero-initialised. */
struct symbol_blob {
	VEC(char) bytes;	/* not taken yet; aligned to 8 */
	uint64_t taken;		/* bytes before these */
	struct strtab *strings; /* of the whole blob … */
	VEC(uint32_t) places;	/* … and the offset of each, by number */
};

void symbol_blob__fini(struct symbol_blob *b);

/* A symbol_sink_fn whose context is the blob; `address` may be any number. 0, -ENOMEM. */
int symbol_blob__add(void *blob, size_t address, const struct symbol_result *result);

/* Bytes that symbol_blob__add() needs at most. */
size_t symbol_blob__size_of(const struct symbol_result *result);

/* Empties `bytes`, which the caller has sent. The reader must keep all of them in one piece. */
void symbol_blob__take(struct symbol_blob *b);

/*
 * Checks and decodes the answer at *offset of an untrusted blob (aligned to 8), and moves *offset
 * behind it. 1; 0: no complete answer; -EBADMSG: not an answer.
 */
int symbol_blob__next(const void *blob, size_t size, size_t *offset, struct symbol_answer *answer);

#endif
