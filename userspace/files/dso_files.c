/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/dso_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/proc_task.h"
#include "files/dso_search.h"
#include "tenants/owner.h"

#define UNCHANGED_FOR 1000000000ull /* ns */

static uint64_t hash_build_id(const struct build_id *id)
{
	return hash_bytes(id->bytes, id->size);
}

static uint64_t hash_inode(uint64_t device, uint64_t inode)
{
	return hash_combine(hash_u64(device), hash_u64(inode));
}

static const char *name_of(const struct dso_file *file)
{
	return file->path ? file->path : "a file";
}

void dso_files__init(struct dso_files *f, const struct dso_opener_options *caps,
		     const struct lru_clock *clock, struct dso_roots *roots)
{
	*f = (struct dso_files){.roots = roots, .vdso = HASHMAP_NONE, .books = caps->books};
	lru__init(&f->order, clock, caps->images_max);
	lru__init(&f->open, clock, caps->fds_max);
	dso_sightings__init(&f->sightings, clock, caps->sightings_max);
	dso_archives__init(&f->archives, clock, caps->members_max, caps->books);
	quota__init(&f->copies, QUOTA_FILE_COPIES);
	if (caps->copies_user)
		f->copies.user.limit = caps->copies_user;
	if (caps->copies_all)
		f->copies.all.limit = caps->copies_all;
}

void dso_files__fini(struct dso_files *f)
{
	for (size_t i = 0; i < f->files.count; i++) {
		if (f->files.data[i].fd >= 0)
			close(f->files.data[i].fd);
		free(f->files.data[i].path);
	}
	vec_free(&f->files);
	hashmap__fini(&f->by_build_id);
	hashmap__fini(&f->by_inode);
	lru__fini(&f->order);
	lru__fini(&f->open);
	dso_archives__fini(&f->archives);
	dso_sightings__fini(&f->sightings);
}

/* ---- use ------------------------------------------------------------------------------------- */

void dso_files__use(struct dso_files *f, uint32_t i)
{
	const struct dso_file *file = &f->files.data[i];

	dso_roots__use(f->roots, file->root);
	if (lru__is_held(&f->order, i))
		return;
	lru__use(&f->order, i);
	if (file->fd >= 0)
		lru__use(&f->open, i);
}

void dso_files__hold(struct dso_files *f, uint32_t i)
{
	lru__hold(&f->order, i);
	lru__remove(&f->open, i);
}

void dso_files__unhold(struct dso_files *f, uint32_t i)
{
	if (lru__unhold(&f->order, i))
		dso_files__use(f, i);
}

/* ---- copies in memory ------------------------------------------------------------------------ */

static void discount_copy(struct dso_files *f, struct dso_file *file)
{
	quota__give(&f->copies, file->copied_for, file->copied);
	file->copied = 0;
}

static void count_copy(struct dso_files *f, struct dso_file *file, const struct dso_search *found)
{
	discount_copy(f, file);
	file->copied = found->facts->copied;
	file->copied_for = helper_owner_user(found->owner);
	quota__take(&f->copies, file->copied_for, file->copied, 0);
}

static uint64_t room_of(const struct dso_files *f, uint32_t user)
{
	int64_t left = quota__left(&f->copies, user, 0);

	return left > 0 ? (uint64_t)left : 0;
}

/* Closes the user's copies that were not used for a while, until there is so much room. */
static void evict_copies(struct dso_files *f, uint32_t user, uint64_t bytes)
{
	uint32_t i = lru__idle(&f->open);

	while (i != LRU_NONE && room_of(f, user) < bytes) {
		uint32_t next = lru__next_idle(&f->open, i);
		const struct dso_file *file = &f->files.data[i];

		if (file->copied && file->copied_for == user) {
			dso_files__close(f, i);
			f->evicted++;
		}
		i = next;
	}
}

uint64_t dso_files__copy_room(struct dso_files *f, uint32_t user, uint64_t wanted)
{
	evict_copies(f, user, wanted);
	return min_u64(room_of(f, user), wanted);
}

/* Has it been noted before? The last ones are known. */
static bool is_noted(struct dso_files *f, const struct file_finding *facts)
{
	const uint64_t file[] = {facts->device, facts->inode, facts->size,
				 (uint64_t)facts->changed.tv_sec, (uint64_t)facts->changed.tv_nsec};
	uint64_t hash = hash_bytes(file, sizeof(file));

	for (size_t i = 0; i < COPIES_LEFT; i++)
		if (f->left_copies[i] == hash)
			return true;
	f->left_copies[f->next_left_copy++ % COPIES_LEFT] = hash;
	return false;
}

