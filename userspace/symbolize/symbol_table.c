/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which symbol covers an address.
 *
 * All addresses of a request are known first, and are few beside the symbols. So there is no table
 * of symbols: they stream past once, each is tried on the addresses that it covers, and each
 * address keeps the best. Memory grows with the addresses, whatever a file claims; elf_file bounds
 * the number of symbols and the length of names.
 *
 * A symbol with a size covers [address, address + size): a range of the sorted addresses. It is
 * left at the O(log n) nodes of a segment tree which that range consists of, where the better one
 * stays; an address has the best of the nodes above it. So a file in which every symbol covers
 * everything costs no more than another.
 *
 * A symbol without a size reaches to the next symbol, the end of its section, 64 KB, or the end that
 * symbol_extent.c finds, whichever is first. Only the last one before an address can be its answer,
 * and only if no symbol with a size reaches beyond its start: that one covers the address and is
 * better, or lies between the two. Code between two symbols with sizes (padding, linker stubs) has
 * no answer, rather than its neighbour's name.
 *
 * Of all symbols that cover an address one is taken, always the same whatever their order:
 *   1. one with a size before one without;
 *   2. the one that starts last: the innermost;
 *   3. GLOBAL before WEAK before LOCAL;
 *   4. functions before symbols without a type;
 *   5. the shortest name, then the first in byte order: malloc, not __libc_malloc;
 *   6. the smallest size.
 */
#include "symbolize/symbol_table.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/order.h"
#include "elf/elf_file.h"
#include "elf/elf_symbols.h"
#include "symbolize/module_private.h"
#include "symbolize/radix.h"
#include "symbolize/symbol_extent.h"

#define RANGES_MAX	(1u << 20) /* of a file of which all are kept */
#define AHEAD		8
#define NAME_LENGTH_MAX 4096 /* longer ones are equal in length and compared so far */

struct candidate {
	const char *name;
	uint64_t start, end;
	uint16_t name_length;
	uint8_t rank; /* by binding and type, the lowest is the best */
	bool sized;
	uint32_t uses; /* places that have it; of an unused one, the next unused one */
};

_Static_assert(NAME_LENGTH_MAX <= UINT16_MAX, "lengths fit");

/* Places have numbers of candidates, 0: none. A candidate is kept once, while a place has it. */
struct matcher {
	struct elf_file *code; /* as of symbol_source */
	bool whole;	       /* the table has all functions */
	const uint64_t *addresses;
	size_t count;
	VEC(struct candidate) candidates;
	uint32_t unused; /* first of a list */
	/* A tree over addresses: node n is above 2n and 2n + 1; address i is leaf count + i. */
	uint32_t *sized;
	/* By the first address at or behind their start: the last symbol without a size, … */
	uint32_t *unsized;
	uint64_t *sized_end; /* … and where the symbols with sizes end at the latest. */
	/* where the first symbol behind an address starts, for collect_extents() to spread */
	uint64_t *next;
};

static uint8_t symbol_rank(const struct elf_symbol *symbol)
{
	uint8_t binding = symbol->binding == STB_LOCAL ? 2 : symbol->binding == STB_WEAK ? 1 : 0;

	return binding * 2 + (symbol->type == STT_NOTYPE);
}

static int compare_names(const struct candidate *x, const struct candidate *y)
{
	if (x->name == y->name)
		return 0;
	return ASCENDING(name_length) ?: memcmp(x->name, y->name, x->name_length);
}

static bool is_better(const struct candidate *x, const struct candidate *y)
{
	int order = DESCENDING(start) ?: ASCENDING(rank);

	if (!order)
		order = compare_names(x, y) ?: ASCENDING(end);
	return order < 0;
}

/* Its number, 0: no memory. It stays if a place takes it. */
static uint32_t add_candidate(struct matcher *m, const struct candidate *candidate)
{
	uint32_t number = m->unused;

	if (number) {
		m->unused = m->candidates.data[number].uses;
		m->candidates.data[number] = *candidate;
		return number;
	}
	return vec_push(&m->candidates, *candidate) ? 0 : (uint32_t)m->candidates.count - 1;
}

static void remove_unused(struct matcher *m, uint32_t number)
{
	struct candidate *c = &m->candidates.data[number];

	if (c->uses)
		return;
	c->uses = m->unused;
	m->unused = number;
}

