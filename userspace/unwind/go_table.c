/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Go's table of stack depths (pcsp) is exact at each instruction: the return address lies `depth`
 * bytes above the stack pointer. It lacks three things, which come from the code:
 *
 *   - The place of the caller's frame pointer. A function with a frame saves it right below its
 *     return address: "push %rbp; mov %rsp,%rbp" since Go 1.21, before that "sub $N,%rsp; mov
 *     %rbp,N-8(%rsp); lea N-8(%rsp),%rbp". Assembly without a frame does not save it.
 *   - The first instruction that sets the stack pointer, in functions that do (the table has a flag
 *     for them). After it the depth is invalid. If the frame is set up by then, its frame pointer
 *     leads to the return address, on any stack (UNWIND_CFA_SWITCH). Up to Go 1.20 systemstack and
 *     asmcgocall have no frame; their code has the registers needed to go back.
 *   - The code that a signal handler returns to, known by its two instructions.
 *
 * Stacks end where Go's own traceback ends: in goexit, mstart and rt0_go, which never return, and
 * in mcall once it is on the scheduler's stack, because its goroutine may already run elsewhere.
 * morestack's goroutine is followed while it belongs to this thread.
 *
 * Sources: Go 1.18 to 1.27, runtime/asm_amd64.s, sys_linux_amd64.s, traceback.go,
 * cmd/internal/obj/x86/obj6.go.
 */
#include "unwind/go_table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "elf/gopclntab.h"
#include "elf/gopclntab_open.h"
#include "unwind/build_budget.h"
#include "unwind/undescribed.h"

#define WINDOW	       65536
#define PROLOGUE_BACK  7    /* sub $N,%rsp */
#define PROLOGUE_AHEAD 8    /* mov %rbp,N-8(%rsp) */
#define SPECIAL_MAX    4096 /* bytes of a function that sets the stack pointer; at most 500 seen */
#define DEPTH_MAX      (INT32_MAX - 15) /* reflection has frames of 1 GB and a word */
#define PADDING_MAX    31
#define RETURN_ADDRESS 8
#define STRETCH_SIZE   2 /* a row takes two bytes, and most stretches become rows */
#define FUNCTION_STEPS 16
#define SPECIAL_STEPS  1024 /* for the searches of its bytes */

#define RET	       0xc3
#define PUSH_RBP       0x55
#define INT3	       0xcc
#define REX_W	       0x48
#define REX_W_R8       0x49 /* … with a base of r8 to r15 */
#define REX_W_R	       0x4c /* … with a register of r8 to r15 */
#define LOAD	       0x8b
#define STORE	       0x89
#define LEA	       0x8d
#define IMM8	       0x83
#define IMM32	       0x81
#define ADD_RSP	       0xc4
#define AND_RSP	       0xe4

enum kind {
	ORDINARY,
	ROOT,	     /* has no caller */
	INTERRUPTED, /* injected by a signal: seems to be called where the signal came */
	LEFT,	     /* has no caller after it has set the stack pointer */
	GROWING,     /* morestack: as LEFT, but the interrupted function may be known */
	SWITCH,	     /* may switch to another stack */
};

/* Where the runtime saves a goroutine's registers, from the code of systemstack. */
struct layout {
	bool known;
	int32_t tls;	    /* of g, from the thread's base … */
	bool tls_in_memory; /* … or the address of a word with that offset */
	int32_t curg;	    /* m.curg */
	int32_t saved_bp;   /* g.sched.bp */
};

struct walker {
	const struct elf_file *file;
	struct build_budget *budget;
	struct layout layout;
	cfi_row_fn row;
	void *context;
	uint64_t left;	   /* stretches still allowed */
	uint64_t last_end; /* of the previous function; 0: none */
	uint64_t reached;  /* end of the described part of the current function */
	/* bytes at `window_start` */
	uint64_t window_start;
	size_t window_size;
	unsigned char *window;
	/* the current function */
	struct go_function function;
	enum kind kind;
	bool has_frame, looked_for_frame;
	uint64_t saved;	      /* from here on the caller's frame pointer is saved … */
	int32_t saved_depth;  /* … while the stack is as deep as this */
	uint64_t frame_ready; /* from here on %rbp is the function's own */
	uint64_t sets_sp;     /* the first instruction that sets the stack pointer */
	uint64_t stays;	      /* the code from here on has not set it; UINT64_MAX: none */
	bool is_asmcgocall;
	int32_t depth_slot;	/* of asmcgocall, see slot_of_depth() */
	uint64_t special_start; /* address of `special`, a function that sets the stack pointer */
	size_t special_size;
	unsigned char special[SPECIAL_MAX];
};

