/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens the file of a mapping, as early as possible.
 *
 * An image is a file in the state in which it was opened: its identity and a descriptor (dso_images.c). A
 * mapping with a known build-id needs only one table lookup, so a thousand execs of one program open it
 * once. A mapping without a build-id is looked up in the sightings: the device, inode and path with which
 * such files were mapped before (dso_sightings.c). If the file is unknown or no longer open, it is searched
 * for (dso_search.c) below the root directory of its process, which differs from ours for containers and
 * for services with their own mounts (dso_roots.c). A library in a zip archive counts as a file of its own
 * (dso_archives.c).
 *
 * Every table has a cap and an order of last use (lru.h). Mapping a file or requesting it is a use. At a
 * cap the least recently used entry is evicted, so a long session does not run out of entries. If all
 * entries were used within the last half minute, none is evicted: the new file's build-id is reported, the
 * file is not kept open, and a request opens it again. Times are those of the events.
 */
#include "procfs/dso_opener.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/log.h"
#include "procfs/dso_opener_private.h"
#include "procfs/vdso.h"

#define IMAGES_MAX     8192u
#define FDS_MAX	       4096u
#define ROOTS_MAX      1024u
#define SIGHTINGS_MAX  32768u
#define MEMBERS_MAX    4096u
#define IDLE	       30000000000ull /* ns */
#define FD_LIMIT_MAX   (1u << 20)     /* the kernel's own default maximum */
#define FD_RESERVE     256u	      /* for everybody else in this process */
#define COMPAT_ADDRESS (1ULL << 32)

/* ---- new and free ---------------------------------------------------------------------------- */

/* How many descriptors the opener may have of them. */
static size_t raise_fd_limit(struct rlimit *original)
{
	struct rlimit limit = {1024, 1024};
	rlim_t most;

	getrlimit(RLIMIT_NOFILE, &limit);
	*original = limit;
	most = limit.rlim_max > FD_LIMIT_MAX ? FD_LIMIT_MAX : limit.rlim_max;
	if (most > limit.rlim_cur) {
		struct rlimit raised = {most, limit.rlim_max};

		if (!setrlimit(RLIMIT_NOFILE, &raised))
			limit.rlim_cur = most;
	}
	if (limit.rlim_cur > FD_LIMIT_MAX)
		limit.rlim_cur = FD_LIMIT_MAX;
	return limit.rlim_cur > 2 * FD_RESERVE ? limit.rlim_cur - FD_RESERVE : limit.rlim_cur / 2;
}

static void set_caps(struct dso_opener *o, const struct dso_opener_options *options)
{
	struct dso_opener_options *caps = &o->caps;
	size_t fds = raise_fd_limit(&o->original_limit);

	if (options)
		*caps = *options;
	caps->images_max = caps->images_max ? caps->images_max : IMAGES_MAX;
	caps->fds_max = caps->fds_max ? caps->fds_max : FDS_MAX;
	caps->fds_max = caps->fds_max < fds ? caps->fds_max : fds;
	caps->roots_max = caps->roots_max ? caps->roots_max : ROOTS_MAX;
	caps->sightings_max = caps->sightings_max ? caps->sightings_max : SIGHTINGS_MAX;
	caps->members_max = caps->members_max ? caps->members_max : MEMBERS_MAX;
	caps->idle = caps->idle ? caps->idle : IDLE;
}

int dso_opener__new(const struct dso_opener_options *options, struct dso_opener **opener)
{
	struct dso_opener *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	set_caps(o, options);
	dso_images__init(o);
	dso_sightings__init(o);
	dso_archives__init(o);
	dso_roots__init(o);
	*opener = o;
	return 0;
}

void dso_opener__free(struct dso_opener *o)
{
	if (!o)
		return;
	dso_roots__fini(o);
	dso_archives__fini(o);
	dso_sightings__fini(o);
	dso_images__fini(o);
	free(o);
}

void dso_opener__original_limit(const struct dso_opener *o, struct rlimit *limit)
{
	*limit = o->original_limit;
}