static void offer_candidate(struct matcher *m, uint32_t *place, uint32_t number)
{
	struct candidate *all = m->candidates.data;
	uint32_t before = *place;

	if (before && !is_better(&all[number], &all[before]))
		return;
	all[number].uses++;
	*place = number;
	if (!before)
		return;
	all[before].uses--;
	remove_unused(m, before);
}

/* Number of addresses below `address`. */
static size_t count_below(const struct matcher *m, uint64_t address)
{
	return partition_point(m->addresses, m->count, a, *a < address);
}

static void offer_range(struct matcher *m, size_t first, size_t end, uint32_t number)
{
	first += m->count;
	end += m->count;
	for (; first < end; first /= 2, end /= 2) {
		if (first & 1)
			offer_candidate(m, &m->sized[first++], number);
		if (end & 1)
			offer_candidate(m, &m->sized[--end], number);
	}
}

/* The name of one without a name is set later. The end of one without a size is its limit. */
static struct candidate candidate_of(const struct elf_symbol *symbol)
{
	bool sized = symbol->size;

	return (struct candidate){
		.name = symbol->name,
		.name_length = (uint16_t)min_u64(symbol->name_length, NAME_LENGTH_MAX),
		.start = symbol->address,
		.end = sized ? saturating_add_u64(symbol->address, symbol->size)
			     : symbol_extent_limit(symbol),
		.rank = symbol_rank(symbol),
		.sized = sized,
	};
}

/*
 * Does it cover one of the addresses, or say where an answer ends? Few do if addresses are few. A
 * symbol's end counts in any case.
 */
static bool is_wanted(void *context, const struct elf_symbol *symbol)
{
	struct matcher *m = context;
	size_t first = count_below(m, symbol->address);
	uint64_t end = saturating_add_u64(symbol->address, symbol->size);

	m->whole |= !symbol->partial;
	if (first < m->count && symbol->size)
		m->sized_end[first] = max_u64(m->sized_end[first], end);
	if (first && symbol->address < m->next[first - 1])
		return true;
	return first < m->count && (!symbol->size || end > m->addresses[first]);
}

static int visit_symbol(void *context, const struct elf_symbol *symbol)
{
	struct matcher *m = context;
	struct candidate c;
	size_t first, end;
	uint32_t number;

	c = candidate_of(symbol);
	first = count_below(m, symbol->address);
	if (first)
		m->next[first - 1] = min_u64(m->next[first - 1], symbol->address);
	if (first == m->count)
		return 0;
	end = symbol->size ? count_below(m, c.end) : 0;
	if (symbol->size && first == end)
		return 0;
	number = add_candidate(m, &c);
	if (!number)
		return -ENOMEM;
	if (symbol->size)
		offer_range(m, first, end, number);
	else
		offer_candidate(m, &m->unsized[first], number);
	remove_unused(m, number);
	return 0;
}

/* NULL: there is none. */
static const struct candidate *better_of(const struct matcher *m, const struct candidate *best,
					 uint32_t number)
{
	const struct candidate *c = &m->candidates.data[number];

	return number && (!best || is_better(c, best)) ? c : best;
}

static const struct candidate *best_sized(const struct matcher *m, size_t index)
{
	const struct candidate *best = NULL;

	for (size_t node = m->count + index; node; node /= 2)
		best = better_of(m, best, m->sized[node]);
	return best;
}

/*
 * How far an answer holds. Where no symbol starts, none can be better, and whatever covers a later
 * address covers this one.
 */
static void collect_extents(const struct matcher *m, struct symbol_match *matches)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = m->count; i-- > 0;) {
		next = min_u64(next, m->next[i]);
		matches[i].until = min_u64(matches[i].until, next);
	}
}

/* One without a size, if nothing else covers the address. */
static void match_unsized(const struct matcher *m, const struct candidate *c, uint64_t address,
			  struct symbol_match *match)
{
	uint64_t end = address < c->end ? symbol_extent_end(m->code, m->whole, c->start, c->end)
					: c->end;

	if (address < end)
		*match = (struct symbol_match){.name = c->name, .address = c->start, .until = end};
}

static void collect_matches(const struct matcher *m, struct symbol_match *matches)
{
	const struct candidate *unsized = NULL;
	uint64_t sized_end = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct candidate *best = best_sized(m, i);

		unsized = better_of(m, unsized, m->unsized[i]);
		if (m->sized_end[i] > sized_end)
			sized_end = m->sized_end[i];
		matches[i] = (struct symbol_match){.until = UINT64_MAX};
		if (best)
			matches[i] = (struct symbol_match){best->name, best->start,
							   best->end - best->start, best->end};
		else if (unsized && sized_end <= unsized->start)
			match_unsized(m, unsized, m->addresses[i], &matches[i]);
	}
	collect_extents(m, matches);
}

