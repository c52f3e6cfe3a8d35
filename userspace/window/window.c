/* SPDX-License-Identifier: BSD-2-Clause */
#include "window/window.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"

/* ---- files ----------------------------------------------------------------------------------- */

struct window_request {
	struct window *window;
	uint32_t dso;
};

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

static int take_file(void *context, const struct file_answer *answer)
{
	struct window_request request = *(struct window_request *)context;
	struct window *w = request.window;

	free(context);
	w->unanswered--;
	if (w->is_freed) {
		if (!w->unanswered)
			free(w);
		return 0;
	}
	w->files.data[request.dso] = (struct window_file){
		.fd = copy_descriptor(answer->fd),
		.root_fd = keep_root(w, answer->root_fd),
		.base = answer->base,
		.copied_for = answer->copied_for,
	};
	return 0;
}

static struct dso_identity identity_of(const struct window *w, const struct profile_dso *dso)
{
	return (struct dso_identity){
		.path = profile_builder__get_string(w->builder, dso->path),
		.build_id = dso->build_id,
		.build_id_size = dso->build_id_size,
		.major = dso->major,
		.minor = dso->minor,
		.inode = dso->inode,
		.inode_generation = dso->inode_generation,
		.unshared = dso->unshared,
	};
}

static int request_file(struct window *w, uint32_t dso, struct dso_opener *opener,
			enum window_file_source source)
{
	struct dso_identity identity =
		identity_of(w, profile_builder__get_dso(w->builder, (struct dso_id){dso}));
	struct window_request *request = malloc(sizeof(*request));

	if (!request)
		return -ENOMEM;
	*request = (struct window_request){w, dso};
	w->unanswered++;
	return source == WINDOW_FILES_LIVE
		       ? dso_opener__request(opener, &identity, take_file, request)
		       : dso_opener__request_by_identity(opener, &identity, take_file, request);
}

static int reserve_files(struct window *w, size_t count)
{
	while (w->files.count < count)
		if (vec_push(&w->files, ((struct window_file){.fd = -1, .root_fd = -1})))
			return -ENOMEM;
	return 0;
}

/* Files of dsos with samples. */
static int request_files(struct window *w, struct dso_opener *opener,
			 enum window_file_source source)
{
	size_t dsos = profile_builder__dso_count(w->builder);
	size_t locations = profile_builder__location_count(w->builder);
	_cleanup_free_ bool *sampled = calloc(dsos + 1, sizeof(*sampled));
	int err = sampled ? reserve_files(w, dsos) : -ENOMEM;

	for (uint32_t i = 1; i < locations && !err; i++)
		sampled[profile_builder__get_location(w->builder, (struct location_id){i})->dso.v] =
			true;
	for (uint32_t i = 1; i < dsos && !err; i++) {
		const struct profile_dso *dso = profile_builder__get_dso(w->builder,
									 (struct dso_id){i});

		if (sampled[i] && (dso->kind == DSO_FILE || dso->kind == DSO_VDSO))
			err = request_file(w, i, opener, source);
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
	err = copy_jit_processes(w, recorder);
	if (!err && opener)
		err = request_files(w, opener, source);
	if (err) {
		window__free(w);
		return NULL;
	}
	return w;
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
	vec_free(&w->jit_processes);
	vec_free(&w->jit_files);
	profile_builder__free(w->builder);
	w->is_freed = true;
	if (!w->unanswered)
		free(w);
}
