/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WebAssembly in V8: which function of which module the code at an address is.
 *
 * A frame of it has the instance of the module. By types that V8 publishes it leads to the module's Script, which has
 * the URL, and by an offset that it publishes to the C++ object that owns the module's code (NativeModule). What that
 * one looks like is not published. It is recognized: by a tree of code whose nodes, code and owner refer to each
 * other, by the table that has the code of a function at the function's number, and by the bytes of the module, which
 * have the magic number and are read to their end. If any of that is different, there is no answer.
 */
#ifndef RUNTIMES_V8_WASM_H
#define RUNTIMES_V8_WASM_H

#include <stdbool.h>
#include <stdint.h>

struct managed_function;
struct v8_reader;
struct v8_wasm;

struct v8_wasm *v8_wasm__new(void); /* NULL: no memory */
void v8_wasm__free(struct v8_wasm *w);
/* A request begins: what can have changed since the last one is looked at again. */
void v8_wasm__begin(struct v8_wasm *w);

struct v8_wasm_function {
	uint32_t number;  /* in its module */
	bool has_inlined; /* others may run in its code */
	bool is_start;	  /* it has just been called */
};

/*
 * The function that code at an address is of, in the module of an instance (a tagged word). `is_leaf`: the address is
 * where the thread is, which may be in the jump that leads to the function. 0; -ENODATA: it cannot be determined, or
 * it is no function of the module (stubs, calls of imports); -ENOMEM; or as target_memory__read().
 */
int v8_wasm__function(struct v8_wasm *w, struct v8_reader *r, uint64_t instance, uint64_t address,
		      bool is_leaf, struct v8_wasm_function *function);

/*
 * Its name, as V8 has it ("wasm-function[3]" where the module names none), and its module's URL. Right behind
 * v8_wasm__function(), for the same instance. 0, or as above.
 */
int v8_wasm__describe(struct v8_wasm *w, struct v8_reader *r, uint64_t instance, uint32_t function,
		      struct managed_function *f);

#endif
