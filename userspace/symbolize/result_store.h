/* SPDX-License-Identifier: BSD-2-Clause */
/* Results put aside, to be told later in the order of their indices. */
#ifndef SYMBOLIZE_RESULT_STORE_H
#define SYMBOLIZE_RESULT_STORE_H

#include <stddef.h>

#include <sysprof/symbolizer.h>

struct result_store;

struct result_store *result_store__new(void); /* NULL: no memory */
void result_store__free(struct result_store *s);

/* A symbol_sink_fn whose context is the store; indices ascend. 0, -ENOMEM. */
int result_store__keep(void *store, size_t index, const struct symbol_result *result);

/* Tell what was kept for indices below `end` and has not been told. What the sink returned. */
int result_store__tell(struct result_store *s, size_t end, symbol_sink_fn sink, void *context);

#endif
