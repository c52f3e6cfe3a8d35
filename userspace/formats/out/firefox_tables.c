/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables that all threads of a Firefox profile share.
 *
 * The file has only what the written samples use. Numbers depend on the profile only, so equal
 * profiles give equal bytes. Collecting goes from the samples down: stacks -> locations ->
 * functions, files, libraries, names. Each step visits an element once.
 *
 * A location with an inline chain of n lines is n frames and, in every stack it is on, n stack
 * nodes: the outermost function first, the inlined ones below, with one address and native symbol,
 * inlineDepth counting up from 0. Both sets of rows are consecutive, so an element is its first row
 * plus a depth. A stack's parent has a lower id than the stack, so writing in id order puts parents
 * before children, which the format requires.
 */
#include "formats/out/firefox_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_url.h"
#include "base/order.h"
#include "base/parse.h"
#include "formats/out/describe.h"
#include "formats/out/firefox.h"
#include "formats/out/firefox_markers.h"
#include "formats/out/firefox_waits.h"
#include "profile/profile.h"

static uint32_t *unused_numbers(size_t count)
{
	uint32_t *numbers = malloc((count + 1) * sizeof(*numbers));

	if (numbers)
		memset(numbers, 0xff, (count + 1) * sizeof(*numbers));
	return numbers;
}

static int index__init(struct firefox_index *index, size_t count)
{
	index->number = unused_numbers(count);
	return index->number ? 0 : -ENOMEM;
}

static void index__fini(struct firefox_index *index)
{
	free(index->number);
	vec_free(&index->used);
}

static int index__add(struct firefox_index *index, uint32_t element)
{
	int err;

	if (index->number[element] != FIREFOX_UNUSED)
		return 0;
	err = vec_push(&index->used, element);
	if (!err)
		index->number[element] = (uint32_t)index->used.count - 1;
	return err;
}

/* Names are the profile's strings, except for those of some libraries. */
static int add_string(struct firefox_tables *t, struct string_id id)
{
	int err;

	if (t->strings.number[id.v] != FIREFOX_UNUSED)
		return 0;
	err = vec_push(&t->texts, profile__string(t->p, id));
	if (!err)
		t->strings.number[id.v] = (uint32_t)t->texts.count - 1;
	return err;
}

/* Is it a library in Firefox's terms: code from a file or an image? */
static bool dso_is_lib(const struct profile *p, struct dso_id id)
{
	enum dso_kind kind = p->dsos[id.v].kind;

	return kind == DSO_FILE || kind == DSO_VDSO || kind == DSO_KERNEL;
}

/*
 * Code made at run time is in no library. It gets one if its sources are known, because the viewer
 * requests sources only for addresses in a library. That of an interpreter is its source file.
 */
static int collect_jit_libs(struct firefox_tables *t)
{
	int err = 0;

	for (size_t i = 0; i < t->functions.used.count && !err; i++) {
		uint32_t id = t->functions.used.data[i];
		struct dso_id dso = t->p->functions[id].dso;

		if (t->source_file[id] && dso_kind_is_made(t->p->dsos[dso.v].kind))
			err = index__add(&t->libs, dso.v);
	}
	return err;
}

/* A sample in a context has an innermost frame of its own, of one line in the kernel. */
static void mark_stacks(struct firefox_tables *t, const struct profile_samples *samples)
{
	const struct profile *p = t->p;

	for (size_t j = 0; j < samples->count; j++) {
		const struct profile_stack *stack = &p->stacks[samples->stack[j].v];
		bool own = profile_samples__context(samples, j) != CONTEXT_NONE &&
			   p->locations[stack->location.v].line_count == 1;

		t->stack_base[own ? stack->parent.v : samples->stack[j].v] = 0;
	}
}

/* Mark the stacks of the samples and all their callers, and the locations of them all. */
static void mark_used(struct firefox_tables *t, const struct tracks *tracks)
{
	const struct profile *p = t->p;

	for (size_t i = 0; i < tracks->count; i++) {
		const struct profile_thread *thread = &p->threads[tracks->data[i].thread];

		mark_stacks(t, &thread->samples[SAMPLE_CPU]);
		mark_stacks(t, &thread->samples[SAMPLE_WALL]);
	}
	for (size_t i = p->stack_count; i > 1; i--) {
		const struct profile_stack *stack = &p->stacks[i - 1];

		if (t->stack_base[i - 1] == FIREFOX_UNUSED)
			continue;
		if (stack->parent.v)
			t->stack_base[stack->parent.v] = 0;
		t->frame_base[stack->location.v] = 0;
	}
}

