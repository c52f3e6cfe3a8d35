/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The profile in a page: a JSON text with all words, then numbers in columns.
 *
 * Everything is in an order that needs no look-ahead, and a column has equal things side by side,
 * which deflate likes. Numbers are LEB128, differences zigzag-coded (docs/FORMATS.md).
 *
 * Addresses with one function, module, source line and category are one frame. Stacks are merged by
 * frames into one tree (call_tree.h). Its nodes are numbered in preorder, so a parent is the number
 * of levels to go up from the node before, mostly 0.
 */
#include "formats/out/html_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/map.h"
#include "base/strtab.h"
#include "formats/out/annotation.h"
#include "formats/out/call_tree.h"
#include "formats/out/describe.h"
#include "formats/out/html_code.h"
#include "formats/out/html_numbers.h"
#include "formats/out/process_title.h"
#include "formats/out/waits.h"
#include "profile/profile.h"

#define DATA_VERSION 3
#define JIT_TEXT     2048

/* Bits of a frame's flags, above the category. web/data.js has the same. */
#define FLAG_INLINED   (1u << 3)
#define FLAG_AMBIGUOUS (1u << 4)
#define FLAG_UNNAMED   (1u << 5)
#define TIER_SHIFT     6

#define PARKED	       (1u << 4) /* of a wait's state */

_Static_assert(WALL_STATE_COUNT <= PARKED, "the bit is above all states");
_Static_assert(CATEGORY_COUNT <= 8, "three bits of a frame's flags are its category");

struct page_function {
	uint32_t name, module; /* strings */
};

/* One full name of a function, which stands for all overloaded ones. */
struct page_full_name {
	uint32_t function, name; /* string */
};

/*
 * `file`: of the source; `path`: 1 + the string by which filters match the file with the code, or 0;
 * `owner`: the process whose code it is, of code without a symbol, or 0. `place`: of the innermost
 * frame of an address.
 */
struct page_frame {
	uint32_t function, flags, file, line, path, owner;
	struct page_place place;
};

DEFINE_MAP_OF_BYTES(page_functions, struct page_function);
DEFINE_MAP_OF_BYTES(page_full_names, struct page_full_name);
DEFINE_MAP_OF_BYTES(page_frames, struct page_frame);

#define HAS_SERVICE 4u /* a flag of a process: the name of its service follows */

/* What filters look at, of a process. */
#define NAMES_COUNT 7

struct page {
	const struct profile *p;
	const struct export_difference *difference;
	const struct page_code *code; /* NULL: the page has none */
	FILE *out;
	struct strtab *strings;
	uint32_t *string_of; /* by string of the profile: its number here, 0: none yet */
	uint32_t *titles;    /* by process, likewise */
	struct page_functions functions;
	struct page_full_names full_names;
	struct page_frames frames;
	bool *dso_used;		 /* by dso: it is in a stack */
	struct call_tree tree;	 /* keys are frames */
	uint32_t *number;	 /* of a node of the tree, in preorder */
	uint32_t *node_of_stack; /* by stack: its node in the tree, 0 if it has no samples */
	uint64_t base;		 /* ns: times are relative to it */
	uint64_t samples;	 /* rows of all threads */
	uint64_t waits;		 /* the same, of those that visits found */
	struct parked parked;
	bool has_ticks, has_cpus;
};

/* ---- strings, functions, frames -------------------------------------------------------------- */

static int intern_id(struct page *page, struct string_id id, uint32_t *number)
{
	int err = 0;

	if (id.v && !page->string_of[id.v])
		err = strtab__number(page->strings, profile__string(page->p, id),
				     &page->string_of[id.v]);
	*number = page->string_of[id.v];
	return err;
}

/* A name that the profile has may be long, and that of many functions. */
static int intern_module(struct page *page, struct dso_id dso, uint32_t *number)
{
	const char *name = dso_display_name(page->p, dso);
	struct string_id own = page->p->dsos[dso.v].name;

	return own.v && name == profile__string(page->p, own)
		       ? intern_id(page, own, number)
		       : strtab__number(page->strings, name, number);
}

/* A row of `sysprof report`: a name in a module, by the name that is shown of both. */
static int function_of(struct page *page, const struct profile_function *function,
		       struct dso_id dso, uint32_t *number)
{
	struct page_full_name full;
	struct page_function wanted = {0};
	int err = intern_id(page, function->name, &wanted.name)
			  ?: intern_module(page, dso, &wanted.module);

