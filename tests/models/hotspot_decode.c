/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One pass over the instructions, in the order in which they lie there. Where one jumps forward, what is known at the
 * jump holds at its target, and wins over what comes from above: code behind a call that never returns is not
 * reached from there. Behind a jump or return, where nothing leads to, the frame is that of the body.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/x86_code.h"
#include "models/hotspot_rows.h"

#define DEPTH_MAX      (1 << 20)
#define NO_STATE       0u
#define NOT_ENTRANT    0xe9
#define CALL_STUB_SIZE 15u
#define PATCHED_SIZE                                                                               \
	7u /* of the instruction at the verified entry that a jump of 5 bytes lies over */

static const uint8_t FRAME_START[] = {0x55, 0x48, 0x8b, 0xec}; /* push rbp; mov rbp,rsp */

/* Where the return address is. */
enum where { AT_CFA, AT_SP, IN_REGISTER };

struct state {
	int32_t depth;	 /* CFA - sp */
	int32_t frame;	 /* CFA - rbp; 0: rbp is no frame */
	int32_t saved;	 /* the caller's rbp is at CFA - saved; 0: in rbp */
	int32_t ra_at;	 /* from sp, or a register */
	uint8_t ra;	 /* enum where */
	uint8_t ra_copy; /* a register that has it, too */
};

struct decoding {
	const uint8_t *code;
	uint32_t size;
	const struct hotspot_shape *shape;
	struct state body;
	uint32_t *state_at; /* of each byte: 1 + the number of the state that a jump brings there */
	VEC(struct state)
	states;
	struct hotspot_rows *rows;
};

static bool is_equal(const struct state *a, const struct state *b)
{
	return a->depth == b->depth && a->frame == b->frame && a->saved == b->saved &&
	       a->ra_at == b->ra_at && a->ra == b->ra && a->ra_copy == b->ra_copy;
}

static struct state at_entry(int32_t depth)
{
	return (struct state){.depth = depth, .ra_copy = X86_NO_REGISTER};
}

static struct state body_of(const struct hotspot_shape *shape)
{
	struct state s = at_entry(8);

	if (!shape->words)
		return s;
	s.depth = 8 * (int32_t)shape->words;
	s.saved = 16;
	return s;
}

/* ---- rules ----------------------------------------------------------------------------------- */

int hotspot_rows__add(struct hotspot_rows *rows, uint32_t start, const struct hotspot_rule *rule)
{
	struct hotspot_row *last = rows->list.count ? &rows->list.data[rows->list.count - 1] : NULL;

	if (last && !memcmp(&last->rule, rule, sizeof(*rule)))
		return 0;
	if (last && last->start == start) {
		last->rule = *rule;
		return 0;
	}
	return vec_push(&rows->list, (struct hotspot_row){start, *rule});
}

static int add_row(struct decoding *d, uint32_t at, const struct state *s)
{
	struct hotspot_rule rule;

	memset(&rule, 0, sizeof(rule));
	rule.cfa = d->shape->by_fp && s->frame ? HOTSPOT_CFA_FP : HOTSPOT_CFA_SP;
	rule.cfa_offset = rule.cfa == HOTSPOT_CFA_FP ? s->frame : s->depth;
	rule.ra = s->ra == AT_SP	 ? HOTSPOT_RA_AT_SP
		  : s->ra == IN_REGISTER ? HOTSPOT_RA_REGISTER
					 : HOTSPOT_RA_AT_CFA;
	rule.ra_offset = s->ra == AT_CFA ? 0 : s->ra_at;
	if (s->saved) {
		rule.fp = HOTSPOT_FP_AT_CFA;
		rule.fp_offset = -s->saved;
	}
	return hotspot_rows__add(d->rows, at, &rule);
}

/* ---- what an instruction does ---------------------------------------------------------------- */

static void push(struct state *s, uint8_t reg)
{
	s->depth += 8;
	if (s->ra == AT_SP)
		s->ra_at += 8;
	if (reg == X86_RBP && !s->saved)
		s->saved = s->depth;
	if (s->ra != IN_REGISTER || reg != s->ra_at)
		return;
	s->ra = s->depth == 8 ? AT_CFA : AT_SP;
	s->ra_at = 0;
}

static void pop(struct state *s, uint8_t reg)
{
	if (reg == X86_RBP && s->frame) {
		s->depth = s->frame;
		s->saved = s->frame = 0;
	} else if (reg == X86_RBP && s->saved == s->depth) {
		s->saved = 0;
	}
	if ((s->ra == AT_CFA && s->depth == 8) || (s->ra == AT_SP && !s->ra_at)) {
		s->ra = IN_REGISTER;
		s->ra_at = reg;
	} else if (s->ra == AT_SP) {
		s->ra_at -= 8;
	}
	s->depth -= 8;
}

