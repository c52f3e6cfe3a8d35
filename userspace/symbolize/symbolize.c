/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The symbolizer in one process: the kernel by kallsyms, a file by its own tables and DWARF.
 * batch.c does many files at once, beside this process.
 */
#include "symbolize/symbolize.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "symbolize/demangle.h"
#include "symbolize/kallsyms.h"
#include "symbolize/module.h"
#include "symbolize/sealed_pool.h"
#include "symbolize/symbol_cache.h"

#define CACHE_USES  40		      /* windows, until it is written and opened again */
#define CACHE_BYTES ((size_t)8 << 20) /* that it keeps */
#define ADDED_MAX   1024 /* symbols; with more of them those that are gone are worth a new reading */

struct symbolizer {
	struct kallsyms *kallsyms; /* the first reading */
	/* a later one of all but the image, which replaces what that has; or NULL */
	struct kallsyms *modules;
	struct kallsyms *incoming; /* the next of these, not complete; or NULL */
	unsigned int added;	   /* since the last reading */
	bool unknown;
	struct symbol_cache *cache; /* NULL: not wanted yet */
	unsigned int cache_uses;
	struct sealed_pool *pool; /* NULL: not wanted */
};

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
	kallsyms__free(s->modules);
	kallsyms__free(s->incoming);
	symbol_cache__free(s->cache);
	sealed_pool__free(s->pool);
	free(s);
}

void symbolizer__keep_readers(struct symbolizer *s)
{
	if (!s->pool)
		s->pool = sealed_pool__new(SYMBOLIZER_READERS_BYTES);
}

void symbolizer__limit_readers(struct symbolizer *s, size_t bytes)
{
	if (s->pool)
		sealed_pool__limit(s->pool, bytes);
}

struct sealed_pool *symbolize_pool(struct symbolizer *s)
{
	return s->pool;
}

/* Addresses that kallsyms hides must not be shown by an addition: kptr_restrict. */
static int add_later(struct symbolizer *s, const struct kallsyms_piece *piece)
{
	int err = 0;

	if (kallsyms__hidden(s->kallsyms) || kallsyms__empty(s->kallsyms))
		return 0;
	s->added++;
	if (s->incoming)
		err = kallsyms__add(s->incoming, piece->text, piece->size);
	return err ? err
		   : kallsyms__add(s->modules ? s->modules : s->kallsyms, piece->text, piece->size);
}

static int add_modules(struct symbolizer *s, const struct kallsyms_piece *piece)
{
	int err;

	if (piece->begins) {
		kallsyms__free(s->incoming);
		s->incoming = kallsyms__new();
	}
	if (!s->incoming)
		return piece->begins ? -ENOMEM : 0;
	err = kallsyms__add(s->incoming, piece->text, piece->size);
	if (err || !piece->ends)
		return err;
	kallsyms__free(s->modules);
	s->modules = s->incoming;
	s->incoming = NULL;
	s->added = 0;
	return 0;
}

int symbolizer__add_kallsyms(struct symbolizer *s, const char *text, size_t size)
{
	return kallsyms__add(s->kallsyms, text, size);
}

int symbolizer__change_kallsyms(struct symbolizer *s, const struct kallsyms_piece *piece)
{
	return piece->is_reading ? add_modules(s, piece) : add_later(s, piece);
}

bool symbolizer__wants_modules(struct symbolizer *s)
{
	bool wants = s->unknown || s->added > ADDED_MAX;

	s->unknown = false;
	return wants;
}

/* 0, or -ENOENT. */
static int find_kernel_function(struct symbolizer *s, uint64_t address,
				struct kernel_function *function)
{
	if (!s->modules)
		return kallsyms__find(s->kallsyms, address, function);
	if (!kallsyms__find(s->modules, address, function))
		return 0;
	return kallsyms__find(s->kallsyms, address, function) || function->module ? -ENOENT : 0;
}

