/* SPDX-License-Identifier: BSD-2-Clause */
#include "compare/merged_profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/suffix.h"
#include "compare/merged.h"
#include "profile/profile.h"

struct shaping {
	const struct merged *m; /* of samples, then of waits */
	struct profile_builder *b;
	unsigned int joined;		/* 2^joined blocks are joined */
	VEC(struct location_id) places; /* by string of `b`, for both trees */
	uint64_t last_address;		/* of places of the first tree */
	struct stack_id *stacks;	/* by node */
	struct stack_id kernel;		/* of waits without any function */
	uint64_t *ticks;		/* by node, in the current block */
	uint32_t *used;			/* nodes with ticks … */
	size_t used_count;
	struct string_id comm; /* of the current file */
};

/* ---- functions and stacks -------------------------------------------------------------------- */

static struct location_id add_place(struct shaping *s, struct string_id name,
				    const struct merged_function *f, uint64_t address)
{
	const char *module = strtab__get(s->m->modules, f->module);
	struct profile_dso dso = {
		.kind = f->kind == DSO_JIT	 ? DSO_RUNTIME
			: f->kind == DSO_UNKNOWN ? DSO_FILE
						 : f->kind,
		.path = profile_builder__string(s->b, module),
		.is_interpreted = f->kind == DSO_RUNTIME && *module != '[',
		.is_library = is_library_path(module),
		.file_state = FILE_STATE_UNOPENED,
		.symbol_state = SYMBOL_STATE_RESOLVED,
	};
	struct profile_function function = {.name = name, .address = PROFILE_UNKNOWN_ADDRESS};
	struct profile_line line = {};
	struct location_id place;

	dso.name = dso.path;
	function.dso = profile_builder__dso(s->b, &dso);
	line.function = profile_builder__function(s->b, &function);
	place = profile_builder__location(s->b, function.dso, address, (struct process_id){0},
					  f->category);
	if (place.v && line.function.v)
		profile_builder__resolve(s->b, place, PROFILE_UNKNOWN_ADDRESS, &line, 1);
	return place;
}

/* A name has one place in both trees. */
static struct stack_id add_stack(struct shaping *s, struct stack_id parent, const char *text,
				 const struct merged_function *f, uint64_t address)
{
	struct string_id name = profile_builder__string(s->b, *text ? text : "[unknown]");
	struct location_id *place = vec_at(&s->places, name.v);

	if (!place)
		return (struct stack_id){0};
	if (!place->v)
		*place = add_place(s, name, f, s->last_address + address);
	return profile_builder__stack(s->b, parent, *place);
}