static const struct unwind_rule NOT_FOLLOWED = {.cfa = UNWIND_CFA_UNKNOWN};
static const struct unwind_rule NO_CALLER = {.cfa = UNWIND_CFA_ROOT};
static const struct unwind_rule SIGNAL = {.cfa = UNWIND_CFA_SIGNAL};

static const struct unwind_rule IN_R12 = {
	.cfa = UNWIND_CFA_SP,
	.cfa_register = UNWIND_X86_RSP,
	.ra = UNWIND_RA_REGISTER,
	.ra_offset = 12,
};

/* ---- code ------------------------------------------------------------------------------------ */

/* `size` bytes of code at an address, or NULL. Valid until the next call. */
static const unsigned char *code_at(struct walker *w, uint64_t address, size_t size)
{
	ssize_t got;

	if (address >= w->window_start && address - w->window_start <= w->window_size &&
	    w->window_size - (address - w->window_start) >= size)
		return w->window + (address - w->window_start);
	got = elf_file__read_at(w->file, address, w->window, WINDOW);
	w->window_start = address;
	w->window_size = got < 0 ? 0 : got;
	return w->window_size >= size ? w->window : NULL;
}

static int32_t load_s32(const unsigned char *bytes)
{
	int32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* rawVforkSyscall pops its return address to %r12: the child could overwrite it on the stack. */
static bool is_popped(struct walker *w, uint64_t address)
{
	const unsigned char *code = address - w->function.start >= 2 ? code_at(w, address - 2, 2)
								     : NULL;

	return code && code[0] == 0x41 && code[1] == 0x5c;
}

/* The size of a "mov %rbp,OFFSET(%rsp)" (with LOAD: the way back); 0: another instruction. */
static size_t moves_rbp(const unsigned char *code, size_t size, unsigned char opcode,
			int32_t *offset)
{
	if (size < 5 || code[0] != REX_W || code[1] != opcode || code[3] != 0x24)
		return 0;
	if (code[2] == 0x2c) {
		*offset = 0;
		return 4;
	}
	if (code[2] == 0x6c) {
		*offset = (signed char)code[4];
		return 5;
	}
	if (size < 8 || code[2] != 0xac)
		return 0;
	*offset = load_s32(code + 4);
	return 8;
}

/*
 * Finds out how the stack became `depth` deep at `address`, where it was empty before. Only the two
 * kinds of frames above save the frame pointer in a known place.
 */
static void look_for_frame(struct walker *w, uint64_t address, int32_t depth)
{
	const size_t back = PROLOGUE_BACK, size = PROLOGUE_BACK + PROLOGUE_AHEAD;
	const unsigned char *code = NULL;
	size_t length;
	int32_t offset;

	w->looked_for_frame = true;
	if (address - w->function.start >= 1 && address >= back)
		code = code_at(w, address - back, size);
	if (!code)
		return;
	w->saved = address;
	w->saved_depth = depth;
	if (depth == RETURN_ADDRESS && code[back - 1] == PUSH_RBP) {
		w->has_frame = true;
		w->frame_ready = address + 3; /* mov %rsp,%rbp */
		return;
	}
	length = moves_rbp(code + back, size - back, STORE, &offset);
	if (length && offset == depth - RETURN_ADDRESS) {
		w->has_frame = true;
		w->saved = address + length;
		w->frame_ready = w->saved + length; /* lea N-8(%rsp),%rbp */
	}
}

/* Does the code start with an instruction that sets the stack pointer, other than by a constant? */
static bool sets_stack_pointer(const unsigned char *code)
{
	unsigned char rex = code[0], opcode = code[1], modrm = code[2];

	if ((rex == REX_W || rex == REX_W_R8) && opcode == LOAD)
		return (modrm & 0x38) == 0x20;
	if ((rex == REX_W || rex == REX_W_R) && opcode == STORE)
		return (modrm & 0xc7) == 0xc4;
	return rex == REX_W && (opcode == IMM8 || opcode == IMM32) && modrm == AND_RSP;
}

/* Reads the current function into w->special. False: too long, or unreadable. */
static bool load_special(struct walker *w)
{
	const struct go_function *f = &w->function;
	uint64_t size = f->end - f->start;

	w->special_start = f->start;
	w->special_size = 0;
	if (size > sizeof(w->special) ||
	    elf_file__read_at(w->file, f->start, w->special, size) != (ssize_t)size)
		return false;
	w->special_size = size;
	return true;
}

/*
 * Finds the first bytes in the function that look like an instruction that sets the stack pointer.
 * Code is not decoded. A match inside of another instruction loses rules, but makes none wrong.
 */
static void look_for_switch(struct walker *w)
{
	w->sets_sp = w->function.start;
	w->stays = UINT64_MAX;
	if (!load_special(w))
		return;
	for (size_t at = 0; at + 3 <= w->special_size; at++) {
		if (sets_stack_pointer(w->special + at)) {
			w->sets_sp = w->function.start + at;
			return;
		}
	}
}

/* The place after the first match in w->special, with `more` bytes left; NULL: none. */
static const unsigned char *behind_bytes(const struct walker *w, const void *bytes, size_t size,
					 size_t more)
{
	const unsigned char *found = memmem(w->special, w->special_size, bytes, size);

	if (!found || (size_t)(w->special + w->special_size - found) < size + more)
		return NULL;
	return found + size;
}

#define BEHIND(w, more, ...)                                                                       \
	({                                                                                         \
		static const unsigned char bytes_[] = {__VA_ARGS__};                               \
		behind_bytes(w, bytes_, sizeof(bytes_), more);                                     \
	})

/* How g is loaded, in one of three ways: program, position-independent program, library. */
static bool look_for_tls(const struct walker *w, struct layout *l)
{
	/* mov %fs:TLS,%rax or %rcx */
	const unsigned char *at = BEHIND(w, 5, 0x64, REX_W, LOAD, 0x04, 0x25);

	if (!at)
		at = BEHIND(w, 5, 0x64, REX_W, LOAD, 0x0c, 0x25);
	if (at) {
		l->tls = load_s32(at);
		return true;
	}
	at = BEHIND(w, 4, 0x64, REX_W, LOAD, 0x01); /* mov %fs:(%rcx),%rax */
	if (!at || at - w->special < 11)
		return false;
	l->tls = load_s32(at - 8);
	at -= 11;
	if (at[0] == REX_W && at[1] == 0xc7 && at[2] == 0xc1) /* mov $TLS,%rcx */
		return true;
	if (at[0] != REX_W || at[1] != LOAD || at[2] != 0x0d) /* mov WORD(%rip),%rcx */
		return false;
	l->tls_in_memory = true;
	return !__builtin_add_overflow(w->special_start + (at + 7 - w->special), l->tls, &l->tls);
}

/* systemstack loads g, g.m, m.curg, g0.sched.sp, and since Go 1.21 curg.sched.bp. */
static struct layout layout_of(const struct walker *w)
{
	const unsigned char *curg = BEHIND(w, 4, REX_W, 0x3b, 0x83), /* cmp CURG(%rbx),%rax */
		*bp = BEHIND(w, 1, REX_W, LOAD, 0x68);		     /* mov BP(%rax),%rbp */
	struct layout l = {};

	if (!look_for_tls(w, &l) || !curg ||
	    !BEHIND(w, 0, REX_W, LOAD, 0x58, UNWIND_GO_THREAD) || /* mov 0x30(%rax),%rbx */
	    (!BEHIND(w, 0, REX_W, LOAD, 0x62, UNWIND_GO_SAVED) && /* mov 0x38(%rdx),%rsp */
	     !BEHIND(w, 0, REX_W, LOAD, 0x5a, UNWIND_GO_SAVED)))  /* … %rbx */
		return l;
	l.curg = load_s32(curg);
	l.saved_bp = bp ? *bp : UNWIND_GO_SAVED_BP + 8;
	l.known = l.curg > 0 && l.curg <= INT16_MAX;
	return l;
}

/*
 * How asmcgocall goes back, up to Go 1.20: "mov N+8(%rsp),%rdi; mov 8(%rdi),%rsi; sub
 * N(%rsp),%rsi". Returns N; -1: in another way.
 */
static int32_t slot_of_depth(const struct walker *w)
{
	const unsigned char *top = BEHIND(w, 5, REX_W, LOAD, 0x77, UNWIND_GO_STACK_TOP);

	if (!top || top - 9 < w->special || memcmp(top - 9, "\x48\x8b\x7c\x24", 4) != 0 ||
	    memcmp(top, "\x48\x2b\x74\x24", 4) != 0 || top[4] > 0x70 || top[-5] != top[4] + 8)
		return -1;
	return top[4];
}

/*
 * "mov N-8(%rsp),%rbp; add $N,%rsp": before the add, the frame pointer is the caller's again. The
 * address of the add, if it ends at `end`; UINT64_MAX: the frame is left in another way.
 */
static uint64_t frame_left(const struct walker *w, uint64_t end)
{
	size_t at = end - w->special_start, length;
	const unsigned char *code = w->special;
	int32_t offset;

	if (end <= w->special_start || at > w->special_size)
		return UINT64_MAX;
	if (at >= 4 && code[at - 4] == REX_W && code[at - 3] == IMM8 && code[at - 2] == ADD_RSP)
		length = 4;
	else if (at >= 7 && code[at - 7] == REX_W && code[at - 6] == IMM32 &&
		 code[at - 5] == ADD_RSP)
		length = 7;
	else
		return UINT64_MAX;
	at -= length;
	for (size_t back = 4; back <= 8 && back <= at; back++) {
		if (moves_rbp(code + at - back, back + length, LOAD, &offset) == back)
			return end - length;
	}
	return UINT64_MAX;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static struct unwind_rule rule_at(const struct walker *w, uint64_t address, int32_t depth)
{
	struct unwind_rule rule = {
		.cfa = UNWIND_CFA_SP,
		.cfa_register = UNWIND_X86_RSP,
		.cfa_offset = depth + RETURN_ADDRESS,
		.ra = w->kind == INTERRUPTED ? UNWIND_RA_INTERRUPTED : UNWIND_RA_AT_CFA,
		.ra_offset = -RETURN_ADDRESS,
	};

	if (w->has_frame && address >= w->saved && depth >= w->saved_depth) {
		rule.fp = UNWIND_FP_AT_CFA;
		rule.fp_offset = -2 * RETURN_ADDRESS;
	}
	return rule;
}

/* For code on another stack. The rule has the function's address: the caller found must call it. */
static struct unwind_rule rule_of_switch(const struct walker *w)
{
	struct unwind_rule rule = {.cfa_offset = (int32_t)w->function.start};
	int32_t slot = w->depth_slot;

	if (w->kind == LEFT)
		return NO_CALLER;
	if (w->function.start > INT32_MAX)
		return NOT_FOLLOWED;
	if (w->kind == GROWING && !w->layout.known)
		return NO_CALLER;
	if (w->kind == SWITCH && w->has_frame && w->frame_ready <= w->sets_sp) {
		rule.cfa = UNWIND_CFA_SWITCH;
		return rule;
	}
	if (w->is_asmcgocall && !w->has_frame) {
		rule.cfa = slot < 0 ? UNWIND_CFA_UNKNOWN : UNWIND_CFA_GO_DEPTH;
		rule.cfa_offset = slot < 0 ? 0 : rule.cfa_offset;
		rule.fp_offset = slot < 0 ? 0 : slot;
		return rule;
	}
	if (!w->layout.known || w->has_frame || (w->kind != GROWING && w->stays == UINT64_MAX))
		return NOT_FOLLOWED;
	rule.cfa = w->kind == GROWING ? UNWIND_CFA_GO_INTERRUPTED : UNWIND_CFA_GO_CALLER;
	rule.cfa_register = w->layout.tls_in_memory;
	rule.fp_offset = w->layout.tls;
	rule.ra_offset = (int16_t)w->layout.curg;
	rule.cfa_addend = (int16_t)w->layout.saved_bp;
	return rule;
}

/* Adds the part of [start, end) before `limit`, with this depth. */
static int add_exact(struct walker *w, uint64_t start, uint64_t end, uint64_t limit, int32_t depth)
{
	struct unwind_rule rule;
	int err;

	if (start >= limit)
		return 0;
	rule = rule_at(w, start, depth);
	err = w->row(w->context, start, &rule);
	if (err || !w->has_frame || w->saved <= start || w->saved >= end || w->saved >= limit)
		return err;
	rule = rule_at(w, w->saved, depth);
	return w->row(w->context, w->saved, &rule);
}

/* Adds a stretch after the instruction that sets the stack pointer. */
static int add_switched(struct walker *w, uint64_t start, uint64_t end, int32_t depth)
{
	struct unwind_rule switched = rule_of_switch(w), exact = rule_at(w, start, depth);
	uint64_t left = frame_left(w, end);
	int err;

	if (w->kind == SWITCH && w->has_frame && depth < w->saved_depth)
		return w->row(w->context, start, &exact); /* it is back, and has left its frame */
	err = w->row(w->context, start, &switched);
	if (!err && left > start && left < end && w->kind == SWITCH)
		err = w->row(w->context, left, &exact);
	return err;
}

/* A gap in the table does not belong to the function before it, unless it is mere padding. */
static int describe_to(struct walker *w, uint64_t address)
{
	if (w->reached >= address ||
	    (w->reached > w->function.start && address - w->reached <= PADDING_MAX))
		return 0;
	return w->row(w->context, w->reached, &NOT_FOLLOWED);
}

/*
 * systemstack without a frame: the code after its return is for a caller on the right stack
 * already. There the runtime has saved something else, or nothing.
 */
static void look_for_end_of_switch(struct walker *w)
{
	/* movq $0,0x38(%rax); ret */
	const unsigned char *end = BEHIND(w, 0, REX_W, 0xc7, 0x40, UNWIND_GO_SAVED, 0, 0, 0, 0,
					  RET);

	if (end && !strcmp(w->function.name, "runtime.systemstack"))
		w->stays = w->special_start + (end - w->special);
}

static int add_stretch(void *context, uint64_t start, uint64_t end, int32_t depth)
{
	struct walker *w = context;
	uint64_t switched = w->kind >= LEFT ? w->sets_sp + 1 : UINT64_MAX;
	uint64_t stays = w->kind >= LEFT ? w->stays : UINT64_MAX;
	int err;

	if (!w->left--)
		return build_budget__refuse(w->budget, TABLE_REFUSAL_ROWS);
	err = build_budget__step(w->budget, 1) ?: describe_to(w, start);
	if (err)
		return err;
	w->reached = end;
	if (w->kind == ROOT && (!depth || w->function.writes_sp))
		return w->row(w->context, start, &NO_CALLER);
	if (depth == -RETURN_ADDRESS && is_popped(w, start))
		return w->row(w->context, start, &IN_R12);
	if (depth < 0 || depth > DEPTH_MAX || depth % 8)
		return w->row(w->context, start, &NOT_FOLLOWED);
	if (depth && !w->looked_for_frame)
		look_for_frame(w, start, depth);
	err = add_exact(w, start, end, switched, depth);
	if (!err && end > switched && start < stays)
		err = add_switched(w, max_u64(start, switched), end, depth);
	if (!err && end > stays)
		err = add_exact(w, max_u64(start, stays), end, UINT64_MAX, depth);
	return err;
}

/* ---- functions ------------------------------------------------------------------------------- */

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++) {
		if (!strcmp(name, *names))
			return true;
	}
	return false;
}