/* Allocate the rows of stacks and frames. */
static int number_rows(struct firefox_tables *t)
{
	const struct profile *p = t->p;
	uint64_t stacks = 0, frames = 0;

	for (size_t i = 1; i < p->stack_count; i++) {
		if (t->stack_base[i] == FIREFOX_UNUSED)
			continue;
		t->stack_base[i] = (uint32_t)stacks;
		stacks += p->locations[p->stacks[i].location.v].line_count;
		if (stacks >= FIREFOX_UNUSED)
			return -EOVERFLOW;
	}
	for (size_t i = 1; i < p->location_count; i++) {
		if (t->frame_base[i] == FIREFOX_UNUSED)
			continue;
		t->frame_base[i] = (uint32_t)frames;
		frames += p->locations[i].line_count;
		if (frames >= FIREFOX_UNUSED)
			return -EOVERFLOW;
	}
	t->stack_count = (uint32_t)stacks;
	t->frame_count = (uint32_t)frames;
	return 0;
}

/* The function whose machine code a location is in: the outermost of its inline chain. */
static struct function_id outermost_function(const struct profile *p,
					     const struct profile_location *location)
{
	return p->lines[location->first_line + location->line_count - 1].function;
}

static bool has_native_symbol(const struct profile *p, struct function_id id)
{
	const struct profile_function *function = &p->functions[id.v];

	return function->address != PROFILE_UNKNOWN_ADDRESS && dso_is_lib(p, function->dso);
}

/* By all that is shown of a function, if it has a definition site. */
static int compare_functions(const struct profile_function *x, const struct profile_function *y)
{
	return ASCENDING(dso.v) ?: ASCENDING(name.v) ?: ASCENDING(definition_file.v) ?: ASCENDING(definition_line) ?: ASCENDING(definition_column);
}

static int compare_by_function(const void *a, const void *b, void *functions)
{
	const struct profile_function *table = functions;
	const uint32_t *x = a, *y = b;

	return compare_functions(&table[*x], &table[*y]) ?: order_of(*x, *y);
}

/*
 * A function that is both called and inlined is two in the profile, with and without an address,
 * but one in the file, because the viewer counts by rows of funcTable.
 */
static int merge_functions(struct firefox_tables *t)
{
	const struct profile_function *functions = t->p->functions;
	VEC(uint32_t) defined = {};
	int err = 0;

	for (uint32_t i = 0; i < t->p->function_count && !err; i++) {
		t->same_function[i] = i;
		if (functions[i].definition_file.v && functions[i].definition_line)
			err = vec_push(&defined, i);
	}
	if (!err)
		vec_sort_r(&defined, compare_by_function, (void *)functions);
	for (size_t i = 1; i < defined.count && !err; i++) {
		uint32_t before = defined.data[i - 1], here = defined.data[i];

		if (!compare_functions(&functions[before], &functions[here]))
			t->same_function[here] = t->same_function[before];
	}
	vec_free(&defined);
	return err;
}

/* A function's file is that of its definition, else that of the first of its executing lines. */
static int collect_function(struct firefox_tables *t, const struct profile_line *line)
{
	uint32_t id = t->same_function[line->function.v];
	const struct profile_function *function = &t->p->functions[id];
	uint32_t *file = &t->source_file[id];
	int err = 0;

	if (t->functions.number[id] == FIREFOX_UNUSED) {
		*file = function->definition_file.v;
		err = index__add(&t->functions, id) ?: add_string(t, function->name);
		if (!err && dso_is_lib(t->p, function->dso))
			err = index__add(&t->libs, function->dso.v);
	}
	if (!*file)
		*file = line->file.v;
	return err;
}

#define CODE_ALIGN 16

uint64_t *firefox_jit_places(const struct profile *p)
{
	uint64_t *places = calloc(p->code_count + 1, sizeof(*places));
	uint64_t next = CODE_ALIGN;

	for (size_t i = 0; places && i < p->code_count; i++) {
		if (p->dsos[p->codes[i].dso.v].kind != DSO_JIT)
			continue;
		places[i] = next;
		next = align_up(next + p->codes[i].size, CODE_ALIGN);
	}
	return places;
}

