/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A place is one address of one process: one location in the profile until now. Its contents are a
 * history; each sample looks up its own time. The location itself gets the first answer, a version
 * of it each other one, and the sample's stack is rebuilt. Most places have one answer for the
 * whole recording; a stack that has only such places is rebuilt once.
 */
#include "jit/names/jit_names.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sysprof/meta_keys.h>
#include <sysprof/profile_code.h>

#include "base/cleanup.h"
#include "base/list_column.h"
#include "base/map.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/vec.h"
#include "jit/jit_code.h"
#include "jit/jit_name.h"
#include "jit/names/jit_sources.h"
#include "runtimes/java_name.h"
#include "runtimes/runtime.h"
#include "runtimes/table.h"
#include "stream/symbol_blob.h"
#include "tenants/outside_books.h"

struct code_process {
	const struct jit_process *process;
	uint64_t samples, unnamed, ambiguous, read;
};

/* The name of a place at a time. */
struct version {
	const struct jit_code *code; /* NULL: nothing is known */
	uint32_t entry;
	uint32_t copy; /* the last other entry that was found to be the same */
	bool ambiguous;
	struct location_id location;
};

#define CODE_BYTES_MAX	  (UINT64_C(64) << 20) /* of machine code in a profile */
#define VERSIONS_COMPARED 64u		       /* the last ones; older ones may come twice */

/*
 * Taking the histories of a process's places from a file takes time in all entries of the file. It
 * belongs to one process, so entries read repeatedly are limited, as are the changes that are kept.
 */
#define REPEATED_MAX (16u << 20)
#define CHANGES_MAX  (4u << 20)

/* A name as it was parsed, or the file of a line. */
struct kept_text {
	const struct jit_code *code;
	uint32_t number; /* jit_code__name_number() */
	bool is_file;
	struct string_id function, full_name, file;
	uint32_t line, column;
	enum code_tier tier;
};

/* An entry whose machine code is in the profile, or had no room. */
struct kept_code {
	const struct jit_code *code;
	uint32_t entry;
	uint32_t version; /* as in profile_code; 0: it is not there */
};

struct jit_location {
	uint32_t process; /* in `processes` */
	struct location_id location;
	uint64_t address;
	uint32_t first; /* place of the process with this address: it has the histories */
	struct jit_history histories[JIT_FILE_KIND_COUNT];
	bool constant; /* one answer for all times of the recording */
	VEC(struct version) versions;
};

/* The new stack of a stack without changing places. */
struct done_stack {
	bool is_done, has_code, changes, unnamed, ambiguous;
	bool is_read; /* it has a frame whose function was read from the process's memory */
	struct stack_id stack;
};

static bool same_text(const struct kept_text *a, const struct kept_text *b)
{
	return a->code == b->code && a->number == b->number && a->is_file == b->is_file;
}

static uint64_t hash_text(const struct kept_text *text)
{
	return hash_combine(hash_u64((uintptr_t)text->code),
			    (uint64_t)text->number << 1 | text->is_file);
}

DEFINE_MAP_OF(text_map, struct kept_text, hash_text, same_text);

static bool same_code(const struct kept_code *a, const struct kept_code *b)
{
	return a->code == b->code && a->entry == b->entry;
}

static uint64_t hash_code(const struct kept_code *code)
{
	return hash_combine(hash_u64((uintptr_t)code->code), code->entry);
}

DEFINE_MAP_OF(code_map, struct kept_code, hash_code, same_code);

struct jit_names {
	struct profile_builder *builder;
	struct jit_sources *sources;
	struct code_process *processes; /* by id */
	size_t process_count;
	VEC(struct jit_location) places;
	uint32_t *place_of; /* index + 1, by location; the profile's own ones only */
	size_t location_count;
	struct done_stack *done; /* by stack; the same */
	size_t stack_count;
	struct text_map texts; /* what was parsed: it may be long, and many places have it */
	struct code_map codes;
	uint32_t code_versions; /* given so far */
	uint64_t code_bytes;	/* kept in the profile */
	uint64_t codes_left;	/* entries with samples whose machine code had no room */
	uint64_t repeated, changes, changes_most;
};

