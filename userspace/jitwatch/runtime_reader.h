/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frames of JIT code, read from the memory of LuaJIT and PyPy.
 *
 * A process can have memory that its reader waits for (a file of FUSE, userfaultfd). So a reader process reads it.
 */
#ifndef JITWATCH_RUNTIME_READER_H
#define JITWATCH_RUNTIME_READER_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/made_frames.h>

#include "runtimes/runtime.h"

struct helper_job;
struct helper_pool;

/* May make further requests. */
typedef void (*made_answer_fn)(void *context, const struct made_answer *answer);

/*
 * Sends the request, with copies of all that it points to, to this service of the pool. 0: there will be one answer, when
 * the owner of the pool takes answers, in any order; -EINVAL, -ENOMEM: there will be none. The process may have ended by then.
 */
int runtime_reader__request(struct helper_pool *pool, unsigned int service,
			    const struct made_request *request, made_answer_fn answer,
			    void *context);
/* A helper_serve_fn. */
void runtime_reader__serve(struct helper_job *job);

/*
 * What a reader does for it. *frames are the caller's. 0; -ENODATA: nothing was found; -ESRCH, -EPERM, …: the memory cannot be
 * read; -EINVAL: no such runtime; -ENOMEM.
 */
int runtime_reader__read(const struct frame_sizes_request *request, struct made_frame **frames,
			 size_t *count);

#endif
