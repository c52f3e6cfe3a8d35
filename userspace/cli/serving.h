/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile in the browser: `open`, and `record --open`.
 *
 * Files are made when they are requested, into memory. The server has no privileges: whatever the
 * process had is given up first.
 */
#ifndef CLI_SERVING_H
#define CLI_SERVING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <sysprof/profile.h>

#include "base/log.h"
#include "serve/server.h"

struct serving_options {
	const char *what;  /* that is shown, for people: a file, or "the recording" */
	unsigned int port; /* 0: any that is free */
	bool browser;	   /* open one, where there is a display */
	bool quiet;	   /* only print the address if no browser was opened */
};

/* Serves until SIGINT, SIGTERM or SIGHUP. 0 or negative errno with `failure` filled. */
int serving__run(const struct profile *profile, const struct serving_options *options,
		 struct failure *failure);

/*
 * The same in a child process, which has nothing but the profile: no descriptor, no privilege. The
 * caller can free everything afterwards. 0 or negative errno with `failure` filled.
 */
int serving__start(const struct profile *profile, const struct serving_options *options,
		   pid_t *child, struct failure *failure);
/* Waits for its end and hands signals on; `signal_fd` is that of give_up__watch(). An exit code. */
int serving__supervise(pid_t child, int signal_fd);

/* ---- the routes of a profile: files, made at the first request for each, and sources --------- */

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
