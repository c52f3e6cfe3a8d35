/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the walk in the kernel needs of a process's code heaps: struct runtime_hotspot. With it alone, without a table
 * of rows, nearly all stacks are whole.
 */
#ifndef RUNTIMES_HOTSPOT_WORDS_H
#define RUNTIMES_HOTSPOT_WORDS_H

#include <sysprof/runtime_info.h>

#include "runtimes/hotspot/heap.h"

/* 0; -E2BIG: they do not fit. */
int hotspot_words__make(struct runtime_hotspot *w, const struct hotspot_code *code);

#endif
