/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs the instructions of call frame information. The state is a struct unwind_rule: of all
 * registers only CFA, frame pointer and return address are tracked, and rbx if functions of the
 * section need it. Few forms of expressions are supported; in 3,102 files the others were 0.1 % of
 * the rows.
 */
#include "unwind/cfi_machine.h"

#include <dwarf.h>
#include <string.h>

#include "unwind/cfi_private.h"

#define REGISTERS 16

/* ---- the rule -------------------------------------------------------------------------------- */

static bool fits_32(int64_t value)
{
	return value >= INT32_MIN && value <= INT32_MAX;
}

static bool fits_16(int64_t value)
{
	return value >= INT16_MIN && value <= INT16_MAX;
}

static void set_cfa_unknown(struct unwind_rule *rule)
{
	rule->cfa = UNWIND_CFA_UNKNOWN;
	rule->cfa_register = 0;
	rule->cfa_offset = rule->cfa_addend = 0;
}

static void set_cfa(struct unwind_rule *rule, uint64_t reg, int64_t offset)
{
	if (reg >= REGISTERS || !fits_32(offset)) {
		set_cfa_unknown(rule);
		return;
	}
	rule->cfa = reg == UNWIND_X86_RSP   ? UNWIND_CFA_SP
		    : reg == UNWIND_X86_RBP ? UNWIND_CFA_FP
					    : UNWIND_CFA_REGISTER;
	rule->cfa_register = reg;
	rule->cfa_offset = offset;
	rule->cfa_addend = 0;
}

static bool is_register_and_offset(const struct unwind_rule *rule)
{
	return rule->cfa == UNWIND_CFA_SP || rule->cfa == UNWIND_CFA_FP ||
	       rule->cfa == UNWIND_CFA_REGISTER;
}

static bool is_in_memory(const struct unwind_rule *rule)
{
	return rule->cfa == UNWIND_CFA_DEREF || rule->cfa == UNWIND_CFA_DEREF_TWICE;
}

static void set_cfa_register(struct unwind_rule *rule, uint64_t reg)
{
	if (is_register_and_offset(rule))
		set_cfa(rule, reg, rule->cfa_offset);
	else
		set_cfa_unknown(rule);
}

/*
 * After an expression an offset is invalid. OCaml's assembly has them at pushes, and unwinders ignore
 * them. An expression by another register than the stack pointer holds after a push.
 */
static void set_cfa_offset(struct unwind_rule *rule, int64_t offset)
{
	if (is_register_and_offset(rule))
		set_cfa(rule, rule->cfa_register, offset);
	else if (!is_in_memory(rule) || rule->cfa_register == UNWIND_X86_RSP)
		set_cfa_unknown(rule);
}

static void set_fp(struct unwind_rule *rule, enum unwind_fp how, int64_t offset)
{
	rule->fp = fits_32(offset) ? how : UNWIND_FP_UNKNOWN;
	rule->fp_offset = rule->fp == how ? offset : 0;
}

/* The rule for the return address is not supported: the frame cannot be unwound. */
static void set_ra_unknown(struct cfi_machine *m)
{
	m->rule.ra = UNWIND_RA_NONE;
	m->rule.ra_offset = 0;
	set_cfa_unknown(&m->rule);
}

static void set_ra(struct cfi_machine *m, enum unwind_ra how, int64_t value)
{
	if (!fits_16(value)) {
		set_ra_unknown(m);
		return;
	}
	m->rule.ra = how;
	m->rule.ra_offset = value;
}

static void set_rbx(struct cfi_machine *m, enum unwind_rbx how, int64_t offset)
{
	m->rbx.how = fits_16(offset) ? how : UNWIND_RBX_UNTOLD;
	m->rbx.offset = m->rbx.how == how ? offset : 0;
}

/* Where the caller's value of a register is. */
enum kept { KEPT, KEPT_AT_CFA, KEPT_IN_REGISTER, UNDEFINED, LOST };

