/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes text of other users' processes safe to print. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Length (1..4) of the valid UTF-8 sequence at s, or 0: overlong, surrogate, cut off, stray. */
size_t utf8_sequence(const char *s, size_t available);

/* The character of a valid sequence of this length. */
uint32_t utf8_code_point(const char *s, size_t length);

/* Bytes of `s` that fit into `limit` with the NUL, cut at the edge of a character. */
size_t utf8_cut(const char *s, size_t limit);

/*
 * Writes a character as 1 to 4 bytes; returns their number. U+0000 becomes "\x00", to keep text
 * behind it; beyond U+10FFFF: U+FFFD. Surrogate halves are left to utf8_sanitize().
 */
size_t utf8_put(char to[4], uint32_t character);

/*
 * Copies text for a terminal or a file. Control bytes (DEL, C1 too) and bytes that are not UTF-8
 * become \xNN, characters that turn or break a line \uNNNN (3 bytes to 6). Cut between characters.
 */
char *utf8_sanitize(char *buffer, size_t size, const char *text);

#endif
