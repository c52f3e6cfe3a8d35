/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOLIZE_MODULE_INDEX_H
#define SYMBOLIZE_MODULE_INDEX_H

#include <stddef.h>
#include <stdint.h>

struct module;

/*
 * The index (symbol_index.h) of the module; of a large one a slice, of the code around the file
 * offsets. The caller frees it. 0; -ENODATA: it can have none, or is damaged; -EFBIG; -ENOMEM. What
 * was read of the files stays.
 */
int module__index(struct module *m, const uint64_t *offsets, size_t count, void **data,
		  size_t *size);

/* module_index.c: see module_report.index_cost. */
uint64_t module_index_cost(const struct module *m);

#endif
