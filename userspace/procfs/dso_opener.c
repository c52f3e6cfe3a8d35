/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens the file of a mapping, as early as possible.
 *
 * An image is a file in the state in which it was opened: its identity and a descriptor (dso_images.c). A
 * mapping with a known build-id needs only one table lookup, so a thousand execs of one program open it
 * once. A mapping without a build-id is looked up in the sightings: the device, inode and path with which
 * such files were mapped before (dso_sightings.c). If the file is unknown or no longer open, it is searched
 * for (dso_searches.c, dso_waits.c) below the root directory of its process, which differs from ours for containers and
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
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/log.h"
#include "procfs/dso_opener_private.h"
#include "procfs/vdso.h"
#include "helpers/pool.h"

#define SIGHTINGS_MAX  32768u
#define MEMBERS_MAX    4096u
#define IDLE	       30000000000ull /* ns */
#define FD_LIMIT_MAX   (1u << 20)     /* the kernel's own default maximum */
#define FD_RESERVE     256u	      /* for the rest of this process */
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
	caps->images_max = caps->images_max ? caps->images_max : quota_row(QUOTA_FILES)->all.limit;
	caps->fds_max = caps->fds_max ? caps->fds_max : quota_row(QUOTA_DESCRIPTORS)->all.limit;
	caps->fds_max = caps->fds_max < fds ? caps->fds_max : fds;
	caps->roots_max = caps->roots_max ? caps->roots_max : quota_row(QUOTA_ROOTS)->all.limit;
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
	o->pool = o->caps.readers;
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
	dso_waits__fini(o);
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
	found.facts.elf = file_search__read_build_id(found.fd, 0, &found.facts.build_id);
	found.facts.shared = true; /* from our own memory, where the kernel has put it */
	if (dso_images__adopt(o, &found, &o->vdso))
		o->vdso = HASHMAP_NONE;
	else
		dso_images__hold(o, o->vdso);
	return o->vdso;
}

/* ---- mappings -------------------------------------------------------------------------------- */

/* The error of an answer that came outside of a call. */
static int take_error(struct dso_opener *o)
{
	int err = o->err;

	o->err = 0;
	return err;
}

