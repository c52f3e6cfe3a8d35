/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes text of other users' processes safe to print. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>

/* Length (1..4) of the valid UTF-8 sequence at s, or 0: overlong, surrogate, cut off, stray. */
size_t utf8_sequence(const char *s, size_t available);

/*
 * Copy for a terminal or a text file: control bytes (also DEL and C1) become \xNN, and so does each byte that is
 * not valid UTF-8. Always NUL-terminated; cut at a character's edge where `size` is short. Returns buffer.
 */
char *utf8_sanitize(char *buffer, size_t size, const char *text);

#endif
