/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An address to its inline chain.
 *
 * libdw's own functions for this are wrong or slow: dwarf_getscopes() misses functions, and
 * dwarf_addrdie() needs a table that clang does not write. So dwarf_units indexes the ranges of
 * units, the functions of a unit at its first address, and the tree of inlined calls of a function.
 * Addresses come sorted, so most trees are built once, and only one is kept.
 *
 * Everything here reads an image in our own memory (dwarf_image), but for .dwo files, which libdw
 * opens by the names in the DWARF. All walks are bounded; a damaged unit is counted and gives what
 * could be read of it.
 */
#include "symbolize/dwarf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "symbolize/dwarf_image.h"
#include "symbolize/dwarf_private.h"
#include "symbolize/dwarf_sources.h"
#include "symbolize/dwarf_units.h"
#include "symbolize/range_map.h"

struct dwarf_reader {
	struct dwarf_image main, alt;
	struct dwarf_units units;
	struct dwarf_inlines inlines;
	struct dwarf_sources sources;
	struct dwarf_frame outermost; /* of the function of `inlines` */
	/* Number of the last chain; innermost inlined call in it, of inlines.function. */
	uint64_t chain;
	uint32_t inlined;
	VEC(struct dwarf_frame) frames;
};

bool dwarf_reads_packages(void)
{
	unsigned int major, minor;

	return sscanf(dwfl_version(NULL), "%u.%u", &major, &minor) == 2 &&
	       (major > 0 || minor >= 191);
}

/* Without it names are missing, no more. 0 or -ENOMEM. */
static int open_alternate(struct dwarf_reader *r, const struct dwarf_options *options)
{
	int err = dwarf_image__open(options->alt_fd, DWARF_ALTERNATE, options, &r->alt);

	if (!err)
		dwarf_setalt(r->main.dwarf, r->alt.dwarf);
	return err == -ENOMEM ? err : 0;
}

int dwarf_reader__open(int fd, const struct dwarf_options *options, struct dwarf_reader **reader)
{
	struct dwarf_reader *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	err = dwarf_sources__init(&r->sources, &r->main, options->memory_limit)
		      ?: dwarf_image__open(fd, DWARF_MAIN, options, &r->main);
	if (!err && options->alt_fd >= 0 && r->main.needs_alt)
		err = open_alternate(r, options);
	if (!err)
		err = dwarf_units__init(&r->units, r->main.dwarf);
	return finish_new(err, r, dwarf_reader__free, reader);
}

void dwarf_reader__free(struct dwarf_reader *r)
{
	if (!r)
		return;
	vec_free(&r->inlines.nodes);
	range_map__fini(&r->inlines.map);
	dwarf_units__fini(&r->units);
	dwarf_sources__fini(&r->sources);
	if (r->main.dwarf)
		dwarf_setalt(r->main.dwarf, NULL);
	dwarf_image__close(&r->main);
	dwarf_image__close(&r->alt);
	vec_free(&r->frames);
	free(r);
}

/* A level of the chain, and where in it the execution is. */
static int add_frame(struct dwarf_reader *r, const struct dwarf_frame *function,
		     const struct dwarf_place *at)
{
	struct dwarf_frame frame = *function;

	frame.where.file = at->file;
	frame.where.line = at->line;
	frame.where.column = at->column;
	return vec_push(&r->frames, frame);
}

/* Neighbours are in the same calls, whose attributes take the longest to read. */
static void describe_inline(struct dwarf_reader *r, struct dwarf_inline *node)
{
	if (node->described)
		return;
	node->described = true;
	node->frame = dwarf_describe(&r->sources, &node->die, &node->call);
}

static int load_function(struct dwarf_reader *r, const struct dwarf_function *function)
{
	Dwarf_Die die = function->die;
	struct dwarf_place call;
	int err;

	if (r->inlines.function == function)
		return 0;
	r->outermost = dwarf_describe(&r->sources, &die, &call);
	r->outermost.where.function_address = function->start;
	r->outermost.where.function_size = function->size;
	err = dwarf_inlines__load(&r->inlines, function);
	r->units.left |= err == -EFBIG;
	return err == -ENOMEM ? err : 0;
}