/* A node comes after its parent. A state has no stack: its rows have its parent's. 0 or -ENOMEM. */
static int add_stacks(struct shaping *s)
{
	static const struct merged_function kernel = {.kind = DSO_KERNEL,
						      .category = CATEGORY_KERNEL};
	size_t names = strtab__count(s->m->names);

	for (uint32_t i = 1; i < s->m->nodes.count; i++) {
		const struct merged_node *node = &s->m->nodes.data[i];
		const struct merged_function *f = &s->m->functions.data[node->function];

		if (f->state && !f->kind)
			continue;
		s->stacks[i] = add_stack(s, s->stacks[node->parent],
					 strtab__get(s->m->names, node->function), f,
					 node->function + 1);
		if (!s->stacks[i].v)
			return -ENOMEM;
	}
	if (s->m->is_waiting)
		s->kernel = add_stack(s, s->kernel, "[kernel]", &kernel, names + 1);
	s->last_address += names + 1;
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static uint32_t block_of(const struct shaping *s, const struct merged_cell *cell)
{
	return (uint32_t)(cell->key >> 32) >> s->joined;
}

/* Collects the cells of a block, which are consecutive. Returns the next block's first cell. */
static size_t collect_block(struct shaping *s, const struct merged_file *file, size_t from)
{
	uint32_t block = block_of(s, &file->cells.data[from]);
	size_t i = from;

	s->used_count = 0;
	for (; i < file->cells.count && block_of(s, &file->cells.data[i]) == block; i++) {
		uint32_t node = (uint32_t)file->cells.data[i].key;

		if (!s->ticks[node])
			s->used[s->used_count++] = node;
		s->ticks[node] += file->cells.data[i].ticks;
	}
	return i;
}

static void forget_block(struct shaping *s)
{
	for (size_t i = 0; i < s->used_count; i++)
		s->ticks[s->used[i]] = 0;
}

static size_t count_rows(struct shaping *s)
{
	size_t rows = 0;

	for (size_t i = 0; i < s->m->files.count; i++)
		for (size_t at = 0; at < s->m->files.data[i].cells.count;) {
			at = collect_block(s, &s->m->files.data[i], at);
			rows += s->used_count;
			forget_block(s);
		}
	return rows;
}

/* CPU time of the first `ticks` of a file. */
static uint64_t cpu_of(const struct compare_file *f, uint64_t ticks)
{
	return (uint64_t)((double)f->cpu_ns * ((double)ticks / (double)f->ticks));
}

/* A wait has its state and the stack of the node's parent. Adds it to the thread's account. */
static void make_wait(const struct shaping *s, uint32_t leaf, uint64_t since,
		      struct profile_sample *row, struct profile_wall *wall)
{
	const struct merged_node *node = &s->m->nodes.data[leaf];

	row->kind = SAMPLE_WALL;
	row->ticks = 1;
	row->state = (uint8_t)s->m->functions.data[node->function].state;
	row->stack = node->parent == MERGED_ROOT ? s->kernel : s->stacks[node->parent];
	row->since = since;
	row->until = row->time;
	row->weight = min_u64(row->weight, PROFILE_TIME_MAX - wall->until);
	wall->until += row->weight;
	*(wall_state_is_for_cpu(row->state) ? &wall->runnable : &wall->blocked) += row->weight;
}

/* The state of adding the rows of a thread. */
struct row_adding {
	struct thread_id thread;
	const struct merged_file *file;
	uint64_t ticks; /* so far */
	struct profile_wall wall;
};

/* Spreads the rows of a block over its time: samples evenly, waits by their length. */
static void add_rows(struct shaping *s, struct row_adding *a, uint32_t block)
{
	const struct compare_file *f = &a->file->facts;
	uint64_t size = f->untimed ? s->used_count
				   : UINT64_C(1) << (a->file->block_shift + s->joined);
	uint64_t begin = block * size, first = a->ticks, sum = 0, since = begin;

	if (!f->untimed && begin < a->file->span_ns)
		size = min_u64(size, a->file->span_ns - begin);
	for (size_t i = 0; i < s->used_count; i++)
		sum += s->ticks[s->used[i]];
	for (size_t i = 0; i < s->used_count; i++) {
		uint64_t ticks = s->ticks[s->used[i]];
		double part = (double)(a->ticks + ticks - first) / (double)sum;
		struct profile_sample row = {
			.kind = SAMPLE_CPU,
			.time = begin + (s->m->is_waiting ? (uint64_t)((double)size * part)
							  : size / s->used_count * (i + 1)),
			.weight = cpu_of(f, a->ticks + ticks) - cpu_of(f, a->ticks),
			.ticks = ticks,
			.stack = s->stacks[s->used[i]],
			.comm = s->comm,
			.end = STACK_END_ROOT,
		};

		if (s->m->is_waiting)
			make_wait(s, s->used[i], since, &row, &a->wall);
		since = row.time;
		a->ticks += ticks;
		if (row.stack.v)
			profile_builder__sample(s->b, a->thread, &row);
	}
}

static struct string_id comm_of(struct shaping *s, size_t number)
{
	const char *path = s->m->files.data[number].facts.path, *slash = strrchr(path, '/');

	return profile_builder__string(s->b, slash && slash[1] ? slash + 1 : path);
}

/* Threads have the numbers of their files, from 1 on. */
static void add_file(struct shaping *s, size_t number)
{
	struct row_adding a = {.thread = {number + 1}, .file = &s->m->files.data[number]};
	struct profile *session = profile_builder__session(s->b);
	struct builder_samples rows;

	s->comm = comm_of(s, number);
	for (size_t at = 0; at < a.file->cells.count && !profile_builder__error(s->b);) {
		uint32_t block = block_of(s, &a.file->cells.data[at]);

		at = collect_block(s, a.file, at);
		add_rows(s, &a, block);
		forget_block(s);
	}
	if (profile_builder__error(s->b))
		return;
	if (s->m->is_waiting)
		profile_builder__thread_wall(s->b, a.thread, &a.wall);
	rows = profile_builder__samples(s->b, a.thread,
					s->m->is_waiting ? SAMPLE_WALL : SAMPLE_CPU);
	if (rows.count)
		session->end = max_u64(session->end, rows.time[rows.count - 1]);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* The tree has what the samples count, and not their number. */
static void set_event(struct shaping *s, const struct compare_file *first)
{
	struct profile *session = profile_builder__session(s->b);

	session->uncounted = first->counts_events || first->counts_time;
	session->tick_cpu = first->counts_time;
	if (!first->counts_events)
		return;
	session->event = profile_builder__string(s->b, first->event);
	session->event_unit = profile_builder__string(s->b, first->event_unit);
}

static void set_session(struct shaping *s)
{
	struct profile *session = profile_builder__session(s->b);
	const struct compare_file *first = &s->m->files.data[0].facts;

	session->finished_symbols = true;
	for (size_t i = 0; i < s->m->files.count; i++) {
		const struct compare_file *f = &s->m->files.data[i].facts;

		session->untimed |= f->untimed;
		session->end = max_u64(session->end, s->m->files.data[i].span_ns);
		session->end = max_u64(session->end, s->m->nodes.count);
	}
	set_event(s, first);
	if (!session->untimed && !session->uncounted)
		session->period = first->cpu_ns / first->samples;
	if (*first->event)
		profile_builder__meta(s->b, META_EVENT, first->event);
	profile_builder__meta(s->b, META_TARGET, "comparison of OLD and NEW");
}

static void add_lives(struct shaping *s)
{
	static const char *const names[COMPARE_SIDES] = {"OLD", "NEW"};
	struct process_id process[COMPARE_SIDES];

	for (uint32_t i = 0; i < COMPARE_SIDES; i++)
		process[i] = profile_builder__process(
			s->b,
			&(struct profile_process){.pid = i + 1,
						  .name = profile_builder__string(s->b, names[i])});
	for (size_t i = 0; i < s->m->files.count; i++)
		profile_builder__thread(s->b, process[s->m->files.data[i].facts.side],
					(uint32_t)i + 1, false, comm_of(s, i), 0);
}

/* Adds the samples of all files, with processes and metadata; or their waits. */
static int add_tree(struct shaping *s, const struct merged *m)
{
	_cleanup_free_ struct stack_id *stacks = calloc(m->nodes.count, sizeof(*stacks));
	_cleanup_free_ uint64_t *ticks = calloc(m->nodes.count, sizeof(*ticks));
	_cleanup_free_ uint32_t *used = calloc(m->nodes.count, sizeof(*used));

	if (!stacks || !ticks || !used)
		return -ENOMEM;
	s->m = m;
	s->stacks = stacks;
	s->ticks = ticks;
	s->used = used;
	s->joined = 0;
	while (s->joined < 7 && count_rows(s) > MERGED_ROWS_MAX)
		s->joined++;
	if (!m->is_waiting)
		set_session(s);
	if (add_stacks(s))
		return -ENOMEM;
	if (!m->is_waiting)
		add_lives(s);
	for (size_t i = 0; i < m->files.count; i++)
		add_file(s, i);
	return profile_builder__error(s->b);
}

int merged__build_profile(const struct merged *m, const struct merged *waiting,
			  struct profile_builder *b)
{
	struct shaping s = {.b = b};
	int err = add_tree(&s, m);

	if (!err && waiting)
		err = add_tree(&s, waiting);
	vec_free(&s.places);
	return err;
}
