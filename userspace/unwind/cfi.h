/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call frame information (.eh_frame, .debug_frame) to rows: from which address on which rule holds.
 *
 * Formats: DWARF 5 section 6.4; .eh_frame as in the Linux Standard Base, "Exception Frames". x86-64,
 * little-endian.
 */
#ifndef UNWIND_CFI_H
#define UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/unwind_table.h>

struct build_budget;

struct cfi_section {
	const uint8_t *data;
	size_t size;
	uint64_t address; /* of the section, ELF virtual address */
	bool is_eh_frame; /* else .debug_frame */
	bool tracks_rbx;  /* rules say where the caller's rbx is */
	/* Checked before anything of it is kept; NULL: the caller trusts its size. The caller counts its bytes. */
	struct build_budget *budget;
};

struct cfi_counts {
	uint64_t functions;   /* descriptions (FDEs) that became rows */
	uint64_t damaged;     /* … that were cut short, or made no sense */
	uint64_t unsupported; /* … written in a way that is not read */
	uint64_t overlapping; /* … of code that another one had described */
};

/* Nonzero ends the walk and is returned. */
typedef int (*cfi_row_fn)(void *context, uint64_t address, const struct unwind_rule *rule);

/*
 * All rows in the order of their addresses, which are ELF virtual ones. Where a function ends and none
 * follows within 16 bytes, a row says UNWIND_CFA_NONE; shorter gaps are padding. Takes time and
 * memory in proportion to the section. 0, -ENOMEM, -EFBIG (the budget, or 4 GB), or what `row` returned.
 */
int cfi_each_row(const struct cfi_section *section, cfi_row_fn row, void *context,
		 struct cfi_counts *counts);

#endif
