/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The code of a process according to one perf map or jitdump: fed in the order of the file, queried when a window has
 * ended.
 */
#ifndef JIT_JIT_CODE_H
#define JIT_JIT_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jit/jit_timeline.h"

struct jit_code;

struct jit_piece {
	const void *bytes;
	size_t size;
	uint64_t after, before;		     /* when they were written, CLOCK_MONOTONIC ns */
	bool begins_snapshot, ends_snapshot; /* of a file that was written anew */
};

enum jit_code_use {
	JIT_CODE_MAP,  /* names, by a perf map */
	JIT_CODE_DUMP, /* names, by a jitdump */
	JIT_CODE_FRAMES, /* the CFI of a jitdump: only jit_code__unwinding() may be called for these */
};

/* NULL: no memory. */
struct jit_code *jit_code__new(enum jit_code_use use);
void jit_code__free(struct jit_code *c);

/* 0, -ENOMEM, or, once, the error of jitdump_reader__feed() for a file that is no jitdump. */
int jit_code__feed(struct jit_code *c, const struct jit_piece *piece);

/* Memory in use, bytes: nearly. */
size_t jit_code__memory(const struct jit_code *c);

/*
 * Bytes are missing, which were written after `after` and not after `before` (CLOCK_MONOTONIC ns). A perf map goes on with
 * its next line, and what there was is in doubt; a jitdump ends there. 0 or -ENOMEM.
 */
int jit_code__lose(struct jit_code *c, uint64_t after, uint64_t before);

/* A moment of the TSC on CLOCK_MONOTONIC; 0: unknown. */
typedef uint64_t (*jit_clock_fn)(void *context, uint64_t tsc);

/*
 * Call it before queries if more was fed since the last time: it renumbers entries. `clock`: for jitdumps that use
 * the TSC. 0, -ENOMEM.
 */
int jit_code__settle(struct jit_code *c, jit_clock_fn clock, void *context);

/*
 * Nothing older than `horizon` (CLOCK_MONOTONIC ns) will be queried: forgets code that had ended by then, with its
 * names and lines. It does so only if that may be worth the time, which is proportional to all entries. Call it when
 * settled; then settle again. 0 or -ENOMEM.
 */
int jit_code__forget(struct jit_code *c, uint64_t horizon);
/*
 * Frees memory: forgets all code that has ended by now, and then living code, least recently used first, until
 * jit_code__memory() is `memory` at most. *shed: how much living code. As for jit_code__forget().
 */
int jit_code__shrink(struct jit_code *c, size_t memory, uint64_t *shed);
/* The entry was used for a sample. */
void jit_code__use(struct jit_code *c, uint32_t entry);

/* Code whose frames a jitdump describes, in its current state. */
struct jit_unwinding {
	uint64_t address, size;
	const void *eh_frame; /* valid until the next feeding */
	size_t eh_frame_size;
	uint64_t
		eh_frame_address; /* where it would lie: its references to code are relative to that */
};

/*
 * All of it, sorted by address and without overlap: overwritten code is left out. *list is the caller's to free. 0;
 * 1: it has hardly grown since the last time; -ENOMEM.
 */
int jit_code__unwinding(struct jit_code *c, struct jit_unwinding **list, size_t *count);

struct jit_code_counts {
	uint64_t entries, bad_lines, torn; /* torn: bytes */
};
struct jit_code_counts jit_code__counts(const struct jit_code *c);

/* The timeline, for the histories of addresses. */
struct jit_timeline *jit_code__timeline(struct jit_code *c);
/* A jit_same_fn whose context is the code: all tiers of a function are one. */
bool jit_code__same_function(void *code, uint32_t entry, uint32_t other);
/* NUL-terminated; valid as long as the code. */
const char *jit_code__name(const struct jit_code *c, uint32_t entry);
/* The number of that text: equal texts have one number, files of lines among them. */
uint32_t jit_code__name_number(const struct jit_code *c, uint32_t entry);

/* Does any of its entries have lines? */
bool jit_code__has_lines(const struct jit_code *c);

struct jit_line {
	const char *file;     /* NUL-terminated; valid as long as the code */
	uint32_t file_number; /* as jit_code__name_number() */
	uint32_t line, column;
};
/* The line of the instruction at `address` in an entry of a jitdump. False: unknown. */
bool jit_code__line(const struct jit_code *c, uint32_t entry, uint64_t address,
		    struct jit_line *line);

#endif
