/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cfi_oracle ADDRESSES SEED LIST: our unwind tables against libdw's call frame information.
 *
 * LIST has the files, one a line. In each, so many random addresses of code: the rule of our table and what libdw
 * says are both evaluated, with random registers and a memory whose words are a function of their
 * address. CFA, frame pointer and return address must be equal. An address that libdw says nothing
 * of must have no rule, or be padding behind a function.
 *
 * Prints "file PATH ADDRESSES ROWS BYTES NS_TO_BUILD", "skip PATH REASON", "differs PATH ADDRESS WHAT OURS LIBDW" and
 * at the end sums. Exits 1 if anything differs.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "elf/elf_symbols.h"
#include "elf/gopclntab.h"
#include "elf/gopclntab_open.h"
#include "models/unwind_find.h"
#include "unwind/unwind_table.h"

/* Offsets of registers in a signal frame, of the stack pointer. */
#define SIGNAL_RBP  120
#define SIGNAL_RIP  168

#define TABLE_LIMIT (1u << 30)
#define STACK_SIZE  64
#define REGISTERS   17
#define PADDING	    16
#define ENTRY_MAX   128 /* of what runs before anything is called */
#define PRINTED_MAX 50	/* differences that are printed */

struct sums {
	uint64_t files, skipped, addresses, compared, undescribed, inferred, go, padding, roots,
		unknown, fp_unknown, unevaluated, differing, rows, bytes, build_ns;
};

static struct sums sums;

struct values {
	bool known, root, fp_known;
	uint64_t cfa, fp, ra;
};

/* ---- a machine to unwind --------------------------------------------------------------------- */

static uint64_t random_state;

static uint64_t random_word(void)
{
	random_state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = random_state;

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64_t memory(uint64_t address)
{
	uint64_t saved = random_state, word;

	random_state = address;
	word = random_word();
	random_state = saved;
	return word;
}

/* ---- ours ------------------------------------------------------------------------------------ */

static struct values ours(const struct unwind_rule *rule, const uint64_t *registers)
{
	uint64_t sp = registers[UNWIND_X86_RSP], base = registers[rule->cfa_register];
	struct values v = {.known = true, .fp_known = true};

	switch ((enum unwind_cfa)rule->cfa) {
	case UNWIND_CFA_SP:
	case UNWIND_CFA_FP:
	case UNWIND_CFA_REGISTER:
		v.cfa = base + rule->cfa_offset;
		break;
	case UNWIND_CFA_DEREF:
		v.cfa = memory(base + rule->cfa_offset) + rule->cfa_addend;
		break;
	case UNWIND_CFA_DEREF_TWICE:
		v.cfa = memory(memory(base + unwind_first_offset(rule->cfa_offset)) +
			       unwind_second_offset(rule->cfa_offset)) +
			rule->cfa_addend;
		break;
	case UNWIND_CFA_PLT:
		v.cfa = sp + 8;
		if ((registers[UNWIND_X86_RA] & 15) >= (uint64_t)rule->cfa_offset)
			v.cfa += 8;
		break;
	case UNWIND_CFA_SIGNAL:
		v.cfa = memory(sp + UNWIND_X86_SIGNAL_RSP);
		v.fp = memory(sp + SIGNAL_RBP);
		v.ra = memory(sp + SIGNAL_RIP);
		return v;
	case UNWIND_CFA_ROOT:
		v.root = true;
		return v;
	default:
		v.known = false;
		return v;
	}
	v.ra = rule->ra == UNWIND_RA_REGISTER ? registers[rule->ra_offset]
					      : memory(v.cfa + rule->ra_offset);
	v.fp = registers[UNWIND_X86_RBP];
	if (rule->fp == UNWIND_FP_AT_CFA)
		v.fp = memory(v.cfa + rule->fp_offset);
	else if (rule->fp == UNWIND_FP_AT_FP)
		v.fp = memory(v.fp + rule->fp_offset);
	v.fp_known = rule->fp != UNWIND_FP_UNKNOWN;
	return v;
}

/* ---- libdw's --------------------------------------------------------------------------------- */

struct evaluation {
	uint64_t stack[STACK_SIZE];
	size_t depth;
	bool is_value, failed; /* a value, not an address */
};

static void push(struct evaluation *e, uint64_t value)
{
	if (e->depth < STACK_SIZE)
		e->stack[e->depth++] = value;
	else
		e->failed = true;
}

static uint64_t pop(struct evaluation *e)
{
	if (e->depth)
		return e->stack[--e->depth];
	e->failed = true;
	return 0;
}

static void operate(struct evaluation *e, uint8_t atom)
{
	uint64_t b = pop(e), a = pop(e);

	switch (atom) {
	case DW_OP_and:
		push(e, a & b);
		break;
	case DW_OP_plus:
		push(e, a + b);
		break;
	case DW_OP_minus:
		push(e, a - b);
		break;
	case DW_OP_mul:
		push(e, a * b);
		break;
	case DW_OP_shl:
		push(e, a << b);
		break;
	case DW_OP_ge:
		push(e, (int64_t)a >= (int64_t)b);
		break;
	default:
		e->failed = true;
	}
}

static void step(struct evaluation *e, const Dwarf_Op *op, const uint64_t *registers, uint64_t cfa)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
		push(e, op->atom - DW_OP_lit0);
	} else if (op->atom >= DW_OP_breg0 && op->atom < DW_OP_breg0 + REGISTERS) {
		push(e, registers[op->atom - DW_OP_breg0] + op->number);
	} else if (op->atom == DW_OP_bregx && op->number < REGISTERS) {
		push(e, registers[op->number] + op->number2);
	} else if (op->atom == DW_OP_regx && op->number < REGISTERS) {
		push(e, registers[op->number]);
		e->is_value = true;
	} else if (op->atom >= DW_OP_reg0 && op->atom < DW_OP_reg0 + REGISTERS) {
		push(e, registers[op->atom - DW_OP_reg0]);
		e->is_value = true;
	} else if (op->atom == DW_OP_call_frame_cfa) {
		push(e, cfa);
	} else if (op->atom == DW_OP_stack_value) {
		e->is_value = true;
	} else if (op->atom == DW_OP_plus_uconst) {
		push(e, pop(e) + op->number);
	} else if (op->atom == DW_OP_deref) {
		push(e, memory(pop(e)));
	} else if (op->atom == DW_OP_const1u || op->atom == DW_OP_const2u ||
		   op->atom == DW_OP_const1s || op->atom == DW_OP_const2s) {
		push(e, op->number);
	} else {
		operate(e, op->atom);
	}
}

