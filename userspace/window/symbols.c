/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results are encoded as events of a recording, and the profile is filled from these. The encoding
 * truncates long strings and chains, so live session and replay give the same profile.
 */
#include "window/symbols.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/list_column.h"
#include "base/minmax.h"
#include "base/order.h"
#include "elf/elf_file.h"
#include "stream/event_decode.h"
#include "stream/meta.h"
#include "stream/symbol_blob.h"
#include "window/hot_code.h"
#include "window/scripts.h"
#include "window/window.h"
#include "world/profile_symbols.h"

#define LOSSES_SIZE 4096

struct sampled_address {
	uint64_t address;
	uint64_t requested; /* as in symbolizer_job */
	uint32_t samples;   /* how many have it */
	uint32_t self;	    /* … as the innermost one */
};

/* The addresses of one dso. */
struct symbol_task {
	struct symbolizing *all;
	struct dso_id dso;
	bool is_relative; /* its addresses: to the start of the file's image */
	VEC(struct sampled_address) sampled;
	/* in the form of symbolizer_job, for the same indices */
	VEC(uint64_t) addresses;
	VEC(uint32_t) samples, self;
};

struct symbolizing {
	struct window *window;
	struct profile_symbols symbols;
	struct event_handler handler; /* into the profile */
	event_sink_fn sink;	      /* NULL: no other sink */
	void *context;
	struct symbol_task *tasks; /* by dso */
	struct symbolizer_job *jobs;
	size_t job_count;
	char losses[LOSSES_SIZE]; /* files with missing lines, and the reasons */
	size_t losses_used, losses_left_out;
	struct hot_code code;
	struct scripts scripts;
	union {
		struct symbol_event event;
		char space[EVENT_SIZE_MAX];
	} out;
};

static int pass_event(void *symbolizing, struct event_header *event)
{
	struct symbolizing *s = symbolizing;
	return (s->sink ? s->sink(s->context, event) : 0) ?: event_decode(event, &s->handler);
}

/* ---- answers --------------------------------------------------------------------------------- */

static int emit_dso(struct symbolizing *s, struct dso_id id, enum symbol_state state)
{
	struct symbol_dso_event event = {
		.header = {.size = sizeof(event),
			   .type = EVENT_SYMBOL_DSO,
			   .time = s->window->last_time},
		.dso = id.v,
		.state = state,
	};

	return pass_event(s, &event.header);
}

static int emit_symbol(void *context, size_t index, const struct symbol_result *result)
{
	struct symbol_task *task = context;
	struct symbolizing *s = task->all;
	int err = index ? 0 : emit_dso(s, task->dso, SYMBOL_STATE_PENDING);

	if (err || (!result->frame_count && result->elf_address == PROFILE_UNKNOWN_ADDRESS))
		return err;
	symbol_event__encode(&s->out, s->window->last_time, task->sampled.data[index].address,
			     result);
	return pass_event(s, &s->out.event.header);
}

static bool is_noted(const char *losses, const char *loss)
{
	size_t length = strlen(loss);

	for (const char *at = losses; (at = strstr(at, loss)); at++)
		if ((at == losses || at[-1] == ' ') && (!at[length] || at[length] == ';'))
			return true;
	return false;
}

/* "libfoo.so: the process that read its debug information died; …" */
static void note_loss(struct symbolizing *s, struct dso_id id, const char *why)
{
	struct profile_builder *builder = s->window->builder;
	const char *name = profile_builder__get_string(builder,
						       profile_builder__get_dso(builder, id)->name);
	size_t room = sizeof(s->losses) - s->losses_used;
	char loss[LOSSES_SIZE];
	int length;

	snprintf(loss, sizeof(loss), "%s: %s", *name ? name : "[unknown]", why);
	if (is_noted(s->losses, loss))
		return; /* another file of that name */
	length = snprintf(s->losses + s->losses_used, room, "%s%s", s->losses_used ? "; " : "",
			  loss);
	if (length > 0 && (size_t)length < room) {
		s->losses_used += length;
	} else {
		s->losses[s->losses_used] = '\0';
		s->losses_left_out++;
	}
}

static int keep_code(void *context, const void *events, size_t size)
{
	struct symbol_task *task = context;

	return hot_code__add(&task->all->code, task->dso, events, size);
}

static int keep_source(void *context, const struct symbolizer_source *source)
{
	struct symbol_task *task = context;

	return hot_code__add_source(&task->all->code, source, false);
}

static int finish_dso(void *context, const struct symbolizer_job *job)
{
	struct symbol_task *task = context;

	if (job->state == SYMBOL_STATE_CANCELLED)
		note_loss(task->all, task->dso, "cancelled");
	else if (job->lines_lost)
		note_loss(task->all, task->dso, job->lines_lost);
	return emit_dso(task->all, task->dso, job->state);
}

