/* SPDX-License-Identifier: BSD-2-Clause */
/* WebAssembly in V8. */
#ifndef RUNTIMES_V8_WASM_H
#define RUNTIMES_V8_WASM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "runtimes/answers.h"
#include "runtimes/target_memory.h"
#include "runtimes/v8/v8.h"

/* ---- functions by addresses ------------------------------------------------------------------ */

/*
 * WebAssembly in V8: which function of which module the code at an address is.
 *
 * A frame of it has the module's instance. By published types of V8 it leads to the Script, which
 * has the URL, and by a published offset to the C++ object that owns the module's code
 * (NativeModule). Its layout is recognized: by a tree of code whose nodes, code and owner refer to
 * each other, by the table that has a function's code at its number, and by the module's bytes,
 * which have the magic number and are read to their end. Otherwise there is no answer.
 */

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
 * The function of the code at an address, in the module of an instance (a tagged word). `is_leaf`:
 * the thread is there, possibly in the jump that leads to the function. 0; -ENODATA: unknown, or no
 * function of the module (stubs, calls of imports); -ENOMEM; or as target_memory__read().
 */
int v8_wasm__function(struct v8_wasm *w, struct v8_reader *r, uint64_t instance, uint64_t address,
		      bool is_leaf, struct v8_wasm_function *function);

/*
 * Was code of a function found near that address? V8 puts code between functions and JavaScript
 * there as well, some of it outside of any module.
 */
bool v8_wasm__is_near(const struct v8_wasm *w, uint64_t address);

/*
 * Its name, as V8 has it ("wasm-function[3]" if the module names none), and its module's URL. Right
 * after v8_wasm__function(), for the same instance. 0, or as above.
 */
int v8_wasm__describe(struct v8_wasm *w, struct v8_reader *r, uint64_t instance, uint32_t function,
		      struct managed_function *f);

/* ---- modules --------------------------------------------------------------------------------- */

/* Modules, between the way from an instance to its module (wasm_find.c) and its code (wasm.c). */

/*
 * A module of WebAssembly in its binary format, in the memory of the process that has loaded it:
 * the number of its functions, and the names in its name section. The bytes are a tenant's: they
 * are read through a window, front to back, and what is kept of them is bounded.
 */

#define WASM_BYTES_MAX	   (1u << 30) /* of a module */
#define WASM_FUNCTIONS_MAX 1000000u
#define WASM_MARK_NAMES	   64u	  /* from one mark to the next */
#define WASM_MARKS_MAX	   16384u /* names behind the last one are not found */

struct wasm_mark {
	uint32_t function, offset;
};

/* Functions are numbered: first those that are imported, then its own. */
struct wasm_bytes {
	uint64_t address, size;
	uint32_t imported, own;
	/* Offsets of some functions' names, ascending by function, and the end of the last name */
	VEC(struct wasm_mark) marks;
	uint32_t names_end;
};

#define WASM_OBJECT_BYTES 1024 /* of an instance, and of a NativeModule, that are looked at */

/* Words that have led from one to the next: as long as they do, it is the same module. */
#define WASM_LINKS 6
struct wasm_link {
	uint64_t address, value;
};

/* A piece of code that the tree does not have yet. */
struct wasm_code {
	uint64_t start, object;
};

struct v8_wasm_module {
	uint64_t instance; /* 0: free */
	uint64_t last_use;
	struct wasm_link links[WASM_LINKS];
	unsigned int link_count;
	uint64_t native;  /* NativeModule */
	uint64_t tree;	  /* the header of the tree of its code, in it */
	uint64_t checked; /* in this request */
	char url[MANAGED_FILE_MAX];
	struct wasm_bytes bytes;
	uint32_t size_at, index_at, inlined_at; /* in a piece of code */
	bool is_calibrated;			/* … these are right */
	/* code made since V8's own last look-up, by start; read once in a request: fresh_read */
	VEC(struct wasm_code) fresh;
	uint64_t fresh_read;
};

/* libstdc++'s, in a NativeModule: a tree, a vector of code not yet in it, a table by function. */
enum {
	TREE_PARENT = 8,
	TREE_LEFT = 16,
	TREE_RIGHT = 24,
	TREE_COUNT = 32,
	TREE_FRESH = 40,
	TREE_TABLE = 64,
	TREE_BYTES = 72,
	NODE_KEY = 32,
	NODE_VALUE = 40,
	NODE_BYTES = 48,
};

struct tree_header {
	uint64_t color, parent, left, right, count;
	uint64_t fresh_begin, fresh_end, fresh_capacity;
	uint64_t table;
};
struct tree_node {
	uint64_t color, parent, left, right, key, value;
};
_Static_assert(sizeof(struct tree_header) == TREE_BYTES && sizeof(struct tree_node) == NODE_BYTES,
	       "as in memory");

#endif