/* `value`: the offset from the CFA, or the other register. LOST: by an unsupported rule. */
static void set_register(struct cfi_machine *m, uint64_t reg, enum kept how, int64_t value)
{
	static const enum unwind_fp FP[] = {UNWIND_FP_SAME, UNWIND_FP_AT_CFA, UNWIND_FP_UNKNOWN,
					    UNWIND_FP_UNKNOWN, UNWIND_FP_UNKNOWN};
	static const enum unwind_rbx RBX[] = {UNWIND_RBX_SAME, UNWIND_RBX_AT_CFA, UNWIND_RBX_UNTOLD,
					      UNWIND_RBX_UNTOLD, UNWIND_RBX_UNTOLD};
	int64_t offset = how == KEPT_AT_CFA ? value : 0;

	if (reg == UNWIND_X86_RBP)
		set_fp(&m->rule, FP[how], offset);
	else if (reg == UNWIND_X86_RBX)
		set_rbx(m, RBX[how], offset);
	else if (reg != m->cie->ra_register)
		return;
	else if (how == KEPT_AT_CFA)
		set_ra(m, UNWIND_RA_AT_CFA, offset);
	else if (how == KEPT_IN_REGISTER)
		set_ra(m, UNWIND_RA_REGISTER, value);
	else if (how == UNDEFINED)
		set_ra(m, UNWIND_RA_NONE, 0);
	else
		set_ra_unknown(m);
}

static void restore_register(struct cfi_machine *m, uint64_t reg)
{
	const struct unwind_rule *initial = &m->cie->initial;

	if (reg == UNWIND_X86_RBP) {
		m->rule.fp = initial->fp;
		m->rule.fp_offset = initial->fp_offset;
	} else if (reg == UNWIND_X86_RBX) {
		m->rbx = m->cie->initial_rbx;
	} else if (reg == m->cie->ra_register) {
		m->rule.ra = initial->ra;
		m->rule.ra_offset = initial->ra_offset;
	}
}

/* ---- expressions ----------------------------------------------------------------------------- */

/* rsp + 8 + (((rip & 15) >= threshold) << 3), as GNU ld describes a .plt. */
static bool is_plt(struct cursor c, int64_t *threshold)
{
	static const uint8_t BEGIN[] = {DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and};
	static const uint8_t END[] = {DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus};
	size_t size = c.end - c.at;

	if (size != sizeof(BEGIN) + 1 + sizeof(END) || memcmp(c.at, BEGIN, sizeof(BEGIN)) ||
	    memcmp(c.end - sizeof(END), END, sizeof(END)))
		return false;
	*threshold = c.at[sizeof(BEGIN)] - DW_OP_lit0;
	return *threshold > 0 && *threshold < 16;
}

/* The number that "plus_uconst N" or "litN plus" adds; UINT64_MAX: another operation. */
static uint64_t take_addend(struct cursor *c)
{
	uint8_t op = cursor__u8(c);

	if (op == DW_OP_plus_uconst)
		return cursor__uleb(c);
	if (op >= DW_OP_lit0 && op <= DW_OP_lit31 && cursor__u8(c) == DW_OP_plus)
		return op - DW_OP_lit0;
	return UINT64_MAX;
}

/* deref, and any number of addends up to the next deref or the end; their sum fits in 16 bits. */
static bool take_deref(struct cursor *c, int64_t *sum)
{
	*sum = 0;
	if (cursor__u8(c) != DW_OP_deref)
		return false;
	while (!c->bad && c->at < c->end && *c->at != DW_OP_deref) {
		uint64_t value = take_addend(c);

		if (value > INT16_MAX)
			return false;
		*sum += value;
	}
	return !c->bad && fits_16(*sum);
}

/* breg3, breg6 or breg7 N, and one deref with its addends, or two. */
static bool is_deref(struct cursor c, struct unwind_rule *rule)
{
	uint8_t op = cursor__u8(&c);
	int64_t offset = cursor__sleb(&c), second, addend;
	bool twice;

	if ((op != DW_OP_breg3 && op != DW_OP_breg6 && op != DW_OP_breg7) ||
	    !take_deref(&c, &addend))
		return false;
	twice = c.at < c.end;
	second = addend;
	if (twice && (!take_deref(&c, &addend) || c.at < c.end))
		return false;
	if (twice ? !fits_16(offset) : !fits_32(offset))
		return false;
	rule->cfa = twice ? UNWIND_CFA_DEREF_TWICE : UNWIND_CFA_DEREF;
	rule->cfa_register = op - DW_OP_breg0;
	rule->cfa_offset = twice ? unwind_two_offsets(offset, second) : offset;
	rule->cfa_addend = addend;
	return true;
}

