/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folded stacks: "comm;frame;frame… count", root first, for flame graph scripts. Of CPU samples
 * and, if requested, of waits, with the state as a leaf (formats/out/waits.h).
 *
 * Parsers split a line at its last space and the rest at semicolons, so names have no semicolons,
 * line ends, trailing spaces or control characters, and no line begins with #. Stacks are merged by
 * the text of their frames, so every line is unique; lines are in byte order, as by `LC_ALL=C sort`.
 *
 * The order needs no list of lines: it is a walk through the tree with children sorted by text. A
 * node can be two children: the end of a line ("main 3") and the beginning of longer ones
 * ("main;"). "main(int) 1" lies between these.
 */
#include "formats/out/exporters.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/strtab.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "base/wire.h"
#include "formats/out/call_tree.h"
#include "formats/out/describe.h"
#include "formats/out/text_limit.h"
#include "formats/out/waits.h"

#define SUFFIX_SIZE   32 /* ":line_[k]" */
#define UNIT_SIZE     256
#define EQUAL	      1e-5 /* a mean that differs less is of equal numbers */
#define LINE_END_SIZE 24   /* " 18446744073709551615\n" */

/* The samples with one stack of threads with one name. */
struct comm_stack {
	uint64_t key; /* comm << 32 | stack */
	uint64_t events;
};

DEFINE_MAP_BY(comm_stacks, struct comm_stack, uint64_t, key);

/* A wait, or all of one state of a stack of threads with one name. */
struct folded_wait {
	uint64_t key; /* of its comm_stack */
	uint64_t ns;
	enum wall_state state;
};

DEFINE_ORDER(compare_waits, struct folded_wait, ASCENDING(key) ?: ASCENDING(state));

/* The leaf of waits, with ns apart from its hits: a function can have its name. */
struct waited_node {
	uint32_t node;
	uint64_t ns;
};

DEFINE_MAP_BY(waited_nodes, struct waited_node, uint32_t, node);

/* A node of the tree as a child of its parent. */
struct folded_item {
	uint32_t node;
	bool is_line;  /* the end of a line, else the beginning of longer ones */
	size_t prefix; /* how much text comes before it */
};

struct folded {
	const struct profile *p;
	bool with_lines;
	struct text_limit limit;
	struct call_tree tree; /* keys are texts; the children of the root are comms */
	struct strtab *texts;
	struct comm_stacks stacks;
	VEC(struct folded_wait) waits;
	struct waited_nodes waited;
	VEC(struct folded_item) items; /* still to be written, the next one last */
	VEC(char) text;		       /* the beginning of the line in hand */
};

/* One field of a line, as a number in f->texts. `suffix` is our own and needs no cleaning. */
static int intern_field(struct folded *f, const char *text, const char *suffix, uint32_t *key)
{
	size_t size = strlen(text), cleaned;
	_cleanup_free_ char *plain = strdup(text);
	_cleanup_free_ char *field = malloc(4 * size + SUFFIX_SIZE + sizeof("[unknown]"));

	if (!plain || !field)
		return -ENOMEM;
	for (char *c = plain; *c; c++) {
		if (*c == ';')
			*c = ':';
		else if (*c == '\n' || *c == '\r')
			*c = ' ';
	}
	utf8_sanitize(field, 4 * size + 1, plain);
	cleaned = strlen(field);
	while (cleaned && field[cleaned - 1] == ' ')
		cleaned--;
	snprintf(field + cleaned, SUFFIX_SIZE + sizeof("[unknown]"), "%s%s",
		 cleaned ? "" : "[unknown]", suffix);
	return strtab__number(f->texts, field, key);
}

static int frame_key(void *context, const struct profile_location *location, uint32_t line,
		     uint32_t *key)
{
	struct folded *f = context;
	const struct profile_line *at = &f->p->lines[line];
	const char *name = profile__string(f->p, f->p->functions[at->function.v].name);
	const char *mark = location->category == CATEGORY_KERNEL	   ? "_[k]"
			   : profile_location__is_doubtful(location, line) ? "_[?]"
									   : "";
	char suffix[SUFFIX_SIZE], cut[TEXT_CUT_SIZE];

	if (f->with_lines && at->line)
		snprintf(suffix, sizeof(suffix), ":%" PRIu32 "%s", at->line, mark);
	else
		snprintf(suffix, sizeof(suffix), "%s", mark);
	return intern_field(f, text_limit__cut(&f->limit, name, cut), suffix, key);
}