static void jit_names__fini(struct jit_names *j)
{
	for (size_t i = 0; i < j->places.count; i++) {
		struct jit_location *place = &j->places.data[i];

		for (int kind = 0; kind < JIT_FILE_KIND_COUNT; kind++)
			jit_history__fini(&place->histories[kind]);
		vec_free(&place->versions);
	}
	vec_free(&j->places);
	text_map__fini(&j->texts);
	code_map__fini(&j->codes);
	free(j->place_of);
	free(j->done);
	free(j->processes);
}

DEFINE_ORDER(compare_processes, struct code_process, ASCENDING(process->id.v));

static int sort_processes(struct jit_names *j, const struct jit_process *processes, size_t count)
{
	j->processes = calloc(count, sizeof(*j->processes));
	if (!j->processes)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		j->processes[i].process = &processes[i];
	j->process_count = count;
	qsort(j->processes, count, sizeof(*j->processes), compare_processes);
	return 0;
}

/* NULL: it makes no code. */
static struct code_process *find_process(const struct jit_names *j, struct process_id id)
{
	size_t i = partition_point(j->processes, j->process_count, p, p->process->id.v < id.v);

	return i < j->process_count && j->processes[i].process->id.v == id.v ? &j->processes[i]
									     : NULL;
}

/* ---- places ---------------------------------------------------------------------------------- */

DEFINE_ORDER(compare_places, struct jit_location, ASCENDING(process) ?: ASCENDING(address) ?: ASCENDING(location.v));

/* Every location in code of a process that is known to make some, by process and address. */
static int collect_places(struct jit_names *j)
{
	j->location_count = profile_builder__location_count(j->builder);
	j->place_of = calloc(j->location_count, sizeof(*j->place_of));
	if (!j->place_of)
		return -ENOMEM;
	for (uint32_t i = 1; i < j->location_count; i++) {
		const struct location_id id = {i};
		const struct profile_location *l = profile_builder__get_location(j->builder, id);
		const struct code_process *process = find_process(j, l->process);
		struct jit_location place = {.location = id, .address = l->address};

		if (!process || profile_builder__get_dso(j->builder, l->dso)->kind != DSO_JIT)
			continue;
		place.process = process - j->processes;
		if (vec_push(&j->places, place))
			return -ENOMEM;
	}
	vec_sort(&j->places, compare_places);
	for (size_t i = 0; i < j->places.count; i++) {
		struct jit_location *place = &j->places.data[i];
		bool repeated = i && place[-1].process == place->process &&
				place[-1].address == place->address;

		place->first = repeated ? place[-1].first : i;
		j->place_of[place->location.v] = i + 1;
	}
	return 0;
}

static struct jit_code *code_of(const struct jit_names *j, const struct code_process *process,
				int kind)
{
	const struct jit_source *source = jit_sources__get(j->sources,
							   process->process->files[kind]);

	return source ? source->code : NULL;
}

/* Histories of one process's places, from one of its files. Two locations can have one address. */
static int read_histories(struct jit_code *code, int kind, struct jit_location *places,
			  size_t count)
{
	_cleanup_free_ uint64_t *addresses = calloc(count, sizeof(*addresses));
	_cleanup_free_ struct jit_history *histories = calloc(count, sizeof(*histories));
	size_t distinct = 0;
	int err;

	if (!addresses || !histories)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (!i || places[i].address != places[i - 1].address)
			addresses[distinct++] = places[i].address;
	err = jit_timeline__histories(jit_code__timeline(code), addresses, distinct, histories);
	for (size_t i = 0, at = 0; i < count; i++) {
		at += i && places[i].address != places[i - 1].address;
		if (err)
			jit_history__fini(&histories[at]);
		else if (!i || places[i].address != places[i - 1].address)
			places[i].histories[kind] = histories[at];
	}
	return err;
}

/* If two locations have one address, the second one uses the history of the first. */
static const struct jit_history *history_of(const struct jit_names *j,
					    const struct jit_location *place, int kind)
{
	return &j->places.data[place->first].histories[kind];
}

static bool is_constant(const struct jit_names *j, const struct jit_location *place)
{
	uint64_t start = profile_builder__session(j->builder)->start;

	for (int kind = 0; kind < JIT_FILE_KIND_COUNT; kind++) {
		const struct jit_history *h = history_of(j, place, kind);

		if (h->changes.count && h->changes.data[h->changes.count - 1].before >= start)
			return false;
	}
	return true;
}

