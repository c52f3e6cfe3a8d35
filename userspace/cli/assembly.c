/* SPDX-License-Identifier: BSD-2-Clause */
/* The stages of assembly.h, put together. */
#include "cli/assembly.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "jitwatch/hotspot.h"
#include "jitwatch/luajit.h"
#include "jitwatch/pypy.h"
#include "process/recorder.h"
#include "process/unwind_feed.h"
#include "stream/event_decode.h"
#include "stream/meta.h"
#include "stream/symbol_codec.h"
#include "unwind/table_cache.h"

#define LOSSES_SIZE	    4096
#define KERNEL_RELEASE_SIZE 128

struct assembly {
	struct profile_builder *builder;
	struct recorder *recorder;
	struct event_handler handler;
	struct symbolizer *symbolizer;
	struct recording_writer *writer;
	struct table_store *tables; /* NULL: none are kept */
	struct unwind_feed *feed;
	struct dso_opener *opener; /* of the feed */
	uint64_t last_time;	   /* of the stream; symbols come after it */
	/* Of the kernel that was recorded; empty, 0: unknown. */
	char kernel_release[KERNEL_RELEASE_SIZE];
	uint8_t kernel_build_id[BUILD_ID_SIZE];
	uint8_t kernel_build_id_size;
	unsigned int max_depth; /* of user stacks that are walked here */
	union {
		struct sample_event sample;
		char space[sizeof(struct sample_event) +
			   8 * (SAMPLE_KERNEL_DEPTH_MAX + SAMPLE_USER_DEPTH_MAX)];
	} plain;
	union {
		struct symbol_event event;
		char space[EVENT_SIZE_MAX];
	} out;
};

int assembly__new(const struct event_source_requests *requests, struct assembly **assembly)
{
	struct assembly *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->builder = profile_builder__new();
	a->symbolizer = symbolizer__new();
	if (a->builder)
		a->recorder = recorder__new(a->builder, NULL, requests);
	if (!a->builder || !a->symbolizer || !a->recorder) {
		assembly__free(a);
		return -ENOMEM;
	}
	a->handler = recorder__handler(a->recorder);
	*assembly = a;
	return 0;
}

void assembly__free(struct assembly *a)
{
	if (!a)
		return;
	recorder__free(a->recorder);
	unwind_feed__free(a->feed);
	table_store__free(a->tables);
	symbolizer__free(a->symbolizer);
	profile_builder__free(a->builder);
	free(a);
}

void assembly__set_writer(struct assembly *a, struct recording_writer *writer)
{
	a->writer = writer;
}

static void keep_kernel_build_id(struct assembly *a, const char *digits)
{
	size_t length = strlen(digits);
	unsigned int byte;

	a->kernel_build_id_size = 0;
	if (length % 2 || length > 2 * sizeof(a->kernel_build_id))
		return;
	for (size_t i = 0; i < length / 2; i++) {
		if (sscanf(digits + 2 * i, "%2x", &byte) != 1)
			return;
		a->kernel_build_id[i] = byte;
	}
	a->kernel_build_id_size = length / 2;
}

/* Which vmlinux belongs to the recording. */
static void note_kernel(struct assembly *a, const struct meta_event *event)
{
	const char *key = event->text, *value = key + strlen(key) + 1;

	if (!strcmp(key, META_KERNEL_RELEASE))
		snprintf(a->kernel_release, sizeof(a->kernel_release), "%s", value);
	else if (!strcmp(key, META_KERNEL_BUILD_ID))
		keep_kernel_build_id(a, value);
}

/* What goes on from here: a live sample becomes what it would be in a recording. */
static int settle(struct assembly *a, const struct event_header **event)
{
	const struct sample_event *sample = (const struct sample_event *)*event;
	int err;

	if (!a->feed || sample->header.type != EVENT_SAMPLE)
		return 0;
	err = event_check(*event, (*event)->size);
	if (!err)
		err = recorder__settle(a->recorder, &sample, a->max_depth, &a->plain.sample);
	*event = &sample->header;
	return err;
}

