/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of JavaScript and those inlined in their code; WebAssembly; other code made by V8. */
#ifndef RUNTIMES_V8_ANSWERS_H
#define RUNTIMES_V8_ANSWERS_H

struct code_answers;
struct code_question;
struct v8_found;

/* As runtime_memory.answer. found->reader.memory is set. */
int v8_answers__function(struct code_answers *answers, struct v8_found *found,
			 const struct code_question *q);
int v8_answers__wasm(struct code_answers *answers, struct v8_found *found,
		     const struct code_question *q);
int v8_answers__frame(struct code_answers *answers, struct v8_found *found,
		      const struct code_question *q);

#endif
