/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIMES_V8_WASM_BYTES_H
#define RUNTIMES_V8_WASM_BYTES_H

#include <stddef.h>
#include <stdint.h>

struct target_memory;
struct wasm_bytes;

/*
 * The module that is exactly these bytes. 0; -EINVAL: no module; -ENOTSUP: unknown contents;
 * -EFBIG: too many sections or functions; -ENOMEM; or as target_memory__read(). If it is 0, the
 * caller ends it.
 */
int wasm_bytes__open(struct wasm_bytes *w, struct target_memory *m, uint64_t address,
		     uint64_t size);
void wasm_bytes__fini(struct wasm_bytes *w);

/* Its sanitized name. 0; -ENODATA: none; or as target_memory__read(). On failure `to` is "". */
int wasm_bytes__name(const struct wasm_bytes *w, struct target_memory *m, uint32_t function,
		     char *to, size_t size);

#endif
