/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * go_steps STEPS PROGRAM [ARGUMENT…]: the unwind table of a program against what its first thread does.
 *
 * Runs that thread one instruction at a time, so many of them, and notes each call: where it put its
 * return address, and the frame pointer at that moment. Before each instruction that the program's table has a rule
 * for, the rule has to lead to the newest return address above the stack pointer that was not taken off yet, and to
 * the frame pointer that was noted with it. A function that has gone to another stack has to lead to one of its own calls.
 *
 * Prints "differs PC WHAT EXPECTED FOUND", "unknown PC COUNT" for each place that the table does not follow, and at
 * the end "total NAME COUNT". Exits 1 if anything differs.
 */
#include "elf/elf_file.h"
#include "models/unwind_find.h"
#include "stopped.h"
#include "unwind/unwind_table.h"

#define TABLE_LIMIT (1u << 30)
#define CALLS	    (1u << 20) /* slots of the table of calls, a power of two */
#define PROBES	    64
#define FRAME_MAX   65536 /* further up no return address is looked for */
#define PRINTED_MAX 20
#define PLACES	    4096

struct call {
	uint64_t slot; /* where the return address is; 0: none */
	uint64_t ra, fp, callee;
};

static struct call calls[CALLS];
static struct {
	uint64_t pc, count;
} unknown[PLACES];
static uint64_t steps, compared, switched, across, roots, not_followed, undescribed, uncalled,
	signals, differing;
static struct unwind_table_image image;
static uint64_t bias;

static bool load(uint64_t address, void *to, size_t size)
{
	return !read_process(NULL, to, size, address);
}

/* ---- calls that were made -------------------------------------------------------------------- */

static struct call *find(uint64_t slot, bool make)
{
	uint64_t at = (slot >> 3) * 0x9e3779b97f4a7c15ull >> 44;
	struct call *unused = NULL;

	for (unsigned int i = 0; i < PROBES; i++) {
		struct call *c = &calls[(at + i) & (CALLS - 1)];

		if (c->slot == slot)
			return c;
		if (!c->slot && !unused)
			unused = c;
	}
	return make ? unused : NULL;
}

static void forget(uint64_t from, uint64_t to)
{
	for (uint64_t slot = from & ~7ull; slot < to; slot += 8) {
		struct call *c = find(slot, false);

		if (c)
			c->slot = 0;
	}
}

/* The newest call above the stack pointer; NULL: it was made before we looked, or by the kernel. */
static const struct call *newest(uint64_t sp)
{
	for (uint64_t slot = sp & ~7ull; slot < sp + FRAME_MAX; slot += 8) {
		const struct call *c = find(slot, false);
		uint64_t ra;

		if (!c)
			continue;
		/* stacks are copied and used again: a slot that something else was written to is none */
		return load(slot, &ra, sizeof(ra)) && ra == c->ra ? c : NULL;
	}
	return NULL;
}

/* A change of the stack pointer by a return, a pop, add, lea, leave: not to another stack. */
static bool stays_on_stack(const unsigned char *code)
{
	size_t at = (code[0] & 0xf0) == 0x40;

	if (code[0] == 0xc3 || code[0] == 0xc2 || code[0] == 0xc9 || (code[at] & 0xf8) == 0x58)
		return true;
	if (at && (code[1] == 0x83 || code[1] == 0x81) && code[2] == 0xc4)
		return true;
	return at && code[1] == 0x8d && (code[2] & 0xc7) == 0x44 && code[3] == 0x24;
}

