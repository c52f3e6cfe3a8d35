/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Converts call frame information (.eh_frame, .debug_frame) to rows: an address and its rule.
 *
 * Formats: DWARF 5 section 6.4; .eh_frame: Linux Standard Base, "Exception Frames". x86-64 only.
 */
#ifndef UNWIND_CFI_H
#define UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/unwind_table.h>

struct build_budget;

#define UNWIND_NO_RULE (&(const struct unwind_rule){.cfa = UNWIND_CFA_NONE})

struct cfi_section {
	const uint8_t *data;
	size_t size;
	uint64_t address; /* of the section, ELF virtual address */
	bool is_eh_frame; /* else .debug_frame */
	bool tracks_rbx;  /* rules have the place of the caller's rbx */
	uint64_t entry;	  /* the program's: that function has no caller; 0: it is no program */
	/* Checked before anything is stored. The caller counts the section. NULL: no limits. */
	struct build_budget *budget;
};

struct cfi_counts {
	uint64_t functions;   /* FDEs that became rows */
	uint64_t damaged;     /* FDEs that are truncated or invalid */
	uint64_t unsupported; /* FDEs in an unsupported format */
	uint64_t overlapping; /* FDEs of code that another FDE describes */
};

/* Nonzero ends the walk and is returned. */
typedef int (*cfi_row_fn)(void *context, uint64_t address, const struct unwind_rule *rule);

/*
 * Reports all rows in the order of their ELF virtual addresses. If no function follows within 16
 * bytes of a function's end, a row has UNWIND_CFA_NONE; shorter gaps are padding. Time and memory
 * are in proportion to the section. 0, -ENOMEM, -EFBIG (budget, or 4 GB), or the result of `row`.
 */
int cfi_each_row(const struct cfi_section *section, cfi_row_fn row, void *context,
		 struct cfi_counts *counts);

#endif
