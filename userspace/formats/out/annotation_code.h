/* SPDX-License-Identifier: BSD-2-Clause */
/* The instructions of a copy of an annotated function. */
#ifndef FORMATS_OUT_ANNOTATION_CODE_H
#define FORMATS_OUT_ANNOTATION_CODE_H

#include "elf/disassembly.h"
#include "formats/out/annotation.h"

struct annotation_code {
	const struct annotation *a;
	bool is_own;
	uint64_t address;    /* of the first byte, as the ELF file has it */
	const char *problem; /* why there are no instructions; NULL: there are */
	struct disassembly text;
	struct annotation_counts *counts;     /* by instruction, as the rest */
	const struct profile_code_row **rows; /* NULL: nothing is known of its line */
};

/* 0, also if there is a problem; -ENOMEM. To be finished in any case. */
int annotation_code__init(struct annotation_code *code, const struct annotation *a,
			  const struct annotation_copy *copy, enum disassembly_syntax syntax);
void annotation_code__fini(struct annotation_code *code);

/* Of code that it is inlined into, other instructions are left out. */
bool annotation_code__is_shown(const struct annotation_code *code, size_t instruction);

#endif
