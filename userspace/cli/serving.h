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
#include <sys/types.h>

#include <sysprof/profile.h>

#include "base/log.h"

struct serving_options {
	const char *what;  /* that is shown, for people: a file, or "the recording" */
	unsigned int port; /* 0: any that is free */
	bool browser;	   /* open one, where there is a display */
	bool quiet;	   /* only print the address if no browser was opened */
};

/*
 * Serves until SIGINT, SIGTERM or SIGHUP; in a child until `parent` has ended, too (0: none).
 * 0 or negative errno with `failure` filled.
 */
int serving__run(const struct profile *profile, const struct serving_options *options, pid_t parent,
		 struct failure *failure);

/*
 * The same in a child process, which has nothing but the profile: no descriptor, no privilege. The
 * caller can free everything afterwards. 0 or negative errno with `failure` filled.
 */
int serving__start(const struct profile *profile, const struct serving_options *options,
		   pid_t *child, struct failure *failure);
/* Waits for its end and hands signals on; `signal_fd` is that of give_up__watch(). An exit code. */
int serving__supervise(pid_t child, int signal_fd);

#endif
