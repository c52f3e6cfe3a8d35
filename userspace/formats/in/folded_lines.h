/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of folded stacks (folded.c): what is one, their fields, and what the first of these is. */
#ifndef FORMATS_IN_FOLDED_LINES_H
#define FORMATS_IN_FOLDED_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/in/text_span.h"

#define FOLDED_PYTHON_THREAD   "thread ("
#define FOLDED_FRACTION_DIGITS 9 /* of a number; the others are cut */

/* A line, split. */
struct folded_line {
	struct span stack;
	uint64_t count;
	uint32_t billionths, digits; /* of the fraction, and how many were there */
};

bool folded_recognizes(const uint8_t *bytes, size_t size);

/* 0: a line; -EAGAIN: a blank one, or a comment; -ENODATA: a count alone, of a stack without frames; -EBADMSG. */
int folded_split_line(struct span line, struct folded_line *out);
bool folded_next_stack(struct span *rest, struct folded_line *line); /* skips other lines */
bool folded_parse_count(struct span text, struct folded_line *line); /* "12", "12.5" */
bool folded_has_callers(const struct folded_line *line);
struct span folded_next_field(struct span *rest);

/* The letter of "_[k]" at the end, 0: none. */
char folded_annotation(struct span field);
bool folded_has_module(struct span field); /* DTrace's "libc.so.1`_lwp_start" */
bool folded_is_async_thread(struct span field);
bool folded_is_python_thread(struct span field);
bool folded_is_marked_thread(struct span field); /* one of these */
/* The pid and the command of the last process that the fields begin with, which they lose; 0: there is none. */
uint32_t folded_take_processes(struct span *fields, struct span *command);

/* Of all lines: do names end in offsets, and are first fields threads? */
bool folded_have_offsets(struct span text);
bool folded_have_threads(struct span text);

#endif
