/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All entries are read first, because functions may be in any order; then the instructions of each
 * function are run (cfi_machine.c). In .debug_frame an FDE may refer to a later CIE, so CIEs are
 * read before FDEs. struct fde is small, because a section may have as many as fit.
 */
#include "unwind/cfi.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/vec.h"
#include "unwind/build_budget.h"
#include "unwind/cfi_machine.h"
#include "unwind/cfi_private.h"

#define PADDING_MAX 16
#define NO_CIE	    UINT32_MAX
#define ENTRY_STEPS 4

/* A function; all but addresses are offsets in the section. */
struct fde {
	uint64_t start; /* ELF virtual address */
	uint32_t size;
	uint32_t instructions, instructions_end;
	uint32_t cie;
};

struct cfi_reader {
	const struct cfi_section *section;
	struct cfi_counts *counts;
	VEC(struct cie) cies; /* in the order of their offsets */
	VEC(struct fde) fdes;
	bool skips_cies, skips_fdes; /* in this pass */
};

static void reader__fini(struct cfi_reader *r)
{
	build_budget__give_back(r->section->budget, r->cies.count * sizeof(*r->cies.data) +
							    r->fdes.count * sizeof(*r->fdes.data));
	vec_free(&r->cies);
	vec_free(&r->fdes);
}

/* ---- entries --------------------------------------------------------------------------------- */

static uint64_t offset_of(const struct cfi_reader *r, const uint8_t *p)
{
	return p - r->section->data;
}

uint64_t cfi_read_encoded(const struct cfi_section *section, struct cursor *c, uint8_t encoding)
{
	static const uint8_t SIZES[] = {8, 0, 2, 4, 8}; /* absptr, LEB128, data2, data4, data8 */
	bool is_signed = encoding & DW_EH_PE_signed, relative = (encoding & 0x70) == DW_EH_PE_pcrel;
	uint64_t base = relative ? section->address + (c->at - section->data) : 0, value;
	unsigned int form = encoding & 7, unused;

	if (encoding & DW_EH_PE_indirect || (!relative && encoding & 0x70) ||
	    form >= sizeof(SIZES) || (encoding & 0x0f) == DW_EH_PE_signed) {
		c->bad = true;
		return 0;
	}
	if (form == DW_EH_PE_uleb128)
		return base + (is_signed ? (uint64_t)cursor__sleb(c) : cursor__uleb(c));
	value = cursor__fixed(c, SIZES[form]);
	unused = 64 - 8 * SIZES[form];
	return base + (is_signed ? (uint64_t)((int64_t)(value << unused) >> unused) : value);
}

/* Skips the pointer to the personality routine. */
static void skip_personality(const struct cfi_reader *r, struct cursor *c)
{
	uint8_t encoding = cursor__u8(c);

	if (encoding == DW_EH_PE_aligned) {
		cursor__skip(c, -(r->section->address + offset_of(r, c->at)) & 7);
		cursor__skip(c, 8);
	} else {
		/* base and indirection do not change the size */
		cfi_read_encoded(r->section, c, encoding & 0x0f);
	}
}

/* An augmentation that begins with 'z'; its letters describe its data. */
static void read_augmentation(const struct cfi_reader *r, struct cursor *c, const char *letters,
			      struct cie *cie)
{
	uint64_t size = cursor__uleb(c);
	struct cursor data = cursor__take(c, size);

	cie->has_augmentation = true;
	for (const char *l = letters; *l && cie->supported; l++) {
		switch (*l) {
		case 'R':
			cie->encoding = cursor__u8(&data);
			break;
		case 'L':
			cursor__skip(&data, 1);
			break;
		case 'P':
			skip_personality(r, &data);
			break;
		case 'S':
			cie->is_signal_frame = true;
			break;
		default: /* the rest cannot be parsed */
			cie->supported = false;
		}
	}
	if (data.bad)
		cie->supported = false;
}