int assembly__sink(void *assembly, const struct event_header *event)
{
	struct assembly *a = assembly;
	int err = settle(a, &event);

	if (!err && a->writer)
		err = recording_writer__append(a->writer, event);

	if (err)
		return err;
	a->last_time = event->time;
	if (event->type == EVENT_KALLSYMS) {
		const struct kallsyms_event *kallsyms = (const struct kallsyms_event *)event;

		err = event_check(event, event->size);
		return err ? err
			   : symbolizer__add_kallsyms(a->symbolizer, kallsyms->text,
						      kallsyms->text_size);
	}
	err = event_decode(event, &a->handler);
	if (!err && event->type == EVENT_META && !event_check(event, event->size))
		note_kernel(a, (const struct meta_event *)event);
	return err;
}

size_t assembly__thread_count(const struct assembly *a)
{
	return profile_builder__thread_count(a->builder);
}

/* ---- symbols --------------------------------------------------------------------------------- */

/* What is asked of one dso. */
struct symbol_task {
	struct symbolizing *all;
	struct dso_id dso;
	VEC(uint64_t) addresses;
};

struct symbolizing {
	struct assembly *a;
	struct symbol_task *tasks; /* by dso */
	struct symbolizer_job *jobs;
	size_t job_count;
	char losses[LOSSES_SIZE]; /* whose lines are missing, and why */
	size_t losses_used, losses_untold;
};

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int emit_dso(struct assembly *a, struct dso_id id, enum symbol_state state)
{
	struct symbol_dso_event event = {
		.header = {.size = sizeof(event), .type = EVENT_SYMBOL_DSO, .time = a->last_time},
		.dso = id.v,
		.state = state,
	};

	return assembly__sink(a, &event.header);
}

static int emit_symbol(void *context, size_t index, const struct symbol_result *result)
{
	struct symbol_task *task = context;
	struct assembly *a = task->all->a;
	struct symbol_entry entries[SYMBOL_CHAIN_MAX];
	size_t count = result->frame_count < SYMBOL_CHAIN_MAX ? result->frame_count
							      : SYMBOL_CHAIN_MAX;
	int err = index ? 0 : emit_dso(a, task->dso, SYMBOL_STATE_PENDING);

	if (err || (!count && result->elf_address == PROFILE_UNKNOWN_ADDRESS))
		return err;
	for (size_t i = 0; i < count; i++) {
		const struct symbol_frame *frame = &result->frames[i];

		entries[i] = (struct symbol_entry){
			.function = frame->function,
			.file = frame->file,
			.definition_file = frame->definition_file,
			.function_address = frame->function_address,
			.function_size = frame->function_size,
			.line = frame->line,
			.column = frame->column,
			.definition_line = frame->definition_line,
			.definition_column = frame->definition_column,
		};
	}
	symbol_event__encode(&a->out, a->last_time, task->addresses.data[index],
			     result->elf_address, entries, count);
	return assembly__sink(a, &a->out.event.header);
}

/* "libfoo.so: the process that read its debug information died; …" */
static void note_loss(struct symbolizing *s, struct dso_id id, const char *why)
{
	const struct profile_dso *dso = profile_builder__get_dso(s->a->builder, id);
	const char *name = profile_builder__get_string(s->a->builder, dso->name);
	size_t room = sizeof(s->losses) - s->losses_used;
	int length = snprintf(s->losses + s->losses_used, room, "%s%s: %s",
			      s->losses_used ? "; " : "", *name ? name : "[unknown]", why);

	if (length > 0 && (size_t)length < room) {
		s->losses_used += length;
	} else {
		s->losses[s->losses_used] = '\0';
		s->losses_untold++;
	}
}

