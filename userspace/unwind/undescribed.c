/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/undescribed.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "base/order.h"
#include "elf/elf_exports.h"
#include "elf/elf_sections.h"
#include "elf/elf_symbols.h"
#include "elf/x86_code.h"
#include "unwind/code_flow.h"

#define PLT_ENTRY_SIZE 16
#define PLT_MAX	       (64u << 20)
#define KNOWN_MAX      32		     /* of one file */
#define LIBRARY_TEXT   (16u << 20)	     /* more than any C library has */
#define SEARCHED_PIECE (4u << 20)	     /* text to read at once */
#define SEARCH_STEPS   (SEARCHED_PIECE / 10) /* for returns from signals: 1 ms a MB … */
#define STARTER_STEPS  (SEARCHED_PIECE / 40) /* … and for starters, reading included */
#define ENTRY_MAX      128
#define HLT	       0xf4
#define LEA	       0x8d
#define CALL_DISTANCE  (32 << 20)  /* at most, to a function or its linkage table */
#define STARTER_MAX    64	   /* bytes of a starter */
#define LARGE_SIZE     (32u << 20) /* of code without CFI in one file */
#define FOLLOW_NS      200000000ul /* for the code of a file, at least */
#define FIRST_PUSH_END 6	   /* of a .plt: push *GOT+8 */
#define STRETCH_MAX    (32u << 20) /* bytes of code to read at once; longer ones are divided */
#define CODE_MEMORY    (96u << 20) /* of that, and of the steps of a piece of it */
#define CODE_ALIGNMENT 16
#define WINDOW_SIZE    (64u << 10) /* text to read at once, at least */

/* ---- known by its bytes ---------------------------------------------------------------------- */

/*
 * Procedure linkage tables, returns from signals, entries of programs.
 *
 * An entry of a linkage table has 16 bytes: a jump through the global offset table. With lazy
 * binding it then pushes the symbol's number and jumps to the first entry, which pushes one more
 * word (System V ABI, AMD64 supplement, "Procedure Linkage Table"; with CET the jumps are in
 * .plt.sec). GNU ld describes its tables, lld does not.
 *
 * Some C libraries, musl above all, lack CFI where a stack begins or is left. A signal handler
 * returns to "mov $__NR_rt_sigreturn,%rax; syscall". A program starts at its entry without a return
 * address: it marks the outermost frame (xor %ebp,%ebp), aligns the stack (and $-16,%rsp) and makes
 * a call (System V ABI, AMD64 supplement, 3.4.1). glibc's dynamic linker starts with mov %rsp,%rdi;
 * call, and leaves to the program with jmp *%r12.
 *
 * The stack of a fiber begins with the address of a starter, as if that had called the fiber's
 * first function: makecontext() of glibc puts it there, and make_fcontext() of boost.context, which
 * PHP and others have copied. It ends the thread or the program with a call, and hlt behind it.
 */
struct known_code {
	uint64_t start, end; /* ELF virtual addresses */
	/* UNWIND_CFA_PLT; _SIGNAL: return from a signal; _ROOT: a program's entry; _STARTER */
	enum unwind_cfa cfa;
	/* offset in an entry of a linkage table after which a word has been pushed; 0: never */
	unsigned int pushed_after;
};

static const unsigned char ENDBR64[] = {0xf3, 0x0f, 0x1e, 0xfa};
static const unsigned char XOR_EBP[] = {0x31, 0xed};
static const unsigned char XOR_RBP[] = {0x48, 0x31, 0xed};
static const unsigned char LINKER_ENTRY[] = {0x48, 0x89, 0xe7, 0xe8};
static const unsigned char JUMP[] = {0xff, 0x25};
static const unsigned char JUMP_R12[] = {0x41, 0xff, 0xe4};
static const unsigned char ALIGN[] = {0x48, 0x83, 0xe4, 0xf0};

