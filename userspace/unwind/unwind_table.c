/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows are merged with their equal neighbours as they come, and rules get numbers. When all are
 * there, the most frequent rules get the lowest numbers (they share cache lines then), and index, numbers
 * and addresses are laid out in one piece.
 */
#include "unwind/unwind_table.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/cleanup.h"
#include "base/hashmap.h"
#include "base/minmax.h"
#include "base/search.h"
#include "base/vec.h"
#include "unwind/code_flow.h"
#include "unwind/go_table.h"
#include "unwind/plt.h"
#include "unwind/trampoline.h"

#define SECTION_MAX	(1u << 30)
#define RULES_MAX	(UINT16_MAX + 1u)
#define FEW_FUNCTIONS	8 /* what the C runtime's start files have */
#define IMAGE_ALIGNMENT 64
#define FIRST_PUSH_END	6 /* of a .plt: push *GOT+8 */
#define CODE_SIZE_MAX	(UINT64_C(4) << 30)
#define TEXT_MAX	(1u << 30)
#define UNDESCRIBED_MAX (32u << 20) /* bytes of code without descriptions */
#define CODE_WORK_MAX	(16u << 20) /* steps that are followed in them */
#define CODE_ALIGNMENT	16
#define ROW_SIZE	2	    /* bytes in the image, at least */
#define WINDOW_SIZE	(64u << 10) /* of the text that is read at once, at least */

struct row {
	uint64_t address;
	uint32_t rule;
};

struct counted_rule {
	struct unwind_rule rule;
	uint32_t number; /* in the order of appearance */
	uint32_t uses;
};

struct builder {
	VEC(struct row) rows;
	VEC(struct counted_rule) rules;
	struct hashmap numbers; /* rule -> its place in rules */
	size_t rows_max;	/* more do not fit into the image */
};

/* What is left out where the table would be too large with it. */
struct extras {
	bool follow_code; /* that nobody describes */
	bool track_rbx;
};

static bool equal_rules(const void *owner, uint32_t index, const void *key)
{
	const struct builder *b = owner;

	return !memcmp(&b->rules.data[index].rule, key, sizeof(struct unwind_rule));
}

static void builder__init(struct builder *b, size_t limit)
{
	*b = (struct builder){.rows_max = limit / ROW_SIZE};
	hashmap__init(&b->numbers, equal_rules, b);
}