static void set_cfa_expression(struct cfi_machine *m, struct cursor c)
{
	struct unwind_rule *rule = &m->rule;
	int64_t threshold;

	if (is_plt(c, &threshold)) {
		set_cfa(rule, UNWIND_X86_RSP, threshold);
		rule->cfa = UNWIND_CFA_PLT;
	} else if (!is_deref(c, rule)) {
		set_cfa_unknown(rule);
	} else if (m->cie->is_signal_frame && rule->cfa == UNWIND_CFA_DEREF &&
		   rule->cfa_register == UNWIND_X86_RSP &&
		   rule->cfa_offset == UNWIND_X86_SIGNAL_RSP && !rule->cfa_addend) {
		m->signal_return = true;
	}
}

/* Saved at breg6 N, as by functions that align their stack. */
static void save_register_by_expression(struct cfi_machine *m, uint64_t reg, struct cursor c)
{
	uint8_t op = cursor__u8(&c);
	int64_t offset = cursor__sleb(&c);

	if (reg == UNWIND_X86_RBP && op == DW_OP_breg6 && c.at == c.end && !c.bad)
		set_fp(&m->rule, UNWIND_FP_AT_FP, offset);
	else
		set_register(m, reg, LOST, 0);
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* The rule in the canonical form for consumers. */
static struct unwind_rule normalized_rule(const struct unwind_rule *rule)
{
	if (rule->cfa == UNWIND_CFA_NONE || rule->cfa == UNWIND_CFA_UNKNOWN)
		return (struct unwind_rule){.cfa = UNWIND_CFA_UNKNOWN};
	if (rule->ra == UNWIND_RA_NONE)
		return (struct unwind_rule){.cfa = UNWIND_CFA_ROOT};
	return *rule;
}

/* cfa_addend is free, except in rules with a word in memory. */
static void add_rbx(const struct cfi_machine *m, struct unwind_rule *rule)
{
	if (!m->section->tracks_rbx || is_in_memory(rule) || rule->cfa == UNWIND_CFA_UNKNOWN ||
	    rule->cfa == UNWIND_CFA_ROOT)
		return;
	rule->rbx = m->rbx.how;
	rule->cfa_addend = m->rbx.offset;
}

int cfi_machine__emit_row(struct cfi_machine *m)
{
	struct unwind_rule rule = normalized_rule(&m->rule);

	add_rbx(m, &rule);
	return m->row(m->context, m->location, &rule);
}

/* Reports a row when the location moves on. */
static int advance_to(struct cfi_machine *m, uint64_t location)
{
	int err = 0;

	if (!m->row || location < m->location || location > m->end) {
		m->failed = true;
		return 0;
	}
	if (location > m->location)
		err = cfi_machine__emit_row(m);
	m->location = location;
	return err;
}

static int advance_by(struct cfi_machine *m, uint64_t delta)
{
	uint64_t distance, location;

	if (__builtin_mul_overflow(delta, m->cie->code_align, &distance) ||
	    __builtin_add_overflow(m->location, distance, &location))
		location = UINT64_MAX;
	return advance_to(m, location);
}

/* value * data_align; INT64_MAX, which fits nowhere, if it overflows. */
static int64_t factored_offset(const struct cfi_machine *m, int64_t value)
{
	int64_t result;

	if (__builtin_mul_overflow(value, m->cie->data_align, &result) || result == INT64_MIN)
		return INT64_MAX;
	return result;
}

static int64_t factored_uleb(const struct cfi_machine *m, struct cursor *c)
{
	uint64_t value = cursor__uleb(c);

	return value > INT64_MAX ? INT64_MAX : factored_offset(m, value);
}

static int64_t plain_uleb(struct cursor *c)
{
	uint64_t value = cursor__uleb(c);

	return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static void remember_state(struct cfi_machine *m)
{
	if (m->depth == CFI_REMEMBERED_MAX)
		m->failed = true;
	if (m->failed)
		return;
	m->remembered[m->depth] = m->rule;
	m->remembered_rbx[m->depth++] = m->rbx;
}

static void restore_state(struct cfi_machine *m)
{
	if (!m->depth)
		m->failed = true;
	if (m->failed)
		return;
	m->rule = m->remembered[--m->depth];
	m->rbx = m->remembered_rbx[m->depth];
}

/* False: it does not change the CFA. */
static bool apply_cfa(struct cfi_machine *m, struct cursor *c, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = cursor__uleb(c);
		set_cfa(&m->rule, reg, plain_uleb(c));
		break;
	case DW_CFA_def_cfa_sf:
		reg = cursor__uleb(c);
		set_cfa(&m->rule, reg, factored_offset(m, cursor__sleb(c)));
		break;
	case DW_CFA_def_cfa_register:
		set_cfa_register(&m->rule, cursor__uleb(c));
		break;
	case DW_CFA_def_cfa_offset:
		set_cfa_offset(&m->rule, plain_uleb(c));
		break;
	case DW_CFA_def_cfa_offset_sf:
		set_cfa_offset(&m->rule, factored_offset(m, cursor__sleb(c)));
		break;
	case DW_CFA_def_cfa_expression:
		set_cfa_expression(m, cursor__take(c, cursor__uleb(c)));
		break;
	default:
		return false;
	}
	return true;
}

static void apply_register(struct cfi_machine *m, struct cursor *c, uint8_t op)
{
	uint64_t reg = cursor__uleb(c), other;

	switch (op) {
	case DW_CFA_offset_extended:
		set_register(m, reg, KEPT_AT_CFA, factored_uleb(m, c));
		break;
	case DW_CFA_offset_extended_sf:
		set_register(m, reg, KEPT_AT_CFA, factored_offset(m, cursor__sleb(c)));
		break;
	case DW_CFA_GNU_negative_offset_extended:
		set_register(m, reg, KEPT_AT_CFA, -factored_uleb(m, c));
		break;
	case DW_CFA_restore_extended:
		restore_register(m, reg);
		break;
	case DW_CFA_undefined:
		set_register(m, reg, UNDEFINED, 0);
		break;
	case DW_CFA_same_value:
		set_register(m, reg, KEPT, 0);
		break;
	case DW_CFA_register:
		other = cursor__uleb(c);
		set_register(m, reg, other < REGISTERS ? KEPT_IN_REGISTER : LOST, other);
		break;
	case DW_CFA_expression:
		save_register_by_expression(m, reg, cursor__take(c, cursor__uleb(c)));
		break;
	case DW_CFA_val_expression:
		cursor__skip(c, cursor__uleb(c));
		set_register(m, reg, LOST, 0);
		break;
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		cursor__uleb(c);
		set_register(m, reg, LOST, 0);
		break;
	default:
		m->failed = true;
	}
}

static int apply_extended(struct cfi_machine *m, struct cursor *c, uint8_t op)
{
	switch (op) {
	case DW_CFA_nop:
		return 0;
	case DW_CFA_set_loc:
		return advance_to(m, cfi_read_encoded(m->section, c, m->cie->encoding));
	case DW_CFA_advance_loc1:
		return advance_by(m, cursor__u8(c));
	case DW_CFA_advance_loc2:
		return advance_by(m, cursor__u16(c));
	case DW_CFA_advance_loc4:
		return advance_by(m, cursor__u32(c));
	case DW_CFA_remember_state:
		remember_state(m);
		return 0;
	case DW_CFA_restore_state:
		restore_state(m);
		return 0;
	case DW_CFA_GNU_args_size:
		cursor__uleb(c);
		return 0;
	default:
		if (!apply_cfa(m, c, op))
			apply_register(m, c, op);
		return 0;
	}
}

int cfi_machine__run(struct cfi_machine *m, const uint8_t *instructions, const uint8_t *end)
{
	struct cursor c = {.at = instructions, .end = end};
	int err = 0;

	while (!err && !m->failed && c.at < c.end) {
		uint8_t op = cursor__u8(&c), low = op & 0x3f;

		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			err = advance_by(m, low);
			break;
		case DW_CFA_offset:
			set_register(m, low, KEPT_AT_CFA, factored_uleb(m, &c));
			break;
		case DW_CFA_restore:
			restore_register(m, low);
			break;
		default:
			err = apply_extended(m, &c, op);
		}
		m->failed |= c.bad;
	}
	return err;
}
