/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel by kallsyms, and state kept between calls. batch.c resolves files, in processes. */
#include "symbolize/symbolize.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "symbolize/demangle.h"
#include "symbolize/file_finder.h"
#include "symbolize/kallsyms.h"
#include "symbolize/module_private.h"
#include "symbolize/sealed_child.h"
#include "symbolize/symbol_cache.h"

#define CACHE_USES 40	/* windows, until it is written and opened again */
#define ADDED_MAX  1024 /* symbols; with more of them those that are gone are worth a new reading */

struct symbolizer *symbolizer__new(void)
{
	struct symbolizer *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	quota__init(&s->cpu, QUOTA_SYMBOLS);
	s->kallsyms = kallsyms__new();
	if (s->kallsyms)
		return s;
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
	sealed_keeper__free(s->keeper);
	file_finder__free(s->finder);
	free(s);
}

void symbolizer__start_helpers(struct symbolizer *s, bool remember)
{
	s->keeper = sealed_keeper__new();
	if (remember)
		s->finder = file_finder__new(NULL);
	if (s->finder)
		file_finder__start(s->finder);
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
	}
	if (s->cache_uses++ % CACHE_USES == 0)
		symbol_cache__reopen(s->cache);
	return s->cache;
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
		/* the kernel has Rust; the module tells functions of one name apart */
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

bool symbolize_kernel_left(const struct symbolizer *s)
{
	return kallsyms__left(s->kallsyms) || (s->modules && kallsyms__left(s->modules));
}

bool symbolize_in_kernel_image(struct symbolizer *s, uint64_t address)
{
	struct kernel_function function;

	return !find_kernel_function(s, address, &function) && !function.module;
}
