/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The write side of the profile: adding. profile_finish.c completes it.
 *
 * Every table is a vector whose element 0 is a zero placeholder. Where equal input must give an
 * equal id, it is a map (base/map.h), with the placeholder in no index. The samples of each kind of
 * a thread are columns, 24 bytes a sample. The builder owns all; the finished profile points at it.
 *
 * The first lack of memory is stored; from then on adders return 0 and finish() fails.
 */
#include "base/order.h"
#include "profile/profile_builder_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "profile/arguments.h"
#include "profile/profile_code_private.h"
#include "profile/profile_events.h"

#define BOOKS_CPU_MAX 65536 /* the books of CPUs from this number on are ignored */

/* ---- equality of interned things ------------------------------------------------------------- */

static bool same_dso(const struct profile_dso *a, const struct profile_dso *k)
{
	if (a->kind != k->kind || a->build_id_size != k->build_id_size ||
	    a->unshared != k->unshared || memcmp(a->build_id, k->build_id, k->build_id_size) != 0)
		return false;
	if (k->build_id_size && !k->unshared)
		return true;
	return a->major == k->major && a->minor == k->minor && a->inode == k->inode &&
	       a->inode_generation == k->inode_generation && a->path.v == k->path.v;
}

static uint64_t hash_dso(const struct profile_dso *dso)
{
	uint64_t hash = hash_u64(dso->kind);

	hash = hash_combine(hash, hash_bytes(dso->build_id, dso->build_id_size));
	if (dso->build_id_size && !dso->unshared)
		return hash;
	hash = hash_combine(hash, (uint64_t)dso->major << 32 | dso->minor);
	hash = hash_combine(hash, dso->inode);
	hash = hash_combine(hash, dso->inode_generation);
	return hash_combine(hash, dso->path.v);
}

static bool same_function(const struct profile_function *a, const struct profile_function *k)
{
	return a->name.v == k->name.v && a->dso.v == k->dso.v && a->address == k->address &&
	       a->size == k->size && a->full_name.v == k->full_name.v &&
	       a->definition_file.v == k->definition_file.v &&
	       a->definition_line == k->definition_line &&
	       a->definition_column == k->definition_column;
}

/* Of all fields of same_function(): functions that differ only in an omitted one would collide. */
static uint64_t hash_function(const struct profile_function *f)
{
	uint64_t hash = hash_u64((uint64_t)f->name.v << 32 | f->dso.v);

	hash = hash_combine(hash, f->address);
	hash = hash_combine(hash, f->size);
	if (f->full_name.v)
		hash = hash_combine(hash, f->full_name.v);
	hash = hash_combine(hash, (uint64_t)f->definition_file.v << 32 | f->definition_line);
	return hash_combine(hash, f->definition_column);
}

static bool same_location(const struct profile_location *a, const struct profile_location *k)
{
	return a->dso.v == k->dso.v && a->address == k->address && a->process.v == k->process.v &&
	       a->version == k->version;
}

static uint64_t hash_location(const struct profile_location *l)
{
	uint64_t hash = hash_combine(hash_u64((uint64_t)l->dso.v << 32 | l->process.v), l->address);

	return l->version ? hash_combine(hash, l->version) : hash;
}

MAP_FUNCTIONS_OF(dso_table, struct profile_dso, hash_dso, same_dso);
MAP_FUNCTIONS_OF(function_table, struct profile_function, hash_function, same_function);
MAP_FUNCTIONS_OF(location_table, struct profile_location, hash_location, same_location);
MAP_FUNCTIONS_BY_NUMBER(stack_table, struct profile_stack,
			(uint64_t)entry->parent.v << 32 | entry->location.v);
MAP_FUNCTIONS_BY(meta_table, struct profile_meta, uint32_t, key.v);
MAP_FUNCTIONS_BY(books_table, struct profile_cpu_books, uint32_t, cpu);

/* The number of the element that need() of a table returned; 0: no memory. */
#define number_of(b, table, element)                                                               \
	({                                                                                         \
		__auto_type element_ = (element);                                                  \
		builder_has_failed(b, element_ ? 0 : -ENOMEM)                                      \
			? 0                                                                        \
			: (uint32_t)(element_ - (table)->data);                                    \
	})

/* ---- life and errors ------------------------------------------------------------------------- */

