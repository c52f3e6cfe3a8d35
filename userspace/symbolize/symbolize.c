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

struct symbolizer {
	struct kallsyms *kallsyms;
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
	free(s);
}

int symbolizer__add_kallsyms(struct symbolizer *s, const char *text, size_t size)
{
	return kallsyms__add(s->kallsyms, text, size);
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

	if (!kallsyms__find(s->kallsyms, address, &function)) {
		/* the kernel has Rust in it; and a module's name tells functions of one name apart */
		length = demangle(function.name, name, sizeof(name));
		if (function.module)
			snprintf(name + length, sizeof(name) - length, " %s", function.module);
		frame.function = name;
		frame.function_address = function.address;
		frame.function_size = function.size;
		result.frames = &frame;
		result.frame_count = 1;
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

	return !kallsyms__find(s->kallsyms, address, &function) && !function.module;
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
