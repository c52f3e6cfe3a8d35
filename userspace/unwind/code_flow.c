/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/code_flow.h"

#include "base/clocks.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/vec.h"
#include "elf/x86_code.h"
#include "unwind/undescribed.h"

#define WORD		   8
#define OFFSET_MAX	   (1 << 20)
#define PASSES_MAX	   24	  /* hand-written code needs three or four */
#define CLOCK_STEP	   65536  /* steps between two looks at the clock */
#define PLAIN_STEPS	   65536u /* that a piece has at least to stand for the rest */
#define FUNCTION_ALIGNMENT 16
#define ARGUMENTS	   0x03c6u /* rdi, rsi, rdx, rcx, r8, r9 */

/* Where the canonical frame address is before an instruction. */
enum cfa_place {
	NOWHERE,   /* no path to a ret is known */
	AT_SP,	   /* rsp + offset */
	AT_REG,	   /* reg + offset */
	IN_MEMORY, /* the word at rsp + offset, + addend */
	DISPUTED,  /* two paths disagree */
};

/* Where the caller's rbp is. */
enum fp_place {
	FP_IS_SAME,
	FP_IS_SAVED, /* at the canonical frame address + fp_offset */
	FP_IS_LOST,
};

struct state {
	uint8_t cfa; /* enum cfa_place */
	uint8_t reg;
	uint8_t fp;    /* enum fp_place */
	bool anchored; /* of AT_REG, IN_MEMORY: the value comes from the stack pointer */
	int32_t offset, addend, fp_offset;
};

struct step {
	uint32_t at; /* in the code */
	uint8_t size, effect, reg;
	uint16_t writes;
	int32_t amount; /* of jumps: the number of the target's step, or OUTSIDE */
	struct state state;
};

#define OUTSIDE (-1)

/* One piece of the code, see find_end(). */
struct flow {
	const struct code_flow *options;
	VEC(struct step) steps;
	size_t begin, end;	    /* in the code */
	bool guesses;		    /* see is_end_of_call() */
	struct unwind_rule unknown; /* for code without a rule */
};

/* ---- from text to steps ---------------------------------------------------------------------- */

static int read_steps(struct flow *f)
{
	const struct code_flow *o = f->options;
	struct x86_instruction i;
	size_t at = f->begin;
	int err;

	f->steps.count = 0;
	while (at < o->size && f->steps.count < o->piece) {
		if (!x86_decode(o->code + at, o->size - at, &i)) {
			at = align_up(o->start + at + 1, FUNCTION_ALIGNMENT) - o->start;
			continue;
		}
		err = vec_push(&f->steps, (struct step){.at = at,
							.size = i.size,
							.effect = i.effect,
							.reg = i.reg,
							.writes = i.writes,
							.amount = i.amount});
		if (err)
			return err;
		at += i.size;
	}
	f->end = min_u64(at, o->size);
	return 0;
}

static bool ends_function(const struct step *s)
{
	return s->effect == X86_JUMP || s->effect == X86_JUMP_AWAY || s->effect == X86_RETURN ||
	       s->effect == X86_STOP;
}

/*
 * Code of more than a piece is divided, because its steps take memory. A piece ends between two
 * functions: after an instruction that does not go on, at an aligned address. Jumps to other pieces
 * lead to a function's start or to code that has rules already, or not at all.
 */
static void find_end(struct flow *f)
{
	const struct code_flow *o = f->options;
	const struct step *s = f->steps.data;

	if (f->end == o->size)
		return;
	for (size_t i = f->steps.count - 1; i > f->steps.count / 2; i--) {
		if (!ends_function(&s[i - 1]) || (o->start + s[i].at) % FUNCTION_ALIGNMENT)
			continue;
		f->end = s[i].at;
		f->steps.count = i;
		return;
	}
}

/* The step at that offset; OUTSIDE: none begins there. */
static int32_t step_at(const struct flow *f, int64_t at)
{
	size_t i = partition_point(f->steps.data, f->steps.count, step, step->at < at);

	return i < f->steps.count && f->steps.data[i].at == at ? (int32_t)i : OUTSIDE;
}

static bool is_jump(const struct step *s)
{
	return s->effect == X86_BRANCH || s->effect == X86_JUMP;
}

