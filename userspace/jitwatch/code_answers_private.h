/* SPDX-License-Identifier: BSD-2-Clause */
/* How answers about a runtime are written: between code_answers.c and the files of runtimes. */
#ifndef JITWATCH_CODE_ANSWERS_PRIVATE_H
#define JITWATCH_CODE_ANSWERS_PRIVATE_H

#include "jitwatch/code_answers.h"
#include "runtimes/managed_function.h"

/* An event. 0, -E2BIG, -ENOMEM. */
int code_answers__append(struct code_answers *answers, const void *data, size_t size);
/* `f` NULL: nothing is known but its state. `flags` of the event. As above. */
int code_answers__function(struct code_answers *answers, const struct code_question *q,
			   enum code_state state, uint32_t base, const struct managed_function *f,
			   uint16_t flags);

/* As code_answers__add(). */
int hotspot_answers__method(struct code_answers *answers, struct found_runtimes *found,
			    const struct code_question *q);
int hotspot_answers__code(struct code_answers *answers, struct found_runtimes *found,
			  const struct code_question *q);
int v8_answers__wasm(struct code_answers *answers, struct found_runtimes *found,
		     const struct code_question *q);
int v8_answers__frame(struct code_answers *answers, struct found_runtimes *found,
		      const struct code_question *q);

#endif