static int folded__init(struct folded *f, const struct profile *p, bool with_lines)
{
	*f = (struct folded){.p = p, .with_lines = with_lines, .texts = strtab__new()};
	return call_tree__init(&f->tree, p, frame_key, f)
		?: text_limit__init(&f->limit, p, false)
		?: (f->texts ? 0 : -ENOMEM);
}

static void folded__fini(struct folded *f)
{
	call_tree__fini(&f->tree);
	text_limit__fini(&f->limit);
	strtab__free(f->texts);
	comm_stacks__fini(&f->stacks);
	vec_free(&f->waits);
	waited_nodes__fini(&f->waited);
	vec_free(&f->items);
	vec_free(&f->text);
}

DEFINE_ORDER(compare_stacks, struct comm_stack, ASCENDING(key));

static int count_events(struct folded *f, const struct profile_samples *samples, size_t row)
{
	const struct comm_stack wanted = {.key = (uint64_t)samples->comm[row].v << 32 |
						 samples->stack[row].v};
	uint64_t events = profile_samples__events(samples, row);
	struct comm_stack *known;

	if (!events)
		return 0;
	known = comm_stacks__need(&f->stacks, &wanted, NULL);
	if (!known)
		return -ENOMEM;
	known->events += events;
	return 0;
}

/* Sorted, so those of one comm are adjacent. */
static int collect_stacks(struct folded *f)
{
	int err = 0;

	for (size_t i = 1; i < f->p->thread_count; i++) {
		const struct profile_samples *samples = &f->p->threads[i].samples[SAMPLE_CPU];

		for (size_t j = 0; j < samples->count && !err; j++)
			err = count_events(f, samples, j);
	}
	vec_sort(&f->stacks, compare_stacks);
	return err;
}

static struct folded_wait wait_of_row(const struct profile_samples *waits, size_t row)
{
	return (struct folded_wait){
		.key = (uint64_t)waits->comm[row].v << 32 | waits->stack[row].v,
		.ns = waits->weight[row],
		.state = profile_samples__state(waits, row),
	};
}

/* Sorted and merged by comm, stack and state. Without waits of parked threads, if known. */
static int collect_waits(struct folded *f, const struct parked *parked)
{
	size_t count = 0;
	int err = 0;

	for (uint32_t i = 1; i < f->p->thread_count; i++) {
		const struct profile_samples *waits = &f->p->threads[i].samples[SAMPLE_WALL];

		for (size_t j = 0; j < waits->count && !err; j++)
			if (!parked->place || !parked__has(parked, i, j))
				err = vec_push(&f->waits, wait_of_row(waits, j));
	}
	vec_sort(&f->waits, compare_waits);
	for (size_t i = 0; i < f->waits.count; i++) {
		struct folded_wait *last = count ? &f->waits.data[count - 1] : NULL;

		if (last && !compare_waits(last, &f->waits.data[i]))
			last->ns += f->waits.data[i].ns;
		else
			f->waits.data[count++] = f->waits.data[i];
	}
	f->waits.count = count;
	return err;
}

/* Bytes of all lines, if no two are merged. `of_stack`: scratch, by stack. */
static uint64_t measure_lines(struct folded *f, uint64_t *of_stack)
{
	uint64_t bytes = 0;

	for (size_t i = 1; i < f->p->stack_count; i++) {
		const struct profile_stack *stack = &f->p->stacks[i];

		of_stack[i] = of_stack[stack->parent.v] +
			      text_limit__location(&f->limit, stack->location);
	}
	for (size_t i = 0; i < f->stacks.count; i++)
		bytes += of_stack[(uint32_t)f->stacks.data[i].key];
	for (size_t i = 0; i < f->waits.count; i++)
		bytes += of_stack[(uint32_t)f->waits.data[i].key];
	return bytes;
}

static int fit_lines(struct folded *f)
{
	_cleanup_free_ uint64_t *of_stack = calloc(f->p->stack_count + 1, sizeof(*of_stack));

	if (!of_stack)
		return -ENOMEM;
	while (text_limit__tighten(&f->limit, measure_lines(f, of_stack)))
		;
	return 0;
}

/* Where stacks are added, in the order of their keys. */
struct folded_place {
	uint32_t comm, below;
};

/* The first field: a line that begins with # is a comment. */
static int intern_thread(struct folded *f, const char *name, uint32_t *key)
{
	_cleanup_free_ char *escaped = NULL;

	if (*name != '#')
		return intern_field(f, name, "", key);
	if (asprintf(&escaped, "\\x23%s", name + 1) < 0)
		return -ENOMEM;
	return intern_field(f, escaped, "", key);
}