	if (err)
		return err;
	err = map_number(&page->functions, page_functions__need(&page->functions, &wanted, NULL),
			 number);
	if (err || !function->full_name.v)
		return err;
	full.function = *number;
	return intern_id(page, function->full_name, &full.name)
		       ?: (page_full_names__need(&page->full_names, &full, NULL) ? 0 : -ENOMEM);
}

static uint32_t flags_of(const struct profile_location *location, uint32_t line)
{
	uint32_t flags = location->category | (uint32_t)location->tier << TIER_SHIFT;

	/* innermost first: every line but the last was inlined into the one behind it */
	if (line + 1 < location->first_line + location->line_count)
		flags |= FLAG_INLINED;
	if (profile_location__is_doubtful(location, line))
		flags |= FLAG_AMBIGUOUS;
	if (location->unnamed)
		flags |= FLAG_UNNAMED;
	return flags;
}

/* Code that is in no file has none: web/filter.js matches what filter/filter_frames.c does. */
static int path_of(struct page *page, struct dso_id id, uint32_t *path)
{
	const struct profile_dso *dso = &page->p->dsos[id.v];
	uint32_t number;
	int err;

	*path = 0;
	if (dso_has_path(dso))
		err = intern_id(page, dso->path, &number);
	else if (dso->kind == DSO_VDSO || dso->kind == DSO_KERNEL)
		err = intern_module(page, id, &number);
	else
		return 0;
	*path = number + 1;
	return err;
}

/* The file of a line as the sources of the page have it. */
static int intern_file(struct page *page, struct dso_id dso, struct string_id file,
		       uint32_t *number)
{
	char name[SOURCE_NAME_SIZE];
	const char *shown = source_name(page->p, dso, file, name);

	return shown == name ? strtab__number(page->strings, name, number)
			     : intern_id(page, file, number);
}

static int frame_key(void *context, const struct profile_location *location, uint32_t line,
		     uint32_t *key)
{
	struct page *page = context;
	const struct profile_line at = profile__source_line(page->p, location, line);
	const struct profile_function *function = &page->p->functions[at.function.v];
	struct page_frame wanted = {
		.flags = flags_of(location, line),
		.line = at.line,
		.owner = location->unnamed ? location->process.v : 0,
	};
	int err = function_of(page, function, location->dso, &wanted.function)
			  ?: intern_file(page, location->dso,
					 at.file.v ? at.file : function->definition_file,
					 &wanted.file)
			  ?: path_of(page, location->dso, &wanted.path);

	if (page->code && line == location->first_line)
		wanted.place = page_code__place(page->code, location);
	page->dso_used[location->dso.v] = true;
	return err
		       ?: map_number(&page->frames, page_frames__need(&page->frames, &wanted, NULL),
				     key);
}

/* ---- collecting ------------------------------------------------------------------------------ */

static int page__init(struct page *page, const struct profile *p, FILE *out)
{
	int err;

	*page = (struct page){.p = p, .out = out, .base = p->start};
	err = call_tree__init(&page->tree, p, frame_key, page);
	if (err)
		return err;
	page->strings = strtab__new();
	page->string_of = calloc(p->string_count + 1, sizeof(*page->string_of));
	page->titles = calloc(p->process_count + 1, sizeof(*page->titles));
	page->node_of_stack = calloc(p->stack_count + 1, sizeof(*page->node_of_stack));
	page->dso_used = calloc(p->dso_count + 1, sizeof(*page->dso_used));
	return page->strings && page->string_of && page->titles && page->node_of_stack &&
			       page->dso_used
		       ? 0
		       : -ENOMEM;
}

static void page__fini(struct page *page)
{
	strtab__free(page->strings);
	free(page->string_of);
	free(page->titles);
	page_functions__fini(&page->functions);
	page_full_names__fini(&page->full_names);
	page_frames__fini(&page->frames);
	free(page->dso_used);
	call_tree__fini(&page->tree);
	parked__fini(&page->parked);
	free(page->number);
	free(page->node_of_stack);
}

static int add_stacks(struct page *page, const struct profile_samples *samples)
{
	uint32_t number;
	int err = 0;

	for (size_t i = 0; i < samples->count && !err; i++) {
		struct stack_id stack = samples->stack[i];

		err = intern_id(page, samples->comm[i], &number);
		if (!err && !page->node_of_stack[stack.v])
			err = call_tree__stack(&page->tree, CALL_TREE_ROOT, stack,
					       &page->node_of_stack[stack.v]);
	}
	return err;
}

