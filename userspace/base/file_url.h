/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths as file:// URLs and back, and names that are URLs already. */
#ifndef BASE_FILE_URL_H
#define BASE_FILE_URL_H

#include <stdbool.h>

/* Does it begin with a scheme: "node:fs", "https://…", "wasm://…"? A letter, then a colon. */
bool url_has_scheme(const char *text);

/* "file://" and the path, percent-encoded where needed. NULL: no memory. */
char *file_url_encode(const char *path);

/* Does it begin with "file:///"? */
bool is_file_url(const char *text);

/* The path of such a URL, without its query and fragment. NULL: it is none, or no memory. */
char *file_url_path(const char *url);

/* The path of which file_url_encode() makes it; if none, a copy of the text. NULL: no memory. */
char *file_url_decode(const char *url);

/* Percent-encoding, as in URLs: "%2F". */

/* `plain`: kept beside letters and digits. `out`: 3 times the text, and a NUL. Returns the end. */
char *percent_encode(char *out, const char *text, const char *plain);

/* `out` may be `text`. False: a '%' without two digits, or "%00", which are copied as they are. */
bool percent_decode(char *out, const char *text);

#endif
