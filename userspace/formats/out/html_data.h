/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FORMATS_OUT_HTML_DATA_H
#define FORMATS_OUT_HTML_DATA_H

#include <stdio.h>

struct export_difference;
struct page_code;
struct profile;

/*
 * The profile for the page of .html (web/data.js), not compressed; docs/FORMATS.md describes it.
 * `difference` and `code` may be NULL. 0 or negative errno; a write error may be visible in ferror()
 * only.
 */
int html_write_data(const struct profile *p, const struct export_difference *difference,
		    const struct page_code *code, FILE *out);

#endif