/* All bytes are zero, padding too: profile_check compares bytes. */
#define add_placeholder(table)                                                                     \
	({                                                                                         \
		int err_ = vec_reserve((table), 1);                                                \
		if (!err_) {                                                                       \
			memset((table)->data, 0, sizeof(*(table)->data));                          \
			(table)->count = 1;                                                        \
		}                                                                                  \
		err_;                                                                              \
	})

/* Name and unit are strings of the profile, as pprof has them. */
static int add_sample_type(struct profile_builder *b, enum sample_kind kind)
{
	static const struct {
		const char *name, *unit;
	} texts[SAMPLE_KIND_COUNT] = {
#define X(id, name, unit) [SAMPLE_##id] = {name, unit},
		SAMPLE_KINDS(X)
#undef X
	};
	struct profile_sample_type type = {
		.kind = kind,
		.name = profile_builder__string(b, texts[kind].name),
		.unit = profile_builder__string(b, texts[kind].unit),
	};

	return b->error ? b->error : vec_push(&b->sample_types, type);
}

struct profile_builder *profile_builder__new(void)
{
	struct profile_builder *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->strings = strtab__new();
	if (!b->strings || add_placeholder(&b->stacks) || add_placeholder(&b->dsos) ||
	    add_placeholder(&b->functions) || add_placeholder(&b->locations) ||
	    add_placeholder(&b->processes) || add_placeholder(&b->threads) ||
	    add_placeholder(&b->columns) || add_sample_type(b, SAMPLE_CPU))
		goto err_out;
	return b;

err_out:
	profile_builder__free(b);
	return NULL;
}

static void free_columns(struct thread_columns *thread)
{
	for (int kind = 0; kind < SAMPLE_KIND_COUNT; kind++) {
		struct sample_columns *c = &thread->by_kind[kind];

#define X(type, name) vec_free(&c->name);
		PROFILE_SAMPLE_COLUMNS(X)
#undef X
		vec_free(&c->taken);
	}
	vec_free(&thread->cuts);
	vec_free(&thread->renames);
}

void profile_builder__free(struct profile_builder *b)
{
	if (!b)
		return;
	vec_free_with(&b->columns, thread, free_columns(thread));
	builder_free_code(b);
	books_table__fini(&b->books);
	meta_table__fini(&b->meta);
	builder_free_events(b);
#define X(array, number) vec_free(&b->array);
	PROFILE_TABLES(X)
	PROFILE_LISTS(X)
#undef X
	stack_table__fini(&b->stacks);
	dso_table__fini(&b->dsos);
	function_table__fini(&b->functions);
	location_table__fini(&b->locations);
	strtab__free(b->strings);
	free(b);
}

int profile_builder__error(const struct profile_builder *b)
{
	return b->error;
}

/* ---- interned tables ------------------------------------------------------------------------- */

struct string_id profile_builder__string(struct profile_builder *b, const char *s)
{
	int64_t number;

	if (!s || !*s || b->error)
		return (struct string_id){0};
	number = strtab__intern(b->strings, s);
	if (number < 0 || number > UINT32_MAX) {
		builder_has_failed(b, -ENOMEM);
		return (struct string_id){0};
	}
	return (struct string_id){(uint32_t)number};
}

struct dso_id profile_builder__dso(struct profile_builder *b, const struct profile_dso *dso)
{
	struct dso_id id;

	if (b->error)
		return (struct dso_id){0};
	id.v = number_of(b, &b->dsos, dso_table__need(&b->dsos, dso, NULL));
	/* opening a later mapping of the same file may succeed where the first one failed */
	if (id.v && dso->file_state == FILE_STATE_RIGHT)
		b->dsos.data[id.v].file_state = FILE_STATE_RIGHT;
	return id;
}

const struct profile_dso *builder_find_dso(const struct profile_builder *b,
					   const struct profile_dso *like)
{
	return dso_table__find(&b->dsos, like);
}

static struct profile_location location_key(const struct profile_builder *b, struct dso_id dso,
					    uint64_t address, struct process_id process)
{
	bool private = dso_kind_is_private(b->dsos.data[dso.v].kind);

	return (struct profile_location){
		.dso = dso,
		.address = address,
		.elf_address = PROFILE_UNKNOWN_ADDRESS,
		.process = private ? process : (struct process_id){0},
	};
}

struct location_id profile_builder__location(struct profile_builder *b, struct dso_id dso,
					     uint64_t address, struct process_id process,
					     enum profile_category category)
{
	struct profile_location l;