static int add_samples(struct page *page, const struct profile_samples *samples)
{
	page->samples += samples->count;
	if (samples->ticks || samples->events)
		page->has_ticks = true;
	if (samples->count && samples->cpu)
		page->has_cpus = true;
	if (samples->count && samples->time[0] < page->base)
		page->base = samples->time[0];
	return add_stacks(page, samples);
}

static int add_waits(struct page *page, const struct profile_samples *waits)
{
	page->waits += waits->count;
	if (waits->count && waits->since[0] < page->base)
		page->base = waits->since[0];
	return add_stacks(page, waits);
}

static void names_of(const struct profile_process *process, struct string_id names[NAMES_COUNT])
{
	const struct profile_names *known = &process->names;
	const struct string_id all[NAMES_COUNT] = {
		process->name, process->cgroup, known->container, known->container_id,
		known->unit,   known->instance, known->user};

	memcpy(names, all, sizeof(all));
}

static int collect_process(struct page *page, const struct profile_process *process, size_t number)
{
	struct string_id names[NAMES_COUNT];
	char title[PROCESS_TITLE_SIZE];
	uint32_t interned;
	int err = strtab__number(page->strings, process_title(page->p, process, title),
				 &page->titles[number])
			  ?: intern_id(page, process->names.service, &interned);

	names_of(process, names);
	for (size_t i = 0; i < NAMES_COUNT && !err; i++)
		err = intern_id(page, names[i], &interned);
	return err;
}

