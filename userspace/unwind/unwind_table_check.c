/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks tables that another process built.
 *
 * The walks, in the kernel and here, follow a table's index, numbers and rules without checks. So a
 * table from disk or from a builder (which has read an untrusted file) is compared with what a
 * builder writes: each part ends where the next begins, and each field has a value that builders
 * use. Other rules are harmless today, but might not be in a later walk.
 */
#include "unwind/unwind_table_check.h"

#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "unwind/unwind_table.h"

#define REGISTERS  16
#define PLT_ENTRY  16
#define COUNTS_MAX UINT32_MAX
#define WORD	   8

/* ---- layout ---------------------------------------------------------------------------------- */

static uint64_t rules_of(const struct unwind_table_image *image)
{
	return image->table.index / sizeof(struct unwind_rule);
}

static const uint32_t *index_of(const struct unwind_table_image *image)
{
	return (const void *)((const char *)image->bytes + image->table.index);
}

static const unsigned char *addresses_of(const struct unwind_table_image *image)
{
	return (const unsigned char *)image->bytes + image->table.addresses;
}

static uint32_t number_at(const struct unwind_table_image *image, uint64_t row)
{
	const unsigned char *numbers = (const unsigned char *)image->bytes + image->table.numbers;

	if (image->table.number_size == 1)
		return numbers[row];
	return ((const uint16_t *)(const void *)numbers)[row];
}

/* Base and segment are valid, and the addresses of the last bucket do not overflow. */
static bool place_is_good(const struct unwind_table *t)
{
	uint64_t size = (uint64_t)t->buckets << UNWIND_BUCKET_BITS, end;

	return !t->dictionary && !t->segment && t->buckets && t->base % UNWIND_BUCKET_SIZE == 0 &&
	       (!__builtin_add_overflow(t->base, size, &end) || !end);
}

/* The layout is that of lay_out(). The sums cannot overflow. */
static bool is_laid_out(const struct unwind_table_image *image)
{
	const struct unwind_table *t = &image->table;
	uint64_t size = t->index, rules = rules_of(image);

	if (!image->bytes || (uintptr_t)image->bytes % WORD || image->size > UINT32_MAX ||
	    image->rows > image->size || image->rows < 2 || !place_is_good(t))
		return false;
	if (t->index % sizeof(struct unwind_rule) || !rules || rules > UNWIND_RULES_MAX ||
	    t->number_size != (rules <= UINT8_MAX + 1 ? 1 : 2))
		return false;
	size += ((uint64_t)t->buckets + 1) * sizeof(uint32_t);
	if (t->numbers != size)
		return false;
	size += image->rows * t->number_size;
	if (t->addresses != size)
		return false;
	return image->size == align_up(size + image->rows + UNWIND_SLACK, UNWIND_IMAGE_ALIGNMENT);
}

/* The bytes after the addresses, which a search may read, are zero. */
static bool slack_is_empty(const struct unwind_table_image *image)
{
	const unsigned char *bytes = image->bytes;
	unsigned char any = 0;

	for (uint64_t i = image->table.addresses + image->rows; i < image->size; i++)
		any |= bytes[i];
	return !any;
}

