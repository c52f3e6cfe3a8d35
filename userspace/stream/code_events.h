/* SPDX-License-Identifier: BSD-2-Clause */
/* Machine code, its lines and source files as events: large ones are divided. */
#ifndef STREAM_CODE_EVENTS_H
#define STREAM_CODE_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>
#include <sysprof/symbol_result.h>

#include "stream/event_queue.h"
#include "stream/symbol_blob.h"

struct code_text {
	uint32_t dso, process, version;
	uint8_t machine; /* enum code_machine */
	uint64_t address;
	const uint8_t *bytes;
	uint32_t size; /* at most CODE_TEXT_MAX */
};

/* 0, or what `push` returned. */
int code_text__emit(const struct code_text *text, uint64_t time, event_push_fn push, void *context);

/* The rows of one code. The caller sets the fields before the first row. */
struct code_lines {
	const struct code_text *text;
	uint64_t time;
	event_push_fn push;
	void *context;
	/* of the next event: its places, whose strings stay the caller's, and its rows */
	size_t place_count, row_count, places_size;
	struct symbol_frame places[SYMBOL_CHAIN_MAX];
	struct code_line_row rows[CODE_LINES_MAX];
};

/*
 * Adds a row, whose offset is larger than the last one's. Of a frame that equals the last row's nothing
 * is added. The strings of `frame` must live until code_lines__end(). 0, or what `push` returned.
 */
int code_lines__add(struct code_lines *l, uint32_t offset, size_t depth,
		    const struct symbol_frame *frame);
int code_lines__end(struct code_lines *l);

struct source_text {
	const char *path; /* cut to EVENT_PATH_MAX */
	const char *text;
	uint32_t size;
	uint8_t state; /* enum source_state */
	uint8_t root;
};

/* 0, or what `push` returned. */
int source_text__emit(const struct source_text *source, uint64_t time, event_push_fn push,
		      void *context);

#endif