static int emit_losses(struct symbolizing *s)
{
	char text[LOSSES_SIZE + 64];

	if (!s->losses_used && !s->losses_left_out)
		return 0;
	snprintf(text, sizeof(text), "%s", s->losses);
	if (s->losses_left_out)
		snprintf(text + s->losses_used, sizeof(text) - s->losses_used, "%s%zu more",
			 s->losses_used ? "; and " : "", s->losses_left_out);
	return meta_event__emit(pass_event, s, s->window->last_time, META_LINES_MISSING, text);
}

/* Which sources are those of a dso; number 0 needs no event. */
static int emit_roots(struct symbolizing *s, struct symbolizer_counts *counts)
{
	int err = hot_code__number_roots(&s->code, &counts->sources_left[SOURCE_LOSS_SEVERAL]);

	for (size_t i = 0; i < s->job_count && !err; i++) {
		const struct symbol_task *task = s->jobs[i].context;
		struct source_root_event event = {
			.header = {.size = sizeof(event),
				   .type = EVENT_SOURCE_ROOT,
				   .time = s->window->last_time},
			.dso = task->dso.v,
			.root = hot_code__root(&s->code, s->jobs[i].dso.root_fd),
		};

		if (event.root)
			err = pass_event(s, &event.header);
	}
	return err;
}

/* Hot functions, and how many had no room. */
static int emit_code(struct symbolizing *s, uint64_t limit, struct symbolizer_counts *found)
{
	struct hot_code_counts counts = {};
	char text[128];
	int err = emit_roots(s, found)
			  ?: hot_code__emit(&s->code, limit, s->window->last_time, pass_event, s,
					    &counts);

	if (err || !(counts.left_functions + counts.left_sources))
		return err;
	snprintf(text, sizeof(text), "%zu of %zu functions, %zu of %zu sources (%.1f MB)",
		 counts.left_functions, counts.left_functions + counts.functions,
		 counts.left_sources, counts.sources, counts.left_bytes / 1e6);
	return meta_event__emit(pass_event, s, s->window->last_time, META_CODE_LEFT_OUT, text);
}

