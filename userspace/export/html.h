/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the .html format: the page (html.c) and the profile in it (html_data.c). */
#ifndef EXPORT_HTML_H
#define EXPORT_HTML_H

#include <stdio.h>

#include <sysprof/exporter.h>

/*
 * The profile as the page reads it (web/data.js), not yet compressed; docs/FORMATS.md describes it. `difference` may be NULL.
 * 0 or negative errno; a write error may be visible in ferror() only.
 */
int html_write_data(const struct profile *p, const struct export_difference *difference, FILE *out);

#endif