	if (b->error || dso.v >= b->dsos.count)
		return (struct location_id){0};
	l = location_key(b, dso, address, process);
	l.category = category;
	return (struct location_id){
		number_of(b, &b->locations, location_table__need(&b->locations, &l, NULL))};
}

struct location_id profile_builder__version(struct profile_builder *b,
					    const struct profile_location *first, uint32_t version)
{
	struct profile_location l = {
		.dso = first->dso,
		.category = first->category,
		.address = first->address,
		.elf_address = PROFILE_UNKNOWN_ADDRESS,
		.process = first->process,
		.version = version,
		.fallback = first->fallback,
	};

	if (b->error)
		return (struct location_id){0};
	return (struct location_id){
		number_of(b, &b->locations, location_table__need(&b->locations, &l, NULL))};
}

void profile_builder__fallback(struct profile_builder *b, struct location_id id,
			       struct function_id function)
{
	if (!b->error && id.v)
		b->locations.data[id.v].fallback = function;
}

void profile_builder__code(struct profile_builder *b, struct location_id id, enum code_tier tier,
			   bool ambiguous)
{
	if (b->error || !id.v)
		return;
	b->locations.data[id.v].tier = tier;
	b->locations.data[id.v].ambiguous = ambiguous;
}

void profile_builder__sure_lines(struct profile_builder *b, struct location_id id, uint32_t count)
{
	if (!b->error && id.v)
		b->locations.data[id.v].sure_lines = count;
}

struct stack_id profile_builder__stack(struct profile_builder *b, struct stack_id parent,
				       struct location_id location)
{
	struct profile_stack stack = {.parent = parent, .location = location};

	if (b->error || parent.v >= b->stacks.count)
		return (struct stack_id){0};
	stack.depth = b->stacks.data[parent.v].depth + 1;
	return (struct stack_id){
		number_of(b, &b->stacks, stack_table__need(&b->stacks, &stack, NULL))};
}

struct function_id profile_builder__function(struct profile_builder *b,
					     const struct profile_function *function)
{
	if (b->error)
		return (struct function_id){0};
	return (struct function_id){
		number_of(b, &b->functions, function_table__need(&b->functions, function, NULL))};
}

void profile_builder__show_full_names(struct profile_builder *b)
{
	for (size_t i = 1; i < b->functions.count; i++) {
		struct profile_function *f = &b->functions.data[i];

		if (f->full_name.v)
			f->name = f->full_name;
		f->full_name.v = 0;
	}
}

/* ---- processes, threads, samples ------------------------------------------------------------- */

struct process_id profile_builder__process(struct profile_builder *b,
					   const struct profile_process *process)
{
	struct profile_process p = *process;

	p.start = min_u64(p.start, BUILDER_TIME_LIMIT);
	p.end = min_u64(p.end, BUILDER_TIME_LIMIT);
	if (b->error || builder_has_failed(b, vec_push(&b->processes, p)))
		return (struct process_id){0};
	return (struct process_id){b->processes.count - 1};
}

struct profile_process *profile_builder__get_process(struct profile_builder *b,
						     struct process_id id)
{
	return id.v ? &b->processes.data[id.v] : NULL;
}

void profile_builder__process_name(struct profile_builder *b, struct process_id id,
				   struct string_id name)
{
	if (id.v)
		b->processes.data[id.v].name = name;
}

void profile_builder__process_end(struct profile_builder *b, struct process_id id, uint64_t time,
				  bool execs)
{
	if (!id.v)
		return;
	b->processes.data[id.v].end = min_u64(time, BUILDER_TIME_LIMIT);
	b->processes.data[id.v].execs = time && execs;
}

struct thread_id profile_builder__thread(struct profile_builder *b, struct process_id process,
					 uint32_t tid, bool is_main, struct string_id name,
					 uint64_t start)
{
	struct profile_thread t = {
		.process = process,
		.tid = tid,
		.name = name,
		.is_main = is_main,
		.start = min_u64(start, BUILDER_TIME_LIMIT),
	};

	if (b->error || builder_has_failed(b, vec_reserve(&b->columns, b->columns.count + 1)) ||
	    builder_has_failed(b, vec_push(&b->threads, t)))
		return (struct thread_id){0};
	b->columns.data[b->columns.count++] = (struct thread_columns){};
	return (struct thread_id){b->threads.count - 1};
}

void profile_builder__thread_name(struct profile_builder *b, struct thread_id id,
				  struct string_id name)
{
	if (id.v)
		b->threads.data[id.v].name = name;
}

