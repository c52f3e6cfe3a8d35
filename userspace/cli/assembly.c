/* SPDX-License-Identifier: BSD-2-Clause */
/* The stages of assembly.h, put together. */
#include "cli/assembly.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sysprof/symbolizer.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "capture/event_decode.h"
#include "capture/symbol_codec.h"
#include "process/recorder.h"

struct assembly {
	struct profile_builder *builder;
	struct recorder *recorder;
	struct event_handler handler;
	struct symbolizer *symbolizer;
	struct recording_writer *writer;
	uint64_t last_time; /* of the stream; symbols come after it */
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
	symbolizer__free(a->symbolizer);
	profile_builder__free(a->builder);
	free(a);
}

void assembly__set_writer(struct assembly *a, struct recording_writer *writer)
{
	a->writer = writer;
}

int assembly__sink(void *assembly, const struct event_header *event)
{
	struct assembly *a = assembly;
	int err = a->writer ? recording_writer__append(a->writer, event) : 0;

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
	return event_decode(event, &a->handler);
}

size_t assembly__thread_count(const struct assembly *a)
{
	return profile_builder__thread_count(a->builder);
}

/* ---- symbols --------------------------------------------------------------------------------- */

struct address_list {
	VEC(uint64_t) addresses;
};

struct symbolizing {
	struct assembly *a;
	const uint64_t *addresses; /* of the dso at hand */
	size_t done, total;
	assembly_progress_fn progress;
	void *progress_context;
};

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int emit_symbol(void *context, size_t index, const struct symbol_result *result)
{
	struct symbolizing *s = context;
	struct symbol_entry entries[SYMBOL_CHAIN_MAX];
	size_t count = result->frame_count < SYMBOL_CHAIN_MAX ? result->frame_count
							      : SYMBOL_CHAIN_MAX;

	s->done++;
	if (s->progress)
		s->progress(s->progress_context, s->done, s->total);
	if (!count && result->elf_address == PROFILE_UNKNOWN_ADDRESS)
		return 0;
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
	symbol_event__encode(&s->a->out, s->a->last_time, s->addresses[index], result->elf_address,
			     entries, count);
	return assembly__sink(s->a, &s->a->out.event.header);
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

static bool can_be_symbolized(enum dso_kind kind)
{
	return kind == DSO_FILE || kind == DSO_VDSO || kind == DSO_KERNEL;
}

/* The file of a dso, open; -1 where it is not to be had. */
static int find_file(const struct assembly *a, const struct profile_dso *dso,
		     struct dso_opener *opener, bool live, int *root_fd)
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
	if (dso->kind == DSO_KERNEL || !opener)
		return -1;
	if (live)
		return dso_opener__find(opener, &identity, root_fd);
	fd = dso_opener__open_by_identity(opener, &identity);
	return fd < 0 ? -1 : fd;
}

static int symbolize_dso(struct symbolizing *s, struct dso_id id, struct address_list *list,
			 struct dso_opener *opener, bool live)
{
	struct assembly *a = s->a;
	const struct profile_dso *dso = profile_builder__get_dso(a->builder, id);
	enum symbol_state state = SYMBOL_STATE_PENDING;
	struct symbolizer_dso wanted = {
		.kind = dso->kind,
		.path = profile_builder__get_string(a->builder, dso->path),
		.build_id = dso->build_id,
		.build_id_size = dso->build_id_size,
	};
	int err;

	qsort(list->addresses.data, list->addresses.count, sizeof(uint64_t), compare_addresses);
	s->addresses = list->addresses.data;
	wanted.fd = find_file(a, dso, opener, live, &wanted.root_fd);
	err = emit_dso(a, id, state);
	if (!err)
		err = symbolizer__resolve(a->symbolizer, &wanted, list->addresses.data,
					  list->addresses.count, emit_symbol, s, &state);
	return err ? err : emit_dso(a, id, state);
}

/* The addresses of every dso that has symbols to be asked for, by dso. */
static int collect_addresses(const struct assembly *a, struct address_list *lists, size_t *total)
{
	size_t count = profile_builder__location_count(a->builder);

	*total = 0;
	for (uint32_t i = 1; i < count; i++) {
		const struct profile_location *location =
			profile_builder__get_location(a->builder, (struct location_id){i});
		const struct profile_dso *dso = profile_builder__get_dso(a->builder, location->dso);
		int err;

		if (!can_be_symbolized(dso->kind))
			continue;
		err = vec_push(&lists[location->dso.v].addresses, location->address);
		if (err)
			return err;
		(*total)++;
	}
	return 0;
}

int assembly__symbolize(struct assembly *a, struct dso_opener *opener, bool live,
			assembly_progress_fn progress, void *context)
{
	struct symbolizing s = {.a = a, .progress = progress, .progress_context = context};
	struct event_header end = {
		.size = sizeof(end), .type = EVENT_SYMBOLS_END, .time = a->last_time};
	size_t dsos = profile_builder__dso_count(a->builder);
	struct address_list *lists = calloc(dsos ? dsos : 1, sizeof(*lists));
	int err = lists ? collect_addresses(a, lists, &s.total) : -ENOMEM;

	for (uint32_t i = 1; i < dsos && !err; i++)
		if (lists[i].addresses.count)
			err = symbolize_dso(&s, (struct dso_id){i}, &lists[i], opener, live);
	for (size_t i = 0; lists && i < dsos; i++)
		vec_free(&lists[i].addresses);
	free(lists);
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

static int symbolize_cut_short(struct assembly *a)
{
	struct dso_opener *opener;
	int err = dso_opener__new(&opener);

	if (err)
		return err;
	err = assembly__symbolize(a, opener, false, NULL, NULL);
	dso_opener__free(opener);
	return err;
}

int assembly__load(const char *path, struct assembly **assembly, const struct profile **profile,
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
		err = symbolize_cut_short(a);
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
