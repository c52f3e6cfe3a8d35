/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions about a finished profile. */
#include "profile/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/list_column.h"
#include "base/order.h"
#include "profile/figures.h"

const char *unnamed_location(char *buffer, size_t size, enum dso_kind kind, const char *dso_name,
			     uint64_t address)
{
	switch (kind) {
	case DSO_KERNEL:
		snprintf(buffer, size, "[kernel]");
		return buffer;
	case DSO_JIT:
		snprintf(buffer, size, "0x%" PRIx64, address);
		return buffer;
	case DSO_FILE:
	case DSO_VDSO:
	case DSO_RUNTIME:
		if (!*dso_name)
			break;
		/* "[vdso]" has its brackets already. What does not fit is not read: names may be long */
		snprintf(buffer, size, *dso_name == '[' ? "%.*s" : "[%.*s]", (int)size, dso_name);
		return buffer;
	case DSO_NONE:
	case DSO_UNKNOWN:
		break;
	}
	snprintf(buffer, size, "[unknown]");
	return buffer;
}

const char *dso_display_name(const struct profile *p, struct dso_id id)
{
	const struct profile_dso *dso = &p->dsos[id.v];
	const char *name = profile__string(p, dso->name);

	switch (dso->kind) {
	case DSO_KERNEL:
		return *name && strcmp(name, "[kernel]") ? name : "[kernel.kallsyms]";
	case DSO_JIT:
	case DSO_RUNTIME:
		return dso->is_interpreted && *name ? name : "[jit]";
	case DSO_VDSO:
		return *name ? name : "[vdso]";
	case DSO_FILE:
		return *name ? name : "[unknown]";
	case DSO_NONE:
	case DSO_UNKNOWN:
		break;
	}
	return "[unknown]";
}

bool dso_has_path(const struct profile_dso *dso)
{
	return dso->kind == DSO_FILE || dso->is_interpreted;
}

const char *code_machine_name(enum code_machine machine)
{
	static const char *const names[CODE_MACHINE_COUNT] = {
#define X(id, name) name,
		CODE_MACHINES(X)
#undef X
	};

	return (unsigned int)machine < CODE_MACHINE_COUNT ? names[machine] : "";
}

const char *source_state_text(enum source_state state)
{
	static const char *const texts[SOURCE_STATE_COUNT] = {
#define X(id, text) text,
		SOURCE_STATES(X)
#undef X
	};

	return (unsigned int)state < SOURCE_STATE_COUNT ? texts[state] : "";
}

static bool begins_before(const struct profile_code *code, const struct profile_code *other)
{
	return (order_of(code->dso.v, other->dso.v) ?: order_of(code->process.v, other->process.v) ?:
		order_of(code->version, other->version) ?: order_of(code->address, other->address)) <= 0;
}

const struct profile_code *profile__code(const struct profile *p,
					 const struct profile_location *location)
{
	enum dso_kind kind = p->dsos[location->dso.v].kind;
	const struct profile_code wanted = {
		.dso = location->dso,
		.process = location->process,
		/* versions of files' locations differ in names only */
		.version = kind == DSO_FILE || kind == DSO_VDSO ? 0
			   : kind == DSO_JIT			? location->code_version
								: location->version,
		.address = location->address,
	};
	size_t end = partition_index(p->code_count, i, begins_before(&p->codes[i], &wanted));
	const struct profile_code *code = end ? &p->codes[end - 1] : NULL;

	return code && codes_overlap(code, &wanted) ? code : NULL;
}

const struct profile_code_row *profile__code_row(const struct profile *p,
						 const struct profile_code *code, uint64_t offset)
{
	const struct profile_code_row *rows = p->code_rows + code->first_row;
	size_t end = partition_index(code->row_count, i, rows[i].offset <= offset);

	return end && offset < code->size ? &rows[end - 1] : NULL;
}

struct profile_line source_line(const struct profile_line *line, enum dso_kind kind,
				const struct profile_function *function)
{
	if (line->line || !dso_kind_is_made(kind) || !function->definition_line)
		return *line;
	return (struct profile_line){line->function, function->definition_file,
				     function->definition_line, 0};
}

struct profile_line profile__source_line(const struct profile *p, const struct profile_location *l,
					 uint32_t line)
{
	return source_line(&p->lines[line], p->dsos[l->dso.v].kind,
			   &p->functions[p->lines[line].function.v]);
}

uint8_t profile__source_root(const struct profile *p, struct dso_id dso)
{
	return dso_kind_is_made(p->dsos[dso.v].kind) ? SOURCE_ROOT_SCRIPTS
						     : p->dsos[dso.v].source_root;
}

const struct profile_source *profile__first_source(const struct profile *p, struct string_id path)
{
	size_t at = partition_index(p->source_count, i, p->sources[i].path.v < path.v);

	return at < p->source_count && p->sources[at].path.v == path.v ? &p->sources[at] : NULL;
}