/* From the innermost inlined call outwards; each is executing where the one in it was called. */
static int make_chain(struct dwarf_reader *r, struct dwarf_place at)
{
	r->frames.count = 0;
	r->chain++;
	for (uint32_t number = r->inlined; number != INLINE_NONE;) {
		struct dwarf_inline *node = &r->inlines.nodes.data[number];
		int err;

		describe_inline(r, node);
		err = add_frame(r, &node->frame, &at);
		if (err)
			return err;
		at = node->call;
		number = node->parent;
	}
	return add_frame(r, &r->outermost, &at);
}

/* Neighbours have the same chain, but for the place that is executed. */
static int find_chain(struct dwarf_reader *r, const struct dwarf_function *function,
		      uint64_t address, const struct dwarf_place *at, uint64_t *until)
{
	bool same = r->frames.count && r->inlines.function == function;
	uint32_t number;
	int err = load_function(r, function);

	if (err)
		return err;
	if (!range_map__find(&r->inlines.map, address, &number, until))
		number = INLINE_NONE;
	if (!same || number != r->inlined) {
		r->inlined = number;
		err = make_chain(r, *at);
		if (err)
			r->frames.count = 0;
		return err;
	}
	r->frames.data[0].where.file = at->file;
	r->frames.data[0].where.line = at->line;
	r->frames.data[0].where.column = at->column;
	return 0;
}

/* Assembly has lines, but no functions. */
static int make_line(struct dwarf_reader *r, const struct dwarf_place *at)
{
	static const struct dwarf_frame unnamed = {
		.where = {.function_address = PROFILE_UNKNOWN_ADDRESS}};

	r->frames.count = 0;
	r->inlines.function = NULL;
	r->chain++;
	return add_frame(r, &unnamed, at);
}

int dwarf_reader__resolve(struct dwarf_reader *r, uint64_t address, struct dwarf_chain *chain)
{
	uint64_t until = UINT64_MAX;
	struct dwarf_place at = {};
	struct dwarf_unit *unit;
	bool has_line, has_function;
	uint32_t number;
	int err = dwarf_units__find(&r->units, address, &unit, &until);

	*chain = (struct dwarf_chain){.until = until};
	if (err || !unit)
		return err;
	has_line = dwarf_sources__line(&r->sources, unit->die.cu, address, &at, &chain->until);
	has_function = range_map__find(&unit->map, address, &number, &chain->until);
	if (has_function)
		err = find_chain(r, &unit->functions.data[number], address, &at, &chain->until);
	else if (has_line)
		err = make_line(r, &at);
	if (err || (!has_function && !has_line))
		return err;
	chain->frames = r->frames.data;
	chain->count = r->frames.count;
	chain->number = r->chain;
	return 0;
}

const unsigned char *dwarf_reader__md5(struct dwarf_reader *r, const char *path)
{
	return dwarf_sources__md5(&r->sources, path);
}

/* ---- units ----------------------------------------------------------------------------------- */

int dwarf_reader__each_unit(struct dwarf_reader *r, dwarf_range_fn visit, void *context)
{
	return dwarf_units__index_all(&r->units)
			?: range_map__each(&r->units.map, visit, context)
			?: range_map__each(&r->units.rangeless_map, visit, context);
}

int dwarf_reader__mark_unit(struct dwarf_reader *r, uint64_t address)
{
	uint64_t until = UINT64_MAX;
	struct dwarf_unit *unit;
	int err = dwarf_units__find(&r->units, address, &unit, &until);

	if (!err && unit)
		unit->marked = true;
	return err;
}

bool dwarf_reader__is_marked(struct dwarf_reader *r, uint64_t address)
{
	const struct dwarf_unit *unit = dwarf_units__at(&r->units, address);

	return unit && unit->marked;
}

void dwarf_reader__stats(const struct dwarf_reader *r, struct dwarf_stats *stats)
{
	*stats = (struct dwarf_stats){
		.units = r->units.seen + r->main.bad_units,
		.units_indexed = r->units.indexed,
		.units_skipped = r->units.damaged + r->main.bad_units,
		.inflated = r->main.inflated + r->alt.inflated,
		.incomplete = r->main.damaged || (r->main.needs_alt && !r->alt.dwarf),
		.left = r->units.left || r->sources.left,
	};
}