/* Is this a mapping for which no file can be found? */
static bool has_no_file(const char *path)
{
	if (path[0] != '/' || (path[1] == '/' && !file_search__is_nameless(path)))
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

/* There is none to spare: all are used. */
static void note_no_descriptor(struct dso_opener *o, struct mmap_event *event)
{
	event->file_state = FILE_STATE_NO_FDS;
	outside_books__add(o->caps.books, outside_books__user_of(o->caps.books, (pid_t)event->pid),
			   OUTSIDE_OPEN_FILES, OUTSIDE_BY_ALL, 1);
}

void dso_event__set_image(struct dso_opener *o, struct mmap_event *event, uint32_t index)
{
	const struct dso_image *image = &o->images.data[index];

	event->file_state = FILE_STATE_RIGHT;
	if (image->fd < 0)
		note_no_descriptor(o, event);
	dso_images__report(o, index, event);
	dso_images__use(o, index);
}

static void complete_vdso(struct dso_opener *o, struct mmap_event *event)
{
	uint32_t image = vdso_image(o);

	event->file_state = FILE_STATE_UNOPENED;
	if (image == HASHMAP_NONE || event->length != o->vdso_length ||
	    (sizeof(void *) == 8 && event->start < COMPAT_ADDRESS))
		return;
	dso_event__set_image(o, event, image);
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

/* A mapping with a build-id and no file: its file is unknown, so it is not merged with another one. */
static void keep_apart(struct mmap_event *event)
{
	if (event->build_id_size)
		event->header.flags |= EVENT_UNSHARED;
}

/* The image of the found file; a file that is memory for code has none. 0, -ENOSPC, -ENOMEM. */
static int adopt_found(struct dso_opener *o, const struct wanted *w, int root,
		       const struct found *found, uint32_t *image)
{
	int err;

	*image = HASHMAP_NONE;
	if (may_be_memory(w->path) && !found->facts.elf && !found->facts.archive) {
		close(found->fd);
		add_plain_memory(o, w);
		return 0;
	}
	err = dso_images__adopt(o, found, image);
	/* the name of a process without a root may be of any file */
	if (!err && (root >= 0 || w->build_id.size == 0 || o->images.data[*image].shared))
		err = dso_sightings__add(o, w, root, *image);
	return err;
}

int dso_event__complete(struct dso_opener *o, struct mmap_event *event, const struct wanted *w,
			int root, const struct found *found, uint32_t *image)
{
	int err = adopt_found(o, w, root, found, image);

	if (err == -ENOSPC) {
		dso_event__set_build_id(event, &found->facts.build_id);
		note_no_descriptor(o, event);
		keep_apart(event);
		return 0;
	}
	if (err)
		return err;
	event->file_state = FILE_STATE_NONE;
	if (*image != HASHMAP_NONE)
		dso_event__set_image(o, event, *image);
	return 0;
}

void dso_event__give_up(struct mmap_event *event, enum file_state state)
{
	log_debug(LOG_PROCFS, "%s of process %d: %s", event->path, (int)event->pid,
		  file_state_texts[state]);
	event->file_state = state;
	keep_apart(event);
}

/*
 * The image that a mapping of a process which is gone shows: there is one that stands for its build-id, and it has
 * that very name.
 */
static uint32_t image_of_the_gone(const struct dso_opener *o, const struct wanted *w)
{
	uint32_t image = w->build_id.size ? dso_images__with_build_id(o, &w->build_id)
					  : HASHMAP_NONE;
	const char *path = image == HASHMAP_NONE ? NULL : o->images.data[image].path;

	return path && !strncmp(path, w->path, w->path_length) && !path[w->path_length]
		       ? image
		       : HASHMAP_NONE;
}

/* Is the file known completely? Then *image is its image, HASHMAP_NONE: none. */
static bool complete_at_once(struct dso_opener *o, struct mmap_event *event, const struct wanted *w,
			     int root, uint32_t *image)
{
	uint64_t generation = w->generation;

	if (root < 0 && w->build_id.size)
		*image = image_of_the_gone(o, w);
	else
		*image = dso_sightings__image(o, w, root, &generation);
	if (*image == HASHMAP_NONE)
		return false;
	if (o->images.data[*image].root < 0 && root >= 0) /* its own was evicted */
		dso_images__set_place(o, *image, root, w->path, w->path_length);
	event->inode_generation = generation;
	dso_event__set_image(o, event, *image);
	return true;
}

/* Is there nothing to look for? */
static bool needs_no_file(const struct dso_opener *o, struct mmap_event *event,
			  const struct wanted *w)
{
	event->file_state = FILE_STATE_NONE;
	if (has_no_file(event->path) || is_plain_memory(o, w))
		return true;
	event->file_state = FILE_STATE_UNOPENED;
	return w->build_id.size == 0 && w->inode == 0; /* nothing to recognize it by */
}

/* For a mapping of an archive the answer is about the library that is mapped from it. */
int dso_event__answer(struct dso_opener *o, struct mmap_event *event, const struct wanted *w,
		      uint32_t image, mapping_answer_fn answer, void *context)
{
	struct mmap_event_space inner;
	int entered = 0;

	if (image != HASHMAP_NONE && o->images.data[image].archive &&
	    event->file_state == FILE_STATE_RIGHT)
		entered = dso_archives__enter(o, image, w, event, &inner);
	return entered < 0 ? entered : answer(context, entered ? &inner.event : event);
}

/* Mappings without an answer here wait. */
static int see_file(struct dso_opener *o, struct mmap_event *event, pid_t parent,
		    mapping_answer_fn answer, void *context)
{
	struct wanted w = wanted_by_event(event, parent);
	uint32_t image = HASHMAP_NONE;
	int root;

	if (needs_no_file(o, event, &w))
		return answer(context, event);
	root = dso_roots__of_event(o, &w, event);
	if (!complete_at_once(o, event, &w, root, &image))
		return dso_waits__event(o, event, &w, root, answer, context);
	w.generation = event->inode_generation;
	return dso_event__answer(o, event, &w, image, answer, context);
}

int dso_opener__see(struct dso_opener *o, struct mmap_event *event, pid_t parent,
		    mapping_answer_fn answer, void *context)
{
	int err;

	o->events++;
	advance_time(o, event->header.time);
	if (!strcmp(event->path, VDSO_NAME)) {
		complete_vdso(o, event);
		return answer(context, event);
	}
	err = see_file(o, event, parent, answer, context);
	return err ? err : take_error(o);
}

int dso_opener__pass(struct dso_opener *o, struct event_header *event, event_push_fn push,
		     void *context)
{
	return dso_waits__pass(o, event, push, context);
}

uint64_t dso_opener__pending_since(const struct dso_opener *o)
{
	return dso_waits__since(o);
}

/* ---- readers --------------------------------------------------------------------------------- */

int dso_opener__step(struct dso_opener *o)
{
	if (o->pool)
		helper_pool__step(o->pool);
	dso_waits__pass_on(o);
	return take_error(o);
}

int dso_opener__settle(struct dso_opener *o, uint64_t patience)
{
	if (o->pool && helper_pool__waiting(o->pool))
		helper_pool__settle(o->pool, patience);
	dso_waits__pass_on(o);
	return take_error(o);
}

int dso_opener__finish(struct dso_opener *o, uint64_t patience)
{
	int err = dso_opener__settle(o, patience);

	if (o->pool)
		helper_pool__end(o->pool);
	dso_waits__pass_on(o);
	return err ? err : take_error(o);
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
		.unshared = identity->unshared,
	};

	w.path_length = mapping_path_length(w.path);
	build_id_set(&w.build_id, identity->build_id, identity->build_id_size);
	return w;
}

static uint32_t find_image(struct dso_opener *o, const struct wanted *w)
{
	if (w->build_id.size > 0 && w->unshared && w->inode)
		return dso_images__of_file(o, w);
	if (w->build_id.size > 0)
		return w->unshared ? image_of_the_gone(o, w)
				   : dso_images__with_build_id(o, &w->build_id);
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
	struct file_answer reply = {.fd = located->fd, .root_fd = -1, .base = located->base};
	uint32_t image = located->image;
	int root, err;

	if (image == HASHMAP_NONE)
		return answer(context, &reply);
	root = o->images.data[image].root;
	if (o->images.data[image].copied)
		reply.copied_for = o->images.data[image].copied_for;
	dso_images__hold(o, image);
	if (root >= 0) {
		dso_roots__hold(o, root);
		reply.root_fd = o->roots.data[root].fd;
	}
	err = answer(context, &reply);
	if (root >= 0)
		dso_roots__unhold(o, root);
	dso_images__unhold(o, image);
	return err;
}

/* A request for a file that is being opened again. */
struct reopening {
	uint32_t image;
	char *path;
	struct wanted wanted;
	file_answer_fn answer;
	void *context;
};

/* A search_done_fn. */
static void finish_reopening(struct dso_opener *o, void *context, const struct found *found,
			     enum file_state state)
{
	struct reopening *r = context;
	struct located located;
	bool replaced = found ? !dso_images__reopened(o, r->image, found)
			      : state == FILE_STATE_REPLACED;
	int err;

	locate_file(o, &r->wanted, &located);
	if (located.fd == -EAGAIN)
		located.fd = replaced ? -ESTALE : -ENOENT;
	err = answer_about(o, &located, r->answer, r->context);
	o->err = o->err ? o->err : err;
	dso_images__unhold(o, r->image);
	if (o->fds > o->caps.fds_max) /* no room to keep it */
		dso_images__close(o, r->image);
	free(r->path);
	free(r);
}

/* 0: there will be an answer, or was one; else there is none. */
static int reopen_file(struct dso_opener *o, const struct wanted *w, uint32_t image,
		       file_answer_fn answer, void *context)
{
	struct reopening *r = malloc(sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	*r = (struct reopening){image, strdup(w->path), *w, answer, context};
	r->wanted.path = r->path;
	dso_images__hold(o, image);
	err = r->path ? dso_images__reopen(o, image, finish_reopening, r) : -ENOMEM;
	if (err) {
		dso_images__unhold(o, image);
		free(r->path);
		free(r);
	}
	return err;
}

/* The file of an image, opened again if need be. */
static int answer_located(struct dso_opener *o, const struct wanted *w, struct located *located,
			  file_answer_fn answer, void *context)
{
	int err;

	if (located->fd == -EAGAIN) {
		err = reopen_file(o, w, located->image, answer, context);
		if (err != -ENOENT)
			return err ? err : take_error(o);
		located->fd = -ENOENT;
	}
	return answer_about(o, located, answer, context);
}

int dso_opener__request(struct dso_opener *o, const struct dso_identity *identity,
			file_answer_fn answer, void *context)
{
	struct wanted w = wanted_by_identity(identity);
	struct located located;

	advance_time(o, monotonic_ns());
	locate_file(o, &w, &located);
	return answer_located(o, &w, &located, answer, context);
}

/* Searches below our own root: the owner does not matter, because the user named the recording. */
static int open_by_identity(struct dso_opener *o, const struct wanted *w, struct located *located)
{
	struct found found = {};
	uint32_t image;
	int err;

	if (has_no_file(w->path) || file_search__is_nameless(w->path) ||
	    (w->build_id.size == 0 && w->inode == 0))
		return -ENOENT;
	err = dso_searches__own(o, w, &found);
	if (err == -ENOENT || err == -ENOTDIR) {
		err = dso_archives__open_by_name(o, w);
		if (!err)
			locate_file(o, w, located);
		return err;
	}
	if (!err)
		err = dso_images__adopt(o, &found, &image);
	if (!err && w->build_id.size == 0)
		err = dso_sightings__add(o, w, o->own_root, image);
	if (err)
		return err;
	*located = (struct located){.image = image};
	dso_images__locate(o, located, &o->images.data[image].build_id);
	return 0;
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
	if (located.fd < 0 && located.fd != -EAGAIN) {
		err = open_by_identity(o, &w, &located);
		if (err == -ENOMEM)
			return err;
		if (err)
			located.fd = err;
	}
	return answer_located(o, &w, &located, answer, context);
}

static struct dso_image *open_image(struct dso_opener *o, const struct dso_identity *identity,
				    uint32_t *index)
{
	struct wanted w = wanted_by_identity(identity);
	struct dso_image *image;

	*index = find_image(o, &w);
	image = *index == HASHMAP_NONE ? NULL : &o->images.data[*index];
	return image && image->fd >= 0 ? image : NULL;
}

bool dso_opener__is_deleted(struct dso_opener *o, const struct dso_identity *identity)
{
	struct statx st;
	uint32_t index;
	const struct dso_image *image = open_image(o, identity, &index);

	/* what is known already: its file system need not answer */
	return image &&
	       !statx(image->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_NLINK, &st) &&
	       st.stx_nlink == 0;
}

void dso_opener__release(struct dso_opener *o, const struct dso_identity *identity)
{
	uint32_t index;

	if (open_image(o, identity, &index))
		dso_images__close(o, index);
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
