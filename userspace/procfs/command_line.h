/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program of an interpreter: its script, module or main class. Of a command line nothing else is kept, since
 * arguments can be secrets.
 */
#ifndef PROCFS_COMMAND_LINE_H
#define PROCFS_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>

#define COMMAND_LINE_SIZE_MAX (64u * 1024) /* bytes; what is behind is not looked at */
#define COMMAND_SUBJECT_SIZE  256

/* Is a program of this name (without its directory) a supported interpreter? */
bool command_is_interpreter(const char *program);

/*
 * `text`: that of /proc/PID/cmdline, arguments with a NUL behind each. The subject is the last part of a script's path
 * ("manage.py"; "shop/main.py" where the name alone says nothing), a module or a class; of a program that is many
 * (busybox) the one that it is; of a process that has overwritten its command line the first word. False: there is
 * none, as code was given as an argument.
 */
bool command_line__subject(const char *program, const char *text, size_t size,
			   char subject[COMMAND_SUBJECT_SIZE]);

#endif