static int finish_dso(void *context, const struct symbolizer_job *job)
{
	struct symbol_task *task = context;

	if (job->state == SYMBOL_STATE_CANCELLED)
		note_loss(task->all, task->dso, "the user did not wait");
	else if (job->lines_lost)
		note_loss(task->all, task->dso, job->lines_lost);
	return emit_dso(task->all->a, task->dso, job->state);
}

static int push_event(void *context, struct event_header *event)
{
	return assembly__sink(context, event);
}

static int emit_losses(struct symbolizing *s)
{
	struct assembly *a = s->a;
	char text[LOSSES_SIZE + 64];

	if (!s->losses_used && !s->losses_untold)
		return 0;
	snprintf(text, sizeof(text), "%s", s->losses);
	if (s->losses_untold)
		snprintf(text + s->losses_used, sizeof(text) - s->losses_used, "%s%zu more",
			 s->losses_used ? "; and " : "", s->losses_untold);
	return meta_event__emit(push_event, a, a->last_time, META_LINES_MISSING, text);
}

static bool can_be_symbolized(enum dso_kind kind)
{
	return kind == DSO_FILE || kind == DSO_VDSO || kind == DSO_KERNEL;
}

/* The file of a dso, open, and where the dso begins in it; -1 where it is not to be had. */
static int find_file(const struct assembly *a, const struct profile_dso *dso,
		     struct dso_opener *opener, bool live, int *root_fd, uint64_t *base)
{
	struct dso_identity identity = {
		.path = profile_builder__get_string(a->builder, dso->path),
		.build_id = dso->build_id,
		.build_id_size = dso->build_id_size,
		.major = dso->major,
		.minor = dso->minor,
		.inode = dso->inode,
		.inode_generation = dso->inode_generation,
	};
	int fd;

	*root_fd = -1;
	*base = 0;
	if (dso->kind == DSO_KERNEL || !opener)
		return -1;
	if (live)
		return dso_opener__find(opener, &identity, root_fd, base);
	fd = dso_opener__open_by_identity(opener, &identity, base);
	return fd < 0 ? -1 : fd;
}

/* ---- unwinding ------------------------------------------------------------------------------- */

static int file_of_dso(void *context, struct dso_id id, uint64_t *base)
{
	struct assembly *a = context;
	const struct profile_dso *dso = profile_builder__get_dso(a->builder, id);
	int root_fd;

	if (dso->kind != DSO_FILE && dso->kind != DSO_VDSO)
		return -1;
	return find_file(a, dso, a->opener, true, &root_fd, base);
}

static const struct {
	const char *start; /* of the file's name */
	enum fed_kind kind;
} runtimes[] = {
	{"python3", FED_PYTHON}, {"libpython3", FED_PYTHON}, {"pypy", FED_PYPY},
	{"libpypy", FED_PYPY},	 {"luajit", FED_LUAJIT},     {"libluajit", FED_LUAJIT},
};

static enum fed_kind kind_of_dso(void *context, struct dso_id id)
{
	struct assembly *a = context;
	const struct profile_dso *dso = profile_builder__get_dso(a->builder, id);
	const char *name = profile_builder__get_string(a->builder, dso->name);

	if (dso->kind == DSO_JIT)
		return FED_JIT;
	if (dso->kind == DSO_FILE && !strcmp(name, "libjvm.so"))
		return FED_JVM;
	for (size_t i = 0; dso->kind == DSO_FILE && i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (!strncmp(name, runtimes[i].start, strlen(runtimes[i].start)))
			return runtimes[i].kind;
	return FED_FILE;
}

static int read_made_frames(void *context, struct made_runtime *runtime, const uint64_t *registers,
			    const struct made_area *areas, size_t area_count,
			    struct made_frame **frames, size_t *count)
{
	(void)context;
	if (runtime->by == MADE_BY_PYPY)
		return pypy__frames((pid_t)runtime->tgid, areas, area_count, frames, count);
	return luajit__frames(runtime, registers ? registers[LUAJIT_DISPATCH] : 0, areas,
			      area_count, frames, count);
}

static bool jvm_keeps_frame_pointers(void *context, uint32_t tgid, struct elf_file *library,
				     uint64_t bias)
{
	(void)context;
	return hotspot__keeps_frame_pointers((pid_t)tgid, library, bias) == 1;
}

int assembly__feed_unwinder(struct assembly *a, const struct unwind_memory *memory,
			    struct dso_opener *opener, unsigned int max_depth, bool cache)
{
	struct unwind_feed_options options = {
		.table_limit = memory->segment_size,
		.file = file_of_dso,
		.kind = kind_of_dso,
		.jvm_keeps_frame_pointers = jvm_keeps_frame_pointers,
		.read_made_frames = read_made_frames,
		.context = a,
	};
	int err;

