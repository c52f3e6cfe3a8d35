/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of runtimes from the memory of a process: requested by the words of frames, answered by a reader process
 * as events.
 */
#ifndef JITWATCH_CODE_READER_H
#define JITWATCH_CODE_READER_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>
#include <sysprof/runtime_info.h>

#include "helpers/pool.h"
#include "runtimes/runtime.h"

#define CODE_QUESTIONS_MAX 64u /* in one request */

/*
 * `count` 0: which runtimes does it have? `owner`: helper_owner(pid). 0, -EINVAL, -ENOMEM: there will be no answer.
 */
int code_reader__request(struct helper_pool *pool, unsigned int service, uint32_t pid,
			 uint64_t owner, uint64_t started, const struct code_question *questions,
			 size_t count, helper_answer_fn answer, void *context);
/* A helper_serve_fn. */
void code_reader__serve(struct helper_job *job);

/* Which runtimes a process has, checked. 0; -ENODATA: it could not be read. */
int code_reader__take_info(const struct helper_answer *answer, struct runtime_findings *findings);

/* Each event of an answer, checked, of this process alone, with this time. 0, or what `push` returned. */
int code_reader__take_events(const struct helper_answer *answer, uint32_t pid, uint64_t time,
			     int (*push)(void *context, struct event_header *event), void *context);

#endif
