/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How HotSpot's code is unwound, instruction by instruction: it describes no frames, so its instructions are followed from
 * the entry on, and what they do to the stack pointer and to rbp gives the rules. x86-64 only.
 *
 * The rows of an nmethod never change. They are made once, when it is seen first, and not again: one that is no longer
 * entrant has other bytes at its entry.
 */
#ifndef TESTS_MODELS_HOTSPOT_ROWS_H
#define TESTS_MODELS_HOTSPOT_ROWS_H

#include "models/hotspot_blobs.h"

enum hotspot_cfa {
	HOTSPOT_CFA_SP,	      /* sp + cfa_offset */
	HOTSPOT_CFA_FP,	      /* fp + cfa_offset */
	HOTSPOT_CFA_REGISTER, /* a register; innermost frame only */
	HOTSPOT_CFA_SENDER,   /* the word at fp + cfa_offset: the interpreter's */
};

enum hotspot_ra {
	HOTSPOT_RA_AT_CFA,   /* CFA - 8 */
	HOTSPOT_RA_AT_FP,    /* fp + ra_offset: the interpreter's */
	HOTSPOT_RA_AT_SP,    /* sp + ra_offset; innermost frame only */
	HOTSPOT_RA_REGISTER, /* register number ra_offset; innermost frame only */
};

enum hotspot_fp {
	HOTSPOT_FP_SAME,
	HOTSPOT_FP_AT_CFA, /* CFA + fp_offset */
	HOTSPOT_FP_AT_FP,  /* the word at fp */
	HOTSPOT_FP_AT_SP,  /* the word at sp; innermost frame only */
};

/* Registers have the numbers of the machine code. */
struct hotspot_rule {
	uint8_t cfa, cfa_register, ra, fp; /* the enums above */
	int32_t cfa_offset;
	int16_t ra_offset, fp_offset;
};

struct hotspot_row {
	uint32_t start; /* from the code's first byte, up to the next row */
	struct hotspot_rule rule;
};

struct hotspot_rows {
	VEC(struct hotspot_row)
	list; /* ascending */
};

/* The rule of an interpreted frame whose method runs. */
extern const struct hotspot_rule hotspot_interpreted;

/* What rows need to know beside a blob; it is the same for a process until it ends. */
struct hotspot_stubs {
	VEC(uint64_t)
	entries; /* ascending: published entry points of stubs */
	uint32_t
		enter_special_words; /* frame size of jdk.internal.vm.Continuation.enterSpecial; 0: no such method yet */
	uint64_t enter_special; /* its Method* */
};

/* 0, -ENOMEM, or as reading fails. */
int hotspot_stubs__read(struct hotspot_stubs *s, struct hotspot_code *code,
			struct target_memory *memory, const struct hotspot_blobs *blobs);
void hotspot_stubs__fini(struct hotspot_stubs *s);

/* The rows of a blob; at least one. 0; -EFBIG: it is too large to be code; -ENOMEM; or as reading fails. */
int hotspot_rows__make(struct hotspot_rows *rows, const struct hotspot_code *code,
		       struct target_memory *memory, const struct hotspot_stubs *stubs,
		       const struct hotspot_blob *blob);
const struct hotspot_rule *hotspot_rows__find(const struct hotspot_rows *rows, uint32_t offset);
void hotspot_rows__fini(struct hotspot_rows *rows);

/*
 * The rule of a blob that has no rows: right but for its first and last instructions and where it has put something aside.
 * `offset` from its code; where the frame is innermost and not there yet, the return address is at sp.
 */
struct hotspot_rule hotspot_rule_of_blob(const struct hotspot_blob *blob, uint32_t offset,
					 bool is_innermost);

/* ---- the instructions themselves ------------------------------------------------------------- */

struct hotspot_shape {
	int32_t entry;	 /* CFA - sp at the first byte: 8, or 0 where no return address is pushed */
	int8_t entry_ra; /* with 0: the register that has the return address; -1: none */
	uint32_t words;	 /* the body's frame; 0: none */
	uint32_t verified; /* offset of an entry where the CFA is sp + 8 again; 0: none */
	bool is_nmethod;
	bool by_fp;		 /* stubs: frames by rbp; there are more entries than the first */
	const uint32_t *entries; /* of these, ascending offsets */
	size_t entry_count;
};

/* Rows for code that is at hand. 0, -ENOMEM. */
int hotspot_decode(const uint8_t *code, uint32_t size, const struct hotspot_shape *shape,
		   struct hotspot_rows *rows);
/* CFA - sp at the first call that is reached from the first byte without a jump; -1: there is none. */
int32_t hotspot_depth_at_call(const uint8_t *code, uint32_t size, int32_t entry);
/* Rows for the interpreter's code, or a piece of it; `is_entry`: it begins where methods are entered. */
int hotspot_decode_codelet(const uint8_t *code, uint32_t size, uint32_t start, bool is_entry,
			   struct hotspot_rows *rows);
int hotspot_rows__add(struct hotspot_rows *rows, uint32_t start, const struct hotspot_rule *rule);

#endif
