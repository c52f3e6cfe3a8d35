/* SPDX-License-Identifier: BSD-2-Clause */
#include "compare/merged.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"
#include "compare/names.h"
#include "profile/figures.h"

#define NO_NUMBER  UINT32_MAX
#define TICK	   1000	      /* ns */
#define STATE_SIZE 64	      /* of the name of a state */
#define PIECES_MAX (1u << 20) /* above, pieces with the same key are joined */

MAP_FUNCTIONS_OF_BYTES(merged_nodes, struct merged_node);
MAP_FUNCTIONS_BY(merged_dsos, struct merged_dso, uint32_t, name);

/* The next sample of a thread to add, and the next of its cuts. */
struct cursor {
	size_t sample, cut;
};

struct adding {
	struct merged *m;
	struct merged_file *file;
	const struct profile *p;
	uint32_t *name_of_function; /* by function of the profile, or NO_NUMBER */
	uint32_t *node_of_stack;    /* by stack of the profile */
	uint64_t *ticks_of_stack;   /* so far */
	uint64_t from, until;	    /* CLOCK_MONOTONIC */
	uint64_t *block_ticks;	    /* by stack, in the current block */
	VEC(uint32_t) touched;	    /* stacks in the current block */
	struct cursor *cursors;	    /* by thread */
};

int merged__init(struct merged *m)
{
	*m = (struct merged){.names = strtab__new(), .modules = strtab__new(), .sample_ticks = 1};
	if (!m->names || !m->modules)
		return -ENOMEM;
	return vec_push(&m->nodes, (struct merged_node){MERGED_ROOT, MERGED_NO_FUNCTION});
}