/* May it be read once more? */
static bool may_read(struct jit_names *j, struct jit_source *source)
{
	size_t entries = jit_timeline__count(jit_code__timeline(source->code));

	if (source->was_read)
		j->repeated += entries;
	else
		j->changes_most += (uint64_t)entries * JIT_CHANGES_EACH;
	source->was_read = true;
	return j->repeated <= REPEATED_MAX;
}

/* Are there too many changes with these? Then these are dropped. */
static bool too_many_changes(struct jit_names *j, int kind, struct jit_location *places,
			     size_t count)
{
	for (size_t i = 0; i < count; i++)
		j->changes += places[i].histories[kind].changes.count;
	if (j->changes <= j->changes_most)
		return false;
	for (size_t i = 0; i < count; i++) {
		j->changes -= places[i].histories[kind].changes.count;
		jit_history__fini(&places[i].histories[kind]);
	}
	return true;
}

/* Too many changes to be kept: the file counts as bad, and gives no names. */
static int read_process(struct jit_names *j, uint32_t number, struct jit_location *places,
			size_t count)
{
	const struct code_process *process = &j->processes[number];

	for (int kind = 0; kind < JIT_FILE_KIND_COUNT; kind++) {
		struct jit_source *source = jit_sources__get(j->sources,
							     process->process->files[kind]);
		int err;

		if (!source || !source->code)
			continue;
		err = may_read(j, source) ? read_histories(source->code, kind, places, count)
					  : -E2BIG;
		if (err == -ENOMEM)
			return err;
		if (err || too_many_changes(j, kind, places, count))
			source->state = JIT_FILE_STATE_TOO_BIG;
	}
	return 0;
}

