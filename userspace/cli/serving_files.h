/* SPDX-License-Identifier: BSD-2-Clause */
/* What is served of a profile: its files, and the sources that it refers to. */
#ifndef CLI_SERVING_FILES_H
#define CLI_SERVING_FILES_H

#include <stdint.h>

#include <sysprof/profile.h>

#include "serve/http_server.h"

#define PROFILE_NAME "profile.json" /* what the Firefox Profiler loads */
#define FORMATS_NAME "formats"	    /* the list of all files */

struct serving_files {
	const struct profile *profile;
	const char *what; /* that is shown */
	const char *profiler_url;
	struct http_file *files;
	size_t count;
	char *names;	/* the texts of the files' names */
	char **sources; /* sorted absolute paths, each once; the texts are the profile's */
	size_t source_count;
};

/* 0 or -ENOMEM */
int serving_files__init(struct serving_files *files, const struct profile *profile,
			const char *what);
void serving_files__fini(struct serving_files *files);

/* Make a file, in memory: a descriptor and its size. 0 or negative errno. */
int serving_files__make(const struct serving_files *files, size_t index, int *fd, uint64_t *size);

#endif