static void note(const struct user_regs_struct *old, const struct user_regs_struct *now,
		 const unsigned char *code)
{
	struct call *c;
	uint64_t ra;

	if (now->rsp > old->rsp && now->rsp - old->rsp <= FRAME_MAX && stays_on_stack(code))
		forget(old->rsp, now->rsp);
	else if (now->rsp > old->rsp || old->rsp - now->rsp > FRAME_MAX)
		forget(now->rsp - FRAME_MAX,
		       now->rsp); /* of a stack that was left in the middle of calls */
	if (now->rsp != old->rsp - 8)
		return;
	c = find(now->rsp, false);
	if (c)
		c->slot = 0;
	if (code[0] != 0xe8 && code[0] != 0xff && !(code[0] == 0x41 && code[1] == 0xff))
		return;
	if (!load(now->rsp, &ra, sizeof(ra)) || ra <= old->rip || ra > old->rip + 15)
		return;
	c = find(now->rsp, true);
	if (c)
		*c = (struct call){now->rsp, ra, now->rbp, now->rip};
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void differs(uint64_t pc, const char *what, uint64_t expected, uint64_t found)
{
	if (differing++ < PRINTED_MAX)
		printf("differs %#" PRIx64 " %s %#" PRIx64 " %#" PRIx64 "\n", pc - bias, what,
		       expected, found);
}

static void count_unknown(uint64_t pc)
{
	not_followed++;
	for (size_t i = 0; i < PLACES; i++) {
		if (!unknown[i].count || unknown[i].pc == pc) {
			unknown[i].pc = pc;
			unknown[i].count++;
			return;
		}
	}
}

static void compare_switch(const struct user_regs_struct *r, const struct unwind_rule *rule)
{
	const struct call *c = find(r->rbp + 8, false);
	uint64_t fp;

	if (!c || c->callee != bias + (uint32_t)rule->cfa_offset) {
		differs(r->rip, "switch", bias + (uint32_t)rule->cfa_offset, c ? c->callee : 0);
		return;
	}
	if (!load(r->rbp, &fp, sizeof(fp)) || fp != c->fp)
		differs(r->rip, "fp-of-switch", c->fp, fp);
	switched++;
}

/* Where the return address of a function is that has no frame, and has gone to another stack. */
static uint64_t slot_across(const struct user_regs_struct *r, const struct unwind_rule *rule)
{
	uint64_t noted[2], g, m, curg, sp, top, offset = (int64_t)rule->fp_offset;

	if (rule->cfa == UNWIND_CFA_GO_DEPTH) {
		if (!load(r->rsp + rule->fp_offset, noted, sizeof(noted)))
			return 0;
		if (!noted[1])
			return noted[0];
		return load(noted[1] + UNWIND_GO_STACK_TOP, &top, sizeof(top)) ? top - noted[0] : 0;
	}
	if (rule->cfa_register && !load(bias + (uint32_t)rule->fp_offset, &offset, sizeof(offset)))
		return 0;
	if (!load(r->fs_base + offset, &g, sizeof(g)) ||
	    !load(g + UNWIND_GO_THREAD, &m, sizeof(m)) ||
	    !load(m + rule->ra_offset, &curg, sizeof(curg)) ||
	    !load(curg + UNWIND_GO_SAVED, &sp, sizeof(sp)))
		return 0;
	return rule->cfa == UNWIND_CFA_GO_INTERRUPTED ? sp - 8 : sp;
}

/*
 * Between its first instruction on the other stack and its call, and behind that, what it needs is not all there: the
 * walk sees that by the call that is missing, and ends.
 */
static void compare_across(const struct user_regs_struct *r, const struct unwind_rule *rule)
{
	uint64_t start = bias + (uint32_t)rule->cfa_offset, ra;
	const struct call *c = find(slot_across(r, rule), false);

	if (!c || !load(c->slot, &ra, sizeof(ra)) || ra != c->ra) {
		count_unknown(r->rip - bias);
		return;
	}
	if (c->callee - start >= UNWIND_GO_NEAR)
		differs(r->rip, "across", start, c->callee);
	else if (rule->cfa != UNWIND_CFA_GO_INTERRUPTED && r->rbp != c->fp)
		differs(r->rip, "fp-across", c->fp, r->rbp);
	across++;
}

static void compare_frame(const struct user_regs_struct *r, const struct unwind_rule *rule)
{
	const struct call *c = newest(r->rsp);
	uint64_t cfa, fp = r->rbp;

	if (!c) {
		uncalled++;
		return;
	}
	cfa = (rule->cfa_register == UNWIND_X86_RBP ? r->rbp : r->rsp) + rule->cfa_offset;
	if (cfa != c->slot + 8) {
		differs(r->rip, "cfa", c->slot + 8, cfa);
		return;
	}
	if (rule->fp == UNWIND_FP_AT_CFA && !load(cfa + rule->fp_offset, &fp, sizeof(fp)))
		fp = 0;
	if (fp != c->fp)
		differs(r->rip, "fp", c->fp, fp);
	compared++;
}

static void compare(const struct user_regs_struct *r)
{
	const struct unwind_rule *rule = unwind_table__find(image.bytes, &image.table,
							    r->rip - bias);

	if (rule->cfa == UNWIND_CFA_NONE)
		undescribed++;
	else if (rule->cfa == UNWIND_CFA_ROOT)
		roots++;
	else if (rule->cfa == UNWIND_CFA_UNKNOWN)
		count_unknown(r->rip - bias);
	else if (rule->cfa == UNWIND_CFA_SWITCH)
		compare_switch(r, rule);
	else if (rule->cfa == UNWIND_CFA_GO_DEPTH || rule->cfa == UNWIND_CFA_GO_CALLER ||
		 rule->cfa == UNWIND_CFA_GO_INTERRUPTED)
		compare_across(r, rule);
	else if (rule->cfa == UNWIND_CFA_SP || rule->cfa == UNWIND_CFA_FP)
		compare_frame(r, rule);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void open_program(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_fclose_ FILE *maps = open_proc("maps");
	struct elf_file *file;
	uint64_t address;
	char line[512];

	if (fd < 0 || elf_file__open(fd, &file))
		die(path);
	if (unwind_table__build(file, TABLE_LIMIT, &image))
		die("no table");
	if (!fgets(line, sizeof(line), maps) || elf_file__address_of_offset(file, 0, &address))
		die("maps");
	bias = strtoull(line, NULL, 16) - address;
	elf_file__free(file);
}

static void run_steps(uint64_t count)
{
	struct user_regs_struct old, now;
	unsigned char code[16];
	int sig = 0;

	if (ptrace(PTRACE_GETREGS, pid, 0, &old))
		die("registers");
	for (; steps < count; steps++) {
		memset(code, 0, sizeof(code));
		if (!load(old.rip, code, sizeof(code)))
			load(old.rip, code, 1);
		if (step(pid, &sig, &now))
			return;
		signals += sig != 0;
		note(&old, &now, code);
		compare(&now);
		old = now;
	}
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	start(argv + 2);
	open_program(argv[2]);
	run_steps(strtoull(argv[1], NULL, 10));
	kill(pid, SIGKILL);
	for (size_t i = 0; i < PLACES && unknown[i].count; i++)
		printf("unknown %#" PRIx64 " %" PRIu64 "\n", unknown[i].pc, unknown[i].count);
	printf("total steps %" PRIu64 "\ntotal compared %" PRIu64 "\ntotal switched %" PRIu64 "\n",
	       steps, compared, switched);
	printf("total across %" PRIu64 "\n", across);
	printf("total roots %" PRIu64 "\ntotal not_followed %" PRIu64 "\n", roots, not_followed);
	printf("total undescribed %" PRIu64 "\ntotal uncalled %" PRIu64 "\n", undescribed,
	       uncalled);
	printf("total signals %" PRIu64 "\ntotal differing %" PRIu64 "\n", signals, differing);
	return !!differing;
}
