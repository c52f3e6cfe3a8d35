/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WORLD_PROFILE_SYMBOLS_H
#define WORLD_PROFILE_SYMBOLS_H

#include <stdbool.h>

#include <sysprof/event_handler.h>
#include <sysprof/profile.h>

#include "base/vec.h"

struct outside_event;
struct profile_builder;

/* Adds the symbol events of the stream to a window's profile. */

struct profile_symbols {
	struct profile_builder *builder; /* not owned */
	struct dso_id dso;		 /* of the next symbol events */
	struct location_id location;	 /* likewise; 0: by the address in the event */
	VEC(struct profile_line) lines;
	bool complete; /* EVENT_SYMBOLS_END has come */
	/* the code and the source whose pieces come; size 0: none */
	struct profile_code code;
	VEC(uint8_t) code_bytes;
	VEC(struct profile_code_row) code_rows;
	struct profile_source source;
	VEC(char) source_text;
};

void profile_symbols__init(struct profile_symbols *s, struct profile_builder *builder);
void profile_symbols__fini(struct profile_symbols *s);

/*
 * Takes EVENT_SYMBOL, _SYMBOL_DSO, _SYMBOLS_END, _CODE_TEXT, _CODE_LINES, _SOURCE, _SOURCE_ROOT, _META and _OUTSIDE.
 * Valid as long as `s`.
 */
struct event_handler profile_symbols__handler(struct profile_symbols *s);

/* A row of the books of the outside, from the stream into the profile. */
void outside_event__add_to(const struct outside_event *e, struct profile_builder *builder);

#endif
