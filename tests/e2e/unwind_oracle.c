/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_oracle PID STOPS SEED: our walk against libdwfl's.
 *
 * Stops a random thread of the process (by ptrace) at a random time, so many times, and walks its
 * stack by both. Prints "differs …" with both stacks for the first ones that are not equal, and at the end
 * "total NAME COUNT": stops; equal_root (the same frames, both to the root); prologue (both to the root, and ours
 * has the innermost caller, which libdwfl left out); both_short; longer (ours reaches the root,
 * libdwfl does not); different (all else).
 */
#include "unwind_target.h"

#define PAUSE_MAX 4000 /* us between stops */
#define SHOWN_MAX 5

static uint64_t our_frames_by[16];

/* ---- both walks ------------------------------------------------------------------------------ */

struct stack {
	uint64_t frames[FRAMES_MAX];
	size_t count;
	bool root, by_prologue;
	enum stack_end end;
};

static void walk_ours(const struct user_regs_struct *r, struct stack *stack)
{
	stack->end = walk(r, stack->frames, &stack->count);
	stack->root = stack->end == STACK_END_ROOT;
	stack->by_prologue = stack->count > 1 && (frame_kind(stack->frames[1]) == FRAME_LEAF_PEEK ||
						  frame_kind(stack->frames[1]) == FRAME_INFERRED);
	for (size_t i = 0; i < stack->count; i++) {
		our_frames_by[frame_kind(stack->frames[i]) & 15]++;
		stack->frames[i] = frame_address(stack->frames[i]);
	}
}

static int keep_frame(Dwfl_Frame *frame, void *context)
{
	struct stack *stack = context;
	Dwarf_Addr pc;

	if (stack->count == FRAMES_MAX || !dwfl_frame_pc(frame, &pc, NULL))
		return DWARF_CB_ABORT;
	stack->frames[stack->count++] = pc;
	return DWARF_CB_OK;
}

static void walk_libdwfls(Dwfl *dwfl, pid_t tid, struct stack *stack)
{
	stack->count = 0;
	stack->root = !dwfl_getthread_frames(dwfl, tid, keep_frame, stack);
	/* it goes on to a frame at address 0 where a return address is 0 */
	if (stack->count > 1 && !stack->frames[stack->count - 1]) {
		stack->count--;
		stack->root = true;
	}
}

/* ---- stops ----------------------------------------------------------------------------------- */

static uint64_t stops, equal_root, prologue, both_short, no_rule, longer, different, failed;

static void show(const char *what, const struct stack *a, const struct stack *b)
{
	static int shown;

	if (shown++ >= SHOWN_MAX)
		return;
	printf("%s: ours %zu frames, end %d; libdwfl %zu, root %d: %s\n", what, a->count, a->end,
	       b->count, b->root, b->root ? "" : dwfl_errmsg(-1));
	for (size_t i = 0; i < a->count || i < b->count; i++) {
		uint64_t x = i < a->count ? a->frames[i] : 0, y = i < b->count ? b->frames[i] : 0;
		const struct unwind_range *range = range_of(y);

		printf("  %2zu %#18" PRIx64 " %#18" PRIx64 " %#" PRIx64 " %s\n", i, x, y,
		       range ? y - range->bias : 0, x == y ? "" : "<--");
	}
}

/* Where the innermost caller was found by a prologue: libdwfl leaves it out. */
static bool equal_but_for_prologue(const struct stack *a, const struct stack *b)
{
	return a->by_prologue && a->root && b->root && a->count == b->count + 1 &&
	       a->frames[0] == b->frames[0] &&
	       !memcmp(a->frames + 2, b->frames + 1, (b->count - 1) * sizeof(*b->frames));
}

/*
 * Where both stop short of the root, libdwfl may have gone on to what is no code. A frame that is
 * found from a register other than the stack's and the frame's, and is not the innermost one, has
 * no rule: of glibc, the one that binds a function at its first call.
 */
static void compare(const struct stack *a, const struct stack *b)
{
	size_t common = a->count < b->count ? a->count : b->count;
	bool equal = !memcmp(a->frames, b->frames, common * sizeof(*a->frames));

	stops++;
	if (equal && a->count == b->count && a->root && b->root) {
		equal_root++;
	} else if (equal_but_for_prologue(a, b)) {
		prologue++;
	} else if (equal && !a->root && !b->root) {
		both_short++;
		show("short", a, b);
	} else if (equal && a->end == STACK_END_NO_RULE && a->count < b->count) {
		no_rule++;
		show("no rule", a, b);
	} else if (equal && a->root && !b->root && a->count >= b->count) {
		longer++;
		show("longer", a, b);
	} else {
		different++;
		show("differs", a, b);
	}
}

static bool one_stop(Dwfl *dwfl)
{
	static struct stack a, b;
	struct user_regs_struct registers;
	pid_t tid = random_thread();
	int sig;

	if (!tid)
		return false;
	if (stop(tid, &sig)) {
		failed++;
		return failed < 100;
	}
	if (!ptrace(PTRACE_GETREGS, tid, NULL, &registers)) {
		read_maps();
		failed += report_to(dwfl);
		walk_ours(&registers, &a);
		walk_libdwfls(dwfl, tid, &b);
		compare(&a, &b);
	}
	ptrace(PTRACE_DETACH, tid, NULL, sig);
	return true;
}

int main(int argc, char **argv)
{
	unsigned long wanted;
	Dwfl *dwfl;

	if (argc != 4) {
		fprintf(stderr, "usage: %s PID STOPS SEED\n", argv[0]);
		return 2;
	}
	pid = atoi(argv[1]);
	wanted = strtoul(argv[2], NULL, 0);
	srandom(strtoul(argv[3], NULL, 0));
	dwfl = attach_libdwfl();
	while (stops < wanted && one_stop(dwfl))
		usleep(random() % PAUSE_MAX);
	dwfl_end(dwfl);
#define PRINT(name) printf("total " #name " %" PRIu64 "\n", name)
	PRINT(stops);
	PRINT(equal_root);
	PRINT(prologue);
	PRINT(both_short);
	PRINT(no_rule);
	PRINT(longer);
	PRINT(different);
	printf("total by_table %" PRIu64 "\n", our_frames_by[FRAME_TABLE]);
	printf("total by_frame_pointer %" PRIu64 "\n", our_frames_by[FRAME_POINTER]);
	printf("total by_inference %" PRIu64 "\n", our_frames_by[FRAME_INFERRED]);
	printf("total by_prologue %" PRIu64 "\n", our_frames_by[FRAME_LEAF_PEEK]);
	printf("total signal_returns %" PRIu64 "\n", our_frames_by[FRAME_SIGNAL_RETURN]);
	printf("total after_signal %" PRIu64 "\n", our_frames_by[FRAME_AFTER_SIGNAL]);
	return different > 0;
}