static void fini_matcher(struct matcher *m)
{
	vec_free(&m->candidates);
	free(m->sized);
	free(m->unsized);
	free(m->sized_end);
	free(m->next);
}

static int init_matcher(struct matcher *m)
{
	m->sized = calloc(m->count + 1, 2 * sizeof(*m->sized));
	m->unsized = calloc(m->count + 1, sizeof(*m->unsized));
	m->sized_end = calloc(m->count + 1, sizeof(*m->sized_end));
	m->next = malloc((m->count + 1) * sizeof(*m->next));
	if (!m->sized || !m->unsized || !m->sized_end || !m->next)
		return -ENOMEM;
	memset(m->next, 0xff, m->count * sizeof(*m->next));
	return vec_push(&m->candidates, (struct candidate){}); /* number 0: none */
}

/* As elf_file__each_wanted_symbol(); it is enough if one of the files is all right. */
static int read_source(const struct symbol_source *source, elf_symbol_wanted_fn wanted,
		       elf_symbol_fn visit, void *context)
{
	int err = elf_file__each_wanted_symbol(source->file, wanted, visit, context), rest;

	if (!source->rest || err == -ENOMEM || err == -EFBIG)
		return err;
	rest = elf_file__each_wanted_symbol(source->rest, wanted, visit, context);
	return rest == -ENOMEM || rest == -EFBIG || err ? rest : 0;
}

int symbol_table__match(const struct symbol_source *source, const uint64_t *addresses, size_t count,
			struct symbol_match *matches)
{
	struct matcher m = {.code = source->code, .addresses = addresses, .count = count};
	int err = init_matcher(&m) ?: read_source(source, is_wanted, visit_symbol, &m);

	if (err != -ENOMEM)
		collect_matches(&m, matches);
	fini_matcher(&m);
	return err;
}

/* ---- all symbols, for ascending addresses ---------------------------------------------------- */

/*
 * For an index, sorted once. Of the symbols that started before an address and have not ended, the
 * one that started last is its symbol, so they are a stack.
 */

struct symbol_ranges {
	struct symbol_source source;
	bool whole; /* as of matcher */
	symbol_range_fn wanted;
	void *context;
	VEC(struct candidate) candidates;
	VEC(struct radix_item)
	order; /* numbers of candidates, by their starts; of equal ones the best comes last */
	/* those from `next` on start behind the last search; the first `open` ones are the stack */
	size_t next, open;
	int err;
};

/* One with a size counts even if its name cannot be read: where it ends. */
static bool add_range(void *context, const struct elf_symbol *symbol)
{
	struct symbol_ranges *r = context;
	struct candidate c = candidate_of(symbol);

	r->whole |= !symbol->partial;
	if (r->err || !r->wanted(r->context, c.start, c.end))
		return false;
	if (symbol->size)
		r->err = r->candidates.count < RANGES_MAX ? vec_push(&r->candidates, c) : -EFBIG;
	return true;
}

static int name_range(void *context, const struct elf_symbol *symbol)
{
	struct symbol_ranges *r = context;
	struct candidate c;

	if (r->err)
		return r->err;
	c = candidate_of(symbol);
	if (!symbol->size)
		return r->candidates.count < RANGES_MAX ? vec_push(&r->candidates, c) : -EFBIG;
	r->candidates.data[r->candidates.count - 1] = c;
	return 0;
}

static int compare_starting_together(const void *a, const void *b, void *context)
{
	const struct candidate *all = context;
	const struct radix_item *p = a, *q = b;
	const struct candidate *x = &all[p->value], *y = &all[q->value];

	if (!x->name || !y->name)
		return order_of(x->name, y->name);
	return is_better(x, y) ? 1 : is_better(y, x) ? -1 : order_of(q->value, p->value);
}

static void swap_items(struct radix_item *a, struct radix_item *b)
{
	struct radix_item kept = *a;

	*a = *b;
	*b = kept;
}

static bool is_same_symbol(const struct candidate *x, const struct candidate *y)
{
	return x->name && y->name && x->end == y->end && x->rank == y->rank && !compare_names(x, y);
}

