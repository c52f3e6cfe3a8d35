/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Root directories of processes, identified by inode and mount. The kernel reports both without a call to the file
 * system, which may be a tenant's program: O_PATH opens nothing, and AT_STATX_DONT_SYNC returns what is cached.
 *
 * A root is kept open, because a closed file may have to be opened again below it after its process has
 * ended. An open root keeps its mount busy, so a root without images is closed after a while. When the
 * table is full the least recently used root is closed, even if it has images: they stay known, and get
 * a root again from the next process that maps them.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/tenant_open.h"
#include "procfs/dso_opener_private.h"
#include "helpers/owner.h"

#define ROOT_KEPT 2000000 /* ns that a process which starts is taken to have the root it had */
#define SWEEPS	  4	  /* in the time after which a root may go */

static uint64_t hash_root(const struct root *root)
{
	return hash_combine(hash_combine(hash_u64(root->inode), hash_u64(root->mount)),
			    (uint64_t)root->major << 32 | root->minor);
}

static bool same_root(const struct root *a, const struct root *b)
{
	return a->inode == b->inode && a->mount == b->mount && a->major == b->major &&
	       a->minor == b->minor;
}

static uint32_t find_root(const struct dso_opener *o, const struct root *root)
{
	uint32_t place;

	hashmap_each(&o->by_root, hash_root(root),
		     place) if (same_root(&o->roots.data[place], root)) break;
	return place;
}

void dso_roots__init(struct dso_opener *o)
{
	lru__init(&o->root_order);
	o->last_root = NO_ROOT;
	o->own_root = dso_roots__of(o, getpid());
	if (o->own_root >= 0)
		dso_roots__hold(o, o->own_root);
}

void dso_roots__fini(struct dso_opener *o)
{
	for (size_t i = 0; i < o->roots.count; i++)
		if (o->roots.data[i].fd >= 0)
			close(o->roots.data[i].fd);
	vec_free(&o->roots);
	hashmap__fini(&o->by_root);
	lru__fini(&o->root_order);
}

/* ---- coming and going ------------------------------------------------------------------------ */

static void close_root(struct dso_opener *o, uint32_t place)
{
	struct root *root = &o->roots.data[place];

	if (root->images > 0)
		dso_images__forget_root(o, place);
	if (o->last_root == (int)place)
		o->last_pid = 0;
	hashmap__erase(&o->by_root, hash_root(root), place);
	lru__release(&o->root_order, place);
	quota__give(&o->root_quota, root->owner, 1);
	close(root->fd);
	root->fd = -1;
	o->fds--;
}

void dso_roots__sweep(struct dso_opener *o)
{
	uint64_t idle = o->caps.idle;
	uint32_t place = lru__idle(&o->root_order, o->now, idle);

	o->next_sweep = o->now + idle / SWEEPS;
	while (place != LRU_NONE) {
		uint32_t next = lru__next_idle(&o->root_order, place, o->now, idle);

		if (o->roots.data[place].images == 0)
			close_root(o, place);
		place = next;
	}
}

static int make_root_room(struct dso_opener *o, uint64_t owner)
{
	if (o->root_order.count >= o->caps.roots_max || !dso_images__make_fd_room(o, owner))
		dso_roots__sweep(o);
	while (o->root_order.count >= o->caps.roots_max || !dso_images__make_fd_room(o, owner)) {
		uint32_t place = lru__to_evict(&o->root_order, o->now, o->caps.idle, &o->root_quota,
					       owner, LRU_OWNERS(o->roots));

		if (place == LRU_NONE)
			return -EMFILE;
		close_root(o, place);
	}
	return 0;
}

/* Adds a root that is not known yet. Takes its descriptor only on success. */
static int add_root(struct dso_opener *o, const struct root *root)
{
	uint32_t place;
	int err = make_root_room(o, root->owner);

	if (!err)
		err = lru__take_in(&o->root_order, &o->roots, &place);
	if (err)
		return err;
	o->roots.data[place].fd = -1;
	err = hashmap__add(&o->by_root, hash_root(root), place);
	if (err) {
		lru__release(&o->root_order, place);
		return err;
	}
	quota__take(&o->root_quota, root->owner, 1, 0);
	o->roots.data[place] = *root;
	o->roots.data[place].serial = ++o->next_serial;
	o->fds++;
	return place;
}

/* ---- requests -------------------------------------------------------------------------------- */

int dso_roots__of(struct dso_opener *o, pid_t pid)
{
	_cleanup_close_ int fd = pid > 0 ? tenant_root(pid) : -ESRCH;
	struct statx stx;
	struct root root;
	uint32_t known;
	int place;

	if (fd < 0)
		return fd;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID, &stx))
		return -errno;
	root = (struct root){
		.major = stx.stx_dev_major,
		.minor = stx.stx_dev_minor,
		.inode = stx.stx_ino,
		.mount = stx.stx_mnt_id,
		.fd = fd,
	};
	known = find_root(o, &root);
	if (known == HASHMAP_NONE)
		root.owner = helper_owner(pid);
	place = known == HASHMAP_NONE ? add_root(o, &root) : (int)known;
	if (place < 0)
		return place;
	if (known == HASHMAP_NONE)
		fd = -1;
	dso_roots__use(o, place);
	return place;
}

/* A leader that has ended has no root any more, but its other threads do. */
static int root_of_mapping(struct dso_opener *o, const struct wanted *w)
{
	int root = dso_roots__of(o, w->pid);

	return root < 0 && w->tid != w->pid ? dso_roots__of(o, w->tid) : root;
}

int dso_roots__of_event(struct dso_opener *o, const struct wanted *w,
			const struct mmap_event *event)
{
	uint64_t since = event->header.time - o->last_time;

	if (o->last_pid == event->pid && since < (w->just_read ? 1 : ROOT_KEPT))
		return o->last_root;
	o->last_root = root_of_mapping(o, w);
	o->last_pid = event->pid;
	o->last_time = event->header.time;
	return o->last_root;
}

uint64_t dso_roots__serial(const struct dso_opener *o, int root)
{
	return root < 0 ? 0 : o->roots.data[root].serial;
}

void dso_roots__use(struct dso_opener *o, int root)
{
	if (root >= 0 && !o->roots.data[root].held)
		lru__use(&o->root_order, root, o->now);
}

void dso_roots__hold(struct dso_opener *o, int root)
{
	if (o->roots.data[root].held++ == 0)
		lru__remove(&o->root_order, root);
}

void dso_roots__unhold(struct dso_opener *o, int root)
{
	if (--o->roots.data[root].held == 0)
		lru__use(&o->root_order, root, o->now);
}