/* The machine code of a JIT compiler that a location is in; NULL: there is none. */
static const struct profile_code *jit_code_of(const struct profile *p,
					      const struct profile_location *location)
{
	return location->code_version ? profile__code(p, location) : NULL;
}

/* The viewer requests instructions for a native symbol of a library. */
static int collect_code(struct firefox_tables *t, const struct profile_location *location)
{
	const struct profile_code *code = jit_code_of(t->p, location);

	if (!code)
		return 0;
	t->code_functions[code - t->p->codes] = outermost_function(t->p, location).v;
	return index__add(&t->codes, (uint32_t)(code - t->p->codes))
		       ?: index__add(&t->libs, location->dso.v);
}

static int collect_location(struct firefox_tables *t, const struct profile_location *location)
{
	struct function_id native = outermost_function(t->p, location);
	int err = collect_code(t, location);

	for (uint32_t i = location->line_count; i > 0 && !err; i--)
		err = collect_function(t, &t->p->lines[location->first_line + i - 1]);
	if (!err && has_native_symbol(t->p, native))
		err = index__add(&t->natives, native.v);
	return err;
}

int firefox_tables__string(struct firefox_tables *t, struct string_id id, uint32_t *number)
{
	int err = add_string(t, id);

	*number = err ? 0 : t->strings.number[id.v];
	return err;
}

int firefox_tables__text(struct firefox_tables *t, const char *text, uint32_t *number)
{
	uint32_t at = 0;
	int err;

	/* every library may need the same one, and there may be many texts */
	for (size_t i = 0; i < t->own_names.count; i++) {
		if (strcmp(t->own_names.data[i].text, text))
			continue;
		*number = t->own_names.data[i].number;
		return 0;
	}
	while (at < t->texts.count && strcmp(t->texts.data[at], text))
		at++;
	err = (at == t->texts.count ? vec_push(&t->texts, text) : 0)
		      ?: vec_push(&t->own_names, ((struct firefox_text){text, at}));
	if (!err)
		*number = at;
	return err;
}

/* The display name of a library is the profile's name, or one of our own few. */
static int name_lib(struct firefox_tables *t, struct dso_id id)
{
	struct string_id own = t->p->dsos[id.v].name;
	const char *name = dso_display_name(t->p, id);
	uint32_t number;

	if (name == profile__string(t->p, own))
		return add_string(t, own) ?: vec_push(&t->lib_names, t->strings.number[own.v]);
	return firefox_tables__text(t, name, &number) ?: vec_push(&t->lib_names, number);
}

/* A source with a file:// URL is given by its path, which is what a server can open. */
static int add_source(struct firefox_tables *t, uint32_t file)
{
	const char *name = profile__string(t->p, (struct string_id){file});
	char *path;
	int err = index__add(&t->sources, file);

	if (err)
		return err;
	path = file_url_path(name);
	if (!path)
		return add_string(t, (struct string_id){file})
			       ?: vec_push(&t->source_names, t->strings.number[file]);
	err = vec_push(&t->own_texts, path);
	if (err) {
		free(path);
		return err;
	}
	return vec_push(&t->texts, path)
		       ?: vec_push(&t->source_names, (uint32_t)t->texts.count - 1);
}

static int collect_elements(struct firefox_tables *t)
{
	int err = 0;

	for (size_t i = 1; i < t->p->location_count && !err; i++)
		if (t->frame_base[i] != FIREFOX_UNUSED)
			err = collect_location(t, &t->p->locations[i]);
	for (size_t i = 0; i < t->context_frames.count && !err; i++)
		err = collect_location(t, &t->p->locations[t->context_frames.data[i].key >> 8]);
	if (!err)
		err = collect_jit_libs(t);
	for (size_t i = 0; i < t->functions.used.count && !err; i++) {
		uint32_t file = t->source_file[t->functions.used.data[i]];

		if (file && t->sources.number[file] == FIREFOX_UNUSED)
			err = add_source(t, file);
	}
	for (size_t i = 0; i < t->libs.used.count && !err; i++)
		err = name_lib(t, (struct dso_id){t->libs.used.data[i]});
	return err;
}

