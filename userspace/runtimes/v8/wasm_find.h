/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From an instance of a module to what V8 has of it. A step counts only if the object there is of
 * the type that it must be, or refers back.
 */
#ifndef RUNTIMES_V8_WASM_FIND_H
#define RUNTIMES_V8_WASM_FIND_H

#include <stdbool.h>
#include <stdint.h>

struct v8_reader;
struct v8_wasm_module;

/* Fills all up to `bytes`; the caller ends it. -ENODATA: not found; else as wasm_bytes__open(). */
int wasm_module__find(struct v8_reader *r, uint64_t instance, struct v8_wasm_module *module);
/* Is it still the one that was found? */
bool wasm_module__is_there(struct v8_reader *r, const struct v8_wasm_module *module);

#endif
