/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WINDOW_SYMBOLS_H
#define WINDOW_SYMBOLS_H

#include "stream/event_queue.h"

struct symbolizer;
struct symbolizer_counts;
struct symbolizer_options;
struct window;

/*
 * Resolves every location in files, the vDSO and the kernel. Adds the results to the window's
 * profile and, unless `sink` is NULL, passes it the events of a recording, up to EVENT_SYMBOLS_END.
 * 0 or negative errno, also of the sink. A file without symbols is not an error.
 */
int symbolize_window(struct window *w, struct symbolizer *symbolizer,
		     const struct symbolizer_options *options, struct symbolizer_counts *counts,
		     event_sink_fn sink, void *context);

/*
 * Names kernel code that came or went within the window, by its times. Afterwards, in a live
 * session and in a replay. 0 or -ENOMEM.
 */
int name_kernel_versions(struct window *w, struct symbolizer *symbolizer);

#endif
