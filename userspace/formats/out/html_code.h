/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Machine code and sources in a page of .html, in a part of their own, which the page unpacks when its
 * tab Code is opened. Frames of the profile refer to its instructions by number.
 */
#ifndef FORMATS_OUT_HTML_CODE_H
#define FORMATS_OUT_HTML_CODE_H

#include <stdint.h>
#include <stdio.h>

struct json_writer;
struct profile;
struct profile_location;
struct page_code;

/* An instruction: the number of its code from 1 on, and its own there. 0, 0: the page does not have it. */
struct page_place {
	uint32_t code, instruction;
};

/* What a page carries of the profile's code and sources. NULL: no memory. */
struct page_code *page_code__new(const struct profile *p);
void page_code__free(struct page_code *c);

struct page_place page_code__place(const struct page_code *c,
				   const struct profile_location *location);

/* What it has and what was left out, as an object; only if the profile has code or sources. */
void page_code__describe(const struct page_code *c, struct json_writer *w);

/* The part, not compressed (docs/FORMATS.md). 0 or negative errno; see ferror(), too. */
int page_code__write(const struct page_code *c, FILE *out);

#endif