/* The offset in an entry after which the symbol's number has been pushed; 0: never. */
static unsigned int pushed_after(const unsigned char *entry)
{
	if (!memcmp(entry, JUMP, sizeof(JUMP)) && entry[6] == 0x68)
		return 11;
	if (!memcmp(entry, ENDBR64, sizeof(ENDBR64)) && entry[4] == 0x68)
		return 9;
	return 0;
}

/* Appends to the `count` found so far. Returns the new count, or -ENOMEM; so do those below. */
static int find_plts(struct elf_file *file, struct unwind_rows *r, struct known_code *found)
{
	static const char *const NAMES[] = {".plt", ".plt.sec", ".plt.got"};
	int count = 0;

	for (size_t i = 0; i < sizeof(NAMES) / sizeof(*NAMES); i++) {
		_cleanup_free_ void *code = NULL;
		struct elf_section section;
		size_t size;
		int err;

		if (elf_file__find_section(file, NAMES[i], &section) ||
		    !(section.flags & SHF_EXECINSTR) || section.address % PLT_ENTRY_SIZE)
			continue;
		err = elf_file__section_data(file, NAMES[i], PLT_MAX, &code, &size);
		if (err == -ENOMEM)
			return err;
		if (err == -EFBIG)
			r->left += section.size;
		if (err || !size)
			continue;
		found[count++] = (struct known_code){
			.start = section.address,
			.end = section.address + size,
			.cfa = UNWIND_CFA_PLT,
			.pushed_after =
				size < 2 * PLT_ENTRY_SIZE
					? 0
					: pushed_after((unsigned char *)code + PLT_ENTRY_SIZE),
		};
	}
	return count;
}

struct text {
	const unsigned char *bytes;
	size_t size;
	uint64_t address;
};

/* Finds those that begin in the first SEARCHED_PIECE bytes. */
static int find_returns(struct unwind_rows *r, const struct text *text,
			const unsigned char *pattern, size_t size, struct known_code *found,
			int count)
{
	const unsigned char *at = text->bytes, *end = at + text->size;

	while ((at = memmem(at, end - at, pattern, size)) && at < text->bytes + SEARCHED_PIECE) {
		if (count < KNOWN_MAX)
			found[count++] = (struct known_code){
				.start = text->address + (at - text->bytes),
				.end = text->address + (at - text->bytes) + size,
				.cfa = UNWIND_CFA_SIGNAL,
			};
		else
			r->left += size;
		at += size;
	}
	return count;
}

static bool begins_with(const unsigned char *at, size_t left, const unsigned char *bytes,
			size_t size)
{
	return left >= size && !memcmp(at, bytes, size);
}

/* The size of the linker's code from its entry to that jump; 0: the code differs. */
static size_t linker_entry_size(const unsigned char *code, size_t size)
{
	const unsigned char *jump;

	if (!begins_with(code, size, LINKER_ENTRY, sizeof(LINKER_ENTRY)))
		return 0;
	jump = memmem(code, size, JUMP_R12, sizeof(JUMP_R12));
	return jump ? jump + sizeof(JUMP_R12) - code : 0;
}

/* The size of the code from the entry to the end of its first call; 0: the code differs. */
static size_t entry_size(const unsigned char *code, size_t size)
{
	const unsigned char *align;
	size_t at = 0;

	if (begins_with(code, size, ENDBR64, sizeof(ENDBR64)))
		at = sizeof(ENDBR64);
	if (!begins_with(code + at, size - at, XOR_EBP, sizeof(XOR_EBP)) &&
	    !begins_with(code + at, size - at, XOR_RBP, sizeof(XOR_RBP)))
		return linker_entry_size(code, size);
	align = memmem(code, size, ALIGN, sizeof(ALIGN));
	if (!align)
		return 0;
	for (at = align + sizeof(ALIGN) - code; at + 6 <= size; at++) {
		if (code[at] == 0xe8) /* call rel32 */
			return at + 5;
		if (code[at] == 0xff && code[at + 1] == 0x15) /* call *rel32(%rip) */
			return at + 6;
	}
	return 0;
}

