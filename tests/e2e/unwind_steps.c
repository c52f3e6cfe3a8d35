/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_steps until-return PID STOPS SEED: callers of code that no FDE covers, against what it returns to.
 *
 *	Stops a random thread at a random time. Is it in such code, its stack is walked, and then it goes on by
 *	single steps until the function has returned: where to is its caller. The walk from there
 *	is the rest of the stack.
 *
 * unwind_steps every-step COMMAND…: the same at each instruction of a program, described or not, between two breakpoints
 *	(int3) that it has in itself. What is called and returned to by then is kept on a stack of our own: the
 *	truth at every step.
 *
 * Prints the first ones that are wrong, and at the end "total NAME COUNT": for each kind of the innermost caller
 * right_KIND and wrong_KIND; right means that all frames are. cut: there is no caller; cut_later: the caller
 * is right, and the stack shorter than it should be; unfinished: it did not return in time; undescribed: of all
 * stops, those in code that no FDE covers.
 */
#include "models/unwind_find.h"
#include "unwind_target.h"

#define PAUSE_MAX      3000 /* us between stops */
#define STEPS_MAX      200000
#define ATTEMPTS_MAX   20000
#define SHOWN_MAX      20
#define CODE_SIZE      15
#define SHADOW_MAX     1024
#define EXIT_DIFFERENT 1

static uint64_t stops, undescribed, attempts, cut, cut_later, unfinished, right[FRAME_KIND_COUNT],
	wrong[FRAME_KIND_COUNT];

struct walked {
	uint64_t frames[FRAMES_MAX];
	size_t count;
	enum stack_end end;
};

/* In an ELF file, and no FDE covers it. */
static bool is_undescribed(uint64_t pc)
{
	const struct unwind_range *range = range_of(pc);
	const struct unwind_rule *rule;

	if (!range || !range->table)
		return false;
	rule = unwind_table__find(range->segment, range->table, pc - range->bias);
	return rule->cfa == UNWIND_CFA_NONE || rule->ra == UNWIND_RA_INFERRED;
}

static void print_address(uint64_t address)
{
	const struct unwind_range *range = range_of(address);

	printf(" %#" PRIx64 " (%#" PRIx64 ")", address, range ? address - range->bias : 0);
}

static void show(const char *what, const struct walked *ours, const uint64_t *truth, size_t count)
{
	static int shown;

	if (shown++ >= SHOWN_MAX)
		return;
	printf("%s, end %d:\n", what, ours->end);
	for (size_t i = 0; i < ours->count || i < count; i++) {
		printf("  %2zu %-12s", i,
		       i < ours->count ? KINDS[frame_kind(ours->frames[i]) % FRAME_KIND_COUNT]
				       : "-");
		print_address(i < ours->count ? frame_address(ours->frames[i]) : 0);
		print_address(i < count ? truth[i] : 0);
		printf("\n");
	}
}

/* `truth` has the innermost frame as well. */
static void judge(const struct walked *ours, const uint64_t *truth, size_t count)
{
	size_t same = 0;
	enum frame_kind kind;

	stops++;
	while (same < ours->count && same < count &&
	       frame_address(ours->frames[same]) == truth[same])
		same++;
	if (ours->count == 1) {
		cut++;
		show("cut", ours, truth, count);
		return;
	}
	kind = frame_kind(ours->frames[1]) % FRAME_KIND_COUNT;
	if (same == ours->count && same == count) {
		right[kind]++;
	} else if (same == ours->count) {
		cut_later++;
		show("cut later", ours, truth, count);
	} else {
		wrong[kind]++;
		show("wrong", ours, truth, count);
	}
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool is_return(const uint8_t *code)
{
	while (*code == 0xf2 || *code == 0xf3)
		code++;
	return *code == 0xc3 || *code == 0xc2;
}

/* Until the function that it is in has returned. */
static int run_until_return(pid_t tid, struct user_regs_struct *now, int *sig)
{
	struct user_regs_struct old;
	uint8_t code[CODE_SIZE + 1] = "";
	uint64_t back;
	int depth = 0;

	for (int i = 0; i < STEPS_MAX; i++) {
		old = *now;
		if (read_process(NULL, code, 4, old.rip) || step(tid, sig, now))
			return -1;
		if (is_return(code) && now->rsp > old.rsp && depth-- == 0)
			return 0;
		if (was_call(&old, now, &back))
			depth++;
	}
	return -1;
}

static void until_return(pid_t tid, struct user_regs_struct *registers, int *sig)
{
	static struct walked ours, rest;
	static uint64_t truth[FRAMES_MAX + 1];

	ours.end = walk(registers, ours.frames, &ours.count);
	truth[0] = registers->rip;
	if (run_until_return(tid, registers, sig)) {
		unfinished++;
		return;
	}
	rest.end = walk(registers, rest.frames, &rest.count);
	for (size_t i = 0; i < rest.count; i++)
		truth[i + 1] = frame_address(rest.frames[i]);
	judge(&ours, truth, rest.count + 1);
	undescribed++;
}

static bool is_running(pid_t tid)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	f = fopen(path, "re");
	return f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1 && state == 'R';
}

