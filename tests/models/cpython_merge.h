/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Python frames and native frames of one stack, by address alone: a native frame is the interpreter's loop if the anchor
 * of a group lies in its part of the stack. No symbol is needed, and none would do: compilers move the loop to places
 * without a name.
 */
#ifndef TESTS_MODELS_CPYTHON_MERGE_H
#define TESTS_MODELS_CPYTHON_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/cpython_walk.h"

/* Of a native frame: the stack pointer in it, and its canonical frame address, the stack pointer of its caller. */
struct cpython_native {
	uint64_t sp, cfa;
};

struct cpython_place {
	uint32_t frame; /* number of a native frame, or their count */
	bool is_loop; /* the group stands for this frame; else it is put before it, which is farther in */
};

/*
 * Native frames and groups are innermost first; places[i] is that of groups[i]. They never descend: groups keep their
 * order, and where two have the same place the order is that of the groups. Native frames that no group stands for stay.
 */
void cpython__merge(const struct cpython_native *native, size_t native_count,
		    const struct cpython_group *groups, size_t group_count,
		    struct cpython_place *places);

#endif