int firefox_tables__init(struct firefox_tables *t, const struct profile *p,
			 const struct tracks *tracks)
{
	int err;

	*t = (struct firefox_tables){.p = p,
				     .wait_categories = CATEGORY_COUNT + firefox_has_gil(p)};
	t->stack_base = unused_numbers(p->stack_count);
	t->frame_base = unused_numbers(p->location_count);
	t->source_file = calloc(p->function_count + 1, sizeof(*t->source_file));
	t->same_function = calloc(p->function_count + 1, sizeof(*t->same_function));
	t->code_places = firefox_jit_places(p);
	t->code_functions = calloc(p->code_count + 1, sizeof(*t->code_functions));
	err = (t->stack_base && t->frame_base && t->source_file && t->same_function &&
			       t->code_places && t->code_functions
		       ? 0
		       : -ENOMEM)
		?: index__init(&t->strings, p->string_count)
		?: index__init(&t->functions, p->function_count)
		?: index__init(&t->libs, p->dso_count)
		?: index__init(&t->natives, p->function_count)
		?: index__init(&t->codes, p->code_count)
		?: index__init(&t->sources, p->string_count);
	if (err)
		goto err_out;
	mark_used(t, tracks);
	err = number_rows(t)
		?: firefox_waits__collect(t, tracks)
		?: merge_functions(t)
		?: collect_elements(t)
		?: firefox_waits__number(t);
	if (!err)
		return 0;
err_out:
	firefox_tables__fini(t);
	return err;
}

void firefox_tables__fini(struct firefox_tables *t)
{
	free(t->stack_base);
	free(t->frame_base);
	free(t->source_file);
	free(t->same_function);
	free(t->code_places);
	free(t->code_functions);
	index__fini(&t->codes);
	index__fini(&t->strings);
	index__fini(&t->functions);
	index__fini(&t->libs);
	index__fini(&t->natives);
	index__fini(&t->sources);
	vec_free_with(&t->own_texts, text, free(*text));
	vec_free(&t->texts);
	vec_free(&t->own_names);
	vec_free(&t->lib_names);
	vec_free(&t->source_names);
	firefox_wait_stacks__fini(&t->wait_stacks);
	firefox_context_frames__fini(&t->context_frames);
	*t = (struct firefox_tables){0};
}