static void load(struct state *s, uint8_t reg, int32_t from)
{
	if (reg == X86_RBP) {
		if (s->saved == s->depth - from)
			s->saved = 0;
		s->frame = 0;
	} else if (s->ra == AT_CFA && s->depth - from == 8) {
		s->ra_copy = reg;
	}
}

/* and rsp,-16: CFAs of compiled code are aligned to 16. Where the frame is not of that kind, a register has more. */
static void align(struct state *s)
{
	if (s->ra_copy != X86_NO_REGISTER) {
		s->ra = IN_REGISTER;
		s->ra_at = s->ra_copy;
	}
	s->depth = (s->depth + 15) & ~15;
}

static bool is_align(const uint8_t *code, uint32_t left)
{
	static const uint8_t AND[] = {0x48, 0x83, 0xe4, 0xf0};

	return left >= sizeof(AND) && !memcmp(code, AND, sizeof(AND));
}

/* False: what rsp is now is not known. */
static bool change_stack(struct state *s, const struct x86_instruction *i)
{
	switch (i->effect) {
	case X86_PUSH:
		push(s, i->reg);
		return true;
	case X86_POP:
		pop(s, i->reg);
		return true;
	case X86_ADD_SP:
		s->depth -= i->amount;
		s->ra_at -= s->ra == AT_SP ? i->amount : 0;
		return true;
	case X86_SET_SP:
		s->depth = s->frame - i->amount;
		return i->reg == X86_RBP && s->frame;
	case X86_LEAVE:
		s->depth = s->frame - 8;
		s->saved = s->frame = 0;
		return s->depth > 0;
	case X86_LOAD_SP:
	case X86_LOSE_SP:
		return false;
	default:
		return true;
	}
}

static void change_registers(struct state *s, const struct x86_instruction *i)
{
	if (i->effect == X86_CALL || (s->ra_copy < 16 && i->writes >> s->ra_copy & 1))
		s->ra_copy = X86_NO_REGISTER;
	if (i->effect == X86_STORE && i->reg == X86_RBP && !s->saved && s->depth > i->amount)
		s->saved = s->depth - i->amount;
	else if (i->effect == X86_LOAD)
		load(s, i->reg, i->amount);
	else if (i->effect == X86_COPY_SP && i->reg == X86_RBP)
		s->frame = s->saved ? s->depth - i->amount : 0;
	else if (i->effect == X86_LOAD_FP)
		s->saved = s->frame = 0;
	else if (i->writes >> X86_RBP & 1)
		s->frame = 0;
}

/* Of a stub with a frame in rbp the stack pointer need not be known: one pushes its arguments in a loop. */
static bool keeps_frame(const struct decoding *d, struct state *s)
{
	if (!d->shape->by_fp || !s->frame || s->ra != AT_CFA)
		return false;
	s->depth = s->frame;
	return true;
}

