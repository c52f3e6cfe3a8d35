/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The symbolizer: one file at a time is opened, asked for all its addresses, and closed.
 *
 * Addresses come as file offsets, in ascending order, and go out in that order. In between they
 * are ELF virtual addresses, which sort differently where a file's segments are not laid out in
 * order; so each travels with the place it has to return to.
 */
#include "symbolize/symbolize.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "symbolize/demangle.h"
#include "symbolize/kallsyms.h"

struct symbolizer {
	struct kallsyms *kallsyms;
	/* The readable name of one function, and which mangled name (by its place) it was made from. */
	const char *mangled;
	char name[DEMANGLED_SIZE];
};

/* Where the sink is called: once for each index, in order. */
struct delivery {
	struct symbolizer *symbolizer;
	symbol_sink_fn sink;
	void *context;
};

struct place {
	uint64_t address;
	size_t index;
};

/* The work on one file. */
struct batch {
	size_t count;	      /* of all addresses asked for */
	size_t covered;	      /* of those that a segment covers */
	struct place *places; /* the covered ones by address */
	uint64_t *addresses;  /* the same, addresses alone */
	struct symbol_match *matches;
	size_t *order; /* by index: number among the covered ones, or NOT_COVERED */
};

#define NOT_COVERED SIZE_MAX

struct symbolizer *symbolizer__new(void)
{
	struct symbolizer *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->kallsyms = kallsyms__new();
	if (!s->kallsyms)
		goto err_out;
	return s;

err_out:
	symbolizer__free(s);
	return NULL;
}

void symbolizer__free(struct symbolizer *s)
{
	if (!s)
		return;
	kallsyms__free(s->kallsyms);
	free(s);
}

int symbolizer__add_kallsyms(struct symbolizer *s, const char *text, size_t size)
{
	return kallsyms__add(s->kallsyms, text, size);
}

static int deliver(const struct delivery *d, size_t index, uint64_t elf_address,
		   const struct symbol_match *match)
{
	struct symbol_frame frame = {};
	struct symbol_result result = {.elf_address = elf_address};

	if (match && match->name) {
		/* Neighbours are mostly of one function. */
		if (d->symbolizer->mangled != match->name)
			demangle(match->name, d->symbolizer->name, sizeof(d->symbolizer->name));
		d->symbolizer->mangled = match->name;
		frame.function = d->symbolizer->name;
		frame.function_address = match->address;
		frame.function_size = match->size;
		result.frames = &frame;
		result.frame_count = 1;
	}
	return d->sink(d->context, index, &result);
}

static int deliver_nothing(const struct delivery *d, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int err = deliver(d, i, PROFILE_UNKNOWN_ADDRESS, NULL);

		if (err)
			return err;
	}
	return 0;
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static int resolve_kernel(const struct delivery *d, const uint64_t *addresses, size_t count,
			  enum symbol_state *state)
{
	struct kallsyms *kallsyms = d->symbolizer->kallsyms;
	enum symbol_state how = SYMBOL_STATE_RESOLVED;

