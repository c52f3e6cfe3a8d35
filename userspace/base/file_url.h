/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths as file:// URLs and back, and names that are URLs already. */
#ifndef BASE_FILE_URL_H
#define BASE_FILE_URL_H

#include <stdbool.h>

/* Does it begin with a scheme: "node:fs", "https://…", "wasm://…"? A letter, then a colon. */
bool url_has_scheme(const char *text);

/* "file://" and the path, whose bytes are percent-encoded where they are not plain. NULL: no memory. */
char *file_url_encode(const char *path);

/* The path of a URL that begins with "file:///". NULL: it is none, or no memory. */
char *file_url_path(const char *url);

/*
 * The path from which file_url_encode() makes this URL; the text itself if there is none (another scheme, another
 * encoding), so that encoding it again restores it. NULL: no memory.
 */
char *file_url_decode(const char *url);

/* Percent-encoding, as in URLs: "%2F". */

/*
 * All bytes but letters, digits and those in `plain` are encoded, with upper-case digits. `out` has room for three times
 * the text. Returns the end, where a NUL is.
 */
char *percent_encode(char *out, const char *text, const char *plain);

/* `out` may be `text`. False: a '%' without two digits, or "%00", which are copied as they are. */
bool percent_decode(char *out, const char *text);

#endif