static bool evaluate(const Dwarf_Op *ops, size_t count, const uint64_t *registers, uint64_t cfa,
		     struct evaluation *e)
{
	*e = (struct evaluation){};
	for (size_t i = 0; i < count && !e->failed; i++)
		step(e, &ops[i], registers, cfa);
	return !e->failed && e->depth;
}

enum found { FOUND, SAME, UNDEFINED, NOT_EVALUATED };

static enum found register_of(Dwarf_Frame *frame, int number, const uint64_t *registers,
			      uint64_t cfa, uint64_t *value)
{
	Dwarf_Op space[3], *ops;
	struct evaluation e;
	size_t count;

	if (dwarf_frame_register(frame, number, space, &ops, &count))
		return NOT_EVALUATED;
	if (!count)
		return ops ? UNDEFINED : SAME;
	if (!evaluate(ops, count, registers, cfa, &e))
		return NOT_EVALUATED;
	*value = e.is_value ? pop(&e) : memory(pop(&e));
	return FOUND;
}

static struct values libdws(Dwarf_Frame *frame, const uint64_t *registers)
{
	struct values v = {};
	struct evaluation e;
	Dwarf_Op *ops;
	size_t count;
	bool signal;
	int ra = dwarf_frame_info(frame, NULL, NULL, &signal);
	enum found found;

	if (dwarf_frame_cfa(frame, &ops, &count) || !evaluate(ops, count, registers, 0, &e))
		return v;
	v.cfa = pop(&e);
	found = register_of(frame, ra, registers, v.cfa, &v.ra);
	v.root = found == UNDEFINED;
	v.known = v.root || found == FOUND;
	found = register_of(frame, UNWIND_X86_RBP, registers, v.cfa, &v.fp);
	v.fp_known = found == FOUND || found == SAME;
	if (found == SAME)
		v.fp = registers[UNWIND_X86_RBP];
	return v;
}

