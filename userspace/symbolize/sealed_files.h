/* SPDX-License-Identifier: BSD-2-Clause */
/* The files that a sealed child asks for while it works: .dwo files, opened by the parent. */
#ifndef SYMBOLIZE_SEALED_FILES_H
#define SYMBOLIZE_SEALED_FILES_H

/*
 * Answer one question of the listener, which poll() says is there: open what the child named, if it
 * may have that, below `root_fd` (-1: skip it) or below our own root. What it names beside
 * /proc/self/fd/N is looked for beside `module`, the path of its module (NULL: nowhere). 0, or
 * negative errno if the listener is of no use any more. A question that cannot be answered with a
 * file is answered with an error.
 */
int sealed_files__answer(int listener, int root_fd, const char *module);

#endif
