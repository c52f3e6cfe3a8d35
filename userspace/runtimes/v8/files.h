/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The constants of files that V8 is linked into. Finding its bytecodes takes a look at all constants of a program, a
 * millisecond or more, so it is remembered for programs that are started again and again.
 */
#ifndef RUNTIMES_V8_FILES_H
#define RUNTIMES_V8_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "runtimes/v8/bytecodes.h"
#include "runtimes/v8/layout.h"

struct elf_file;

/*
 * As v8_layout__read() and v8_bytecodes__read(). `st`: of the file. `user`: of the process that maps it, from
 * tenant_user(). A file system's answers about its files count for this user only. By one thread.
 */
bool v8_files__read(struct elf_file *file, const struct stat *st, uint32_t user,
		    struct v8_layout *layout, struct v8_bytecodes *bytecodes);

#endif
