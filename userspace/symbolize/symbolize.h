/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the symbolizer share. */
#ifndef SYMBOLIZE_SYMBOLIZE_H
#define SYMBOLIZE_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>

#include <sysprof/symbolizer.h>

/* Are its addresses file offsets? */
bool symbolize_is_file(enum dso_kind kind);

/* Tell the sink that nothing is known of so many addresses. What the sink returned. */
int symbolize_nothing(size_t count, symbol_sink_fn sink, void *context);

#endif