	a->max_depth = max_depth;
	a->opener = opener;
	a->tables = options.store = table_store__new(memory);
	if (a->tables && cache)
		options.cache = table_cache__open();
	err = a->tables ? unwind_feed__new(&options, &a->feed) : -ENOMEM;
	if (!err)
		recorder__set_unwind_feed(a->recorder, a->feed);
	return err;
}

int assembly__unwinder_fd(const struct assembly *a)
{
	return a->feed ? unwind_feed__fd(a->feed) : -1;
}

int assembly__take_tables(struct assembly *a)
{
	int err = a->feed ? unwind_feed__take(a->feed) : 0;

	return err || !a->feed ? err : recorder__publish_changed(a->recorder);
}

int assembly__prepare_unwinder(struct assembly *a)
{
	return a->feed ? recorder__publish_targets(a->recorder) : 0;
}

bool assembly__is_building(const struct assembly *a)
{
	return a->feed && unwind_feed__is_building(a->feed);
}

void assembly__end_feeding(struct assembly *a)
{
	if (a->feed)
		unwind_feed__end(a->feed);
}

void assembly__unwind_stats(const struct assembly *a, struct unwind_feed_stats *stats)
{
	*stats = (struct unwind_feed_stats){};
	if (a->feed)
		unwind_feed__stats(a->feed, stats);
}

/* ---- symbols: what is asked ------------------------------------------------------------------ */

static void make_job(struct symbolizing *s, struct dso_id id, struct dso_opener *opener, bool live)
{
	struct assembly *a = s->a;
	const struct profile_dso *dso = profile_builder__get_dso(a->builder, id);
	struct symbol_task *task = &s->tasks[id.v];
	struct symbolizer_job *job = &s->jobs[s->job_count++];

	qsort(task->addresses.data, task->addresses.count, sizeof(uint64_t), compare_addresses);
	task->all = s;
	task->dso = id;
	*job = (struct symbolizer_job){
		.dso =
			{
				.kind = dso->kind,
				.path = profile_builder__get_string(a->builder, dso->path),
				.build_id = dso->build_id,
				.build_id_size = dso->build_id_size,
			},
		.addresses = task->addresses.data,
		.count = task->addresses.count,
		.sink = emit_symbol,
		.done = finish_dso,
		.context = task,
	};
	job->dso.fd = find_file(a, dso, opener, live, &job->dso.root_fd, &job->dso.base);
	if (dso->kind == DSO_KERNEL) {
		job->dso.release = *a->kernel_release ? a->kernel_release : NULL;
		job->dso.build_id = a->kernel_build_id;
		job->dso.build_id_size = a->kernel_build_id_size;
	}
}

/* The addresses of every dso that has symbols to be asked for, by dso. */
static int collect_addresses(struct symbolizing *s)
{
	const struct profile_builder *builder = s->a->builder;
	size_t count = profile_builder__location_count(builder);

	for (uint32_t i = 1; i < count; i++) {
		const struct profile_location *location =
			profile_builder__get_location(builder, (struct location_id){i});
		const struct profile_dso *dso = profile_builder__get_dso(builder, location->dso);
		int err;

		if (!can_be_symbolized(dso->kind))
			continue;
		err = vec_push(&s->tasks[location->dso.v].addresses, location->address);
		if (err)
			return err;
	}
	return 0;
}

int assembly__symbolize(struct assembly *a, struct dso_opener *opener, bool live,
			const struct symbolizer_options *options, struct symbolizer_counts *counts)
{
	struct event_header end = {
		.size = sizeof(end), .type = EVENT_SYMBOLS_END, .time = a->last_time};
	size_t dsos = profile_builder__dso_count(a->builder);
	_cleanup_free_ struct symbol_task *tasks = calloc(dsos + 1, sizeof(*tasks));
	_cleanup_free_ struct symbolizer_job *jobs = calloc(dsos + 1, sizeof(*jobs));
	struct symbolizing s = {.a = a, .tasks = tasks, .jobs = jobs};
	int err = tasks && jobs ? collect_addresses(&s) : -ENOMEM;

	for (uint32_t i = 1; i < dsos && !err; i++)
		if (tasks[i].addresses.count)
			make_job(&s, (struct dso_id){i}, opener, live);
	if (!err)
		err = symbolizer__resolve_all(a->symbolizer, jobs, s.job_count, options, counts);
	if (!err)
		err = emit_losses(&s);
	for (size_t i = 0; tasks && i < dsos; i++)
		vec_free(&tasks[i].addresses);
	return err ? err : assembly__sink(a, &end);
}

int assembly__finish(struct assembly *a, const struct profile **profile, struct failure *failure)
{
	char why[256] = "";
	int err = recorder__finish(a->recorder);

	if (!err)
		err = profile_builder__finish(a->builder, profile, why, sizeof(why));
	if (err == -EINVAL)
		return fail(failure, err, "the profile contradicts itself, which is a bug: %s",
			    why);
	return err ? fail(failure, err, "cannot make the profile: %s", strerror(-err)) : 0;
}

/* ---- recordings ------------------------------------------------------------------------------ */

static int symbolize_cut_short(struct assembly *a, const struct symbolizer_options *options)
{
	struct symbolizer_counts counts = {};
	struct dso_opener *opener;
	int err = dso_opener__new(NULL, &opener);

	if (err)
		return err;
	err = assembly__symbolize(a, opener, false, options, &counts);
	dso_opener__free(opener);
	return err;
}

int assembly__load(const char *path, const struct symbolizer_options *options,
		   struct assembly **assembly, const struct profile **profile,
		   struct recording_summary *summary, struct failure *failure)
{
	/* a pipe that nobody writes to would keep us waiting in open */
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct assembly *a;
	struct stat st;
	int err;