const struct profile_source *profile__source(const struct profile *p, struct dso_id dso,
					     struct string_id path)
{
	const struct profile_source *s = profile__first_source(p, path);
	const uint8_t root = profile__source_root(p, dso);

	for (; s && s < p->sources + p->source_count && s->path.v == path.v; s++)
		if (s->root == root || s->root == SOURCE_ROOT_ALL)
			return s;
	return NULL;
}

const char *profile__meta(const struct profile *p, const char *key)
{
	for (size_t i = 0; i < p->meta_count; i++)
		if (!strcmp(profile__string(p, p->meta[i].key), key))
			return profile__string(p, p->meta[i].value);
	return NULL;
}

/* FNV-1a: the hash of base/hashmap.h has another key in each run. */
uint64_t profile__filter_hash(const struct profile *p)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (const char *text = profile__string(p, p->filter); *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

uint64_t profile_thread__cpu(const struct profile_thread *thread)
{
	const struct profile_samples *samples = &thread->samples[SAMPLE_CPU];
	uint64_t sum = thread->cpu_tail;

	for (size_t i = 0; i < samples->count; i++)
		sum += samples->weight[i];
	return sum;
}

const char *wall_state_name(enum wall_state state)
{
	return (unsigned int)state < WALL_STATE_COUNT ? figure_table[FIGURE_STATES + state].key
						      : "";
}

const char *profile__event(const struct profile *p)
{
	return p->event.v ? profile__string(p, p->event) : p->uncounted ? "weight" : "samples";
}

const char *profile__event_unit(const struct profile *p)
{
	return p->event.v ? profile__string(p, p->event_unit) : "count";
}

bool profile__events_are_cpu(const struct profile *p)
{
	return p->event.v && !strcmp(profile__event(p), EVENT_CPU) &&
	       !strcmp(profile__event_unit(p), EVENT_CPU_UNIT);
}

void profile__count_stacks(const struct profile *p, uint64_t *events)
{
	for (size_t i = 1; i < p->thread_count; i++) {
		const struct profile_samples *samples = &p->threads[i].samples[SAMPLE_CPU];

		for (size_t k = 0; k < samples->count; k++)
			events[samples->stack[k].v] += profile_samples__events(samples, k);
	}
}

bool stack_end_is_complete(enum stack_end end)
{
	return !figure_table[FIGURE_ENDS + end].is_loss;
}

double profile__complete_share(const struct profile *p)
{
	uint64_t all = 0, good = 0;

	for (int i = 0; i < STACK_END_COUNT; i++) {
		all += p->stack_ends[i];
		if (stack_end_is_complete(i))
			good += p->stack_ends[i];
	}
	return all ? (double)good / (double)all : 1.0;
}

double profile__named_share(const struct profile *p)
{
	size_t named = 0;

	if (p->location_count <= 1)
		return 1.0;
	for (size_t i = 1; i < p->location_count; i++)
		named += !p->locations[i].unnamed;
	return (double)named / (double)(p->location_count - 1);
}

int64_t profile__unexplained_ticks(const struct profile *p)
{
	int64_t sum = 0;

	for (size_t i = 0; i < p->books_count; i++) {
		const struct profile_cpu_books *books = &p->books[i];

		if (!profile_cpu_books__due_is_known(books))
			continue;
		sum += (int64_t)books->due;
		for (int line = 0; line < BOOK_COUNT; line++)
			sum -= (int64_t)books->count[line];
	}
	return sum;
}

static uint64_t largest_period(const struct profile *p)
{
	uint64_t largest = 0;

	for (size_t i = 1; i < p->thread_count; i++) {
		const struct profile_samples *samples = &p->threads[i].samples[SAMPLE_CPU];

		for (size_t k = 0; samples->events && k < samples->count; k++)
			largest = samples->events[k] > largest ? samples->events[k] : largest;
	}
	return largest;
}

int64_t profile__unexplained_allowed(const struct profile *p)
{
	int64_t period = p->event_period ? 0 : (int64_t)largest_period(p), allowed = 0;

	for (size_t i = 0; i < p->books_count; i++) {
		if (p->books[i].period)
			allowed += 2 + (int64_t)(p->books[i].due / 20000);
		else if (p->books[i].counts_events)
			allowed += 2 * period;
	}
	return allowed;
}

const char *code_tier_text(enum code_tier tier)
{
	static const char *const texts[CODE_TIER_COUNT] = {CODE_TIERS(SECOND_COLUMN)};

	return texts[tier];
}

const char *symbol_state_text(enum symbol_state state)
{
	static const char *const texts[SYMBOL_STATE_COUNT] = {SYMBOL_STATES(SECOND_COLUMN)};

	return texts[state];
}
