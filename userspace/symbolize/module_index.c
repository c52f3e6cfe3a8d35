/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index of a module.
 *
 * An answer holds up to the next address at which a symbol, a unit, a function, an inlined call or
 * a line begins or ends. So the answers at these addresses are all there are. module.c gives them
 * and says how far they hold; a sweep over all symbols gives the symbols.
 *
 * The edges of units and of Go's functions divide addresses into areas. All are indexed; or, of a
 * large module, a slice: those of the units of requested addresses, near to one, as many as fit. Of
 * a Go program only Go's code is.
 */
#include "symbolize/module_index.h"

#include <errno.h>
#include <stdlib.h>

#include "base/minmax.h"
#include "base/order.h"
#include "elf/elf_file.h"
#include "elf/elf_image.h"
#include "elf/elf_sections.h"
#include "elf/gopclntab.h"
#include "elf/gopclntab_open.h"
#include "symbolize/demangle.h"
#include "symbolize/module_private.h"
#include "symbolize/symbol_index.h"
#include "symbolize/symbol_index_writer.h"

#define WHOLE_SIZE_MAX (UINT64_C(24) << 20) /* bytes of what is read */
#define EDGES_MAX      (1u << 20)
#define SLICE_REACH    (UINT64_C(512) << 10) /* bytes of a unit, on both sides of an address */
#define ANSWER_ROOM                                                                                \
	(256u << 10) /* bytes of an index that stay free for one more answer, and the end */

/* ns of CPU time a byte that is read, in large modules of the kind */
enum { COST_BASE = 1000000, COST_OF_DWARF = 10, COST_OF_SYMBOLS = 12, COST_OF_GO = 20 };

struct area {
	uint64_t start;
	bool wanted;
};

struct indexing {
	struct module *module;
	bool whole; /* or a slice */
	struct index_writer *writer;
	VEC(uint64_t) edges; /* of areas */
	VEC(struct area) areas;
	VEC(uint64_t) addresses;		 /* the requested ones that an index can have */
	struct symbol_ranges *of_debug, *of_elf; /* NULL: there is no such file */
};

DEFINE_ORDER(compare_addresses, uint64_t, order_of(*x, *y));

static int add_edge(void *context, uint64_t address)
{
	struct indexing *x = context;

	return x->edges.count < EDGES_MAX ? vec_push(&x->edges, address) : -EFBIG;
}

static int add_edges(void *context, uint64_t start, uint64_t end)
{
	return add_edge(context, start) ?: add_edge(context, end);
}

static size_t sort_addresses(uint64_t *addresses, size_t count)
{
	size_t kept = 0;

	if (count)
		qsort(addresses, count, sizeof(*addresses), compare_addresses);
	for (size_t i = 0; i < count; i++)
		if (!kept || addresses[kept - 1] != addresses[i])
			addresses[kept++] = addresses[i];
	return kept;
}

/* ---- areas ----------------------------------------------------------------------------------- */

static const struct elf_file *file_of(const struct module *m)
{
	return m->elf ? m->elf : m->debug;
}

static uint64_t size_of_dwarf(const struct module *m)
{
	uint64_t elf = m->elf ? elf_file__debug_size(m->elf) : 0;
	uint64_t debug = m->debug ? elf_file__debug_size(m->debug) : 0;

	return m->dwarf ? max_u64(elf, debug) : 0;
}

/* Is the index to be that of the whole module? */
static bool is_small(const struct module *m)
{
	return (m->go ? gopclntab__size(m->go) : size_of_dwarf(m)) <= WHOLE_SIZE_MAX;
}

static uint64_t size_of_symbols(struct elf_file *file)
{
	static const char *const names[] = {".symtab", ".strtab", ".dynsym", ".dynstr"};
	struct elf_section section;
	uint64_t size = 0;

	for (size_t i = 0; file && i < sizeof(names) / sizeof(*names); i++)
		if (!elf_file__find_section(file, names[i], &section))
			size += min_u64(section.size, UINT32_MAX);
	return size;
}

uint64_t module_index_cost(const struct module *m)
{
	uint64_t symbols = size_of_symbols(m->elf) + size_of_symbols(m->debug);

	if (m->files.kind == DSO_KERNEL || !file_of(m))
		return 0;
	if (m->go)
		return COST_BASE + min_u64(gopclntab__size(m->go), WHOLE_SIZE_MAX) * COST_OF_GO;
	return COST_BASE + symbols * COST_OF_SYMBOLS +
	       min_u64(size_of_dwarf(m), WHOLE_SIZE_MAX) * COST_OF_DWARF;
}