static void read_cie_body(const struct cfi_reader *r, struct cursor *c, struct cie *cie)
{
	uint8_t version = cursor__u8(c);
	const char *augmentation = cursor__string(c);

	cie->supported = true;
	cie->encoding = DW_EH_PE_absptr;
	if (version != 1 && version != 3 && version != 4)
		cie->supported = false;
	if (version == 4 && (cursor__u8(c) != 8 || cursor__u8(c) != 0)) /* address, segment size */
		cie->supported = false;
	cie->code_align = cursor__uleb(c);
	cie->data_align = cursor__sleb(c);
	cie->ra_register = version == 1 ? cursor__u8(c) : cursor__uleb(c);
	if (augmentation && augmentation[0] == 'z')
		read_augmentation(r, c, augmentation + 1, cie);
	else if (!augmentation || augmentation[0])
		cie->supported = false;
	if (c->bad)
		cie->supported = false;
	cie->instructions = c->at;
	cie->end = c->end;
}

/* The initial rules of all its functions. */
static void run_cie(const struct cfi_reader *r, struct cie *cie)
{
	struct cfi_machine m = {.section = r->section, .cie = cie, .rbx = {.how = UNWIND_RBX_SAME}};

	cie->initial_rbx = m.rbx;
	if (!cie->supported)
		return;
	cfi_machine__run(&m, cie->instructions, cie->end);
	cie->initial = m.rule;
	cie->initial_rbx = m.rbx;
	cie->supported = !m.failed;
}

static int add_cie(struct cfi_reader *r, uint64_t offset, struct cursor c)
{
	struct cie cie = {.offset = offset};
	int err = build_budget__take(r->section->budget, sizeof(cie));

	if (err)
		return err;
	read_cie_body(r, &c, &cie);
	run_cie(r, &cie);
	return vec_push(&r->cies, cie);
}

static uint32_t find_cie(const struct cfi_reader *r, uint64_t offset)
{
	size_t i = partition_point(r->cies.data, r->cies.count, cie, cie->offset < offset);

	return i < r->cies.count && r->cies.data[i].offset == offset ? i : NO_CIE;
}

static int add_fde(struct cfi_reader *r, struct cursor c, uint32_t number)
{
	const struct cie *cie = &r->cies.data[number];
	uint64_t start, size;

	if (!cie->supported) {
		r->counts->unsupported++;
		return 0;
	}
	start = cfi_read_encoded(r->section, &c, cie->encoding);
	size = cfi_read_encoded(r->section, &c, cie->encoding & 0x0f);
	if (cie->has_augmentation)
		cursor__skip(&c, cursor__uleb(&c));
	if (c.bad || size > UINT32_MAX || start > UINT64_MAX - size) {
		r->counts->damaged++;
		return 0;
	}
	/* the linker discarded this function: its address is 0 */
	if (!start || !size)
		return 0;
	return build_budget__take(r->section->budget, sizeof(struct fde))
		       ?: vec_push(&r->fdes, (struct fde){
						     .start = start,
						     .size = size,
						     .instructions = offset_of(r, c.at),
						     .instructions_end = offset_of(r, c.end),
						     .cie = number,
					     });
}

/*
 * One entry. In .eh_frame an id of 0 means a CIE, else it is the distance back to the CIE; in
 * .debug_frame all ones mean a CIE, else it is the CIE's offset.
 */
static int read_entry(struct cfi_reader *r, uint64_t offset, struct cursor c, bool is_64)
{
	bool eh = r->section->is_eh_frame;
	uint64_t at = offset_of(r, c.at), id = is_64 ? cursor__u64(&c) : cursor__u32(&c);
	uint32_t cie;

	if (c.bad) {
		r->counts->damaged++;
		return 0;
	}
	if (eh ? id == 0 : id == (is_64 ? UINT64_MAX : UINT32_MAX))
		return r->skips_cies ? 0 : add_cie(r, offset, c);
	if (r->skips_fdes)
		return 0;
	cie = eh && id > at ? NO_CIE : find_cie(r, eh ? at - id : id);
	if (cie != NO_CIE)
		return add_fde(r, c, cie);
	r->counts->damaged++;
	return 0;
}

/* A length of 0 ends the list, but some linkers leave such ends in the middle. */
static int read_entries(struct cfi_reader *r)
{
	struct cursor c = {.at = r->section->data, .end = r->section->data + r->section->size};
	int err = 0;

	while (!err && c.end - c.at >= 4) {
		uint64_t offset = offset_of(r, c.at), length = cursor__u32(&c);
		bool is_64 = length == UINT32_MAX;

		if (is_64)
			length = cursor__u64(&c);
		if (!length && !c.bad)
			continue;
		if (c.bad || length > (uint64_t)(c.end - c.at)) {
			r->counts->damaged++;
			break;
		}
		err = build_budget__step(r->section->budget, ENTRY_STEPS);
		if (err)
			return err;
		err = read_entry(r, offset, cursor__take(&c, length), is_64);
	}
	return err;
}