static int read_all(struct jit_names *j)
{
	size_t end;
	int err = jit_sources__settle(j->sources);

	j->changes_most = CHANGES_MAX + (uint64_t)j->places.count * JIT_CHANGES_EACH;
	for (size_t i = 0; i < j->places.count && !err; i = end) {
		uint32_t process = j->places.data[i].process;

		for (end = i; end < j->places.count && j->places.data[end].process == process;)
			end++;
		err = read_process(j, process, &j->places.data[i], end - i);
	}
	for (size_t i = 0; i < j->places.count && !err; i++)
		j->places.data[i].constant = is_constant(j, &j->places.data[i]);
	return err;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* At most what a symbol in a recording can have, cut between characters of UTF-8. */
static size_t kept_size(struct jit_text text)
{
	size_t size = text.size;

	if (size < SYMBOL_STRING_MAX)
		return size;
	size = SYMBOL_STRING_MAX - 1;
	while (size && ((unsigned char)text.text[size] & 0xc0) == 0x80)
		size--;
	return size;
}

static struct string_id keep_text(struct jit_names *j, struct jit_text text)
{
	_cleanup_free_ char *copy = text.size ? strndup(text.text, kept_size(text)) : NULL;

	return profile_builder__string(j->builder, copy);
}

/* Code of a JVM that is not a method's has its name in brackets, as where its memory is read. */
static bool is_stub_of_jvm(const struct code_process *process, const char *name)
{
	const struct runtime *runtime = process->process->runtime;

	return runtime && runtime->memory && runtime->memory->notes->has_signatures &&
	       *name != '[' && !strstr(name, "::");
}

static void parse_name(struct jit_names *j, const struct code_process *process, const char *name,
		       struct kept_text *text)
{
	struct jit_name parsed;
	struct java_name java;
	char stub[SYMBOL_STRING_MAX];

	if (java_name__parse(&java, name, strlen(name))) {
		text->function = profile_builder__string(j->builder, java.brief);
		text->full_name = profile_builder__string(j->builder, java.full);
		return;
	}
	parsed = jit_name_parse(name, strlen(name));
	if (is_stub_of_jvm(process, name)) {
		snprintf(stub, sizeof(stub), "[%.*s]",
			 (int)min_u64(parsed.function.size, sizeof(stub) - 3),
			 parsed.function.text);
		parsed = (struct jit_name){.function = {stub, strlen(stub)},
					   .tier = CODE_TIER_STUB};
	}
	text->function = keep_text(j, parsed.function);
	text->file = keep_text(j, parsed.file);
	text->line = parsed.line;
	text->column = parsed.column;
	text->tier = parsed.tier;
}

/* The entry with the same key as `text`, filled if it is new. */
static struct kept_text find_text(struct jit_names *j, const struct code_process *process,
				  struct kept_text text, const char *name)
{
	const struct kept_text *known = text_map__find(&j->texts, &text);

	if (known)
		return *known;
	if (text.is_file)
		text.file = profile_builder__string(j->builder, name);
	else
		parse_name(j, process, name, &text);
	text_map__need(&j->texts, &text, NULL); /* without memory it is parsed again */
	return text;
}

/* ---- machine code ---------------------------------------------------------------------------- */

static enum code_machine machine_of(uint32_t machine)
{
	return machine == EM_X86_64    ? CODE_MACHINE_X86_64
	       : machine == EM_AARCH64 ? CODE_MACHINE_ARM64
				       : CODE_MACHINE_UNKNOWN;
}

static struct string_id file_of(struct jit_names *j, const struct code_process *process,
				const struct jit_code *code, const struct jit_line *line)
{
	return find_text(j, process,
			 (struct kept_text){
				 .code = code, .number = line->file_number, .is_file = true},
			 line->file)
		.file;
}

#define ROWS_MAX 65536u /* of a function; the rest has the last one's line */

/* Of lines at one offset the last one counts, as for samples. `fallback`: of lines without a file. */
static void add_code(struct jit_names *j, const struct code_process *process,
		     const struct jit_bytes *text, struct profile_code *added,
		     const struct version *v, const struct profile_line *line,
		     struct string_id fallback)
{
	size_t count = min_u64(jit_code__line_count(v->code, v->entry), ROWS_MAX);
	VEC(struct profile_code_row) rows = {};
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		struct profile_code_row row = {.function = line->function, .file = fallback};
		const struct jit_line at = jit_code__line_at(v->code, v->entry, i, &row.offset);

		if (*at.file)
			row.file = file_of(j, process, v->code, &at);
		row.line = at.line;
		row.column = at.column;
		if (row.offset >= text->size)
			break;
		if (rows.count && rows.data[rows.count - 1].offset == row.offset)
			rows.data[rows.count - 1] = row;
		else
			err = vec_push(&rows, row);
	}
	if (!err) /* without memory for its lines it is not there */
		profile_builder__add_code(j->builder, added, rows.data, rows.count);
	vec_free(&rows);
}

/* The number of the machine code of an entry, which is added with its first location; 0: there is none. */
static uint32_t find_code(struct jit_names *j, const struct code_process *process,
			  const struct profile_location *place, const struct version *v,
			  const struct profile_line *line, struct string_id fallback)
{
	struct kept_code wanted = {.code = v->code, .entry = v->entry};
	const struct kept_code *known = code_map__find(&j->codes, &wanted);
	struct profile_code added = {.dso = place->dso, .process = place->process};
	struct jit_bytes text;
	enum jit_text_state state;

	if (known)
		return known->version;
	state = jit_code__bytes(v->code, v->entry, &text);
	if (state == JIT_TEXT_KEPT && text.size > CODE_BYTES_MAX - j->code_bytes)
		state = JIT_TEXT_LEFT;
	j->codes_left += state == JIT_TEXT_LEFT;
	if (state == JIT_TEXT_KEPT) {
		wanted.version = ++j->code_versions;
		j->code_bytes += text.size;
	}
	if (!code_map__need(&j->codes, &wanted, NULL))
		return 0;
	if (!wanted.version)
		return 0;
	added.version = wanted.version;
	added.machine = machine_of(text.machine);
	added.address = text.address;
	added.bytes = text.bytes;
	added.size = text.size;
	add_code(j, process, &text, &added, v, line, fallback);
	return wanted.version;
}