/* After this no string, frame or node is added. */
static int collect(struct page *page)
{
	const struct profile *p = page->p;
	uint32_t number, count = 0;
	int err = 0;

	for (size_t i = 1; i < p->process_count && !err; i++)
		err = collect_process(page, &p->processes[i], i);
	for (size_t i = 1; i < p->thread_count && !err; i++) {
		err = intern_id(page, p->threads[i].name, &number)
			?: add_samples(page, &p->threads[i].samples[SAMPLE_CPU])
			?: add_waits(page, &p->threads[i].samples[SAMPLE_WALL]);
	}
	if (err)
		return err;
	if (page->waits && parked__init(&page->parked, p))
		return -ENOMEM;
	page->number = calloc(page->tree.nodes.count + 1, sizeof(*page->number));
	if (!page->number)
		return -ENOMEM;
	for (uint32_t node = call_tree__next(&page->tree, CALL_TREE_ROOT); node != CALL_TREE_ROOT;
	     node = call_tree__next(&page->tree, node))
		page->number[node] = ++count;
	return 0;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void write_losses(const struct figures *f, unsigned int first, unsigned int end,
			 struct json_writer *w)
{
	for (unsigned int id = first; id < end; id++) {
		if (!figures__is_loss(f, id))
			continue;
		json_begin_object(w);
		json_key_uint(w, "count", f->value[id]);
		json_key_string(w, "text", figure_table[id].text);
		json_end_object(w);
	}
}

static void write_lost(const struct profile *p, const struct figures *f, struct json_writer *w)
{
	struct lost_span span;
	size_t at = 0;

	json_key_array(w, "lost");
	write_losses(f, FIGURE_BOOKS, FIGURE_BOOKS_END, w);
	write_losses(f, FIGURE_LOST, FIGURE_LOST_END, w);
	json_end_array(w);
	json_key_array(w, "lost_ranges");
	while (next_lost_span(p, &at, &span)) {
		json_begin_array(w);
		json_ns_as_us(w, (int64_t)(span.since - p->start));
		json_ns_as_us(w, (int64_t)(span.until - p->start));
		json_end_array(w);
	}
	json_end_array(w);
}

static void write_cut(const struct figures *f, struct json_writer *w)
{
	json_key_array(w, "cut");
	write_losses(f, FIGURE_ENDS, FIGURE_ENDS_END, w);
	json_end_array(w);
	json_key_array(w, "left_out");
	write_losses(f, FIGURE_LEFT_OUT, FIGURE_LEFT_OUT_END, w);
	json_end_array(w);
}

/* Modules of frames without names, and why. */
static void write_modules(const struct page *page, struct json_writer *w)
{
	const struct profile *p = page->p;

	json_key_array(w, "modules");
	for (uint32_t i = 1; i < p->dso_count; i++) {
		if (!page->dso_used[i] || p->dsos[i].symbol_state == SYMBOL_STATE_RESOLVED ||
		    (p->dsos[i].kind != DSO_FILE && p->dsos[i].kind != DSO_KERNEL))
			continue;
		json_begin_object(w);
		json_key_string(w, "name", dso_display_name(p, (struct dso_id){i}));
		json_key_string(w, "path", profile__string(p, p->dsos[i].path));
		json_key_string(w, "text", symbol_state_text(p->dsos[i].symbol_state));
		json_end_object(w);
	}
	json_end_array(w);
}

static void write_jit_texts(const struct profile *p, struct json_writer *w)
{
	size_t count = described_jits(p);
	char text[JIT_TEXT];

	json_key_array(w, "jit_texts");
	for (size_t i = 0; i < count; i++)
		json_string(w, describe_jit(text, sizeof(text), p, &p->jits[i]));
	if (count < p->jit_count) {
		snprintf(text, sizeof(text), "%zu more processes", p->jit_count - count);
		json_string(w, text);
	}
	for (size_t i = 0; i < p->runtime_count; i++) {
		int length = snprintf(text, sizeof(text),
				      "%s: ", profile__string(p, p->runtimes[i].name));

		describe_runtime(text + length, sizeof(text) - (size_t)length, &p->runtimes[i]);
		json_string(w, text);
	}
	json_end_array(w);
}

/* Pairs of a function and a string. */
static void write_full_names(const struct page *page, struct json_writer *w)
{
	if (!page->full_names.count)
		return;
	json_key_array(w, "full_names");
	for (size_t i = 0; i < page->full_names.count; i++) {
		json_uint(w, page->full_names.data[i].function);
		json_uint(w, page->full_names.data[i].name);
	}
	json_end_array(w);
}

/* The meanings of the numbers in the column of states. */
static void write_states(struct json_writer *w)
{
	json_key_array(w, "states");
	for (int state = 0; state < WALL_STATE_COUNT; state++) {
		json_begin_array(w);
		json_string(w, wall_state_name((enum wall_state)state));
		json_string(w, figure_table[FIGURE_STATES + state].text);
		json_end_array(w);
	}
	json_end_array(w);
}

static void write_counts(const struct page *page, struct json_writer *w)
{
	json_key_object(w, "counts");
	json_key_uint(w, "strings", strtab__count(page->strings));
	json_key_uint(w, "functions", page->functions.count);
	json_key_uint(w, "frames", page->frames.count);
	json_key_uint(w, "nodes", page->tree.nodes.count - 1);
	json_key_uint(w, "processes", page->p->process_count ? page->p->process_count - 1 : 0);
	json_key_uint(w, "threads", page->p->thread_count ? page->p->thread_count - 1 : 0);
	json_key_uint(w, "samples", page->samples);
	json_key_bool(w, "ticks", page->has_ticks);
	if (page->has_cpus)
		json_key_bool(w, "cpus", true);
	if (page->waits)
		json_key_uint(w, "waits", page->waits);
	json_end_object(w);
}

/* Its size, then the text. */
static double events_per_sample(const struct profile *p)
{
	return p->event_count ? p->event_squares / (double)p->event_count : 1;
}

static int write_words(const struct page *page)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	struct figures figures;
	struct json_writer w;
	int err;

	if (!stream)
		return -ENOMEM;
	figures__init(&figures, page->p);
	json_writer__init(&w, stream);
	json_begin_object(&w);
	json_key_uint(&w, "version", DATA_VERSION);
	json_key_string(&w, "program", "sysprof " SYSPROF_VERSION);
	json_key_bool(&w, "untimed", page->p->untimed);
	write_visits(&figures, &w);
	if (page->p->event.v) { /* of equal samples that would be as exact */
		json_key(&w, "events_per_sample");
		json_fixed(&w, events_per_sample(page->p), 6);
	}
	json_key(&w, "base_us"); /* of all times, relative to the recording's start */
	json_ns_as_us(&w, -(int64_t)(page->p->start - page->base));
	write_counts(page, &w);
	json_key(&w, "summary");
	write_summary(page->p, &figures, &w);
	write_lost(page->p, &figures, &w);
	write_cut(&figures, &w);
	write_modules(page, &w);
	write_jit_texts(page->p, &w);
	write_full_names(page, &w);
	if (page->waits)
		write_states(&w);
	if (page->code)
		page_code__describe(page->code, &w);
	if (page->difference) {
		json_key(&w, "difference");
		json_raw(&w, page->difference->facts, strlen(page->difference->facts));
	}
	json_end_object(&w);
	err = json_writer__finish(&w);
	if (fclose(stream) && !err)
		err = -ENOMEM;
	if (err)
		return err;
	put_uint(page->out, size);
	return fwrite(text, 1, size, page->out) == size ? 0 : -EIO;
}

