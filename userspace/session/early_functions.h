/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions in samples of processes that are not known yet, of runtimes whose functions a child of fork inherits: the
 * kernel notes them for a child of fork from its first sample on, and the fork is read after the samples. The table
 * has no limits of users: another function may take the place, and the first one is noted again with its next sample.
 */
#ifndef SESSION_EARLY_FUNCTIONS_H
#define SESSION_EARLY_FUNCTIONS_H

#include <stdbool.h>

#include <sysprof/event.h>

#include "jitwatch/code_reader.h"

#define EARLY_FUNCTIONS 1024u /* a power of two */
#define EARLY_STILL	1     /* its process is not known yet */

struct early_function {
	uint32_t pid;	/* 0: none */
	uint32_t turns; /* that it has waited */
	struct code_question question;
};

struct early_functions {
	struct early_function functions[EARLY_FUNCTIONS];
	bool any;
};

/* Those of a sample. */
void early_functions__note(struct early_functions *f, const struct note_table *table,
			   const struct sample_event *sample);

/* 0: it is taken; EARLY_STILL; negative errno. */
typedef int (*early_function_fn)(void *context, const struct early_function *function);

/* Passes on each of them until it is taken, but only a few times. 0, or the error of `take`. */
int early_functions__take(struct early_functions *f, early_function_fn take, void *context);

#endif
