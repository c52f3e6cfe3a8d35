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
#include "base/suffix.h"
#include "formats/in/import.h"

#define CPU_MAX ((1ULL << 62) - 1) /* ns, of a row; also the sum of a profile */

void cdp__init(struct cdp *c, const struct json_text *text, struct frames *frames,
	       struct cdp_call_frames *call_frames, const struct cdp_scripts *scripts,
	       struct process_id process)
{
	*c = (struct cdp){
		.text = text,
		.b = frames->b,
		.frames = frames,
		.call_frames = call_frames,
		.scripts = scripts,
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
	vec_free(&c->branches);
}

/* ---- modules --------------------------------------------------------------------------------- */

struct modules {
	const struct json_text *text;
	struct frames *frames;
	struct cdp_scripts *scripts;
};

static enum dso_kind kind_of(const char *name)
{
#define X(kind, text)                                                                              \
	if (!strcmp(name, text))                                                                   \
		return DSO_##kind ?: DSO_UNKNOWN;
	DSO_KINDS(X)
#undef X
	return DSO_UNKNOWN;
}

static enum profile_category category_of(enum dso_kind kind, const char *path)
{
	switch (kind) {
	case DSO_FILE:
		return is_library_path(path) ? CATEGORY_LIBRARY : CATEGORY_USER;
	case DSO_VDSO:
		return CATEGORY_LIBRARY;
	case DSO_KERNEL:
		return CATEGORY_KERNEL;
	case DSO_JIT:
	case DSO_RUNTIME:
		return CATEGORY_JIT;
	case DSO_NONE:
	case DSO_UNKNOWN:
		break;
	}
	return CATEGORY_OTHER;
}

/* A file that is there already is another one of that path: new ones have rising numbers. */
static int add_module(void *context, struct json_value value)
{
	struct modules *m = context;
	_cleanup_json_ struct json_tree *tree = NULL;
	struct cdp_module module;
	size_t count = m->scripts->modules.count;
	const char *path;
	int err = json_tree__parse(m->text, value, &tree);

	if (err)
		return err;
	path = json_tree__string(tree, "path", "");
	module.kind = kind_of(json_tree__string(tree, "kind", ""));
	module.category = category_of(module.kind, path);
	module.dso = frames__dso(m->frames, module.kind, path, 0);
	if (count && module.dso.v <= m->scripts->modules.data[count - 1].dso.v)
		module.dso = frames__dso(m->frames, module.kind, path, count);
	return module.dso.v ? vec_push(&m->scripts->modules, module) : -ENOMEM;
}

int cdp_scripts__read(struct cdp_scripts *scripts, const struct json_text *text,
		      struct json_value own, struct frames *frames)
{
	struct modules to = {text, frames, scripts};
	struct json_value modules, numbers;
	struct json_column column;
	struct json_number number;
	int more = json_members(text, own, {"modules", &modules}, {"scriptModules", &numbers});