/* Events are nearly in time order; a late one counts as current. */
static void advance_time(struct dso_opener *o, uint64_t time)
{
	if (time > o->now)
		o->now = time;
	if (o->now >= o->next_sweep)
		dso_roots__sweep(o);
}

/* ---- the vDSO -------------------------------------------------------------------------------- */

/* All 64-bit processes have the same vDSO as we. Its image, which is always kept, or HASHMAP_NONE. */
static uint32_t vdso_image(struct dso_opener *o)
{
	struct found found = {.root = NO_ROOT};

	if (o->vdso != HASHMAP_NONE || o->now < o->vdso_retry)
		return o->vdso;
	o->vdso_retry = o->now + o->caps.idle;
	found.fd = vdso_copy(&o->vdso_length);
	if (found.fd < 0)
		return HASHMAP_NONE;
	if (fstat(found.fd, &found.st)) {
		close(found.fd);
		return HASHMAP_NONE;
	}
	found.elf = dso_search__read_build_id(found.fd, 0, &found.build_id);
	if (dso_images__adopt(o, &found, &o->vdso))
		o->vdso = HASHMAP_NONE;
	else
		dso_images__hold(o, o->vdso);
	return o->vdso;
}

/* ---- mappings -------------------------------------------------------------------------------- */

/* Is this a mapping for which no file can be found? */
static bool has_no_file(const char *path)
{
	if (path[0] != '/' || (path[1] == '/' && !dso_search__is_nameless(path)))
		return true;
	return begins_with(path, "/dev/zero") || begins_with(path, "/SYSV") ||
	       begins_with(path, "/anon_hugepage");
}

void dso_event__set_build_id(struct mmap_event *event, const struct build_id *id)
{
	if (id->size == 0)
		return;
	event->build_id_size = id->size;
	memcpy(event->build_id, id->bytes, sizeof(event->build_id));
	event->header.flags |= EVENT_BUILD_ID;
}

/* The event shows this image. */
static void set_image(struct dso_opener *o, struct mmap_event *event, uint32_t index)
{
	const struct image *image = &o->images.data[index];

	event->file_state = image->fd >= 0 ? FILE_STATE_RIGHT : FILE_STATE_NO_FDS;
	dso_event__set_build_id(event, &image->build_id);
	dso_images__use(o, index);
}