uint32_t firefox_tables__stack(const struct firefox_tables *t, struct stack_id stack)
{
	const struct profile_location *location =
		&t->p->locations[t->p->stacks[stack.v].location.v];

	return t->stack_base[stack.v] + location->line_count - 1;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void number_or_null(struct json_writer *w, uint64_t value)
{
	if (value)
		json_uint(w, value);
	else
		json_null(w);
}

static void index_or_null(struct json_writer *w, uint32_t number)
{
	if (number == FIREFOX_UNUSED)
		json_null(w);
	else
		json_uint(w, number);
}

/* `write` for the leaf of each state that waits have. */
#define FOR_EACH_LEAF(t, write)                                                                    \
	do {                                                                                       \
		for (int state = 0; state < WALL_STATE_COUNT; state++)                             \
			if ((t)->wait_used[state])                                                 \
				write;                                                             \
	} while (0)

/* A column of the table of functions: those of the profile, and the leaves of waits. */
#define FUNCTION_COLUMN(t, w, name, write, of_wait)                                                \
	do {                                                                                       \
		json_key_array((w), (name));                                                       \
		for (size_t i = 0; i < (t)->functions.used.count; i++)                             \
			write;                                                                     \
		FOR_EACH_LEAF(t, of_wait);                                                         \
		json_end_array(w);                                                                 \
	} while (0)

/*
 * A column of the frame table: `write` runs for each inline level of each location, outside in, and
 * for the innermost one of a location in a context.
 */
#define FRAME_COLUMN(t, w, name, write, of_wait)                                                   \
	do {                                                                                       \
		json_key_array((w), (name));                                                       \
		for (size_t i = 1; i < (t)->p->location_count; i++) {                              \
			const struct profile_location *location = &(t)->p->locations[i];           \
			const enum sample_context context = CONTEXT_NONE;                          \
                                                                                                   \
			(void)context;                                                             \
			if ((t)->frame_base[i] == FIREFOX_UNUSED)                                  \
				continue;                                                          \
			for (uint32_t depth = 0; depth < location->line_count; depth++)            \
				write;                                                             \
		}                                                                                  \
		FOR_EACH_LEAF(t, of_wait);                                                         \
		for (size_t i = 0; i < (t)->context_frames.count; i++) {                           \
			const uint64_t key = (t)->context_frames.data[i].key;                      \
			const struct profile_location *location = &(t)->p->locations[key >> 8];    \
			const enum sample_context context = (enum sample_context)(key & 0xff);     \
			const uint32_t depth = location->line_count - 1;                           \
                                                                                                   \
			(void)context, (void)depth;                                                \
			write;                                                                     \
		}                                                                                  \
		json_end_array(w);                                                                 \
	} while (0)

static const struct profile_line *line_at(const struct firefox_tables *t,
					  const struct profile_location *location, uint32_t depth)
{
	return &t->p->lines[location->first_line + location->line_count - 1 - depth];
}

/*
 * The viewer expects an address relative to its library: the ELF address less the base of the first
 * segment. That base is 0 except for old-style executables, and not in the profile, so this is the
 * ELF address, or the file offset if that is unknown. -1: in no library.
 */
static int64_t library_address(const struct firefox_tables *t,
			       const struct profile_location *location)
{
	uint64_t address = location->elf_address != PROFILE_UNKNOWN_ADDRESS ? location->elf_address
									    : location->address;
	const struct profile_code *code = jit_code_of(t->p, location);

	if (code)
		address += t->code_places[code - t->p->codes] - code->address;

	return t->libs.number[location->dso.v] == FIREFOX_UNUSED
		       ? -1
		       : (int64_t)(address & FIREFOX_ADDRESS_MASK);
}

/* firefox_meta.c: write_tiers(), and the contexts of the kernel */
static unsigned int subcategory(const struct profile_location *location, uint32_t depth,
				enum sample_context context)
{
	bool doubtful = location->ambiguous && depth >= location->sure_lines;

	if (context != CONTEXT_NONE)
		return context;
	return location->category != CATEGORY_JIT
		       ? 0
		       : location->tier + (doubtful ? CODE_TIER_COUNT : 0);
}

static uint32_t function_row(const struct firefox_tables *t, const struct profile_line *line)
{
	return t->functions.number[t->same_function[line->function.v]];
}

static uint32_t native_symbol(const struct firefox_tables *t,
			      const struct profile_location *location)
{
	const struct profile_code *code = jit_code_of(t->p, location);

	return code ? (uint32_t)t->natives.used.count + t->codes.number[code - t->p->codes]
		    : t->natives.number[outermost_function(t->p, location).v];
}

static void write_frames(const struct firefox_tables *t, struct json_writer *w)
{
	const size_t count = t->frame_count + t->wait_leaf_count + t->context_frames.count;

	json_key_object(w, "frameTable");
	json_key_uint(w, "length", count);
	FRAME_COLUMN(t, w, "address", json_int(w, library_address(t, location)), json_int(w, -1));
	FRAME_COLUMN(t, w, "inlineDepth", json_uint(w, depth), json_uint(w, 0));
	FRAME_COLUMN(t, w, "category", json_uint(w, context ? CATEGORY_KERNEL : location->category),
		     json_uint(w, firefox_category_of_wait(t, (enum wall_state)state)));
	FRAME_COLUMN(t, w, "subcategory", json_uint(w, subcategory(location, depth, context)),
		     json_uint(w, 0));
	FRAME_COLUMN(t, w, "func", json_uint(w, function_row(t, line_at(t, location, depth))),
		     json_uint(w, t->functions.used.count + t->wait_leaf[state]));
	FRAME_COLUMN(t, w, "nativeSymbol", index_or_null(w, native_symbol(t, location)),
		     json_null(w));
	JSON_COLUMN(w, "innerWindowID", count, json_int(w, 0));
	FRAME_COLUMN(t, w, "line", number_or_null(w, line_at(t, location, depth)->line),
		     json_null(w));
	FRAME_COLUMN(t, w, "column", number_or_null(w, line_at(t, location, depth)->column),
		     json_null(w));
	JSON_COLUMN(w, "originalLocation", count, json_null(w));
	json_end_object(w);
}

static void write_stacks(const struct firefox_tables *t, struct json_writer *w)
{
	const struct profile *p = t->p;
	uint32_t frame;
	int64_t parent;

	json_key_object(w, "stackTable");
	json_key_uint(w, "length", t->stack_count + t->wait_stacks.count);
	json_key_array(w, "frame");
	for (size_t i = 1; i < p->stack_count; i++) {
		uint32_t location = p->stacks[i].location.v;

		if (t->stack_base[i] == FIREFOX_UNUSED)
			continue;
		for (uint32_t depth = 0; depth < p->locations[location].line_count; depth++)
			json_uint(w, t->frame_base[location] + depth);
	}
	for (size_t i = 0; i < t->wait_stacks.count; i++) {
		firefox_wait_stack__parts(t, i, &frame, &parent);
		json_uint(w, frame);
	}
	json_end_array(w);
	json_key_array(w, "prefixOffset"); /* 0: a root; else how far up the parent is */
	for (size_t i = 1; i < p->stack_count; i++) {
		struct stack_id caller = p->stacks[i].parent;

		if (t->stack_base[i] == FIREFOX_UNUSED)
			continue;
		json_uint(w, caller.v ? t->stack_base[i] - firefox_tables__stack(t, caller) : 0);
		for (uint32_t depth = 1; depth < p->locations[p->stacks[i].location.v].line_count;
		     depth++)
			json_uint(w, 1);
	}
	for (size_t i = 0; i < t->wait_stacks.count; i++) {
		firefox_wait_stack__parts(t, i, &frame, &parent);
		json_uint(w, parent < 0 ? 0 : t->stack_count + i - (uint32_t)parent);
	}
	json_end_array(w);
	json_end_object(w);
}

static int64_t resource_of(const struct firefox_tables *t, uint32_t function)
{
	uint32_t lib = t->libs.number[t->p->functions[function].dso.v];

	return lib == FIREFOX_UNUSED ? -1 : (int64_t)lib;
}

static uint32_t source_of(const struct firefox_tables *t, uint32_t function)
{
	uint32_t file = t->source_file[function];

	return file ? t->sources.number[file] : FIREFOX_UNUSED;
}

static void write_functions(const struct firefox_tables *t, struct json_writer *w)
{
	const struct profile_function *functions = t->p->functions;
	const uint32_t *used = t->functions.used.data;
	size_t count = t->functions.used.count;

	json_key_object(w, "funcTable");
	json_key_uint(w, "length", count + t->wait_leaf_count);
	FUNCTION_COLUMN(t, w, "name", json_uint(w, t->strings.number[functions[used[i]].name.v]),
			json_uint(w, t->wait_name[state]));
	JSON_COLUMN(w, "isJS", count + t->wait_leaf_count, json_bool(w, false));
	JSON_COLUMN(w, "relevantForJS", count + t->wait_leaf_count, json_bool(w, false));
	FUNCTION_COLUMN(t, w, "resource", json_int(w, resource_of(t, used[i])), json_int(w, -1));
	FUNCTION_COLUMN(t, w, "source", index_or_null(w, source_of(t, used[i])), json_null(w));
	FUNCTION_COLUMN(t, w, "lineNumber", number_or_null(w, functions[used[i]].definition_line),
			json_null(w));
	FUNCTION_COLUMN(t, w, "columnNumber",
			number_or_null(w, functions[used[i]].definition_column), json_null(w));
	JSON_COLUMN(w, "originalLocation", count + t->wait_leaf_count, json_null(w));
	json_end_object(w);
}

static void write_resources(const struct firefox_tables *t, struct json_writer *w)
{
	size_t count = t->libs.used.count;

	json_key_object(w, "resourceTable");
	json_key_uint(w, "length", count);
	JSON_COLUMN(w, "lib", count, json_uint(w, i));
	JSON_COLUMN(w, "name", count, json_uint(w, t->lib_names.data[i]));
	JSON_COLUMN(w, "host", count, json_null(w));
	JSON_COLUMN(w, "type", count, json_int(w, 1));
	json_end_object(w);
}

/* Their columns: of functions, then of codes `c` of JIT compilers. */
#define NATIVE_COLUMN(t, w, key, of_function, of_code)                                             \
	do {                                                                                       \
		json_key_array(w, key);                                                            \
		for (size_t i = 0; i < (t)->natives.used.count; i++) {                             \
			const struct profile_function *f =                                         \
				&(t)->p->functions[(t)->natives.used.data[i]];                     \
			of_function;                                                               \
		}                                                                                  \
		for (size_t i = 0; i < (t)->codes.used.count; i++) {                               \
			const uint32_t c = (t)->codes.used.data[i];                                \
			of_code;                                                                   \
		}                                                                                  \
		json_end_array(w);                                                                 \
	} while (0)

static void write_natives(const struct firefox_tables *t, struct json_writer *w)
{
	const struct profile *p = t->p;

	json_key_object(w, "nativeSymbols");
	json_key_uint(w, "length", t->natives.used.count + t->codes.used.count);
	NATIVE_COLUMN(t, w, "libIndex", json_uint(w, t->libs.number[f->dso.v]),
		      json_uint(w, t->libs.number[p->codes[c].dso.v]));
	NATIVE_COLUMN(t, w, "address", json_uint(w, f->address & FIREFOX_ADDRESS_MASK),
		      json_uint(w, t->code_places[c]));
	NATIVE_COLUMN(t, w, "name", json_uint(w, t->strings.number[f->name.v]),
		      json_uint(w, t->strings.number[p->functions[t->code_functions[c]].name.v]));
	NATIVE_COLUMN(t, w, "functionSize", number_or_null(w, f->size),
		      number_or_null(w, p->codes[c].size));
	json_end_object(w);
}

static void write_sources(const struct firefox_tables *t, struct json_writer *w)
{
	static const char *const empty[] = {"source", "line", "column"};
	size_t count = t->sources.used.count;

	json_key_object(w, "sources");
	json_key_uint(w, "length", count);
	JSON_COLUMN(w, "id", count, json_null(w));
	JSON_COLUMN(w, "filename", count, json_uint(w, t->source_names.data[i]));
	JSON_COLUMN(w, "startLine", count, json_int(w, 1));
	JSON_COLUMN(w, "startColumn", count, json_int(w, 1));
	JSON_COLUMN(w, "sourceMapURL", count, json_null(w));
	JSON_COLUMN(w, "content", count, json_null(w));
	json_end_object(w);
	json_key_object(w, "sourceLocationTable");
	json_key_uint(w, "length", 0);
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++)
		json_key_empty_array(w, empty[i]);
	json_end_object(w);
}