struct symbol_cache *symbolize_cache(struct symbolizer *s)
{
	if (!s->cache) {
		s->cache = symbol_cache__new();
		if (!s->cache)
			return NULL;
		symbol_cache__keep(s->cache, CACHE_BYTES);
	}
	if (s->cache_uses++ % CACHE_USES == 0)
		symbol_cache__reopen(s->cache);
	return s->cache;
}

bool symbolize_is_file(enum dso_kind kind)
{
	return kind == DSO_FILE || kind == DSO_VDSO;
}

int symbolize_nothing(size_t count, symbol_sink_fn sink, void *context)
{
	const struct symbol_result nothing = {.elf_address = PROFILE_UNKNOWN_ADDRESS};

	for (size_t i = 0; i < count; i++) {
		int err = sink(context, i, &nothing);

		if (err)
			return err;
	}
	return 0;
}

int symbolize_kernel_address(struct symbolizer *s, size_t index, uint64_t address,
			     symbol_sink_fn sink, void *context)
{
	struct symbol_result result = {.elf_address = address};
	struct kernel_function function;
	struct symbol_frame frame = {};
	char name[DEMANGLED_SIZE];
	size_t length;

	if (!find_kernel_function(s, address, &function)) {
		/* the kernel has Rust in it; and the module distinguishes functions with one name */
		length = demangle(function.name, name, sizeof(name));
		if (function.module)
			snprintf(name + length, sizeof(name) - length, " %s", function.module);
		frame.function = name;
		frame.function_address = function.address;
		frame.function_size = function.size;
		result.frames = &frame;
		result.frame_count = 1;
	} else {
		s->unknown = true;
	}
	return sink(context, index, &result);
}

enum symbol_state symbolize_kernel_state(const struct symbolizer *s)
{
	if (kallsyms__hidden(s->kallsyms))
		return SYMBOL_STATE_HIDDEN;
	return kallsyms__empty(s->kallsyms) ? SYMBOL_STATE_NO_SYMBOLS : SYMBOL_STATE_RESOLVED;
}

bool symbolize_in_kernel_image(struct symbolizer *s, uint64_t address)
{
	struct kernel_function function;

	return !find_kernel_function(s, address, &function) && !function.module;
}

int symbolize_kernel_start(const struct symbolizer *s, uint64_t *address)
{
	return kallsyms__text_start(s->kallsyms, address);
}

static int resolve_kernel(struct symbolizer *s, const uint64_t *addresses, size_t count,
			  symbol_sink_fn sink, void *context, enum symbol_state *state)
{
	for (size_t i = 0; i < count; i++) {
		int err = symbolize_kernel_address(s, i, addresses[i], sink, context);

		if (err)
			return err;
	}
	*state = symbolize_kernel_state(s);
	return 0;
}

static int resolve_file(const struct symbolizer_dso *dso, const uint64_t *addresses, size_t count,
			symbol_sink_fn sink, void *context, enum symbol_state *state)
{
	const struct module_files files = {
		.kind = dso->kind,
		.elf_fd = dso->fd,
		.elf_base = dso->base,
		.debug_fd = -1,
		.alt_fd = -1,
	};
	struct module_report report;
	int err = module_resolve(&files, addresses, count, sink, context, &report);

	if (!err)
		*state = report.state;
	return err;
}

int symbolizer__resolve(struct symbolizer *s, const struct symbolizer_dso *dso,
			const uint64_t *addresses, size_t count, symbol_sink_fn sink, void *context,
			enum symbol_state *state)
{
	bool is_file = symbolize_is_file(dso->kind);
	int err;

	if (dso->kind == DSO_KERNEL)
		return resolve_kernel(s, addresses, count, sink, context, state);
	if (is_file && dso->fd >= 0)
		return resolve_file(dso, addresses, count, sink, context, state);
	err = symbolize_nothing(count, sink, context);
	if (!err)
		*state = is_file ? SYMBOL_STATE_NO_FILE : SYMBOL_STATE_NO_SYMBOLS;
	return err;
}
