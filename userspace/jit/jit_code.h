/* SPDX-License-Identifier: BSD-2-Clause */
/* The code of a process by one perf map or jitdump: fed in file order, queried after a window. */
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
	uint64_t after, before;		     /* written in (after, before], CLOCK_MONOTONIC ns */
	bool begins_snapshot, ends_snapshot; /* of a file that was truncated and rewritten */
};

enum jit_code_use {
	JIT_CODE_MAP,	 /* names, from a perf map */
	JIT_CODE_DUMP,	 /* names, from a jitdump */
	JIT_CODE_FRAMES, /* CFI, from a jitdump; query with jit_code__unwinding() only */
};

/* NULL: no memory. */
struct jit_code *jit_code__new(enum jit_code_use use);
void jit_code__free(struct jit_code *c);

/*
 * The times of a jitdump that are not the TSC's are those of a clock that is this far ahead of
 * CLOCK_MONOTONIC, ns. Not `known`: they are not used, and code has the moments of its piece. Call
 * it before feeding.
 */
void jit_code__set_clock(struct jit_code *c, int64_t ahead, bool known);
/* 0, -ENOMEM, -E2BIG, or an error of jitdump_reader__feed(). After an error the rest is ignored. */
int jit_code__feed(struct jit_code *c, const struct jit_piece *piece);

/* Keeps machine code of a jitdump, too: call it before feeding. */
void jit_code__keep_text(struct jit_code *c);
/* Drops them all, also those to come. False: there were none. */
bool jit_code__drop_text(struct jit_code *c);

/* Memory in use, bytes, approximately. */
size_t jit_code__memory(const struct jit_code *c);

/*
 * Bytes are missing that were written in (after, before] (CLOCK_MONOTONIC ns). A perf map continues
 * with its next line, and earlier entries are in doubt; a jitdump ends there, and from then on all of
 * its code is in doubt. 0 or -ENOMEM.
 */
int jit_code__lose(struct jit_code *c, uint64_t after, uint64_t before);

/* Converts a TSC value to CLOCK_MONOTONIC ns. 0: before everything; UINT64_MAX: unknown. */
typedef uint64_t (*jit_clock_fn)(void *context, uint64_t tsc);

/*
 * Call it before queries if there was a feed since; renumbers entries. `clock` is for jitdumps that
 * use the TSC. 0, -ENOMEM.
 */
int jit_code__settle(struct jit_code *c, jit_clock_fn clock, void *context);

/*
 * No query will be older than `horizon` (CLOCK_MONOTONIC ns): forgets code that ended before, with
 * names and lines. Takes time in proportion to all entries, so it does nothing unless that may pay.
 * Call it when settled; then settle again. 0 or -ENOMEM.
 */
int jit_code__forget(struct jit_code *c, uint64_t horizon);
/*
 * Forgets all ended code, then living code, least recently used first, until jit_code__memory() is
 * at most `memory`. *shed: entries of living code forgotten. Settle before and after. 0 or -ENOMEM.
 */
int jit_code__shrink(struct jit_code *c, size_t memory, uint64_t *shed);
/* An entry was used for a sample. */
void jit_code__use(struct jit_code *c, uint32_t entry);

/* Code with CFI in a jitdump, by its current state. */
struct jit_unwinding {
	uint64_t address, size;
	const void *eh_frame; /* valid until the next feeding */
	size_t eh_frame_size;
	uint64_t eh_frame_address; /* that its references to code are relative to */
};

/* Has it grown by more than a little since the last report? */
bool jit_code__has_new_unwinding(const struct jit_code *c);
/*
 * Reports all of it, sorted by address, disjoint, without overwritten code. The caller frees *list.
 * 0 or -ENOMEM.
 */
int jit_code__unwinding(struct jit_code *c, struct jit_unwinding **list, size_t *count);
/* Records whose CFI had no room, since the last call. */
uint64_t jit_code__take_left_unwinding(struct jit_code *c);

struct jit_code_counts {
	uint64_t entries, bad_lines, torn; /* torn: bytes */
	uint64_t left;			   /* records that are too large */
};
struct jit_code_counts jit_code__counts(const struct jit_code *c);

/* The timeline, for histories of addresses. */
struct jit_timeline *jit_code__timeline(struct jit_code *c);
/* A jit_same_fn; the context is the code. All tiers of a function are the same function. */
bool jit_code__same_function(void *code, uint32_t entry, uint32_t other);
/* NUL-terminated; valid as long as the code. */
const char *jit_code__name(const struct jit_code *c, uint32_t entry);
/* The number of the name's text: equal texts have one number, also as files of lines. */
uint32_t jit_code__name_number(const struct jit_code *c, uint32_t entry);

/*
 * The machine code of an entry of a jitdump as it was loaded. Valid until the next feeding, settling or
 * forgetting.
 */
struct jit_bytes {
	uint64_t address;
	const uint8_t *bytes;
	uint32_t size;
	uint32_t machine; /* EM_X86_64, … */
};
enum jit_text_state {
	JIT_TEXT_NONE, /* the file does not have it, or the code has moved since */
	JIT_TEXT_LEFT, /* it had no room */
	JIT_TEXT_KEPT,
};
enum jit_text_state jit_code__bytes(const struct jit_code *c, uint32_t entry,
				    struct jit_bytes *text);

/* Does any of its entries have lines? */
bool jit_code__has_lines(const struct jit_code *c);

struct jit_line {
	const char *file;     /* NUL-terminated; valid as long as the code */
	uint32_t file_number; /* as jit_code__name_number() */
	uint32_t line, column;
};
/*
 * The number of lines of an entry, and one of them by its index: they are sorted by offset, *offset from
 * the entry's start, several of which may be equal.
 */
size_t jit_code__line_count(const struct jit_code *c, uint32_t entry);
struct jit_line jit_code__line_at(const struct jit_code *c, uint32_t entry, size_t index,
				  uint32_t *offset);
/* The line of the instruction at `address` in an entry of a jitdump. False: unknown. */
bool jit_code__line(const struct jit_code *c, uint32_t entry, uint64_t address,
		    struct jit_line *line);

#endif