static void name_location(struct jit_names *j, const struct jit_location *place,
			  struct location_id id, const struct version *v)
{
	const struct code_process *process = &j->processes[place->process];
	const struct kept_text name =
		find_text(j, process,
			  (struct kept_text){.code = v->code,
					     .number = jit_code__name_number(v->code, v->entry)},
			  jit_code__name(v->code, v->entry));
	const struct profile_function function = {
		.name = name.function,
		.full_name = name.full_name,
		.dso = profile_builder__get_location(j->builder, id)->dso,
		.address = PROFILE_UNKNOWN_ADDRESS,
		.definition_file = name.file,
		.definition_line = name.line,
		.definition_column = name.column,
	};
	struct profile_line line = {.file = function.definition_file};
	struct profile_location location;
	struct jit_line executing;

	if (!function.name.v)
		return;
	if (jit_code__line(v->code, v->entry, place->address, &executing)) {
		if (*executing.file)
			line.file = file_of(j, process, v->code, &executing);
		line.line = executing.line;
		line.column = executing.column;
	}
	line.function = profile_builder__function(j->builder, &function);
	profile_builder__resolve(j->builder, id, PROFILE_UNKNOWN_ADDRESS, &line, 1);
	profile_builder__code(j->builder, id, name.tier, v->ambiguous);
	location = *profile_builder__get_location(j->builder, id);
	profile_builder__code_version(
		j->builder, id,
		find_code(j, process, &location, v, &line, function.definition_file));
}

/* A jitdump is exact, so it comes first. */
static struct version find_answer(const struct jit_names *j, const struct jit_location *place,
				  uint64_t time)
{
	static const enum jit_file_kind order[] = {JIT_FILE_DUMP, JIT_FILE_MAP};
	const struct code_process *process = &j->processes[place->process];

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		struct jit_code *code = code_of(j, process, order[i]);
		struct jit_answer found;

		if (!code)
			continue;
		found = jit_history__at(history_of(j, place, order[i]), time,
					jit_code__same_function, code);
		if (found.entry == JIT_NO_ENTRY)
			continue;
		jit_code__use(code, found.entry);
		return (struct version){
			.code = code, .entry = found.entry, .ambiguous = found.ambiguous};
	}
	return (struct version){};
}

/* Is it in the same bytes at the same place? */
static bool same_bytes(const struct version *a, const struct version *b)
{
	struct jit_bytes text, other;
	enum jit_text_state state = jit_code__bytes(a->code, a->entry, &text);

	if (state != jit_code__bytes(b->code, b->entry, &other))
		return false;
	return state != JIT_TEXT_KEPT ||
	       (text.address == other.address && text.size == other.size &&
		!memcmp(text.bytes, other.bytes, text.size));
}

static bool is_known_version(const struct version *known, const struct version *v)
{
	return known->code == v->code && known->ambiguous == v->ambiguous &&
	       (!v->code || known->entry == v->entry || known->copy == v->entry);
}

/* The same code written twice is the same, unless it has lines of its own. */
static bool same_version(const struct version *a, const struct version *b)
{
	return a->code && a->code == b->code && a->ambiguous == b->ambiguous &&
	       !jit_code__has_lines(a->code) &&
	       jit_code__name(a->code, a->entry) == jit_code__name(b->code, b->entry) &&
	       same_bytes(a, b);
}

/* Bytes are compared once for an entry: each sample has this. NULL: it is a new one. */
static const struct version *find_version(struct jit_location *place, const struct version *v)
{
	struct version *versions = place->versions.data;
	size_t count = place->versions.count;
	size_t first = count > VERSIONS_COMPARED ? count - VERSIONS_COMPARED : 0;

	for (size_t i = count; i-- > first;)
		if (is_known_version(&versions[i], v))
			return &versions[i];
	for (size_t i = count; i-- > first;) {
		if (!same_version(&versions[i], v))
			continue;
		versions[i].copy = v->entry;
		return &versions[i];
	}
	return NULL;
}