static struct state state_nowhere(void)
{
	return (struct state){.cfa = NOWHERE};
}

static struct state at_sp(int64_t offset)
{
	if (offset < WORD || offset > OFFSET_MAX)
		return state_nowhere();
	return (struct state){.cfa = AT_SP, .offset = offset};
}

/* The state that a function with CFI expects at a jump's target. */
static struct state state_of_rule(const struct unwind_rule *rule)
{
	struct state s = state_nowhere();

	if (rule->cfa == UNWIND_CFA_PLT)
		return at_sp(WORD);
	if (rule->cfa != UNWIND_CFA_SP || rule->ra_offset != -WORD ||
	    (rule->ra != UNWIND_RA_AT_CFA && rule->ra != UNWIND_RA_INFERRED))
		return s;
	s = at_sp(rule->cfa_offset);
	if (rule->fp == UNWIND_FP_AT_CFA) {
		s.fp = FP_IS_SAVED;
		s.fp_offset = rule->fp_offset;
	} else if (rule->fp != UNWIND_FP_SAME) {
		s.fp = FP_IS_LOST;
	}
	return s;
}

/* Resolves jumps. If the target is outside of the code, the step stores the state there. */
static void find_targets(struct flow *f)
{
	const struct code_flow *o = f->options;

	for (size_t i = 0; i < f->steps.count; i++) {
		struct step *s = &f->steps.data[i];
		int64_t to = (int64_t)s->at + s->size + s->amount;
		struct unwind_rule rule;

		if (!is_jump(s))
			continue;
		s->amount = step_at(f, to);
		s->state = state_nowhere();
		if (s->amount == OUTSIDE && (to < (int64_t)f->begin || (uint64_t)to >= f->end) &&
		    o->outside(o->context, o->start + (uint64_t)to, &rule))
			s->state = state_of_rule(&rule);
	}
}

/* ---- backwards over one instruction ---------------------------------------------------------- */

static struct state moved_state(struct state s, int64_t by)
{
	int64_t offset = s.offset + by;

	if (s.cfa == AT_REG)
		return s;
	if (s.cfa == AT_SP && offset < WORD)
		return state_nowhere();
	if (s.cfa == IN_MEMORY && offset < 0) /* nothing stays below the stack pointer */
		return state_nowhere();
	if (offset > OFFSET_MAX || offset < -OFFSET_MAX)
		return state_nowhere();
	s.offset = offset;
	return s;
}

/*
 * `s` is the state after a write of the register to rsp + at. If the caller's rbp, or the base of
 * the canonical frame address, is expected in that word, it was in the register before.
 */
static struct state before_writing(uint8_t reg, int64_t at, struct state s)
{
	if (s.cfa == IN_MEMORY && s.offset == at) {
		if (reg == X86_NO_REGISTER || reg == X86_RSP)
			return state_nowhere();
		s.cfa = AT_REG;
		s.reg = reg;
		s.offset = s.addend;
		s.addend = 0;
	} else if (s.cfa == AT_SP && s.fp == FP_IS_SAVED && s.fp_offset == at - s.offset) {
		s.fp = reg == X86_RBP ? FP_IS_SAME : FP_IS_LOST;
	}
	return s;
}

/* After a push the word is at rsp. */
static struct state before_push(const struct step *step, struct state s)
{
	return moved_state(before_writing(step->reg, 0, s), -WORD);
}

static struct state before_pop(const struct step *step, struct state s)
{
	bool to_fp = step->reg == X86_RBP;

	if (s.cfa == AT_REG && s.reg == step->reg)
		return state_nowhere();
	s = moved_state(s, WORD);
	if (to_fp && s.fp == FP_IS_SAME) {
		s.fp = s.cfa == AT_SP ? FP_IS_SAVED : FP_IS_LOST;
		s.fp_offset = -s.offset;
	}
	return s;
}

static struct state before_load(const struct step *step, struct state s)
{
	if (s.cfa == AT_REG && s.reg == step->reg)
		return state_nowhere();
	if (step->reg == X86_RBP && s.fp == FP_IS_SAME) {
		s.fp = s.cfa == AT_SP ? FP_IS_SAVED : FP_IS_LOST;
		s.fp_offset = step->amount - s.offset;
	}
	return s;
}