/* ---- columns --------------------------------------------------------------------------------- */

static void write_strings(const struct page *page)
{
	for (uint32_t i = 0; i < strtab__count(page->strings); i++) {
		const char *text = strtab__get(page->strings, i);

		fwrite(text, 1, strlen(text) + 1, page->out);
	}
}

#define WRITE_COLUMN(page, table, member)                                                          \
	do {                                                                                       \
		for (size_t i_ = 0; i_ < (page)->table.count; i_++)                                \
			put_uint((page)->out, (page)->table.data[i_].member);                      \
	} while (0)

static void write_frames(const struct page *page)
{
	WRITE_COLUMN(page, functions, name);
	WRITE_COLUMN(page, functions, module);
	WRITE_COLUMN(page, frames, function);
	WRITE_COLUMN(page, frames, flags);
	WRITE_COLUMN(page, frames, file);
	WRITE_COLUMN(page, frames, line);
	WRITE_COLUMN(page, frames, path);
	WRITE_COLUMN(page, frames, owner);
	WRITE_COLUMN(page, frames, place.code);
	WRITE_COLUMN(page, frames, place.instruction);
}

static void write_nodes(const struct page *page)
{
	const struct call_node *nodes = page->tree.nodes.data;
	uint32_t before = CALL_TREE_ROOT, node;

	for (node = call_tree__next(&page->tree, CALL_TREE_ROOT); node != CALL_TREE_ROOT;
	     node = call_tree__next(&page->tree, node)) {
		uint32_t up = 0;

		for (; before != nodes[node].parent; before = nodes[before].parent)
			up++;
		put_uint(page->out, up);
		before = node;
	}
	for (node = call_tree__next(&page->tree, CALL_TREE_ROOT); node != CALL_TREE_ROOT;
	     node = call_tree__next(&page->tree, node))
		put_uint(page->out, nodes[node].key);
}

static void write_lives(const struct page *page)
{
	const struct profile *p = page->p;
	struct string_id names[NAMES_COUNT];

	for (size_t i = 1; i < p->process_count; i++) {
		const struct profile_process *process = &p->processes[i];

		put_uint(page->out, process->pid);
		put_uint(page->out, page->titles[i]);
		put_uint(page->out, process->is_kernel | process->is_target << 1 |
					    (process->names.service.v ? HAS_SERVICE : 0));
		if (process->names.service.v)
			put_uint(page->out, page->string_of[process->names.service.v]);
		names_of(process, names);
		for (size_t k = 0; k < NAMES_COUNT; k++)
			put_uint(page->out, page->string_of[names[k].v]);
	}
	for (size_t i = 1; i < p->thread_count; i++) {
		const struct profile_thread *thread = &p->threads[i];

		put_uint(page->out, thread->process.v ? thread->process.v - 1 : 0);
		put_uint(page->out, thread->tid);
		put_uint(page->out, page->string_of[thread->name.v]);
		put_uint(page->out, thread->is_main);
		put_uint(page->out, thread->cpu_tail);
		put_uint(page->out, thread->samples[SAMPLE_CPU].count);
	}
}

/* Whole microseconds since page->base. */
static uint64_t microseconds(const struct page *page, const struct profile_samples *s, size_t i)
{
	return (s->time[i] - page->base) / 1000;
}

static uint64_t since_last(const struct page *page, const struct profile_samples *s, size_t i)
{
	return microseconds(page, s, i) - (i ? microseconds(page, s, i - 1) : 0);
}

/* `write` is done for each row `i` of that kind, `s`, of each thread `t`. */
#define WRITE_ROWS(page, kind, write)                                                              \
	do {                                                                                       \
		for (uint32_t t = 1; t < (page)->p->thread_count; t++) {                           \
			const struct profile_samples *s = &(page)->p->threads[t].samples[kind];    \
                                                                                                   \
			for (size_t i = 0; i < s->count; i++)                                      \
				write;                                                             \
		}                                                                                  \
	} while (0)

/* A thread that never waits uses as much CPU time as passes: the difference is small. */
static int64_t weight_beyond(const struct page *page, const struct profile_samples *s, size_t i)
{
	return (int64_t)(s->weight[i] - (i ? since_last(page, s, i) * 1000 : 0));
}

