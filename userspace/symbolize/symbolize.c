/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel by kallsyms, and state kept between calls. batch.c resolves files, in processes. */
#include "symbolize/symbolize.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "symbolize/demangle.h"
#include "symbolize/file_finder.h"
#include "symbolize/kallsyms.h"
#include "symbolize/module_private.h"
#include "symbolize/sealed_child.h"
#include "symbolize/symbol_cache.h"

#define CACHE_USES   40 /* windows, until it is written and opened again */
#define READINGS_MAX 16

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

static void drop_readings(struct symbolizer *s, size_t count)
{
	for (size_t i = 0; i < count; i++)
		kallsyms__free(s->readings.data[i].symbols);
	vec_drop(&s->readings, count);
}

void symbolizer__free(struct symbolizer *s)
{
	if (!s)
		return;
	kallsyms__free(s->kallsyms);
	drop_readings(s, s->readings.count);
	vec_free(&s->readings);
	kallsyms__free(s->incoming.symbols);
	kernel_history__fini(&s->kernel_history);
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

/* ---- code that comes and goes ---------------------------------------------------------------- */

/* A function that a reading has where other code is or was. */
struct outdated {
	struct kernel_history *history;
	const struct kernel_code *code;
	bool has_gone;	      /* the code */
	uint64_t from, until; /* when the function was there */
};

static int keep_outdated(void *context, const struct kernel_function *function)
{
	const struct outdated *o = context;

	if (o->has_gone && function->address == o->code->start)
		return 0; /* the report has its end, too */
	return kernel_history__keep(o->history, function, o->from, o->until);
}

/* From here on the history has what readings have at the place of the code. */
static int move_outdated(struct symbolizer *s, const struct kernel_code *code,
			 const struct kallsyms_piece *piece)
{
	struct outdated o = {.history = &s->kernel_history,
			     .code = code,
			     .has_gone = piece->has_gone,
			     .until = piece->time};
	int err = kallsyms__void(s->kallsyms, code->start, code->end, keep_outdated, &o);

	for (size_t i = 0; i < s->readings.count && !err; i++) {
		o.from = i ? s->readings.data[i - 1].time : 0;
		err = kallsyms__void(s->readings.data[i].symbols, code->start, code->end,
				     keep_outdated, &o);
	}
	return err;
}

/* Addresses that kallsyms hides must not be shown by an addition: kptr_restrict. */
static int change_code(struct symbolizer *s, const struct kallsyms_piece *piece)
{
	struct kernel_code code;
	int err;

	if (kallsyms__hidden(s->kallsyms) || kallsyms__empty(s->kallsyms) ||
	    !kernel_code__parse(piece->text, piece->size, &code))
		return 0;
	err = move_outdated(s, &code, piece);
	if (err)
		return err;
	return piece->has_gone ? kernel_history__remove(&s->kernel_history, &code, piece->time)
			       : kernel_history__add(&s->kernel_history, &code, piece->time);
}

/* ---- readings -------------------------------------------------------------------------------- */

/* Of many the oldest goes: where those around it disagree, there is no name. */
static int take_reading(struct symbolizer *s)
{
	int err = kernel_history__meet(&s->kernel_history, s->incoming.symbols, s->incoming.time)
			  ?: vec_push(&s->readings, s->incoming);

	if (err)
		return err;
	s->incoming = (struct kernel_reading){};
	if (s->readings.count > READINGS_MAX)
		drop_readings(s, 1);
	return 0;
}

static int add_modules(struct symbolizer *s, const struct kallsyms_piece *piece)
{
	struct kernel_reading *incoming = &s->incoming;
	int err;

	if (piece->begins) {
		kallsyms__free(incoming->symbols);
		*incoming = (struct kernel_reading){kallsyms__new(), piece->time};
	}
	if (!incoming->symbols)
		return piece->begins ? -ENOMEM : 0;
	err = kallsyms__add(incoming->symbols, piece->text, piece->size);
	return err || !piece->ends ? err : take_reading(s);
}

int symbolizer__add_kallsyms(struct symbolizer *s, const char *text, size_t size)
{
	return kallsyms__add(s->kallsyms, text, size);
}

int symbolizer__change_kallsyms(struct symbolizer *s, const struct kallsyms_piece *piece)
{
	return piece->is_reading ? add_modules(s, piece) : change_code(s, piece);
}

bool symbolizer__end_window(struct symbolizer *s, uint64_t time)
{
	size_t old = partition_point(s->readings.data, s->readings.count, r, r->time <= time);
	bool wants = s->unknown;

	s->unknown = false;
	kernel_history__forget(&s->kernel_history, time);
	if (old > 1)
		drop_readings(s, old - 1);
	return wants;
}

/* ---- look-ups -------------------------------------------------------------------------------- */

static bool same_function(const struct kernel_function *a, const struct kernel_function *b)
{
	return a->address == b->address && !strcmp(a->name, b->name) &&
	       !strcmp(a->module, b->module);
}

/*
 * By the last reading before `from`, all up to `until` and the first one behind: code that came
 * and went unreported is in some of them. 0; -ENOENT: in none, or they disagree.
 */
static int find_in_readings(struct symbolizer *s, uint64_t address,
			    const struct kernel_times *times, struct kernel_function *function)
{
	size_t first = partition_point(s->readings.data, s->readings.count, r,
				       r->time <= times->from);
	size_t last = partition_point(s->readings.data, s->readings.count, r,
				      r->time <= times->until);
	int found = -ENOENT;

	if (!kallsyms__find(s->kallsyms, address, function) && (!function->module || !first))
		found = 0;
	if (!found && !function->module)
		return 0;
	for (size_t i = first ? first - 1 : 0; i <= last && i < s->readings.count; i++) {
		struct kernel_reading *reading = &s->readings.data[i];
		struct kernel_function another;

		if (kallsyms__find(reading->symbols, address, &another) || !another.module ||
		    kernel_history__changed(&s->kernel_history, address, times->from,
					    reading->time))
			continue;
		if (!found && !same_function(function, &another))
			return -ENOENT;
		*function = another;
		found = 0;
	}
	return found;
}

/* 0, or -ENOENT. */
static int find_kernel_function(struct symbolizer *s, uint64_t address,
				const struct kernel_times *times, struct kernel_function *function)
{
	const struct kernel_span *span = kernel_history__at(&s->kernel_history, address,
							    times->from);

	if (!span)
		return find_in_readings(s, address, times, function);
	*function = (struct kernel_function){
		.name = span->name,
		.address = span->start,
		.size = span->end - span->start,
		.module = span->module,
	};
	return *span->name ? 0 : -ENOENT;
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

int symbolizer__kernel_function(struct symbolizer *s, size_t index, uint64_t address,
				const struct kernel_times *times, symbol_sink_fn sink,
				void *context)
{
	struct symbol_result result = {.elf_address = address};
	struct kernel_function function;
	struct symbol_frame frame = {};
	char name[DEMANGLED_SIZE];
	size_t length;

	if (!find_kernel_function(s, address, times, &function)) {
		/* the kernel has Rust; the module distinguishes functions of one name */
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
	bool left = kallsyms__left(s->kallsyms) || s->kernel_history.left;

	for (size_t i = 0; i < s->readings.count; i++)
		left |= kallsyms__left(s->readings.data[i].symbols);
	return left;
}

bool symbolize_in_kernel_image(struct symbolizer *s, uint64_t address)
{
	struct kernel_function function;

	return !kallsyms__find(s->kallsyms, address, &function) && !function.module;
}
