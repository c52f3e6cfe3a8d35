/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chrome CPU profile (.cpuprofile): CDP's Profiler.Profile, one thread a file. Of CPU samples.
 *
 * Nodes are call paths, merged by what DevTools takes for a function: name, script and definition
 * site. callFrame has that definition site, 0-based, -1 if it is unknown; the lines that were
 * executing are positionTicks, only those in the file of the url. Ids are 1..N in preorder, so parents
 * come first and viewers may index by id.
 *
 * Viewers disagree about the length of a sample: until the next one, or one mean interval. These are
 * equal only if samples are evenly spaced, so a gap is filled with one (idle) sample a period. The
 * profile begins with its thread, not with the recording, for the same reason.
 *
 * Times are whole microseconds of CLOCK_MONOTONIC, each rounded by itself and then subtracted, so
 * rounding errors do not add up. "$sysprof" is our own and ignored by viewers: which thread it is, and
 * its CPU time, whose column (one number for each sample; the last one includes the time after it)
 * adds up to cpuTimeNs exactly.
 */
#include "export/exporters.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file_url.h"
#include "base/json_writer.h"
#include "base/minmax.h"
#include "base/vec.h"
#include "export/call_tree.h"
#include "export/facts.h"
#include "profile/timeline.h"

#define FALLBACK_PERIOD	 1000000 /* ns, where ticks are not of a clock */
#define NO_KEY		 UINT32_MAX
#define IDLE_SAMPLES_MAX (1u << 24) /* a day at 99 Hz; a damaged period must not fill the memory */

/* Functions are equal if all of this is. main() of two binaries differs in its script. */
struct call_frame {
	struct string_id name, file;
	uint32_t script; /* 0: none */
	uint32_t line, column;
	uint32_t is_jit; /* its file is what a runtime calls its script, which may be no path */
};

struct tick {
	uint32_t node, line;
	uint64_t count;
};

struct sample {
	uint64_t time; /* ns */
	uint32_t node;
	uint64_t cpu;
};

struct cpuprofile {
	const struct profile *p;
	const struct profile_thread *thread;
	struct json_writer w;
	struct call_tree tree;
	VEC(struct call_frame) frames; /* by key; 0 is (root), 1 is (idle) */
	struct hashmap frame_map;
	uint32_t *key_of_line;			  /* by line of the profile, or NO_KEY */
	uint32_t *script_of_file, *script_of_dso; /* 0: no number yet */
	uint32_t script_count;
	VEC(struct sample) samples;
	uint32_t idle_samples;
	size_t next_idle;	/* of those that are known */
	VEC(struct tick) ticks; /* one an element at first, then merged */
	uint32_t *id_of_node;
};

enum { KEY_ROOT, KEY_IDLE, KEY_FIRST_FUNCTION };

static bool frame_equal(const void *owner, uint32_t index, const void *key)
{
	const struct cpuprofile *c = owner;

	return !memcmp(&c->frames.data[index], key, sizeof(struct call_frame));
}

/* Lines 1.. of the profile are 0.. here; unknown is -1, and so is what does not fit. */
static int64_t zero_based(uint32_t position)
{
	return position && position <= INT32_MAX ? (int64_t)position - 1 : -1;
}

/* A script is a source file, or a binary if the source is unknown. Numbered in order of use. */
static uint32_t script_of(struct cpuprofile *c, const struct profile_function *function)
{
	uint32_t *script;

	if (function->definition_file.v)
		script = &c->script_of_file[function->definition_file.v];
	else if (c->p->dsos[function->dso.v].kind != DSO_UNKNOWN)
		script = &c->script_of_dso[function->dso.v];
	else
		return 0;
	if (!*script)
		*script = ++c->script_count;
	return *script;
}

static int frame_key(void *context, const struct profile_location *location, uint32_t line,
		     uint32_t *key)
{
	struct cpuprofile *c = context;
	const struct profile_function *function = &c->p->functions[c->p->lines[line].function.v];
	struct call_frame frame = {
		.name = function->name,
		.file = function->definition_file,
		.line = function->definition_line,
		.column = function->definition_column,
		.is_jit = c->p->dsos[function->dso.v].kind == DSO_JIT,
	};
	uint64_t hash;
	uint32_t found;
	int err;

	(void)location;
	if (c->key_of_line[line] != NO_KEY) {
		*key = c->key_of_line[line];
		return 0;
	}
	frame.script = script_of(c, function);
	hash = hash_bytes(&frame, sizeof(frame));
	found = hashmap__find(&c->frame_map, hash, &frame);
	if (found == HASHMAP_NONE) {
		found = (uint32_t)c->frames.count;
		err = vec_push(&c->frames, frame);
		if (!err)
			err = hashmap__add(&c->frame_map, hash, found);
		if (err)
			return err;
	}
	*key = c->key_of_line[line] = found;
	return 0;
}

