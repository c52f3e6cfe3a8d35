/* SPDX-License-Identifier: BSD-2-Clause */
/* How answers about a runtime are written: between answers.c and the folders of runtimes. */
#ifndef RUNTIMES_ANSWERS_PRIVATE_H
#define RUNTIMES_ANSWERS_PRIVATE_H

#include "runtimes/answers.h"
#include "runtimes/managed_function.h"

/* `f` NULL: nothing is known but its state. `flags` of the event. 0, -E2BIG, -ENOMEM. */
int code_answers__function(struct code_answers *answers, const struct code_question *q,
			   enum code_state state, uint32_t base, const struct managed_function *f,
			   uint16_t flags);

/* The calls at an address of compiled code, CODE_CALLS_MAX at most, innermost first. As above. */
int code_answers__chain(struct code_answers *answers, const struct code_question *q,
			enum code_state state, const struct code_call *calls, unsigned int count);

/* Reads of `memory` keep pages from now on, until the caller sets memory->pages to NULL. */
void code_answers__keep_pages(struct code_answers *answers, struct target_memory *memory);

/* Is it among `methods`, reported with code that consists of it? */
bool code_answers__has(const struct code_answers *answers, const struct code_question *q);

#endif
