/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of runtimes, by life of a process, runtime, and words of the frame. They outlive
 * windows; those of ended processes are forgotten.
 *
 * When memory was freed, another function can get the same words. Each report is a version with a
 * number, from 0 on.
 */
#ifndef RUNTIMES_PLACE_CODE_FUNCTIONS_H
#define RUNTIMES_PLACE_CODE_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>

#include "base/vec.h"
#include "runtimes/runtime.h"

/* Of all, and of one life; what comes then is not kept. */
#define CODE_FUNCTIONS_BYTES ((size_t)32 << 20)
#define CODE_LIFE_BYTES	     ((size_t)8 << 20)

struct code_functions;

struct code_words {
	uint64_t life; /* serial number of the process's life */
	enum frame_note_kind kind;
	uint64_t function, check; /* as in a note */
	uint64_t address;	  /* of a chain; 0: of a function */
	bool is_chain;
};

/*
 * A life that a process was forked from. Until the fork they shared memory, so what was read of the
 * parent until then holds for the child as well, at the same words.
 */
struct code_kin {
	uint64_t life, until; /* life 0: none; until: CLOCK_MONOTONIC */
};

struct code_functions *code_functions__new(void); /* NULL: no memory */
void code_functions__free(struct code_functions *f);

/* An event about a process in this life of its. 0 or -ENOMEM. */
int code_functions__add(struct code_functions *f, uint64_t life,
			const struct code_function_event *event);
int code_functions__add_chain(struct code_functions *f, uint64_t life,
			      const struct code_chain_event *event);

/*
 * The number of versions of the function or chain. All that were not kept count as one, the last,
 * because the words may be another function's by now.
 */
size_t code_functions__versions(const struct code_functions *f, const struct code_words *words);
/* Its event, valid until the next change. NULL: there is no such version, or it is not kept. */
const void *code_functions__get(const struct code_functions *f, const struct code_words *words,
				size_t version);
/* The version at a time: the last one reported until then and kept, or the first. */
const struct code_function_event *code_functions__at(const struct code_functions *f,
						     const struct code_words *words, uint64_t time);
/*
 * The confirmed function of the lives that the process comes from; NULL: none. *sure: it was read
 * before the fork. A later reading can be of a function that only the parent has.
 */
const struct code_function_event *code_functions__inherited(const struct code_functions *f,
							    const struct code_words *words,
							    const struct code_kin kin[CODE_KIN_MAX],
							    bool *sure);

/* A piece of code that lasts as long as its process (FRAME_NOTE_HOTSPOT_CODE in sample.h). */
struct code_piece {
	uint64_t life, start, end;
	const struct code_function_event *event;
};

struct code_pieces {
	VEC(struct code_piece) all; /* by life and start, of two with one start the larger first */
};

/* Those of this kind, until the next change. 0 or -ENOMEM. vec_free(&pieces->all) in any case. */
int code_functions__pieces(const struct code_functions *f, enum frame_note_kind kind,
			   struct code_pieces *pieces);
/* The smallest one with the address. NULL: none. */
const struct code_piece *code_pieces__at(const struct code_pieces *pieces, uint64_t life,
					 uint64_t address);

/* Between two windows: frees functions of lives that are not `is_known`, and outdated ones. */
void code_functions__forget(struct code_functions *f,
			    bool (*is_known)(void *context, uint64_t life), void *context);

size_t code_functions__bytes(const struct code_functions *f);

/* ---- the fields of an event ------------------------------------------------------------------ */

const char *code_function__name(const struct code_function_event *event);
const char *code_function__file(const struct code_function_event *event);
/* The row at a place, as a note has it; NULL: none. */
const struct code_row *code_function__row(const struct code_function_event *event, uint32_t place);

#endif
