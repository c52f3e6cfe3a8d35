/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The environment of a process, of which only variables on a list are looked at: any other may be a secret. The text is
 * the process's own, which it can change at any time.
 */
#ifndef PROCFS_ENVIRONMENT_H
#define PROCFS_ENVIRONMENT_H

#include "procfs/fact_text.h"

#define ENVIRONMENT_SIZE_MAX (64u * 1024) /* bytes; what is behind is not looked at */
#define ENVIRONMENT_NAME_MAX 64

/* The list that is always looked for; NULL-ended. */
extern const char *const environment_names[];

/* A name that may be requested: [A-Za-z_][A-Za-z0-9_]*, not too long. */
bool environment_name_is_valid(const char *name);

/*
 * From the text of /proc/PID/environ, "NAME=value\0" again and again, the variables of these names ("A\0B\0"), as
 * facts "env:NAME". The first of several with one name counts, as for getenv(). Text without a NUL at its end was
 * truncated.
 */
void environment__pick(const char *text, size_t size, const char *names, size_t names_size,
		       struct fact_text *facts);

#endif