static int find_entry(struct elf_file *file, struct known_code *found, int count)
{
	unsigned char code[ENTRY_MAX];
	uint64_t entry = elf_file__entry(file);
	ssize_t got = entry ? elf_file__read_at(file, entry, code, sizeof(code)) : 0;
	size_t size = got > 0 ? entry_size(code, got) : 0;

	if (size && count < KNOWN_MAX)
		found[count++] = (struct known_code){
			.start = entry, .end = entry + size, .cfa = UNWIND_CFA_ROOT};
	return count;
}

/* Does this code get to the call at `call`, and nowhere else? */
static bool leads_to_call(const unsigned char *code, size_t call)
{
	struct x86_instruction i;
	size_t at = 0;

	for (; at < call; at += i.size) {
		if (!x86_decode(code + at, call - at, &i) || i.effect == X86_RETURN ||
		    i.effect == X86_JUMP || i.effect == X86_JUMP_AWAY || i.effect == X86_STOP)
			return false;
		if (i.effect == X86_BRANCH && at + i.size + i.amount > call)
			return false;
	}
	return at == call;
}

/*
 * Return addresses are looked up one byte before. Here that is padding, or within an instruction:
 * no call, which would make this an ordinary return address, and no ret.
 */
static bool is_behind_nothing(const unsigned char *code)
{
	return code[-1] != 0xc3 && code[-5] != 0xe8 &&
	       !(code[-2] == 0xff && (code[-1] & 0x38) == 0x10) &&
	       !(code[-6] == 0xff && (code[-5] & 0x38) == 0x10);
}

/* The address that an instruction takes that ends at `at`: lea, or mov $ADDRESS. 0: none. */
static uint64_t taken_address(const struct text *text, size_t at)
{
	const unsigned char *code = text->bytes + at;
	int32_t word;

	memcpy(&word, code - sizeof(word), sizeof(word));
	if (code[-6] == 0x8d && (code[-5] & 0xc7) == 0x05 && (code[-7] & 0xf8) == 0x48)
		return text->address + at + word;
	if ((code[-5] & 0xf8) == 0xb8 || code[-6] == 0xc7 || code[-7] == 0xc7 || code[-8] == 0xc7)
		return (uint32_t)word;
	return 0;
}

/*
 * Does an instruction take the address of code that leads to the call at `call`? The offset of that
 * code; 0: none does. All that is tried ends `behind` bytes after one that is `byte`.
 */
static size_t taken_by(const struct text *text, int byte, size_t behind, size_t call)
{
	const size_t span = STARTER_MAX - X86_SIZE_MAX, lowest = call - span;
	const unsigned char *end = text->bytes + text->size - behind;

	for (const unsigned char *p = text->bytes + X86_SIZE_MAX;
	     p <= end && (p = memchr(p, byte, end + 1 - p)); p++) {
		uint64_t target = taken_address(text, p - text->bytes + behind) - text->address;

		if (target - lowest <= span && is_behind_nothing(text->bytes + target) &&
		    leads_to_call(text->bytes + target, call - target))
			return target;
	}
	return 0;
}

/* The code that ends in the call at `call` is a starter if other code takes its address. */
static int find_starter(struct unwind_rows *r, const struct text *text, size_t call,
			struct known_code *found, int count)
{
	/* what all addresses there have in common, but for those around a multiple of 64 KB */
	const int third_byte = (text->address + call) >> 16 & 0xff;
	const size_t target = taken_by(text, LEA, 6, call) ?: taken_by(text, third_byte, 2, call);

	if (!target)
		return count;
	if (count == KNOWN_MAX) {
		r->left++;
		return count;
	}
	found[count] = (struct known_code){.start = text->address + target - 1,
					   .end = text->address + target,
					   .cfa = UNWIND_CFA_STARTER};
	return count + 1;
}

/* The size of the call behind which this is; 0: there is none. Other bytes rarely lead so near. */
static size_t call_size(const unsigned char *code)
{
	int32_t distance;

	memcpy(&distance, code - sizeof(distance), sizeof(distance));
	if (distance <= -CALL_DISTANCE || distance >= CALL_DISTANCE)
		return 0;
	return code[-5] == 0xe8 ? 5 : code[-6] == 0xff && code[-5] == 0x15 ? 6 : 0;
}