static void builder__fini(struct builder *b)
{
	vec_free(&b->rows);
	vec_free(&b->rules);
	hashmap__fini(&b->numbers);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int add_rule(struct builder *b, const struct unwind_rule *rule, uint64_t hash,
		    uint32_t *number)
{
	int err;

	*number = b->rules.count;
	if (*number == RULES_MAX)
		return -EFBIG;
	err = vec_push(&b->rules, (struct counted_rule){.rule = *rule, .number = *number});
	return err ? err : hashmap__add(&b->numbers, hash, *number);
}

static int number_of(struct builder *b, const struct unwind_rule *rule, uint32_t *number)
{
	uint64_t hash;

	/* most rows repeat the rule of a row shortly before them */
	if (b->rows.count > 1) {
		*number = b->rows.data[b->rows.count - 2].rule;
		if (equal_rules(b, *number, rule))
			return 0;
	}
	hash = hash_bytes(rule, sizeof(*rule));
	*number = hashmap__find(&b->numbers, hash, rule);
	return *number == HASHMAP_NONE ? add_rule(b, rule, hash, number) : 0;
}

static int add_row(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct builder *b = context;
	struct row *last = b->rows.count ? &b->rows.data[b->rows.count - 1] : NULL;
	uint32_t number;
	int err;

	if (last && address < last->address)
		return 0; /* it makes no sense */
	if (last && equal_rules(b, last->rule, rule))
		return 0;
	err = number_of(b, rule, &number);
	if (err)
		return err;
	if (last && address == last->address) {
		last->rule = number;
		return 0;
	}
	if (b->rows.count >= b->rows_max)
		return -EFBIG;
	return vec_push(&b->rows, (struct row){.address = address, .rule = number});
}

/* ---- code that nobody describes -------------------------------------------------------------- */

/* How many rows are at or before the address. */
static size_t rows_up_to(const struct builder *b, uint64_t address)
{
	return partition_point(b->rows.data, b->rows.count, row, row->address <= address);
}

static bool says_nothing(const struct builder *b, const struct row *row)
{
	return b->rules.data[row->rule].rule.cfa == UNWIND_CFA_NONE;
}

typedef VEC(struct row) rows_vec;

static int add_undescribed(struct builder *b, rows_vec *rows, uint64_t address,
			   const struct unwind_rule *rule)
{
	struct row row = {.address = address};
	int err = rows->count < b->rows_max ? number_of(b, rule, &row.rule) : -EFBIG;

	return err ? err : vec_push(rows, row);
}

static int add_plt_row(struct builder *b, rows_vec *rows, uint64_t address, enum unwind_cfa cfa,
		       int offset)
{
	const struct unwind_rule rule = {
		.cfa = cfa,
		.cfa_register = UNWIND_X86_RSP,
		.cfa_offset = offset,
		.ra = UNWIND_RA_AT_CFA,
		.ra_offset = -(int)sizeof(uint64_t),
	};
	static const struct unwind_rule NONE = {};

	return add_undescribed(b, rows, address, cfa == UNWIND_CFA_NONE ? &NONE : &rule);
}

/* The first entry of a lazy one is entered with one word pushed, and pushes another. */
static int add_plt(struct builder *b, const struct plt *plt, rows_vec *rows)
{
	size_t before = rows_up_to(b, plt->start);
	int err;

	if (before && !says_nothing(b, &b->rows.data[before - 1]))
		return 0;
	if (before < b->rows.count && b->rows.data[before].address < plt->end)
		return 0;
	if (plt->pushed_after) {
		err = add_plt_row(b, rows, plt->start, UNWIND_CFA_SP, 16);
		if (!err)
			err = add_plt_row(b, rows, plt->start + FIRST_PUSH_END, UNWIND_CFA_SP, 24);
		if (!err)
			err = add_plt_row(b, rows, plt->start + PLT_ENTRY_SIZE, UNWIND_CFA_PLT,
					  plt->pushed_after);
	} else {
		err = add_plt_row(b, rows, plt->start, UNWIND_CFA_SP, 8);
	}
	return err ? err : add_plt_row(b, rows, plt->end, UNWIND_CFA_NONE, 0);
}

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* Of two rows for one address the one that says something stays, else the added one: it may say why not. */
static int merge(struct builder *b, const rows_vec *added)
{
	__typeof__(b->rows) merged = {};
	size_t i = 0, j = 0;
	int err = vec_reserve(&merged, b->rows.count + added->count);

	while (!err && (i < b->rows.count || j < added->count)) {
		const struct row *x = i < b->rows.count ? &b->rows.data[i] : NULL;
		const struct row *y = j < added->count ? &added->data[j] : NULL;

		if (!y || (x && x->address < y->address)) {
			merged.data[merged.count++] = b->rows.data[i++];
			continue;
		}
		if (x && x->address == y->address) {
			i++;
			if (says_nothing(b, y) && !says_nothing(b, x))
				y = x;
		}
		merged.data[merged.count++] = *y;
		j++;
	}
	if (err)
		return err;
	free(b->rows.data);
	b->rows = merged;
	return 0;
}

/*
 * A handler returns to the first byte of its trampoline, and a return address is looked for one byte
 * before: so the rule begins there. Where a function ends at that byte is a row of its own.
 */
static int add_trampoline(struct builder *b, const struct trampoline *t, rows_vec *rows)
{
	static const struct unwind_rule NONE = {};
	const struct unwind_rule rule = {.cfa = t->cfa};
	size_t before = rows_up_to(b, t->start);
	int err = 0;

	if (before && !says_nothing(b, &b->rows.data[before - 1]))
		return 0;
	if (before < b->rows.count && b->rows.data[before].address < t->end)
		return 0;
	if (t->cfa == UNWIND_CFA_SIGNAL && t->start)
		err = add_undescribed(b, rows, t->start - 1, &rule);
	if (!err)
		err = add_undescribed(b, rows, t->start, &rule);
	return err ? err : add_undescribed(b, rows, t->end, &NONE);
}

static int add_what_is_undescribed(struct elf_file *file, struct builder *b)
{
	struct trampoline trampolines[TRAMPOLINES_MAX];
	struct plt plts[PLT_COUNT_MAX];
	rows_vec rows = {};
	int plt_count = plt_find(file, plts),
	    trampoline_count = trampolines_find(file, trampolines);
	int err = plt_count < 0 ? plt_count : trampoline_count < 0 ? trampoline_count : 0;

	for (int i = 0; i < plt_count && !err; i++)
		err = add_plt(b, &plts[i], &rows);
	for (int i = 0; i < trampoline_count && !err; i++)
		err = add_trampoline(b, &trampolines[i], &rows);
	if (!err && rows.count) {
		qsort(rows.data, rows.count, sizeof(*rows.data), compare_rows);
		err = merge(b, &rows);
	}
	vec_free(&rows);
	return err;
}

/* ---- code that nobody describes, by its instructions ----------------------------------------- */

/* A piece of the text, at virtual address `start`. */
struct code_window {
	const struct elf_file *file;
	const struct elf_section *text;
	uint8_t *bytes;
	uint64_t start;
	size_t size, room;
};

struct code_rows {
	struct builder *b;
	rows_vec rows;
	size_t first; /* of the rows: of the stretch at hand */
	uint64_t work;
	struct code_window window;
};

/* The code at [start, end); NULL: it cannot be read. What lies behind it is read as well, for the next ones. */
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
	size_t before = rows_up_to(c->b, address);

	if (!before)
		return false;
	*rule = c->b->rules.data[c->b->rows.data[before - 1].rule].rule;
	return rule->cfa != UNWIND_CFA_NONE;
}

