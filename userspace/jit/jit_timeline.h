/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What code a process had made at an address at a time: entries of perf maps in the order in which
 * they were written, each with the two moments between which it was. Questions are answered all at
 * once, when the recording ends.
 *
 * A later entry ends every earlier one that it overlaps, whole: what was overwritten in part cannot
 * be running. A question from between an entry's two moments gets that entry, and is ambiguous if
 * another function may have been at its address then.
 */
#ifndef JIT_JIT_TIMELINE_H
#define JIT_JIT_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jit/fresh.h"

#define JIT_NO_ENTRY (~0u)

struct jit_timeline;

/* NULL: no memory. */
struct jit_timeline *jit_timeline__new(void);
void jit_timeline__free(struct jit_timeline *t);

/*
 * The next entry. It was written after `after` and not after `before` (CLOCK_MONOTONIC ns; neither
 * is older than that of the entry before it). `function` tells functions apart: that of two tiers is
 * the same. Entries are numbered from 0 on. 0, -ENOMEM, -E2BIG.
 */
int jit_timeline__add(struct jit_timeline *t, const struct code_range *range, uint64_t after,
		      uint64_t before, uint32_t function);
size_t jit_timeline__count(const struct jit_timeline *t);

struct jit_question {
	uint64_t address, time;
	/* the answer */
	uint32_t entry; /* JIT_NO_ENTRY: nothing that is known */
	bool ambiguous;
};

/* Sorts the questions by time. 0 or -ENOMEM. */
int jit_timeline__answer(struct jit_timeline *t, struct jit_question *questions, size_t count);

#endif
