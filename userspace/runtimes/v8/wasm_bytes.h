/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A module of WebAssembly in its binary format, in the memory of the process that has loaded it: the number of its
 * functions, and their names in its name section.
 *
 * The bytes are a tenant's. They are read through a window, front to back, and what has to be kept of them is bounded.
 */
#ifndef RUNTIMES_V8_WASM_BYTES_H
#define RUNTIMES_V8_WASM_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "runtimes/target_memory.h"

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
	/* Names of functions: where some of them lie, ascending by function, and where the last one ends. Offsets */
	VEC(struct wasm_mark) marks;
	uint32_t names_end;
};

/*
 * The module that is exactly these bytes. 0; -EINVAL: it is none; -ENOTSUP: it has what is not known here; -ENOMEM; or as
 * target_memory__read(). The caller ends it, if it is 0.
 */
int wasm_bytes__open(struct wasm_bytes *w, struct target_memory *m, uint64_t address,
		     uint64_t size);
void wasm_bytes__fini(struct wasm_bytes *w);

/* Its name, through utf8_sanitize(). 0; -ENODATA: it has none; or as target_memory__read(). On failure `to` is "". */
int wasm_bytes__name(const struct wasm_bytes *w, struct target_memory *m, uint32_t function,
		     char *to, size_t size);

#endif