/*
 * Code that loads the frame pointer through itself keeps a chain of frame pointers: the caller's is
 * where `push rbp` at a function's start puts it (V8's builtins, where one leaves its frame and
 * jumps to another).
 */
static struct state before_load_of_fp(struct state s)
{
	if (s.cfa == AT_REG && s.reg == X86_RBP)
		return state_nowhere();
	if (s.fp == FP_IS_SAME) {
		s.fp = s.cfa == AT_SP ? FP_IS_SAVED : FP_IS_LOST;
		s.fp_offset = -2 * WORD;
	}
	return s;
}

static struct state at_register(struct state s, uint8_t reg, int64_t offset)
{
	if (s.cfa != AT_SP || offset > OFFSET_MAX || offset < -OFFSET_MAX)
		return state_nowhere();
	s.cfa = AT_REG;
	s.reg = reg;
	s.offset = offset;
	return s;
}

static struct state before_leave(struct state s)
{
	s = at_register(s, X86_RBP, (int64_t)s.offset + WORD);
	if (s.cfa == AT_REG && s.fp == FP_IS_SAME) {
		s.fp = FP_IS_SAVED;
		s.fp_offset = -s.offset;
	}
	return s;
}

static struct state before_copy(const struct step *step, struct state s)
{
	if (s.fp == FP_IS_SAME && step->reg == X86_RBP)
		s.fp = FP_IS_LOST;
	if (s.cfa != AT_REG || s.reg != step->reg)
		return s;
	s.cfa = AT_SP;
	s.reg = 0;
	return moved_state(s, step->amount);
}

static struct state before_load_of_sp(const struct step *step, struct state s)
{
	if (s.cfa == AT_REG)
		return s;
	if (s.cfa != AT_SP)
		return state_nowhere();
	s.cfa = IN_MEMORY;
	s.addend = s.offset;
	s.offset = step->amount;
	return s.addend > INT16_MAX ? state_nowhere() : s;
}

/*
 * Any other instruction may write registers. A call is assumed not to: code that restores the stack
 * pointer from a register after a call relies on that.
 */
static struct state before_other(const struct step *step, struct state s)
{
	if (s.cfa == AT_REG && (step->writes >> s.reg & 1))
		return state_nowhere();
	if (s.fp == FP_IS_SAME && (step->writes >> X86_RBP & 1))
		s.fp = FP_IS_LOST;
	return s;
}