static int add_code_row(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct code_rows *c = context;

	if (c->rows.count > c->first &&
	    equal_rules(c->b, c->rows.data[c->rows.count - 1].rule, rule))
		return 0;
	return add_undescribed(c->b, &c->rows, address, rule);
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
	const struct builder *b = c->b;
	uint64_t start = text->address, limit = text->address + text->size;
	size_t i = rows_up_to(b, start);
	bool open = !i || says_nothing(b, &b->rows.data[i - 1]);
	int err = 0;

	for (; !err && start < limit; i++) {
		uint64_t end = i < b->rows.count ? b->rows.data[i].address : limit;

		end = min_u64(end, limit);
		if (open && end - start >= CODE_ALIGNMENT) {
			if (sum)
				*sum += end - start;
			else
				err = add_stretch(c, start, end);
		}
		start = end;
		open = i < b->rows.count && says_nothing(b, &b->rows.data[i]);
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

static int add_code(struct elf_file *file, struct builder *b)
{
	struct elf_section text;
	struct code_rows c = {
		.b = b,
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
	err = each_stretch(&c, &text, NULL);
	free(c.window.bytes);
	if (!err && c.rows.count)
		err = merge(b, &c.rows);
	vec_free(&c.rows);
	return err;
}

/* ---- layout ---------------------------------------------------------------------------------- */

static int compare_uses(const void *a, const void *b)
{
	const struct counted_rule *x = a, *y = b;

	if (x->uses != y->uses)
		return x->uses > y->uses ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

/* Sorts the rules and makes the rows' numbers the new ones. */
static int renumber(struct builder *b)
{
	_cleanup_free_ uint32_t *changed = calloc(b->rules.count + 1, sizeof(*changed));

	if (!changed)
		return -ENOMEM;
	for (size_t i = 0; i < b->rows.count; i++)
		b->rules.data[b->rows.data[i].rule].uses++;
	qsort(b->rules.data, b->rules.count, sizeof(*b->rules.data), compare_uses);
	for (size_t i = 0; i < b->rules.count; i++)
		changed[b->rules.data[i].number] = i;
	for (size_t i = 0; i < b->rows.count; i++)
		b->rows.data[i].rule = changed[b->rows.data[i].rule];
	hashmap__clear(&b->numbers); /* it has the old ones */
	return 0;
}

/* Row 0 comes before all of the builder's. */
static int lay_out(const struct builder *b, size_t limit, struct unwind_table_image *image)
{
	const struct row *first = &b->rows.data[0], *last = &b->rows.data[b->rows.count - 1];
	struct unwind_table *t = &image->table;
	uint64_t rows = b->rows.count + 1, size, buckets;

	t->base = first->address & ~(uint64_t)(UNWIND_BUCKET_SIZE - 1);
	if (last->address - t->base > CODE_SIZE_MAX)
		return -EFBIG;
	buckets = ((last->address - t->base) >> UNWIND_BUCKET_BITS) + 1;
	t->buckets = buckets;
	t->number_size = b->rules.count <= UINT8_MAX + 1 ? 1 : 2;
	size = b->rules.count * sizeof(struct unwind_rule);
	t->dictionary = 0;
	t->index = size;
	size += (buckets + 1) * sizeof(uint32_t);
	t->numbers = size;
	size += rows * t->number_size;
	t->addresses = size;
	size = align_up(size + rows + UNWIND_SLACK, IMAGE_ALIGNMENT);
	if (size > limit || size > UINT32_MAX)
		return -EFBIG;
	image->size = size;
	image->rows = rows;
	return 0;
}

static void set_number(const struct unwind_table_image *image, size_t row, uint32_t number)
{
	unsigned char *numbers = (unsigned char *)image->bytes + image->table.numbers;

	if (image->table.number_size == 1)
		numbers[row] = number;
	else
		((uint16_t *)(void *)numbers)[row] = number;
}

static void fill_in(const struct builder *b, uint32_t none, struct unwind_table_image *image)
{
	const struct unwind_table *t = &image->table;
	unsigned char *bytes = image->bytes, *addresses = bytes + t->addresses;
	struct unwind_rule *dictionary = (void *)(bytes + t->dictionary);
	uint32_t *index = (void *)(bytes + t->index);
	size_t bucket = 0;

	for (size_t i = 0; i < b->rules.count; i++)
		dictionary[i] = b->rules.data[i].rule;
	set_number(image, 0, none);
	for (size_t i = 0; i < b->rows.count; i++) {
		const struct row *row = &b->rows.data[i];

		while (bucket <= (row->address - t->base) >> UNWIND_BUCKET_BITS)
			index[bucket++] = i + 1;
		addresses[i + 1] = row->address & (UNWIND_BUCKET_SIZE - 1);
		set_number(image, i + 1, row->rule);
	}
	while (bucket <= t->buckets)
		index[bucket++] = b->rows.count + 1;
}

static int make_image(struct builder *b, size_t limit, struct unwind_table_image *image)
{
	static const struct unwind_rule NONE = {};
	uint32_t none;
	int err = number_of(b, &NONE, &none);

	if (!err)
		err = renumber(b);
	if (!err)
		err = lay_out(b, limit, image);
	if (err)
		return err;
	for (none = 0; !equal_rules(b, none, &NONE); none++)
		;
	if (posix_memalign(&image->bytes, IMAGE_ALIGNMENT, image->size))
		return -ENOMEM;
	memset(image->bytes, 0, image->size);
	fill_in(b, none, image);
	return 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int run_section(const struct cfi_section *section, struct builder *b,
		       struct cfi_counts *counts)
{
	b->rows.count = b->rules.count = 0;
	hashmap__clear(&b->numbers);
	return cfi_each_row(section, add_row, b, counts);
}

static bool has_frames_by_rbx(const struct builder *b)
{
	for (size_t i = 0; i < b->rules.count; i++)
		if (b->rules.data[i].rule.cfa == UNWIND_CFA_REGISTER &&
		    b->rules.data[i].rule.cfa_register == UNWIND_X86_RBX)
			return true;
	return false;
}

static int read_section(struct elf_file *file, const char *name, const struct extras *extras,
			struct builder *b, struct cfi_counts *counts)
{
	struct cfi_section section = {.is_eh_frame = !strcmp(name, ".eh_frame")};
	_cleanup_free_ void *data = NULL;
	struct elf_section header;
	int err = elf_file__find_section(file, name, &header);

	if (!err)
		err = elf_file__section_data(file, name, SECTION_MAX, &data, &section.size);
	if (err)
		return err == -ENOENT ? -ENODATA : err;
	section.data = data;
	section.address = header.address;
	err = run_section(&section, b, counts);
	if (!err && extras->track_rbx && has_frames_by_rbx(b)) {
		section.tracks_rbx = true;
		err = run_section(&section, b, counts);
	}
	return err || b->rows.count ? err : -ENODATA;
}

/* One side of two that are put on top of each other. */
struct side {
	const struct builder *b;
	size_t next;
	const struct unwind_rule *now; /* at the address that was reached */
};

static uint64_t next_address(const struct side *s)
{
	return s->next < s->b->rows.count ? s->b->rows.data[s->next].address : UINT64_MAX;
}

static void go_to(struct side *s, uint64_t address)
{
	while (s->next < s->b->rows.count && s->b->rows.data[s->next].address <= address)
		s->now = &s->b->rules.data[s->b->rows.data[s->next++].rule].rule;
}

/* What `lower` says where `upper` says nothing. */
static int overlay(const struct builder *upper, const struct builder *lower, struct builder *both)
{
	static const struct unwind_rule NONE = {};
	struct side up = {upper, 0, &NONE}, low = {lower, 0, &NONE};
	int err = 0;

	while (!err && (up.next < upper->rows.count || low.next < lower->rows.count)) {
		uint64_t a = next_address(&up), b = next_address(&low), address = min_u64(a, b);

		go_to(&up, address);
		go_to(&low, address);
		err = add_row(both, address, up.now->cfa == UNWIND_CFA_NONE ? low.now : up.now);
	}
	return err;
}

static void take_over(struct builder *b, struct builder *from)
{
	struct builder old = *b;

	*b = *from;
	b->numbers.owner = b;
	*from = old;
}

/* A program with parts in C has .eh_frame for these. */
static int add_go(struct elf_file *file, size_t limit, struct builder *b, struct cfi_counts *counts)
{
	struct builder go, both;
	struct cfi_counts go_counts;
	int err;

	builder__init(&go, limit);
	builder__init(&both, limit);
	err = go_table__each_row(file, limit, add_row, &go, &go_counts);
	if (!err)
		err = overlay(b, &go, &both);
	if (!err) {
		take_over(b, &both);
		counts->functions += go_counts.functions;
		counts->damaged += go_counts.damaged;
	}
	builder__fini(&go);
	builder__fini(&both);
	return err;
}

static int read_file(struct elf_file *file, size_t limit, const struct extras *extras,
		     struct builder *b, struct cfi_counts *counts)
{
	int err = read_section(file, ".eh_frame", extras, b, counts), other;
	struct cfi_counts debug_counts;
	struct builder debug;

	if (err == -ENOMEM || err == -EFBIG)
		return err;
	other = add_go(file, limit, b, counts);
	if (other != -ENOENT)
		return other;
	if (!err && counts->functions >= FEW_FUNCTIONS)
		return err;
	builder__init(&debug, limit);
	other = read_section(file, ".debug_frame", extras, &debug, &debug_counts);
	if (!other && (err || debug_counts.functions > counts->functions)) {
		take_over(b, &debug);
		*counts = debug_counts;
		err = 0;
	}
	builder__fini(&debug);
	return other == -ENOMEM || (other == -EFBIG && extras->track_rbx) ? other : err;
}

static int build_with(struct elf_file *file, size_t limit, const struct extras *extras,
		      struct unwind_table_image *image)
{
	struct builder b;
	int err;

	*image = (struct unwind_table_image){};
	builder__init(&b, limit);
	err = read_file(file, limit, extras, &b, &image->counts);
	if (!err || err == -ENODATA)
		err = add_what_is_undescribed(file, &b);
	if (!err && extras->follow_code)
		err = add_code(file, &b);
	if (!err && !b.rows.count)
		err = -ENODATA;
	if (!err)
		err = make_image(&b, limit, image);
	builder__fini(&b);
	return err;
}

int unwind_table__build(struct elf_file *file, size_t limit, struct unwind_table_image *image)
{
	static const struct extras ALL = {.follow_code = true, .track_rbx = true}, NOTHING = {};
	int err;

	*image = (struct unwind_table_image){};
	if (!elf_file__is_x86_64(file))
		return -ENOTSUP;
	err = build_with(file, limit, &ALL, image);
	return err == -EFBIG ? build_with(file, limit, &NOTHING, image) : err;
}

struct piece_rows {
	struct builder *b;
	const struct unwind_piece *piece;
};

static int add_row_of_piece(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct piece_rows *r = context;

	if (address < r->piece->start || address >= r->piece->end)
		return 0;
	return add_row(r->b, address, rule);
}

int unwind_table__build_pieces(const struct unwind_piece *pieces, size_t count, size_t limit,
			       struct unwind_table_image *image)
{
	static const struct unwind_rule NONE = {};
	struct builder b;
	int err = 0;

	*image = (struct unwind_table_image){};
	builder__init(&b, limit);
	for (size_t i = 0; i < count && !err; i++) {
		struct piece_rows rows = {&b, &pieces[i]};
		struct cfi_counts counts;

		err = cfi_each_row(&pieces[i].section, add_row_of_piece, &rows, &counts);
		if (!err)
			err = add_row(&b, pieces[i].end, &NONE);
		image->counts.functions += counts.functions;
		image->counts.damaged += counts.damaged;
	}
	if (!err && !image->counts.functions)
		err = -ENODATA;
	if (!err)
		err = make_image(&b, limit, image);
	builder__fini(&b);
	return err;
}

static int add_made_frame(struct builder *b, const struct made_frame *frame)
{
	static const struct unwind_rule LATER = {.cfa = UNWIND_CFA_LATER};
	const struct unwind_rule rule = {
		.cfa = UNWIND_CFA_SP,
		.cfa_register = UNWIND_X86_RSP,
		.fp = frame->fp_offset ? UNWIND_FP_AT_CFA : UNWIND_FP_SAME,
		.ra = UNWIND_RA_AT_CFA,
		.cfa_offset = (int32_t)frame->size,
		.fp_offset = frame->fp_offset,
		.ra_offset = (int16_t)frame->ra_offset,
	};
	int err = add_row(b, frame->start, &rule);

	return err ? err : add_row(b, frame->end, &LATER);
}

int unwind_table__build_frames(const struct made_frame *frames, size_t count, size_t limit,
			       struct unwind_table_image *image)
{
	struct builder b;
	int err = count ? 0 : -ENODATA;

	*image = (struct unwind_table_image){};
	builder__init(&b, limit);
	for (size_t i = 0; i < count && !err; i++)
		err = add_made_frame(&b, &frames[i]);
	image->counts.functions = count;
	if (!err)
		err = make_image(&b, limit, image);
	builder__fini(&b);
	return err;
}

void unwind_table_image__fini(struct unwind_table_image *image)
{
	free(image->bytes);
	*image = (struct unwind_table_image){};
}

/* ---- what was not built here ----------------------------------------------------------------- */

/* As lay_out() does it; *rules is how many there are. */
static bool is_laid_out(const struct unwind_table_image *image, uint32_t *rules)
{
	const struct unwind_table *t = &image->table;
	uint64_t size = t->index;

	if (t->dictionary || t->segment || !t->buckets || !t->index ||
	    t->index % sizeof(struct unwind_rule) || t->base % UNWIND_BUCKET_SIZE ||
	    (t->number_size != 1 && t->number_size != 2) || image->rows > image->size)
		return false;
	*rules = t->index / sizeof(struct unwind_rule);
	size += ((uint64_t)t->buckets + 1) * sizeof(uint32_t);
	if (t->numbers != size)
		return false;
	size += image->rows * t->number_size;
	if (t->addresses != size)
		return false;
	return image->size == align_up(size + image->rows + UNWIND_SLACK, IMAGE_ALIGNMENT) &&
	       image->size <= UINT32_MAX;
}

/* Buckets follow one another, and have no more rows than addresses. */
static bool index_is_sound(const uint32_t *index, uint32_t buckets, uint64_t rows)
{
	bool sound = index[0] >= 1 && index[buckets] == rows;

	for (uint32_t i = 0; i < buckets; i++)
		sound &= index[i] <= index[i + 1] && index[i + 1] - index[i] <= UNWIND_BUCKET_SIZE;
	return sound;
}

static uint32_t largest_number(const struct unwind_table_image *image)
{
	const unsigned char *bytes = (const unsigned char *)image->bytes + image->table.numbers;
	const uint16_t *words = (const void *)bytes;
	uint32_t largest = 0;

	if (image->table.number_size == 1)
		for (uint64_t i = 0; i < image->rows; i++)
			largest = bytes[i] > largest ? bytes[i] : largest;
	else
		for (uint64_t i = 0; i < image->rows; i++)
			largest = words[i] > largest ? words[i] : largest;
	return largest;
}

bool unwind_table_image__is_sound(const struct unwind_table_image *image)
{
	const struct unwind_table *t = &image->table;
	uint32_t rules;

	return is_laid_out(image, &rules) &&
	       index_is_sound(
		       (const uint32_t *)(const void *)((const char *)image->bytes + t->index),
		       t->buckets, image->rows) &&
	       largest_number(image) < rules;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

const struct unwind_rule *unwind_table__find(const void *segment, const struct unwind_table *t,
					     uint64_t address)
{
	static const struct unwind_rule NONE = {};
	const unsigned char *bytes = segment;
	uint64_t offset = address - t->base, bucket = offset >> UNWIND_BUCKET_BITS;
	const uint32_t *index = (const void *)(bytes + t->index);
	const unsigned char *addresses = bytes + t->addresses, *numbers = bytes + t->numbers;
	unsigned int low = offset & (UNWIND_BUCKET_SIZE - 1);
	uint32_t row, number;

	if (address < t->base || bucket >= t->buckets)
		return &NONE;
	for (row = index[bucket]; row < index[bucket + 1] && addresses[row] <= low; row++)
		;
	row--;
	number = t->number_size == 1 ? numbers[row]
				     : ((const uint16_t *)(const void *)numbers)[row];
	return (const struct unwind_rule *)(const void *)(bytes + t->dictionary) + number;
}
