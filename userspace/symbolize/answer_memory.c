/* SPDX-License-Identifier: BSD-2-Clause */
/* By module a sorted list of spans that do not overlap; see answer_memory.h. */
#include "symbolize/answer_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/search.h"
#include "base/strtab.h"
#include "base/vec.h"

#define SPAN_MOST                                                                                  \
	(UINT64_C(1) << 20) /* bytes of code: a wrong size misleads no farther than this */
#define MODULE_SHARE 4	    /* a module has at most such a part of the memory */

/* Addresses from `start` on, as they are asked for, and what they are. */
struct span {
	uint64_t start, end;
	uint64_t elf_address; /* of the start */
	uint64_t function_address, function_size;
	uint32_t function; /* a string; 0: no symbol covers it */
};

struct module_memory {
	struct answer_key key;
	VEC(struct span) spans;
	struct strtab *names;
	uint32_t last_name;
	size_t name_bytes;
	uint64_t used; /* the memory's count of uses then */
	enum symbol_state state;
	const char *lines_lost;
};

struct answer_memory {
	VEC(struct module_memory *) modules;
	size_t limit;
	uint64_t uses;
};

struct answer_memory *answer_memory__new(size_t limit)
{
	struct answer_memory *m = calloc(1, sizeof(*m));

	if (m)
		m->limit = limit;
	return m;
}

static void free_module(struct module_memory *module)
{
	if (!module)
		return;
	vec_free(&module->spans);
	strtab__free(module->names);
	free(module);
}

void answer_memory__free(struct answer_memory *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->modules.count; i++)
		free_module(m->modules.data[i]);
	vec_free(&m->modules);
	free(m);
}

/* ---- room ------------------------------------------------------------------------------------ */

static size_t module_bytes(const struct module_memory *module)
{
	return sizeof(*module) + module->spans.capacity * sizeof(struct span) + module->name_bytes;
}

size_t answer_memory__bytes(const struct answer_memory *m)
{
	size_t sum = 0;

	for (size_t i = 0; i < m->modules.count; i++)
		sum += module_bytes(m->modules.data[i]);
	return sum;
}

static void forget_module(struct answer_memory *m, size_t number)
{
	free_module(m->modules.data[number]);
	m->modules.data[number] = m->modules.data[--m->modules.count];
}

/* Except for this one. False: there is no other. */
static bool forget_oldest(struct answer_memory *m, const struct module_memory *except)
{
	size_t oldest = SIZE_MAX;

	for (size_t i = 0; i < m->modules.count; i++)
		if (m->modules.data[i] != except &&
		    (oldest == SIZE_MAX ||
		     m->modules.data[i]->used < m->modules.data[oldest]->used))
			oldest = i;
	if (oldest == SIZE_MAX)
		return false;
	forget_module(m, oldest);
	return true;
}

static struct module_memory *find_module(struct answer_memory *m, const struct answer_key *key)
{
	for (size_t i = 0; i < m->modules.count; i++) {
		struct module_memory *module = m->modules.data[i];

		if (module->key.identity == key->identity &&
		    !memcmp(&module->key, key, sizeof(*key))) {
			module->used = ++m->uses;
			return module;
		}
	}
	return NULL;
}

bool answer_memory__has(struct answer_memory *m, const struct answer_key *key)
{
	return find_module(m, key);
}

/* NULL: no memory. */
static struct module_memory *need_module(struct answer_memory *m, const struct answer_key *key)
{
	struct module_memory *module = find_module(m, key);

	if (module)
		return module;
	module = calloc(1, sizeof(*module));
	if (!module)
		return NULL;
	module->key = *key;
	module->used = ++m->uses;
	module->names = strtab__new();
	if (!module->names || vec_push(&m->modules, module)) {
		free_module(module);
		return NULL;
	}
	return module;
}

/* After something was added to this one. */
static void keep_limits(struct answer_memory *m, struct module_memory *module)
{
	while (answer_memory__bytes(m) > m->limit && forget_oldest(m, module))
		;
	if (module_bytes(module) <= m->limit / MODULE_SHARE)
		return;
	for (size_t i = 0; i < m->modules.count; i++)
		if (m->modules.data[i] == module) {
			forget_module(m, i);
			return;
		}
}

/* ---- spans ----------------------------------------------------------------------------------- */

