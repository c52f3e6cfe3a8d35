/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * v8_steps PID STEPS ROUNDS: the caller that the walk finds for code of V8, at each instruction.
 *
 * The first thread is stopped somewhere and goes on by single steps. What it has called by then, and not returned from, is
 * kept on a stack of our own: the newest return address is where the innermost frame's caller is. Code that is made as it
 * runs (JIT) and V8's builtins, which no FDE covers, are distinguished.
 *
 * Prints, for each place where the two differ, how often they do, what the walk's kind was and the bytes at the instruction;
 * and at the end "total WHERE_VERDICT COUNT": right; skipped: it found the caller's caller; wrong: something else; cut: nothing.
 */
#include "models/unwind_find.h"
#include "unwind_target.h"

#define SHADOW_MAX    4096
#define DIFFERENT_MAX 4096
#define CODE_BYTES    16
#define PAUSE	      3000 /* us between rounds */

enum where { JIT, BUILTIN, WHERES };
enum verdict { RIGHT, SKIPPED, WRONG, CUT, VERDICTS };

static const char *const where_names[] = {"jit", "builtin"};
static const char *const verdict_names[] = {"right", "skipped", "wrong", "cut"};

static uint64_t counts[WHERES][VERDICTS];
static struct {
	uint64_t address, slot; /* where on the stack it was pushed last */
} shadow[SHADOW_MAX];
static size_t depth;

/* Where walk and truth differ, by address. */
static struct different {
	uint64_t pc, count;
	enum where where;
	enum verdict verdict;
	enum frame_kind kind;
	uint8_t code[CODE_BYTES];
} differents[DIFFERENT_MAX];
static size_t different_count;

static bool is_of_v8(uint64_t pc, enum where *where)
{
	const struct unwind_range *range = range_of(pc);
	const struct unwind_rule *rule;

	if (!range)
		return false;
	*where = JIT;
	if (!range->table)
		return true;
	*where = BUILTIN;
	rule = unwind_table__find(range->segment, range->table, pc - range->bias);
	return rule->cfa == UNWIND_CFA_NONE || rule->ra == UNWIND_RA_INFERRED;
}

static void note_different(uint64_t pc, enum where where, enum verdict verdict,
			   enum frame_kind kind)
{
	struct different *d = differents;

	while (d < differents + different_count && (d->pc != pc || d->verdict != verdict))
		d++;
	if (d == differents + DIFFERENT_MAX)
		return;
	if (d == differents + different_count) {
		*d = (struct different){.pc = pc, .where = where, .verdict = verdict, .kind = kind};
		read_process(NULL, d->code, sizeof(d->code), pc);
		different_count++;
	}
	d->count++;
}

/* Which of the return addresses it is: 0 the newest; -1 none. */
static int place_in_shadow(uint64_t address)
{
	for (size_t i = depth; i-- > 0;)
		if (shadow[i].address == address)
			return (int)(depth - 1 - i);
	return -1;
}

static void judge(const struct user_regs_struct *now)
{
	uint64_t frames[FRAMES_MAX];
	enum verdict verdict = CUT;
	enum frame_kind kind = FRAME_NONE;
	enum where where;
	size_t count;

	if (depth < 2 || !is_of_v8(now->rip, &where))
		return;
	walk(now, frames, &count);
	if (count > 1) {
		int place = place_in_shadow(frame_address(frames[1]));

		verdict = place == 0 ? RIGHT : place == 1 ? SKIPPED : WRONG;
		kind = frame_kind(frames[1]);
	}
	counts[where][verdict]++;
	if (verdict != RIGHT)
		note_different(now->rip, where, verdict, kind);
}

/*
 * A builtin drops the return address of its caller, baseline code, when optimized code takes the place of that: it is never
 * returned to. Where JIT code begins, what lies below the stack pointer is no return address.
 */
static void forget_dropped(const struct user_regs_struct *old, const struct user_regs_struct *now)
{
	enum where from, to;

	if ((is_of_v8(old->rip, &from) && from == JIT) || !is_of_v8(now->rip, &to) || to != JIT)
		return;
	while (depth && shadow[depth - 1].slot < now->rsp)
		depth--;
}

static void follow(const struct user_regs_struct *old, const struct user_regs_struct *now)
{
	uint64_t back;
	int place;

	if (was_call(old, now, &back)) {
		if (depth == SHADOW_MAX)
			depth = 0;
		shadow[depth].address = back;
		shadow[depth++].slot = now->rsp;
		return;
	}
	/* popped, and pushed again beyond other arguments */
	if (depth && now->rsp == old->rsp - 8 &&
	    !read_process(NULL, &back, sizeof(back), now->rsp) && back == shadow[depth - 1].address)
		shadow[depth - 1].slot = now->rsp;
	place = now->rsp > old->rsp ? place_in_shadow(now->rip) : -1;
	if (place >= 0)
		depth -= (size_t)place + 1;
	else
		forget_dropped(old, now);
}

static void one_round(uint64_t steps)
{
	struct user_regs_struct old, now;
	int sig;
	enum where where;

	if (stop(pid, &sig))
		die("ptrace");
	depth = 0;
	read_maps();
	ptrace(PTRACE_GETREGS, pid, NULL, &now);
	for (uint64_t i = 0; i < steps; i++) {
		old = now;
		if (step(pid, &sig, &now))
			die("a step");
		follow(&old, &now);
		if (!range_of(now.rip))
			read_maps();
		judge(&now);
		if (i == 200 && !is_of_v8(now.rip, &where) && !depth)
			break; /* in native code, for long */
	}
	ptrace(PTRACE_DETACH, pid, NULL, sig);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	pid = atoi(argv[1]);
	for (int i = 0; i < atoi(argv[3]); i++) {
		one_round(strtoull(argv[2], NULL, 0));
		usleep(PAUSE);
	}
	for (size_t i = 0; i < different_count; i++) {
		const struct different *d = &differents[i];

		printf("%s %s %s %" PRIx64 " x%" PRIu64 ":", where_names[d->where],
		       verdict_names[d->verdict], KINDS[d->kind % FRAME_KIND_COUNT], d->pc,
		       d->count);
		for (int k = 0; k < CODE_BYTES; k++)
			printf(" %02x", d->code[k]);
		printf("\n");
	}
	for (int w = 0; w < WHERES; w++)
		for (int v = 0; v < VERDICTS; v++)
			printf("total %s_%s %" PRIu64 "\n", where_names[w], verdict_names[v],
			       counts[w][v]);
	return 0;
}
