/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * callFrame has the definition site of a function, 0-based, -1 if unknown, never the executing
 * line. Its url and its line are of the same file. An absolute path becomes a file:// URL, which
 * editors open; whether that file exists is known only where the profile is opened. A relative path
 * is no URL and is left out. URLs (node:fs) and an engine's names of its scripts stay as they are.
 */
#include "formats/out/call_frames.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file_url.h"
#include "base/minmax.h"
#include "formats/out/describe.h"

#define MANY_TICKS                                                                                 \
	1000000000000 /* of which each gets less, or the times would not be exact as doubles */

MAP_FUNCTIONS_OF_BYTES(call_frame_table, struct call_frame);
MAP_FUNCTIONS_OF_BYTES(call_script_table, struct call_script);

int call_frames__init(struct call_frames *frames, const struct profile *p)
{
	int err = 0;

	*frames = (struct call_frames){.p = p};
	frames->module_of_dso = calloc(p->dso_count + 1, sizeof(*frames->module_of_dso));
	frames->text_file = open_memstream(&frames->text, &frames->text_size);
	if (!frames->module_of_dso || !frames->text_file)
		return -ENOMEM;
	err = text_limit__init(&frames->limit, p, true)
		      ?: vec_push(&frames->scripts, (struct call_script){});
	for (unsigned int i = 0; i < CALL_FRAME_FIRST_FUNCTION && !err; i++)
		err = vec_push(&frames->frames, (struct call_frame){0});
	return err;
}

void call_frames__fini(struct call_frames *frames)
{
	text_limit__fini(&frames->limit);
	call_frame_table__fini(&frames->frames);
	vec_free(&frames->texts);
	call_script_table__fini(&frames->scripts);
	free(frames->module_of_dso);
	vec_free(&frames->modules);
	if (frames->text_file)
		fclose(frames->text_file);
	free(frames->text);
}

static int add_module(struct call_frames *frames, struct dso_id dso)
{
	uint32_t *module = &frames->module_of_dso[dso.v];
	int err = *module ? 0 : vec_push(&frames->modules, dso);

	if (!err && !*module)
		*module = (uint32_t)frames->modules.count;
	return err;
}

/*
 * A script is a source file of a binary, or the binary if the source is unknown. Numbered in order of
 * use. Unknown code without a source file has none.
 */
static int find_script(struct call_frames *frames, const struct profile_function *function,
		       uint32_t *number)
{
	const struct call_script script = {function->definition_file, function->dso};

	*number = 0;
	if (!script.file.v && frames->p->dsos[script.dso.v].kind == DSO_UNKNOWN)
		return 0;
	return add_module(frames, script.dso)
		       ?: map_number(&frames->scripts,
				     call_script_table__need(&frames->scripts, &script, NULL),
				     number);
}

int call_frames__key(void *context, const struct profile_location *location, uint32_t line,
		     uint32_t *key)
{
	struct call_frames *frames = context;
	const struct profile_function *function =
		&frames->p->functions[frames->p->lines[line].function.v];
	struct call_frame frame = {
		.name = function->name,
		.file = function->definition_file,
		.line = function->definition_line,
		.column = function->definition_column,
		.is_jit = dso_kind_is_made(frames->p->dsos[function->dso.v].kind),
	};
	int err = find_script(frames, function, &frame.script);

	(void)location;
	return err
		       ?: map_number(&frames->frames,
				     call_frame_table__need(&frames->frames, &frame, NULL), key);
}

