/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * EVENT_SYMBOL in and out: the inline chain of one location.
 *
 * Strings and chains are bounded, so an encoded chain may be shorter than what went in. A live
 * profile takes its names from the encoded event as well, or it would differ from its replay.
 */
#ifndef STREAM_SYMBOL_CODEC_H
#define STREAM_SYMBOL_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>

#define SYMBOL_CHAIN_MAX  64u	/* frames; the outermost ones are left out */
#define SYMBOL_STRING_MAX 4096u /* with its NUL; cut at a character's edge */

struct symbol_entry {
	const char *function, *file, *definition_file; /* NULL: none */
	uint64_t function_address;		       /* ~0 unknown */
	uint64_t function_size;
	uint32_t line, column;
	uint32_t definition_line, definition_column;
};

/*
 * Write the event for `count` frames, innermost first, into `buffer` (EVENT_SIZE_MAX bytes, aligned
 * to 8). Where all strings together are too long for an event, each is cut further, by halves.
 */
void symbol_event__encode(void *buffer, uint64_t time, uint64_t address, uint64_t elf_address,
			  const struct symbol_entry *entries, size_t count);

/* A walk over an event that lies in memory in its whole size. Strings point into the event. */
struct symbol_walk {
	const char *at, *end;
	uint32_t left;
};

void symbol_walk__init(struct symbol_walk *walk, const struct symbol_event *event);
/* 1 and *entry; 0: that was all; -EBADMSG (never for an event that event_check passed). */
int symbol_walk__next(struct symbol_walk *walk, struct symbol_entry *entry);

#endif
