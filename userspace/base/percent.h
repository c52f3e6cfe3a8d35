/* SPDX-License-Identifier: BSD-2-Clause */
/* Percent-encoding, as in URLs: "%2F". */
#ifndef BASE_PERCENT_H
#define BASE_PERCENT_H

#include <stdbool.h>

/*
 * All bytes but letters, digits and those in `plain` are encoded, with upper-case digits. `out` has room for three times
 * the text. Returns the end, where a NUL is.
 */
char *percent_encode(char *out, const char *text, const char *plain);

/* `out` may be `text`. False: a '%' without two digits, or "%00", which are copied as they are. */
bool percent_decode(char *out, const char *text);

#endif