static enum kind kind_of(const struct walker *w)
{
	static const char *const INJECTED[] = {"runtime.sigpanic", "runtime.sigpanic0",
					       "runtime.asyncPreempt", NULL};
	/* clone: runs on the new thread's stack */
	static const char *const LEAVES[] = {"runtime.mcall", "runtime.clone", NULL};
	const char *name = w->function.name;

	/* the entry jumps to rt0_go */
	if ((w->function.is_top && strcmp(name, "runtime.sigtramp") != 0) ||
	    w->function.start == elf_file__entry(w->file) || !strcmp(name, "_rt0_amd64"))
		return ROOT;
	if (is_one_of(name, INJECTED))
		return INTERRUPTED;
	if (!w->function.writes_sp)
		return ORDINARY;
	if (!strcmp(name, "runtime.morestack"))
		return GROWING;
	return is_one_of(name, LEAVES) ? LEFT : SWITCH;
}

static bool is_signal_return(struct walker *w)
{
	const unsigned char *code = code_at(w, w->function.start, sizeof(SIGRETURN));

	return code && w->function.end - w->function.start >= sizeof(SIGRETURN) &&
	       (!memcmp(code, SIGRETURN, sizeof(SIGRETURN)) ||
		!memcmp(code, SIGRETURN_32, sizeof(SIGRETURN_32)));
}