DEFINE_ORDER(compare_fdes, struct fde, ASCENDING(start) ?: ASCENDING(instructions));

static int read_section(struct cfi_reader *r)
{
	int err;

	if (r->section->size > UINT32_MAX)
		return -EFBIG;
	if (r->section->is_eh_frame)
		return read_entries(r);
	r->skips_fdes = true;
	err = read_entries(r);
	r->skips_fdes = false;
	r->skips_cies = true;
	r->counts->damaged = 0; /* the second pass finds the same */
	return err ? err : read_entries(r);
}

/* qsort() may need the same memory again. */
static int sort_fdes(struct cfi_reader *r)
{
	uint64_t bytes = r->fdes.count * sizeof(*r->fdes.data);
	bool sorted = true;
	int err;

	for (size_t i = 1; i < r->fdes.count && sorted; i++)
		sorted = compare_fdes(&r->fdes.data[i - 1], &r->fdes.data[i]) < 0;
	if (sorted)
		return 0;
	err = build_budget__take(r->section->budget, bytes);
	if (err)
		return err;
	qsort(r->fdes.data, r->fdes.count, sizeof(*r->fdes.data), compare_fdes);
	build_budget__give_back(r->section->budget, bytes);
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/*
 * A signal handler returns to the first byte of this code, which was not called. Return addresses
 * are looked up one byte before, so the function begins there.
 */
static int describe_signal_return(struct cfi_machine *m, const struct fde *fde)
{
	static const struct unwind_rule RULE = {.cfa = UNWIND_CFA_SIGNAL};

	return m->row(m->context, fde->start - 1, &RULE);
}

static int describe_function(struct cfi_reader *r, const struct fde *fde, cfi_row_fn row,
			     void *context)
{
	static const struct unwind_rule UNKNOWN = {.cfa = UNWIND_CFA_UNKNOWN};
	static const struct unwind_rule ROOT = {.cfa = UNWIND_CFA_ROOT};
	struct cfi_machine m = {
		.section = r->section,
		.cie = &r->cies.data[fde->cie],
		.rule = r->cies.data[fde->cie].initial,
		.rbx = r->cies.data[fde->cie].initial_rbx,
		.location = fde->start,
		.end = fde->start + fde->size,
		.row = row,
		.context = context,
	};
	int err;

	r->counts->functions++;
	if (r->section->entry && r->section->entry - fde->start < fde->size)
		return row(context, fde->start, &ROOT);
	err = cfi_machine__run(&m, r->section->data + fde->instructions,
			       r->section->data + fde->instructions_end);
	if (err)
		return err;
	if (m.signal_return && !m.failed)
		return describe_signal_return(&m, fde);
	if (m.failed) {
		r->counts->damaged++;
		return m.location < m.end ? row(context, m.location, &UNKNOWN) : 0;
	}
	return m.location < m.end ? cfi_machine__emit_row(&m) : 0;
}

static int report_rows(struct cfi_reader *r, cfi_row_fn row, void *context)
{
	uint64_t covered = 0;
	int err = 0;

	for (size_t i = 0; i < r->fdes.count && !err; i++) {
		const struct fde *fde = &r->fdes.data[i];

		err = build_budget__step(r->section->budget, ENTRY_STEPS);
		if (err)
			return err;
		if (fde->start < covered) {
			r->counts->overlapping++;
			continue;
		}
		if (covered && fde->start - covered >= PADDING_MAX)
			err = row(context, covered, UNWIND_NO_RULE);
		if (!err)
			err = describe_function(r, fde, row, context);
		covered = fde->start + fde->size;
	}
	return err || !covered ? err : row(context, covered, UNWIND_NO_RULE);
}

int cfi_each_row(const struct cfi_section *section, cfi_row_fn row, void *context,
		 struct cfi_counts *counts)
{
	struct cfi_reader r = {.section = section, .counts = counts};
	int err;

	*counts = (struct cfi_counts){};
	err = read_section(&r) ?: sort_fdes(&r) ?: report_rows(&r, row, context);
	reader__fini(&r);
	return err;
}
