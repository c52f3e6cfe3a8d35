/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LIVE_PROC_ENVIRONMENT_H
#define LIVE_PROC_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

struct fact_text;

/* A name that may be requested: [A-Za-z_][A-Za-z0-9_]*, not too long. */
bool environment_name_is_valid(const char *name);

/*
 * From the text of /proc/PID/environ, "NAME=value\0" again and again, the variables of these names
 * ("A\0B\0"), as facts "env:NAME". Of equal names the first counts, as for getenv(). A variable
 * without a NUL at its end was cut off and is left out.
 */
void environment__pick(const char *text, size_t size, const char *names, size_t names_size,
		       struct fact_text *facts);

#endif
