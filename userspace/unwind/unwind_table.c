/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * After all rows are added (unwind_rows.h), rules are numbered by frequency, so that the most used
 * ones share cache lines. Index, numbers and addresses are then laid out in one block.
 */
#include "unwind/unwind_table.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/order.h"
#include "elf/elf_sections.h"
#include "unwind/go_table.h"
#include "unwind/undescribed.h"
#include "unwind/unwind_rows.h"

#define FEW_FUNCTIONS 8 /* as many as the C runtime's start files have */
#define CODE_SIZE_MAX (UINT64_C(4) << 30)

/* The build of one file's table. */
struct build {
	struct elf_file *file;
	size_t limit; /* of the image */
	bool whole;   /* else no rows for code without CFI, no rbx: the table would be too large */
	struct build_budget *budget;
};

/* ---- layout ---------------------------------------------------------------------------------- */

DEFINE_ORDER(compare_uses, struct counted_rule, DESCENDING(uses) ?: ASCENDING(number));

/* Sorts the rules by use and renumbers the rows. */
static int renumber_rules(struct unwind_rows *r)
{
	_cleanup_free_ uint32_t *changed = calloc(r->rules.count + 1, sizeof(*changed));

	if (!changed)
		return -ENOMEM;
	for (size_t i = 0; i < r->rows.count; i++)
		r->rules.data[r->rows.data[i].rule].uses++;
	vec_sort(&r->rules, compare_uses);
	for (size_t i = 0; i < r->rules.count; i++)
		changed[r->rules.data[i].number] = i;
	for (size_t i = 0; i < r->rows.count; i++)
		r->rows.data[i].rule = changed[r->rows.data[i].rule];
	hashmap__clear(&r->rules.index); /* it has the old numbers */
	return 0;
}

