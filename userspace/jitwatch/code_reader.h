/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the memory of a process says about the functions of its runtimes: asked for by the words that frames have, answered
 * by a reader process as events.
 */
#ifndef JITWATCH_CODE_READER_H
#define JITWATCH_CODE_READER_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>
#include <sysprof/runtime_info.h>

#include "readers/reader_pool.h"
#include "runtimes/cpython_layout.h"

struct code_question {
	uint64_t function, check; /* as in a note */
	uint64_t address; /* in compiled code: whose functions are inlined there? 0: not asked */
	uint64_t time;	  /* of the sample that it is asked for */
	uint32_t kind;	  /* enum frame_note_kind */
	uint16_t
		is_leaf; /* the address is where the thread was; 0: the byte before a return address */
	uint16_t
		is_told; /* 1: its answer is known, and need not be told again while it is the same */
};

#define CODE_QUESTIONS_MAX 64u /* in one request */

/*
 * `count` 0: which runtimes does it have? A reader_request goes out in the name of `pid`'s user. 0, -EINVAL, -ENOMEM: there
 * will be no answer.
 */
int code_reader__ask(struct reader_pool *pool, unsigned int service, uint32_t pid, uint64_t started,
		     const struct code_question *questions, size_t count, reader_answer_fn answer,
		     void *context);
/* A reader_serve_fn. */
void code_reader__serve(struct reader_job *job);

/* Which runtimes a process has. */
struct code_findings {
	struct runtime_info info;
	struct cpython_layout
		layout; /* as the reader says; code_copy__send() looks whether it is sound */
	bool may_come;	/* it is worth asking again later */
	bool has_python;
	enum code_runtime_state python; /* if it has */
	bool keeps_frame_pointers;	/* HotSpot, -XX:+PreserveFramePointer */
};

/* 0; -ENODATA: it could not be told. */
int code_reader__take_info(const struct reader_answer *answer, struct code_findings *findings);

/* Each event of an answer, checked, of this process alone, with this time. 0, or what `push` returned. */
int code_reader__take_events(const struct reader_answer *answer, uint32_t pid, uint64_t time,
			     int (*push)(void *context, struct event_header *event), void *context);

#endif
