/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index of a module.
 *
 * An answer holds up to the next address at which a symbol, a unit, a function, an inlined call or a line begins or
 * ends. So the answers at these addresses are all that there are. They come from the functions that answer single
 * addresses (module.c) and cannot differ from theirs.
 *
 * The edges of units and of Go's functions divide the addresses into areas. All of them are indexed, or, if the module is
 * large, those of the units of requested addresses. Of a Go program only Go's code is.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/order.h"
#include "elf/elf_file.h"
#include "elf/gopclntab.h"
#include "symbolize/module_private.h"
#include "symbolize/symbol_index.h"
#include "symbolize/symbol_index_private.h"

#define WHOLE_SIZE_MAX (UINT64_C(12) << 20) /* bytes of what is read */
#define EDGES_MAX      (1u << 20)
#define POINTS_MAX     (8u << 20) /* in one area */

struct area {
	uint64_t start;
	bool wanted;
};

struct indexing {
	struct module *module;
	struct index_writer *writer;
	VEC(uint64_t) edges; /* of areas, then the addresses that have a symbol match */
	VEC(struct area) areas;
	VEC(uint64_t) points; /* of one area … */
	uint64_t start, end;  /* … which this is */
	size_t next_match;
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

static uint64_t size_of(const struct module *m)
{
	uint64_t elf, debug;

	if (m->go)
		return gopclntab__size(m->go);
	if (m->files.symbols_only || !m->dwarf)
		return 0;
	elf = m->elf ? elf_file__debug_size(m->elf) : 0;
	debug = m->debug ? elf_file__debug_size(m->debug) : 0;
	return debug > elf ? debug : elf;
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

/* The areas of these offsets. */
static void want_areas(struct indexing *x, const uint64_t *offsets, size_t count)
{
	uint64_t address;

	for (size_t i = 0; i < count; i++)
		if (!elf_file__address_of_offset(file_of(x->module), offsets[i], &address) &&
		    (!x->module->go || is_go(x->module, address)))
			area_of(x, address)->wanted = true;
}

static int find_areas(struct indexing *x, const uint64_t *offsets, size_t count)
{
	struct module *m = x->module;
	bool whole = size_of(m) <= WHOLE_SIZE_MAX;
	int err = add_edge(x, 0);

	if (!err && m->go)
		err = add_go_edges(x);
	else if (!err && m->dwarf)
		err = dwarf_reader__each_unit(m->dwarf, add_edges, x);
	x->edges.count = sort_addresses(x->edges.data, x->edges.count);
	for (size_t i = 0; i < x->edges.count && !err; i++) {
		uint64_t start = x->edges.data[i];
		struct area area = {start, whole && (!m->go || is_go(m, start))};

		err = vec_push(&x->areas, area);
	}
	if (!err && !whole)
		want_areas(x, offsets, count);
	return err;
}

/* ---- symbols --------------------------------------------------------------------------------- */

static int add_symbol_edge(void *context, uint64_t address)
{
	struct indexing *x = context;

	return area_of(x, address)->wanted ? add_edge(x, address) : 0;
}

/* The symbols at all edges; between two of them there is one symbol. */
static int match_edges(struct indexing *x)
{
	struct module *m = x->module;
	int err = 0;

	if (m->debug)
		err = symbol_table__each_edge(m->debug, add_symbol_edge, x);
	if (m->elf && err != -ENOMEM && err != -EFBIG)
		err = symbol_table__each_edge(m->elf, add_symbol_edge, x);
	if (err == -ENOMEM || err == -EFBIG)
		return err;
	m->covered = sort_addresses(x->edges.data, x->edges.count);
	m->addresses = x->edges.data;
	x->edges.data = NULL;
	x->edges.count = x->edges.capacity = 0;
	m->matches = calloc(m->covered, sizeof(*m->matches));
	return m->matches ? module_match_symbols(m) : -ENOMEM;
}

/* Addresses ascend from call to call. */
static const struct symbol_match *match_at(struct indexing *x, uint64_t address)
{
	const struct module *m = x->module;

	while (x->next_match < m->covered && m->addresses[x->next_match] <= address)
		x->next_match++;
	return &m->matches[x->next_match - 1];
}

/* ---- answers --------------------------------------------------------------------------------- */

static int add_point(void *context, uint64_t address)
{
	struct indexing *x = context;

	if (address <= x->start || address >= x->end)
		return 0;
	return x->points.count < POINTS_MAX ? vec_push(&x->points, address) : -EFBIG;
}

static int add_points(void *context, uint64_t start, uint64_t end)
{
	return add_point(context, start) ?: add_point(context, end);
}

static int add_symbol_points(struct indexing *x)
{
	const struct module *m = x->module;
	size_t i = partition_point(m->addresses, m->covered, a, *a <= x->start);
	int err = 0;

	for (; i < m->covered && m->addresses[i] < x->end && !err; i++)
		err = add_point(x, m->addresses[i]);
	return err;
}

/* Where in the area the answer may change. */
static int find_points(struct indexing *x)
{
	struct module *m = x->module;
	size_t number;
	int err;

	x->points.count = 0;
	err = vec_push(&x->points, x->start);
	if (!err)
		err = add_symbol_points(x);
	if (!err && m->go && !gopclntab__find(m->go, x->start, &number))
		err = gopclntab__each_change(m->go, number, add_point, x);
	if (!err && m->dwarf)
		err = dwarf_reader__each_change(m->dwarf, x->start, x->end, add_points, x);
	x->points.count = sort_addresses(x->points.data, x->points.count);
	return err == -EBADMSG ? 0 : err;
}

static int write_area(struct indexing *x)
{
	struct module *m = x->module;
	int err = find_points(x);

	for (size_t i = 0; i < x->points.count && !err; i++) {
		uint64_t address = x->points.data[i];

		err = module_merge_frames(m, address, match_at(x, address));
		if (!err)
			err = index_writer__answer(x->writer, address, m->frames.data,
						   m->frames.count);
	}
	return err;
}

static int write_areas(struct indexing *x)
{
	int err = 0;

	for (size_t i = 0; i < x->areas.count && !err; i++) {
		bool last = i + 1 == x->areas.count;

		x->start = x->areas.data[i].start;
		x->end = last ? UINT64_MAX : x->areas.data[i + 1].start;
		err = x->areas.data[i].wanted ? write_area(x)
					      : index_writer__gap(x->writer, x->start);
	}
	return err;
}

static int write_segment(void *context, uint64_t offset, uint64_t size, uint64_t address)
{
	return index_writer__segment(context, offset, size, address);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* As batch.c keeps answers: of half a file they would hide the other half. */
static bool is_whole(const struct module_report *report)
{
	return (report->state == SYMBOL_STATE_RESOLVED ||
		report->state == SYMBOL_STATE_NO_SYMBOLS) &&
	       (report->dwarf == DWARF_STATE_NONE || report->dwarf == DWARF_STATE_READ);
}

static int make_index(struct indexing *x, const uint64_t *offsets, size_t count, void **data,
		      size_t *size)
{
	struct module *m = x->module;
	int err = elf_file__each_load(file_of(m), write_segment, x->writer);

	if (!err)
		err = find_areas(x, offsets, count);
	if (!err)
		err = match_edges(x);
	if (!err)
		err = write_areas(x);
	if (err)
		return err;
	module_finish_report(m, 0);
	return is_whole(&m->report) ? index_writer__finish(x->writer, m->report.state, data, size)
				    : -ENODATA;
}

int module__index(struct module *m, const uint64_t *offsets, size_t count, void **data,
		  size_t *size)
{
	struct indexing x = {.module = m};
	int err;

	if (m->files.kind == DSO_KERNEL || !file_of(m))
		return -ENODATA;
	module_forget_addresses(m);
	m->report = (struct module_report){.dwarf = m->report.dwarf};
	if (!m->go)
		module_open_dwarf(m);
	x.writer = index_writer__new(SYMBOL_INDEX_MAX);
	err = x.writer ? make_index(&x, offsets, count, data, size) : -ENOMEM;
	index_writer__free(x.writer);
	vec_free(&x.edges);
	vec_free(&x.areas);
	vec_free(&x.points);
	return err;
}