	if (fd < 0)
		return fail(failure, -errno, "cannot open %s: %s", path, strerror(errno));
	if (!fstat(fd, &st) && !S_ISREG(st.st_mode)) {
		fail(failure, -ENOTSUP, "%s is not a regular file, as a recording has to be", path);
		return fail_remedy(failure, -ENOTSUP, "save it to a file first");
	}
	if (!recording_probe(fd)) {
		fail(failure, -ENOEXEC, "%s is not a recording (.sysprof)", path);
		return fail_remedy(failure, -ENOEXEC,
				   "make one with 'sysprof record -o NAME.sysprof …'");
	}
	err = assembly__new(NULL, &a);
	if (err)
		return fail(failure, err, "cannot read %s: no memory", path);
	err = recording_read(fd, assembly__sink, a, summary, failure);
	if (err && failure && !*failure->what)
		fail(failure, err, "cannot read %s: %s", path, strerror(-err));
	if (!err && !summary->has_symbols) {
		err = symbolize_cut_short(a, options);
		if (err)
			fail(failure, err, "cannot read symbols: %s", strerror(-err));
	}
	if (!err)
		err = assembly__finish(a, profile, failure);
	if (err) {
		assembly__free(a);
		return err;
	}
	*assembly = a;
	return 0;
}