void profile_builder__thread_end(struct profile_builder *b, struct thread_id id, uint64_t time)
{
	if (id.v)
		b->threads.data[id.v].end = min_u64(time, BUILDER_TIME_LIMIT);
}

static struct sample_columns *columns_of(struct profile_builder *b, struct thread_id thread,
					 enum sample_kind kind)
{
	return &b->columns.data[thread.v].by_kind[kind];
}

void profile_builder__thread_cpu_tail(struct profile_builder *b, struct thread_id id, uint64_t ns)
{
	if (id.v)
		b->threads.data[id.v].cpu_tail =
			min_u64(ns, PROFILE_TIME_MAX - columns_of(b, id, SAMPLE_CPU)->weight_sum);
}

void profile_builder__thread_cpu_excess(struct profile_builder *b, struct thread_id id, uint64_t ns)
{
	if (id.v)
		b->threads.data[id.v].cpu_excess = min_u64(ns, PROFILE_TIME_MAX);
}

void profile_builder__thread_wall(struct profile_builder *b, struct thread_id id,
				  const struct profile_wall *wall)
{
	if (id.v)
		b->threads.data[id.v].wall = *wall;
}

/* CPU always is; other kinds are from their first sample on. */
static bool sample_type_is_listed(const struct profile_builder *b, enum sample_kind kind)
{
	return any_of(b->sample_types.data, b->sample_types.count, type, type->kind == kind);
}

/* A column that begins with the first row whose value is not `usual`. */
#define add_unusual(c, column, usual, value)                                                       \
	({                                                                                         \
		int err_ = 0;                                                                      \
		if ((value) != (usual) || (c)->column.count) {                                     \
			while ((c)->column.count < (c)->time.count && !err_)                       \
				err_ = vec_push(&(c)->column, (usual));                            \
			err_ = err_ ?: vec_push(&(c)->column, (value));                            \
		}                                                                                  \
		err_;                                                                              \
	})

/* A row of the events of an event that is no clock; rows before the first one count ticks. */
static int add_events(struct sample_columns *c, uint64_t events)
{
	int err = 0;

	for (size_t i = c->events.count; i < c->time.count && !err; i++)
		err = vec_push(&c->events, c->ticks.count ? c->ticks.data[i] : UINT64_C(1));
	return err ?: vec_push(&c->events, events);
}

/* The columns of WALL samples. */
static int add_wait(struct sample_columns *c, const struct profile_sample *sample, uint64_t start)
{
	uint64_t last = c->until.count ? c->until.data[c->until.count - 1] : start;
	uint64_t since = max_u64(min_u64(sample->since, BUILDER_TIME_LIMIT), last);
	uint64_t until = max_u64(min_u64(sample->until, BUILDER_TIME_LIMIT), since);

	return vec_push(&c->state, sample->state) || vec_push(&c->holder, sample->holder) ||
			       vec_push(&c->since, since) || vec_push(&c->until, until)
		       ? -ENOMEM
		       : 0;
}

void profile_builder__sample(struct profile_builder *b, struct thread_id thread,
			     const struct profile_sample *sample)
{
	struct sample_columns *c = columns_of(b, thread, sample->kind);
	uint64_t last, weight, ticks, events;

	if (b->error || !thread.v)
		return;
	ticks = sample->exact ? sample->ticks : max_u64(sample->ticks, 1);
	events = sample->exact || sample->events ? sample->events : ticks;
	ticks = min_u64(ticks, PROFILE_TIME_MAX - b->profile.sample_count);
	events = min_u64(events, PROFILE_TIME_MAX - b->profile.event_count);
	if (vec_reserve(&c->time, c->time.count + 1) ||
	    vec_reserve(&c->weight, c->weight.count + 1) ||
	    vec_reserve(&c->stack, c->stack.count + 1) ||
	    vec_reserve(&c->comm, c->comm.count + 1) ||
	    ((events != ticks || c->events.count) && add_events(c, events)) ||
	    add_unusual(c, ticks, UINT64_C(1), ticks) ||
	    add_unusual(c, gil, GIL_UNKNOWN, sample->gil) ||
	    add_unusual(c, context, CONTEXT_NONE, sample->context) ||
	    add_unusual(c, cpu, 0, sample->cpu) ||
	    (sample->kind == SAMPLE_WALL && add_wait(c, sample, b->threads.data[thread.v].start)) ||
	    (sample->kind == SAMPLE_CPU &&
	     builder_note_cut(&b->columns.data[thread.v], c->time.count, sample->end))) {
		builder_has_failed(b, -ENOMEM);
		return;
	}
	last = c->time.count ? c->time.data[c->time.count - 1] : b->threads.data[thread.v].start;
	weight = min_u64(sample->weight, PROFILE_TIME_MAX - c->weight_sum);

	c->time.data[c->time.count++] = max_u64(min_u64(sample->time, BUILDER_TIME_LIMIT),
						last + 1);
	c->weight.data[c->weight.count++] = weight;
	c->stack.data[c->stack.count++] = sample->stack;
	c->comm.data[c->comm.count++] = sample->comm;
	c->weight_sum += weight;
	c->tick_sum += ticks;
	c->event_sum += events;
	if (!sample_type_is_listed(b, sample->kind))
		builder_has_failed(b, add_sample_type(b, sample->kind));
	if (sample->kind == SAMPLE_CPU) {
		b->profile.sample_count += ticks;
		b->profile.event_count += events;
		b->profile.event_squares += profile_square(events, ticks);
		b->profile.stack_ends[sample->end] += ticks;
	}
}

