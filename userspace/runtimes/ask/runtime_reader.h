/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about the memory of runtimes, which reader processes answer. */
#ifndef RUNTIMES_ASK_RUNTIME_READER_H
#define RUNTIMES_ASK_RUNTIME_READER_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>
#include <sysprof/made_frames.h>
#include <sysprof/runtime_info.h>

#include "runtimes/runtime.h"
#include "tenants/pool.h"

struct helper_job;
struct helper_pool;

/* ---- functions ------------------------------------------------------------------------------- */

/* Functions of runtimes in a process's memory: requested by words of frames, answered as events. */

#define CODE_QUESTIONS_MAX 64u /* in one request */

/*
 * `count` 0: only the runtimes of the process. `owner`: helper_owner(pid). 0; errors of
 * helper_pool__request(): there will be no answer.
 */
int code_reader__request(struct helper_pool *pool, unsigned int service, uint32_t pid,
			 uint64_t owner, uint64_t started, const struct code_question *questions,
			 size_t count, helper_answer_fn answer, void *context);
/* A helper_serve_fn. */
void code_reader__serve(struct helper_job *job);

/* The runtimes of a process, checked. 0; -ENODATA: it could not be read. */
int code_reader__take_info(const struct helper_answer *answer, struct runtime_findings *findings);
/* The questions whose answer a limit cut short, or left out. */
uint32_t code_reader__left(const struct helper_answer *answer);

/*
 * Checks events, and sets their time: when the reading ended, not before the request. 0; -ENODATA:
 * the rest was not taken, because an event is invalid or of another process; -ENOMEM; or what `push`
 * returned.
 */
int code_reader__take_events(const struct helper_answer *answer, uint32_t pid, uint64_t requested,
			     int (*push)(void *context, struct event_header *event), void *context);

/* ---- frames of JIT code ---------------------------------------------------------------------- */

/*
 * Frames of JIT code from the memory of LuaJIT and PyPy. A read of a process's memory can hang
 * (FUSE, userfaultfd), so a reader process does it.
 */

/* May make further requests. */
typedef void (*made_answer_fn)(void *context, const struct made_answer *answer);

/*
 * Sends a copy of the request to this service of the pool. 0: the pool will call `answer` once, in
 * any order; -EINVAL, -ENOMEM or a lack of descriptors: never. The process may have ended by then.
 */
int runtime_reader__request(struct helper_pool *pool, unsigned int service,
			    const struct made_request *request, made_answer_fn answer,
			    void *context);
/* A helper_serve_fn. */
void runtime_reader__serve(struct helper_job *job);

/*
 * Run by a reader. *frames are the caller's. 0; -ENODATA: nothing found; -ESRCH, -EPERM, …:
 * memory not readable; -EINVAL: no such runtime; -ENOMEM.
 */
int runtime_reader__read(const struct frame_sizes_request *request, struct made_frame **frames,
			 size_t *count);

#endif