static int cpuprofile__init(struct cpuprofile *c, const struct profile *p,
			    const struct profile_thread *thread)
{
	int err;

	*c = (struct cpuprofile){.p = p, .thread = thread};
	hashmap__init(&c->frame_map, frame_equal, c);
	err = call_tree__init(&c->tree, p);
	if (err)
		return err;
	c->key_of_line = malloc((p->line_count + 1) * sizeof(*c->key_of_line));
	c->script_of_file = calloc(p->string_count + 1, sizeof(*c->script_of_file));
	c->script_of_dso = calloc(p->dso_count + 1, sizeof(*c->script_of_dso));
	if (!c->key_of_line || !c->script_of_file || !c->script_of_dso)
		return -ENOMEM;
	memset(c->key_of_line, 0xff, (p->line_count + 1) * sizeof(*c->key_of_line));
	for (unsigned int i = 0; i < KEY_FIRST_FUNCTION && !err; i++)
		err = vec_push(&c->frames, (struct call_frame){0});
	return err;
}

static void cpuprofile__fini(struct cpuprofile *c)
{
	call_tree__fini(&c->tree);
	vec_free(&c->frames);
	hashmap__fini(&c->frame_map);
	free(c->key_of_line);
	free(c->script_of_file);
	free(c->script_of_dso);
	vec_free(&c->samples);
	vec_free(&c->ticks);
	free(c->id_of_node);
}

/* ---- samples --------------------------------------------------------------------------------- */

static int add_idle_sample(struct cpuprofile *c, uint64_t time)
{
	uint32_t node;
	int err = call_tree__child(&c->tree, CALL_TREE_ROOT, KEY_IDLE, &node);

	if (err)
		return err;
	c->tree.nodes.data[node].hits++;
	return vec_push(&c->samples, (struct sample){.time = time, .node = node});
}

/* Those that the format said which the profile was read from, at their times. */
static int add_known_idle_before(struct cpuprofile *c, size_t i)
{
	const struct profile_samples *samples = &c->thread->samples[SAMPLE_CPU];
	const struct profile_samples *idle = &c->thread->samples[SAMPLE_IDLE];
	int err = 0;

	for (; c->next_idle < idle->count && !err; c->next_idle++) {
		if (i < samples->count && idle->time[c->next_idle] > samples->time[i])
			break;
		err = add_idle_sample(c, idle->time[c->next_idle]);
	}
	return err;
}

static int add_idle_before(struct cpuprofile *c, size_t i)
{
	struct timeline_idle idle = timeline_idle_before(c->p, c->thread, i);
	int err = 0;

	if (c->p->idle_known)
		return add_known_idle_before(c, i);
	for (uint64_t n = 0; n < idle.count && c->idle_samples < IDLE_SAMPLES_MAX && !err; n++) {
		err = add_idle_sample(c, idle.first + n * c->p->period);
		c->idle_samples++;
	}
	return err;
}

/*
 * Count the line that the leaf executes, if it is in the file of its url. A viewer would draw a line
 * of an expanded header on the text of that file.
 */
static int add_tick(struct cpuprofile *c, struct stack_id stack, uint32_t node, uint64_t count)
{
	const struct profile_location *location =
		&c->p->locations[c->p->stacks[stack.v].location.v];
	const struct profile_line *line = &c->p->lines[location->first_line];
	struct string_id file = c->p->functions[line->function.v].definition_file;

	if (!line->line || line->file.v != file.v)
		return 0;
	return vec_push(&c->ticks, (struct tick){node, line->line, count});
}

static int add_sample(struct cpuprofile *c, size_t i)
{
	const struct profile_samples *samples = &c->thread->samples[SAMPLE_CPU];
	struct sample sample = {.time = samples->time[i], .cpu = samples->weight[i]};
	uint64_t ticks = profile_samples__ticks(samples, i);
	int err = call_tree__stack(&c->tree, c->p, CALL_TREE_ROOT, samples->stack[i], frame_key, c,
				   &sample.node);

	if (err)
		return err;
	c->tree.nodes.data[sample.node].hits += ticks;
	err = add_tick(c, samples->stack[i], sample.node, ticks);
	return err ? err : vec_push(&c->samples, sample);
}