struct builder_samples profile_builder__samples(struct profile_builder *b, struct thread_id id,
						enum sample_kind kind)
{
	struct sample_columns *c = columns_of(b, id, kind);

	return (struct builder_samples){
		.process = b->threads.data[id.v].process,
		.count = c->time.count,
		.time = c->time.data,
		.stack = c->stack.data,
		.state = c->state.data,
	};
}

uint64_t profile_builder__take_back_cpu(struct profile_builder *b, struct thread_id thread,
					uint64_t ns)
{
	struct sample_columns *c = columns_of(b, thread, SAMPLE_CPU);
	uint64_t left = min_u64(ns, c->weight_sum);
	size_t row = c->weight.count;

	/* the range that it leaves */
	if (b->error || !left || builder_has_failed(b, vec_reserve(&c->taken, c->taken.count + 1)))
		return 0;
	c->weight_sum -= left;
	ns = left;
	while (left) {
		uint64_t taken;

		if (c->taken.count && c->taken.data[c->taken.count - 1].end == row) {
			row = c->taken.data[--c->taken.count].first;
			continue;
		}
		taken = min_u64(c->weight.data[row - 1], left);
		c->weight.data[row - 1] -= taken;
		left -= taken;
		row -= !c->weight.data[row - 1];
	}
	if (row < c->weight.count)
		c->taken.data[c->taken.count++] = (struct row_range){row, c->weight.count};
	return ns;
}

/* ---- facts about the session ----------------------------------------------------------------- */

/* What is not to be shown does not get into the strings of the profile. */
void profile_builder__meta(struct profile_builder *b, const char *key, const char *value)
{
	bool is_short = !strcmp(key, META_COMMAND_SHORT);
	char buffer[ARGUMENTS_TEXT_SIZE];
	struct profile_meta entry, *known;

	if (is_short && b->profile.arguments)
		return;
	if (value && !b->profile.arguments)
		value = value_without_arguments(key, value, buffer);
	entry.key = profile_builder__string(b, is_short ? META_COMMAND : key);
	entry.value = profile_builder__string(b, value);
	if (!entry.key.v)
		return;
	known = meta_table__find(&b->meta, entry.key.v);
	if (known)
		known->value = entry.value;
	else if (b->meta.count < PROFILE_META_MAX && !meta_table__need(&b->meta, &entry, NULL))
		builder_has_failed(b, -ENOMEM);
}

/* Later books of a CPU replace earlier ones. */
void profile_builder__books(struct profile_builder *b, const struct profile_cpu_books *given)
{
	struct profile_cpu_books books = *given;
	struct profile_cpu_books *known;

	if (books.cpu >= BOOKS_CPU_MAX || b->error)
		return;
	for (int line = 0; line < BOOK_COUNT; line++)
		books.count[line] = min_u64(books.count[line], PROFILE_TIME_MAX / BOOK_COUNT);
	if (books.counts_events)
		books.due = min_u64(books.due, PROFILE_TIME_MAX);
	known = books_table__need(&b->books, &books, NULL);
	if (!builder_has_failed(b, known ? 0 : -ENOMEM))
		*known = books;
}

void profile_builder__jit(struct profile_builder *b, const struct profile_jit *jit)
{
	if (!b->error)
		builder_has_failed(b, vec_push(&b->jits, *jit));
}

