/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOLIZE_SEALED_FILES_H
#define SYMBOLIZE_SEALED_FILES_H

struct sealed_job;

/*
 * Answers one request of the listener, after poll(): the named file, if allowed, below the module's
 * root or below ours; or an error. A name beside /proc/self/fd/N is searched beside the module. 0,
 * or negative errno if the listener cannot be used any more.
 */
int sealed_files__answer(int listener, struct sealed_job *job);

#endif
