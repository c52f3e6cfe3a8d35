/* SPDX-License-Identifier: BSD-2-Clause */
/* The version of a JDK, by its file `release`. */
#ifndef RUNTIMES_HOTSPOT_RELEASE_H
#define RUNTIMES_HOTSPOT_RELEASE_H

#include <stddef.h>
#include <sys/types.h>

/* `library`: the path of its libjvm.so in the process. *version ends with NUL, and is left alone if there is none. */
void hotspot_release__read(pid_t pid, const char *library, char *version, size_t size);

#endif
