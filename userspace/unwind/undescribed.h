/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows for code without CFI. */
#ifndef UNWIND_UNDESCRIBED_H
#define UNWIND_UNDESCRIBED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/unwind_table.h>

#include "elf/elf_file.h"
#include "unwind/cfi.h"
#include "unwind/unwind_rows.h"

/* Returns from a signal: mov $15,%rax (or %eax); syscall. */
static const unsigned char SIGRETURN[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
static const unsigned char SIGRETURN_32[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};

/* Adds linkage tables, signal trampolines and entries, known by their bytes. 0 or -errno. */
int undescribed__add_known(struct elf_file *file, struct unwind_rows *rows);
/*
 * Adds rules of all other code, from its instructions, except Go's, which has tables of its own.
 * Code that would take too long gets none and is counted in rows->left. 0 or negative errno.
 */
int undescribed__follow_code(struct elf_file *file, struct unwind_rows *rows);
/* The bytes of code that it would follow. */
uint64_t undescribed__size(struct elf_file *file, struct unwind_rows *rows);

/*
 * Rules for code without CFI, from its instructions.
 *
 * A function that returns pops its return address. So the pushes and pops between an instruction
 * and a ret give the place of the return address. This is propagated backwards from each ret. There
 * is no rule where two paths disagree, or the stack pointer comes from an unknown source. Neither
 * symbols nor function starts are needed; a jump to another function is one more path to a ret.
 */

#define CODE_FLOW_PIECE (1u << 20) /* instructions that are followed together */

struct code_flow {
	const uint8_t *code; /* at virtual address `start` */
	uint64_t start;
	size_t size;
	/* The rule at an address outside of the code; false: unknown. */
	bool (*outside)(void *context, uint64_t address, struct unwind_rule *rule);
	/* The rule from an address on; ascending, the first is not before start. Nonzero stops. */
	int (*row)(void *context, uint64_t address, const struct unwind_rule *rule);
	void *context;
	size_t piece; /* CODE_FLOW_PIECE */
	/*
	 * Steps that may still be processed, and until when (thread_cpu_ns(); 0: no limit). Shared by
	 * several calls, as is the sum of bytes that got no rules because of a limit.
	 */
	uint64_t *work, cpu_end, *left;
	/* If not NULL: set once a large piece keeps frame pointers; the rest is not followed then. */
	bool *is_plain;
};

#endif