static int64_t number_of(const struct page *page, struct stack_id stack)
{
	return page->number[page->node_of_stack[stack.v]];
}

static void write_stacks(const struct page *page, enum sample_kind kind)
{
	WRITE_ROWS(page, kind,
		   put_int(page->out, number_of(page, s->stack[i]) -
					      (i ? number_of(page, s->stack[i - 1]) : 0)));
}

static uint64_t name_of_row(const struct page *page, const struct profile_samples *s, size_t i)
{
	return page->string_of[s->comm[i].v];
}

/* From 1 on; 0: unknown. */
static uint64_t cpu_of_row(const struct page *page, const struct profile_samples *s, size_t i)
{
	(void)page;
	return (uint64_t)(profile_samples__cpu(s, i) + 1);
}

/* A value, and for how many rows the thread had it. */
static void write_runs(const struct page *page, enum sample_kind kind,
		       uint64_t (*of_row)(const struct page *, const struct profile_samples *,
					  size_t))
{
	for (size_t t = 1; t < page->p->thread_count; t++) {
		const struct profile_samples *s = &page->p->threads[t].samples[kind];

		for (size_t i = 0, end; i < s->count; i = end) {
			uint64_t value = of_row(page, s, i);

			for (end = i + 1; end < s->count && of_row(page, s, end) == value;)
				end++;
			put_uint(page->out, value);
			put_uint(page->out, end - i);
		}
	}
}

static uint64_t wait_begin(const struct page *page, const struct profile_samples *s, size_t i)
{
	return (s->since[i] - page->base) / 1000;
}

static uint64_t wait_end(const struct page *page, const struct profile_samples *s, size_t i)
{
	return (s->until[i] - page->base) / 1000;
}

/* The visit that found the wait and read the lock's holder, since the wait's begin. */
static uint64_t wait_visit(const struct page *page, const struct profile_samples *s, size_t i)
{
	return s->time[i] > s->since[i] ? microseconds(page, s, i) - wait_begin(page, s, i) : 0;
}

/* Begins count from the end of the wait before. PARKED: the wait is where its thread is parked. */
static void write_waits(const struct page *page)
{
	FILE *out = page->out;

	for (size_t t = 1; t < page->p->thread_count; t++)
		put_uint(out, page->p->threads[t].samples[SAMPLE_WALL].count);
	WRITE_ROWS(page, SAMPLE_WALL,
		   put_uint(out, wait_begin(page, s, i) - (i ? wait_end(page, s, i - 1) : 0)));
	WRITE_ROWS(page, SAMPLE_WALL, put_uint(out, wait_end(page, s, i) - wait_begin(page, s, i)));
	WRITE_ROWS(page, SAMPLE_WALL, put_uint(out, wait_visit(page, s, i)));
	WRITE_ROWS(page, SAMPLE_WALL, put_uint(out, s->weight[i]));
	write_stacks(page, SAMPLE_WALL);
	write_runs(page, SAMPLE_WALL, name_of_row);
	WRITE_ROWS(page, SAMPLE_WALL,
		   put_uint(out, s->state[i] | (parked__has(&page->parked, t, i) ? PARKED : 0)));
	/* a thread, from 1 on; 0: none is known */
	WRITE_ROWS(page, SAMPLE_WALL, put_uint(out, s->holder[i].v));
}

static int write_all(const struct page *page)
{
	int err = write_words(page);

	if (err)
		return err;
	write_strings(page);
	write_frames(page);
	write_nodes(page);
	write_lives(page);
	WRITE_ROWS(page, SAMPLE_CPU, put_uint(page->out, since_last(page, s, i)));
	WRITE_ROWS(page, SAMPLE_CPU, put_int(page->out, weight_beyond(page, s, i)));
	write_stacks(page, SAMPLE_CPU);
	write_runs(page, SAMPLE_CPU, name_of_row);
	if (page->has_ticks)
		WRITE_ROWS(page, SAMPLE_CPU, put_uint(page->out, profile_samples__events(s, i)));
	if (page->has_cpus)
		write_runs(page, SAMPLE_CPU, cpu_of_row);
	if (page->waits)
		write_waits(page);
	return ferror(page->out) ? -EIO : 0;
}

int html_write_data(const struct profile *p, const struct export_difference *difference,
		    const struct page_code *code, FILE *out)
{
	struct page page;
	int err = page__init(&page, p, out);

	page.difference = difference;
	page.code = code;
	if (!err)
		err = collect(&page) ?: write_all(&page);
	page__fini(&page);
	return err;
}
