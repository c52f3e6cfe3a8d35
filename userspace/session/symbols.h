/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbols for a closed window: every location is resolved once, and the results are emitted as events. */
#ifndef SESSION_SYMBOLS_H
#define SESSION_SYMBOLS_H

#include <sysprof/symbolizer.h>

#include "session/window.h"
#include "stream/event_queue.h"

/*
 * Resolves every location in files, the vDSO and the kernel. The results are added to the window's profile
 * and, unless `sink` is NULL, passed to it as the events of a recording, up to EVENT_SYMBOLS_END. 0 or
 * negative errno, including the sink's. A file without symbols is not an error.
 */
int symbolize_window(struct window *w, struct symbolizer *symbolizer,
		     const struct symbolizer_options *options, struct symbolizer_counts *counts,
		     event_sink_fn sink, void *context);

#endif
