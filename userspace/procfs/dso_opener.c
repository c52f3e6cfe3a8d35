/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a mapping to an open file, as early as can be.
 *
 * Three tables. A `struct image` is one file as it was when it was opened: what it is recognized
 * by, and a descriptor while there are descriptors. A `struct sighting` is a way in which such a
 * file shows in mappings without a build-id: the root of the process, device, inode and path as the
 * kernel tells them. A `struct root` is the root directory of some processes, with its mount:
 * containers and services with mounts of their own have others than ours.
 *
 * A mapping with a build-id that is known needs nothing more, so a thousand execs of one program
 * open it once. One without is looked up among the sightings. As long as the image's descriptor is
 * open its inode cannot be given to another file, so the numbers are enough, but the file can be
 * written over in place: size and modification time are compared each time.
 *
 * Which file is the right one is never decided by its name: its build-id has to be the mapping's
 * or, where the mapping tells none, its inode. (Not its device: on overlayfs and btrfs stat and
 * maps tell different ones.) The places tried, in order: the name below the process's root; the
 * mapping itself, by map_files, which has deleted and replaced files too; and, for a process that
 * is gone, the same name below its parent's root, ours and the latest ones known.
 *
 * Descriptors are a limited good. Beyond the limit an image is recognized but not kept, and opened
 * again when it is asked for.
 */
#include "procfs/dso_opener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/hashmap.h"
#include "base/mapping_path.h"
#include "base/tenant_open.h"
#include "base/vec.h"
#include "base/zip.h"
#include "elf/elf_file.h"
#include "procfs/vdso.h"

#define FILE_SIZE_MAX  (8ULL << 30)
#define FD_LIMIT_MAX   (1u << 20) /* the kernel's own default maximum */
#define FD_RESERVE     256u	  /* for everybody else in this process */
#define FD_ON_DEMAND   128u	  /* of the reserve, for images that were not kept */
#define ROOTS_MAX      1024u
#define ROOTS_TRIED    16u
#define PLAIN_KEPT     16u
#define TABLE_MAX      (1u << 18)
#define MEMBERS_MAX    4096u
#define MEMBERS_SOUGHT 256u /* in one archive */
/* CPU time for reading archives' directories: so much at once, and a 50th of the time that passes. */
#define ARCHIVE_CREDIT	200000000ll /* ns */
#define ARCHIVE_DIVISOR 50
#define NO_ROOT		(-1)
#define VDSO_NAME	"[vdso]"
#define ARCHIVE_MARK	"!/" /* between an archive's path and a name in there */
#define COMPAT_ADDRESS	(1ULL << 32)

struct build_id {
	uint8_t size; /* 0: none */
	uint8_t bytes[BUILD_ID_SIZE];
};

struct root {
	uint32_t major, minor;
	uint64_t inode, mount;
	int fd;
};

struct image {
	int fd;	  /* -1: not kept */
	int root; /* number of the root below which `path` led to it, or NO_ROOT */
	char *path;
	struct build_id build_id;
	dev_t device; /* as stat tells */
	ino_t inode;
	off_t size;
	struct timespec modified;
	bool archive;	     /* a zip, and no ELF file */
	unsigned int sought; /* times that its directory was read */
};

/* A library that lies in an archive, and is mapped from there. */
struct member {
	uint32_t archive; /* image */
	uint64_t offset, size;
	struct build_id build_id;
	/* of the archive, as mappings tell it */
	uint32_t major, minor;
	uint64_t inode, generation;
	char *path; /* the archive's, and "!/" and the name in there */
};

struct sighting {
	int root;
	uint32_t major, minor;
	uint64_t inode, generation;
	char *path; /* without " (deleted)" */
	uint32_t image;
};

/* A memfd that holds no ELF file. */
struct plain_memory {
	uint32_t major, minor;
	uint64_t inode;
};

struct dso_opener {
	VEC(struct image) images;
	struct hashmap by_build_id;
	struct hashmap by_inode; /* those without a build-id, by stat's device and inode */
	VEC(struct sighting) sightings;
	struct hashmap by_sighting; /* all fields but the image; a generation of 0 equals any */
	struct hashmap by_identity; /* no root, and the very generation */
	VEC(struct member) members;
	VEC(struct root) roots;
	int own_root; /* number */
	size_t fds, fd_limit;
	struct rlimit original_limit;
	uint32_t vdso; /* image, or HASHMAP_NONE */
	bool vdso_tried;
	uint64_t vdso_length;
	/* /proc tells all mappings of a process in one go: its root, for that long */
	uint32_t last_pid;
	uint64_t last_time;
	int last_root;
	struct plain_memory plain[PLAIN_KEPT]; /* the latest */
	unsigned int next_plain;
	int64_t archive_credit;	   /* ns of CPU */
	uint64_t archive_credited; /* when, CLOCK_MONOTONIC */
	uint64_t opens, events;
};