void merged__fini(struct merged *m)
{
	for (size_t i = 0; i < m->files.count; i++) {
		free(m->files.data[i].facts.path);
		free(m->files.data[i].facts.event);
		free(m->files.data[i].facts.event_unit);
		free(m->files.data[i].facts.kernel);
		free(m->files.data[i].facts.filter);
		vec_free(&m->files.data[i].cells);
	}
	vec_free(&m->files);
	merged_nodes__fini(&m->nodes);
	merged_dsos__fini(&m->dsos);
	strtab__free(m->names);
	strtab__free(m->modules);
	vec_free(&m->functions);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static int child_of(struct merged *m, uint32_t parent, uint32_t function, uint32_t *node)
{
	const struct merged_node wanted = {parent, function};

	return map_number(&m->nodes, merged_nodes__need(&m->nodes, &wanted, NULL), node);
}

static int note_function(struct adding *a, const struct profile_location *location, uint32_t number)
{
	const struct profile_dso *dso = &a->p->dsos[location->dso.v];
	int64_t module = strtab__intern(a->m->modules, profile__string(a->p, dso->name));
	struct merged_function *f = vec_at(&a->m->functions, number);

	if (module < 0 || !f)
		return -ENOMEM;
	if (!f->kind)
		*f = (struct merged_function){(uint32_t)module, dso->kind, location->category,
					      f->state};
	return 0;
}

/* Anonymous functions get the name of their script, too. */
static int name_function(struct adding *a, const struct profile_location *location,
			 uint32_t function, uint32_t *number)
{
	const struct profile_function *f = &a->p->functions[function];
	const char *name = profile__string(a->p, f->name);
	const char *file = profile__string(a->p, f->definition_file), *slash = strrchr(file, '/');
	char stable[8 * EVENT_PATH_MAX], with_file[EVENT_PATH_MAX];

	if (*file && (!strcmp(name, "(anonymous)") || !strcmp(name, "<lambda>"))) {
		snprintf(with_file, sizeof(with_file), "%s %s", name, slash ? slash + 1 : file);
		name = with_file;
	}
	stable_name(stable, sizeof(stable), name);
	return strtab__number(a->m->names, stable, number) ?: note_function(a, location, *number);
}

/* A function's outlined part, called by that function. */
static bool is_part_of_caller(const struct adding *a, uint32_t node, uint32_t number,
			      uint32_t function, uint32_t caller)
{
	return node != MERGED_ROOT && caller != function &&
	       a->m->nodes.data[node].function == number;
}

/* Waits have no kernel functions: the state represents them. */
static int add_location(struct adding *a, const struct profile_location *location, uint32_t *node,
			uint32_t *caller)
{
	if (a->m->is_waiting && location->category == CATEGORY_KERNEL)
		return 0;
	for (uint32_t i = location->line_count; i-- > 0;) {
		uint32_t function = a->p->lines[location->first_line + i].function.v;
		uint32_t *number = &a->name_of_function[function];
		int err = *number == NO_NUMBER ? name_function(a, location, function, number) : 0;

		if (!err && !is_part_of_caller(a, *node, *number, function, *caller))
			err = child_of(a->m, *node, *number, node);
		if (err)
			return err;
		*caller = function;
	}
	return 0;
}

static int add_stacks(struct adding *a)
{
	int err = 0;

	for (uint32_t i = 1; i < a->p->stack_count && !err; i++) {
		const struct profile_stack *stack = &a->p->stacks[i];
		const struct profile_stack *parent = &a->p->stacks[stack->parent.v];
		uint32_t node = a->node_of_stack[stack->parent.v], caller = NO_NUMBER;

		if (stack->parent.v) {
			const struct profile_location *l = &a->p->locations[parent->location.v];

			caller = a->p->lines[l->first_line].function.v;
		}
		err = add_location(a, &a->p->locations[stack->location.v], &node, &caller);
		a->node_of_stack[i] = node;
	}
	return err;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Counts ticks by file of code of the innermost function, and those without a name. */
static int count_unnamed(struct adding *a, uint32_t stack)
{
	const struct profile_location *l = &a->p->locations[a->p->stacks[stack].location.v];
	enum compare_side side = a->file->facts.side;
	bool time = a->file->facts.counts_time;
	struct merged_dso dso = {}, *known;
	char stable[EVENT_PATH_MAX + 3], name[EVENT_PATH_MAX + 3];

	snprintf(name, sizeof(name), "[%s]", profile__string(a->p, a->p->dsos[l->dso.v].name));
	stable_name(stable, sizeof(stable), name);
	if (strtab__number(a->m->names, stable, &dso.name))
		return -ENOMEM;
	known = merged_dsos__need(&a->m->dsos, &dso, NULL);
	if (!known)
		return -ENOMEM;
	known->ticks[side][time] += a->ticks_of_stack[stack];
	if (l->unnamed) {
		known->unnamed[side][time] += a->ticks_of_stack[stack];
		a->file->facts.unnamed += a->ticks_of_stack[stack];
	}
	return 0;
}

/* The cuts of a thread are in the order of its samples. */
static bool is_cut(const struct profile_thread *thread, size_t sample, size_t *next)
{
	while (*next < thread->cut_count && thread->cuts[*next].sample < sample)
		++*next;
	return *next < thread->cut_count && thread->cuts[*next].sample == sample &&
	       !stack_end_is_complete(thread->cuts[*next].end);
}

static uint64_t block_of(const struct adding *a, uint64_t time)
{
	if (a->p->untimed || time <= a->from)
		return 0;
	return (min_u64(time, a->until) - a->from) >> a->file->block_shift;
}

/* Adds a sample to the current block. */
static int add_sample(struct adding *a, const struct profile_samples *samples, size_t i)
{
	uint32_t stack = samples->stack[i].v;
	uint64_t ticks = profile_samples__events(samples, i);
	int err = a->block_ticks[stack] || !ticks ? 0 : vec_push(&a->touched, stack);

	a->block_ticks[stack] += ticks;
	a->file->facts.samples += profile_samples__ticks(samples, i);
	a->file->facts.ticks += ticks;
	return err;
}

/* The samples of a thread in a block, from its cursor on. */
static int add_of_thread(struct adding *a, const struct profile_thread *thread,
			 struct cursor *cursor, uint64_t block)
{
	const struct profile_samples *samples = &thread->samples[SAMPLE_CPU];
	int err = 0;

	for (; cursor->sample < samples->count && !err; cursor->sample++) {
		size_t i = cursor->sample;

		if (block_of(a, samples->time[i]) != block)
			break;
		if (is_cut(thread, i, &cursor->cut))
			a->file->facts.cut += profile_samples__events(samples, i);
		err = add_sample(a, samples, i);
	}
	return err;
}

/* Turns the counts of the block into cells, and clears them. */
static int end_block(struct adding *a, uint64_t block)
{
	int err = 0;

	for (size_t i = 0; i < a->touched.count && !err; i++) {
		uint32_t stack = a->touched.data[i];

		err = vec_push(&a->file->cells,
			       (struct merged_cell){block << 32 | a->node_of_stack[stack],
						    a->block_ticks[stack]});
		a->ticks_of_stack[stack] += a->block_ticks[stack];
		a->block_ticks[stack] = 0;
	}
	a->touched.count = 0;
	return err;
}

/* Block by block, over all threads: a thread's samples are in time order. */
static int add_all_samples(struct adding *a)
{
	uint64_t blocks = block_of(a, a->until) + 1;
	int err = 0;

	for (uint64_t block = 0; block < blocks && !err; block++) {
		for (size_t i = 1; i < a->p->thread_count && !err; i++)
			err = add_of_thread(a, &a->p->threads[i], &a->cursors[i], block);
		if (!err)
			err = end_block(a, block);
	}
	for (uint32_t i = 1; i < a->p->stack_count && !err; i++)
		if (a->ticks_of_stack[i])
			err = count_unnamed(a, i);
	return err;
}

/* ---- waits ----------------------------------------------------------------------------------- */

/*
 * Waits (record --wall) as ticks of a microsecond. A wait is in all blocks of time that it spans,
 * so the variance of blocks shows that a long wait is one event; counts of visits would hide that.
 */

/* The part of a wait that is in a block. */
struct piece {
	uint64_t key; /* as in a cell */
	double ns;
};
struct pieces {
	struct piece *data;
	size_t count, capacity;
};

DEFINE_ORDER(compare_pieces, struct piece, ASCENDING(key));

/* The node of a state below that of a stack. */
static int find_leaf(struct adding *a, uint32_t node, enum wall_state state, uint32_t *leaf)
{
	char name[STATE_SIZE];
	struct merged_function *function;
	uint32_t number = 0;

	snprintf(name, sizeof(name), "[waiting: %s]", wall_state_name(state));
	if (strtab__number(a->m->names, name, &number))
		return -ENOMEM;
	function = vec_at(&a->m->functions, number);
	if (!function)
		return -ENOMEM;
	function->state = state;
	return child_of(a->m, node, number, leaf);
}

/* A wait of unknown time is at the time of its visit. */
static int add_wait(struct adding *a, const struct profile_samples *waits, size_t i,
		    struct pieces *pieces)
{
	uint64_t since = waits->since[i], until = waits->until[i], block, last;
	double each;
	uint32_t leaf = MERGED_ROOT;
	int err = find_leaf(a, a->node_of_stack[waits->stack[i].v],
			    profile_samples__state(waits, i), &leaf);

	if (until <= since)
		since = until = waits->time[i];
	each = until > since ? (double)waits->weight[i] / (double)(until - since) : 0;
	if (until < a->from || since > a->until ||
	    (each > 0 && (until == a->from || since == a->until)))
		return err;
	since = max_u64(since, a->from) - a->from;
	until = min_u64(until, a->until) - a->from;
	last = until >> a->file->block_shift;
	for (block = since >> a->file->block_shift; block <= last && !err; block++) {
		uint64_t from = max_u64(since, block << a->file->block_shift);
		uint64_t to = min_u64(until, (block + 1) << a->file->block_shift);

		err = vec_push(pieces, (struct piece){block << 32 | leaf,
						      each > 0 ? each * (double)(to - from)
							       : (double)waits->weight[i]});
	}
	return err;
}

/* Joins pieces with the same key. */
static void join_pieces(struct pieces *pieces)
{
	size_t count = 0;

	vec_sort(pieces, compare_pieces);
	for (size_t i = 0; i < pieces->count; i++) {
		if (count && pieces->data[count - 1].key == pieces->data[i].key)
			pieces->data[count - 1].ns += pieces->data[i].ns;
		else
			pieces->data[count++] = pieces->data[i];
	}
	pieces->count = count;
}

static int add_cells(struct adding *a, struct pieces *pieces)
{
	struct compare_file *facts = &a->file->facts;
	double ns = 0;
	int err = 0;

	join_pieces(pieces);
	for (size_t i = 0; i < pieces->count && !err; i++) {
		uint64_t ticks = (uint64_t)(pieces->data[i].ns / TICK + 0.5);

		ns += pieces->data[i].ns;
		if (!ticks)
			continue;
		facts->ticks += ticks;
		err = vec_push(&a->file->cells, (struct merged_cell){pieces->data[i].key, ticks});
	}
	facts->cpu_ns = (uint64_t)(ns + 0.5);
	return err;
}

static uint8_t unknown_doubts(const struct figures *f)
{
	return (uint8_t)(!f->losses_known << COMPARE_DOUBT_LOST |
			 !f->ends_known << COMPARE_DOUBT_CUT |
			 !f->names_known << COMPARE_DOUBT_UNNAMED);
}

static int add_waits(struct adding *a)
{
	struct compare_file *facts = &a->file->facts;
	struct figures f;
	struct pieces pieces = {};
	size_t limit = PIECES_MAX;
	int err = 0;

	figures__init(&f, a->p);
	facts->unknown = unknown_doubts(&f);
	facts->lost = f.value[FIGURE_UNVISITED];
	facts->due = f.value[FIGURE_LIVED];
	if (a->p->visits.hz)
		a->file->sample_ticks = (double)(UINT64_C(1000000000) / TICK / a->p->visits.hz);
	for (size_t i = 1; i < a->p->thread_count && !err; i++) {
		const struct profile_samples *waits = &a->p->threads[i].samples[SAMPLE_WALL];

		for (size_t k = 0; k < waits->count && !err; k++)
			err = add_wait(a, waits, k, &pieces);
		if (pieces.count <= limit)
			continue;
		join_pieces(&pieces);
		limit = max_u64(PIECES_MAX, 2 * pieces.count);
	}
	if (!err)
		err = add_cells(a, &pieces);
	vec_free(&pieces);
	return err;
}

/* ---- facts ----------------------------------------------------------------------------------- */

static uint32_t block_shift_of(uint64_t duration)
{
	uint32_t shift = 0;

	while (duration >> shift >= MERGED_BLOCKS_MAX)
		shift++;
	return shift;
}

/* A COMMAND that was recorded from start to end. */
static bool is_whole_command(const struct profile *p)
{
	const char *target = profile__meta(p, META_TARGET);

	if (!target || strncmp(target, "-- ", 3) || p->cut_short || p->dropped_running)
		return false;
	for (size_t i = 1; i < p->process_count; i++)
		if (p->processes[i].is_target && !p->processes[i].end)
			return false;
	return true;
}

static int begin_file(struct merged_file *file, enum compare_side side, const char *path,
		      const char *event, const char *unit, const char *kernel)
{
	*file = (struct merged_file){.facts = {.side = side,
					       .path = strdup(path),
					       .event = strdup(event ? event : ""),
					       .event_unit = strdup(unit ? unit : ""),
					       .kernel = strdup(kernel ? kernel : "")}};
	return file->facts.path && file->facts.event && file->facts.event_unit && file->facts.kernel
		       ? 0
		       : -ENOMEM;
}

/*
 * Ticks that were not run are of unknown tasks. The targets' part is taken from the ticks that were
 * run, because most ticks beside a target that mostly waits are those of others.
 */
static uint64_t lost_of_targets(const struct figures *f)
{
	uint64_t not_run = f->value[FIGURE_BOOKS + BOOK_NOT_RUN];
	uint64_t lost = f->value[FIGURE_LOST_TICKS] - not_run;
	uint64_t own = lost + f->value[FIGURE_BOOKS + BOOK_DELIVERED];
	uint64_t run = own + f->value[FIGURE_BOOKS + BOOK_FILTERED];

	return lost +
	       (run ? (uint64_t)((double)not_run * (double)own / (double)run + 0.5) : not_run);
}

/* Of a recording as it was requested, of other files as they have it. */
static const char *event_of(const struct profile *p)
{
	const char *event = profile__meta(p, META_EVENT);

	return !event && p->event.v && !profile__events_are_cpu(p) ? profile__event(p) : event;
}

/* What a filter has left out, of a file or of another window of it. */
static int add_dropped(struct compare_file *facts, const struct profile *p, const struct figures *f)
{
	facts->dropped_samples += f->value[FIGURE_DROPPED_SAMPLES];
	facts->dropped_cpu_ns += f->value[FIGURE_DROPPED_CPU];
	if (facts->filter || !p->clause_count)
		return 0;
	facts->filter = strdup(profile__string(p, p->filter));
	return facts->filter ? 0 : -ENOMEM;
}

/* Samples and their cuts are counted when samples are added. */
static int add_facts(struct adding *a, enum compare_side side, const char *path)
{
	const struct profile *p = a->p;
	struct compare_file *facts = &a->file->facts;
	uint64_t duration = a->until - a->from;
	struct figures f;
	int err = begin_file(a->file, side, path, event_of(p), profile__event_unit(p),
			     profile__meta(p, META_KERNEL_RELEASE));

	figures__init(&f, p);
	facts->cpu_ns = f.value[FIGURE_CPU];
	err = err ?: add_dropped(facts, p, &f);
	facts->duration_ns = duration;
	facts->unknown = unknown_doubts(&f);
	facts->lost = lost_of_targets(&f);
	/* losses are of all ticks, whatever a filter keeps */
	facts->due = facts->lost + p->event_count + f.value[FIGURE_DROPPED_EVENTS];
	if (p->event.v && p->event_count) /* of unequal samples, as few as are as exact */
		a->file->sample_ticks = p->event_squares / (double)p->event_count;
	facts->counts_events = p->event.v && !profile__events_are_cpu(p);
	facts->counts_time = profile__events_are_cpu(p);
	facts->untimed = p->untimed;
	facts->cut_short = p->cut_short;
	facts->is_part = p->is_slice;
	facts->is_command = !p->is_slice && is_whole_command(p);
	a->file->block_shift = p->untimed ? 0 : block_shift_of(duration);
	a->file->span_ns = duration;
	return err;
}

/* All samples of the window's process, in one block. */
static int add_window(struct adding *a, const struct merged_window *window)
{
	struct compare_file *facts = &a->file->facts;
	const struct profile *p = a->p;
	struct figures f;
	int err;

	figures__init(&f, p);
	facts->unknown |= unknown_doubts(&f);
	err = add_dropped(facts, p, &f);
	for (size_t i = 1; i < p->thread_count && !err; i++) {
		const struct profile_thread *thread = &p->threads[i];
		const struct profile_samples *samples = &thread->samples[SAMPLE_CPU];

		if (window->process &&
		    strcmp(profile__string(p, p->processes[thread->process.v].name),
			   window->process) != 0)
			continue;
		facts->cpu_ns += thread->cpu_tail;
		for (size_t j = 0; j < samples->count && !err; j++) {
			facts->cpu_ns += samples->weight[j];
			err = add_sample(a, samples, j);
		}
	}
	facts->due = facts->ticks;
	if (!window->is_more)
		facts->duration_ns += window->length ? window->length : a->until - a->from;
	if (!err)
		err = end_block(a, window->offset >> a->file->block_shift);
	for (uint32_t i = 1; i < p->stack_count && !err; i++)
		if (a->ticks_of_stack[i])
			err = count_unnamed(a, i);
	return err;
}

static int begin_windows(struct merged_file *file, enum compare_side side, const char *path,
			 const struct merged_window *window)
{
	int err = begin_file(file, side, path, NULL, NULL, NULL);

	file->block_shift = block_shift_of(window->span);
	file->span_ns = window->span;
	return err;
}

static int add_profile(struct merged *m, enum compare_side side, const char *path,
		       const struct profile *p, const struct merged_window *window)
{
	_cleanup_free_ uint32_t *names = malloc((p->function_count + 1) * sizeof(*names));
	_cleanup_free_ uint32_t *nodes = calloc(p->stack_count + 1, sizeof(*nodes));
	_cleanup_free_ uint64_t *ticks = calloc(2 * (p->stack_count + 1), sizeof(*ticks));
	_cleanup_free_ struct cursor *cursors = calloc(p->thread_count + 1, sizeof(*cursors));
	struct adding a = {.m = m,
			   .p = p,
			   .from = p->start,
			   .until = max_u64(p->start, p->end),
			   .name_of_function = names,
			   .node_of_stack = nodes,
			   .ticks_of_stack = ticks,
			   .cursors = cursors};
	int err;

	if (!names || !nodes || !ticks || !cursors)
		return -ENOMEM;
	if ((!window || window->is_first) && vec_push(&m->files, (struct merged_file){}))
		return -ENOMEM;
	a.block_ticks = ticks + p->stack_count + 1;
	memset(names, 0xff, (p->function_count + 1) * sizeof(*names));
	a.file = &m->files.data[m->files.count - 1];
	if (window)
		err = window->is_first ? begin_windows(a.file, side, path, window) : 0;
	else
		err = add_facts(&a, side, path);
	if (!err)
		err = add_stacks(&a);
	if (!err)
		err = m->is_waiting ? add_waits(&a)
		      : window	    ? add_window(&a, window)
				    : add_all_samples(&a);
	vec_free(&a.touched);
	return err;
}

int merged__add(struct merged *m, enum compare_side side, const char *path, const struct profile *p)
{
	return add_profile(m, side, path, p, NULL);
}

int merged__add_window(struct merged *m, enum compare_side side, const char *path,
		       const struct profile *p, const struct merged_window *window)
{
	struct merged_file *file;

	if (!p) {
		if (window->is_first && vec_push(&m->files, (struct merged_file){}))
			return -ENOMEM;
		file = &m->files.data[m->files.count - 1];
		if (window->is_first && begin_windows(file, side, path, window))
			return -ENOMEM;
		file->facts.duration_ns += window->length;
		return 0;
	}
	return add_profile(m, side, path, p, window);
}

/* ---- one unit -------------------------------------------------------------------------------- */

static uint64_t scaled(uint64_t ticks, double factor)
{
	return (uint64_t)((double)ticks * factor + 0.5);
}

static void count_time(struct merged_file *file)
{
	struct compare_file *facts = &file->facts;
	double tick = facts->ticks ? (double)facts->cpu_ns / (double)facts->ticks : 0;

	facts->ticks = 0;
	for (size_t i = 0; i < file->cells.count; i++) {
		file->cells.data[i].ticks = scaled(file->cells.data[i].ticks, tick);
		facts->ticks += file->cells.data[i].ticks;
	}
	facts->lost = scaled(facts->lost, tick);
	facts->due = scaled(facts->due, tick);
	facts->cut = scaled(facts->cut, tick);
	facts->unnamed = scaled(facts->unnamed, tick);
	file->sample_ticks = fmax(file->sample_ticks, 1) * tick;
	facts->counts_time = true;
}

/* Files of code have sums of a side's files: its mean tick. */
static void unify_dsos(struct merged *m, const double tick[COMPARE_SIDES])
{
	for (size_t i = 0; i < m->dsos.count; i++)
		for (int side = 0; side < COMPARE_SIDES; side++) {
			uint64_t *ticks = m->dsos.data[i].ticks[side];
			uint64_t *unnamed = m->dsos.data[i].unnamed[side];

			ticks[0] = scaled(ticks[0], tick[side]) + ticks[1];
			unnamed[0] = scaled(unnamed[0], tick[side]) + unnamed[1];
		}
}

void merged__unify(struct merged *m)
{
	double tick[COMPARE_SIDES], ticks[COMPARE_SIDES] = {}, ns[COMPARE_SIDES] = {};
	bool any = false;

	for (size_t i = 0; i < m->files.count; i++)
		any |= !m->is_waiting && m->files.data[i].facts.counts_time;
	for (size_t i = 0; i < m->files.count; i++) {
		struct merged_file *file = &m->files.data[i];

		if (any && !file->facts.counts_time) {
			ticks[file->facts.side] += (double)file->facts.ticks;
			ns[file->facts.side] += (double)file->facts.cpu_ns;
			count_time(file);
		}
		m->sample_ticks = max_u64(m->sample_ticks, (uint64_t)ceil(file->sample_ticks));
	}
	for (int side = 0; side < COMPARE_SIDES; side++)
		tick[side] = ticks[side] > 0 ? ns[side] / ticks[side] : 1;
	unify_dsos(m, tick);
}