static void complete_vdso(struct dso_opener *o, struct mmap_event *event)
{
	uint32_t image = vdso_image(o);

	event->file_state = FILE_STATE_UNOPENED;
	if (image == HASHMAP_NONE || event->length != o->vdso_length ||
	    (sizeof(void *) == 8 && event->start < COMPAT_ADDRESS))
		return;
	set_image(o, event, image);
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

/* Memory into which a runtime writes JIT code, if it is no ELF file: no other process can open it. */
static bool may_be_memory(const char *path)
{
	return begins_with(path, "/memfd:") || mapping_is_deleted(path);
}

/*
 * A memfd into which a runtime writes JIT code is mapped repeatedly and is not a file to be read. Its inode may
 * be reused by another file later, so it is checked again after a while.
 */
static bool is_plain_memory(const struct dso_opener *o, const struct wanted *w)
{
	for (size_t i = 0; i < PLAIN_KEPT && w->inode; i++) {
		const struct plain_memory *plain = &o->plain[i];

		if (plain->inode == w->inode && plain->major == w->major &&
		    plain->minor == w->minor && o->now - plain->time <= o->caps.idle)
			return may_be_memory(w->path) && w->build_id.size == 0;
	}
	return false;
}

static void add_plain_memory(struct dso_opener *o, const struct wanted *w)
{
	o->plain[o->next_plain] = (struct plain_memory){w->major, w->minor, w->inode, o->now};
	o->next_plain = (o->next_plain + 1) % PLAIN_KEPT;
}

static const char *const file_state_texts[] = {
#define X(id, text) text,
	FILE_STATES(X)
#undef X
};

/* The file is searched for. *image becomes what it is. */
static int complete_by_search(struct dso_opener *o, struct mmap_event *event,
			      const struct wanted *w, int root, uint32_t *image)
{
	enum file_state state;
	struct found found = {};
	uint32_t index;
	int err;

	if (dso_search__mapping(o, w, root, &found, &state)) {
		log_debug(LOG_PROCFS, "%s of process %d: %s", w->path, w->pid,
			  file_state_texts[state]);
		event->file_state = state;
		return 0;
	}
	if (may_be_memory(w->path) && !found.elf && !found.archive) {
		close(found.fd);
		add_plain_memory(o, w);
		event->file_state = FILE_STATE_NONE;
		return 0;
	}
	err = dso_images__adopt(o, &found, &index);
	if (err == -ENOSPC) {
		dso_event__set_build_id(event, &found.build_id);
		event->file_state = FILE_STATE_NO_FDS;
		return 0;
	}
	if (err)
		return err;
	if (w->build_id.size == 0)
		err = dso_sightings__add(o, w, root, index);
	set_image(o, event, index);
	*image = index;
	return err;
}

/* *image is set to the image of the event, if it has one. 0 or -ENOMEM. */
static int complete_event(struct dso_opener *o, struct mmap_event *event, const struct wanted *w,
			  uint32_t *image)
{
	uint64_t generation;
	int root;

	event->file_state = FILE_STATE_NONE;
	if (has_no_file(event->path) || is_plain_memory(o, w))
		return 0;
	event->file_state = FILE_STATE_UNOPENED;
	if (w->build_id.size == 0 && w->inode == 0)
		return 0; /* nothing to recognize it by */
	root = dso_roots__of_event(o, w, event);
	if (w->build_id.size == 0) {
		*image = dso_sightings__image(o, w, root, &generation);
		if (*image != HASHMAP_NONE) {
			event->inode_generation = generation;
			set_image(o, event, *image);
			return 0;
		}
	}
	return complete_by_search(o, event, w, root, image);
}

/* The root of an image was evicted: use that of the process which maps it now. */
static void give_root(struct dso_opener *o, uint32_t image, const struct mmap_event *event)
{
	struct wanted w = wanted_by_event(event, 0);
	int root = dso_roots__of_event(o, &w, event);

	if (root >= 0)
		dso_images__set_place(o, image, root, w.path, w.path_length);
}

/* Most events have a known build-id of a file that is open, or could not be kept open. */
static bool complete_by_build_id(struct dso_opener *o, struct mmap_event *event)
{
	struct build_id id;
	uint32_t image;

	if (!(event->header.flags & EVENT_BUILD_ID) || !event->build_id_size ||
	    has_no_file(event->path))
		return false;
	build_id_set(&id, event->build_id, event->build_id_size);
	image = dso_images__with_build_id(o, &id);
	if (image == HASHMAP_NONE || (o->images.data[image].fd < 0 && dso_images__make_fd_room(o)))
		return false;
	if (o->images.data[image].root < 0)
		give_root(o, image, event);
	set_image(o, event, image);
	return true;
}

/* For a mapping of an archive the answer is about the library that is mapped from it. */
static int answer_event(struct dso_opener *o, struct mmap_event *event, const struct wanted *w,
			uint32_t image, mapping_answer_fn answer, void *context)
{
	struct mmap_event_space inner;
	int entered = 0;

	if (image != HASHMAP_NONE && o->images.data[image].archive &&
	    event->file_state == FILE_STATE_RIGHT)
		entered = dso_archives__enter(o, image, w, event, &inner);
	return entered < 0 ? entered : answer(context, entered ? &inner.event : event);
}

int dso_opener__see(struct dso_opener *o, struct mmap_event *event, pid_t parent,
		    mapping_answer_fn answer, void *context)
{
	uint32_t image = HASHMAP_NONE;
	struct wanted w;
	int err;

	o->events++;
	advance_time(o, event->header.time);
	if (!strcmp(event->path, VDSO_NAME)) {
		complete_vdso(o, event);
		return answer(context, event);
	}
	if (complete_by_build_id(o, event))
		return answer(context, event);
	w = wanted_by_event(event, parent);
	err = complete_event(o, event, &w, &image);
	if (err)
		return err;
	w.generation = event->inode_generation;
	return answer_event(o, event, &w, image, answer, context);
}

uint64_t dso_opener__pending_since(const struct dso_opener *o)
{
	(void)o;
	return UINT64_MAX;
}

/* ---- files ----------------------------------------------------------------------------------- */

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
	if (w->build_id.size > 0)
		return dso_images__with_build_id(o, &w->build_id);
	if (!strcmp(w->path, VDSO_NAME))
		return o->vdso;
	return dso_sightings__image_by_identity(o, w);
}