	if (more || json_type(modules) != JSON_ARRAY || json_type(numbers) != JSON_ARRAY)
		return more;
	more = json_each(text, modules, add_module, &to)
		       ?: json_column__init(&column, text, numbers);
	while (!more && (more = json_column__next(&column, &number)) > 0) {
		int64_t module;

		if (number.is_null || json_scaled(&number, 0, &module) || module < 0 ||
		    (uint64_t)module >= scripts->modules.count)
			return json_fail(text, number.at, -EBADMSG,
					 "scriptModules %zu is no number of a module",
					 column.index - 1);
		more = vec_push(&scripts->module_of, (uint32_t)module);
	}
	return more;
}

void cdp_scripts__fini(struct cdp_scripts *scripts)
{
	vec_free(&scripts->modules);
	vec_free(&scripts->module_of);
}

static uint32_t find_node(const struct cdp *c, uint64_t id)
{
	const struct cdp_node *node = cdp_nodes__find(&c->nodes, id);

	return node ? (uint32_t)(node - c->nodes.data) : CDP_NONE;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* A call frame's number from `first` on, so that the first is 1; 0: unknown. */
static uint32_t one_based(const struct cdp *c, struct json_value value, int64_t first)
{
	struct json_number number;
	int64_t from_one;

	if (json_type(value) != JSON_NUMBER || json_parse_number(c->text, value, &number) ||
	    json_scaled(&number, 0, &from_one) || from_one < first || from_one >= INT32_MAX)
		return 0;
	return (uint32_t)(from_one + 1 - first);
}

static bool is_meta(const char *name, const char *url, const char *wanted)
{
	return !*url && !strcmp(name, wanted);
}

/* From "69" or 69; native functions of an engine have "0" or none. */
static uint64_t script_number(struct json_value id)
{
	const char *at = json_type(id) == JSON_STRING ? id.at + 1 : id.at;
	uint64_t number = 0;

	for (; at < id.end && *at >= '0' && *at <= '9' && number < JSON_INTEGER_MAX; at++)
		number = number * 10 + (uint64_t)(*at - '0');
	return number;
}

static void set_file(struct cdp *c, struct cdp_module *module, enum dso_kind kind,
		     enum profile_category category, const char *path, uint64_t number)
{
	*module = (struct cdp_module){.kind = kind,
				      .category = category,
				      .dso = frames__dso(c->frames, kind, path, number)};
}

/*
 * Code of an engine belongs to its process, whatever its file; without file and script it is the
 * engine itself. Our own files have code of any kind, and say where each script is; in older ones
 * native code has a name and no URL except file://, and without a file its script is its binary.
 */
static void set_module(struct cdp *c, struct cdp_module *module, struct json_value id,
		       const char *name, const char *url)
{
	uint64_t number = script_number(id), script = *url ? 0 : number;
	bool is_jit = !*name || (*url && strncmp(url, "file://", strlen("file://")) != 0);

	if (number && number <= c->scripts->module_of.count) {
		*module = c->scripts->modules.data[c->scripts->module_of.data[number - 1]];
	} else if (c->program && !is_jit && (*url || script)) {
		set_file(c, module, DSO_FILE, CATEGORY_USER, c->program, script);
	} else if (*url || script) {
		set_file(c, module, DSO_JIT, CATEGORY_JIT, "", script);
	} else {
		set_file(c, module, DSO_UNKNOWN, CATEGORY_OTHER, "", 0);
	}
}

/* An absent string is an empty one. */
static int copy_string(const struct cdp *c, struct json_value value, char **copy)
{
	if (json_type(value) == JSON_STRING)
		return json_string_copy(c->text, value, copy);
	*copy = strdup("");
	return *copy ? 0 : -ENOMEM;
}

/* `first`: the number that a file's first line has. */
static int read_code(struct cdp *c, struct cdp_code *code, struct json_value frame, int64_t first)
{
	struct json_value name_value, url_value, script, line, column;
	_cleanup_free_ char *name = NULL, *url = NULL;
	int err = json_members(c->text, frame, {"functionName", &name_value}, {"url", &url_value},
			       {"scriptId", &script}, {"lineNumber", &line},
			       {"columnNumber", &column})
			  ?: copy_string(c, name_value, &name)
			  ?: copy_string(c, url_value, &url);

	if (err)
		return err;
	if (is_meta(name, url, "(root)"))
		code->kind = CDP_ROOT;
	else if (is_meta(name, url, "(idle)"))
		code->kind = CDP_IDLE;
	set_module(c, &code->module, script, name, url);
	code->file = frames__file(c->frames, url);
	code->function = frames__function(c->frames, name, code->module.dso, code->file,
					  one_based(c, line, first), one_based(c, column, first));
	return code->function.v ? 0 : -ENOMEM;
}

static int set_frame(struct cdp *c, struct cdp_node *node, struct json_value value)
{
	bool is_new;
	struct cdp_call_frame *known = cdp_call_frames__need(
		c->call_frames, &(struct cdp_call_frame){.text = value}, &is_new);
	int err = !known ? -ENOMEM : is_new ? read_code(c, &known->code, value, 0) : 0;

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

		more = 0;
		if (number.is_null || json_scaled(&number, 0, &id) || id < 0)
			continue; /* there is no such node */
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

static int new_node(struct cdp *c, struct json_value id, int64_t number, struct cdp_node **node)
{
	const struct cdp_node empty = {.parent = CDP_NONE, .id = (uint64_t)number};
	bool is_new;

	*node = cdp_nodes__need(&c->nodes, &empty, &is_new);
	if (!*node)
		return -ENOMEM;
	return is_new ? 0
		      : json_fail(c->text, id.at, -EBADMSG, "two nodes have the id %lld",
				  (long long)number);
}

static uint32_t hits_of(const struct cdp *c, struct json_value hits)
{
	int64_t number = 0;

	return hits.at && !json_integer(c->text, hits, "hitCount", 0, UINT32_MAX, &number)
		       ? (uint32_t)number
		       : 0;
}

static int add_node(void *context, struct json_value value)
{
	struct cdp *c = context;
	struct cdp_node *node;
	struct json_value id, frame, children, parent, ticks, hits;
	uint32_t index = (uint32_t)c->nodes.count;
	int64_t number;
	int err = json_members(c->text, value, {"id", &id}, {"callFrame", &frame},
			       {"children", &children}, {"parent", &parent},
			       {"positionTicks", &ticks}, {"hitCount", &hits});

	if (err)
		return err;
	if (json_type(id) != JSON_NUMBER || json_type(frame) != JSON_OBJECT) {
		c->frames->left_out[LEFT_OUT_DAMAGED_NODES]++;
		return 0;
	}
	err = json_integer(c->text, id, "the id of a node", 0, JSON_INTEGER_MAX, &number)
		      ?: new_node(c, id, number, &node);
	if (err)
		return err;
	node->hits = hits_of(c, hits);
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

/* Adds a node of a tree, and its children as those to be walked. */
static int add_branch(struct cdp *c, struct json_value value, uint32_t parent)
{
	struct cdp_branch branch = {.node = (uint32_t)c->nodes.count};
	struct json_value id, children, hits, size;
	struct cdp_node *node;
	int64_t number;
	int err = json_members(c->text, value, {"id", &id}, {"children", &children},
			       {"hitCount", &hits}, {"selfSize", &size});

	if (!err && size.at)
		return json_fail(c->text, size.at, -EPROTONOSUPPORT,
				 "it is a heap profile, which has no CPU time: open it in the "
				 "Memory panel of Chrome's DevTools");
	err = err ?: json_integer(c->text, id, "the id of a node", 0, JSON_INTEGER_MAX, &number)
		  ?: new_node(c, id, number, &node)
		  ?: read_code(c, &node->code, value, 1);
	if (err)
		return err;
	node->hits = hits_of(c, hits);
	node->parent = parent;
	if (json_type(children) != JSON_ARRAY)
		return 0;
	return json_walk__init(&branch.children, c->text, children.at, JSON_ARRAY)
		       ?: vec_push(&c->branches, branch);
}

int cdp__tree(struct cdp *c, struct json_value head)
{
	int more = add_branch(c, head, CDP_NONE);

	while (!more && c->branches.count) {
		struct cdp_branch *last = &c->branches.data[c->branches.count - 1];

		more = json_walk__next(&last->children);
		if (!more)
			c->branches.count--;
		else if (more > 0)
			more = add_branch(c, last->children.value, last->node);
	}
	return more;
}

static int set_parent(struct cdp *c, const struct cdp_edge *edge)
{
	uint32_t other = find_node(c, edge->id);
	uint32_t child = edge->to_parent ? edge->node : other;
	uint32_t parent = edge->to_parent ? other : edge->node;

	if (other == CDP_NONE) { /* that a child is missing is said by its samples */
		c->frames->left_out[LEFT_OUT_MISSING_CALLERS] += edge->to_parent;
		return 0;
	}
	if (c->nodes.data[child].parent != CDP_NONE && c->nodes.data[child].parent != parent)
		return json_fail(c->text, edge->at, -EBADMSG, "node %llu has two parents",
				 (unsigned long long)c->nodes.data[child].id);
	c->nodes.data[child].parent = parent;
	return 0;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Columns as they are walked; those without a text are not there. */
struct columns {
	struct json_column times, lines, cpu, ticks, events;
	bool absolute; /* times are no deltas */
};

/* 1: c->last_time is that of the next sample; 0: the file has no more times */
static int next_time(struct cdp *c, struct columns *columns)
{
	struct json_column *times = &columns->times;
	struct json_number number;
	int64_t ns, before = columns->absolute ? 0 : c->last_time;
	int more = json_column__next(times, &number);

	if (more <= 0)
		return more;
	if (number.is_null || json_scaled(&number, 3, &ns) || ns > CDP_TIME_MAX ||
	    ns < -CDP_TIME_MAX)
		return json_fail(c->text, number.at, -EBADMSG, "%s %zu is out of range",
				 columns->absolute ? "timestamp" : "timeDelta", times->index - 1);
	if (before > CDP_TIME_MAX - ns || before + ns < c->time_min)
		return json_fail(c->text, number.at, -EBADMSG,
				 "the time of sample %zu is out of range", times->index - 1);
	c->last_time = before + ns;
	return 1;
}

static int next_number(struct json_column *column, int64_t min, int64_t max, int64_t *number)
{
	*number = 0;
	return column->text ? json_column__integer(column, min, max, 0, number) : 0;
}

/* 1: it has a time, 0: the file has no more times */
static int add_sample(struct cdp *c, const struct json_number *id, struct columns *columns)
{
	struct cdp_sample sample = {.node = CDP_NONE};
	int64_t number, line, ns, ticks, counted;
	int more = next_time(c, columns), err;

	if (more <= 0)
		return more;
	err = next_number(&columns->lines, INT32_MIN, INT32_MAX, &line)
		      ?: next_number(&columns->cpu, 0, INT64_MAX, &ns)
		      ?: next_number(&columns->ticks, 0, INT64_MAX, &ticks)
		      ?: next_number(&columns->events, 0, INT64_MAX, &counted);
	if (err)
		return err;
	if (!id->is_null && !json_scaled(id, 0, &number) && number >= 0)
		sample.node = find_node(c, (uint64_t)number);
	if (sample.node == CDP_NONE)
		c->frames->left_out[LEFT_OUT_MISSING_NODES]++;
	else
		c->counted++;
	sample.time = c->last_time;
	sample.line = line > 0 ? (uint32_t)line : 0;
	sample.cpu = (uint64_t)ns;
	sample.ticks = columns->ticks.text ? (uint64_t)ticks : 1;
	sample.events = (uint64_t)counted;
	sample.exact = columns->events.text;
	return vec_push(&c->samples, sample) ?: 1;
}

static int open_column(const struct cdp *c, struct json_value array, struct json_column *column)
{
	return json_type(array) == JSON_ARRAY ? json_column__init(column, c->text, array) : 0;
}

int cdp_columns__own(const struct json_text *text, struct json_value object,
		     struct cdp_columns *columns)
{
	return json_members(text, object, {"threadCPUDeltas", &columns->cpu},
			    {"sampleTicks", &columns->ticks}, {"sampleEvents", &columns->events},
			    {"sampleLines", &columns->lines});
}

int cdp__samples(struct cdp *c, const struct cdp_columns *from, int64_t start)
{
	struct columns columns = {.absolute = !from->deltas.at};
	struct json_column ids;
	struct json_number id;
	bool timed = true;
	int more = json_column__init(&ids, c->text, from->samples)
			   ?: json_column__init(&columns.times, c->text,
						columns.absolute ? from->times : from->deltas)
			   ?: open_column(c, from->lines, &columns.lines)
			   ?: open_column(c, from->cpu, &columns.cpu)
			   ?: open_column(c, from->ticks, &columns.ticks)
			   ?: open_column(c, from->events, &columns.events);

	c->has_lines |= columns.lines.text != NULL;
	if (!c->samples.count)
		c->last_time = start;
	/* some writers add a delta for the time after the last sample */
	while (!more && (more = json_column__next(&ids, &id)) > 0) {
		more = timed ? add_sample(c, &id, &columns) : 0;
		timed = more > 0;
		c->frames->left_out[LEFT_OUT_NO_TIME] += !more;
		more = more < 0 ? more : 0;
	}
	return more;
}

int cdp__hits(struct cdp *c, int64_t start, int64_t end)
{
	uint64_t all = 0, before = 0, length = end > start ? (uint64_t)(end - start) : 0;
	int err = 0;

	for (size_t i = 0; i < c->nodes.count; i++)
		all += c->nodes.data[i].hits;
	for (uint32_t i = 0; i < c->nodes.count && !err; i++) {
		uint32_t hits = c->nodes.data[i].hits;
		struct cdp_sample sample = {.node = i, .ticks = hits, .time = start};

		if (!hits)
			continue;
		sample.time += (int64_t)((unsigned __int128)length * before / all);
		before += hits;
		err = vec_push(&c->samples, sample);
	}
	c->counted = c->samples.count;
	c->untimed = all > 0;
	c->hit_period = all ? length / all : 0;
	return err;
}

/* A sample of a node that is missing has its part of the time. */
int cdp__untimed_samples(struct cdp *c, struct json_value samples, int64_t start, int64_t end)
{
	uint64_t length = end > start ? (uint64_t)(end - start) : 0;
	struct json_column ids;
	struct json_number id;
	int64_t number;
	int more = json_column__init(&ids, c->text, samples);

	while (!more && (more = json_column__next(&ids, &id)) > 0) {
		struct cdp_sample sample = {.node = CDP_NONE, .ticks = 1};

		if (!id.is_null && !json_scaled(&id, 0, &number) && number >= 0)
			sample.node = find_node(c, (uint64_t)number);
		c->counted += sample.node != CDP_NONE;
		c->frames->left_out[LEFT_OUT_MISSING_NODES] += sample.node == CDP_NONE;
		more = vec_push(&c->samples, sample);
	}
	for (size_t i = 0; i < c->samples.count; i++)
		c->samples.data[i].time =
			start + (int64_t)((unsigned __int128)length * i / c->samples.count);
	c->untimed = true;
	c->hit_period = c->samples.count ? length / c->samples.count : 0;
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

void cdp__shift_times(struct cdp *c, int64_t ns)
{
	for (size_t i = 0; i < c->samples.count; i++)
		c->samples.data[i].time += ns;
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

	if (c->untimed || !count || !deltas)
		return c->hit_period;
	for (size_t i = 0; i < count; i++)
		deltas[i] = (uint64_t)(c->samples.data[i + 1].time - c->samples.data[i].time);
	qsort(deltas, count, sizeof(*deltas), compare_u64);
	return deltas[count / 2];
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static struct location_id location_of(struct cdp *c, const struct cdp_node *node, uint32_t line)
{
	enum dso_kind kind = node->code.module.kind;
	bool is_private = kind == DSO_JIT || kind == DSO_UNKNOWN || kind == DSO_NONE;
	const struct frame frame = {
		.dso = node->code.module.dso,
		.category = node->code.module.category,
		.process = is_private ? c->process : (struct process_id){0},
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
	uint32_t line = c->has_lines ? sample->line : take_tick(c, node);
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

/* Of the last sample, where the file does not say it. */
static int64_t known_end(const struct cdp *c, int64_t end)
{
	if (end || !c->samples.count)
		return end;
	return c->samples.data[c->samples.count - 1].time + (int64_t)cdp__period(c);
}

bool cdp__is_uneven(const struct cdp *c, int64_t end)
{
	int64_t first = -1;

	end = known_end(c, end);
	for (size_t i = 0; i < c->samples.count; i++) {
		uint32_t node = c->samples.data[i].node;

		if (node == CDP_NONE || is_idle(c, &c->nodes.data[node]))
			continue;
		if (first < 0)
			first = duration(c, i, end);
		else if (duration(c, i, end) != first)
			return true;
	}
	return false;
}

int cdp__emit(struct cdp *c, struct thread_id thread, struct string_id comm, int64_t end, bool own)
{
	const struct profile *session = profile_builder__session(c->b);
	/* our own trace that is cut has columns of an event, but not its name */
	bool has_event = session->event.v && !session->uncounted;
	bool is_cpu = import_events_are_cpu(c->b);
	uint64_t cpu = 0;
	int err = 0;

	end = known_end(c, end);
	for (size_t i = 0; i < c->samples.count && !err; i++) {
		const struct cdp_sample *s = &c->samples.data[i];
		struct profile_sample row = {
			.time = (uint64_t)s->time,
			.weight = (uint64_t)duration(c, i, end),
			.ticks = s->ticks,
			.events = has_event ? s->events : 0,
			.comm = comm,
			.end = STACK_END_ROOT,
		};

		if (s->node == CDP_NONE)
			continue;
		c->frames->left_out[LEFT_OUT_SUMS] += own && s->cpu > CPU_MAX - cpu;
		cpu += own ? min_u64(s->cpu, CPU_MAX - cpu) : 0;
		row.kind = is_idle(c, &c->nodes.data[s->node]) ? SAMPLE_IDLE : SAMPLE_CPU;
		row.exact = (c->by_time || (s->exact && has_event)) && row.kind == SAMPLE_CPU;
		if (c->by_time && row.kind == SAMPLE_CPU)
			row.events = row.weight;
		err = sample_stack(c, s, &row.stack);
		if (err)
			break;
		if (row.kind == SAMPLE_CPU && own) {
			row.weight = cpu;
			cpu = 0;
		}
		if (row.exact && is_cpu)
			row.weight = row.events;
		err = frames__sample(c->frames, thread, &row, c->text->failure, 0);
	}
	/* our own files have CPU time after the last sample */
	profile_builder__thread_cpu_tail(c->b, thread, cpu);
	return err ? err : profile_builder__error(c->b);
}
