/* SPDX-License-Identifier: BSD-2-Clause */
/* The name of the program that a process executes, which a thread that renames itself keeps. */
#ifndef LIVE_PROC_EXEC_NAME_H
#define LIVE_PROC_EXEC_NAME_H

#include <stddef.h>

#include "base/proc_task.h"

/*
 * From the target of /proc/PID/exe, the leader's comm, and the text of /proc/PID/cmdline (each word
 * followed by a NUL; may be cut off, empty or overwritten by the process). `name` is cut as the
 * kernel cuts a comm. The comm is kept where it can come from the execve: it is the name of the
 * file, of the first word (a link) or of a script that is one of the next two. Else it is a name that the thread gave
 * itself, and the file's name counts; of a dynamic loader that was started as a program, that of
 * its program. `exe` "": unknown, the comm is kept.
 */
void exec_name__choose(const char *exe, const char *comm, const char *cmdline, size_t size,
		       char name[PROC_COMM_SIZE]);

/*
 * Of a process, `dir` being its directory below /proc. Reading cmdline takes the lock of the
 * process's memory, so a reader process calls this. `name` "": the process is gone or hidden.
 */
void exec_name__read(int dir, char name[PROC_COMM_SIZE]);

#endif
