/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/mapping_path.h"

#include <stddef.h>
#include <string.h>

static bool starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

size_t mapping_path_length(const char *path)
{
	static const char DELETED[] = " (deleted)";
	size_t length = strlen(path), suffix = sizeof(DELETED) - 1;

	if (length > suffix && !strcmp(path + length - suffix, DELETED))
		return length - suffix;
	return length;
}

bool mapping_is_deleted(const char *path)
{
	return path[mapping_path_length(path)];
}

bool mapping_is_run_time_code(const char *path, bool has_build_id, bool has_file)
{
	static const char *const prefixes[] = {
		MAPPING_ANONYMOUS, "[heap]",	  "[stack", "[anon",
		"/dev/zero",	   "anon_inode:", "/SYSV",  "/anon_hugepage",
	};

	if (!*path)
		return true;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (starts_with(path, prefixes[i]))
			return true;
	if (has_build_id)
		return false;
	return starts_with(path, "/memfd:") || (mapping_is_deleted(path) && !has_file);
}