/* Also -EFBIG: the budget has been used up. */
static int find_starters(struct unwind_rows *r, const struct text *text, uint64_t entry,
			 struct known_code *found, int count)
{
	const unsigned char *at = text->bytes + STARTER_MAX, *end = text->bytes + text->size;
	int err = 0;

	for (; at < end && !err && (at = memchr(at, HLT, end - at)); at++) {
		size_t size = call_size(at), call = at - text->bytes - size;

		/* a program's entry has such a call, too */
		if (!size || text->address + call - entry < ENTRY_MAX)
			continue;
		err = build_budget__step(r->budget, text->size / 10);
		if (!err)
			count = find_starter(r, text, call, found, count);
	}
	return err ? err : count;
}

/* Programs without a dynamic linker have a C library in them. One without symbols is static-pie. */
static bool may_have_trampolines(struct elf_file *file, const struct elf_section *text)
{
	struct elf_section other;

	if (text->size <= LIBRARY_TEXT)
		return true;
	return elf_file__find_section(file, ".interp", &other) == -ENOENT &&
	       (elf_file__find_section(file, ".dynsym", &other) == -ENOENT ||
		other.size <= sizeof(Elf64_Sym));
}

static int find_in_text(struct elf_file *file, struct unwind_rows *r, struct known_code *found,
			int count)
{
	const size_t room = SEARCHED_PIECE + STARTER_MAX; /* pieces overlap */
	_cleanup_free_ unsigned char *code = NULL;
	struct elf_section section;
	bool has_returns;
	struct text text;
	int err = 0;

	if (elf_file__find_section(file, ".text", &section))
		return count;
	has_returns = may_have_trampolines(file, &section);
	text.bytes = code = malloc(room);
	if (!code)
		return -ENOMEM;
	for (uint64_t at = 0; at < section.size && !err; at += SEARCHED_PIECE) {
		ssize_t got = elf_file__read_section(file, &section, at, code, room);

		if (got <= 0)
			break;
		text.size = got;
		text.address = section.address + at;
		if (has_returns) {
			count = find_returns(r, &text, SIGRETURN, sizeof(SIGRETURN), found, count);
			count = find_returns(r, &text, SIGRETURN_32, sizeof(SIGRETURN_32), found,
					     count);
		}
		if (text.size > STARTER_MAX)
			count = find_starters(r, &text, elf_file__entry(file), found, count);
		err = count < 0 ? count
				: build_budget__step(r->budget,
						     has_returns ? SEARCH_STEPS : STARTER_STEPS);
	}
	return err ? err : count;
}

/* Finds all known code, with CFI or without. Returns the count, or negative errno. */
static int find_known(struct elf_file *file, struct unwind_rows *r,
		      struct known_code found[KNOWN_MAX])
{
	int count = find_plts(file, r, found);

	return count < 0 ? count : find_in_text(file, r, found, find_entry(file, found, count));
}

/* A rule for [start, end) in the middle of code that may be described. */
static int add_within(struct unwind_rows *r, uint64_t start, uint64_t end,
		      const struct unwind_rule *rule, row_list *rows)
{
	size_t before = unwind_rows__up_to(r, end);
	struct unwind_rule behind = *UNWIND_NO_RULE;

	if (before)
		behind = r->rules.data[r->rows.data[before - 1].rule].rule;
	return unwind_rows__add_to(r, rows, start, rule)
		       ?: unwind_rows__add_to(r, rows, end, &behind);
}

/* ---- known by its name ----------------------------------------------------------------------- */

/*
 * Greenlets (Python's greenlet, gevent) share one C stack: a greenlet's part of it is copied away
 * and back. So what is above its first function is of other greenlets, of any time.
 */
static const char GREENLET[] = "PyInit__greenlet";
static const char GREENLET_FIRST[] = "_ZN8greenlet12UserGreenlet15inner_bootstrap";