/* The file looked for, and where it was mapped. */
struct wanted {
	const char *path;
	size_t path_length; /* without " (deleted)" */
	struct build_id build_id;
	uint32_t major, minor;
	uint64_t inode, generation;
	/* of a live process; pid 0: none */
	pid_t pid, tid, parent;
	uint64_t start, end;
	bool just_read; /* the mapping has just been read from /proc */
};

/* A file that was opened on the way, with the facts about it. */
struct found {
	int fd;
	int root;
	struct stat st;
	struct build_id build_id;
	bool elf, archive;
	const char *path; /* below the root; NULL: no name leads to it */
	size_t path_length;
};

static bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

static void build_id_set(struct build_id *id, const uint8_t *bytes, size_t size)
{
	id->size = size > BUILD_ID_SIZE ? BUILD_ID_SIZE : size;
	memset(id->bytes, 0, sizeof(id->bytes));
	if (id->size > 0)
		memcpy(id->bytes, bytes, id->size);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static uint64_t hash_build_id(const struct build_id *id)
{
	return hash_bytes(id->bytes, id->size);
}

static bool image_has_build_id(const void *owner, uint32_t index, const void *key)
{
	const struct dso_opener *o = owner;

	return build_id_equal(&o->images.data[index].build_id, key);
}

static uint64_t hash_inode(const struct stat *st)
{
	return hash_combine(hash_u64(st->st_dev), hash_u64(st->st_ino));
}

static bool image_has_inode(const void *owner, uint32_t index, const void *key)
{
	const struct image *image = &((const struct dso_opener *)owner)->images.data[index];
	const struct stat *st = key;

	return image->device == st->st_dev && image->inode == st->st_ino;
}

struct sighting_key {
	const struct wanted *wanted;
	int root;
};

/* Leaves out the root and the generation: they decide in the end, but seldom. */
static uint64_t hash_wanted(const struct wanted *w)
{
	return hash_combine(hash_bytes(w->path, w->path_length),
			    hash_combine(hash_u64(w->inode), (uint64_t)w->major << 32 | w->minor));
}

static bool sighting_has_numbers(const struct sighting *s, const struct wanted *w)
{
	return s->inode == w->inode && s->major == w->major && s->minor == w->minor &&
	       !strncmp(s->path, w->path, w->path_length) && s->path[w->path_length] == '\0';
}

static bool sighting_is(const void *owner, uint32_t index, const void *key)
{
	const struct sighting *s = &((const struct dso_opener *)owner)->sightings.data[index];
	const struct sighting_key *k = key;

	return s->root == k->root && sighting_has_numbers(s, k->wanted) &&
	       (s->generation == k->wanted->generation || s->generation == 0 ||
		k->wanted->generation == 0);
}

static bool sighting_has_identity(const void *owner, uint32_t index, const void *key)
{
	const struct sighting *s = &((const struct dso_opener *)owner)->sightings.data[index];
	const struct wanted *w = key;

	return sighting_has_numbers(s, w) && s->generation == w->generation;
}

/* ---- roots ----------------------------------------------------------------------------------- */

static bool may_keep_fd(const struct dso_opener *o)
{
	return o->fds < o->fd_limit;
}

/* The number of a root directory, whose descriptor is taken over or closed; or negative errno. */
static int add_root(struct dso_opener *o, int root_fd)
{
	_cleanup_close_ int fd = root_fd;
	struct statx stx;
	struct root root;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &stx))
		return -errno;
	root = (struct root){stx.stx_dev_major, stx.stx_dev_minor, stx.stx_ino, stx.stx_mnt_id, fd};
	for (size_t i = 0; i < o->roots.count; i++) {
		const struct root *known = &o->roots.data[i];

		if (known->inode == root.inode && known->mount == root.mount &&
		    known->major == root.major && known->minor == root.minor)
			return i;
	}
	if (o->roots.count >= ROOTS_MAX || !may_keep_fd(o))
		return -EMFILE;
	if (vec_push(&o->roots, root))
		return -ENOMEM;
	fd = -1;
	o->fds++;
	return o->roots.count - 1;
}

/* The root of a live process (or thread): its number, or negative errno. */
static int root_of(struct dso_opener *o, pid_t pid)
{
	int fd = pid > 0 ? tenant_root(pid) : -ESRCH;

	return fd < 0 ? fd : add_root(o, fd);
}

/* The process's root; a leader that has ended has none any more, but its threads have. */
static int wanted_root(struct dso_opener *o, const struct wanted *w)
{
	int root = root_of(o, w->pid);

	return root < 0 && w->tid != w->pid ? root_of(o, w->tid) : root;
}