static bool counts_are_good(const struct unwind_table_image *image)
{
	const struct cfi_counts *c = &image->counts;

	return image->left <= COUNTS_MAX && c->functions <= COUNTS_MAX &&
	       c->damaged <= COUNTS_MAX && c->unsupported <= COUNTS_MAX &&
	       c->overlapping <= COUNTS_MAX;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Buckets cover all rows without gaps; none has more rows than addresses. */
static bool index_is_good(const struct unwind_table_image *image)
{
	const uint32_t *index = index_of(image), buckets = image->table.buckets;
	bool good = index[0] == 1 && index[buckets] == image->rows;

	for (uint32_t i = 0; i < buckets; i++)
		good &= index[i] <= index[i + 1] && index[i + 1] - index[i] <= UNWIND_BUCKET_SIZE;
	/* the first and the last bucket have rows */
	return good && index[1] > 1 && index[buckets] > index[buckets - 1];
}

/* Needs a good index. */
static bool rows_are_sorted(const struct unwind_table_image *image)
{
	const unsigned char *addresses = addresses_of(image);
	const uint32_t *index = index_of(image);
	bool good = !addresses[0];

	for (uint32_t bucket = 0; bucket < image->table.buckets; bucket++)
		for (uint32_t row = index[bucket] + 1; row < index[bucket + 1]; row++)
			good &= addresses[row - 1] <= addresses[row];
	return good;
}

static bool numbers_are_good(const struct unwind_table_image *image)
{
	uint64_t rules = rules_of(image);
	bool good = true;

	for (uint64_t row = 0; row < image->rows; row++)
		good &= number_at(image, row) < rules;
	return good;
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* All fields but cfa and ra are zero. */
static bool has_kind_only(const struct unwind_rule *rule)
{
	return !rule->cfa_register && !rule->fp && !rule->rbx && !rule->cfa_offset &&
	       !rule->fp_offset && !rule->ra_offset && !rule->cfa_addend;
}

static bool fp_is_good(const struct unwind_rule *rule)
{
	if (rule->fp == UNWIND_FP_AT_CFA || rule->fp == UNWIND_FP_AT_FP)
		return true;
	return rule->fp <= UNWIND_FP_UNKNOWN && !rule->fp_offset;
}

static bool ra_is_good(const struct unwind_rule *rule)
{
	switch (rule->ra) {
	case UNWIND_RA_AT_CFA:
	case UNWIND_RA_INTERRUPTED:
		return true;
	case UNWIND_RA_INFERRED:
		return rule->ra_offset == -WORD;
	case UNWIND_RA_REGISTER:
		return rule->ra_offset >= 0 && rule->ra_offset < REGISTERS;
	default:
		return false;
	}
}

/* cfa_addend is rbx's unless it is that of a word in memory. */
static bool addend_is_good(const struct unwind_rule *rule)
{
	if (rule->cfa == UNWIND_CFA_DEREF || rule->cfa == UNWIND_CFA_DEREF_TWICE)
		return rule->rbx == UNWIND_RBX_UNTOLD;
	return rule->rbx == UNWIND_RBX_AT_CFA ||
	       (rule->rbx <= UNWIND_RBX_AT_CFA && !rule->cfa_addend);
}

static bool frame_is_good(const struct unwind_rule *rule)
{
	switch (rule->cfa) {
	case UNWIND_CFA_SP:
	case UNWIND_CFA_PLT:
		if (rule->cfa_register != UNWIND_X86_RSP)
			return false;
		break;
	case UNWIND_CFA_FP:
		if (rule->cfa_register != UNWIND_X86_RBP)
			return false;
		break;
	default: /* UNWIND_CFA_REGISTER, UNWIND_CFA_DEREF, UNWIND_CFA_DEREF_TWICE */
		if (rule->cfa_register >= REGISTERS)
			return false;
	}
	if (rule->cfa == UNWIND_CFA_PLT && (rule->cfa_offset <= 0 || rule->cfa_offset >= PLT_ENTRY))
		return false;
	return fp_is_good(rule) && ra_is_good(rule) && addend_is_good(rule);
}

/* Switches to another stack; the kind decides which fields are used. */
static bool switch_is_good(const struct unwind_rule *rule)
{
	if (rule->fp || rule->rbx || rule->ra || rule->cfa_offset < 0)
		return false;
	if (rule->cfa == UNWIND_CFA_SWITCH || rule->cfa == UNWIND_CFA_GO_DEPTH)
		return !rule->cfa_register && !rule->ra_offset && !rule->cfa_addend &&
		       (rule->fp_offset == 0 ||
			(rule->cfa == UNWIND_CFA_GO_DEPTH && rule->fp_offset > 0));
	return rule->cfa_register <= 1 && rule->ra_offset > 0;
}

static bool rule_is_good(const struct unwind_rule *rule)
{
	switch (rule->cfa) {
	case UNWIND_CFA_NONE:
		return (!rule->ra || rule->ra == UNWIND_RA_INFERRED) && has_kind_only(rule);
	case UNWIND_CFA_SP:
	case UNWIND_CFA_FP:
	case UNWIND_CFA_REGISTER:
	case UNWIND_CFA_DEREF:
	case UNWIND_CFA_DEREF_TWICE:
	case UNWIND_CFA_PLT:
		return frame_is_good(rule);
	case UNWIND_CFA_SIGNAL:
	case UNWIND_CFA_ROOT:
	case UNWIND_CFA_UNKNOWN:
	case UNWIND_CFA_LATER:
	case UNWIND_CFA_STARTER:
		return !rule->ra && has_kind_only(rule);
	case UNWIND_CFA_SWITCH:
	case UNWIND_CFA_GO_DEPTH:
	case UNWIND_CFA_GO_CALLER:
	case UNWIND_CFA_GO_INTERRUPTED:
		return switch_is_good(rule);
	default:
		return false;
	}
}

static bool rules_are_good(const struct unwind_table_image *image)
{
	const struct unwind_rule *rules = image->bytes;

	for (uint64_t i = 0; i < rules_of(image); i++)
		if (!rule_is_good(&rules[i]))
			return false;
	return !memcmp(&rules[number_at(image, 0)], UNWIND_NO_RULE, sizeof(struct unwind_rule));
}

int unwind_table_image__check(const struct unwind_table_image *image)
{
	if (!is_laid_out(image) || !slack_is_empty(image) || !counts_are_good(image) ||
	    !index_is_good(image) || !rows_are_sorted(image) || !numbers_are_good(image) ||
	    !rules_are_good(image))
		return -EBADMSG;
	return 0;
}