void profile_builder__runtime(struct profile_builder *b, const struct profile_runtime *runtime)
{
	if (!b->error)
		builder_has_failed(b, vec_push(&b->runtimes, *runtime));
}

void profile_builder__gil(struct profile_builder *b, const struct profile_gil *gil)
{
	if (!b->error)
		builder_has_failed(b, vec_push(&b->gils, *gil));
}

/* Ranges come in order of their ends; those that touch become one. */
void profile_builder__lost(struct profile_builder *b, enum lost_source source, uint64_t count,
			   uint64_t since, uint64_t until)
{
	uint64_t *sum = &b->profile.lost[source];
	struct profile_lost_range range;

	*sum = count > UINT64_MAX - *sum ? UINT64_MAX : *sum + count;

	range.until = min_u64(until, BUILDER_TIME_LIMIT);
	range.since = since ? min_u64(since, range.until) : range.until;
	while (b->lost_ranges.count) {
		const struct profile_lost_range *last =
			&b->lost_ranges.data[b->lost_ranges.count - 1];

		if (range.since > last->until)
			break;
		range.since = min_u64(range.since, last->since);
		range.until = max_u64(range.until, last->until);
		b->lost_ranges.count--;
	}
	builder_has_failed(b, vec_push(&b->lost_ranges, range));
}

struct profile *profile_builder__session(struct profile_builder *b)
{
	return &b->profile;
}

/* ---- symbols --------------------------------------------------------------------------------- */

size_t profile_builder__dso_count(const struct profile_builder *b)
{
	return b->dsos.count;
}

const struct profile_dso *profile_builder__get_dso(const struct profile_builder *b,
						   struct dso_id id)
{
	return &b->dsos.data[id.v];
}

const char *profile_builder__get_string(const struct profile_builder *b, struct string_id id)
{
	return strtab__get(b->strings, id.v);
}

size_t profile_builder__thread_count(const struct profile_builder *b)
{
	return b->threads.count ? b->threads.count - 1 : 0;
}

const struct profile_stack *profile_builder__get_stack(const struct profile_builder *b,
						       struct stack_id id)
{
	return &b->stacks.data[id.v];
}

size_t profile_builder__stack_count(const struct profile_builder *b)
{
	return b->stacks.count;
}

size_t profile_builder__location_count(const struct profile_builder *b)
{
	return b->locations.count;
}

const struct profile_location *profile_builder__get_location(const struct profile_builder *b,
							     struct location_id id)
{
	return &b->locations.data[id.v];
}

const char *profile_builder__function_name(const struct profile_builder *b, struct location_id id)
{
	const struct profile_location *l = &b->locations.data[id.v];

	if (!l->line_count)
		return NULL;
	return strtab__get(b->strings,
			   b->functions.data[b->lines.data[l->first_line].function.v].name.v);
}

struct location_id profile_builder__find_location(const struct profile_builder *b,
						  struct dso_id dso, uint64_t address)
{
	const struct profile_location *known;
	struct profile_location key;

	if (!dso.v || dso.v >= b->dsos.count)
		return (struct location_id){0};
	key = location_key(b, dso, address, (struct process_id){0});
	known = location_table__find(&b->locations, &key);
	return (struct location_id){known ? (uint32_t)(known - b->locations.data) : 0};
}

void profile_builder__dso_state(struct profile_builder *b, struct dso_id id,
				enum symbol_state state)
{
	if (id.v && id.v < b->dsos.count)
		b->dsos.data[id.v].symbol_state = state;
}

void profile_builder__resolve(struct profile_builder *b, struct location_id id,
			      uint64_t elf_address, const struct profile_line *lines,
			      size_t line_count)
{
	struct profile_location *l = &b->locations.data[id.v];
	size_t first = b->lines.count;

	if (b->error || !id.v || l->line_count)
		return;
	if (line_count > UINT32_MAX - first || vec_reserve(&b->lines, first + line_count)) {
		builder_has_failed(b, -ENOMEM);
		return;
	}
	l->elf_address = elf_address;
	if (!line_count)
		return;
	memcpy(&b->lines.data[first], lines, line_count * sizeof(*lines));
	b->lines.count += line_count;
	l->first_line = first;
	l->line_count = line_count;
	if (b->dsos.data[l->dso.v].kind == DSO_RUNTIME)
		l->dso = b->functions.data[lines[line_count - 1].function.v].dso;
}
