/* SPDX-License-Identifier: BSD-2-Clause */
#include "window/window.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sysprof/profile_code.h>

#include "base/cleanup.h"
#include "base/order.h"
#include "world/image_table.h"

/* ---- files ----------------------------------------------------------------------------------- */

static int copy_descriptor(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static bool same_root(const struct statx *a, const struct statx *b)
{
	return a->stx_ino == b->stx_ino && a->stx_dev_major == b->stx_dev_major &&
	       a->stx_dev_minor == b->stx_dev_minor && a->stx_mnt_id == b->stx_mnt_id;
}

/* Many files share a few roots, so keeps one descriptor of each. -1 on failure. */
static int keep_root(struct window *w, int root_fd)
{
	struct window_root root = {.fd = -1};

	if (root_fd < 0 ||
	    statx(root_fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &root.identity))
		return -1;
	for (size_t i = 0; i < w->roots.count; i++)
		if (same_root(&w->roots.data[i].identity, &root.identity))
			return w->roots.data[i].fd;
	root.fd = copy_descriptor(root_fd);
	if (root.fd >= 0 && vec_push(&w->roots, root)) {
		close(root.fd);
		return -1;
	}
	return root.fd;
}

static int take_file(void *context, uint32_t dso, const struct file_answer *answer)
{
	struct window *w = context;

	w->unanswered--;
	if (w->is_freed) {
		if (!w->unanswered)
			free(w);
		return 0;
	}
	w->files.data[dso] = *answer;
	w->files.data[dso].fd = copy_descriptor(answer->fd);
	w->files.data[dso].root_fd = keep_root(w, answer->root_fd);
	return 0;
}

/* The number of the file. 0; -ENOMEM; or another error: this machine does not have it. */
static int find_file(struct dso_opener *opener, const struct image *image,
		     enum window_file_source source, uint64_t *file)
{
	struct mmap_event_space space;
	int err;

	*file = image->file;
	if (source == WINDOW_FILES_LIVE)
		return 0;
	image__fill_event(image, &space);
	err = dso_opener__find(opener, &space.event);
	*file = space.event.file;
	return err;
}

int window_request_file(struct dso_opener *opener, const struct image *image,
			enum window_file_source source, const struct file_request *request)
{
	uint64_t file;
	int err = find_file(opener, image, source, &file);

	if (err)
		return err == -ENOMEM ? err : 0;
	return dso_opener__request(opener, file, request);
}

static int request_file(struct window *w, uint32_t dso, const struct image *image,
			struct dso_opener *opener, enum window_file_source source)
{
	uint64_t file;
	int err = find_file(opener, image, source, &file);

	if (err)
		return err == -ENOMEM ? err : 0;
	w->unanswered++;
	return dso_opener__request(opener, file, &(struct file_request){take_file, w, dso});
}

static int reserve_files(struct window *w, size_t count)
{
	while (w->files.count < count)
		if (vec_push(&w->files, ((struct file_answer){.fd = -1, .root_fd = -1})))
			return -ENOMEM;
	return 0;
}

/* Files of dsos with samples. */
static int request_files(struct window *w, const struct recorder *recorder,
			 struct dso_opener *opener, enum window_file_source source)
{
	size_t dsos = profile_builder__dso_count(w->builder), images;
	size_t locations = profile_builder__location_count(w->builder);
	const struct dso_id *dso_of = recorder__dsos(recorder, &images);
	_cleanup_free_ bool *sampled = calloc(dsos + 1, sizeof(*sampled));
	int err = sampled ? reserve_files(w, dsos) : -ENOMEM;

	for (uint32_t i = 1; i < locations && !err; i++)
		sampled[profile_builder__get_location(w->builder, (struct location_id){i})->dso.v] =
			true;
	for (uint32_t i = 1; i < images && !err; i++) {
		const struct image *image = recorder__image(recorder, (struct image_id){i});

		if (dso_of[i].v && sampled[dso_of[i].v] &&
		    (image->dso.kind == DSO_FILE || image->dso.kind == DSO_VDSO))
			err = request_file(w, dso_of[i].v, image, opener, source);
	}
	return err;
}

static bool has_scripts(const struct profile_builder *builder)
{
	for (uint32_t i = 1; i < profile_builder__dso_count(builder); i++)
		if (dso_kind_is_made(profile_builder__get_dso(builder, (struct dso_id){i})->kind))
			return true;
	return false;
}

/* Stacks with code that a process made. NULL: no memory. */
static bool *find_made_stacks(const struct profile_builder *builder)
{
	size_t count = profile_builder__stack_count(builder);
	bool *made = calloc(count + 1, sizeof(*made));

	/* a stack comes after its parent */
	for (uint32_t i = 1; made && i < count; i++) {
		const struct profile_stack *stack =
			profile_builder__get_stack(builder, (struct stack_id){i});
		const struct profile_location *l = profile_builder__get_location(builder,
										 stack->location);

		made[i] = made[stack->parent.v] ||
			  dso_kind_is_made(profile_builder__get_dso(builder, l->dso)->kind);
	}
	return made;
}

/* Processes with such stacks. */
static int find_makers(struct profile_builder *builder, bool *is_maker)
{
	_cleanup_free_ bool *made = find_made_stacks(builder);
	size_t threads = profile_builder__thread_count(builder);

	for (uint32_t t = 1; made && t <= threads; t++) {
		const struct builder_samples samples =
			profile_builder__samples(builder, (struct thread_id){t}, SAMPLE_CPU);

		is_maker[samples.process.v] |= any_of(samples.stack, samples.count, stack,
						      made[stack->v]);
	}
	return made ? 0 : -ENOMEM;
}

static int find_process_root(struct window *w, struct dso_opener *opener, struct process_id id)
{
	struct process_root root = {.process = id};
	const struct profile_process *process = profile_builder__get_process(w->builder, id);
	const struct process_times times = {process->start, process->end, process->born};

	root.fd = keep_root(w,
			    dso_opener__root_of(opener, (pid_t)process->pid, &times, &root.user));
	return root.fd < 0 ? 0 : vec_push(&w->process_roots, root);
}

int window__find_process_roots(struct window *w, struct dso_opener *opener)
{
	size_t count = profile_builder__process_count(w->builder);
	_cleanup_free_ bool *is_maker = calloc(count + 1, sizeof(*is_maker));
	int err = is_maker ? 0 : -ENOMEM;

	if (!has_scripts(w->builder))
		return 0;
	if (!err)
		err = find_makers(w->builder, is_maker);
	for (uint32_t i = 1; i < count && !err; i++)
		if (is_maker[i])
			err = find_process_root(w, opener, (struct process_id){i});
	return err;
}

/* Of the same dsos, if their code has no names. Without a build-id any file could be meant. */
static int request_unnamed(struct window *w, struct dso_opener *opener)
{
	size_t dsos = profile_builder__dso_count(w->builder);
	size_t locations = profile_builder__location_count(w->builder);
	_cleanup_free_ bool *unnamed = calloc(dsos + 1, sizeof(*unnamed));
	int err = unnamed ? reserve_files(w, dsos) : -ENOMEM;

	for (uint32_t i = 1; i < locations && !err; i++) {
		const struct profile_location *l =
			profile_builder__get_location(w->builder, (struct location_id){i});

		unnamed[l->dso.v] |= !l->line_count;
	}
	for (uint32_t i = 1; i < dsos && !err; i++) {
		struct image image = {
			.dso = *profile_builder__get_dso(w->builder, (struct dso_id){i})};

		image.path = profile_builder__get_string(w->builder, image.dso.path);
		if (unnamed[i] && image.dso.kind == DSO_FILE && image.dso.build_id_size &&
		    strlen(image.path) < EVENT_PATH_MAX)
			err = request_file(w, i, &image, opener, WINDOW_FILES_BY_IDENTITY);
	}
	return err;
}

/* ---- windows --------------------------------------------------------------------------------- */

static int copy_jit_processes(struct window *w, const struct recorder *recorder)
{
	size_t count;
	const struct jit_process *processes = recorder__jit_processes(recorder, &count);

	for (size_t i = 0; i < count; i++)
		if (vec_push(&w->jit_processes, processes[i]))
			return -ENOMEM;
	return 0;
}

static int copy_kernel_changes(struct window *w, const struct recorder *recorder)
{
	size_t count;
	const uint64_t *times = recorder__kernel_changes(recorder, &count);

	return vec_append(&w->kernel_changes, times, count);
}

struct window *window__new(struct profile_builder *builder, const struct recorder *recorder,
			   struct dso_opener *opener, enum window_file_source source)
{
	struct window *w = calloc(1, sizeof(*w));
	int err;

	if (!w) {
		profile_builder__free(builder);
		return NULL;
	}
	w->builder = builder;
	err = copy_jit_processes(w, recorder) ?: copy_kernel_changes(w, recorder);
	if (!err && opener)
		err = request_files(w, recorder, opener, source);
	if (err) {
		window__free(w);
		return NULL;
	}
	return w;
}

struct window *window__of_import(struct profile_builder *builder, struct dso_opener *opener)
{
	struct window *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->builder = builder;
	w->is_import = true;
	w->last_time = profile_builder__session(builder)->end;
	if (!request_unnamed(w, opener))
		return w;
	w->builder = NULL;
	window__free(w);
	return NULL;
}

void window__free(struct window *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->files.count; i++)
		if (w->files.data[i].fd >= 0)
			close(w->files.data[i].fd);
	for (size_t i = 0; i < w->roots.count; i++)
		close(w->roots.data[i].fd);
	vec_free(&w->files);
	vec_free(&w->roots);
	vec_free(&w->process_roots);
	vec_free(&w->jit_processes);
	vec_free(&w->jit_files);
	vec_free(&w->kernel_changes);
	profile_builder__free(w->builder);
	w->is_freed = true;
	if (!w->unanswered)
		free(w);
}