/* ---- new and free ---------------------------------------------------------------------------- */

static void raise_limit(struct dso_opener *o)
{
	struct rlimit limit = {1024, 1024};
	rlim_t most;

	getrlimit(RLIMIT_NOFILE, &limit);
	o->original_limit = limit;
	most = limit.rlim_max > FD_LIMIT_MAX ? FD_LIMIT_MAX : limit.rlim_max;
	if (most > limit.rlim_cur) {
		struct rlimit raised = {most, limit.rlim_max};

		if (!setrlimit(RLIMIT_NOFILE, &raised))
			limit.rlim_cur = most;
	}
	if (limit.rlim_cur > FD_LIMIT_MAX)
		limit.rlim_cur = FD_LIMIT_MAX;
	o->fd_limit = limit.rlim_cur > 2 * FD_RESERVE ? limit.rlim_cur - FD_RESERVE
						      : limit.rlim_cur / 2;
}

int dso_opener__new(struct dso_opener **opener)
{
	struct dso_opener *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	hashmap__init(&o->by_build_id, image_has_build_id, o);
	hashmap__init(&o->by_inode, image_has_inode, o);
	hashmap__init(&o->by_sighting, sighting_is, o);
	hashmap__init(&o->by_identity, sighting_has_identity, o);
	o->vdso = HASHMAP_NONE;
	o->last_root = NO_ROOT;
	o->archive_credit = ARCHIVE_CREDIT;
	o->archive_credited = monotonic_ns();
	raise_limit(o);
	o->own_root = root_of(o, getpid());
	*opener = o;
	return 0;
}

void dso_opener__free(struct dso_opener *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->images.count; i++) {
		if (o->images.data[i].fd >= 0)
			close(o->images.data[i].fd);
		free(o->images.data[i].path);
	}
	for (size_t i = 0; i < o->sightings.count; i++)
		free(o->sightings.data[i].path);
	for (size_t i = 0; i < o->roots.count; i++)
		close(o->roots.data[i].fd);
	for (size_t i = 0; i < o->members.count; i++)
		free(o->members.data[i].path);
	vec_free(&o->members);
	vec_free(&o->images);
	vec_free(&o->sightings);
	vec_free(&o->roots);
	hashmap__fini(&o->by_build_id);
	hashmap__fini(&o->by_inode);
	hashmap__fini(&o->by_sighting);
	hashmap__fini(&o->by_identity);
	free(o);
}

void dso_opener__original_limit(const struct dso_opener *o, struct rlimit *limit)
{
	*limit = o->original_limit;
}

/* ---- looking for the right file -------------------------------------------------------------- */

/* False: no ELF file begins there. */
static bool read_build_id(int fd, uint64_t base, struct build_id *id)
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

/* How far a search got that found nothing: the worst that is known, the later the more telling. */
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

/* Is this opened file the one? Takes the descriptor: 0 and *found, or it is closed and -ESTALE. */
static int check_found(const struct wanted *w, int opened, const struct stat *st, bool mapped,
		       struct found *found)
{
	_cleanup_close_ int fd = opened;

	if (w->build_id.size == 0 && st->st_ino != w->inode && !(mapped && w->just_read))
		return -ESTALE;
	found->elf = read_build_id(fd, 0, &found->build_id);
	found->archive = !found->elf && zip_is_archive(fd);
	if (w->build_id.size > 0 && !build_id_equal(&w->build_id, &found->build_id))
		return -ESTALE;
	found->st = *st;
	found->fd = fd;
	fd = -1;
	return 0;
}

