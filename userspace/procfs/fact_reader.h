/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads facts of a process: environment, command line and OpenTelemetry context. All of them are in the process's own
 * memory, and a read of that can block (userfaultfd, files of FUSE), so a reader process reads it.
 */
#ifndef PROCFS_FACT_READER_H
#define PROCFS_FACT_READER_H

#include <sys/types.h>

#include "procfs/fact_text.h"
#include "helpers/pool.h"

#define FACT_NAMES_MAX 4096u /* bytes of all names of variables */

/*
 * `dir`: of the process, below /proc. `names`: variables that are wanted, "A\0B\0". `with_context`: the OpenTelemetry
 * context as well, for which all mappings are looked through. 0, -EINVAL or -ENOMEM.
 */
int fact_reader__request(struct helper_pool *pool, unsigned int service, pid_t pid, int dir,
			 const char *names, size_t names_size, bool with_context,
			 helper_answer_fn answer, void *context);
/* A helper_serve_fn. */
void fact_reader__serve(struct helper_job *job);
/* Adds the facts of an answer. False: it is none, or not sound. */
bool fact_reader__take(const struct helper_answer *answer, struct fact_text *facts);

#endif
