/* SPDX-License-Identifier: BSD-2-Clause */
/* The files that a sealed child asks for while it works: .dwo files. The parent has them opened. */
#ifndef SYMBOLIZE_SEALED_FILES_H
#define SYMBOLIZE_SEALED_FILES_H

#include "symbolize/file_finder.h"

/* Where the files of a module are. */
struct sealed_place {
	struct file_finder *finder; /* who opens them; NULL: this process, in tests */
	int elf_fd;		    /* of the module */
	int root_fd;		    /* root directory of its process, or -1 */
	const char *module;	    /* its path in there; NULL: it has none */
};

/*
 * Answer one question of the listener, which poll() says is there: open what the child named, if it
 * may have that, below the module's root or below our own. What it names beside /proc/self/fd/N is looked
 * for beside the module. 0, or negative errno if the listener is of no use any more. A question that
 * cannot be answered with a file is answered with an error.
 */
int sealed_files__answer(int listener, const struct sealed_place *place);

#endif
