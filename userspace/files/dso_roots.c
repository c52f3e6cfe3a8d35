/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/dso_roots.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/proc_task.h"
#include "tenants/owner.h"
#include "tenants/tenant_open.h"

#define SWEEPS	   4		 /* in the time after which a root may go */
#define NOTE_AGAIN 1000000000ull /* ns */

static uint32_t place_of(struct root_id id)
{
	return (uint32_t)id.v;
}

/* Is it open? */
static bool has_root(const struct dso_roots *r, struct root_id id)
{
	return id.v && r->roots.data[place_of(id)].id.v == id.v;
}

static bool same_root(const struct dso_root *a, const struct dso_root *b)
{
	return a->inode == b->inode && a->mount == b->mount && a->major == b->major &&
	       a->minor == b->minor;
}

static struct root_id find_root(const struct dso_roots *r, const struct dso_root *root)
{
	for (size_t i = 0; i < r->roots.count; i++)
		if (r->roots.data[i].id.v && same_root(&r->roots.data[i], root))
			return r->roots.data[i].id;
	return (struct root_id){};
}

void dso_roots__init(struct dso_roots *r, const struct lru_clock *clock, size_t max,
		     dso_make_fd_room_fn make_fd_room, void *context)
{
	*r = (struct dso_roots){.make_fd_room = make_fd_room, .context = context};
	lru__init(&r->order, clock, max);
	r->own = dso_roots__of(r, getpid());
	dso_roots__hold(r, r->own);
}

void dso_roots__fini(struct dso_roots *r)
{
	for (size_t i = 0; i < r->roots.count; i++)
		if (r->roots.data[i].id.v)
			close(r->roots.data[i].fd);
	vec_free(&r->roots);
	lru__fini(&r->order);
}

/* ---- coming and going ------------------------------------------------------------------------ */

static void close_root(struct dso_roots *r, uint32_t place)
{
	struct dso_root *root = &r->roots.data[place];

	lru__release(&r->order, place);
	close(root->fd);
	*root = (struct dso_root){.fd = -1};
}

static void sweep(struct dso_roots *r)
{
	uint32_t place = lru__idle(&r->order);

	r->next_sweep = r->order.clock->now + r->order.clock->idle / SWEEPS;
	while (place != LRU_NONE) {
		uint32_t next = lru__next_idle(&r->order, place);

		if (r->roots.data[place].files == 0)
			close_root(r, place);
		place = next;
	}
}

void dso_roots__tick(struct dso_roots *r)
{
	if (r->order.clock->now >= r->next_sweep)
		sweep(r);
}

static bool has_room(const struct dso_roots *r, uint64_t owner)
{
	return r->order.count < r->order.max && r->make_fd_room(r->context, owner);
}

static bool make_room(struct dso_roots *r, uint64_t owner)
{
	if (!has_room(r, owner))
		sweep(r);
	while (!has_room(r, owner)) {
		uint32_t place = lru__to_evict(&r->order, owner);

		if (place == LRU_NONE)
			return false;
		close_root(r, place);
	}
	return true;
}

/* Adds a root that is not known yet. Takes its descriptor only on success. */
static struct root_id add_root(struct dso_roots *r, const struct dso_root *root, uint64_t owner)
{
	struct root_id id = {};
	uint32_t place;

	if (!make_room(r, owner) || lru__take_in(&r->order, &r->roots, owner, &place))
		return id;
	id.v = (uint64_t)++r->last_serial << 32 | place;
	r->roots.data[place] = *root;
	r->roots.data[place].id = id;
	return id;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Identify the root at a path or descriptor. False: there is none. */
static bool identify(int fd, const char *path, struct dso_root *root)
{
	struct statx stx;

	if (statx(fd, path, (fd < 0 ? 0 : AT_EMPTY_PATH) | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
		  STATX_INO | STATX_MNT_ID, &stx))
		return false;
	*root = (struct dso_root){
		.major = stx.stx_dev_major,
		.minor = stx.stx_dev_minor,
		.inode = stx.stx_ino,
		.mount = stx.stx_mnt_id,
		.fd = fd,
	};
	return true;
}

static struct root_id open_root(struct dso_roots *r, pid_t pid)
{
	_cleanup_close_ int fd = tenant_root(pid);
	struct root_id id = {};
	struct dso_root root;

	if (fd < 0 || !identify(fd, "", &root))
		return id;
	id = find_root(r, &root);
	if (!id.v)
		id = add_root(r, &root, helper_owner(pid));
	if (id.v && dso_roots__fd(r, id) == fd)
		fd = -1;
	return id;
}

/* Most roots are known and need not be opened. */
struct root_id dso_roots__of(struct dso_roots *r, pid_t pid)
{
	struct root_id id = {};
	struct dso_root root;

