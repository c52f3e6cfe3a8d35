/* SPDX-License-Identifier: BSD-2-Clause */
/* Names for a closed window: every location is asked for once, and what is found passes as events. */
#ifndef SESSION_SYMBOLS_H
#define SESSION_SYMBOLS_H

#include <sysprof/symbolizer.h>

#include "session/window.h"
#include "stream/event_queue.h"

/*
 * Finds a name for every location of files, the vDSO and the kernel. The answers are in the window's profile, and
 * (sink, NULL: nobody) are told as a recording has them, up to EVENT_SYMBOLS_END. 0, or negative errno, of the
 * sink too; a file without symbols is no error.
 */
int symbolize_window(struct window *w, struct symbolizer *symbolizer,
		     const struct symbolizer_options *options, struct symbolizer_counts *counts,
		     event_sink_fn sink, void *context);

#endif