void firefox_tables__write_shared(const struct firefox_tables *t, struct json_writer *w)
{
	json_begin_object(w);
	write_stacks(t, w);
	write_frames(t, w);
	write_functions(t, w);
	write_resources(t, w);
	write_natives(t, w);
	write_sources(t, w);
	JSON_COLUMN(w, "stringArray", t->texts.count, json_string(w, t->texts.data[i]));
	json_end_object(w);
}

/* ---- libraries ------------------------------------------------------------------------------- */

/*
 * The Breakpad form of a build-id: its first 16 bytes as a GUID, whose first three fields are
 * little-endian, and an age of 0. Without a build-id it is a hash of the code by convention, but an
 * exporter opens no file: the id is empty, so viewers do not look it up.
 */
void firefox_debug_id(const struct profile *p, struct dso_id dso, char id[FIREFOX_DEBUG_ID_SIZE])
{
	static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
	static const char digits[] = "0123456789ABCDEF";
	struct dso_build_id build_id;
	char *out = id;

	dso_build_id(p, dso, &build_id);
	for (unsigned int i = 0; build_id.size && i < sizeof(order); i++) {
		uint8_t byte = order[i] < build_id.size ? build_id.bytes[order[i]] : 0;

		*out++ = digits[byte >> 4];
		*out++ = digits[byte & 15];
	}
	if (build_id.size)
		*out++ = '0';
	*out = '\0';
}

