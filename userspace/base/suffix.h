/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SUFFIX_H
#define BASE_SUFFIX_H

#include <stdbool.h>
#include <string.h>

static inline bool has_suffix(const char *text, const char *suffix)
{
	size_t length = strlen(text), wanted = strlen(suffix);

	return length >= wanted && !strcmp(text + length - wanted, suffix);
}

/* Is the file named like a shared library: libc.so, libc.so.6, "libc.so.6 (deleted)"? */
static inline bool is_library_path(const char *path)
{
	const char *slash = strrchr(path, '/'), *so = strstr(slash ? slash : path, ".so");

	while (so && so[3] && so[3] != '.' && so[3] != ' ')
		so = strstr(so + 3, ".so");
	return so;
}

static inline const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A dynamic loader, which can be started with a program as its argument: glibc's or musl's. */
static inline bool is_loader_path(const char *path)
{
	const char *base = path_base(path);

	return is_library_path(path) &&
	       (!strncmp(base, "ld-", 3) || !strncmp(base, "ld.so", 5) ||
		!strncmp(base, "ld64.so", 7) || !strncmp(base, "libc.so", 7));
}

#endif