static int find_greenlet(void *found, const struct elf_symbol *symbol)
{
	if (symbol->size && !strncmp(symbol->name, GREENLET_FIRST, sizeof(GREENLET_FIRST) - 1) &&
	    !strchr(symbol->name, '.')) /* of a part, as .cold */
		*(struct known_code *)found = (struct known_code){
			.start = symbol->address,
			.end = saturating_add_u64(symbol->address, symbol->size),
			.cfa = UNWIND_CFA_ROOT,
		};
	return 0;
}

/* Nothing has called this function: it is the outermost of its stack, whatever its CFI says. */
static int end_greenlets(struct elf_file *file, struct unwind_rows *r, row_list *rows)
{
	static const struct unwind_rule ROOT = {.cfa = UNWIND_CFA_ROOT};
	struct known_code first = {};
	struct elf_exports exports;
	uint64_t address;
	uint32_t number;
	int err;

	err = elf_exports__init(&exports, file) ?: elf_exports__find(&exports, GREENLET, &address);
	r->left += err == -EFBIG;
	if (err)
		return 0;
	/* a table of symbols that is damaged or too large for the builder's memory has none */
	elf_file__each_symbol(file, find_greenlet, &first);
	err = first.end ? add_within(r, first.start, first.end, &ROOT, rows)
				  ?: unwind_rows__number(r, &ROOT, &number)
			: 0;
	for (size_t i = unwind_rows__up_to(r, first.start);
	     !err && i < r->rows.count && r->rows.data[i].address < first.end; i++)
		r->rows.data[i].rule = number;
	return err;
}

/* ---- rules from its bytes -------------------------------------------------------------------- */

static int add_plt_row(struct unwind_rows *r, row_list *rows, uint64_t address, enum unwind_cfa cfa,
		       int offset)
{
	const struct unwind_rule rule = {
		.cfa = cfa,
		.cfa_register = UNWIND_X86_RSP,
		.cfa_offset = offset,
		.ra = UNWIND_RA_AT_CFA,
		.ra_offset = -(int)sizeof(uint64_t),
	};

	return unwind_rows__add_to(r, rows, address, &rule);
}

/* The first entry of a lazy table is entered with one word pushed, and pushes another. */
static int add_plt(struct unwind_rows *r, const struct known_code *plt, row_list *rows)
{
	if (!plt->pushed_after)
		return add_plt_row(r, rows, plt->start, UNWIND_CFA_SP, 8);
	return add_plt_row(r, rows, plt->start, UNWIND_CFA_SP, 16)
			?: add_plt_row(r, rows, plt->start + FIRST_PUSH_END, UNWIND_CFA_SP, 24)
			?: add_plt_row(r, rows, plt->start + PLT_ENTRY_SIZE, UNWIND_CFA_PLT,
				       plt->pushed_after);
}

/*
 * A handler returns to the first byte of its trampoline, and return addresses are looked up one
 * byte before, so the rule begins there. A function that ends at that byte has its own row.
 */
static int add_trampoline(struct unwind_rows *r, const struct known_code *t, row_list *rows)
{
	const struct unwind_rule rule = {.cfa = t->cfa};
	int err = 0;

	if (t->cfa == UNWIND_CFA_SIGNAL && t->start)
		err = unwind_rows__add_to(r, rows, t->start - 1, &rule);
	return err ? err : unwind_rows__add_to(r, rows, t->start, &rule);
}

static bool is_described(const struct unwind_rows *r, const struct known_code *code)
{
	size_t before = unwind_rows__up_to(r, code->start);

	return (before && !unwind_rows__says_nothing(r, &r->rows.data[before - 1])) ||
	       (before < r->rows.count && r->rows.data[before].address < code->end);
}