/* The node of a stack of threads with one name. */
static int add_stack(struct folded *f, struct folded_place *at, uint64_t key, uint32_t *node)
{
	struct string_id comm = {(uint32_t)(key >> 32)};
	uint32_t comm_key;
	int err;

	if (!at->below || at->comm != comm.v) {
		err = intern_thread(f, profile__string(f->p, comm), &comm_key)
			      ?: call_tree__child(&f->tree, CALL_TREE_ROOT, comm_key, &at->below);
		if (err)
			return err;
		at->comm = comm.v;
	}
	return call_tree__stack(&f->tree, at->below, (struct stack_id){(uint32_t)key}, node);
}

static int build_tree(struct folded *f)
{
	const struct comm_stack *stacks = f->stacks.data;
	struct folded_place at = {};
	uint32_t node = 0;
	int err = 0;

	for (size_t i = 0; i < f->stacks.count && !err; i++) {
		err = add_stack(f, &at, stacks[i].key, &node);
		if (!err)
			f->tree.nodes.data[node].hits += stacks[i].events;
	}
	return err;
}

static int add_wait(struct folded *f, struct folded_place *at, const struct folded_wait *wait)
{
	struct waited_node *known;
	uint32_t key, node;
	int err = add_stack(f, at, wait->key, &node)
		?: intern_field(f, wait_leaf(wait->state), "", &key)
		?: call_tree__child(&f->tree, node, key, &node);

	if (err)
		return err;
	known = waited_nodes__need(&f->waited, &(struct waited_node){.node = node}, NULL);
	if (!known)
		return -ENOMEM;
	known->ns += wait->ns;
	return 0;
}

/* Adds waits after the samples, with their time as ticks. */
static int add_waits(struct folded *f)
{
	uint64_t period = wait_period(f->p), rest = period / 2;
	struct folded_place at = {};
	int err = 0;

	for (size_t i = 0; i < f->waits.count && !err; i++)
		err = add_wait(f, &at, &f->waits.data[i]);
	for (size_t i = 0; i < f->waited.count && !err; i++)
		f->tree.nodes.data[f->waited.data[i].node].hits += wait_ticks(f->waited.data[i].ns,
									      period, &rest);
	return err;
}

/* ---- writing --------------------------------------------------------------------------------- */

static const char *field_of(const struct folded *f, const struct folded_item *item)
{
	return strtab__get(f->texts, f->tree.nodes.data[item->node].key);
}

static size_t line_end(const struct folded *f, const struct folded_item *item,
		       char end[LINE_END_SIZE])
{
	return (size_t)snprintf(end, LINE_END_SIZE, " %" PRIu64 "\n",
				f->tree.nodes.data[item->node].hits);
}

/*
 * Compare the text after the shorter field with the rest of the longer one. They differ somewhere,
 * because no field has a semicolon or a line end.
 */
static int compare_ends(const struct folded *f, const struct folded_item *item, const char *rest)
{
	char end[LINE_END_SIZE];
	size_t size, left = strlen(rest);
	int order;

	if (!item->is_line)
		return ';' < (unsigned char)*rest ? -1 : 1;
	size = line_end(f, item, end);
	order = memcmp(end, rest, min_u64(size, left));
	/* field "a 1" and "a" 12 times: a digit or line end against a space or semicolon */
	if (!order)
		order = end[left] == '\n' ? -1 : 1;
	return order;
}

static int compare_items(const void *a, const void *b, void *context)
{
	const struct folded_item *x = a, *y = b;
	const struct folded *f = context;
	const char *one = field_of(f, x), *other = field_of(f, y);

	if (x->node == y->node)
		return x->is_line ? -1 : 1;
	while (*one && *one == *other) {
		one++;
		other++;
	}
	if (!*one)
		return compare_ends(f, x, other);
	if (!*other)
		return -compare_ends(f, y, one);
	return (unsigned char)*one < (unsigned char)*other ? -1 : 1;
}