void dso_files__note_copy(struct dso_files *f, uint32_t user, const struct file_finding *facts,
			  bool by_itself)
{
	const enum outside_reason reason = by_itself ? OUTSIDE_BY_ITSELF
						     : quota__scarcest(&f->copies, user);

	if (!is_noted(f, facts))
		outside_books__add(f->books, user, OUTSIDE_FILE_COPIES, reason, 1);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static size_t fd_count(const struct dso_files *f)
{
	return f->open.count + f->roots->order.count;
}

void dso_files__close(struct dso_files *f, uint32_t i)
{
	struct dso_file *file = &f->files.data[i];

	if (file->fd < 0 || lru__is_held(&f->order, i))
		return;
	lru__leave_place(&f->open, i);
	close(file->fd);
	file->fd = -1;
	discount_copy(f, file);
}

bool dso_files__make_fd_room(void *files, uint64_t owner)
{
	struct dso_files *f = files;

	while (fd_count(f) >= f->open.max) {
		uint32_t i = lru__to_evict(&f->open, owner);

		if (i == LRU_NONE)
			return false;
		log_debug(LOG_PROCFS, "closed %s: not used for a while",
			  name_of(&f->files.data[i]));
		dso_files__close(f, i);
		f->evicted++;
	}
	return true;
}

void dso_files__close_surplus(struct dso_files *f, uint32_t i)
{
	if (fd_count(f) > f->open.max)
		dso_files__close(f, i);
}

/* Open, and as it was when it was opened? */
static bool is_unchanged(struct dso_file *file)
{
	uint64_t now = monotonic_ns();
	struct stat st;

	if (file->fd < 0 || fstat(file->fd, &st) || file->size != st.st_size ||
	    file->modified.tv_sec != st.st_mtim.tv_sec ||
	    file->modified.tv_nsec != st.st_mtim.tv_nsec)
		return false;
	file->unchanged = now;
	return true;
}

/*
 * The same, at the time of the latest event. If the file is shared, a change in the last second is
 * ignored: any file with this build-id is as good, and a reader of the file checks it again.
 */
static bool was_unchanged(const struct dso_files *f, struct dso_file *file)
{
	uint64_t until = file->unchanged && file->shared ? file->unchanged + UNCHANGED_FOR
							 : file->unchanged;

	return (file->fd >= 0 && f->order.clock->now <= until) || is_unchanged(file);
}

/* The found file is this one, which owns the descriptor from now on and drops an earlier one. */
static void set_fd(struct dso_files *f, uint32_t i, const struct dso_search *found)
{
	struct dso_file *file = &f->files.data[i];
	struct stat st;

	file->unchanged = 0;
	/* a copy has times of its own */
	if (!fstat(found->fd, &st)) {
		file->size = st.st_size;
		file->modified = st.st_mtim;
	}
	count_copy(f, file, found);
	if (file->fd < 0) {
		file->fd = found->fd;
		lru__take_place(&f->open, i, lru__owner(&f->order, i));
		return;
	}
	/*
	 * Under the same number, which a pending answer may refer to. The target is open, so this
	 * fails only for a moment (EBUSY, EINTR).
	 */
	while (dup3(found->fd, file->fd, O_CLOEXEC) < 0 && (errno == EBUSY || errno == EINTR))
		;
	close(found->fd);
}

/* Keeps the found file, or closes it if there is no room. */
static void keep_fd(struct dso_files *f, uint32_t i, const struct dso_search *found)
{
	if (f->files.data[i].fd >= 0 || dso_files__make_fd_room(f, lru__owner(&f->order, i)))
		set_fd(f, i, found);
	else
		close(found->fd);
}

/* ---- identity -------------------------------------------------------------------------------- */

static uint32_t file_with_build_id(const struct dso_files *f, const struct build_id *id)
{
	uint32_t i;

	hashmap_each (&f->by_build_id, hash_build_id(id), i)
		if (build_id_equal(&f->files.data[i].build_id, id))
			break;
	return i;
}

static uint32_t file_with_inode(const struct dso_files *f, uint64_t device, uint64_t inode)
{
	uint32_t i;

	hashmap_each (&f->by_inode, hash_inode(device, inode), i)
		if (f->files.data[i].device == device && f->files.data[i].inode == inode)
			break;
	return i;
}

/* The file, if it has this state and build-id. */
static uint32_t file_in_state(const struct dso_files *f, uint64_t device, uint64_t inode,
			      uint64_t state, const struct build_id *id)
{
	uint32_t i = file_with_inode(f, device, inode);

	if (i == HASHMAP_NONE || f->files.data[i].state != state ||
	    !build_id_equal(&f->files.data[i].build_id, id))
		return HASHMAP_NONE;
	return i;
}

/* A file is what it was as long as none of these has changed. */
static uint64_t state_of(const struct file_finding *facts)
{
	const uint64_t state[] = {facts->size, facts->modified.tv_sec, facts->modified.tv_nsec,
				  facts->changed.tv_sec, facts->changed.tv_nsec};

	return hash_stable(state, sizeof(state)) | 1;
}

/* Only the administrator can have put it there, so all files with this build-id are the same. */
static bool stands_for_build_id(const struct file_finding *facts)
{
	return facts->shared && facts->build_id.size > 0;
}

static uint32_t known_file(const struct dso_files *f, const struct file_finding *facts)
{
	return stands_for_build_id(facts) ? file_with_build_id(f, &facts->build_id)
					  : file_in_state(f, facts->device, facts->inode,
							  state_of(facts), &facts->build_id);
}

static int index_file(struct dso_files *f, uint32_t i)
{
	const struct dso_file *file = &f->files.data[i];
	uint64_t hash = hash_inode(file->device, file->inode);
	uint32_t before;

	if (file->shared)
		return hashmap__add(&f->by_build_id, hash_build_id(&file->build_id), i);
	before = file_with_inode(f, file->device, file->inode);
	if (before != HASHMAP_NONE) /* the file has changed */
		hashmap__erase(&f->by_inode, hash, before);
	return hashmap__add(&f->by_inode, hash, i);
}

static void unindex_file(struct dso_files *f, uint32_t i)
{
	const struct dso_file *file = &f->files.data[i];

	if (file->shared)
		hashmap__erase(&f->by_build_id, hash_build_id(&file->build_id), i);
	else if (file_with_inode(f, file->device, file->inode) == i) /* else it has changed since */
		hashmap__erase(&f->by_inode, hash_inode(file->device, file->inode), i);
}

/* ---- files come and go ----------------------------------------------------------------------- */

void dso_files__set_path(struct dso_files *f, uint32_t i, struct root_id root, const char *path,
			 size_t path_length)
{
	struct dso_file *file = &f->files.data[i];
	char *copy = strndup(path, path_length);

	if (!copy)
		return;
	free(file->path);
	file->path = copy;
	dso_roots__refer(f->roots, &file->root, root);
}

/* Sets the path that led to it, if one did: else its name leads elsewhere, or nowhere. */
static void set_found_path(struct dso_files *f, uint32_t i, const struct dso_search *found)
{
	const char *path = found->mapping ? found->mapping->path : NULL;

	if (path && found->facts->root < SEARCH_ROOTS)
		dso_files__set_path(f, i, found->roots[found->facts->root], path,
				    found->facts->shortened ? mapping_path_length(path)
							    : strlen(path));
}

static void forget_file(void *files, uint32_t i)
{
	struct dso_files *f = files;
	struct dso_file *file = &f->files.data[i];

	log_debug(LOG_PROCFS, "forgot %s", name_of(file));
	dso_sightings__forget_file(&f->sightings, i);
	if (file->archive)
		dso_archives__forget_file(&f->archives, i);
	dso_files__close(f, i);
	unindex_file(f, i);
	dso_roots__refer(f->roots, &file->root, (struct root_id){});
	free(file->path);
	file->path = NULL;
	file->number = 0;
	lru__release(&f->order, i);
	f->forgotten++;
}

/* A slot for the file; does not take its descriptor. */
static int make_file(struct dso_files *f, const struct dso_search *found, uint32_t *i)
{
	const struct file_finding *facts = found->facts;
	const bool shared = stands_for_build_id(facts);
	const uint64_t owner = shared ? 0 : found->owner;
	int err;

	if (!lru__make_room(&f->order, owner, forget_file, f))
		return -ENOSPC;
	err = lru__take_in(&f->order, &f->files, owner, i);
	if (err)
		return err;
	f->files.data[*i] = (struct dso_file){
		.number = (uint64_t)++f->serial << 32 | *i,
		.fd = -1,
		.build_id = facts->build_id,
		.shared = shared,
		.archive = facts->archive,
		.device = facts->device,
		.inode = facts->inode,
		.state = state_of(facts),
	};
	err = lru__reserve(&f->open, (size_t)*i + 1) ?: index_file(f, *i);
	if (err) {
		f->files.data[*i].number = 0;
		lru__release(&f->order, *i);
	}
	return err;
}

static int add_file(struct dso_files *f, const struct dso_search *found, uint32_t *i)
{
	int err = make_file(f, found, i);

	if (err) {
		close(found->fd);
		return err;
	}
	if (found->facts->build_id.left)
		outside_books__add(f->books, helper_owner_user(found->owner), OUTSIDE_BUILD_IDS,
				   OUTSIDE_BY_ITSELF, 1);
	set_found_path(f, *i, found);
	if (!f->files.data[*i].path)
		dso_roots__refer(f->roots, &f->files.data[*i].root, found->roots[SEARCH_PROCESS]);
	keep_fd(f, *i, found);
	return 0;
}

int dso_files__adopt(struct dso_files *f, const struct dso_search *found, uint32_t *i)
{
	struct dso_file *file;
	int err;

	*i = known_file(f, found->facts);
	if (*i == HASHMAP_NONE) {
		err = add_file(f, found, i);
		if (err)
			return err;
	} else {
		file = &f->files.data[*i];
		if (file->fd < 0 || !file->path || dso_roots__fd(f->roots, file->root) < 0)
			set_found_path(f, *i, found);
		if (is_unchanged(file))
			close(found->fd);
		else /* it was closed or overwritten, but this is the same file */
			keep_fd(f, *i, found);
	}
	dso_files__use(f, *i);
	return 0;
}

bool dso_files__reopen(struct dso_files *f, uint32_t i, const struct dso_search *found)
{
	const struct dso_file *file = &f->files.data[i];
	bool same = file->shared ? stands_for_build_id(found->facts)
				 : file->state == state_of(found->facts);

	same = same && build_id_equal(&file->build_id, &found->facts->build_id);
	if (!same || file->fd >= 0) {
		close(found->fd);
		return same;
	}
	dso_files__make_fd_room(f, lru__owner(&f->order, i));
	set_fd(f, i, found);
	return true;
}

/* ---- look-ups -------------------------------------------------------------------------------- */

uint32_t dso_files__of_mapping(struct dso_files *f, const struct mmap_event *mapping,
			       struct root_id root, uint64_t *generation)
{
	const struct sighting *sighting = dso_sightings__find(&f->sightings, mapping, root);

	if (!sighting || !was_unchanged(f, &f->files.data[sighting->file]))
		return HASHMAP_NONE;
	*generation = sighting->numbers.generation;
	return sighting->file;
}

uint32_t dso_files__numbered(const struct dso_files *f, uint64_t number)
{
	uint32_t i = (uint32_t)number;

	return number && i < f->files.count && f->files.data[i].number == number ? i : HASHMAP_NONE;
}

struct file_answer dso_files__locate(struct dso_files *f, uint64_t number, uint32_t *i)
{
	const struct dso_member *member = dso_archives__numbered(&f->archives, number);
	struct file_answer located = {
		.fd = -ENOENT, .root_fd = -1, .base = member ? member->offset : 0};
	struct build_id now;
	struct dso_file *file;

	*i = member ? member->archive : dso_files__numbered(f, number);
	if (*i == HASHMAP_NONE)
		return located;
	file = &f->files.data[*i];
	located.fd = file->fd < 0 ? -EAGAIN : file->fd;
	if (file->fd >= 0 && !is_unchanged(file)) { /* written over in place */
		file_search__read_build_id(file->fd, located.base, &now);
		if (now.size == 0 ||
		    !build_id_equal(&now, member ? &member->build_id : &file->build_id))
			located.fd = -ESTALE;
	}
	dso_files__use(f, *i);
	return located;
}

int dso_files__answer(struct dso_files *f, uint32_t i, struct file_answer located,
		      const struct file_request *request)
{
	const struct dso_file *file;
	struct root_id root;
	int err;

	if (i == HASHMAP_NONE)
		return request->answer(request->context, request->key, &located);
	file = &f->files.data[i];
	root = file->root;
	located.root_fd = dso_roots__fd(f->roots, root);
	located.copied_for = file->copied ? file->copied_for : 0;
	dso_files__hold(f, i);
	dso_roots__hold(f->roots, root);
	err = request->answer(request->context, request->key, &located);
	dso_roots__unhold(f->roots, root);
	dso_files__unhold(f, i);
	return err;
}