static void one_stop(void)
{
	struct user_regs_struct registers;
	pid_t tid = random_thread();
	int sig;

	if (!tid || !is_running(tid))
		return;
	attempts++;
	if (stop(tid, &sig))
		return;
	if (!ptrace(PTRACE_GETREGS, tid, NULL, &registers)) {
		if (!range_of(registers.rip))
			read_maps();
		if (is_undescribed(registers.rip))
			until_return(tid, &registers, &sig);
	}
	ptrace(PTRACE_DETACH, tid, NULL, sig);
}

/* ---- every step ------------------------------------------------------------------------------ */

static uint64_t shadow[SHADOW_MAX];
static size_t shadow_depth;

static int to_breakpoint(struct user_regs_struct *registers)
{
	int status, sig = 0;

	do {
		if (ptrace(PTRACE_CONT, pid, NULL, sig) || waitpid(pid, &status, 0) < 0 ||
		    !WIFSTOPPED(status))
			return -1;
		sig = WSTOPSIG(status);
	} while (sig != SIGTRAP);
	return ptrace(PTRACE_GETREGS, pid, NULL, registers) ? -1 : 0;
}

/* The frames of what was called since the first breakpoint, and behind them the frame that had it. */
static void judge_step(const struct user_regs_struct *now, const struct walked *base)
{
	static struct walked ours;
	static uint64_t truth[FRAMES_MAX];
	size_t count = 0;

	ours.end = walk(now, ours.frames, &ours.count);
	truth[count++] = now->rip;
	for (size_t i = shadow_depth; i-- > 0;)
		truth[count++] = shadow[i];
	for (size_t i = 1; i < base->count && count < FRAMES_MAX; i++)
		truth[count++] = frame_address(base->frames[i]);
	judge(&ours, truth, count);
}

static int every_step(void)
{
	struct user_regs_struct old, now;
	static struct walked base;
	uint8_t code[4];
	uint64_t back;
	int sig = 0;

	if (to_breakpoint(&now))
		return -1;
	read_maps();
	base.end = walk(&now, base.frames, &base.count);
	for (;;) {
		judge_step(&now, &base);
		undescribed += is_undescribed(now.rip);
		old = now;
		if (read_process(NULL, code, sizeof(code), old.rip))
			return -1;
		if (code[0] == 0xcc)
			return shadow_depth ? -1 : 0;
		if (step(pid, &sig, &now))
			return -1;
		if (is_return(code) && now.rsp > old.rsp) {
			if (!shadow_depth || now.rip != shadow[--shadow_depth])
				return -1;
		} else if (was_call(&old, &now, &back)) {
			if (shadow_depth == SHADOW_MAX)
				return -1;
			shadow[shadow_depth++] = back;
		}
	}
}

int main(int argc, char **argv)
{
	unsigned long wanted;
	uint64_t mistakes = 0;

	if (argc == 5 && !strcmp(argv[1], "until-return")) {
		pid = atoi(argv[2]);
		wanted = strtoul(argv[3], NULL, 0);
		srandom(strtoul(argv[4], NULL, 0));
		while (stops + unfinished < wanted && attempts < ATTEMPTS_MAX && !kill(pid, 0)) {
			one_stop();
			usleep(random() % PAUSE_MAX);
		}
	} else if (argc > 2 && !strcmp(argv[1], "every-step")) {
		start(argv + 2);
		if (every_step())
			die("the program did not do what was expected of it");
		ptrace(PTRACE_KILL, pid, NULL, NULL);
	} else {
		fprintf(stderr, "usage: %s until-return PID STOPS SEED | every-step COMMAND…\n",
			argv[0]);
		return 2;
	}
	printf("total stops %" PRIu64 "\ntotal undescribed %" PRIu64 "\ntotal cut %" PRIu64
	       "\ntotal cut_later %" PRIu64 "\ntotal unfinished %" PRIu64 "\n",
	       stops, undescribed, cut, cut_later, unfinished);
	for (int i = 0; i < FRAME_KIND_COUNT; i++) {
		if (right[i])
			printf("total right_%s %" PRIu64 "\n", KINDS[i], right[i]);
		if (wrong[i])
			printf("total wrong_%s %" PRIu64 "\n", KINDS[i], wrong[i]);
		mistakes += wrong[i];
	}
	return mistakes ? EXIT_DIFFERENT : 0;
}
