/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The libraries that a program will load at its start: those of its DT_NEEDED, of theirs, and so on.
 * A hint for building unwind tables early; the dynamic linker may choose other files.
 */
#ifndef CLI_COMMAND_LIBRARIES_H
#define CLI_COMMAND_LIBRARIES_H

/* Maps the program's file and its libraries as code, touching no page. */
void command_libraries__map(const char *program);

#endif