/* The names of those that are behind: neighbours in memory are not in the file. */
static void fetch_ahead(const struct symbol_ranges *r, size_t i)
{
	if (i + 2 * AHEAD < r->order.count)
		__builtin_prefetch(&r->candidates.data[r->order.data[i + 2 * AHEAD].value]);
	if (i + AHEAD < r->order.count)
		__builtin_prefetch(r->candidates.data[r->order.data[i + AHEAD].value].name);
}

/*
 * Symbols that start at one address, ordered. One without a size covers nothing if one with a size
 * reaches beyond its start, or if there is a better one, and ends at the next start. Of equal ones
 * of two tables one is kept.
 */
static void settle_start(struct symbol_ranges *r, struct radix_item *items, size_t count,
			 uint64_t next, uint64_t *sized_end)
{
	struct candidate *all = r->candidates.data, *better = NULL;

	if (count == 2 && compare_starting_together(&items[0], &items[1], all) > 0)
		swap_items(&items[0], &items[1]);
	else if (count > 2)
		qsort_r(items, count, sizeof(*items), compare_starting_together, all);
	for (size_t i = 0; i < count; i++)
		if (all[items[i].value].sized)
			*sized_end = max_u64(*sized_end, all[items[i].value].end);
	for (size_t i = count; i-- > 0;) {
		struct candidate *c = &all[items[i].value];

		if (c->sized ? better && is_same_symbol(c, better)
			     : *sized_end > c->start || (better && !better->sized))
			c->name = NULL;
		else if (!c->sized)
			c->end = min_u64(next, symbol_extent_end(r->source.code, r->whole, c->start,
								 c->end));
		better = c;
	}
}

static int sort_ranges(struct symbol_ranges *r)
{
	uint64_t sized_end = 0;
	int err = vec_reserve(&r->order, r->candidates.count);

	for (size_t i = 0; i < r->candidates.count && !err; i++)
		err = vec_push(&r->order, (struct radix_item){r->candidates.data[i].start, i});
	if (!err)
		err = radix_sort(r->order.data, r->order.count);
	for (size_t i = 0, end; i < r->order.count && !err; i = end) {
		struct radix_item *first = &r->order.data[i];

		fetch_ahead(r, i);
		for (end = i + 1; end < r->order.count && r->order.data[end].key == first->key;)
			end++;
		settle_start(r, first, end - i,
			     end < r->order.count ? r->order.data[end].key : UINT64_MAX,
			     &sized_end);
	}
	return err;
}

/* Of names that .dynsym and the symbol table have those of the table were kept. */
static void forget_dynamic_names(const struct symbol_ranges *r, struct elf_file *file)
{
	for (size_t i = 0; i < r->candidates.count; i++) {
		const char *name = r->candidates.data[i].name;

		if (name && elf_file__has_dynamic_name(file, name))
			return;
	}
	elf_file__forget_dynamic_names(file);
}

int symbol_ranges__read(const struct symbol_source *source, symbol_range_fn wanted, void *context,
			struct symbol_ranges **ranges)
{
	struct symbol_ranges *r = calloc(1, sizeof(*r));
	int err;

	*ranges = r;
	if (!r)
		return -ENOMEM;
	*r = (struct symbol_ranges){.source = *source, .wanted = wanted, .context = context};
	err = read_source(source, add_range, name_range, r);
	if (r->err || err == -ENOMEM || err == -EFBIG)
		return r->err ?: err;
	if (sort_ranges(r))
		return -ENOMEM;
	forget_dynamic_names(r, source->file);
	if (source->rest)
		forget_dynamic_names(r, source->rest);
	return err;
}

void symbol_ranges__free(struct symbol_ranges *r)
{
	if (!r)
		return;
	vec_free(&r->candidates);
	vec_free(&r->order);
	free(r);
}

void symbol_ranges__find(struct symbol_ranges *r, uint64_t address, struct symbol_match *match)
{
	const struct candidate *all = r->candidates.data, *c;
	struct radix_item *order = r->order.data;

	while (r->next < r->order.count && order[r->next].key <= address) {
		fetch_ahead(r, r->next);
		c = &all[order[r->next].value];
		if (c->name && c->end > address)
			order[r->open++] = order[r->next];
		r->next++;
	}
	while (r->open && all[order[r->open - 1].value].end <= address)
		r->open--;
	*match = (struct symbol_match){.until = UINT64_MAX};
	if (r->open) {
		c = &all[order[r->open - 1].value];
		*match = (struct symbol_match){c->name, c->start, c->sized ? c->end - c->start : 0,
					       c->end};
	}
	if (r->next < r->order.count)
		match->until = min_u64(match->until, order[r->next].key);
}