static int collect_samples(struct cpuprofile *c)
{
	size_t count = c->thread->samples[SAMPLE_CPU].count;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		err = add_idle_before(c, i);
		if (!err)
			err = add_sample(c, i);
	}
	if (!err)
		err = add_idle_before(c, count);
	/* viewers divide by the number of samples */
	if (!err && !c->samples.count)
		err = add_idle_sample(c, c->thread->start);
	if (!err)
		c->samples.data[c->samples.count - 1].cpu += c->thread->cpu_tail;
	return err;
}

static int compare_ticks(const void *a, const void *b)
{
	const struct tick *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

/* One tick for each node and line, in the order in which the nodes are written. */
static void merge_ticks(struct cpuprofile *c)
{
	struct tick *ticks = c->ticks.data;
	size_t count = 0;

	for (size_t i = 0; i < c->ticks.count; i++)
		ticks[i].node = c->id_of_node[ticks[i].node];
	if (c->ticks.count)
		qsort(ticks, c->ticks.count, sizeof(*ticks), compare_ticks);
	for (size_t i = 0; i < c->ticks.count; i++) {
		if (count && !compare_ticks(&ticks[count - 1], &ticks[i]))
			ticks[count - 1].count += ticks[i].count;
		else
			ticks[count++] = ticks[i];
	}
	c->ticks.count = count;
}

static int number_nodes(struct cpuprofile *c)
{
	uint32_t node = CALL_TREE_ROOT, id = 0;

	c->id_of_node = calloc(c->tree.nodes.count, sizeof(*c->id_of_node));
	if (!c->id_of_node)
		return -ENOMEM;
	do {
		c->id_of_node[node] = ++id;
		node = call_tree__next(&c->tree, node);
	} while (node != CALL_TREE_ROOT);
	merge_ticks(c);
	return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* A path as a URL; what is one already, and what an engine calls its script, as it is. */
static int write_url(struct cpuprofile *c, struct string_id file, bool is_jit)
{
	const char *path = profile__string(c->p, file);
	_cleanup_free_ char *url = NULL;

	if (*path != '/') {
		json_key_string(&c->w, "url", is_jit || url_has_scheme(path) ? path : "");
		return 0;
	}
	url = file_url_encode(path);
	if (!url)
		return -ENOMEM;
	json_key_string(&c->w, "url", url);
	return 0;
}

/* Engines write nothing for a function without a name, and viewers show "(anonymous)" for it. */
static const char *function_name(const struct cpuprofile *c, const struct call_frame *frame)
{
	const char *name = profile__string(c->p, frame->name);

	return frame->is_jit && !strcmp(name, "(anonymous)") ? "" : name;
}

static int write_call_frame(struct cpuprofile *c, uint32_t key)
{
	static const char *const meta_names[] = {[KEY_ROOT] = "(root)", [KEY_IDLE] = "(idle)"};
	const struct call_frame *frame = &c->frames.data[key];
	struct json_writer *w = &c->w;
	char script[16];
	int err;

	snprintf(script, sizeof(script), "%" PRIu32, frame->script);
	json_key(w, "callFrame");
	json_begin_object(w);
	json_key_string(w, "functionName",
			key < KEY_FIRST_FUNCTION ? meta_names[key] : function_name(c, frame));
	json_key_string(w, "scriptId", script);
	err = write_url(c, frame->file, frame->is_jit);
	json_key_int(w, "lineNumber", zero_based(frame->line));
	json_key_int(w, "columnNumber", zero_based(frame->column));
	json_end_object(w);
	return err;
}

static void write_children(struct cpuprofile *c, const struct call_node *node)
{
	json_key(&c->w, "children");
	json_begin_array(&c->w);
	for (uint32_t child = node->first_child; child;
	     child = c->tree.nodes.data[child].next_sibling)
		json_uint(&c->w, c->id_of_node[child]);
	json_end_array(&c->w);
}

/* Ticks are in the order of the nodes: *next is the first that is not written. */
static void write_ticks(struct cpuprofile *c, uint32_t id, size_t *next)
{
	if (*next == c->ticks.count || c->ticks.data[*next].node != id)
		return;
	json_key(&c->w, "positionTicks");
	json_begin_array(&c->w);
	for (; *next < c->ticks.count && c->ticks.data[*next].node == id; ++*next) {
		json_begin_object(&c->w);
		json_key_uint(&c->w, "line", c->ticks.data[*next].line);
		json_key_uint(&c->w, "ticks", c->ticks.data[*next].count);
		json_end_object(&c->w);
	}
	json_end_array(&c->w);
}

static int write_nodes(struct cpuprofile *c)
{
	uint32_t at = CALL_TREE_ROOT;
	size_t next_tick = 0;
	int err = 0;

	json_key(&c->w, "nodes");
	json_begin_array(&c->w);
	do {
		const struct call_node *node = &c->tree.nodes.data[at];

		json_begin_object(&c->w);
		json_key_uint(&c->w, "id", c->id_of_node[at]);
		err = write_call_frame(c, at == CALL_TREE_ROOT ? KEY_ROOT : node->key);
		json_key_uint(&c->w, "hitCount", node->hits);
		if (node->first_child)
			write_children(c, node);
		write_ticks(c, c->id_of_node[at], &next_tick);
		json_end_object(&c->w);
		at = call_tree__next(&c->tree, at);
	} while (at != CALL_TREE_ROOT && !err);
	json_end_array(&c->w);
	return err;
}

static uint64_t start_time(const struct cpuprofile *c)
{
	return max_u64(c->thread->start, c->p->start);
}

static void write_columns(struct cpuprofile *c)
{
	uint64_t before = start_time(c) / 1000;

	json_key(&c->w, "samples");
	json_begin_array(&c->w);
	for (size_t i = 0; i < c->samples.count; i++)
		json_uint(&c->w, c->id_of_node[c->samples.data[i].node]);
	json_end_array(&c->w);
	json_key(&c->w, "timeDeltas");
	json_begin_array(&c->w);
	for (size_t i = 0; i < c->samples.count; i++) {
		uint64_t now = c->samples.data[i].time / 1000;

		now = max_u64(now, before);
		json_uint(&c->w, now - before);
		before = now;
	}
	json_end_array(&c->w);
}

static void write_identity(struct cpuprofile *c)
{
	const struct profile_process *process = &c->p->processes[c->thread->process.v];
	uint64_t start = start_time(c);
	struct json_writer *w = &c->w;

	json_key_uint(w, "pid", process->pid);
	json_key_uint(w, "tid", c->thread->tid);
	json_key_string(w, "comm", profile__string(c->p, c->thread->name));
	json_key_string(w, "process", profile__string(c->p, process->name));
	json_key_bool(w, "isMainThread", c->thread->is_main);
	json_key_uint(w, "startTimeRealtime",
		      (c->p->start_realtime + (start - c->p->start)) / 1000);
	json_key_uint(w, "samples", c->thread->samples[SAMPLE_CPU].count);
	json_key_uint(w, "periodNs", c->p->period);
	json_key_uint(w, "cpuTimeNs", profile_thread__cpu(c->thread));
	if (c->p->weight_ahead) /* each is of the time until the next sample, not since the last */
		json_key_bool(w, "cpuDeltasAhead", true);
	json_key(w, "threadCPUDeltas");
	json_begin_array(w);
	for (size_t i = 0; i < c->samples.count; i++)
		json_uint(w, c->samples.data[i].cpu);
	json_end_array(w);
}

static void write_books(const struct profile *p, const struct export_facts *facts,
			struct json_writer *w)
{
	json_key(w, "books");
	json_begin_object(w);
	if (facts->due_known)
		json_key_uint(w, "due", facts->due);
	else
		json_key_null(w, "due");
	for (unsigned int line = 0; line < BOOK_COUNT; line++)
		json_key_uint(w, book_line_name(line), facts->lines[line]);
	if (facts->due_known)
		json_key_int(w, "unexplained", profile__unexplained_ticks(p));
	else
		json_key_null(w, "unexplained");
	json_end_object(w);
}

/* Figures of the whole recording, of which this thread is a part. */
static void write_recording(const struct profile *p, struct json_writer *w)
{
	struct export_facts facts;

	export_facts__init(&facts, p);
	json_key(w, "recording");
	json_begin_object(w);
	json_key_uint(w, "startTime", p->start / 1000);
	json_key_uint(w, "endTime", p->end / 1000);
	json_key_uint(w, "samples", p->sample_count);
	json_key_string(w, "clock", p->tsc_khz ? "tsc" : "monotonic");
	json_key_uint(w, "tscKhz", p->tsc_khz);
	json_key_uint(w, "clockErrorNs", p->clock_error_ns);
	json_key_bool(w, "cutShort", p->cut_short);
	json_key(w, "completeStackShare");
	json_fixed(w, profile__complete_share(p), 6);
	json_key(w, "stackEnds");
	json_begin_object(w);
	for (unsigned int end = 0; end < STACK_END_COUNT; end++)
		json_key_uint(w, stack_end_name(end), p->stack_ends[end]);
	json_end_object(w);
	json_key(w, "framesFound");
	json_begin_object(w);
	for (unsigned int kind = FRAME_IP; kind < FRAME_KIND_COUNT; kind++)
		json_key_uint(w, frame_kind_name(kind), p->frames_found[kind]);
	json_end_object(w);
	json_key(w, "namedShare");
	json_fixed(w, profile__named_share(p), 6);
	write_jits(p, w);
	write_books(p, &facts, w);
	json_key(w, "lost");
	json_begin_object(w);
	json_key_uint(w, "samples", p->lost[LOST_SAMPLES]);
	json_key_uint(w, "sideband", p->lost[LOST_SIDEBAND]);
	json_key_uint(w, "late", p->lost[LOST_LATE]);
	json_key_uint(w, "recordingChunks", p->lost[LOST_RECORDING]);
	json_end_object(w);
	json_end_object(w);
}

/* Of the last sample, where weights tell it. */
static uint64_t last_duration(const struct cpuprofile *c)
{
	const struct profile_samples *cpu = &c->thread->samples[SAMPLE_CPU];
	const struct profile_samples *idle = &c->thread->samples[SAMPLE_IDLE];
	bool was_idle = idle->count &&
			(!cpu->count || idle->time[idle->count - 1] > cpu->time[cpu->count - 1]);
	const struct profile_samples *last = was_idle ? idle : cpu;

	return last->count ? last->weight[last->count - 1] : 0;
}

static int write_file(struct cpuprofile *c, FILE *out)
{
	uint64_t period = c->p->period ? c->p->period : FALLBACK_PERIOD;
	uint64_t start = start_time(c);
	uint64_t last = max_u64(start, c->samples.data[c->samples.count - 1].time);
	uint64_t end = last / 1000 + (period + 999) / 1000;
	int err, write_err;

	if (c->p->weight_ahead)
		end = (last + last_duration(c)) / 1000;

	json_writer__init(&c->w, out);
	json_begin_object(&c->w);
	err = write_nodes(c);
	json_key_uint(&c->w, "startTime", start / 1000);
	json_key_uint(&c->w, "endTime", end);
	write_columns(c);
	json_key(&c->w, "$sysprof");
	json_begin_object(&c->w);
	write_identity(c);
	write_recording(c->p, &c->w);
	json_end_object(&c->w);
	json_end_object(&c->w);
	write_err = json_writer__finish(&c->w);
	return err ? err : write_err;
}

static int write_cpuprofile(const struct export_request *request)
{
	const struct profile *profile = request->profile;
	struct thread_id id = request->thread.v ? request->thread : export_busiest_thread(profile);
	/* a file without threads must open, too */
	struct profile_thread nobody = {.start = profile->start, .end = profile->start};
	struct cpuprofile c;
	int err;

	if (request->thread.v && id.v >= profile->thread_count)
		return -EINVAL;
	err = cpuprofile__init(&c, profile, id.v ? &profile->threads[id.v] : &nobody);
	if (!err)
		err = collect_samples(&c);
	if (!err)
		err = number_nodes(&c);
	if (!err)
		err = write_file(&c, request->out);
	cpuprofile__fini(&c);
	return err;
}

static const char *const suffixes[] = {".cpuprofile", NULL};

const struct exporter cpuprofile_exporter = {
	.name = "cpuprofile",
	.suffixes = suffixes,
	.description = "Chrome CPU profile, one thread a file",
	.how_to_open = "open %s in Chrome DevTools (Performance, \"Load profile…\"), VS Code or "
		       "speedscope",
	.one_thread = true,
	.write = write_cpuprofile,
};
