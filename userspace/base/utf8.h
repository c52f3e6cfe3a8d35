/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes text of other users' processes safe to print. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Length (1..4) of the valid UTF-8 sequence at s, or 0: overlong, surrogate, cut off, stray. */
size_t utf8_sequence(const char *s, size_t available);

/* Bytes of `s` that are kept where there is room for `limit`, NUL included: it is cut at a character's edge. */
size_t utf8_cut(const char *s, size_t limit);

/*
 * Writes a character of 1 to 4 bytes, and returns their number. U+0000 is "\x00", because what comes after it must not be
 * lost; what is no character is U+FFFD, but for halves of surrogate pairs, which are left to utf8_sanitize().
 */
size_t utf8_put(char to[4], uint32_t character);

/*
 * Copy for a terminal or a text file: control bytes (also DEL and C1) become \xNN, and so does each byte that is
 * not valid UTF-8. Characters that turn or break a line become \uNNNN: they are three bytes before and six after. Always NUL-terminated; cut at a character's edge where `size` is short. Returns buffer.
 */
char *utf8_sanitize(char *buffer, size_t size, const char *text);

#endif