/* Number of spans that start at this address or before it. */
static size_t spans_until(const struct module_memory *module, uint64_t address)
{
	return partition_point(module->spans.data, module->spans.count, s, s->start <= address);
}

static bool continues(const struct span *a, const struct span *b)
{
	return a->end >= b->start && a->function == b->function &&
	       a->function_address == b->function_address && a->function_size == b->function_size &&
	       b->elf_address - a->elf_address == b->start - a->start;
}

static int insert_span(struct module_memory *module, const struct span *span)
{
	size_t at = spans_until(module, span->start);
	struct span *spans = module->spans.data, new = *span;

	if (at && spans[at - 1].end > new.start)
		return 0; /* it is known */
	if (at<module->spans.count &&new.end> spans[at].start) {
		if (continues(&new, &spans[at])) {
			new.end = max_u64(new.end, spans[at].end);
			spans[at] = new;
			return 0;
		}
		new.end = spans[at].start;
	}
	if (vec_push(&module->spans, new))
		return -ENOMEM;
	spans = module->spans.data;
	memmove(spans + at + 1, spans + at, (module->spans.count - 1 - at) * sizeof(*spans));
	spans[at] = new;
	return 0;
}

static int report_span(const struct module_memory *module, const struct span *span, size_t index,
		       uint64_t address, symbol_sink_fn sink, void *context)
{
	struct symbol_frame frame = {
		.function_address = span->function_address,
		.function_size = span->function_size,
	};
	struct symbol_result result = {
		.elf_address = span->elf_address + (address - span->start),
		.frames = &frame,
		.frame_count = span->function != 0,
	};

	frame.function = strtab__get(module->names, span->function);
	return sink(context, index, &result);
}

int answer_memory__read(struct answer_memory *m, const struct answer_key *key,
			const uint64_t *addresses, size_t count, unsigned char *known,
			symbol_sink_fn sink, void *context, enum symbol_state *state,
			const char **lines_lost)
{
	struct module_memory *module = find_module(m, key);
	int err = 0;

	if (!module)
		return 0;
	*state = module->state;
	*lines_lost = module->lines_lost;
	for (size_t i = 0; i < count && !err; i++) {
		size_t behind = spans_until(module, addresses[i]);
		const struct span *span = behind ? &module->spans.data[behind - 1] : NULL;

		if (known[i] || !span || addresses[i] >= span->end)
			continue;
		known[i] = 1;
		err = report_span(module, span, i, addresses[i], sink, context);
	}
	return err;
}

/* One function by its symbol, or none: what has lines or inlined calls is of its address alone. */
static bool holds_for_more(const struct symbol_result *result)
{
	const struct symbol_frame *frame = result->frames;

	if (result->elf_address == PROFILE_UNKNOWN_ADDRESS ||
	    result->same_until <= result->elf_address || result->frame_count > 1)
		return false;
	return !result->frame_count ||
	       (frame->function[0] && !frame->file && !frame->line && !frame->definition_file);
}

static int name_span(struct module_memory *module, const struct symbol_frame *frame,
		     struct span *span)
{
	int64_t name = strtab__intern(module->names, frame->function);

	if (name < 0)
		return (int)name;
	if (name > module->last_name) {
		module->last_name = (uint32_t)name;
		module->name_bytes += strlen(frame->function) + 1;
	}
	span->function = (uint32_t)name;
	span->function_address = frame->function_address;
	span->function_size = frame->function_size;
	return 0;
}

int answer_memory__add(struct answer_memory *m, const struct answer_key *key, uint64_t address,
		       const struct symbol_result *result, enum symbol_state state,
		       const char *lines_lost)
{
	struct module_memory *module;
	struct span span = {.start = address, .elf_address = result->elf_address};
	uint64_t size;
	int err = 0;

	if (!holds_for_more(result))
		return 0;
	size = min_u64(result->same_until - result->elf_address, SPAN_MOST);
	if (__builtin_add_overflow(address, size, &span.end))
		return 0;
	module = need_module(m, key);
	if (!module)
		return -ENOMEM;
	module->state = state;
	module->lines_lost = lines_lost;
	if (result->frame_count)
		err = name_span(module, &result->frames[0], &span);
	if (!err)
		err = insert_span(module, &span);
	if (!err)
		keep_limits(m, module);
	return err;
}
