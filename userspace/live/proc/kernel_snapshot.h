/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's symbols, as events: once, and those of its modules again when they change. */
#ifndef LIVE_PROC_KERNEL_SNAPSHOT_H
#define LIVE_PROC_KERNEL_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "stream/event_queue.h"

/*
 * /proc/kallsyms in EVENT_KALLSYMS pieces of whole lines, code symbols only (types t, T, w, W, i).
 * If every address is zero (kernel.kptr_restrict), one piece has the first few lines, from which
 * the symbolizer reports why there are no names. 0 or negative errno: unreadable, or from `push`.
 */
int kernel_snapshot__kallsyms(uint64_t time, event_push_fn push, void *context);

/* The same from an open file in that format. */
int kernel_snapshot__kallsyms_fd(int fd, uint64_t time, event_push_fn push, void *context);

/*
 * From an open /proc/kallsyms all code symbols except the kernel image's: of modules, BPF programs,
 * trampolines. At least one event; the last has EVENT_KALLSYMS_LAST. 0; 1: addresses are hidden, no
 * events; or negative errno.
 */
int kernel_snapshot__modules_fd(int fd, uint64_t time, event_push_fn push, void *context);

/*
 * The symbols of the kernel's modules as they come and go. /proc/kallsyms is 5 MB and more of text,
 * which the kernel writes in some 50 ms, so it is read again only if /proc/modules (a few KB) has
 * changed or kernel addresses had no name. These may never get one (net.core.bpf_jit_harden hides
 * BPF programs), so each reading for that reason doubles the wait for the next, up to an hour.
 */

#define KERNEL_MODULES_INTERVAL	    30000000000ull   /* ns between two readings, at least */
#define KERNEL_MODULES_INTERVAL_MAX 3600000000000ull /* ns: where they have shown nothing new */

struct kernel_modules {
	const char *list, *symbols; /* "/proc/modules", "/proc/kallsyms"; a test's own */
	/* a hash of the modules that were loaded when last looked at; 0: no list */
	uint64_t loaded;
	uint64_t looked;	 /* when; ns */
	bool wanted;		 /* there are addresses without names: */
	uint64_t next, interval; /* ns: not before, and doubled from time to time */
	uint64_t readings;
};

/* All symbols have just been read. */
void kernel_modules__init(struct kernel_modules *m, uint64_t now);
/* There are addresses without names. */
void kernel_modules__want(struct kernel_modules *m);
/* Reads them again if it is time, as events of `now`. 0 or what `push` returns, -ENOMEM. */
int kernel_modules__look(struct kernel_modules *m, uint64_t now, event_push_fn push, void *context);

#endif
