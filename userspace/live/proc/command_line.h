/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LIVE_PROC_COMMAND_LINE_H
#define LIVE_PROC_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "live/proc/fact_reader.h"

/* Is a program of this name (without its directory) a supported interpreter? */
bool command_is_interpreter(const char *program);

/*
 * `text`: of /proc/PID/cmdline, each argument followed by a NUL. The subject is the last part of a
 * script's path ("manage.py"; "shop/main.py" if the name alone is common), a module or a class; for
 * a multi-call program (busybox) the applet; for a process that overwrote its command line the
 * first word. False: there is none, for example because the code was an argument.
 */
bool command_line__subject(const char *program, const char *text, size_t size,
			   char subject[COMMAND_SUBJECT_SIZE]);

/* Arguments as in /proc/PID/cmdline, each with its NUL. */
struct arguments {
	const char *at, *end;
};
/* The next one, or NULL: there is none, or it is cut off. */
const char *next_argument(struct arguments *a);

/*
 * Of a dynamic loader that was started as a program, "ld-linux-x86-64.so.2 [--OPTION [VALUE]]…
 * PROGRAM …": skips to PROGRAM, which is then at `a->at`. False: there is none, or it is cut off.
 */
bool command_line__skip_loader(struct arguments *a);

#endif
