/* SPDX-License-Identifier: BSD-2-Clause */
/* The merged tree as a profile, for formats and the page. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "compare/merged.h"

struct shaping {
	const struct merged *m;
	struct profile_builder *b;
	unsigned int joined;	    /* 2^joined blocks are one */
	struct location_id *places; /* by name */
	struct stack_id *stacks;    /* by node */
	uint64_t *ticks;	    /* by node, in the blocks in hand */
	uint32_t *used;		    /* nodes with ticks … */
	size_t used_count;
	struct string_id comm; /* of the file in hand */
};

/* ---- functions and stacks -------------------------------------------------------------------- */

static struct location_id add_place(struct shaping *s, uint32_t name)
{
	const struct merged_function *f = &s->m->functions.data[name];
	const char *module = strtab__get(s->m->modules, f->module);
	struct profile_dso dso = {
		.kind = f->kind == DSO_JIT	 ? DSO_RUNTIME
			: f->kind == DSO_UNKNOWN ? DSO_FILE
						 : f->kind,
		.path = profile_builder__string(s->b, module),
		.is_library = strstr(module, ".so") != NULL,
		.file_state = FILE_STATE_UNOPENED,
		.symbol_state = SYMBOL_STATE_RESOLVED,
	};
	struct profile_function function = {
		.name = profile_builder__string(s->b, strtab__get(s->m->names, name)),
		.address = PROFILE_UNKNOWN_ADDRESS};
	struct profile_line line = {};
	struct location_id place;

	dso.name = dso.path;
	function.dso = profile_builder__dso(s->b, &dso);
	if (!function.name.v)
		function.name = profile_builder__string(s->b, "[unknown]");
	line.function = profile_builder__function(s->b, &function);
	place = profile_builder__location(s->b, function.dso, name + 1, (struct process_id){0},
					  f->category);
	if (place.v && line.function.v)
		profile_builder__resolve(s->b, place, PROFILE_UNKNOWN_ADDRESS, &line, 1);
	return place;
}

/* A node comes after its parent. */
static void add_stacks(struct shaping *s)
{
	for (uint32_t i = 1; i < s->m->nodes.count; i++) {
		const struct merged_node *node = &s->m->nodes.data[i];
		struct location_id *place = &s->places[node->function];

		if (!place->v)
			*place = add_place(s, node->function);
		s->stacks[i] = profile_builder__stack(s->b, s->stacks[node->parent], *place);
		if (!s->stacks[i].v)
			return;
	}
}

/* ---- rows ------------------------------------------------------------------------------------ */

static uint32_t block_of(const struct shaping *s, const struct merged_cell *cell)
{
	return (uint32_t)(cell->key >> 32) >> s->joined;
}

/* Cells are in the order of their blocks. Collects those of a block; returns the number of the first of the next one. */
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

/* Of a file's CPU time, that of its first `ticks`. */
static uint64_t cpu_of(const struct compare_file *f, uint64_t ticks)
{
	return (uint64_t)((double)f->cpu_ns * ((double)ticks / (double)f->samples));
}

/* The rows of a block are spread over its time. */
static void add_rows(struct shaping *s, const struct merged_file *file, uint32_t block,
		     struct thread_id thread, uint64_t *done)
{
	const struct compare_file *f = &file->facts;
	uint64_t size = f->untimed ? s->used_count : UINT64_C(1) << (file->block_shift + s->joined);
	uint64_t begin = block * size;

	if (!f->untimed && begin < file->span_ns)
		size = min_u64(size, file->span_ns - begin);
	for (size_t i = 0; i < s->used_count; i++) {
		uint64_t ticks = s->ticks[s->used[i]];
		struct profile_sample row = {
			.kind = SAMPLE_CPU,
			.time = begin + size / s->used_count * (i + 1),
			.weight = cpu_of(f, *done + ticks) - cpu_of(f, *done),
			.ticks = ticks,
			.stack = s->stacks[s->used[i]],
			.comm = s->comm,
			.end = STACK_END_ROOT,
		};

		*done += ticks;
		if (row.stack.v)
			profile_builder__sample(s->b, thread, &row);
	}
}

static void add_file(struct shaping *s, size_t number, struct process_id process)
{
	const struct merged_file *file = &s->m->files.data[number];
	const char *slash = strrchr(file->facts.path, '/');
	struct thread_id thread;
	uint64_t done = 0;

	s->comm = profile_builder__string(s->b, slash && slash[1] ? slash + 1 : file->facts.path);
	thread = profile_builder__thread(s->b, process, (uint32_t)number + 1, false, s->comm, 0);
	for (size_t at = 0; at < file->cells.count && !profile_builder__error(s->b);) {
		uint32_t block = block_of(s, &file->cells.data[at]);

		at = collect_block(s, file, at);
		add_rows(s, file, block, thread, &done);
		forget_block(s);
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

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
	if (!session->untimed)
		session->period = first->cpu_ns / first->samples;
	if (*first->event)
		profile_builder__meta(s->b, META_EVENT, first->event);
	profile_builder__meta(s->b, META_TARGET, "comparison of OLD and NEW");
}

static void build(struct shaping *s)
{
	static const char *const names[COMPARE_SIDES] = {"OLD", "NEW"};
	struct process_id process[COMPARE_SIDES];

	while (s->joined < 7 && count_rows(s) > MERGED_ROWS_MAX)
		s->joined++;
	set_session(s);
	add_stacks(s);
	for (uint32_t i = 0; i < COMPARE_SIDES; i++)
		process[i] = profile_builder__process(
			s->b,
			&(struct profile_process){.pid = i + 1,
						  .name = profile_builder__string(s->b, names[i])});
	for (size_t i = 0; i < s->m->files.count; i++)
		add_file(s, i, process[s->m->files.data[i].facts.side]);
}

int merged__build_profile(const struct merged *m, struct profile_builder *b)
{
	_cleanup_free_ struct location_id *places = calloc(strtab__count(m->names) + 1,
							   sizeof(*places));
	_cleanup_free_ struct stack_id *stacks = calloc(m->nodes.count, sizeof(*stacks));
	_cleanup_free_ uint64_t *ticks = calloc(m->nodes.count, sizeof(*ticks));
	_cleanup_free_ uint32_t *used = calloc(m->nodes.count, sizeof(*used));
	struct shaping s = {
		.m = m, .b = b, .places = places, .stacks = stacks, .ticks = ticks, .used = used};

	if (!places || !stacks || !ticks || !used)
		return -ENOMEM;
	build(&s);
	return profile_builder__error(b);
}
