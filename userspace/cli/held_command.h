/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * COMMAND: started, but held before its first instruction until everything is attached. It keeps
 * our user, terminal, standard streams and signal mask as they were.
 */
#ifndef CLI_HELD_COMMAND_H
#define CLI_HELD_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"

struct held_command {
	pid_t pid;
	int pidfd;	/* readable when it has ended; -1: none */
	int release_fd; /* a byte here lets it go */
	/* has 0 when its libraries are mapped, then why execve failed; end of file: it did not */
	int error_fd;
	bool ready, running, ended;
	int status;	   /* of waitpid, once ended */
	uint64_t cpu_time; /* ns it used, its own waited-for children included, once ended */
};

/* Fork, and hold. 0 or negative errno. */
int held_command__start(struct held_command *c, char **argv, struct failure *failure);

/* Waits until it has mapped its libraries, a moment at most. */
void held_command__await(struct held_command *c);

/* Let it go. 0; negative errno of its execve: -ENOENT, -EACCES, … with `failure` filled. */
int held_command__release(struct held_command *c, const char *name, struct failure *failure);

/* Has it ended? Notes its status then; does not wait. */
bool held_command__poll(struct held_command *c);

/* Exit code by the contract: its status, or 128 + signal. It must have ended. */
int held_command__exit_code(const struct held_command *c);

/* Close our ends. One that was never released exits without having run. */
void held_command__fini(struct held_command *c);

#endif