static void execute(struct decoding *d, struct state *s, const struct x86_instruction *i,
		    uint32_t at)
{
	if (i->effect == X86_LOSE_SP && is_align(d->code + at, d->size - at))
		align(s);
	else if (!change_stack(s, i) && !keeps_frame(d, s))
		*s = d->body;
	change_registers(s, i);
	if (s->depth >= 0 && s->depth <= DEPTH_MAX && (s->ra != AT_SP || s->ra_at >= 0))
		return;
	if (!keeps_frame(d, s))
		*s = d->body;
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* Jumps back are of use to a second pass only. */
static int note_jump(struct decoding *d, uint32_t at, const struct x86_instruction *i,
		     const struct state *s)
{
	int64_t target = (int64_t)at + i->size + i->amount;
	int err;

	if (target < 0 || target >= d->size || d->state_at[target] ||
	    (target <= at && !d->shape->by_fp))
		return 0;
	if (!d->states.count || !is_equal(&d->states.data[d->states.count - 1], s)) {
		err = vec_push(&d->states, *s);
		if (err)
			return err;
	}
	d->state_at[target] = d->states.count;
	return 0;
}

static bool is_published(const struct hotspot_shape *shape, uint32_t at)
{
	for (size_t i = 0; i < shape->entry_count && shape->entries[i] <= at; i++)
		if (shape->entries[i] == at)
			return true;
	return false;
}

/* Stubs: an entry. A cookie (push -1) may have been pushed before the frame. */
static bool is_entry(const struct decoding *d, uint32_t at, struct state *s)
{
	const uint8_t *code = d->code + at;

	if (!d->shape->by_fp)
		return false;
	if (is_published(d->shape, at)) {
		*s = at_entry(8);
		return true;
	}
	if (d->size - at < sizeof(FRAME_START) || memcmp(code, FRAME_START, sizeof(FRAME_START)))
		return false;
	*s = at_entry(at >= 2 && code[-2] == 0x6a && code[-1] == 0xff ? 16 : 8);
	return true;
}

/* The size of the frame if rbp is stored here right after it was made at once: mov [rsp+N],rbp. 0: it is not. */
static int32_t depth_by_store(const struct decoding *d, uint32_t at)
{
	struct x86_instruction i;

	if (at >= d->size || !x86_decode(d->code + at, d->size - at, &i) || i.effect != X86_STORE ||
	    i.reg != X86_RBP || i.amount < 0 || i.amount > DEPTH_MAX)
		return 0;
	return i.amount + 16;
}

/* An nmethod that is no longer entrant: its first instruction is overwritten. The bytes that are skipped; or 0. */
static uint32_t skip_patch(const struct decoding *d, uint32_t at, struct state *s)
{
	int32_t depth;

	if (!d->shape->is_nmethod || at != d->shape->verified || d->code[at] != NOT_ENTRANT ||
	    d->size - at <= PATCHED_SIZE)
		return 0;
	depth = depth_by_store(d, at + PATCHED_SIZE);
	if (depth)
		*s = at_entry(depth);
	return PATCHED_SIZE;
}

/*
 * Behind the body of an nmethod: mov rbx,Method*; jmp, which is called instead of a method that is not compiled. It may be
 * that nothing calls it by now, or not yet.
 */
static bool is_call_stub(const struct decoding *d, uint32_t at)
{
	const uint8_t *code = d->code + at;

	return d->shape->is_nmethod && d->size - at >= CALL_STUB_SIZE && code[0] == 0x48 &&
	       code[1] == 0xbb && code[10] == 0xe9;
}

static bool ends_flow(uint8_t effect)
{
	return effect == X86_JUMP || effect == X86_JUMP_AWAY || effect == X86_RETURN ||
	       effect == X86_STOP;
}

static int pass(struct decoding *d, struct state s)
{
	bool has_ended = false;
	int err = 0;

	for (uint32_t at = 0, step; at < d->size && !err; at += step) {
		struct x86_instruction i;

		if (d->state_at[at] != NO_STATE)
			s = d->states.data[d->state_at[at] - 1];
		else if (has_ended && is_call_stub(d, at))
			s = at_entry(8);
		else if (at && at == d->shape->verified)
			s = at_entry(8);
		is_entry(d, at, &s);
		err = add_row(d, at, &s);
		step = skip_patch(d, at, &s);
		if (step || err)
			continue;
		if (!x86_decode(d->code + at, d->size - at, &i)) {
			s = d->body;
			step = 1;
			continue;
		}
		step = i.size;
		execute(d, &s, &i, at);
		if (i.effect == X86_BRANCH || i.effect == X86_JUMP)
			err = note_jump(d, at, &i, &s);
		has_ended = ends_flow(i.effect) || (has_ended && i.effect == X86_PADDING);
		if (ends_flow(i.effect))
			s = d->body;
	}
	return err;
}

static struct state first_state(const struct hotspot_shape *shape)
{
	struct state s = at_entry(shape->entry);

	if (!shape->entry && shape->entry_ra >= 0) {
		s.ra = IN_REGISTER;
		s.ra_at = shape->entry_ra;
	}
	return s;
}

int hotspot_decode(const uint8_t *code, uint32_t size, const struct hotspot_shape *shape,
		   struct hotspot_rows *rows)
{
	struct decoding d = {.code = code,
			     .size = size,
			     .shape = shape,
			     .body = body_of(shape),
			     .state_at = calloc(size ? size : 1, sizeof(uint32_t)),
			     .rows = rows};
	int err = d.state_at ? 0 : -ENOMEM;

	for (int i = 0; i <= shape->by_fp && !err; i++) {
		rows->list.count = 0;
		err = pass(&d, first_state(shape));
	}
	if (!err && !rows->list.count)
		err = add_row(&d, 0, &d.body);
	free(d.state_at);
	vec_free(&d.states);
	return err;
}

int32_t hotspot_depth_at_call(const uint8_t *code, uint32_t size, int32_t entry)
{
	const struct hotspot_shape shape = {.entry = entry};
	struct decoding d = {.code = code, .size = size, .shape = &shape, .body = at_entry(-1)};
	struct state s = at_entry(entry);
	struct x86_instruction i;

	for (uint32_t at = 0; at < size; at += i.size) {
		if (!x86_decode(code + at, size - at, &i) || ends_flow(i.effect))
			return -1;
		if (i.effect == X86_CALL)
			return s.depth;
		execute(&d, &s, &i, at);
	}
	return -1;
}