static void locate_file(struct dso_opener *o, const struct wanted *w, struct located *located)
{
	uint32_t image = find_image(o, w);

	*located = (struct located){.image = image, .fd = -ENOENT};
	if (image == HASHMAP_NONE)
		dso_archives__locate(o, w, located);
	else
		dso_images__locate(o, located, &o->images.data[image].build_id);
}

/* The image of an answer does not change until the callback has returned. */
static int answer_about(struct dso_opener *o, const struct located *located, file_answer_fn answer,
			void *context)
{
	struct file_answer told = {.fd = located->fd, .root_fd = -1, .base = located->base};
	uint32_t image = located->image;
	int root, err;

	if (image == HASHMAP_NONE)
		return answer(context, &told);
	root = o->images.data[image].root;
	dso_images__hold(o, image);
	if (root >= 0) {
		dso_roots__hold(o, root);
		told.root_fd = o->roots.data[root].fd;
	}
	err = answer(context, &told);
	if (root >= 0)
		dso_roots__unhold(o, root);
	dso_images__unhold(o, image);
	if (located->reopened && o->fds > o->caps.fds_max) /* no room to keep it */
		dso_images__close(o, image);
	return err;
}

int dso_opener__request(struct dso_opener *o, const struct dso_identity *identity,
			file_answer_fn answer, void *context)
{
	struct wanted w = wanted_by_identity(identity);
	struct located located;

	advance_time(o, monotonic_ns());
	locate_file(o, &w, &located);
	return answer_about(o, &located, answer, context);
}

/* Searches below our own root. Returns the image, or negative errno. */
static int open_by_identity(struct dso_opener *o, const struct wanted *w)
{
	enum file_state state = FILE_STATE_MISSING;
	struct found found = {};
	uint32_t image;
	int err;

	if (has_no_file(w->path) || dso_search__is_nameless(w->path) ||
	    (w->build_id.size == 0 && w->inode == 0))
		return -ENOENT;
	err = dso_search__below(o, w, o->own_root, &found, &state);
	if (err == -ENOENT || err == -ENOTDIR)
		return dso_archives__open_by_name(o, w);
	if (!err)
		err = dso_images__adopt(o, &found, &image);
	if (!err && w->build_id.size == 0)
		err = dso_sightings__add(o, w, o->own_root, image);
	return err;
}

int dso_opener__request_by_identity(struct dso_opener *o, const struct dso_identity *identity,
				    file_answer_fn answer, void *context)
{
	struct wanted w = wanted_by_identity(identity);
	struct located located;
	int err;

	advance_time(o, monotonic_ns());
	if (!strcmp(w.path, VDSO_NAME))
		vdso_image(o);
	locate_file(o, &w, &located);
	if (located.fd < 0) {
		err = open_by_identity(o, &w);
		if (err == -ENOMEM)
			return err;
		if (!err)
			locate_file(o, &w, &located);
		else
			located.fd = err;
	}
	return answer_about(o, &located, answer, context);
}

void dso_opener__stats(const struct dso_opener *o, struct dso_opener_stats *stats)
{
	*stats = (struct dso_opener_stats){
		.files = o->image_order.count,
		.fds = o->fds,
		.fd_limit = o->caps.fds_max,
		.roots = o->root_order.count,
		.opens = o->opens,
		.evicted = o->evicted,
		.forgotten = o->forgotten,
		.events = o->events,
	};
}