static struct state state_before(const struct step *step, struct state s)
{
	if (s.cfa == NOWHERE || s.cfa == DISPUTED)
		return s;
	switch (step->effect) {
	case X86_PUSH:
		return before_push(step, s);
	case X86_POP:
		return before_pop(step, s);
	case X86_ADD_SP:
		return moved_state(s, step->amount);
	case X86_COPY_SP:
		return before_copy(step, s);
	case X86_SET_SP:
		return s.cfa == AT_REG
			       ? s
			       : at_register(s, step->reg, (int64_t)s.offset + step->amount);
	case X86_LOAD_SP:
		return before_load_of_sp(step, s);
	case X86_LOAD:
		return before_load(step, s);
	case X86_LOAD_FP:
		return before_load_of_fp(s);
	case X86_STORE:
		return before_writing(step->reg, step->amount, s);
	case X86_LEAVE:
		return before_leave(s);
	case X86_LOSE_SP:
		return s.cfa == AT_REG ? before_other(step, s) : state_nowhere();
	default:
		return before_other(step, s);
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool same_cfa(const struct state *a, const struct state *b)
{
	return a->cfa == b->cfa && a->offset == b->offset && a->addend == b->addend &&
	       a->reg == b->reg;
}

static bool same_fp(const struct state *a, const struct state *b)
{
	return a->fp == b->fp && (a->fp != FP_IS_SAVED || a->fp_offset == b->fp_offset);
}

static struct state state_of_both(struct state a, struct state b)
{
	if (a.cfa == NOWHERE)
		return b;
	if (b.cfa == NOWHERE)
		return a;
	if (!same_cfa(&a, &b))
		return (struct state){.cfa = DISPUTED};
	if (!same_fp(&a, &b))
		a.fp = FP_IS_LOST;
	return a;
}

static bool is_nop(const struct step *s)
{
	return s->effect == X86_PADDING && s->size == 1;
}

/* What is behind the padding after a call: a step of the same code; or the number of steps. */
static size_t behind_padding(const struct flow *f, size_t i)
{
	const struct step *s = f->steps.data;

	do
		i++;
	while (i < f->steps.count && s[i].effect == X86_PADDING &&
	       s[i].at == s[i - 1].at + s[i - 1].size);
	return i < f->steps.count && s[i].at == s[i - 1].at + s[i - 1].size ? i : f->steps.count;
}

/*
 * Bytes after a call that never returns are padding, or another function. A nop of one byte that
 * does not end where a function can begin is no padding: the compiler puts it behind calls. If it
 * does so behind most calls, an aligned address behind a nop is a guess, see guess_calls().
 */
static bool is_end_of_call(const struct flow *f, size_t i)
{
	const struct step *next = &f->steps.data[i + 1];
	size_t behind;

	if (next->effect == X86_STOP)
		return true;
	if (next->effect != X86_PADDING)
		return false;
	behind = behind_padding(f, i);
	if (!is_nop(next) || behind == f->steps.count || f->steps.data[behind].effect == X86_STOP)
		return true;
	return (f->options->start + f->steps.data[behind].at) % FUNCTION_ALIGNMENT == 0 &&
	       !f->guesses;
}

static bool goes_on(const struct flow *f, size_t i)
{
	const struct step *s = &f->steps.data[i], *next = s + 1;

	if (ends_function(s) || i + 1 == f->steps.count || next->at != s->at + s->size)
		return false;
	return s->effect != X86_CALL || !is_end_of_call(f, i);
}

/* After a jump to an unknown address comes an aligned function, or one of the jump's targets. */
static bool jumps_by_table(const struct flow *f, size_t i)
{
	const struct step *s = &f->steps.data[i], *next = s + 1;

	return s->effect == X86_JUMP_AWAY && i + 1 < f->steps.count &&
	       next->at == s->at + s->size && next->effect != X86_PADDING &&
	       next->effect != X86_STOP && (f->options->start + next->at) % FUNCTION_ALIGNMENT;
}

static struct state state_behind(const struct flow *f, size_t i)
{
	const struct step *s = &f->steps.data[i];
	struct state state = state_nowhere();

	if (s->effect == X86_RETURN)
		return at_sp(WORD);
	if (goes_on(f, i) || jumps_by_table(f, i))
		state = s[1].state;
	if (is_jump(s) && s->amount != OUTSIDE)
		state = state_of_both(state, f->steps.data[s->amount].state);
	return state;
}

/* Has the state before this step changed? */
static bool update_state(struct flow *f, size_t i)
{
	struct step *s = &f->steps.data[i];
	struct state state = state_before(s, state_behind(f, i));

	if (is_jump(s) && s->amount == OUTSIDE)
		state = state_of_both(state, s->state);
	if (same_cfa(&state, &s->state) && same_fp(&state, &s->state))
		return false;
	s->state = state;
	return true;
}

/* After a pass from the end to the start only backward jumps can be unsettled. */
static bool is_settled(struct flow *f, size_t first, size_t end)
{
	for (size_t i = end; i-- > first;) {
		const struct step *s = &f->steps.data[i];

		if (is_jump(s) && s->amount != OUTSIDE && (size_t)s->amount <= i &&
		    update_state(f, i))
			return false;
	}
	return true;
}

/* Charges a pass over these steps; false: the work or the time is used up. */
static bool take_work(const struct flow *f, size_t count)
{
	uint64_t *work = f->options->work, before = *work;

	if (before < count) {
		*work = 0;
		return false;
	}
	*work -= count;
	if (before / CLOCK_STEP == *work / CLOCK_STEP || !f->options->cpu_end ||
	    thread_cpu_ns() <= f->options->cpu_end)
		return true;
	*work = 0;
	return false;
}

/* Where a function probably begins that contains the step before `end`. */
static size_t start_of_function(const struct flow *f, size_t end)
{
	const struct step *s = f->steps.data;
	size_t i = end - 1;

	while (i && !(ends_function(&s[i - 1]) &&
		      (f->options->start + s[i].at) % FUNCTION_ALIGNMENT == 0))
		i--;
	return i;
}

/* False: the states have not settled. */
static bool settle_steps(struct flow *f, size_t first, size_t end)
{
	for (int pass = 0; pass < PASSES_MAX && take_work(f, end - first); pass++) {
		for (size_t i = end; i-- > first;)
			update_state(f, i);
		if (is_settled(f, first, end))
			return true;
	}
	return false;
}

/*
 * One function after the other, because most jumps are within one. Then again those that jump to a
 * function before them.
 */
static bool settle_states(struct flow *f)
{
	bool changed = true;
	size_t first;

	for (int pass = 0; pass < PASSES_MAX && changed; pass++) {
		changed = false;
		for (size_t end = f->steps.count; end; end = first) {
			first = start_of_function(f, end);
			if (pass && is_settled(f, first, end))
				continue;
			changed = true;
			if (!settle_steps(f, first, end))
				return false;
		}
	}
	return !changed;
}

static bool has_nops_behind_calls(const struct flow *f)
{
	size_t calls = 0, nops = 0;

	for (size_t i = 0; i + 1 < f->steps.count; i++) {
		const struct step *s = &f->steps.data[i];

		calls += s->effect == X86_CALL;
		nops += s->effect == X86_CALL && is_nop(&s[1]);
	}
	return nops && nops >= calls / 8 * 7;
}

static void guess_steps(struct flow *f, size_t first, size_t end)
{
	bool changed = true;

	for (int pass = 0; changed && pass < PASSES_MAX && take_work(f, end - first); pass++) {
		changed = false;
		for (size_t i = end; i-- > first;)
			if (f->steps.data[i].state.cfa == NOWHERE)
				changed |= update_state(f, i);
	}
}

/*
 * After a call and a nop, code at an aligned address is mostly the rest of the function. It may
 * be the next one, if the call never returns: so code that has rules already keeps them.
 */
static void guess_calls(struct flow *f)
{
	size_t first;

	f->guesses = has_nops_behind_calls(f);
	for (size_t end = f->steps.count; f->guesses && end; end = first) {
		first = start_of_function(f, end);
		guess_steps(f, first, end);
	}
}

static bool may_be_anchored(const struct state *s)
{
	return s->cfa == AT_REG || s->cfa == IN_MEMORY;
}

/* A function that switches stacks gets the other stack as an argument. */
static bool needs_anchor(const struct state *s)
{
	return s->cfa == AT_REG && (ARGUMENTS >> s->reg & 1) && !s->anchored;
}

static void anchor_state(struct flow *f, size_t i, bool *changed)
{
	struct state *s = &f->steps.data[i].state;

	if (may_be_anchored(s) && !s->anchored)
		s->anchored = *changed = true;
}

/* A value that becomes the stack pointer must come from it, else this is another stack. */
static void find_anchors(struct flow *f)
{
	bool changed = false;

	for (size_t i = 0; i < f->steps.count && !changed; i++)
		changed = needs_anchor(&f->steps.data[i].state);
	for (int pass = 0; pass < PASSES_MAX && changed && take_work(f, f->steps.count); pass++) {
		changed = false;
		for (size_t i = 0; i < f->steps.count; i++) {
			const struct step *s = &f->steps.data[i];

			if (!s->state.anchored &&
			    (s->effect != X86_COPY_SP || s->state.cfa != AT_SP))
				continue;
			if (goes_on(f, i))
				anchor_state(f, i + 1, &changed);
			if (is_jump(s) && s->amount != OUTSIDE)
				anchor_state(f, s->amount, &changed);
		}
	}
}

/* ---- rules ----------------------------------------------------------------------------------- */

static uint8_t dwarf_number(uint8_t reg)
{
	static const uint8_t NUMBERS[] = {0, 2, 1, 3, UNWIND_X86_RSP, UNWIND_X86_RBP, 4, 5};

	return reg < 8 ? NUMBERS[reg] : reg;
}

/*
 * Compilers that emit no CFI (V8's builtins) keep frame pointers: as many functions set them up as
 * there are returns. They are followed where no rule was found. Hand-written code has next to none.
 */
static bool keeps_frame_pointers(const struct flow *f)
{
	size_t kept = 0, returns = 0;

	for (size_t i = 0; i < f->steps.count; i++) {
		const struct step *s = &f->steps.data[i];

		returns += s->effect == X86_RETURN;
		kept += s->effect == X86_COPY_SP && s->reg == X86_RBP && i &&
			s[-1].effect == X86_PUSH && s[-1].reg == X86_RBP;
	}
	return kept && kept >= returns / 2;
}

static struct unwind_rule rule_of(const struct flow *f, const struct state *s)
{
	struct unwind_rule rule = {
		.cfa_offset = s->offset,
		.cfa_register = UNWIND_X86_RSP,
		.ra = UNWIND_RA_INFERRED,
		.ra_offset = -WORD,
	};

	if (s->cfa == NOWHERE || s->cfa == DISPUTED || needs_anchor(s))
		return f->unknown;
	rule.cfa = UNWIND_CFA_SP;
	if (s->cfa == AT_REG) {
		rule.cfa = s->reg == X86_RBP ? UNWIND_CFA_FP : UNWIND_CFA_REGISTER;
		rule.cfa_register = dwarf_number(s->reg);
	} else if (s->cfa == IN_MEMORY) {
		rule.cfa = UNWIND_CFA_DEREF;
		rule.cfa_addend = s->addend;
	}
	rule.fp = s->fp == FP_IS_SAME	 ? UNWIND_FP_SAME
		  : s->fp == FP_IS_SAVED ? UNWIND_FP_AT_CFA
					 : UNWIND_FP_UNKNOWN;
	rule.fp_offset = s->fp == FP_IS_SAVED ? s->fp_offset : 0;
	return rule;
}

static bool same_rule(const struct state *a, const struct state *b)
{
	return same_cfa(a, b) && same_fp(a, b) && a->anchored == b->anchored;
}

static int write_rows(const struct flow *f)
{
	const struct code_flow *o = f->options;
	uint64_t end = f->begin;
	int err = 0;

	for (size_t i = 0; i < f->steps.count && !err; i++) {
		const struct step *s = &f->steps.data[i];
		bool follows = i && s->at == end;

		if (!follows || !same_rule(&s->state, &s[-1].state)) {
			struct unwind_rule rule = rule_of(f, &s->state);

			if (s->at != end)
				err = o->row(o->context, o->start + end, &f->unknown);
			if (!err)
				err = o->row(o->context, o->start + s->at, &rule);
		}
		end = s->at + s->size;
	}
	return err || end == f->end ? err : o->row(o->context, o->start + end, &f->unknown);
}

static bool is_padding(const struct flow *f)
{
	return !any_of(f->steps.data, f->steps.count, s,
		       s->effect != X86_PADDING && s->effect != X86_STOP);
}

static int begin_without_rules(const struct flow *f)
{
	const struct code_flow *o = f->options;

	return o->row(o->context, o->start + f->begin, &f->unknown);
}

static int leave_piece(const struct flow *f)
{
	*f->options->left += f->end - f->begin;
	return begin_without_rules(f);
}

/* Frame pointers will do, and there is more of such code than is worth the time. */
static bool is_plain(const struct flow *f)
{
	bool *plain = f->options->is_plain;

	if (plain && f->unknown.ra == UNWIND_RA_NONE && f->steps.count >= PLAIN_STEPS)
		*plain = true;
	return plain && *plain;
}

static int follow_piece(struct flow *f)
{
	int err = read_steps(f);

	if (err)
		return err;
	find_end(f);
	if (is_padding(f))
		return f->begin ? f->options->row(f->options->context, f->options->start + f->begin,
						  &f->unknown)
				: 0;
	f->unknown.ra = keeps_frame_pointers(f) ? UNWIND_RA_NONE : UNWIND_RA_INFERRED;
	if (is_plain(f))
		return begin_without_rules(f);
	find_targets(f);
	f->guesses = false;
	if (!settle_states(f))
		return leave_piece(f);
	guess_calls(f);
	find_anchors(f);
	return write_rows(f);
}

int code_flow__follow(const struct code_flow *options)
{
	struct flow f = {.options = options};
	int err = 0;

	for (; f.begin < options->size && !err; f.begin = f.end) {
		err = follow_piece(&f);
		if (options->is_plain && *options->is_plain)
			break;
	}
	vec_free(&f.steps);
	return err;
}