/* The version of the place at that time. NULL: no memory. */
static const struct version *version_at(struct jit_names *j, struct jit_location *place,
					uint64_t time)
{
	const struct version *known;
	struct version v;

	if (place->constant && place->versions.count)
		return &place->versions.data[0];
	v = find_answer(j, place, time);
	known = find_version(place, &v);
	if (known)
		return known;
	v.copy = v.entry;
	v.location = place->location;
	if (place->versions.count)
		v.location = profile_builder__version(
			j->builder, profile_builder__get_location(j->builder, place->location),
			place->versions.count);
	if (v.code)
		name_location(j, place, v.location, &v);
	if (vec_push(&place->versions, v))
		return NULL;
	return &place->versions.data[place->versions.count - 1];
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static struct jit_location *place_of(const struct jit_names *j, struct location_id location)
{
	uint32_t index = location.v < j->location_count ? j->place_of[location.v] : 0;

	return index ? &j->places.data[index - 1] : NULL;
}

static bool is_read(const struct jit_names *j, struct location_id location)
{
	const struct profile_location *l = profile_builder__get_location(j->builder, location);

	return profile_builder__get_dso(j->builder, l->dso)->kind == DSO_RUNTIME && l->line_count;
}

/* Parents come first, so what they are is known. */
static int look_at_stacks(struct jit_names *j)
{
	j->stack_count = profile_builder__stack_count(j->builder);
	j->done = calloc(j->stack_count, sizeof(*j->done));
	if (!j->done)
		return -ENOMEM;
	for (uint32_t i = 1; i < j->stack_count; i++) {
		const struct profile_stack *stack =
			profile_builder__get_stack(j->builder, (struct stack_id){i});
		const struct done_stack *parent = &j->done[stack->parent.v];
		const struct jit_location *place = place_of(j, stack->location);

		j->done[i].has_code = parent->has_code || place;
		j->done[i].is_read = parent->is_read || is_read(j, stack->location);
		j->done[i].changes = parent->changes || (place && !place->constant);
	}
	return 0;
}

static struct done_stack put_together(struct jit_names *j, struct stack_id id, uint64_t time);

static bool has_fallback(const struct jit_names *j, struct location_id location)
{
	return profile_builder__get_location(j->builder, location)->fallback.v;
}

/* One frame on top of its callers. */
static struct done_stack add_frame(struct jit_names *j, struct stack_id id, uint64_t time)
{
	const struct profile_stack stack = *profile_builder__get_stack(j->builder, id);
	struct done_stack result = put_together(j, stack.parent, time);
	struct jit_location *place = place_of(j, stack.location);
	struct location_id location = stack.location;

	if (place) {
		const struct version *version = version_at(j, place, time);

		if (version) {
			location = version->location;
			result.unnamed |= !version->code && !has_fallback(j, location);
			result.ambiguous |= version->ambiguous;
		}
	}
	result.stack = profile_builder__stack(j->builder, result.stack, location);
	return result;
}

/* Depth is bounded by that of a sample. */
static struct done_stack put_together(struct jit_names *j, struct stack_id id, uint64_t time)
{
	struct done_stack *done = &j->done[id.v], result;

	if (done->is_done)
		return *done;
	if (!done->has_code)
		return (struct done_stack){.stack = id};
	result = add_frame(j, id, time);
	if (!done->changes) {
		result.has_code = true;
		result.is_done = true;
		*done = result;
	}
	return result;
}

/* CPU samples alone are counted. */
static void name_samples(struct jit_names *j, struct thread_id thread, enum sample_kind kind)
{
	struct builder_samples samples = profile_builder__samples(j->builder, thread, kind);
	struct code_process *process = find_process(j, samples.process);

	for (size_t i = 0; process && i < samples.count; i++) {
		struct done_stack result;

		if (kind == SAMPLE_CPU)
			process->read += j->done[samples.stack[i].v].is_read;
		if (!j->done[samples.stack[i].v].has_code)
			continue;
		result = put_together(j, samples.stack[i], samples.time[i]);
		samples.stack[i] = result.stack;
		if (kind != SAMPLE_CPU)
			continue;
		process->samples++;
		process->unnamed += result.unnamed;
		process->ambiguous += result.ambiguous;
	}
}

/* ---- the end --------------------------------------------------------------------------------- */

/* The bound applies here, in a replay as well, so this row is in no recording. */
static void add_left(const struct jit_names *j, uint32_t user, enum jit_file_state why,
		     uint64_t since)
{
	const struct profile_outside row = {
		.user = user,
		.thing = OUTSIDE_JIT_NAMES,
		.reason = why == JIT_FILE_STATE_USER_LIMIT ? OUTSIDE_BY_USER
			  : why == JIT_FILE_STATE_LIMIT	   ? OUTSIDE_BY_ALL
							   : OUTSIDE_BY_ITSELF,
		.count = 1,
		.since = since,
	};

	profile_builder__outside(j->builder, &row);
}

/* Records that were too large, since the last time. */
static void add_left_records(const struct jit_names *j, struct jit_source *source, uint64_t left)
{
	const struct profile_outside row = {
		.user = source->user,
		.thing = OUTSIDE_JIT_RECORDS,
		.reason = OUTSIDE_BY_ITSELF,
		.count = left - source->noted_records,
	};

	if (row.count)
		profile_builder__outside(j->builder, &row);
	source->noted_records = left;
}

static struct profile_jit_file describe_file(const struct jit_names *j, uint32_t file)
{
	struct jit_source *source = jit_sources__get(j->sources, file);
	struct jit_code_counts counts;

	if (!source) {
		if (file) /* beyond the limit of files; its user was not kept */
			add_left(j, OUTSIDE_USER_OTHERS, JIT_FILE_STATE_LIMIT, 0);
		return (struct profile_jit_file){};
	}
	if (source->left != JIT_FILE_STATE_NONE && !source->noted) {
		source->noted = true;
		add_left(j, source->user, source->left, source->left_at);
	}
	counts = source->code ? jit_code__counts(source->code) : (struct jit_code_counts){};
	if (source->code)
		add_left_records(j, source, counts.left);
	return (struct profile_jit_file){
		.path = profile_builder__string(j->builder, source->path),
		.state = source->left == JIT_FILE_STATE_NONE ? source->state : source->left,
		.entries = counts.entries,
		.bad_lines = counts.bad_lines,
		.torn = counts.torn,
	};
}

static const char *refusal_text(enum code_runtime_state state)
{
	static const char *const texts[CODE_RUNTIME_STATE_COUNT] = {
		CODE_RUNTIME_STATES(SECOND_COLUMN)};

	return state == CODE_RUNTIME_READ ? NULL : texts[state];
}

/* How to start it so that its code gets names. NULL: unknown, or all that is its own has names. */
static const char *remedy_of(const struct code_process *code)
{
	const struct runtime *runtime = code->process->runtime;

	if (!runtime || (code->read && runtime->memory && runtime->memory->is_interpreted))
		return NULL;
	return runtime->remedy;
}

static void describe_process(struct jit_names *j, const struct code_process *code)
{
	const struct jit_process *process = code->process;
	const struct runtime *runtime = process->runtime;
	const struct profile_jit jit = {
		.process = process->id,
		.runtime = profile_builder__string(j->builder, runtime ? runtime->name : NULL),
		.remedy = profile_builder__string(j->builder, remedy_of(code)),
		.refusal = profile_builder__string(j->builder, refusal_text(process->refused)),
		.map = describe_file(j, process->files[JIT_FILE_MAP]),
		.dump = describe_file(j, process->files[JIT_FILE_DUMP]),
		.samples = code->samples,
		.unnamed = code->unnamed,
		.ambiguous = code->ambiguous,
		.read = code->read,
	};

	profile_builder__jit(j->builder, &jit);
}

static void describe_left(const struct jit_names *j)
{
	char text[64];

	if (!j->codes_left)
		return;
	snprintf(text, sizeof(text), "%" PRIu64 " of %zu functions", j->codes_left, j->codes.count);
	profile_builder__meta(j->builder, META_JIT_CODE_LEFT_OUT, text);
}

int name_jit_code(struct profile_builder *builder, struct jit_sources *sources,
		  const struct jit_process *processes, size_t count)
{
	struct jit_names j = {.builder = builder, .sources = sources};
	int err;

	if (!count)
		return 0;
	err = sort_processes(&j, processes, count)
			?: collect_places(&j)
			?: read_all(&j)
			?: look_at_stacks(&j);
	for (uint32_t i = 1; i <= profile_builder__thread_count(builder) && !err; i++) {
		name_samples(&j, (struct thread_id){i}, SAMPLE_CPU);
		name_samples(&j, (struct thread_id){i}, SAMPLE_WALL);
	}
	for (size_t i = 0; i < j.process_count && !err; i++)
		describe_process(&j, &j.processes[i]);
	if (!err)
		describe_left(&j);
	jit_names__fini(&j);
	return err ? err : profile_builder__error(builder);
}
