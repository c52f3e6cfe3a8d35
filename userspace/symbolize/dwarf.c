/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An address to its inline chain.
 *
 * libdw's own functions for this are wrong or slow: dwarf_getscopes() misses functions that are not where it looks,
 * and dwarf_addrdie() needs a table that clang does not write. So: an index of the units' ranges, an index of a
 * unit's functions when the first address falls into it (dwarf_units), and the tree of inlined calls of the function
 * at hand (dwarf_inlines). Addresses come sorted, so that tree is built once for most functions and only one is kept.
 *
 * Everything here reads an image in our own memory (dwarf_image), but for .dwo files, which libdw
 * opens by the names in the DWARF. All walks are bounded; a damaged unit is counted and gives what
 * could be read of it.
 */
#include "symbolize/dwarf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "symbolize/dwarf_private.h"
#include "symbolize/memo.h"

struct dwarf_reader {
	uint64_t memory_limit;
	struct dwarf_image main, alt;
	struct dwarf_units units;
	struct dwarf_inlines inlines;
	struct memo *paths;
	VEC(struct dwarf_frame) frames;
};

bool dwarf_reads_packages(void)
{
	unsigned int major, minor;

	return sscanf(dwfl_version(NULL), "%u.%u", &major, &minor) == 2 &&
	       (major > 0 || minor >= 191);
}

int dwarf_reader__open(int fd, const struct dwarf_options *options, struct dwarf_reader **reader)
{
	struct dwarf_reader *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->memory_limit = options->memory_limit;
	r->paths = memo__new();
	err = r->paths ? dwarf_image__open(fd, DWARF_MAIN, options, &r->main) : -ENOMEM;
	if (err)
		goto err_out;
	if (options->alt_fd >= 0 && r->main.needs_alt) {
		/* Without it names are missing, no more. */
		err = dwarf_image__open(options->alt_fd, DWARF_ALTERNATE, options, &r->alt);
		if (err == -ENOMEM)
			goto err_out;
		if (!err)
			dwarf_setalt(r->main.dwarf, r->alt.dwarf);
	}
	err = dwarf_units__init(&r->units, r->main.dwarf);
	if (err)
		goto err_out;
	*reader = r;
	return 0;

err_out:
	dwarf_reader__free(r);
	return err;
}

void dwarf_reader__free(struct dwarf_reader *r)
{
	if (!r)
		return;
	dwarf_inlines__fini(&r->inlines);
	dwarf_units__fini(&r->units);
	if (r->main.dwarf)
		dwarf_setalt(r->main.dwarf, NULL);
	dwarf_image__close(&r->main);
	dwarf_image__close(&r->alt);
	memo__free(r->paths);
	vec_free(&r->frames);
	free(r);
}

static bool executing_line(struct dwarf_reader *r, struct dwarf_unit *unit, uint64_t address,
			   struct dwarf_place *place)
{
	if (!unit->lines_checked) {
		unit->lines_checked = true;
		unit->lines_fit = dwarf_image__line_program_fits(&r->main, &unit->die,
								 r->memory_limit);
	}
	return unit->lines_fit && dwarf_executing_line(r->paths, &unit->die, address, place);
}

/* A level of the chain: what `die` is, and where in it the execution is. */
static int add_frame(struct dwarf_reader *r, Dwarf_Die *die, const struct dwarf_place *at)
{
	struct dwarf_frame frame = {
		.where = {.function_address = PROFILE_UNKNOWN_ADDRESS,
			  .file = at->file,
			  .line = at->line,
			  .column = at->column},
	};

	if (die) {
		struct dwarf_place definition = dwarf_definition(r->paths, die);

		frame.name = dwarf_diename(die);
		frame.linkage = dwarf_linkage_name(die);
		frame.where.definition_file = definition.file;
		frame.where.definition_line = definition.line;
		frame.where.definition_column = definition.column;
	}
	return vec_push(&r->frames, frame);
}

/* From the innermost inlined call outwards; each is executing where the one in it was called. */
static int add_chain(struct dwarf_reader *r, const struct dwarf_function *function,
		     uint64_t address, struct dwarf_place at)
{
	Dwarf_Die function_die = function->die;
	struct symbol_frame *outermost;
	uint32_t number;
	int err;

	if (r->inlines.function != function) {
		err = dwarf_inlines__load(&r->inlines, function);
		if (err == -ENOMEM)
			return err;
	}
	number = dwarf_inlines__find(&r->inlines, address);
	while (number != INLINE_NONE) {
		struct dwarf_inline *node = &r->inlines.nodes.data[number];

		err = add_frame(r, &node->die, &at);
		if (err)
			return err;
		at = dwarf_call_site(r->paths, &node->die);
		number = node->parent;
	}
	err = add_frame(r, &function_die, &at);
	if (err)
		return err;
	outermost = &r->frames.data[r->frames.count - 1].where;
	outermost->function_address = function->start;
	outermost->function_size = function->size;
	return 0;
}

int dwarf_reader__resolve(struct dwarf_reader *r, uint64_t address,
			  const struct dwarf_frame **frames, size_t *count)
{
	struct dwarf_place at = {};
	struct dwarf_unit *unit;
	bool has_line;
	uint32_t number;
	int err = dwarf_units__find(&r->units, address, &unit);

	if (err)
		return err;
	r->frames.count = 0;
	if (unit) {
		has_line = executing_line(r, unit, address, &at);
		if (range_map__find(&unit->map, address, &number))
			err = add_chain(r, &unit->functions.data[number], address, at);
		else if (has_line) /* assembly: lines, but no functions */
			err = add_frame(r, NULL, &at);
	}
	if (err)
		return err;
	*frames = r->frames.data;
	*count = r->frames.count;
	return 0;
}

void dwarf_reader__stats(const struct dwarf_reader *r, struct dwarf_stats *stats)
{
	*stats = (struct dwarf_stats){
		.units = r->units.seen + r->main.bad_units,
		.units_indexed = r->units.indexed,
		.units_skipped = r->units.damaged + r->main.bad_units,
		.inflated = dwarf_image__inflated(&r->main) + dwarf_image__inflated(&r->alt),
		.incomplete = r->main.damaged || (r->main.needs_alt && !r->alt.dwarf),
	};
}