static int add_known(struct unwind_rows *r, const struct known_code *code, row_list *rows)
{
	static const struct unwind_rule STARTER = {.cfa = UNWIND_CFA_STARTER};

	if (code->cfa == UNWIND_CFA_STARTER)
		return add_within(r, code->start, code->end, &STARTER, rows);
	if (is_described(r, code))
		return 0;
	return (code->cfa == UNWIND_CFA_PLT ? add_plt(r, code, rows)
					    : add_trampoline(r, code, rows))
		       ?: unwind_rows__add_to(r, rows, code->end, UNWIND_NO_RULE);
}

DEFINE_ORDER(compare_rows, struct unwind_row, ASCENDING(address));

int undescribed__add_known(struct elf_file *file, struct unwind_rows *r)
{
	struct known_code known[KNOWN_MAX];
	row_list rows = {};
	int count = find_known(file, r, known), err = count < 0 ? count : 0;

	if (!err)
		err = end_greenlets(file, r, &rows);
	for (int i = 0; i < count && !err; i++)
		err = add_known(r, &known[i], &rows);
	if (!err && rows.count) {
		vec_sort(&rows, compare_rows);
		err = unwind_rows__merge(r, &rows);
	}
	unwind_rows__drop(r, &rows);
	return err;
}

/* ---- by its instructions --------------------------------------------------------------------- */

/* A piece of the text, at virtual address `start`. */
struct code_window {
	const struct elf_file *file;
	const struct elf_section *text;
	uint8_t *bytes;
	uint64_t start;
	size_t size, room;
};

struct code_rows {
	struct unwind_rows *described;
	row_list rows;
	size_t first; /* row of the current stretch */
	uint64_t work, cpu_end;
	bool is_large, is_plain; /* of a large file: it keeps frame pointers */
	struct code_window window;
};

/* The code at [start, end), read with bytes after it for the next calls; NULL: unreadable. */
static const uint8_t *read_stretch(struct code_window *w, uint64_t start, uint64_t end)
{
	size_t size = max_u64(end - start, WINDOW_SIZE);
	ssize_t got;

	if (start >= w->start && end <= w->start + w->size)
		return w->bytes + (start - w->start);
	if (size > w->room) {
		uint8_t *bytes = realloc(w->bytes, size);

		if (!bytes)
			return NULL;
		w->bytes = bytes;
		w->room = size;
	}
	got = elf_file__read_section(w->file, w->text, start - w->text->address, w->bytes, size);
	w->start = start;
	w->size = got > 0 ? got : 0;
	return end - start <= w->size ? w->bytes : NULL;
}

static bool rule_in(const struct code_rows *c, const row_list *rows, uint64_t address,
		    struct unwind_rule *rule)
{
	size_t before = partition_point(rows->data, rows->count, row, row->address <= address);

	if (!before)
		return false;
	*rule = c->described->rules.data[rows->data[before - 1].rule].rule;
	return rule->cfa != UNWIND_CFA_NONE;
}

/* Of code with CFI, or of code that was followed before. */
static bool rule_outside(void *context, uint64_t address, struct unwind_rule *rule)
{
	const struct code_rows *c = context;

	return rule_in(c, &c->described->rows, address, rule) ||
	       rule_in(c, &c->rows, address, rule);
}

static int add_code_row(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct code_rows *c = context;

	if (c->rows.count > c->first &&
	    unwind_rows__is_rule(c->described, c->rows.data[c->rows.count - 1].rule, rule))
		return 0;
	return unwind_rows__add_to(c->described, &c->rows, address, rule);
}

static int follow_stretch(struct code_rows *c, const uint8_t *code, uint64_t start, uint64_t end)
{
	const struct code_flow flow = {
		.piece = CODE_FLOW_PIECE,
		.work = &c->work,
		.cpu_end = c->cpu_end,
		.left = &c->described->left,
		.is_plain = c->is_large ? &c->is_plain : NULL,
		.code = code,
		.start = start,
		.size = end - start,
		.outside = rule_outside,
		.row = add_code_row,
		.context = c,
	};
	int err;

	c->first = c->rows.count;
	err = code_flow__follow(&flow);
	if (!err && c->rows.count > c->first)
		err = add_code_row(c, end, UNWIND_NO_RULE);
	return err;
}

