/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's symbols, as events. */
#ifndef PROCFS_KERNEL_SNAPSHOT_H
#define PROCFS_KERNEL_SNAPSHOT_H

#include <stdint.h>

#include "stream/event_queue.h"

#define KALLSYMS_PIECE_MAX (60u * 1024)

/*
 * /proc/kallsyms in EVENT_KALLSYMS pieces of whole lines, code symbols only (types t, T, w, W, i). Where every
 * address is zero (kernel.kptr_restrict) one piece has the first few lines unchanged, by which the symbolizer reports
 * why there are no names. 0 or negative errno: the file cannot be read, or what `push` returned.
 */
int kernel_snapshot__kallsyms(uint64_t time, event_push_fn push, void *context);

/* The same from an open file in that format. */
int kernel_snapshot__kallsyms_fd(int fd, uint64_t time, event_push_fn push, void *context);

/*
 * From an open /proc/kallsyms all symbols but those of the kernel's image: those of modules, BPF programs,
 * trampolines. At least one event, the last one with EVENT_KALLSYMS_LAST. 0, 1: addresses are hidden, and there are
 * no events, or negative errno.
 */
int kernel_snapshot__modules_fd(int fd, uint64_t time, event_push_fn push, void *context);

#endif
