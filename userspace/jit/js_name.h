/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of V8: node, deno, Chrome. */
#ifndef JIT_JS_NAME_H
#define JIT_JS_NAME_H

#include <stdbool.h>

#include "jit/jit_name.h"

/* False: it is not one of V8's. */
bool js_name_parse(struct jit_text name, struct jit_name *result);

#endif
