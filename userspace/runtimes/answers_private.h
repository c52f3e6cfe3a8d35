/* SPDX-License-Identifier: BSD-2-Clause */
/* How answers about a runtime are written: between answers.c and the folders of runtimes. */
#ifndef RUNTIMES_ANSWERS_PRIVATE_H
#define RUNTIMES_ANSWERS_PRIVATE_H

#include "runtimes/answers.h"
#include "runtimes/managed_function.h"

/* An event. 0, -E2BIG, -ENOMEM. */
int code_answers__append(struct code_answers *answers, const void *data, size_t size);
/* `f` NULL: nothing is known but its state. `flags` of the event. As above. */
int code_answers__function(struct code_answers *answers, const struct code_question *q,
			   enum code_state state, uint32_t base, const struct managed_function *f,
			   uint16_t flags);

/* Reads of `memory` keep pages from now on, until the caller sets memory->pages to NULL. */
void code_answers__keep_pages(struct code_answers *answers, struct target_memory *memory);

/* Is it among `methods`, reported with code that consists of it? */
bool code_answers__has(const struct code_answers *answers, const struct code_question *q);

#endif
