/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/undescribed.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/minmax.h"
#include "base/order.h"

#define FIRST_PUSH_END	6 /* of a .plt: push *GOT+8 */
#define TEXT_MAX	(1u << 30)
#define UNDESCRIBED_MAX (32u << 20) /* bytes of code without descriptions */
#define CODE_WORK_MAX	(16u << 20) /* steps that are followed in them */
#define CODE_ALIGNMENT	16
#define WINDOW_SIZE	(64u << 10) /* of the text that is read at once, at least */

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

/* The first entry of a lazy one is entered with one word pushed, and pushes another. */
static int add_plt(struct unwind_rows *r, const struct known_code *plt, row_list *rows)
{
	int err;

	if (!plt->pushed_after)
		return add_plt_row(r, rows, plt->start, UNWIND_CFA_SP, 8);
	err = add_plt_row(r, rows, plt->start, UNWIND_CFA_SP, 16);
	if (!err)
		err = add_plt_row(r, rows, plt->start + FIRST_PUSH_END, UNWIND_CFA_SP, 24);
	return err ? err
		   : add_plt_row(r, rows, plt->start + PLT_ENTRY_SIZE, UNWIND_CFA_PLT,
				 plt->pushed_after);
}

/*
 * A handler returns to the first byte of its trampoline, and a return address is looked for one byte
 * before: so the rule begins there. Where a function ends at that byte is a row of its own.
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
	static const struct unwind_rule NONE = {};
	int err;

	if (is_described(r, code))
		return 0;
	err = code->cfa == UNWIND_CFA_PLT ? add_plt(r, code, rows) : add_trampoline(r, code, rows);
	return err ? err : unwind_rows__add_to(r, rows, code->end, &NONE);
}

DEFINE_ORDER(compare_rows, struct unwind_row, ASCENDING(address));

int undescribed__add_known(struct elf_file *file, struct unwind_rows *r)
{
	struct known_code known[KNOWN_CODE_MAX];
	row_list rows = {};
	int count = known_code__find(file, known), err = count < 0 ? count : 0;

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
	size_t first; /* of the rows: of the stretch at hand */
	uint64_t work;
	struct code_window window;
};

/* The code at [start, end); NULL: it cannot be read. Bytes behind it are read as well, for the next ones. */
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

static bool rule_outside(void *context, uint64_t address, struct unwind_rule *rule)
{
	const struct code_rows *c = context;
	size_t before = unwind_rows__up_to(c->described, address);

	if (!before)
		return false;
	*rule = c->described->rules.data[c->described->rows.data[before - 1].rule].rule;
	return rule->cfa != UNWIND_CFA_NONE;
}

static int add_code_row(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct code_rows *c = context;

	if (c->rows.count > c->first &&
	    unwind_rows__is_rule(c->described, c->rows.data[c->rows.count - 1].rule, rule))
		return 0;
	return unwind_rows__add_to(c->described, &c->rows, address, rule);
}

static int add_stretch(struct code_rows *c, uint64_t start, uint64_t end)
{
	const struct code_flow flow = {
		.work = &c->work,
		.code = read_stretch(&c->window, start, end),
		.start = start,
		.size = end - start,
		.outside = rule_outside,
		.row = add_code_row,
		.context = c,
	};
	static const struct unwind_rule NONE = {};
	int err;

	if (!flow.code)
		return 0;
	c->first = c->rows.count;
	/* each byte of it may be an instruction */
	err = build_budget__step(c->described->budget, min_u64(end - start, UINT32_MAX));
	if (!err)
		err = code_flow__follow(&flow);
	if (!err && c->rows.count > c->first)
		err = add_code_row(c, end, &NONE);
	return err;
}

/*
 * Each piece of the text that has no rule: adds its rows; with `sum` adds up the sizes only. What is shorter than the
 * alignment of functions is padding between them.
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

/* Go's code describes itself in another way. */
static bool is_readable(struct elf_file *file, struct elf_section *text)
{
	struct elf_section other;

	return !elf_file__find_section(file, ".text", text) && text->size &&
	       (text->flags & SHF_EXECINSTR) && text->size <= TEXT_MAX &&
	       text->address <= UINT64_MAX - text->size &&
	       elf_file__find_section(file, ".gopclntab", &other) == -ENOENT;
}

int undescribed__follow_code(struct elf_file *file, struct unwind_rows *r)
{
	struct elf_section text;
	struct code_rows c = {
		.described = r,
		.work = CODE_WORK_MAX,
		.window = {.file = file, .text = &text},
	};
	uint64_t sum = 0;
	int err;

	if (!is_readable(file, &text))
		return 0;
	err = each_stretch(&c, &text, &sum);
	if (err || !sum || sum > UNDESCRIBED_MAX)
		return err;
	err = build_budget__take(r->budget, sum);
	if (err)
		return err;
	err = each_stretch(&c, &text, NULL);
	build_budget__give_back(r->budget, sum);
	free(c.window.bytes);
	if (!err && c.rows.count)
		err = unwind_rows__merge(r, &c.rows);
	unwind_rows__drop(r, &c.rows);
	return err;
}