/* "12 not there, 1 larger than 2 MiB": sources, by reason. */
static int emit_missing_sources(struct symbolizing *s, const struct symbolizer_counts *counts)
{
	static const char *const reasons[] = {SOURCE_LOSSES(SECOND_COLUMN)};
	char text[1024];
	size_t used = 0;

	for (size_t i = 0; i < SOURCE_LOSS_COUNT; i++)
		if (counts->sources_left[i] && used < sizeof(text))
			used += snprintf(text + used, sizeof(text) - used, "%s%zu %s",
					 used ? ", " : "", counts->sources_left[i], reasons[i]);
	return used ? meta_event__emit(pass_event, s, s->window->last_time, META_SOURCES_MISSING,
				       text)
		    : 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool can_be_symbolized(enum dso_kind kind)
{
	return kind == DSO_FILE || kind == DSO_VDSO || kind == DSO_KERNEL;
}

/* 0 or -ENOMEM. */
static int count_samples(struct profile_builder *builder, struct location_samples *by_location,
			 uint64_t *sum)
{
	size_t count = profile_builder__stack_count(builder);
	_cleanup_free_ uint32_t *by_stack = calloc(count + 1, sizeof(*by_stack));
	size_t threads = profile_builder__thread_count(builder);

	if (!by_stack)
		return -ENOMEM;
	for (uint32_t t = 1; t <= threads; t++) {
		struct builder_samples samples =
			profile_builder__samples(builder, (struct thread_id){t}, SAMPLE_CPU);

		*sum += samples.count;
		for (size_t i = 0; i < samples.count; i++) {
			const struct profile_stack *stack =
				profile_builder__get_stack(builder, samples.stack[i]);

			by_stack[samples.stack[i].v]++;
			by_location[stack->location.v].self++;
		}
	}
	/* a stack comes after its parent */
	for (uint32_t i = (uint32_t)count; i-- > 1;) {
		const struct profile_stack *stack =
			profile_builder__get_stack(builder, (struct stack_id){i});

		by_location[stack->location.v].all += by_stack[i];
		by_stack[stack->parent.v] += by_stack[i];
	}
	return 0;
}

/* Addresses of each dso that can be symbolized. */
static int collect_addresses(struct symbolizing *s, const struct location_samples *samples)
{
	const struct profile_builder *builder = s->window->builder;
	size_t count = profile_builder__location_count(builder);

	for (uint32_t i = 1; i < count; i++) {
		const struct profile_location *location =
			profile_builder__get_location(builder, (struct location_id){i});
		const struct profile_dso *dso = profile_builder__get_dso(builder, location->dso);
		struct symbol_task *task;
		int err;

		if (!can_be_symbolized(dso->kind) || location->version)
			continue;
		if (s->window->is_import && (dso->kind != DSO_FILE || location->line_count))
			continue;
		task = &s->tasks[location->dso.v];
		task->is_relative = location->elf_address != PROFILE_UNKNOWN_ADDRESS;
		err = vec_push(&task->sampled,
			       (struct sampled_address){location->address, location->address,
							samples[i].all, samples[i].self});
		if (err)
			return err;
	}
	return 0;
}

/* An elf_load_fn. */
static int lower_base(void *base, uint64_t offset, uint64_t size, uint64_t address)
{
	uint64_t *lowest = base;

	(void)size;
	*lowest = min_u64(*lowest, address - offset);
	return 0;
}

/* Addresses that the file does not have, and all without the file, are left out. */
static void find_offsets(struct symbol_task *task, const struct file_answer *file)
{
	struct elf_file *elf = NULL;
	uint64_t base = UINT64_MAX;
	size_t count = 0;

	if (file->fd >= 0 && !elf_file__open_at(file->fd, file->base, &elf))
		elf_file__each_load(elf, lower_base, &base);
	for (size_t i = 0; i < task->sampled.count && elf; i++) {
		struct sampled_address a = task->sampled.data[i];

		if (!elf_file__offset_of_address(elf, base + a.address, &a.requested))
			task->sampled.data[count++] = a;
	}
	task->sampled.count = count;
	elf_file__free(elf);
}

DEFINE_ORDER(compare_addresses, struct sampled_address, order_of(x->requested, y->requested));

static int sort_addresses(struct symbol_task *task)
{
	size_t count = 0;
	int err = 0;

	qsort(task->sampled.data, task->sampled.count, sizeof(*task->sampled.data),
	      compare_addresses);
	for (size_t i = 0; i < task->sampled.count && !err; i++) {
		struct sampled_address a = task->sampled.data[i];

		if (count && task->sampled.data[count - 1].requested == a.requested)
			continue; /* segments of a forged file overlap */
		task->sampled.data[count++] = a;
		err = vec_push(&task->addresses, a.requested)
			      ?: vec_push(&task->samples, a.samples)
			      ?: vec_push(&task->self, a.self);
	}
	task->sampled.count = count;
	return err;
}

/* Of a version of kernel addresses. A later one may end it earlier: then it has no samples. */
static struct kernel_times kernel_times(const struct window *w, uint32_t version)
{
	uint64_t start = profile_builder__session(w->builder)->start;

	return (struct kernel_times){
		.from = version ? w->kernel_changes.data[version - 1] : start,
		.until = w->last_time,
	};
}

static int add_job(struct symbolizing *s, struct dso_id id)
{
	const struct window *w = s->window;
	const struct profile_dso *dso = profile_builder__get_dso(w->builder, id);
	struct symbol_task *task = &s->tasks[id.v];
	struct symbolizer_job *job = &s->jobs[s->job_count++];
	static const struct file_answer none = {.fd = -1, .root_fd = -1};
	const struct file_answer *file = id.v < w->files.count ? &w->files.data[id.v] : &none;
	int err;

	if (task->is_relative)
		find_offsets(task, file);
	err = sort_addresses(task);
	task->all = s;
	task->dso = id;
	*job = (struct symbolizer_job){
		.dso =
			{
				.kind = dso->kind,
				.fd = file->fd,
				.base = file->base,
				.root_fd = file->root_fd,
				.copied_for = file->copied_for,
				.path = profile_builder__get_string(w->builder, dso->path),
				.build_id = dso->build_id,
				.build_id_size = dso->build_id_size,
			},
		.addresses = task->addresses.data,
		.samples = task->samples.data,
		.self = task->self.data,
		.count = task->addresses.count,
		.sink = emit_symbol,
		.done = finish_dso,
		.code = task->is_relative ? NULL : keep_code,
		.source = keep_source,
		.context = task,
	};
	if (dso->kind == DSO_KERNEL) {
		job->dso.release = *w->kernel.release ? w->kernel.release : NULL;
		job->dso.build_id = w->kernel.build_id;
		job->dso.build_id_size = w->kernel.build_id_size;
		job->times = kernel_times(w, 0);
	}
	return err;
}

/* A symbolizer_options.script_source. */
static int keep_script(void *context, const struct symbolizer_source *source)
{
	struct symbolizing *s = context;

	return hot_code__add_source(&s->code, source, true);
}

static int find_scripts(struct symbolizing *s, const struct location_samples *samples,
			struct symbolizer_options *options)
{
	const double least = options->code_share * (double)options->samples;
	int err = scripts__find(&s->scripts, s->window, samples, least > 1 ? (uint64_t)least : 1);

	options->scripts = s->scripts.wanted.data;
	options->script_count = s->scripts.wanted.count;
	options->script_source = keep_script;
	options->script_context = s;
	return err;
}

static int resolve_all(struct symbolizing *s, struct symbolizer *symbolizer,
		       const struct symbolizer_options *options, struct symbolizer_counts *counts)
{
	struct event_header end = {
		.size = sizeof(end), .type = EVENT_SYMBOLS_END, .time = s->window->last_time};
	struct profile_builder *builder = s->window->builder;
	size_t dsos = profile_builder__dso_count(builder);
	_cleanup_free_ struct location_samples *samples =
		calloc(profile_builder__location_count(builder) + 1, sizeof(*samples));
	struct outside_books *books = outside_books__new();
	struct symbolizer_options own = *options;
	int err = books && samples ? 0 : -ENOMEM;

	own.outside = books;
	if (!err && (own.put_off_new || own.put_off_rare || own.code_share > 0))
		err = count_samples(builder, samples, &own.samples);
	if (!err)
		err = collect_addresses(s, samples);
	for (uint32_t i = 1; i < dsos && !err; i++)
		if (s->tasks[i].sampled.count)
			err = add_job(s, (struct dso_id){i});
	if (!err && own.code_share > 0 && own.sources)
		err = find_scripts(s, samples, &own);
	if (!err)
		err = symbolizer__resolve_all(symbolizer, s->jobs, s->job_count, &own, counts)
			      ?: outside_books__report(books, pass_event, s, s->window->last_time);
	outside_books__free(books);
	if (!err)
		err = emit_losses(s)
			      ?: emit_code(s, own.code_size, counts)
			      ?: emit_missing_sources(s, counts);
	return err ? err : pass_event(s, &end);
}

/* ---- code of the kernel that comes and goes -------------------------------------------------- */

/* A symbol_sink_fn. */
static int name_version(void *context, size_t index, const struct symbol_result *result)
{
	struct symbolizing *s = context;

	s->symbols.location = (struct location_id){(uint32_t)index};
	symbol_event__encode(&s->out, s->window->last_time, result->elf_address, result);
	return event_decode(&s->out.event.header, &s->handler);
}

/* In the recording these are the events of kallsyms themselves, so no others are made. */
int name_kernel_versions(struct window *w, struct symbolizer *symbolizer)
{
	size_t count = profile_builder__location_count(w->builder);
	_cleanup_free_ struct symbolizing *s = NULL;
	int err = 0;

	if (!w->kernel_changes.count || !profile_builder__session(w->builder)->finished_symbols)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->window = w;
	profile_symbols__init(&s->symbols, w->builder);
	s->handler = profile_symbols__handler(&s->symbols);
	for (uint32_t i = 1; i < count && !err; i++) {
		const struct profile_location *l =
			profile_builder__get_location(w->builder, (struct location_id){i});
		struct kernel_times times;

		if (!l->version || profile_builder__get_dso(w->builder, l->dso)->kind != DSO_KERNEL)
			continue;
		times = kernel_times(w, l->version);
		s->symbols.dso = l->dso;
		err = symbolizer__kernel_function(symbolizer, i, l->address, &times, name_version,
						  s);
	}
	profile_symbols__fini(&s->symbols);
	return err;
}

int symbolize_window(struct window *w, struct symbolizer *symbolizer,
		     const struct symbolizer_options *options, struct symbolizer_counts *counts,
		     event_sink_fn sink, void *context)
{
	size_t dsos = profile_builder__dso_count(w->builder);
	_cleanup_free_ struct symbol_task *tasks = calloc(dsos + 1, sizeof(*tasks));
	_cleanup_free_ struct symbolizer_job *jobs = calloc(dsos + 1, sizeof(*jobs));
	_cleanup_free_ struct symbolizing *s = calloc(1, sizeof(*s));
	int err;

	if (!tasks || !jobs || !s)
		return -ENOMEM;
	*s = (struct symbolizing){
		.window = w,
		.sink = sink,
		.context = context,
		.tasks = tasks,
		.jobs = jobs,
	};
	profile_symbols__init(&s->symbols, w->builder);
	s->handler = profile_symbols__handler(&s->symbols);
	err = resolve_all(s, symbolizer, options, counts);
	for (size_t i = 0; i < dsos; i++) {
		vec_free(&tasks[i].sampled);
		vec_free(&tasks[i].addresses);
		vec_free(&tasks[i].samples);
		vec_free(&tasks[i].self);
	}
	hot_code__fini(&s->code);
	scripts__fini(&s->scripts);
	profile_symbols__fini(&s->symbols);
	return err;
}
