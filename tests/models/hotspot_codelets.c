/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interpreter's code: everywhere the frame that rbp points to, but for where methods are entered and where they
 * return.
 */
#include <string.h>

#include "elf/x86_code.h"
#include "models/hotspot_rows.h"

#define RBX 3
#define R13 13

const struct hotspot_rule hotspot_interpreted = {.cfa = HOTSPOT_CFA_SENDER,
						 .ra = HOTSPOT_RA_AT_FP,
						 .fp = HOTSPOT_FP_AT_FP,
						 .cfa_offset = -8,
						 .ra_offset = 8};

#define LEAVE	 0xc9
#define SKIP_MAX 3 /* instructions between leave and pop: JDK 25 clears a flag there */

static const uint8_t SP_FROM_RBX[] = {0x48, 0x8b, 0xe3};

/*
 * Behind a leave: pop reg; mov rsp,rbx; …; jmp reg. The caller's stack pointer is in rbx, the return address at sp, then in
 * a register. The size up to the pop's end, 0: this is no return.
 */
static uint32_t find_return(const uint8_t *code, uint32_t size, struct x86_instruction *pop)
{
	uint32_t at = 0;

	for (int i = 0; i <= SKIP_MAX; i++) {
		if (!x86_decode(code + at, size - at, pop) ||
		    (pop->effect != X86_PLAIN && pop->effect != X86_POP))
			return 0;
		at += pop->size;
		if (pop->effect == X86_POP)
			return pop->reg != X86_NO_REGISTER && size - at >= sizeof(SP_FROM_RBX) &&
					       !memcmp(code + at, SP_FROM_RBX, sizeof(SP_FROM_RBX))
				       ? at
				       : 0;
	}
	return 0;
}

/* At a leave; *end: behind what was looked at. */
static int add_return(const uint8_t *code, uint32_t size, uint32_t start, uint32_t at,
		      struct hotspot_rows *rows, uint32_t *end)
{
	struct hotspot_rule rule = {
		.cfa = HOTSPOT_CFA_REGISTER, .cfa_register = RBX, .ra = HOTSPOT_RA_AT_SP};
	struct x86_instruction i;
	uint32_t popped;
	int err;

	*end = ++at;
	popped = find_return(code + at, size - at, &i);
	if (!popped)
		return 0;
	err = hotspot_rows__add(rows, start + at, &rule);
	at += popped;
	rule.ra = HOTSPOT_RA_REGISTER;
	rule.ra_offset = i.reg;
	if (!err)
		err = hotspot_rows__add(rows, start + at, &rule);
	while (!err && at < size && x86_decode(code + at, size - at, &i)) {
		at += i.size;
		if (i.effect == X86_JUMP_AWAY)
			break;
	}
	*end = at;
	return err ? err : hotspot_rows__add(rows, start + at, &hotspot_interpreted);
}

struct entry {
	struct hotspot_rule rule;
	bool is_frame; /* rbp points to the new frame, which lacks the caller's stack pointer */
};

/* False: the frame is as all others are. */
static bool enter(struct entry *e, const struct x86_instruction *i)
{
	struct hotspot_rule *r = &e->rule;

	switch (i->effect) {
	case X86_PUSH:
		if (e->is_frame)
			return i->reg != R13;
		if (r->ra == HOTSPOT_RA_REGISTER && r->ra_offset == i->reg) {
			r->ra = HOTSPOT_RA_AT_SP;
			r->ra_offset = 0;
		} else if (r->ra == HOTSPOT_RA_AT_SP) {
			if (i->reg == X86_RBP && !r->ra_offset)
				r->fp = HOTSPOT_FP_AT_SP;
			r->ra_offset += 8;
		}
		return true;
	case X86_POP:
		if (r->ra == HOTSPOT_RA_AT_SP && !r->ra_offset) {
			r->ra = HOTSPOT_RA_REGISTER;
			r->ra_offset = i->reg;
		} else if (r->ra == HOTSPOT_RA_AT_SP) {
			r->ra_offset -= 8;
		}
		return r->ra != HOTSPOT_RA_REGISTER || r->ra_offset < X86_NO_REGISTER;
	case X86_ADD_SP:
		if (r->ra == HOTSPOT_RA_AT_SP)
			r->ra_offset -= i->amount;
		return e->is_frame || r->ra != HOTSPOT_RA_AT_SP ||
		       (r->ra_offset >= 0 && r->ra_offset < 4096);
	case X86_COPY_SP:
		if (i->reg != X86_RBP)
			return true;
		e->is_frame = r->fp == HOTSPOT_FP_AT_SP;
		r->ra = HOTSPOT_RA_AT_FP;
		r->ra_offset = 8;
		r->fp = HOTSPOT_FP_AT_FP;
		return e->is_frame;
	case X86_JUMP_AWAY:
	case X86_RETURN:
	case X86_STOP:
		return true; /* the next instruction is reached by a jump from above */
	case X86_SET_SP:     /* no room on the stack: back to the caller, and away */
		return i->reg == R13;
	case X86_LOSE_SP:
	case X86_LOAD_SP:
	case X86_LEAVE:
		return false;
	default:
		return true;
	}
}

/* Up to the push of r13, which completes the frame. */
static int add_entry(const uint8_t *code, uint32_t size, uint32_t start, struct hotspot_rows *rows,
		     uint32_t *end)
{
	struct entry e = {
		.rule = {.cfa = HOTSPOT_CFA_REGISTER, .cfa_register = R13, .ra = HOTSPOT_RA_AT_SP}};
	uint32_t at = 0;
	int err = hotspot_rows__add(rows, start, &e.rule);

	while (!err && at < size) {
		struct x86_instruction i;
		bool goes_on = x86_decode(code + at, size - at, &i) && enter(&e, &i);

		at += i.size;
		if (!goes_on)
			break;
		err = hotspot_rows__add(rows, start + at, &e.rule);
	}
	*end = at;
	return err ? err : hotspot_rows__add(rows, start + at, &hotspot_interpreted);
}

int hotspot_decode_codelet(const uint8_t *code, uint32_t size, uint32_t start, bool is_entry,
			   struct hotspot_rows *rows)
{
	uint32_t at = 0;
	int err;

	if (is_entry)
		err = add_entry(code, size, start, rows, &at);
	else
		err = hotspot_rows__add(rows, start, &hotspot_interpreted);
	while (!err && at < size) {
		if (code[at] != LEAVE)
			at++;
		else
			err = add_return(code, size, start, at, rows, &at);
	}
	return err;
}
