/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes and samples of a CDP profile (cdp.h).
 *
 * Nodes come in any order and refer to one another by id, as children or as parent, so edges are
 * kept until all nodes are read. Stacks are made on first use, up to a node that has one. There is
 * no recursion; a path longer than the number of nodes is a cycle.
 */
#include "formats/in/cdp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"
#include "formats/in/import.h"

#define TIME_LIMIT (1LL << 61) /* ns */
#define DELTA_MAX  (1LL << 50) /* µs: 35 years */

void cdp__init(struct cdp *c, const struct json_text *text, struct frames *frames,
	       struct cdp_call_frames *call_frames, struct process_id process)
{
	*c = (struct cdp){
		.text = text,
		.b = frames->b,
		.frames = frames,
		.call_frames = call_frames,
		.process = process,
	};
}

void cdp__fini(struct cdp *c)
{
	cdp_nodes__fini(&c->nodes);
	vec_free(&c->ticks);
	vec_free(&c->edges);
	vec_free(&c->samples);
	vec_free(&c->path);
}

static uint32_t find_node(const struct cdp *c, uint64_t id)
{
	const struct cdp_node *node = cdp_nodes__find(&c->nodes, id);

	return node ? (uint32_t)(node - c->nodes.data) : CDP_NONE;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* 0-based, -1 unknown: 1-based, 0 unknown */
static uint32_t one_based(const struct json_tree *frame, const char *name)
{
	return (uint32_t)(json_tree__integer(frame, name, 0, INT32_MAX - 1, -1) + 1);
}

static bool is_meta(const char *name, const char *url, const char *wanted)
{
	return !*url && !strcmp(name, wanted);
}

/* From "69" or 69; native functions of an engine have "0" or none. */
static uint64_t script_number(const struct json_tree *frame)
{
	const char *text = json_tree__string(frame, "scriptId", "");
	uint64_t number = 0;

	if (!*text)
		return (uint64_t)json_tree__integer(frame, "scriptId", 0, JSON_INTEGER_MAX, 0);
	for (; *text >= '0' && *text <= '9' && number < JSON_INTEGER_MAX; text++)
		number = number * 10 + (uint64_t)(*text - '0');
	return number;
}

/*
 * Code of an engine belongs to its process, whatever its file; without file and script it is the
 * engine itself. Our own files have code of any kind; without a file, its script is its binary.
 * Native code has a name, and no URL except file://.
 */
static void set_dso(struct cdp *c, struct cdp_code *code, const struct json_tree *frame,
		    const char *name, const char *url)
{
	uint64_t script = *url ? 0 : script_number(frame);
	bool is_jit = !*name || (*url && strncmp(url, "file://", strlen("file://")) != 0);

	if (c->program && !is_jit && (*url || script)) {
		code->category = CATEGORY_USER;
		code->dso = frames__dso(c->frames, DSO_FILE, c->program, script);
	} else if (*url || script) {
		code->category = CATEGORY_JIT;
		code->dso = frames__dso(c->frames, DSO_JIT, "", script);
	} else {
		code->category = CATEGORY_OTHER;
		code->dso = frames__dso(c->frames, DSO_UNKNOWN, "", 0);
	}
}

static int read_call_frame(struct cdp *c, struct cdp_code *code, struct json_value value)
{
	_cleanup_json_ struct json_tree *frame = NULL;
	int err = json_tree__parse(c->text, value, &frame);
	const char *name, *url;

	if (err)
		return err;
	name = json_tree__string(frame, "functionName", "");
	url = json_tree__string(frame, "url", "");
	if (is_meta(name, url, "(root)"))
		code->kind = CDP_ROOT;
	else if (is_meta(name, url, "(idle)"))
		code->kind = CDP_IDLE;
	set_dso(c, code, frame, name, url);
	code->file = frames__file(c->frames, url);
	code->function = frames__function(c->frames, name, code->dso, code->file,
					  one_based(frame, "lineNumber"),
					  one_based(frame, "columnNumber"));
	return code->function.v ? 0 : -ENOMEM;
}

static int set_frame(struct cdp *c, struct cdp_node *node, struct json_value value)
{
	bool is_new;
	struct cdp_call_frame *known = cdp_call_frames__need(
		c->call_frames, &(struct cdp_call_frame){.text = value}, &is_new);
	int err = !known ? -ENOMEM : is_new ? read_call_frame(c, &known->code, value) : 0;

	if (!err)
		node->code = known->code;
	return err;
}

static int add_children(struct cdp *c, uint32_t node, struct json_value children)
{
	struct json_column column;
	struct json_number number;
	int more = json_column__init(&column, c->text, children);

	while (!more && (more = json_column__next(&column, &number)) > 0) {
		struct cdp_edge edge = {.node = node, .at = number.at};
		int64_t id;

		if (number.is_null || json_scaled(&number, 0, &id) || id < 0)
			return json_fail(c->text, number.at, -EBADMSG, "no id of a node");
		edge.id = (uint64_t)id;
		more = vec_push(&c->edges, edge);
	}
	return more;
}

static int add_ticks(struct cdp *c, struct cdp_node *node, struct json_value ticks)
{
	struct json_walk walk;
	int more = json_walk__init(&walk, c->text, ticks.at, JSON_ARRAY);

	node->first_tick = (uint32_t)c->ticks.count;
	while (!more && (more = json_walk__next(&walk)) > 0) {
		_cleanup_json_ struct json_tree *tick = NULL;
		struct cdp_tick t;

		more = json_tree__parse(c->text, walk.value, &tick);
		if (more)
			break;
		t.line = (uint32_t)json_tree__integer(tick, "line", 1, INT32_MAX, 0);
		t.count = (uint32_t)json_tree__integer(tick, "ticks", 1, INT32_MAX, 0);
		if (c->ticks.count == UINT32_MAX)
			return -E2BIG;
		if (t.line && t.count)
			more = vec_push(&c->ticks, t);
	}
	node->tick_count = (uint32_t)(c->ticks.count - node->first_tick);
	return more;
}

static int add_node(void *context, struct json_value value)
{
	struct cdp *c = context;
	struct cdp_node empty = {.parent = CDP_NONE}, *node;
	struct json_value id, frame, children, parent, ticks;
	uint32_t index = (uint32_t)c->nodes.count;
	int64_t number;
	bool is_new;
	int err = json_members(c->text, value, {"id", &id}, {"callFrame", &frame},
			       {"children", &children}, {"parent", &parent},
			       {"positionTicks", &ticks})
			  ?: json_integer(c->text, id, "the id of a node", 0, JSON_INTEGER_MAX,
					  &number);

	if (err)
		return err;
	empty.id = (uint64_t)number;
	node = cdp_nodes__need(&c->nodes, &empty, &is_new);
	if (!node)
		return -ENOMEM;
	if (!is_new)
		return json_fail(c->text, id.at, -EBADMSG, "two nodes have the id %lld",
				 (long long)number);
	if (!frame.at)
		return json_fail(c->text, value.at, -EBADMSG, "node %lld has no callFrame",
				 (long long)number);
	err = set_frame(c, node, frame);
	if (!err && ticks.at)
		err = add_ticks(c, node, ticks);
	if (!err && children.at && !json_is(children, "null"))
		err = add_children(c, index, children);
	if (!err && parent.at) {
		err = json_integer(c->text, parent, "the parent of a node", 0, JSON_INTEGER_MAX,
				   &number)
			      ?: vec_push(&c->edges,
					  (struct cdp_edge){index, true, (uint64_t)number,
							    parent.at});
	}
	return err;
}

int cdp__nodes(struct cdp *c, struct json_value nodes)
{
	return json_each(c->text, nodes, add_node, c);
}

static int set_parent(struct cdp *c, const struct cdp_edge *edge)
{
	uint32_t other = find_node(c, edge->id);
	uint32_t child = edge->to_parent ? edge->node : other;
	uint32_t parent = edge->to_parent ? other : edge->node;

	if (other == CDP_NONE)
		return json_fail(c->text, edge->at, -EBADMSG, "there is no node %llu",
				 (unsigned long long)edge->id);
	if (c->nodes.data[child].parent != CDP_NONE && c->nodes.data[child].parent != parent)
		return json_fail(c->text, edge->at, -EBADMSG, "node %llu has two parents",
				 (unsigned long long)c->nodes.data[child].id);
	c->nodes.data[child].parent = parent;
	return 0;
}

/* ---- samples --------------------------------------------------------------------------------- */

static int next_time(struct cdp *c, struct json_column *deltas)
{
	struct json_number delta;
	int64_t ns;
	int more = json_column__next(deltas, &delta);

	if (more < 0)
		return more;
	if (!more)
		return json_fail(c->text, deltas->at, -EBADMSG,
				 "there are more samples than the %zu timeDeltas", deltas->index);
	if (delta.is_null || json_scaled(&delta, 3, &ns) || ns > DELTA_MAX * 1000 ||
	    ns < -DELTA_MAX * 1000)
		return json_fail(c->text, delta.at, -EBADMSG, "timeDelta %zu is out of range",
				 deltas->index - 1);
	if (c->last_time > TIME_LIMIT - ns || c->last_time + ns < 0)
		return json_fail(c->text, delta.at, -EBADMSG,
				 "the time of sample %zu is out of range", deltas->index - 1);
	c->last_time += ns;
	return 0;
}

static int add_sample(struct cdp *c, const struct json_number *id, struct json_column *deltas,
		      struct json_column *lines, struct json_column *cpu,
		      struct json_column *events)
{
	struct cdp_sample sample = {};
	int64_t number, line = 0, ns = 0, counted = 0;
	int err;

	if (id->is_null || json_scaled(id, 0, &number) || number < 0)
		return json_fail(c->text, id->at, -EBADMSG, "no id of a node");
	sample.node = find_node(c, (uint64_t)number);
	if (sample.node == CDP_NONE)
		return json_fail(c->text, id->at, -EBADMSG,
				 "a sample is of node %lld, which is missing", (long long)number);
	err = next_time(c, deltas);
	if (!err && lines->text)
		err = json_column__integer(lines, INT32_MIN, INT32_MAX, 0, &line);
	if (!err && cpu->text)
		err = json_column__integer(cpu, 0, INT64_MAX, 0, &ns);
	if (!err && events->text)
		err = json_column__integer(events, 0, INT64_MAX, 0, &counted);
	if (err)
		return err;
	sample.time = c->last_time;
	sample.line = line > 0 ? (uint32_t)line : 0;
	sample.cpu = (uint64_t)ns;
	sample.events = (uint64_t)counted;
	return vec_push(&c->samples, sample);
}

int cdp__samples(struct cdp *c, struct json_value samples, struct json_value deltas,
		 struct json_value lines, struct json_value cpu, struct json_value events,
		 int64_t start)
{
	struct json_column ids, times, line_column = {}, cpu_column = {}, event_column = {};
	struct json_number id;
	int more = json_column__init(&ids, c->text, samples);

	if (!c->samples.count)
		c->last_time = start;
	if (!more)
		more = json_column__init(&times, c->text, deltas);
	if (!more && json_type(lines) == JSON_ARRAY)
		more = json_column__init(&line_column, c->text, lines);
	if (!more && json_type(cpu) == JSON_ARRAY)
		more = json_column__init(&cpu_column, c->text, cpu);
	if (!more && json_type(events) == JSON_ARRAY)
		more = json_column__init(&event_column, c->text, events);
	while (!more && (more = json_column__next(&ids, &id)) > 0)
		more = add_sample(c, &id, &times, &line_column, &cpu_column, &event_column);
	/* some writers add a delta for the time after the last sample */
	return more;
}

struct order {
	int64_t time;
	size_t index;
};

/* By time; those of one time stay in the order of the file. */
DEFINE_ORDER(compare_order, struct order, ASCENDING(time) ?: ASCENDING(index));

static bool is_sorted(const struct cdp *c)
{
	for (size_t i = 1; i < c->samples.count; i++)
		if (c->samples.data[i].time < c->samples.data[i - 1].time)
			return false;
	return true;
}

static int sort_samples(struct cdp *c)
{
	size_t count = c->samples.count;
	_cleanup_free_ struct order *order = NULL;
	_cleanup_free_ struct cdp_sample *copy = NULL;

	if (is_sorted(c))
		return 0;
	order = malloc(count * sizeof(*order));
	copy = malloc(count * sizeof(*copy));
	if (!order || !copy)
		return -ENOMEM;
	memcpy(copy, c->samples.data, count * sizeof(*copy));
	for (size_t i = 0; i < count; i++)
		order[i] = (struct order){copy[i].time, i};
	qsort(order, count, sizeof(*order), compare_order);
	for (size_t i = 0; i < count; i++)
		c->samples.data[i] = copy[order[i].index];
	return 0;
}

int cdp__settle(struct cdp *c)
{
	int err = 0;

	for (size_t i = 0; i < c->edges.count && !err; i++)
		err = set_parent(c, &c->edges.data[i]);
	vec_free(&c->edges);
	return err ? err : sort_samples(c);
}

DEFINE_ORDER(compare_u64, uint64_t, order_of(*x, *y));

uint64_t cdp__period(const struct cdp *c)
{
	size_t count = c->samples.count > 1 ? c->samples.count - 1 : 0;
	_cleanup_free_ uint64_t *deltas = malloc((count + 1) * sizeof(*deltas));

	if (!count || !deltas)
		return 0;
	for (size_t i = 0; i < count; i++)
		deltas[i] = (uint64_t)(c->samples.data[i + 1].time - c->samples.data[i].time);
	qsort(deltas, count, sizeof(*deltas), compare_u64);
	return deltas[count / 2];
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static struct location_id location_of(struct cdp *c, const struct cdp_node *node, uint32_t line)
{
	const struct frame frame = {
		.dso = node->code.dso,
		.category = (enum profile_category)node->code.category,
		.process = node->code.category == CATEGORY_USER ? (struct process_id){0}
								: c->process,
		.elf_address = PROFILE_UNKNOWN_ADDRESS,
	};
	const struct profile_line at = {
		.function = node->code.function,
		.file = {line ? node->code.file.v : 0},
		.line = line,
	};

	return frames__location(c->frames, &frame, &at, 1);
}

/* The root is no code, nor is (idle) right below it. Elsewhere these are names like any other. */
static bool is_frame(const struct cdp *c, const struct cdp_node *node)
{
	const struct cdp_node *parent;

	if (node->parent == CDP_NONE)
		return node->code.kind == CDP_CODE;
	parent = &c->nodes.data[node->parent];
	return node->code.kind != CDP_IDLE || parent->parent != CDP_NONE ||
	       parent->code.kind != CDP_ROOT;
}

static bool is_idle(const struct cdp *c, const struct cdp_node *node)
{
	return node->code.kind == CDP_IDLE && !is_frame(c, node);
}

/* The nodes from here up to one whose stack is known, or to the root. */
static int collect_path(struct cdp *c, uint32_t node)
{
	int err = 0;

	c->path.count = 0;
	while (node != CDP_NONE && !c->nodes.data[node].stack.v && !err) {
		if (c->path.count == c->nodes.count)
			return json_fail(c->text, c->text->start, -EBADMSG,
					 "node %llu is its own caller",
					 (unsigned long long)c->nodes.data[node].id);
		if (c->path.count == IMPORT_DEPTH_MAX)
			return json_fail(c->text, c->text->start, -E2BIG,
					 "the stack of node %llu is deeper than %u frames",
					 (unsigned long long)c->nodes.data[node].id,
					 IMPORT_DEPTH_MAX);
		err = vec_push(&c->path, node);
		node = c->nodes.data[node].parent;
	}
	return err;
}

static int stack_of(struct cdp *c, uint32_t index)
{
	int err = collect_path(c, index);

	for (size_t i = c->path.count; i-- > 0 && !err;) {
		struct cdp_node *node = &c->nodes.data[c->path.data[i]];
		struct stack_id parent = {0};

		if (node->parent != CDP_NONE)
			parent = c->nodes.data[node->parent].stack;
		node->stack = parent;
		if (!is_frame(c, node))
			continue;
		node->stack = profile_builder__stack(c->b, parent, location_of(c, node, 0));
		if (!node->stack.v)
			return -ENOMEM;
		if (profile_builder__get_stack(c->b, node->stack)->depth > IMPORT_DEPTH_MAX)
			return json_fail(c->text, c->text->start, -E2BIG,
					 "the stack of node %llu is deeper than %u frames",
					 (unsigned long long)node->id, IMPORT_DEPTH_MAX);
	}
	return err;
}

/* The next sample's line: the file has only counts by line, so they go in order. 0: unknown. */
static uint32_t take_tick(const struct cdp *c, struct cdp_node *node)
{
	while (node->next_tick < node->tick_count) {
		const struct cdp_tick *tick = &c->ticks.data[node->first_tick + node->next_tick];

		if (node->used < tick->count) {
			node->used++;
			return tick->line;
		}
		node->next_tick++;
		node->used = 0;
	}
	return 0;
}

/* The stack of a sample; a sample of the root itself is in "(root)". */
static int sample_stack(struct cdp *c, const struct cdp_sample *sample, struct stack_id *stack)
{
	struct cdp_node *node = &c->nodes.data[sample->node];
	uint32_t line = sample->line ? sample->line : take_tick(c, node);
	bool in_root = !is_frame(c, node);
	int err = node->stack.v ? 0 : stack_of(c, sample->node);

	if (err)
		return err;
	*stack = node->stack;
	if (in_root || line)
		*stack = profile_builder__stack(c->b,
						node->parent == CDP_NONE
							? (struct stack_id){0}
							: c->nodes.data[node->parent].stack,
						location_of(c, node, line));
	return stack->v ? 0 : -ENOMEM;
}

static int64_t duration(const struct cdp *c, size_t i, int64_t end)
{
	int64_t time = c->samples.data[i].time;

	if (i + 1 < c->samples.count)
		return c->samples.data[i + 1].time - time;
	return end > time ? end - time : 0;
}

int cdp__emit(struct cdp *c, struct thread_id thread, struct string_id comm, int64_t end, bool own)
{
	uint64_t cpu = 0;
	int err = 0;

	if (!end && c->samples.count)
		end = c->samples.data[c->samples.count - 1].time + (int64_t)cdp__period(c);
	for (size_t i = 0; i < c->samples.count && !err; i++) {
		const struct cdp_sample *s = &c->samples.data[i];
		struct profile_sample row = {
			.time = (uint64_t)s->time,
			.weight = (uint64_t)duration(c, i, end),
			.ticks = 1,
			.events = s->events,
			.comm = comm,
			.end = STACK_END_ROOT,
		};

		cpu += own ? min_u64(s->cpu, (uint64_t)TIME_LIMIT - cpu) : 0;
		row.kind = is_idle(c, &c->nodes.data[s->node]) ? SAMPLE_IDLE : SAMPLE_CPU;
		err = sample_stack(c, s, &row.stack);
		if (err)
			break;
		if (row.kind == SAMPLE_CPU && own) {
			row.weight = cpu;
			cpu = 0;
		}
		profile_builder__sample(c->b, thread, &row);
	}
	/* our own files have CPU time after the last sample */
	profile_builder__thread_cpu_tail(c->b, thread, cpu);
	return err ? err : profile_builder__error(c->b);
}
