/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows for code that no call frame information describes. */
#ifndef UNWIND_UNDESCRIBED_H
#define UNWIND_UNDESCRIBED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/unwind_table.h>

#include "elf/elf_file.h"
#include "unwind/cfi.h"
#include "unwind/unwind_rows.h"

/* Linkage tables and trampolines of signal handlers, known by their bytes. 0 or negative errno. */
int undescribed__add_known(struct elf_file *file, struct unwind_rows *rows);
/*
 * All other code, by its instructions; none where that would take too long, and none of Go's, which
 * describes itself in another way. 0 or negative errno.
 */
int undescribed__follow_code(struct elf_file *file, struct unwind_rows *rows);

/*
 * Rules for code without CFI, from its instructions.
 *
 * A function that returns pops its return address: so the pushes and pops from an instruction up to a ret give the
 * place of the return address at that instruction. That is followed backwards, from each ret to all that leads to it.
 * Where two ways disagree there is no rule, nor where the stack pointer becomes something that is not followed. It
 * needs no names and no starts of functions, and a jump to another function is one more way to a ret.
 */

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

/* The functions of a Go program, as rows of an unwind table: .gopclntab says how deep the stack is at each instruction. */

/*
 * All rows in the order of their addresses, up to `limit` of them and some more. Code between functions gets
 * UNWIND_CFA_NONE. 0; -ENOENT: it is not a Go program, or cannot be read as one; -EFBIG: more than `limit`, or than
 * the budget allows (NULL: there is none); -ENOMEM; or what `row` returned.
 */
int go_table__each_row(struct elf_file *file, uint64_t limit, struct build_budget *budget,
		       cfi_row_fn row, void *context, struct cfi_counts *counts);

#endif