/* Row 0 precedes all addresses. */
static int lay_out(const struct unwind_rows *r, size_t limit, struct unwind_table_image *image)
{
	const struct unwind_row *first = &r->rows.data[0], *last = &r->rows.data[r->rows.count - 1];
	struct unwind_table *t = &image->table;
	uint64_t rows = r->rows.count + 1, size, buckets;

	t->base = first->address & ~(uint64_t)(UNWIND_BUCKET_SIZE - 1);
	if (last->address - t->base > CODE_SIZE_MAX)
		return build_budget__refuse(r->budget, TABLE_REFUSAL_SIZE);
	buckets = ((last->address - t->base) >> UNWIND_BUCKET_BITS) + 1;
	t->buckets = buckets;
	t->number_size = r->rules.count <= UINT8_MAX + 1 ? 1 : 2;
	size = r->rules.count * sizeof(struct unwind_rule);
	t->dictionary = 0;
	t->index = size;
	size += (buckets + 1) * sizeof(uint32_t);
	t->numbers = size;
	size += rows * t->number_size;
	t->addresses = size;
	size = align_up(size + rows + UNWIND_SLACK, UNWIND_IMAGE_ALIGNMENT);
	if (size > limit || size > UINT32_MAX)
		return build_budget__refuse(r->budget, TABLE_REFUSAL_SIZE);
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

static void fill_in(const struct unwind_rows *r, uint32_t none, struct unwind_table_image *image)
{
	const struct unwind_table *t = &image->table;
	unsigned char *bytes = image->bytes, *addresses = bytes + t->addresses;
	struct unwind_rule *dictionary = (void *)(bytes + t->dictionary);
	uint32_t *index = (void *)(bytes + t->index);
	size_t bucket = 0;

	for (size_t i = 0; i < r->rules.count; i++)
		dictionary[i] = r->rules.data[i].rule;
	set_number(image, 0, none);
	for (size_t i = 0; i < r->rows.count; i++) {
		const struct unwind_row *row = &r->rows.data[i];

		while (bucket <= (row->address - t->base) >> UNWIND_BUCKET_BITS)
			index[bucket++] = i + 1;
		addresses[i + 1] = row->address & (UNWIND_BUCKET_SIZE - 1);
		set_number(image, i + 1, row->rule);
	}
	while (bucket <= t->buckets)
		index[bucket++] = r->rows.count + 1;
}

static int make_image(struct unwind_rows *r, size_t limit, struct unwind_table_image *image)
{
	uint32_t none;
	int err = unwind_rows__number(r, UNWIND_NO_RULE, &none)
			?: renumber_rules(r)
			?: lay_out(r, limit, image);

	if (err)
		return err;
	for (none = 0; !unwind_rows__is_rule(r, none, UNWIND_NO_RULE); none++)
		;
	if (posix_memalign(&image->bytes, UNWIND_IMAGE_ALIGNMENT, image->size))
		return -ENOMEM;
	memset(image->bytes, 0, image->size);
	fill_in(r, none, image);
	return 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int run_section(const struct cfi_section *section, struct unwind_rows *r,
		       struct cfi_counts *counts)
{
	unwind_rows__clear(r);
	return cfi_each_row(section, unwind_rows__add, r, counts);
}

static bool has_frames_by_rbx(const struct unwind_rows *r)
{
	return any_of(r->rules.data, r->rules.count, known,
		      known->rule.cfa_register == UNWIND_X86_RBX);
}

static int run_section_twice(struct cfi_section *section, bool track_rbx, struct unwind_rows *r,
			     struct cfi_counts *counts)
{
	int err = run_section(section, r, counts);

	if (err || !track_rbx || !has_frames_by_rbx(r))
		return err;
	section->tracks_rbx = true;
	return run_section(section, r, counts);
}

/*
 * Where the kernel starts the program, without a return address; 0: it is a library, whose entry
 * may be any function. One with an interpreter can be run as well.
 */
static uint64_t program_entry(struct elf_file *file)
{
	struct elf_section interpreter;

	return elf_file__is_program(file) || !elf_file__find_section(file, ".interp", &interpreter)
		       ? elf_file__entry(file)
		       : 0;
}

static int read_section(const struct build *b, const char *name, struct unwind_rows *r,
			struct cfi_counts *counts)
{
	struct cfi_section section = {.is_eh_frame = !strcmp(name, ".eh_frame"),
				      .entry = program_entry(b->file),
				      .budget = b->budget};
	_cleanup_free_ void *data = NULL;
	struct elf_section header;
	int err = elf_file__find_section(b->file, name, &header);

	if (err)
		return err == -ENOENT ? -ENODATA : err;
	if (header.type == SHT_NOBITS)
		return -ENODATA;
	if (header.size > b->budget->limits.input)
		return build_budget__refuse(b->budget, TABLE_REFUSAL_INPUT);
	err = build_budget__take(b->budget, header.size);
	if (err)
		return err;
	err = elf_file__section_data(b->file, name, header.size, &data, &section.size);
	section.data = data;
	section.address = header.address;
	if (!err)
		err = run_section_twice(&section, b->whole, r, counts);
	build_budget__give_back(b->budget, header.size);
	return err || r->rows.count ? err : -ENODATA;
}

/* One of two lists of rows that are overlaid. */
struct side {
	const struct unwind_rows *of;
	size_t next;
	const struct unwind_rule *now; /* at the current address */
};

static uint64_t next_address(const struct side *s)
{
	return s->next < s->of->rows.count ? s->of->rows.data[s->next].address : UINT64_MAX;
}

static void go_to(struct side *s, uint64_t address)
{
	while (s->next < s->of->rows.count && s->of->rows.data[s->next].address <= address)
		s->now = &s->of->rules.data[s->of->rows.data[s->next++].rule].rule;
}

/* Adds the rows of `upper`, and where it has no rule those of `lower`. */
static int overlay_rows(const struct unwind_rows *upper, const struct unwind_rows *lower,
			struct unwind_rows *both)
{
	struct side up = {upper, 0, UNWIND_NO_RULE}, low = {lower, 0, UNWIND_NO_RULE};
	int err = 0;

	while (!err && (up.next < upper->rows.count || low.next < lower->rows.count)) {
		uint64_t address = min_u64(next_address(&up), next_address(&low));

		go_to(&up, address);
		go_to(&low, address);
		err = unwind_rows__add(both, address,
				       up.now->cfa == UNWIND_CFA_NONE ? low.now : up.now);
	}
	return err;
}

static void take_over(struct unwind_rows *r, struct unwind_rows *from)
{
	struct unwind_rows old = *r;

	*r = *from;
	*from = old;
}

/* Adds Go's rows. A program with parts in C has .eh_frame for these. */
static int add_go(const struct build *b, struct unwind_rows *r, struct cfi_counts *counts)
{
	struct unwind_rows go, both;
	struct cfi_counts go_counts;
	int err;

	unwind_rows__init(&go, b->limit, b->budget);
	unwind_rows__init(&both, b->limit, b->budget);
	err = go_table__each_row(b->file, b->limit, b->budget, unwind_rows__add, &go, &go_counts)
		      ?: overlay_rows(r, &go, &both);
	if (!err) {
		take_over(r, &both);
		counts->functions += go_counts.functions;
		counts->damaged += go_counts.damaged;
	}
	unwind_rows__fini(&go);
	unwind_rows__fini(&both);
	return err;
}

static int read_file(const struct build *b, struct unwind_rows *r, struct cfi_counts *counts)
{
	int err = read_section(b, ".eh_frame", r, counts), other;
	struct cfi_counts debug_counts;
	struct unwind_rows debug;

	if (err == -ENOMEM || err == -EFBIG)
		return err;
	other = add_go(b, r, counts);
	if (other != -ENOENT)
		return other;
	if (!err && counts->functions >= FEW_FUNCTIONS)
		return err;
	unwind_rows__init(&debug, b->limit, b->budget);
	other = read_section(b, ".debug_frame", &debug, &debug_counts);
	if (!other && (err || debug_counts.functions > counts->functions)) {
		take_over(r, &debug);
		*counts = debug_counts;
		err = 0;
	}
	unwind_rows__fini(&debug);
	if (!err && other == -EFBIG && b->budget->refusal == TABLE_REFUSAL_INPUT) {
		b->budget->refusal =
			TABLE_REFUSAL_NONE; /* the rows of .eh_frame are a table, too */
		return 0;
	}
	return other == -ENOMEM || (other == -EFBIG && (err || b->whole)) ? other : err;
}

static int build_with(const struct build *b, struct unwind_table_image *image)
{
	struct unwind_rows r;
	int err;

	*image = (struct unwind_table_image){};
	unwind_rows__init(&r, b->limit, b->budget);
	err = read_file(b, &r, &image->counts);
	if (!err || err == -ENODATA)
		err = undescribed__add_known(b->file, &r);
	if (!err && b->whole)
		err = undescribed__follow_code(b->file, &r);
	else if (!err)
		r.left += undescribed__size(b->file, &r);
	image->left = min_u64(r.left, UINT32_MAX);
	if (!err && !r.rows.count)
		err = -ENODATA;
	if (!err)
		err = make_image(&r, b->limit, image);
	unwind_rows__fini(&r);
	return err;
}

/* Without rules from instructions there are fewer rows. */
static bool may_fit_without(const struct build_budget *budget)
{
	return budget->refusal != TABLE_REFUSAL_TIME && budget->refusal != TABLE_REFUSAL_INPUT;
}

int unwind_table__build_within(struct elf_file *file, size_t limit,
			       const struct build_limits *limits, struct unwind_table_image *image,
			       enum table_refusal *refusal)
{
	struct build_budget budget;
	struct build b = {.file = file, .limit = limit, .whole = true, .budget = &budget};
	int err;

	*refusal = TABLE_REFUSAL_NONE;
	*image = (struct unwind_table_image){};
	if (!elf_file__is_x86_64(file))
		return -ENOTSUP;
	build_budget__start(&budget, limits);
	err = build_with(&b, image);
	if (err == -EFBIG && may_fit_without(&budget)) {
		log_debug(LOG_UNWIND, "%s (%zu bytes at most): rebuilt without undescribed code",
			  table_refusal_text(budget.refusal), limit);
		budget.refusal = TABLE_REFUSAL_NONE;
		b.whole = false;
		err = build_with(&b, image);
	}
	if (err == -EFBIG)
		*refusal = budget.refusal ? budget.refusal : TABLE_REFUSAL_SIZE;
	return err;
}

int unwind_table__build(struct elf_file *file, size_t limit, struct unwind_table_image *image)
{
	enum table_refusal refusal;

	return unwind_table__build_within(file, limit, &BUILD_LIMITS, image, &refusal);
}

/* For all pieces of a process together. Their sections are in memory already. */
static const struct build_limits PIECES_LIMITS = {
	.rows = UINT64_C(4) << 20,
	.memory = UINT64_C(96) << 20,
	.cpu_ns = UINT64_C(1000000000),
};

struct piece_rows {
	struct unwind_rows *rows;
	const struct unwind_piece *piece;
};

static int add_row_of_piece(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct piece_rows *p = context;

	if (address < p->piece->start || address >= p->piece->end)
		return 0;
	return unwind_rows__add(p->rows, address, rule);
}

int unwind_table__build_pieces(const struct unwind_piece *pieces, size_t count, size_t limit,
			       struct unwind_table_image *image)
{
	struct build_budget budget;
	struct unwind_rows r;
	int err = 0;

	*image = (struct unwind_table_image){};
	build_budget__start(&budget, &PIECES_LIMITS);
	unwind_rows__init(&r, limit, &budget);
	for (size_t i = 0; i < count && !err; i++) {
		struct cfi_section section = pieces[i].section;
		struct piece_rows rows = {&r, &pieces[i]};
		struct cfi_counts counts;

		section.budget = &budget;
		err = cfi_each_row(&section, add_row_of_piece, &rows, &counts)
			      ?: unwind_rows__add(&r, pieces[i].end, UNWIND_NO_RULE);
		image->counts.functions += counts.functions;
		image->counts.damaged += counts.damaged;
	}
	if (!err && !image->counts.functions)
		err = -ENODATA;
	if (!err)
		err = make_image(&r, limit, image);
	unwind_rows__fini(&r);
	return err;
}

static int add_made_frame(struct unwind_rows *r, const struct made_frame *frame)
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

	return unwind_rows__add(r, frame->start, &rule) ?: unwind_rows__add(r, frame->end, &LATER);
}

int unwind_table__build_frames(const struct made_frame *frames, size_t count, size_t limit,
			       struct unwind_table_image *image)
{
	struct unwind_rows r;
	int err = count ? 0 : -ENODATA;

	*image = (struct unwind_table_image){};
	unwind_rows__init(&r, limit, NULL);
	for (size_t i = 0; i < count && !err; i++)
		err = add_made_frame(&r, &frames[i]);
	image->counts.functions = count;
	if (!err)
		err = make_image(&r, limit, image);
	unwind_rows__fini(&r);
	return err;
}

void unwind_table_image__fini(struct unwind_table_image *image)
{
	free(image->bytes);
	*image = (struct unwind_table_image){};
}
