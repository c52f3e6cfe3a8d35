/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of a live recording: books at the end of each, and the rate, which changes in between. */
#ifndef LIVE_WINDOWS_H
#define LIVE_WINDOWS_H

#include <stdint.h>

struct live;

/* Sets the ticks a second and CPU (> 0), from the next window on. */
void live__set_hz(struct live *live, unsigned int hz);

/* The current rate. */
unsigned int live__hz(const struct live *live);

/* Reports soon how long waiting threads have waited so far: call it before a window's end. */
void live__look_at_waits(struct live *live);

/* Sets visits a second and millionths of a CPU for them (> 0), if there are visits. */
void live__set_visits(struct live *live, unsigned int hz, unsigned int budget);

/* Queues the current books and then EVENT_WINDOW. 0 or negative errno. */
int live__end_window(struct live *live);

/* Some kernel addresses have no name: reads symbols of modules again at a window's end. */
void live__want_modules(struct live *live);

/*
 * With the CPUs' times as last read (cpu_idle__read()). `window_end` 0: no window ends; else the books'
 * time. 0 or negative errno, as the two below.
 */
int live_push_books(struct live *live, uint64_t window_end);
int live_push_number(struct live *live, const char *key, uint64_t number, uint64_t now);
/* The current rate. */
int live_push_rate(struct live *live, uint64_t now);

#endif