static int add_go_edges(struct indexing *x)
{
	const struct gopclntab *go = x->module->go;
	struct go_function function;
	int err = 0;

	for (size_t i = 0; i < gopclntab__count(go) && !err; i++)
		if (!gopclntab__function(go, i, &function))
			err = add_edges(x, function.start, function.end);
	return err;
}

static bool is_go(const struct module *m, uint64_t address)
{
	size_t number;

	return m->go && !gopclntab__find(m->go, address, &number);
}

static struct area *area_of(struct indexing *x, uint64_t address)
{
	return &x->areas.data[partition_point(x->areas.data, x->areas.count, a,
					      a->start <= address) -
			      1];
}

static int take_addresses(struct indexing *x, const uint64_t *offsets, size_t count)
{
	const struct module *m = x->module;
	uint64_t address;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		if (!elf_file__address_of_offset(file_of(m), offsets[i], &address) &&
		    (!m->go || is_go(m, address)))
			err = vec_push(&x->addresses, address);
	x->addresses.count = sort_addresses(x->addresses.data, x->addresses.count);
	return err;
}

/* Areas end where the reach of an address does. */
static int add_edges_of_reach(struct indexing *x)
{
	int err = 0;

	for (size_t i = 0; i < x->addresses.count && !err; i++) {
		uint64_t address = x->addresses.data[i];

		err = add_edges(x, address - min_u64(address, SLICE_REACH), address + SLICE_REACH);
	}
	return err;
}

static bool is_near(const struct indexing *x, uint64_t start)
{
	size_t behind = partition_point(x->addresses.data, x->addresses.count, a, *a <= start);

	return (behind && start - x->addresses.data[behind - 1] < SLICE_REACH) ||
	       (behind < x->addresses.count && x->addresses.data[behind] - start <= SLICE_REACH);
}

/* The areas of the addresses, and those of their units within their reach. */
static int want_areas(struct indexing *x)
{
	const struct module *m = x->module;
	int err = 0;

	for (size_t i = 0; i < x->addresses.count && !err; i++) {
		area_of(x, x->addresses.data[i])->wanted = true;
		if (m->dwarf)
			err = dwarf_reader__mark_unit(m->dwarf, x->addresses.data[i]);
	}
	for (size_t i = 0; i < x->areas.count && m->dwarf; i++) {
		uint64_t start = x->areas.data[i].start;

		x->areas.data[i].wanted |= dwarf_reader__is_marked(m->dwarf, start) &&
					   is_near(x, start);
	}
	return err;
}

/* Of a Go program without an address of Go's code none is wanted. */
static int find_areas(struct indexing *x, const uint64_t *offsets, size_t count)
{
	struct module *m = x->module;
	int err = add_edge(x, 0) ?: take_addresses(x, offsets, count);
	bool all = x->whole && (!m->go || x->addresses.count);

	if (!err && m->go)
		err = add_go_edges(x);
	else if (!err && m->dwarf)
		err = dwarf_reader__each_unit(m->dwarf, add_edges, x);
	if (!err && !x->whole)
		err = add_edges_of_reach(x);
	x->edges.count = sort_addresses(x->edges.data, x->edges.count);
	for (size_t i = 0; i < x->edges.count && !err; i++) {
		uint64_t start = x->edges.data[i];
		struct area area = {start, all && (!m->go || is_go(m, start))};

		err = vec_push(&x->areas, area);
	}
	return err || all ? err : want_areas(x);
}

/* ---- symbols --------------------------------------------------------------------------------- */

static bool is_in_wanted_area(void *context, uint64_t start, uint64_t end)
{
	struct indexing *x = context;
	const struct area *first = area_of(x, start), *last = area_of(x, end);

	return first->wanted || last->wanted || last - first > 1;
}

