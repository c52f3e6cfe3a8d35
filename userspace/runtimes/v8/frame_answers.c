/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of V8 that are no functions of JavaScript: WebAssembly, and what V8 has made besides. */
#include <errno.h>
#include <stdio.h>

#include "runtimes/v8/found.h"
#include "runtimes/v8/wasm.h"

/* A process that has none pays for none. */
static struct v8_wasm *wasm_of(struct v8_found *found)
{
	if (!found->wasm)
		found->wasm = v8_wasm__new();
	return found->wasm;
}

/* The function by its number, once in an answer. */
static int add_function(struct code_answers *answers, struct v8_found *found,
			const struct code_question *q, uint32_t number)
{
	struct managed_function f = {};
	int err;

	if (code_answers__has(answers, q))
		return 0;
	err = v8_wasm__describe(found->wasm, &found->reader, q->function, number, &f);
	if (err)
		return err;
	err = code_answers__function(answers, q, CODE_STATE_CONFIRMED, 0, &f, 0);
	return err ? err : vec_push(&answers->methods, *q);
}

int v8_answers__wasm(struct code_answers *answers, struct v8_found *found,
		     const struct code_question *q)
{
	struct code_call calls[2];
	struct code_question function = {.kind = q->kind, .function = q->function};
	struct v8_wasm *wasm;
	struct v8_wasm_function code;
	int err;

	if (!found->is_read || !q->address || found->trust.state == V8_REFUSED ||
	    found_runtimes__is_file_code(answers->found, q->address))
		return 0;
	wasm = wasm_of(found);
	if (!wasm)
		return -ENOMEM;
	err = v8_wasm__function(wasm, &found->reader, q->function, q->address, q->is_leaf, &code);
	if (err)
		return err == -ENOMEM || err == -EDQUOT ? err : 0;
	function.check = (uint64_t)code.number + 1;
	err = add_function(answers, found, &function, code.number);
	if (err)
		return err == -ENOMEM || err == -E2BIG || err == -EDQUOT ? err : 0;
	calls[0] = (struct code_call){.function = function.function, .check = function.check};
	calls[1] = (struct code_call){.function = q->function, .check = q->check};
	return code_answers__chain(answers, q,
				   q->is_leaf && code.has_inlined && !code.is_start
					   ? CODE_STATE_INFERRED
					   : CODE_STATE_CONFIRMED,
				   calls, 2);
}

int v8_answers__frame(struct code_answers *answers, struct v8_found *found,
		      const struct code_question *q)
{
	struct managed_function f = {};
	const char *type = NULL;

	if (found->is_read && q->function < V8_FRAME_TYPES)
		type = found->layout.frame_types[q->function];
	if (!type)
		return code_answers__function(answers, q, CODE_STATE_UNKNOWN, 0, NULL, 0);
	snprintf(f.name, sizeof(f.name), "[%s]", type);
	return code_answers__function(answers, q, CODE_STATE_CONFIRMED, 0, &f, 0);
}