	if (kallsyms__hidden(kallsyms))
		how = SYMBOL_STATE_HIDDEN;
	else if (kallsyms__empty(kallsyms))
		how = SYMBOL_STATE_NO_SYMBOLS;
	for (size_t i = 0; i < count; i++) {
		struct kernel_function function;
		struct symbol_match match = {};
		int err;

		if (!kallsyms__find(kallsyms, addresses[i], &function))
			match = (struct symbol_match){function.name, function.address,
						      function.size};
		err = deliver(d, i, addresses[i], &match);
		if (err)
			return err;
	}
	*state = how;
	return 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static void batch__fini(struct batch *b)
{
	free(b->places);
	free(b->addresses);
	free(b->matches);
	free(b->order);
}

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static int batch__init(struct batch *b, const struct elf_file *file, const uint64_t *offsets,
		       size_t count)
{
	bool sorted = true;

	b->count = count;
	b->places = calloc(count + 1, sizeof(*b->places));
	b->addresses = calloc(count + 1, sizeof(*b->addresses));
	b->matches = calloc(count + 1, sizeof(*b->matches));
	b->order = calloc(count + 1, sizeof(*b->order));
	if (!b->places || !b->addresses || !b->matches || !b->order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct place place = {.index = i};

		b->order[i] = NOT_COVERED;
		if (elf_file__address_of_offset(file, offsets[i], &place.address))
			continue;
		sorted &= !b->covered || b->places[b->covered - 1].address <= place.address;
		b->places[b->covered++] = place;
	}
	if (!sorted)
		qsort(b->places, b->covered, sizeof(*b->places), compare_places);
	for (size_t i = 0; i < b->covered; i++) {
		b->addresses[i] = b->places[i].address;
		b->order[b->places[i].index] = i;
	}
	return 0;
}

static enum symbol_state state_of_error(int error)
{
	switch (error) {
	case 0:
		return SYMBOL_STATE_RESOLVED;
	case -ENOEXEC:
		return SYMBOL_STATE_NOT_ELF;
	case -ENODATA:
		return SYMBOL_STATE_NO_SYMBOLS;
	default:
		return SYMBOL_STATE_DAMAGED;
	}
}

static int match_symbol_tables(const struct symbol_query *query)
{
	return symbol_table__match(query->file, query->addresses, query->count, query->matches);
}

static const symbol_source_fn SOURCES[] = {
	match_symbol_tables,
};

/* Ask each source in turn. The state is that of the best: names found, damaged, nothing there. */
static int ask_sources(const struct symbol_query *query, enum symbol_state *state)
{
	enum symbol_state best = SYMBOL_STATE_NO_SYMBOLS;

	for (size_t i = 0; i < sizeof(SOURCES) / sizeof(SOURCES[0]); i++) {
		int err = SOURCES[i](query);
		enum symbol_state how = state_of_error(err);

		if (err == -ENOMEM)
			return err;
		if (how == SYMBOL_STATE_RESOLVED || best == SYMBOL_STATE_NO_SYMBOLS)
			best = how;
	}
	*state = best;
	return 0;
}

static int deliver_batch(const struct delivery *d, const struct batch *b)
{
	for (size_t i = 0; i < b->count; i++) {
		size_t number = b->order[i];
		int err;

		if (number == NOT_COVERED)
			err = deliver(d, i, PROFILE_UNKNOWN_ADDRESS, NULL);
		else
			err = deliver(d, i, b->addresses[number], &b->matches[number]);
		if (err)
			return err;
	}
	return 0;
}

static int resolve_open_file(const struct delivery *d, const struct symbolizer_dso *dso,
			     struct elf_file *file, const uint64_t *offsets, size_t count,
			     enum symbol_state *state)
{
	_cleanup_(batch__fini) struct batch batch = {};
	struct symbol_query query = {.dso = dso, .file = file};
	enum symbol_state how;
	int err = batch__init(&batch, file, offsets, count);

	if (err)
		return err;
	query.addresses = batch.addresses;
	query.count = batch.covered;
	query.matches = batch.matches;
	err = ask_sources(&query, &how);
	if (err)
		return err;
	err = deliver_batch(d, &batch);
	if (err)
		return err;
	*state = how;
	return 0;
}

static int resolve_file(const struct delivery *d, const struct symbolizer_dso *dso,
			const uint64_t *offsets, size_t count, enum symbol_state *state)
{
	struct elf_file *file;
	int err;

	err = elf_file__open(dso->fd, &file);
	if (err == -ENOMEM)
		return err;
	if (err) {
		enum symbol_state how = state_of_error(err);

		err = deliver_nothing(d, count);
		if (!err)
			*state = how;
		return err;
	}
	err = resolve_open_file(d, dso, file, offsets, count, state);
	elf_file__free(file);
	return err;
}

int symbolizer__resolve(struct symbolizer *s, const struct symbolizer_dso *dso,
			const uint64_t *addresses, size_t count, symbol_sink_fn sink, void *context,
			enum symbol_state *state)
{
	struct delivery d = {.symbolizer = s, .sink = sink, .context = context};
	enum symbol_state how = SYMBOL_STATE_NO_SYMBOLS;
	bool is_file = dso->kind == DSO_FILE || dso->kind == DSO_VDSO;
	int err;

	/* Names of the file before may have lain at the same place. */
	s->mangled = NULL;
	if (dso->kind == DSO_KERNEL)
		return resolve_kernel(&d, addresses, count, state);
	if (is_file && dso->fd >= 0)
		return resolve_file(&d, dso, addresses, count, state);
	if (is_file)
		how = SYMBOL_STATE_NO_FILE;
	err = deliver_nothing(&d, count);
	if (!err)
		*state = how;
	return err;
}