/* A handler returns to its first byte; return addresses are looked up a byte before, in padding. */
static int add_signal_return(struct walker *w)
{
	uint64_t start = w->function.start;
	const unsigned char *before = code_at(w, start - 1, 1);

	return w->row(w->context, before && *before == INT3 ? start - 1 : start, &SIGNAL);
}

static int add_function(struct walker *w, const struct gopclntab *table, size_t number)
{
	int err = build_budget__step(w->budget,
				     w->function.writes_sp ? SPECIAL_STEPS : FUNCTION_STEPS);

	if (!err && w->last_end && w->function.start > w->last_end)
		err = w->row(w->context, w->last_end, UNWIND_NO_RULE);
	w->last_end = w->function.end;
	if (err)
		return err;
	if (is_signal_return(w))
		return add_signal_return(w);
	w->kind = kind_of(w);
	w->reached = w->function.start;
	w->has_frame = w->looked_for_frame = false;
	w->is_asmcgocall = w->kind == SWITCH && !strcmp(w->function.name, "runtime.asmcgocall");
	if (w->kind >= LEFT)
		look_for_switch(w);
	if (w->kind == SWITCH)
		look_for_end_of_switch(w);
	if (w->is_asmcgocall)
		w->depth_slot = slot_of_depth(w); /* once: hostile tables have many stretches */
	err = gopclntab__each_depth(table, number, add_stretch, w);
	return !err || err == -EBADMSG ? describe_to(w, w->function.end) : err;
}

