/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a profile, made when a browser requests them. */
#ifndef CLI_SERVING_FILES_H
#define CLI_SERVING_FILES_H

#include <stddef.h>

struct profile;
struct route;
struct server_file;

#define PROFILE_NAME "profile.json" /* what the Firefox Profiler loads */
#define FORMATS_NAME "formats"	    /* the list of all files */

struct serving_files {
	const struct profile *profile;
	const char *what; /* that is shown */
	const char *profiler_url;
	struct route *routes; /* of the files, and of the source API behind them */
	size_t route_count, file_count;
	struct server_file *made; /* by route; fd -1: not made yet */
	char *names;		  /* the texts of the files' names */
	char **sources; /* sorted absolute paths, each once; the texts are the profile's */
	size_t source_count;
};

/* The routes take `files` as their context. 0 or -ENOMEM */
int serving_files__init(struct serving_files *files, const struct profile *profile,
			const char *what);
void serving_files__fini(struct serving_files *files);

#endif
