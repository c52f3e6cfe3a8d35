/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parser of entries (cfi.c) and the machine that runs their instructions. */
#ifndef UNWIND_CFI_PRIVATE_H
#define UNWIND_CFI_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "unwind/cfi.h"

#define CFI_REMEMBERED_MAX 32 /* compilers nest these 2 deep */

/* Where the caller's rbx is. */
struct rbx {
	enum unwind_rbx how;
	int16_t offset;
};

/* The common part of several functions. */
struct cie {
	uint64_t offset; /* of its length field in the section: its name */
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_register;
	uint8_t encoding; /* DW_EH_PE_* of its functions' addresses */
	bool supported, has_augmentation, is_signal_frame;
	const uint8_t *instructions, *end;
	struct unwind_rule initial;
	struct rbx initial_rbx;
};

struct cfi_machine {
	const struct cfi_section *section;
	const struct cie *cie;
	struct unwind_rule rule, remembered[CFI_REMEMBERED_MAX];
	struct rbx rbx, remembered_rbx[CFI_REMEMBERED_MAX];
	unsigned int depth;
	uint64_t location, end;
	cfi_row_fn row; /* NULL: runs a CIE, which has no locations */
	void *context;
	bool failed;	    /* the rest is unknown */
	bool signal_return; /* the frame takes all registers from the stack */
};

/* Reads an encoded address; indirect ones, and bases other than 0 and pc, are refused (c->bad). */
uint64_t cfi_read_encoded(const struct cfi_section *section, struct cursor *c, uint8_t encoding);

#endif