static int read_symbols(struct indexing *x)
{
	struct module *m = x->module;
	const struct symbol_source debug = module_debug_symbols(m), elf = module_elf_symbols(m);
	int debug_error = -ENODATA, elf_error = m->elf_error;

	if (debug.file)
		debug_error = symbol_ranges__read(&debug, is_in_wanted_area, x, &x->of_debug);
	if (m->elf && !debug.rest && debug_error != -ENOMEM && debug_error != -EFBIG)
		elf_error = symbol_ranges__read(&elf, is_in_wanted_area, x, &x->of_elf);
	for (int i = 0; i < 2; i++) {
		int err = i ? elf_error : debug_error;

		if (err == -ENOMEM || err == -EFBIG)
			return err;
	}
	module_note_symbols(m, debug_error, elf_error);
	/* of names by their places some are not used any more */
	return module_renew_names(m);
}

/* The debug file's, or where it has none the module's. */
static void find_symbol(struct indexing *x, uint64_t address, struct symbol_match *match)
{
	uint64_t open_until = UINT64_MAX;

	*match = (struct symbol_match){.until = UINT64_MAX};
	if (x->of_debug) {
		symbol_ranges__find(x->of_debug, address, match);
		open_until = match->until;
	}
	if (!match->name && x->of_elf)
		symbol_ranges__find(x->of_elf, address, match);
	match->until = min_u64(match->until, open_until);
}

/* ---- answers --------------------------------------------------------------------------------- */

static size_t size_limit(const struct indexing *x)
{
	return x->whole ? SYMBOL_INDEX_MAX : SYMBOL_SLICE_MAX;
}

static bool is_full(const struct indexing *x)
{
	return index_writer__size(x->writer) > size_limit(x) - ANSWER_ROOM;
}

/* From one change of the answer to the next. A full slice has no answers behind it. */
static int write_area(struct indexing *x, uint64_t start, uint64_t end)
{
	struct module *m = x->module;
	uint64_t address = start, until;
	struct symbol_match match;
	int err = 0;

	while (address < end && !err) {
		if (is_full(x))
			return x->whole ? -EFBIG : index_writer__gap(x->writer, address);
		find_symbol(x, address, &match);
		err = module_merge_frames(m, address, &match, &until)
			      ?: index_writer__answer(x->writer, address, m->frames.data,
						      m->frames.count);
		address = min_u64(until, match.until);
	}
	return err;
}

static int write_areas(struct indexing *x)
{
	int err = 0;

	for (size_t i = 0; i < x->areas.count && !err; i++) {
		uint64_t start = x->areas.data[i].start;
		bool last = i + 1 == x->areas.count;

		if (x->areas.data[i].wanted && !is_full(x))
			err = write_area(x, start, last ? UINT64_MAX : x->areas.data[i + 1].start);
		else
			err = index_writer__gap(x->writer, start);
	}
	return err;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int fill_index(struct indexing *x, const uint64_t *offsets, size_t count, void **data,
		      size_t *size)
{
	struct module *m = x->module;
	int err = elf_file__each_load(file_of(m), index_writer__segment, x->writer)
			?: find_areas(x, offsets, count)
			?: read_symbols(x)
			?: write_areas(x);

	if (err)
		return err;
	module_finish_report(m, 0);
	return module_report__is_whole(&m->report, true)
		       ? index_writer__finish(x->writer, m->report.state, data, size)
		       : -ENODATA;
}

static int make_index(struct module *m, bool whole, const uint64_t *offsets, size_t count,
		      void **data, size_t *size)
{
	struct indexing x = {.module = m, .whole = whole};
	int err;

	module_forget_addresses(m);
	m->report = (struct module_report){.dwarf = m->report.dwarf};
	m->as_in_file = true;
	x.writer = index_writer__new(size_limit(&x), m->go ? NULL : demangle);
	err = x.writer ? fill_index(&x, offsets, count, data, size) : -ENOMEM;
	m->as_in_file = false;
	index_writer__free(x.writer);
	symbol_ranges__free(x.of_debug);
	symbol_ranges__free(x.of_elf);
	vec_free(&x.edges);
	vec_free(&x.areas);
	vec_free(&x.addresses);
	return err;
}

int module__index(struct module *m, const uint64_t *offsets, size_t count, void **data,
		  size_t *size)
{
	int err = -EFBIG;

	if (m->files.kind == DSO_KERNEL || !file_of(m))
		return -ENODATA;
	module_choose_go(m);
	if (!m->go)
		module_open_dwarf(m);
	if (is_small(m))
		err = make_index(m, true, offsets, count, data, size);
	return err == -EFBIG ? make_index(m, false, offsets, count, data, size) : err;
}