/* What lies behind an unreadable part is left, too: a section header may claim more than a file has. */
static int add_stretch(struct code_rows *c, uint64_t start, uint64_t end)
{
	int err = 0;

	for (uint64_t next; !err && start < end; start = next) {
		const uint8_t *code;

		next = start + min_u64(end - start, STRETCH_MAX);
		/* each byte may be an instruction */
		err = build_budget__step(c->described->budget, next - start);
		if (err)
			break;
		/* when the work is used up, nothing more is read or decoded */
		code = c->work && !c->is_plain ? read_stretch(&c->window, start, next) : NULL;
		if (!code) {
			c->described->left += c->is_plain ? 0 : end - start;
			break;
		}
		err = follow_stretch(c, code, start, next);
	}
	return err;
}

/*
 * Adds the rows of each stretch of text without a rule; with `sum` only adds up the sizes.
 * Stretches shorter than the alignment of functions are padding.
 */
static int each_stretch(struct code_rows *c, const struct elf_section *text, uint64_t *sum)
{
	const struct unwind_rows *r = c->described;
	uint64_t start = text->address, limit = text->address + text->size;
	size_t i = unwind_rows__up_to(r, start);
	bool open = !i || unwind_rows__says_nothing(r, &r->rows.data[i - 1]);
	int err = 0;

	for (; !err && start < limit; i++) {
		uint64_t end = i < r->rows.count ? r->rows.data[i].address : limit;

		end = min_u64(end, limit);
		if (open && end - start >= CODE_ALIGNMENT) {
			if (sum)
				*sum += end - start;
			else
				err = add_stretch(c, start, end);
		}
		start = end;
		open = i < r->rows.count && unwind_rows__says_nothing(r, &r->rows.data[i]);
	}
	return err;
}

/* False for Go, which has tables of its own. */
static bool is_readable(struct elf_file *file, struct elf_section *text)
{
	struct elf_section other;

	return !elf_file__find_section(file, ".text", text) && text->size &&
	       (text->flags & SHF_EXECINSTR) && text->address <= UINT64_MAX - text->size &&
	       elf_file__find_section(file, ".gopclntab", &other) == -ENOENT;
}

uint64_t undescribed__size(struct elf_file *file, struct unwind_rows *r)
{
	struct code_rows c = {.described = r};
	struct elf_section text;
	uint64_t sum = 0;

	if (is_readable(file, &text))
		each_stretch(&c, &text, &sum);
	return sum;
}

/*
 * Code gets half of the time, because without any table nothing of the file is unwound. Of a file
 * that is mostly described it gets as much as its CFI took: the table is awaited.
 */
static uint64_t end_of_following(const struct build_budget *b, uint64_t size, uint64_t text_size)
{
	uint64_t begun, now, last;

	if (!b)
		return 0;
	begun = b->cpu_end - b->limits.cpu_ns;
	last = begun + b->limits.cpu_ns / 2;
	if (size >= text_size / 2)
		return last;
	now = thread_cpu_ns();
	return min_u64(last, now + max_u64(now - begun, FOLLOW_NS));
}

int undescribed__follow_code(struct elf_file *file, struct unwind_rows *r)
{
	struct elf_section text;
	struct code_rows c = {
		.described = r,
		.work = r->budget ? r->budget->limits.code_steps : UINT64_MAX,
		.window = {.file = file, .text = &text},
	};
	uint64_t size = undescribed__size(file, r), memory = 2 * min_u64(size, CODE_MEMORY / 2);
	int err;

	if (!size || !is_readable(file, &text))
		return 0;
	c.is_large = size > LARGE_SIZE;
	c.cpu_end = end_of_following(r->budget, size, text.size);
	err = build_budget__take(r->budget, memory);
	if (err)
		return err;
	err = each_stretch(&c, &text, NULL);
	build_budget__give_back(r->budget, memory);
	free(c.window.bytes);
	if (!err && c.rows.count)
		err = unwind_rows__merge(r, &c.rows);
	unwind_rows__drop(r, &c.rows);
	return err;
}