/* ---- files ----------------------------------------------------------------------------------- */

struct subject {
	const char *path;
	struct unwind_table_image image;
	Dwarf_CFI *cfi;
	struct elf_file *file;
	struct gopclntab *go; /* NULL: not a Go program */
	uint64_t compared;
};

static void differs(const struct subject *s, uint64_t address, const char *what, uint64_t our,
		    uint64_t libdw)
{
	if (sums.differing++ < PRINTED_MAX)
		printf("differs %s %#" PRIx64 " %s %#" PRIx64 " %#" PRIx64 "\n", s->path, address,
		       what, our, libdw);
}

static const struct unwind_rule *find(const struct subject *s, uint64_t address)
{
	return unwind_table__find(s->image.bytes, &s->image.table, address);
}

static bool is_covered(const struct subject *s, uint64_t address)
{
	Dwarf_Frame *frame;
	int err = dwarf_cfi_addrframe(s->cfi, address, &frame);

	if (!err)
		free(frame);
	return !err;
}

/* A handler returns to the byte before its function too. */
static bool is_go(const struct subject *s, uint64_t address)
{
	size_t number;

	return s->go && (!gopclntab__find(s->go, address, &number) ||
			 !gopclntab__find(s->go, address + 1, &number));
}

static void check_undescribed(const struct subject *s, uint64_t address)
{
	const struct unwind_rule *rule = find(s, address);

	sums.undescribed++;
	if (rule->cfa == UNWIND_CFA_NONE)
		return;
	if (rule->ra == UNWIND_RA_INFERRED) { /* its instructions are judged elsewhere */
		sums.inferred++;
		return;
	}
	if (is_go(s, address)) { /* so is what Go's own table says */
		sums.go++;
		return;
	}
	if (rule->cfa == UNWIND_CFA_ROOT && address - elf_file__entry(s->file) < ENTRY_MAX) {
		sums.roots++;
		return;
	}
	for (uint64_t back = 1; back <= PADDING; back++) {
		if (is_covered(s, address - back)) {
			sums.padding++;
			return;
		}
	}
	/* the signal trampoline begins a byte early; a .plt may be described by us alone; and so
	 * may the start of a fiber, which is the byte before its code */
	if (rule->cfa == UNWIND_CFA_SIGNAL || rule->cfa == UNWIND_CFA_PLT ||
	    rule->cfa == UNWIND_CFA_STARTER ||
	    (rule->cfa == UNWIND_CFA_SP && rule->cfa_offset <= 24))
		return;
	differs(s, address, "undescribed", rule->cfa, 0);
}

#define ENTRY_SIZE 4096 /* of a function with the ELF entry, at most */

/* Nothing calls the function with the ELF entry, whatever its CFI says. */
static bool is_of_entry(const struct subject *s, uint64_t address)
{
	uint64_t entry = s->file ? elf_file__entry(s->file) : 0;

	return entry && address - entry + ENTRY_SIZE < 2 * ENTRY_SIZE;
}

struct place {
	uint64_t address;
	bool begins_greenlet;
};

static int see_symbol(void *context, const struct elf_symbol *symbol)
{
	struct place *place = context;

	place->begins_greenlet |= place->address - symbol->address < symbol->size &&
				  strstr(symbol->name, "UserGreenlet15inner_bootstrap");
	return 0;
}

/* So has the first function of a greenlet, which another one's stack is above. */
static bool begins_greenlet(const struct subject *s, uint64_t address)
{
	struct place place = {.address = address};

	return s->file && elf_file__each_symbol(s->file, see_symbol, &place) != -ENOMEM &&
	       place.begins_greenlet;
}

