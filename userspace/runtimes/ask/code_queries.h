/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions about functions of a process, one request at a time, and the handling of answers. */
#ifndef RUNTIMES_ASK_CODE_QUERIES_H
#define RUNTIMES_ASK_CODE_QUERIES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct code_part;
struct code_process;
struct event_header;
struct sample_event;

/* NULL: it has none. */
struct code_process *code_find(const struct code_part *c, pid_t pid);

/* Requests the notes of a sample; `process` NULL: unknown yet. 0 or -ENOMEM, as those below. */
int code_want_notes(struct code_part *c, struct code_process *process,
		    const struct sample_event *e);
/* Requests pieces of code that last as long as the process, of its runtimes. */
int code_want_pieces(struct code_part *c, struct code_process *process, uint64_t now);
/* Requests functions that came before their processes. */
int code_want_early(struct code_part *c);
/*
 * Requests functions sampled since their last reading: their words may have been another
 * function's, which only a later reading shows. `all`: also those read a moment ago; there will be
 * no later one.
 */
int code_want_open(struct code_part *c, struct code_process *process, uint64_t now, bool all);
/* Sends waiting requests, as many as fit into one message. 0 or negative errno. */
int code_send_queries(struct code_part *c, struct code_process *process, uint64_t now);
/* Forgets functions not sampled in the last windows: answers expire, so they are read again. */
int code_forget_outdated(struct code_part *c, struct code_process *process);
void code_free_questions(struct code_part *c, struct code_process *process);
/* live_part.reported: a function from its copy (EVENT_CODE_COPY). */
int code_reported(void *code, const struct event_header *event);

#endif
