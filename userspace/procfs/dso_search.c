/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The search for the file of a mapping.
 *
 * A file is never accepted by its name alone: its build-id must be that of the mapping or, if the mapping has
 * none, its inode. (Not its device: on overlayfs and btrfs, stat and maps report different devices.) These
 * are tried in order: the path below the process's root; the mapping itself, by map_files, which also works
 * for deleted and replaced files; and, if the process has ended, the same path below its parent's root, our
 * root and the most recent known roots.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/tenant_open.h"
#include "base/zip.h"
#include "elf/elf_file.h"
#include "procfs/dso_opener_private.h"

#define FILE_SIZE_MAX (8ULL << 30)
#define ROOTS_TRIED   16u

bool dso_search__read_build_id(int fd, uint64_t base, struct build_id *id)
{
	uint8_t bytes[BUILD_ID_SIZE];
	struct elf_file *file;
	int size;

	id->size = 0;
	if (elf_file__open_at(fd, base, &file))
		return false;
	size = elf_file__build_id(file, bytes, sizeof(bytes));
	elf_file__free(file);
	build_id_set(id, bytes, size > 0 ? size : 0);
	return true;
}

/* Notes why a search failed; of several reasons the last one in `order` is kept. */
static void note_failure(enum file_state *state, int err)
{
	static const enum file_state order[] = {FILE_STATE_MISSING, FILE_STATE_DENIED,
						FILE_STATE_NO_FDS,  FILE_STATE_NOT_REGULAR,
						FILE_STATE_TOO_BIG, FILE_STATE_REPLACED};
	enum file_state now = FILE_STATE_MISSING;
	size_t new_rank = 0, old_rank = 0;

	if (err == -EACCES || err == -EPERM)
		now = FILE_STATE_DENIED;
	else if (err == -EMFILE || err == -ENFILE)
		now = FILE_STATE_NO_FDS;
	else if (err == -ENOTSUP || err == -EISDIR)
		now = FILE_STATE_NOT_REGULAR;
	else if (err == -EFBIG)
		now = FILE_STATE_TOO_BIG;
	else if (err == -ESTALE)
		now = FILE_STATE_REPLACED;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		if (order[i] == now)
			new_rank = i;
		if (order[i] == *state)
			old_rank = i;
	}
	if (new_rank > old_rank)
		*state = now;
}

/* Is this opened file the right one? Takes the descriptor: 0 and *found, or closes it and -ESTALE. */
static int check_found(const struct wanted *w, int opened, const struct stat *st, bool mapped,
		       struct found *found)
{
	_cleanup_close_ int fd = opened;

	if (w->build_id.size == 0 && st->st_ino != w->inode && !(mapped && w->just_read))
		return -ESTALE;
	found->elf = dso_search__read_build_id(fd, 0, &found->build_id);
	found->archive = !found->elf && zip_is_archive(fd);
	if (w->build_id.size > 0 && !build_id_equal(&w->build_id, &found->build_id))
		return -ESTALE;
	found->st = *st;
	found->fd = steal_fd(fd);
	return 0;
}

int dso_search__path(struct dso_opener *o, const struct wanted *w, int root, const char *path,
		     struct found *found)
{
	struct stat st;
	int fd = tenant_open(o->roots.data[root].fd, path, 0, FILE_SIZE_MAX, &st);
	int err;

	if (fd < 0)
		return fd;
	o->opens++;
	err = check_found(w, fd, &st, false, found);
	if (err)
		return err;
	found->root = root;
	found->path = w->path;
	found->path_length = strlen(path);
	return 0;
}

int dso_search__below(struct dso_opener *o, const struct wanted *w, int root, struct found *found,
		      enum file_state *state)
{
	_cleanup_free_ char *shorter = NULL;
	int err;

	if (root < 0) {
		note_failure(state, root);
		return root;
	}
	err = dso_search__path(o, w, root, w->path, found);
	if (err == -ENOENT && w->path[w->path_length]) {
		shorter = strndup(w->path, w->path_length);
		err = shorter ? dso_search__path(o, w, root, shorter, found) : -ENOMEM;
	}
	if (err)
		note_failure(state, err);
	return err;
}

static int search_mapped(struct dso_opener *o, const struct wanted *w, int root,
			 struct found *found, enum file_state *state)
{
	struct stat st;
	int fd = tenant_open_mapped(w->pid, w->start, w->end, FILE_SIZE_MAX, &st);
	int err;

	if (fd < 0 && w->tid != w->pid)
		fd = tenant_open_mapped(w->tid, w->start, w->end, FILE_SIZE_MAX, &st);
	if (fd < 0) {
		note_failure(state, fd);
		return fd;
	}
	o->opens++;
	err = check_found(w, fd, &st, true, found);
	if (err) {
		note_failure(state, err);
		return err;
	}
	found->root = root >= 0 ? root : NO_ROOT;
	found->path = NULL; /* its name leads elsewhere, or nowhere */
	return 0;
}

/* Roots of other processes, for a process that has ended. */
static int search_other_roots(struct dso_opener *o, const struct wanted *w, struct found *found,
			      enum file_state *state)
{
	int parent = dso_roots__of(o, w->parent);
	uint32_t root = lru__newest(&o->root_order);

	if (parent >= 0 && !dso_search__below(o, w, parent, found, state))
		return 0;
	if (o->own_root >= 0 && o->own_root != parent &&
	    !dso_search__below(o, w, o->own_root, found, state))
		return 0;
	for (size_t i = 0; i < ROOTS_TRIED && root != LRU_NONE; i++) {
		if ((int)root != parent && !dso_search__below(o, w, root, found, state))
			return 0;
		root = lru__older(&o->root_order, root);
	}
	return -ENOENT;
}

/* The last two mean that perf could not determine the name. */
bool dso_search__is_nameless(const char *path)
{
	return begins_with(path, "/memfd:") || !strcmp(path, "//toolong") ||
	       !strcmp(path, "//enomem");
}

int dso_search__mapping(struct dso_opener *o, const struct wanted *w, int root, struct found *found,
			enum file_state *state)
{
	bool nameless = dso_search__is_nameless(w->path);

	*state = FILE_STATE_MISSING;
	if (!nameless && !dso_search__below(o, w, root, found, state))
		return 0;
	if (!search_mapped(o, w, root, found, state))
		return 0;
	if (root >= 0 || nameless)
		return -ENOENT; /* the process lives, and has no such file */
	return search_other_roots(o, w, found, state);
}