static void compare(struct subject *s, uint64_t address)
{
	uint64_t registers[REGISTERS];
	struct values a, b;
	Dwarf_Frame *frame;

	sums.addresses++;
	if (dwarf_cfi_addrframe(s->cfi, address, &frame)) {
		check_undescribed(s, address);
		return;
	}
	for (size_t i = 0; i < REGISTERS; i++)
		registers[i] = random_word() & ~UINT64_C(7);
	registers[UNWIND_X86_RA] = address;
	if (find(s, address)->ra == UNWIND_RA_INFERRED) {
		differs(s, address, "inferred", 0, 0);
		free(frame);
		return;
	}
	a = ours(find(s, address), registers);
	b = libdws(frame, registers);
	free(frame);
	if (!a.known && b.known) {
		sums.unknown++;
		return;
	}
	if (!b.known) {
		sums.unevaluated++;
		return;
	}
	s->compared++;
	sums.compared++;
	sums.roots += b.root;
	if (a.root != b.root &&
	    !(a.root && (is_of_entry(s, address) || begins_greenlet(s, address))))
		differs(s, address, "root", a.root, b.root);
	if (a.root || b.root)
		return;
	if (a.cfa != b.cfa)
		differs(s, address, "cfa", a.cfa, b.cfa);
	if (a.ra != b.ra)
		differs(s, address, "ra", a.ra, b.ra);
	if (!a.fp_known)
		sums.fp_unknown++;
	else if (!b.fp_known || a.fp != b.fp)
		differs(s, address, "fp", a.fp, b.fp);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

static void skip(const char *path, const char *reason)
{
	sums.skipped++;
	printf("skip %s %s\n", path, reason);
}

static int build(int fd, struct unwind_table_image *image)
{
	struct elf_file *file;
	int err = elf_file__open(fd, &file);

	if (err)
		return err;
	err = unwind_table__build(file, TABLE_LIMIT, image);
	elf_file__free(file);
	return err;
}

static void check_table(struct subject *s, unsigned int addresses, uint64_t build_ns)
{
	const struct unwind_table *t = &s->image.table;

	for (unsigned int i = 0; i < addresses; i++)
		compare(s, t->base + random_word() % ((uint64_t)t->buckets << UNWIND_BUCKET_BITS));
	printf("file %s %" PRIu64 " %" PRIu64 " %zu %" PRIu64 "\n", s->path, s->compared,
	       s->image.rows, s->image.size, build_ns);
	sums.files++;
	sums.rows += s->image.rows;
	sums.bytes += s->image.size;
	sums.build_ns += build_ns;
}

static void check_file(const char *path, unsigned int addresses)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct subject s = {.path = path};
	uint64_t begin = now(), took;
	Elf *elf;
	int err = fd < 0 ? -errno : build(fd, &s.image);

	took = now() - begin;
	if (err) {
		skip(path, err == -ENODATA   ? "describes no code"
			   : err == -ENOTSUP ? "not of x86-64"
			   : err == -ENOEXEC ? "not ELF"
					     : strerror(-err));
		return;
	}
	if (!elf_file__open(fd, &s.file))
		(void)gopclntab__open(s.file, &s.go); /* else it is none */
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	s.cfi = elf ? dwarf_getcfi_elf(elf) : NULL;
	if (s.cfi)
		check_table(&s, addresses, took);
	else
		skip(path, "libdw finds nothing in it");
	if (s.cfi)
		dwarf_cfi_end(s.cfi);
	elf_end(elf);
	gopclntab__free(s.go);
	elf_file__free(s.file);
	unwind_table_image__fini(&s.image);
}

int main(int argc, char **argv)
{
	_cleanup_free_ char *line = NULL;
	_cleanup_fclose_ FILE *list = NULL;
	size_t size = 0;

	if (argc != 4) {
		fprintf(stderr, "usage: %s ADDRESSES SEED LIST\n", argv[0]);
		return 2;
	}
	list = fopen(argv[3], "re");
	if (!list) {
		perror(argv[3]);
		return 2;
	}
	random_state = strtoull(argv[2], NULL, 0);
	elf_version(EV_CURRENT);
	while (getline(&line, &size, list) > 0) {
		line[strcspn(line, "\n")] = '\0';
		check_file(line, strtoul(argv[1], NULL, 0));
	}
#define PRINT(name) printf("total " #name " %" PRIu64 "\n", sums.name)
	PRINT(files);
	PRINT(skipped);
	PRINT(addresses);
	PRINT(compared);
	PRINT(undescribed);
	PRINT(inferred);
	PRINT(go);
	PRINT(padding);
	PRINT(roots);
	PRINT(unknown);
	PRINT(fp_unknown);
	PRINT(unevaluated);
	PRINT(rows);
	PRINT(bytes);
	PRINT(build_ns);
	PRINT(differing);
	return sums.differing > 0;
}