uint32_t call_frames_leaf_line(const struct profile *p, struct stack_id stack)
{
	const struct profile_location *location = &p->locations[p->stacks[stack.v].location.v];
	const struct profile_line *line = &p->lines[location->first_line];
	struct string_id file = p->functions[line->function.v].definition_file;

	return line->file.v == file.v ? line->line : 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Lines 1.. of the profile are 0.. here; unknown or too large ones are -1. */
static int64_t zero_based(uint32_t position)
{
	return position && position <= INT32_MAX ? (int64_t)position - 1 : -1;
}

/* A path as a URL; URLs and an engine's names of its scripts as they are. */
static int write_url(struct call_frames *frames, const struct call_frame *frame,
		     struct json_writer *w)
{
	char cut[TEXT_CUT_SIZE];
	const char *path = text_limit__cut(&frames->limit, profile__string(frames->p, frame->file),
					   cut);
	_cleanup_free_ char *url = NULL;

	if (*path != '/') {
		json_key_string(w, "url", frame->is_jit || url_has_scheme(path) ? path : "");
		return 0;
	}
	url = file_url_encode(path);
	if (!url)
		return -ENOMEM;
	json_key_string(w, "url", url);
	return 0;
}

/* Engines write "" for a function without a name; viewers show "(anonymous)". */
static const char *function_name(const struct call_frames *frames, const struct call_frame *frame)
{
	const char *name = profile__string(frames->p, frame->name);

	return frame->is_jit && !strcmp(name, "(anonymous)") ? "" : name;
}

static int make_text(struct call_frames *frames, uint32_t key)
{
	static const char *const meta_names[] = {
		[CALL_FRAME_ROOT] = "(root)", [CALL_FRAME_IDLE] = "(idle)"};
	const struct call_frame *frame = &frames->frames.data[key];
	size_t start = frames->text_size;
	struct json_writer w;
	char script[16], cut[TEXT_CUT_SIZE];
	int err, write_err;

	json_writer__init(&w, frames->text_file);
	snprintf(script, sizeof(script), "%" PRIu32, frame->script);
	json_begin_object(&w);
	json_key_string(
		&w, "functionName",
		key < CALL_FRAME_FIRST_FUNCTION
			? meta_names[key]
			: text_limit__cut(&frames->limit, function_name(frames, frame), cut));
	json_key_string(&w, "scriptId", script);
	err = write_url(frames, frame, &w);
	json_key_int(&w, "lineNumber", zero_based(frame->line));
	json_key_int(&w, "columnNumber", zero_based(frame->column));
	json_end_object(&w);
	write_err = json_writer__finish(&w);
	if (!err)
		err = write_err;
	if (!err && fflush(frames->text_file))
		err = -ENOMEM;
	if (!err)
		frames->texts.data[key] = (struct call_frame_text){start,
								   frames->text_size - start};
	return err;
}

int call_frames__write(struct call_frames *frames, uint32_t key, struct json_writer *w)
{
	int err = 0;

	while (frames->texts.count <= key && !err)
		err = vec_push(&frames->texts, (struct call_frame_text){0});
	if (!err && !frames->texts.data[key].size)
		err = make_text(frames, key);
	if (err)
		return err;
	json_key(w, "callFrame");
	json_raw(w, frames->text + frames->texts.data[key].start, frames->texts.data[key].size);
	return 0;
}

static void write_module(struct call_frames *frames, struct dso_id id, struct json_writer *w)
{
	static const char *const kinds[] = {
#define X(kind, name) [DSO_##kind] = name,
		DSO_KINDS(X)
#undef X
	};
	const struct profile_dso *dso = &frames->p->dsos[id.v];
	bool has_no_file = dso_kind_is_made(dso->kind) && !dso->is_interpreted;
	const char *path = has_no_file ? "" : profile__string(frames->p, dso->path);
	char cut[TEXT_CUT_SIZE];

	json_begin_object(w);
	json_key_string(w, "kind", kinds[has_no_file ? DSO_JIT : dso->kind]);
	json_key_string(w, "path", text_limit__cut(&frames->limit, path, cut));
	json_end_object(w);
}

void call_frames__write_modules(struct call_frames *frames, struct json_writer *w)
{
	JSON_COLUMN(w, "modules", frames->modules.count,
		    write_module(frames, frames->modules.data[i], w));
	json_key_array(w, "scriptModules");
	for (size_t i = 1; i < frames->scripts.count; i++)
		json_uint(w, frames->module_of_dso[frames->scripts.data[i].dso.v] - 1);
	json_end_array(w);
}

/* ---- when samples were taken ----------------------------------------------------------------- */

uint64_t row_times_start(const struct profile *p, const struct profile_thread *thread)
{
	return max_u64(thread->start, p->start);
}

void row_times__init(struct row_times *times, const struct profile *p,
		     const struct profile_thread *thread)
{
	*times = (struct row_times){
		.samples = &thread->samples[SAMPLE_CPU],
		.last = row_times_start(p, thread),
		.step = export_period(p),
		.untimed = p->untimed,
		.has_lengths = !strcmp(profile__event_unit(p), "nanoseconds"),
	};
	for (size_t i = 0; i < times->samples->count && times->untimed && !times->has_cpu; i++)
		times->has_cpu = times->samples->weight[i] > 0;
	if (times->untimed && times->samples->tick_sum > MANY_TICKS)
		times->step = 1000;
	times->divisor = row_times__divisor(times, ROW_TIMES_MAX);
}

static uint64_t full_length(const struct row_times *times, size_t row)
{
	if (times->has_cpu)
		return times->samples->weight[row];
	if (times->has_lengths)
		return profile_samples__events(times->samples, row);
	return saturating_multiply_u64(profile_samples__ticks(times->samples, row), times->step);
}

uint64_t row_times__divisor(const struct row_times *times, uint64_t most)
{
	double sum = 0;

	for (size_t i = 0; i < times->samples->count && times->untimed; i++)
		sum += (double)full_length(times, i);
	return sum > (double)most ? (uint64_t)(sum / (double)most) + 1 : 1;
}

uint64_t row_times__length(const struct row_times *times)
{
	return full_length(times, times->row - 1) / times->divisor;
}

uint64_t row_times__end(const struct row_times *times)
{
	if (!times->row)
		return times->last;
	return saturating_add_u64(times->last,
				  times->untimed ? row_times__length(times) : times->step);
}

uint64_t row_times__next(struct row_times *times)
{
	uint64_t time = times->untimed ? row_times__end(times) : times->samples->time[times->row];

	times->row++;
	return times->last = time;
}

void idle_rows__init(struct idle_rows *rows, const struct profile_thread *thread)
{
	*rows = (struct idle_rows){
		.cpu = &thread->samples[SAMPLE_CPU],
		.idle = &thread->samples[SAMPLE_IDLE],
	};
}

bool idle_rows__next(struct idle_rows *rows, size_t i, uint64_t *time)
{
	if (rows->next == rows->idle->count)
		return false;
	if (i < rows->cpu->count && rows->idle->time[rows->next] > rows->cpu->time[i])
		return false;
	*time = rows->idle->time[rows->next++];
	return true;
}

uint64_t row_times_last_weight(const struct profile_thread *thread)
{
	const struct profile_samples *cpu = &thread->samples[SAMPLE_CPU];
	const struct profile_samples *idle = &thread->samples[SAMPLE_IDLE];
	bool was_idle = idle->count &&
			(!cpu->count || idle->time[idle->count - 1] > cpu->time[cpu->count - 1]);
	const struct profile_samples *last = was_idle ? idle : cpu;

	return last->count ? last->weight[last->count - 1] : 0;
}