static int push_children(struct folded *f, uint32_t parent)
{
	const struct call_node *nodes = f->tree.nodes.data;
	size_t first = f->items.count, count;
	struct folded_item *items;
	int err = 0;

	for (uint32_t at = nodes[parent].first_child; at && !err; at = nodes[at].next_sibling) {
		if (nodes[at].hits)
			err = vec_push(&f->items, (struct folded_item){at, true, f->text.count});
		if (nodes[at].first_child && !err)
			err = vec_push(&f->items, (struct folded_item){at, false, f->text.count});
	}
	if (err || f->items.count == first)
		return err;
	items = f->items.data + first;
	count = f->items.count - first;
	qsort_r(items, count, sizeof(*items), compare_items, f);
	for (size_t i = 0; i < count / 2; i++) { /* the last one is taken first */
		struct folded_item swap = items[i];

		items[i] = items[count - 1 - i];
		items[count - 1 - i] = swap;
	}
	return 0;
}

static int write_item(struct folded *f, const struct folded_item *item, FILE *out)
{
	const char *field = field_of(f, item);
	char end[LINE_END_SIZE];
	int err;

	f->text.count = item->prefix;
	err = vec_append(&f->text, field, strlen(field));
	if (err)
		return err;
	if (!item->is_line) {
		return vec_append(&f->text, ";", 1) ?: push_children(f, item->node);
	}
	err = vec_append(&f->text, end, line_end(f, item, end));
	if (!err && fwrite(f->text.data, 1, f->text.count, out) != f->text.count)
		err = -EIO;
	return err;
}

/* How many events each sample stands for; 0: they differ, or are weights. */
static uint64_t events_each(const struct profile *p)
{
	uint64_t each = p->sample_count ? p->event_count / p->sample_count : 0;

	if (p->uncounted || !each || p->event_count % p->sample_count)
		return 0;
	return fabs(p->event_squares / (double)p->event_count - (double)each) < EQUAL ? each : 0;
}

/* "bytes of memory" */
static void write_event(const struct profile *p, FILE *out)
{
	char text[UNIT_SIZE];

	fputs(utf8_sanitize(text, sizeof(text), profile__event_unit(p)), out);
	if (p->event.v && strcmp(profile__event(p), PPROF_WEIGHT) != 0)
		fprintf(out, FOLDED_OF "%s", utf8_sanitize(text, sizeof(text), profile__event(p)));
}

/* Readers skip comments; without it, other numbers would be taken for numbers of samples. */
static void write_unit(const struct profile *p, FILE *out)
{
	bool time = p->tick_cpu || (profile__events_are_cpu(p) && !p->uncounted);
	uint64_t each = events_each(p);

	if (!p->uncounted && !p->event.v)
		return;
	if (time)
		fprintf(out, FOLDED_WEIGHTS FOLDED_CPU_UNIT, max_u64(p->tick_cpu, 1));
	else if (each)
		fprintf(out, FOLDED_SAMPLES "%" PRIu64 " ", each);
	else
		fputs(FOLDED_WEIGHTS, out);
	if (!time)
		write_event(p, out);
	fputc('\n', out);
}

static int write_filter_line(void *out, const char *what, const char *counts, const char *clauses)
{
	size_t size = 4 * strlen(clauses) + 1;
	_cleanup_free_ char *text = malloc(size);

	if (!text)
		return -ENOMEM;
	fprintf(out, FOLDED_FILTER "%s: %s %s\n", utf8_sanitize(text, size, clauses), what, counts);
	return 0;
}

static int write_folded(const struct export_request *request)
{
	struct parked parked = {};
	struct folded f;
	int err = folded__init(&f, request->profile, request->lines) ?: collect_stacks(&f);

	if (!err && shows_waits(request) && !request->parked)
		err = parked__init(&parked, request->profile);
	if (!err && shows_waits(request))
		err = collect_waits(&f, &parked);
	if (!err)
		err = fit_lines(&f)
			?: build_tree(&f)
			?: add_waits(&f)
			?: push_children(&f, CALL_TREE_ROOT);
	write_unit(f.p, request->out);
	if (!err)
		err = describe_filter(f.p, write_filter_line, request->out);
	if (!err && profile__meta(f.p, META_PART_OF))
		err = write_filter_line(request->out, "of", "the file that was read",
					profile__meta(f.p, META_PART_OF));
	while (!err && f.items.count) {
		struct folded_item item = f.items.data[--f.items.count];

		err = write_item(&f, &item, request->out);
	}
	text_limit__report(&f.limit, request);
	parked__fini(&parked);
	folded__fini(&f);
	return err;
}

const struct exporter folded_exporter = {
	.name = "folded",
	.suffixes = (const char *const[]){".folded", NULL},
	.description = "folded stacks, for flame graphs",
	.how_to_open = "give %s to flamegraph.pl, inferno-flamegraph or speedscope",
	.write = write_folded,
};
