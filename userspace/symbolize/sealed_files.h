/* SPDX-License-Identifier: BSD-2-Clause */
/* The files that a sealed child requests while it works: .dwo files. The job's finder opens them. */
#ifndef SYMBOLIZE_SEALED_FILES_H
#define SYMBOLIZE_SEALED_FILES_H

#include "symbolize/sealed.h"

/*
 * Answers one request of the listener, for which poll() has returned: the named file, if the child may have it, below the
 * module's root or below our own; or an error. A name beside /proc/self/fd/N is searched beside the module. 0, or negative
 * errno if the listener is of no use any more.
 */
int sealed_files__answer(int listener, const struct sealed_job *job);

#endif
