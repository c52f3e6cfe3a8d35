/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers of a reader about functions of runtimes, as events, one behind the other. */
#ifndef RUNTIMES_ANSWERS_H
#define RUNTIMES_ANSWERS_H

#include "base/vec.h"
#include "runtimes/finder.h"
#include "runtimes/runtime.h"

struct code_answers {
	uint32_t pid;
	size_t limit;
	VEC(char) bytes;
	/*
	 * functions that are already reported, with the compiled code that consists of them: HotSpot's, and
	 * WebAssembly
	 */
	VEC(struct code_question) methods;
	struct target_pages *pages;	    /* NULL: none yet */
	const struct found_runtimes *found; /* of the process */
};

/*
 * Reads the state by which a later reading decides whether a method is still the sampled one. Before the first
 * question, and now and then.
 */
void code_answers__begin(struct found_runtimes *found);
/* 0; -E2BIG, -EDQUOT: a limit is reached, and this one has no answer; -ENOMEM. found->memory is what may be read. */
int code_answers__add(struct code_answers *answers, struct found_runtimes *found,
		      const struct code_question *question);
void code_answers__fini(struct code_answers *answers);

#endif
