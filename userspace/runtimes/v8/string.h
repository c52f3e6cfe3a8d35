/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Strings of V8: in one piece (sequential, or outside of the heap), put together of two (cons), a part of another (sliced),
 * or a stand-in for another (thin); in bytes of Latin-1 or in units of UTF-16. They change from one into another while the
 * program runs.
 */
#ifndef RUNTIMES_V8_STRING_H
#define RUNTIMES_V8_STRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct v8_reader;
struct v8_object;

/* `count` characters of 1 or 2 (`wide`) bytes; aligned for neither. 0, or what ends it. */
typedef int (*v8_chars_fn)(void *context, const unsigned char *chars, size_t count, bool wide);

/*
 * The first `limit` characters in order, in pieces. 0; -EAGAIN: something in it is no string, or shorter than it must be: it may
 * be just being changed; -ELOOP: more pieces than any string has that a name is made of; or as target_memory__read().
 */
int v8_string__each(struct v8_reader *r, uint64_t string, uint32_t limit, v8_chars_fn visit,
		    void *context);

/*
 * As UTF-8, through utf8_sanitize(), cut at `size`, which is 4096 at most; a character NUL is shown as \x00. On failure `to` is "".
 */
int v8_string__text(struct v8_reader *r, uint64_t string, char *to, size_t size);

#endif