	if (pid <= 0 || !identify(AT_FDCWD, proc_path(pid, "root").text, &root))
		return id;
	id = find_root(r, &root);
	if (!id.v)
		id = open_root(r, pid);
	dso_roots__use(r, id);
	return id;
}

/* A leader that has ended has no root any more, but its other threads do. */
static struct root_id root_of_mapping(struct dso_roots *r, const struct mmap_event *event)
{
	struct root_id root = dso_roots__of(r, (pid_t)event->pid);

	return !root.v && event->tid != event->pid ? dso_roots__of(r, (pid_t)event->tid) : root;
}

/* A root that was read after the mapping was made need not be read again. */
static bool holds(const struct dso_roots *r, const struct recent_root *recent,
		  const struct mmap_event *event)
{
	if (recent->pid != event->pid || recent->read < event->header.time)
		return false;
	return recent->root.v ? has_root(r, recent->root) : event->tid == event->pid;
}

struct root_id dso_roots__of_event(struct dso_roots *r, const struct mmap_event *event)
{
	struct recent_root *recent = &r->recent[event->pid % RECENT_ROOTS];

	if (!holds(r, recent, event)) {
		recent->pid = event->pid;
		recent->read = monotonic_ns();
		recent->root = root_of_mapping(r, event);
	}
	return recent->root;
}

/* ---- processes that may end ------------------------------------------------------------------ */

/* When the process was born that has the pid; 0: unknown. */
static uint64_t birth_of(pid_t pid)
{
	struct proc_identity identity = {};

	(void)proc_process_state(pid, &identity);
	return identity.tgid == pid ? identity.start_time : 0;
}

/* See noted_process.directory; 0: there is none. */
static uint64_t directory_of(pid_t pid)
{
	struct statx stx;

	return statx(AT_FDCWD, proc_path(pid, "").text, AT_STATX_DONT_SYNC, STATX_INO, &stx)
		       ? 0
		       : stx.stx_ino;
}

void dso_roots__note(struct dso_roots *r, pid_t pid)
{
	struct noted_process *noted = &r->noted[(uint32_t)pid % NOTED_PROCESSES];
	struct noted_process read = {
		.pid = (uint32_t)pid, .directory = directory_of(pid), .read = monotonic_ns()};

	if (noted->pid == read.pid && noted->directory == read.directory &&
	    read.read < noted->read + NOTE_AGAIN)
		return;
	read.user = tenant_user(pid);
	read.born = birth_of(pid);
	read.root = dso_roots__of(r, pid);
	/* if it has ended, what was noted before is all */
	if (!read.directory || directory_of(pid) != read.directory)
		return;
	read.done = monotonic_ns();
	*noted = read;
}

/* Was the reading of this process? Its end is missing if the event was lost, so its birth counts too. */
static bool is_of(const struct noted_process *noted, pid_t pid, const struct process_times *times)
{
	return noted->pid == (uint32_t)pid && noted->read >= times->start &&
	       (!times->end || noted->done <= times->end) &&
	       proc_same_birth(noted->born, times->born);
}

struct root_id dso_roots__of_process(struct dso_roots *r, pid_t pid,
				     const struct process_times *times, uint32_t *user)
{
	const struct noted_process *noted = &r->noted[(uint32_t)pid % NOTED_PROCESSES];
	struct root_id root = times->end ? (struct root_id){} : dso_roots__of(r, pid);

	*user = root.v ? tenant_user(pid) : TENANT_UNKNOWN;
	/* who has the pid afterwards had it all the time since */
	if (root.v && proc_same_birth(birth_of(pid), times->born))
		return root;
	if (!is_of(noted, pid, times)) {
		*user = TENANT_UNKNOWN;
		return (struct root_id){};
	}
	*user = noted->user;
	return noted->root;
}

/* ---- one root -------------------------------------------------------------------------------- */

int dso_roots__fd(const struct dso_roots *r, struct root_id id)
{
	return has_root(r, id) ? r->roots.data[place_of(id)].fd : -1;
}

void dso_roots__use(struct dso_roots *r, struct root_id id)
{
	if (has_root(r, id))
		lru__use(&r->order, place_of(id));
}

void dso_roots__hold(struct dso_roots *r, struct root_id id)
{
	if (has_root(r, id))
		lru__hold(&r->order, place_of(id));
}

void dso_roots__unhold(struct dso_roots *r, struct root_id id)
{
	if (has_root(r, id))
		lru__unhold(&r->order, place_of(id));
}

void dso_roots__refer(struct dso_roots *r, struct root_id *reference, struct root_id to)
{
	if (has_root(r, *reference))
		r->roots.data[place_of(*reference)].files--;
	*reference = to;
	if (has_root(r, to))
		r->roots.data[place_of(to)].files++;
}