static void look_for_layout(struct walker *w, const struct gopclntab *table)
{
	size_t count = gopclntab__count(table);

	for (size_t i = 0; i < count; i++) {
		if (!gopclntab__function(table, i, &w->function) && w->function.writes_sp &&
		    !strcmp(w->function.name, "runtime.systemstack") && load_special(w)) {
			w->layout = layout_of(w);
			return;
		}
	}
}

static int add_functions(struct walker *w, const struct gopclntab *table, struct cfi_counts *counts)
{
	size_t count = gopclntab__count(table);
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		if (!w->left--)
			return build_budget__refuse(w->budget, TABLE_REFUSAL_ROWS);
		if (gopclntab__function(table, i, &w->function) ||
		    w->function.start >= w->function.end || w->function.start < w->last_end) {
			counts->damaged++;
			continue;
		}
		counts->functions++;
		err = add_function(w, table, i);
	}
	return err || !w->last_end ? err : w->row(w->context, w->last_end, UNWIND_NO_RULE);
}

static int walk_table(struct elf_file *file, const struct gopclntab *table, uint64_t limit,
		      struct build_budget *budget, cfi_row_fn row, void *context,
		      struct cfi_counts *counts)
{
	_cleanup_free_ struct walker *w = calloc(1, sizeof(*w));
	_cleanup_free_ unsigned char *window = malloc(WINDOW);

	if (!w || !window)
		return -ENOMEM;
	w->file = file;
	w->budget = budget;
	w->row = row;
	w->context = context;
	w->window = window;
	w->left = limit / STRETCH_SIZE;
	look_for_layout(w, table);
	return add_functions(w, table, counts);
}

int go_table__each_row(struct elf_file *file, uint64_t limit, struct build_budget *budget,
		       cfi_row_fn row, void *context, struct cfi_counts *counts)
{
	uint64_t size_max = budget ? budget->limits.go : UINT64_MAX;
	struct gopclntab *table;
	int err = gopclntab__open_within(file, size_max, &table);

	*counts = (struct cfi_counts){};
	if (err == -E2BIG)
		return build_budget__refuse(budget, TABLE_REFUSAL_INPUT);
	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	err = build_budget__take(budget, gopclntab__size(table));
	if (!err) {
		err = walk_table(file, table, limit, budget, row, context, counts);
		build_budget__give_back(budget, gopclntab__size(table));
	}
	gopclntab__free(table);
	return err;
}