static int try_path(struct dso_opener *o, const struct wanted *w, int root, const char *path,
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

/* The path below a root: as it is, and, if no file has that very name, without " (deleted)". */
static int try_root(struct dso_opener *o, const struct wanted *w, int root, struct found *found,
		    enum file_state *state)
{
	_cleanup_free_ char *shorter = NULL;
	int err;

	if (root < 0) {
		note_failure(state, root);
		return root;
	}
	err = try_path(o, w, root, w->path, found);
	if (err == -ENOENT && w->path[w->path_length]) {
		shorter = strndup(w->path, w->path_length);
		err = shorter ? try_path(o, w, root, shorter, found) : -ENOMEM;
	}
	if (err)
		note_failure(state, err);
	return err;
}

static int try_mapped(struct dso_opener *o, const struct wanted *w, int root, struct found *found,
		      enum file_state *state)
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

/* The roots of others, for a process that is gone. */
static int try_other_roots(struct dso_opener *o, const struct wanted *w, struct found *found,
			   enum file_state *state)
{
	size_t known = o->roots.count;
	int parent = root_of(o, w->parent);

	if (parent >= 0 && !try_root(o, w, parent, found, state))
		return 0;
	if (o->own_root >= 0 && o->own_root != parent && !try_root(o, w, o->own_root, found, state))
		return 0;
	for (size_t i = 0; i < ROOTS_TRIED && i < known; i++) {
		int root = known - 1 - i;

		if (root != parent && root != o->own_root && !try_root(o, w, root, found, state))
			return 0;
	}
	return -ENOENT;
}

static bool begins_with(const char *path, const char *beginning)
{
	return !strncmp(path, beginning, strlen(beginning));
}

static bool is_memfd(const char *path)
{
	return begins_with(path, "/memfd:");
}

/* What a runtime writes its code into, if it is no ELF file: nobody else can open it. */
static bool may_be_memory(const char *path)
{
	return is_memfd(path) || mapping_is_deleted(path);
}

/* A file that no path leads to; the last two stand for names that perf could not tell. */
static bool is_nameless(const char *path)
{
	return is_memfd(path) || !strcmp(path, "//toolong") || !strcmp(path, "//enomem");
}

/* 0 and *found, or what is to be said about the file in *state. */
static int search(struct dso_opener *o, const struct wanted *w, int root, struct found *found,
		  enum file_state *state)
{
	*state = FILE_STATE_MISSING;
	if (!is_nameless(w->path) && !try_root(o, w, root, found, state))
		return 0;
	if (!try_mapped(o, w, root, found, state))
		return 0;
	if (root >= 0 || is_nameless(w->path))
		return -ENOENT; /* the process lives, and has no such file */
	return try_other_roots(o, w, found, state);
}

/* ---- images ---------------------------------------------------------------------------------- */

static bool same_content(const struct image *image, const struct stat *st)
{
	return image->size == st->st_size && image->modified.tv_sec == st->st_mtim.tv_sec &&
	       image->modified.tv_nsec == st->st_mtim.tv_nsec;
}

static bool is_unchanged(const struct image *image)
{
	struct stat st;

	return image->fd >= 0 && !fstat(image->fd, &st) && same_content(image, &st);
}

/* The image that this file already is, or HASHMAP_NONE. */
static uint32_t known_image(const struct dso_opener *o, const struct found *found)
{
	uint32_t index;

	if (found->build_id.size > 0)
		return hashmap__find(&o->by_build_id, hash_build_id(&found->build_id),
				     &found->build_id);
	index = hashmap__find(&o->by_inode, hash_inode(&found->st), &found->st);
	if (index == HASHMAP_NONE || !same_content(&o->images.data[index], &found->st))
		return HASHMAP_NONE;
	return index;
}

static int index_image(struct dso_opener *o, uint32_t index, const struct found *found)
{
	if (found->build_id.size > 0)
		return hashmap__add(&o->by_build_id, hash_build_id(&found->build_id), index);
	hashmap__remove(&o->by_inode, hash_inode(&found->st), &found->st); /* as it was before */
	return hashmap__add(&o->by_inode, hash_inode(&found->st), index);
}

/* Keep the descriptor if there is room, else close it: -1. */
static int keep_fd(struct dso_opener *o, int fd)
{
	if (!may_keep_fd(o)) {
		close(fd);
		return -1;
	}
	o->fds++;
	return fd;
}

/* Take over what was found, whose descriptor is kept or closed. 0, -ENOMEM; -ENOSPC: too many. */
static int add_image(struct dso_opener *o, const struct found *found, uint32_t *index)
{
	struct image image = {
		.fd = found->fd,
		.root = found->root,
		.build_id = found->build_id,
		.device = found->st.st_dev,
		.inode = found->st.st_ino,
		.size = found->st.st_size,
		.modified = found->st.st_mtim,
		.archive = found->archive,
	};
	int err = -ENOMEM;

	if (found->path) {
		image.path = strndup(found->path, found->path_length);
		if (!image.path)
			goto err_out;
	}
	if (o->images.count >= TABLE_MAX)
		err = -ENOSPC;
	if (o->images.count >= TABLE_MAX || vec_push(&o->images, image))
		goto err_out;
	err = index_image(o, o->images.count - 1, found);
	if (err) {
		o->images.count--;
		goto err_out;
	}
	*index = o->images.count - 1;
	o->images.data[*index].fd = keep_fd(o, found->fd);
	return 0;
err_out:
	free(image.path);
	close(found->fd);
	return err;
}

static int adopt(struct dso_opener *o, const struct found *found, uint32_t *index)
{
	struct image *image;

	*index = known_image(o, found);
	if (*index == HASHMAP_NONE)
		return add_image(o, found, index);
	image = &o->images.data[*index];
	if (is_unchanged(image)) {
		close(found->fd);
		return 0;
	}
	if (image->fd >= 0) { /* written over meanwhile, but here is what it was */
		close(image->fd);
		o->fds--;
	}
	image->fd = keep_fd(o, found->fd);
	image->size = found->st.st_size;
	image->modified = found->st.st_mtim;
	return 0;
}

/* Remember under which numbers the image shows. Without it, it will just be opened again. */
static int add_sighting(struct dso_opener *o, const struct wanted *w, int root, uint32_t image)
{
	struct sighting sighting = {root, w->major, w->minor, w->inode, w->generation, NULL, image};
	struct sighting_key key = {w, root};
	uint64_t hash = hash_wanted(w);
	uint32_t index = hashmap__find(&o->by_sighting, hash, &key);
	int err;

	if (index != HASHMAP_NONE) { /* the file was written over */
		o->sightings.data[index].image = image;
		return 0;
	}
	if (o->sightings.count >= TABLE_MAX)
		return 0;
	sighting.path = strndup(w->path, w->path_length);
	if (!sighting.path || vec_push(&o->sightings, sighting)) {
		free(sighting.path);
		return -ENOMEM;
	}
	index = o->sightings.count - 1;
	err = hashmap__add(&o->by_sighting, hash, index);
	if (!err && hashmap__find(&o->by_identity, hash, w) == HASHMAP_NONE)
		err = hashmap__add(&o->by_identity, hash, index);
	return err; /* half indexed does no harm */
}

/* ---- the vDSO ---------------------------------------------------------------------------------- */

/* Our own vDSO is everybody's (but for 32-bit programs'). Its image, or HASHMAP_NONE. */
static uint32_t vdso_image(struct dso_opener *o)
{
	struct found found = {.root = NO_ROOT};

	if (o->vdso_tried)
		return o->vdso;
	o->vdso_tried = true;
	found.fd = vdso_copy(&o->vdso_length);
	if (found.fd < 0)
		return HASHMAP_NONE;
	if (fstat(found.fd, &found.st)) {
		close(found.fd);
		return HASHMAP_NONE;
	}
	found.elf = read_build_id(found.fd, 0, &found.build_id);
	if (adopt(o, &found, &o->vdso))
		o->vdso = HASHMAP_NONE;
	return o->vdso;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Is this mapping one that no file can be found for? */
static bool has_no_file(const char *path)
{
	if (path[0] != '/' || (path[1] == '/' && !is_nameless(path)))
		return true;
	return begins_with(path, "/dev/zero") || begins_with(path, "/SYSV") ||
	       begins_with(path, "/anon_hugepage");
}

static void tell_build_id(const struct build_id *id, struct mmap_event *event)
{
	if (id->size == 0)
		return;
	event->build_id_size = id->size;
	memcpy(event->build_id, id->bytes, sizeof(event->build_id));
	event->header.flags |= EVENT_BUILD_ID;
}

static void tell_image(const struct dso_opener *o, uint32_t index, struct mmap_event *event)
{
	const struct image *image = &o->images.data[index];

	event->file_state = image->fd >= 0 ? FILE_STATE_RIGHT : FILE_STATE_NO_FDS;
	tell_build_id(&image->build_id, event);
}

static void see_vdso(struct dso_opener *o, struct mmap_event *event)
{
	uint32_t image = vdso_image(o);

	event->file_state = FILE_STATE_UNOPENED;
	if (image == HASHMAP_NONE || event->length != o->vdso_length ||
	    (sizeof(void *) == 8 && event->start < COMPAT_ADDRESS))
		return;
	tell_image(o, image, event);
}

static struct wanted wanted_by_event(const struct mmap_event *event, pid_t parent)
{
	struct wanted w = {
		.path = event->path,
		.path_length = mapping_path_length(event->path),
		.major = event->major,
		.minor = event->minor,
		.inode = event->inode,
		.generation = event->inode_generation,
		.pid = event->pid,
		.tid = event->tid,
		.parent = parent,
		.start = event->start,
		.end = event->start + event->length,
		.just_read = (event->header.flags & EVENT_FROM_PROC) != 0,
	};

	if (event->header.flags & EVENT_BUILD_ID)
		build_id_set(&w.build_id, event->build_id, event->build_id_size);
	return w;
}

static int event_root(struct dso_opener *o, const struct wanted *w, const struct mmap_event *event)
{
	if (w->just_read && o->last_pid == event->pid && o->last_time == event->header.time)
		return o->last_root;
	o->last_root = wanted_root(o, w);
	o->last_pid = event->pid;
	o->last_time = event->header.time;
	return o->last_root;
}

/* An image that these numbers have shown before and that is still what it was. */
static uint32_t sighted_image(struct dso_opener *o, const struct wanted *w, int root,
			      struct mmap_event *event)
{
	struct sighting_key key = {w, root};
	uint32_t index = hashmap__find(&o->by_sighting, hash_wanted(w), &key);
	const struct sighting *sighting;

	if (index == HASHMAP_NONE)
		return HASHMAP_NONE;
	sighting = &o->sightings.data[index];
	if (!is_unchanged(&o->images.data[sighting->image]))
		return HASHMAP_NONE;
	event->inode_generation = sighting->generation;
	return sighting->image;
}

/* Code that a runtime writes into a memfd is mapped again and again, and is no file to be read. */
static bool is_plain_memory(const struct dso_opener *o, const struct wanted *w)
{
	for (size_t i = 0; i < PLAIN_KEPT; i++) {
		const struct plain_memory *plain = &o->plain[i];

		if (plain->inode == w->inode && plain->major == w->major &&
		    plain->minor == w->minor)
			return may_be_memory(w->path) && w->build_id.size == 0;
	}
	return false;
}

static void add_plain_memory(struct dso_opener *o, const struct wanted *w)
{
	o->plain[o->next_plain] = (struct plain_memory){w->major, w->minor, w->inode};
	o->next_plain = (o->next_plain + 1) % PLAIN_KEPT;
}

static int open_and_tell(struct dso_opener *o, const struct wanted *w, int root,
			 struct mmap_event *event)
{
	enum file_state state;
	struct found found = {};
	uint32_t image;
	int err;

	if (search(o, w, root, &found, &state)) {
		event->file_state = state;
		return 0;
	}
	if (may_be_memory(w->path) && !found.elf && !found.archive) {
		close(found.fd);
		add_plain_memory(o, w);
		event->file_state = FILE_STATE_NONE;
		return 0;
	}
	err = adopt(o, &found, &image);
	if (err == -ENOSPC) {
		tell_build_id(&found.build_id, event);
		event->file_state = FILE_STATE_NO_FDS;
		return 0;
	}
	if (err)
		return err;
	if (w->build_id.size == 0)
		err = add_sighting(o, w, root, image);
	tell_image(o, image, event);
	return err;
}

int dso_opener__see(struct dso_opener *o, struct mmap_event *event, pid_t parent)
{
	struct wanted w = wanted_by_event(event, parent);
	uint32_t image;
	int root;

	o->events++;
	if (!strcmp(event->path, VDSO_NAME)) {
		see_vdso(o, event);
		return 0;
	}
	event->file_state = FILE_STATE_NONE;
	if (has_no_file(event->path) || is_plain_memory(o, &w))
		return 0;
	event->file_state = FILE_STATE_UNOPENED;
	if (w.build_id.size == 0 && w.inode == 0)
		return 0; /* nothing to recognize it by */
	if (w.build_id.size > 0) {
		image = hashmap__find(&o->by_build_id, hash_build_id(&w.build_id), &w.build_id);
		if (image != HASHMAP_NONE && (o->images.data[image].fd >= 0 || !may_keep_fd(o))) {
			tell_image(o, image, event);
			return 0;
		}
	}
	root = event_root(o, &w, event);
	if (w.build_id.size == 0) {
		image = sighted_image(o, &w, root, event);
		if (image != HASHMAP_NONE) {
			tell_image(o, image, event);
			return 0;
		}
	}
	return open_and_tell(o, &w, root, event);
}

/* ---- asked for by identity ------------------------------------------------------------------- */

static struct wanted wanted_by_identity(const struct dso_identity *identity)
{
	struct wanted w = {
		.path = identity->path ? identity->path : "",
		.major = identity->major,
		.minor = identity->minor,
		.inode = identity->inode,
		.generation = identity->inode_generation,
	};

	w.path_length = mapping_path_length(w.path);
	build_id_set(&w.build_id, identity->build_id, identity->build_id_size);
	return w;
}

static uint32_t find_image(struct dso_opener *o, const struct wanted *w)
{
	uint32_t index;

	if (w->build_id.size > 0)
		return hashmap__find(&o->by_build_id, hash_build_id(&w->build_id), &w->build_id);
	if (!strcmp(w->path, VDSO_NAME))
		return o->vdso;
	index = hashmap__find(&o->by_identity, hash_wanted(w), w);
	return index == HASHMAP_NONE ? HASHMAP_NONE : o->sightings.data[index].image;
}

/* Open an image that was not kept: its path has to lead to the same file still. */
static int reopen(struct dso_opener *o, struct image *image)
{
	struct wanted w = {
		.path = image->path,
		.path_length = image->path ? strlen(image->path) : 0,
		.build_id = image->build_id,
		.inode = image->inode,
	};
	struct found found;

	if (!image->path || image->root < 0 || o->fds >= o->fd_limit + FD_ON_DEMAND)
		return -1;
	if (try_path(o, &w, image->root, image->path, &found))
		return -1;
	if (image->build_id.size == 0 && !same_content(image, &found.st)) {
		close(found.fd);
		return -1;
	}
	image->modified = found.st.st_mtim;
	image->size = found.st.st_size;
	image->fd = found.fd;
	o->fds++;
	return image->fd;
}

/* Without a build-id it is known by where it was mapped from, as sightings are. */
static bool member_is(const struct member *m, const struct wanted *w)
{
	if (w->build_id.size > 0)
		return build_id_equal(&w->build_id, &m->build_id);
	return !m->build_id.size && m->inode == w->inode && m->major == w->major &&
	       m->minor == w->minor && m->generation == w->generation &&
	       !strncmp(m->path, w->path, w->path_length) && !m->path[w->path_length];
}

/* The descriptor of an image, which is what it was, and has this build-id at `base`; -1. */
static int image_fd(struct dso_opener *o, struct image *image, uint64_t base,
		    const struct build_id *build_id)
{
	struct build_id now;

	if (image->fd < 0)
		return reopen(o, image);
	if (is_unchanged(image))
		return image->fd;
	read_build_id(image->fd, base, &now); /* written over while it was mapped */
	return now.size > 0 && build_id_equal(&now, build_id) ? image->fd : -1;
}

static int find_fd(struct dso_opener *o, uint32_t index, uint64_t base,
		   const struct build_id *build_id, int *root_fd)
{
	struct image *image = &o->images.data[index];

	if (root_fd && image->root >= 0)
		*root_fd = o->roots.data[image->root].fd;
	return image_fd(o, image, base, build_id);
}

/* A library in an archive. It may be in several, some of which are not there any more. */
static int find_member(struct dso_opener *o, const struct wanted *w, int *root_fd, uint64_t *base)
{
	int fd = -1;

	for (size_t i = 0; i < o->members.count && fd < 0; i++) {
		const struct member *m = &o->members.data[i];

		if (!member_is(m, w))
			continue;
		*base = m->offset;
		if (root_fd)
			*root_fd = -1;
		fd = find_fd(o, m->archive, m->offset, &m->build_id, root_fd);
	}
	return fd;
}

int dso_opener__find(struct dso_opener *o, const struct dso_identity *identity, int *root_fd,
		     uint64_t *base)
{
	struct wanted w = wanted_by_identity(identity);
	uint32_t index = find_image(o, &w);

	if (root_fd)
		*root_fd = -1;
	*base = 0;
	if (index == HASHMAP_NONE)
		return find_member(o, &w, root_fd, base);
	return find_fd(o, index, 0, &o->images.data[index].build_id, root_fd);
}

/* ---- archives -------------------------------------------------------------------------------- */

static const struct member *member_at(const struct dso_opener *o, uint32_t archive, uint64_t offset)
{
	for (size_t i = 0; i < o->members.count; i++) {
		const struct member *m = &o->members.data[i];

		if (m->archive == archive && offset >= m->offset && offset - m->offset < m->size)
			return m;
	}
	return NULL;
}

/* zip_find(), while there is credit; -EAGAIN: there is none. */
static int find_entry(struct dso_opener *o, int fd, uint64_t offset, struct zip_entry *entry)
{
	uint64_t now = monotonic_ns(), begin = thread_cpu_ns();
	int err;

	o->archive_credit += (now - o->archive_credited) / ARCHIVE_DIVISOR;
	o->archive_credited = now;
	if (o->archive_credit > ARCHIVE_CREDIT)
		o->archive_credit = ARCHIVE_CREDIT;
	if (o->archive_credit <= 0)
		return -EAGAIN;
	err = zip_find(fd, offset, entry);
	o->archive_credit -= thread_cpu_ns() - begin;
	return err;
}

/* The library at this offset of an archive: 0 and *member, or NULL where there is none; -ENOMEM. */
static int add_member(struct dso_opener *o, uint32_t archive, const struct wanted *w,
		      uint64_t offset, const struct member **member)
{
	struct image *image = &o->images.data[archive];
	struct member m = {
		.archive = archive,
		.major = w->major,
		.minor = w->minor,
		.inode = w->inode,
		.generation = w->generation,
	};
	struct zip_entry entry;
	int err;

	*member = NULL;
	if (image->fd < 0 || image->sought == MEMBERS_SOUGHT || o->members.count == MEMBERS_MAX)
		return 0;
	err = find_entry(o, image->fd, offset, &entry);
	image->sought += err != -EAGAIN;
	if (err || !read_build_id(image->fd, entry.offset, &m.build_id))
		return err == -ENOMEM ? err : 0;
	m.offset = entry.offset;
	m.size = entry.size;
	if (asprintf(&m.path, "%.*s" ARCHIVE_MARK "%s", (int)w->path_length, w->path, entry.name) <
	    0)
		return -ENOMEM;
	if (strlen(m.path) >= EVENT_PATH_MAX) {
		free(m.path);
		return 0;
	}
	if (vec_push(&o->members, m)) {
		free(m.path);
		return -ENOMEM;
	}
	*member = &o->members.data[o->members.count - 1];
	return 0;
}

static void tell_member(const struct member *member, const struct mmap_event *event,
			struct mmap_event_space *space)
{
	struct mmap_event *inner = &space->event;
	size_t size;

	memset(space, 0, sizeof(*space));
	memcpy(inner, event, sizeof(*event));
	snprintf(inner->path, EVENT_PATH_MAX, "%s%s", member->path,
		 event->path + mapping_path_length(event->path));
	size = sizeof(*inner) + strlen(inner->path) + 1;
	inner->header.size = (size + EVENT_ALIGN - 1) & ~(size_t)(EVENT_ALIGN - 1);
	inner->page_offset -= member->offset;
	tell_build_id(&member->build_id, inner);
}

int dso_opener__enter(struct dso_opener *o, const struct mmap_event *event,
		      struct mmap_event_space *inner)
{
	struct wanted w = wanted_by_event(event, 0);
	const struct member *member;
	uint32_t index;
	int err;

	if (event->file_state != FILE_STATE_RIGHT || w.build_id.size > 0)
		return 0;
	index = find_image(o, &w);
	if (index == HASHMAP_NONE || !o->images.data[index].archive)
		return 0;
	member = member_at(o, index, event->page_offset);
	if (!member) {
		err = add_member(o, index, &w, event->page_offset, &member);
		if (err || !member)
			return err;
	}
	tell_member(member, event, inner);
	return 1;
}

/* A library below our own root by a name like "/x/app.apk!/lib/libx.so". 0 or negative errno. */
static int open_member(struct dso_opener *o, const struct wanted *w)
{
	const char *mark = strstr(w->path, ARCHIVE_MARK);
	_cleanup_free_ char *path = mark ? strndup(w->path, mark - w->path) : NULL;
	struct wanted outer = {
		.path = path,
		.major = w->major,
		.minor = w->minor,
		.inode = w->inode,
		.generation = w->generation,
	};
	enum file_state state = FILE_STATE_MISSING;
	const struct member *member;
	struct found found = {};
	struct zip_entry entry;
	uint32_t archive;
	int err;

	if (!path)
		return mark ? -ENOMEM : -ENOENT;
	outer.path_length = strlen(path);
	err = try_root(o, &outer, o->own_root, &found, &state);
	if (!err)
		err = adopt(o, &found, &archive);
	if (err)
		return err;
	if (!o->images.data[archive].archive || o->images.data[archive].fd < 0)
		return -ENOENT;
	err = zip_find_name(o->images.data[archive].fd, mark + strlen(ARCHIVE_MARK), &entry);
	return err ? err : add_member(o, archive, &outer, entry.offset, &member);
}

int dso_opener__open_by_identity(struct dso_opener *o, const struct dso_identity *identity,
				 uint64_t *base)
{
	struct wanted w = wanted_by_identity(identity);
	enum file_state state = FILE_STATE_MISSING;
	struct found found = {};
	uint32_t image;
	int err, fd;

	if (!strcmp(w.path, VDSO_NAME))
		vdso_image(o);
	fd = dso_opener__find(o, identity, NULL, base);
	if (fd >= 0)
		return fd;
	if (has_no_file(w.path) || is_nameless(w.path) || (w.build_id.size == 0 && w.inode == 0))
		return -ENOENT;
	err = try_root(o, &w, o->own_root, &found, &state);
	if (err == -ENOENT || err == -ENOTDIR) {
		err = open_member(o, &w);
	} else if (!err) {
		err = adopt(o, &found, &image);
		if (!err && w.build_id.size == 0)
			err = add_sighting(o, &w, o->own_root, image);
	}
	if (err)
		return err;
	fd = dso_opener__find(o, identity, NULL, base);
	return fd < 0 ? -EMFILE : fd;
}

void dso_opener__stats(const struct dso_opener *o, struct dso_opener_stats *stats)
{
	*stats = (struct dso_opener_stats){
		.files = o->images.count,
		.fds = o->fds,
		.fd_limit = o->fd_limit,
		.opens = o->opens,
		.events = o->events,
	};
}
