/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules for code without CFI, from its instructions.
 *
 * A function that returns pops its return address: so the pushes and pops from an instruction up to a ret give the
 * place of the return address at that instruction. That is followed backwards, from each ret to all that leads to it.
 * Where two ways disagree there is no rule, nor where the stack pointer becomes something that is not followed. It
 * needs no names and no starts of functions, and a jump to another function is one more way to a ret.
 */
#ifndef UNWIND_CODE_FLOW_H
#define UNWIND_CODE_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/unwind_table.h>

#define CODE_FLOW_INSTRUCTIONS_MAX (1u << 20)

struct code_flow {
	const uint8_t *code; /* at virtual address `start` */
	uint64_t start;
	size_t size;
	/* The rule at an address outside of it; false: unknown. */
	bool (*outside)(void *context, uint64_t address, struct unwind_rule *rule);
	/* From this address on; ascending, the first at or behind the start. Nonzero stops. */
	int (*row)(void *context, uint64_t address, const struct unwind_rule *rule);
	void *context;
	/* Steps that may still be looked at, of all that share it. Code beyond it has no rules. */
	uint64_t *work;
};

/* Rules have UNWIND_RA_INFERRED; without it frame pointers will do. 0, -ENOMEM, or what row() returned. */
int code_flow__follow(const struct code_flow *flow);

#endif