static void write_lib(const struct firefox_tables *t, struct json_writer *w, struct dso_id id,
		      const char *architecture)
{
	const struct profile_dso *dso = &t->p->dsos[id.v];
	const char *name = dso_display_name(t->p, id);
	const char *path = profile__string(t->p, dso->path);
	struct dso_build_id build_id;
	char debug_id[FIREFOX_DEBUG_ID_SIZE], code[2 * BUILD_ID_SIZE + 1];

	if (!dso_has_path(dso) || !*path)
		path = name;
	dso_build_id(t->p, id, &build_id);
	firefox_debug_id(t->p, id, debug_id);
	put_hex_bytes(code, build_id.bytes, build_id.size);
	json_begin_object(w);
	json_key_string(w, "name", name);
	json_key_string(w, "path", path);
	json_key_string(w, "debugName", name);
	json_key_string(w, "debugPath", path);
	json_key_string(w, "breakpadId", debug_id);
	json_key_string(w, "codeId", build_id.size ? code : NULL);
	json_key_string(w, "arch", architecture);
	json_end_object(w);
}

void firefox_tables__write_libs(const struct firefox_tables *t, struct json_writer *w)
{
	const char *architecture = profile__meta(t->p, META_ARCHITECTURE);

	json_begin_array(w);
	for (size_t i = 0; i < t->libs.used.count; i++)
		write_lib(t, w, (struct dso_id){t->libs.used.data[i]}, architecture);
	json_end_array(w);
}
