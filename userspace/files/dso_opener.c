/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens the file of a mapping, as early as possible.
 *
 * *Roots* are root directories of processes, which differ from ours for containers and for services
 * with their own mounts (dso_roots.h). *Files* are known by identity, open or not (dso_files.h). A
 * mapping is looked up in the sightings: device, inode and path of earlier mappings, so a thousand
 * execs of one program open it once (dso_sightings.h). A library in a zip archive counts as a file (dso_archives.h).
 * *Waits* are mappings of files that are unknown or closed, searched for below the root of their
 * process (dso_waits.h). Waits use files and roots; files use roots.
 *
 * Every table has a cap and an order of last use (lru.h); a mapping of a file or a request for it
 * is a use. At a cap the least recently used entry is evicted, so a long session does not run out.
 * If all entries were used in the last half minute, none is evicted: the new file's build-id is
 * reported, the file is closed, and a request opens it again. Times are those of the events.
 */
#include "files/dso_opener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "files/dso_events.h"
#include "files/dso_opener_private.h"
#include "files/dso_search.h"
#include "tenants/pool.h"
#include "tenants/quota.h"

#define SIGHTINGS_MAX 32768u
#define MEMBERS_MAX   4096u
#define IDLE	      30000000000ull /* ns */
#define FD_LIMIT_MAX  (1u << 20)     /* the kernel's own default maximum */
#define FD_RESERVE    256u	     /* for the rest of this process */
#define FD_RESERVED   16384u	     /* files, and those of requests that wait */

/* ---- new and free ---------------------------------------------------------------------------- */

/*
 * The kernel enlarges a full descriptor table, and a process with threads then waits for all CPUs:
 * a second on a busy machine. So the table gets its final size here.
 */
static void reserve_descriptors(size_t count)
{
	_cleanup_close_ int any = eventfd(0, EFD_CLOEXEC);
	_cleanup_close_ int last = -1;

	if (any >= 0)
		last = fcntl(any, F_DUPFD_CLOEXEC, (int)count - 1);
}

/* Descriptors that the opener may use. */
static size_t raise_fd_limit(void)
{
	struct rlimit limit = {1024, 1024};
	rlim_t most;

	getrlimit(RLIMIT_NOFILE, &limit);
	most = limit.rlim_max > FD_LIMIT_MAX ? FD_LIMIT_MAX : limit.rlim_max;
	if (most > limit.rlim_cur) {
		struct rlimit raised = {most, limit.rlim_max};

		if (!setrlimit(RLIMIT_NOFILE, &raised))
			limit.rlim_cur = most;
	}
	if (limit.rlim_cur > FD_LIMIT_MAX)
		limit.rlim_cur = FD_LIMIT_MAX;
	reserve_descriptors(min_u64(limit.rlim_cur, FD_RESERVED));
	return limit.rlim_cur > 2 * FD_RESERVE ? limit.rlim_cur - FD_RESERVE : limit.rlim_cur / 2;
}

static struct dso_opener_options caps_of(const struct dso_opener_options *options, size_t fds)
{
	struct dso_opener_options caps = options ? *options : (struct dso_opener_options){};

	caps.images_max = caps.images_max ? caps.images_max : quota_row(QUOTA_FILES)->all.limit;
	caps.fds_max = caps.fds_max ? caps.fds_max : quota_row(QUOTA_DESCRIPTORS)->all.limit;
	caps.fds_max = caps.fds_max < fds ? caps.fds_max : fds;
	caps.roots_max = caps.roots_max ? caps.roots_max : quota_row(QUOTA_ROOTS)->all.limit;
	caps.sightings_max = caps.sightings_max ? caps.sightings_max : SIGHTINGS_MAX;
	caps.members_max = caps.members_max ? caps.members_max : MEMBERS_MAX;
	caps.idle = caps.idle ? caps.idle : IDLE;
	return caps;
}

int dso_opener__new(const struct dso_opener_options *options, struct dso_opener **opener)
{
	struct dso_opener *o = calloc(1, sizeof(*o));
	struct dso_opener_options caps;

	if (!o)
		return -ENOMEM;
	caps = caps_of(options, raise_fd_limit());
	o->clock.idle = caps.idle;
	dso_files__init(&o->files, &caps, &o->clock, &o->roots);
	dso_roots__init(&o->roots, &o->clock, caps.roots_max, dso_files__make_fd_room, &o->files);
	dso_waits__init(&o->waits, &o->files, &o->roots, caps.readers, caps.service);
	*opener = o;
	return 0;
}

void dso_opener__free(struct dso_opener *o)
{
	if (!o)
		return;
	dso_waits__fini(&o->waits);
	dso_files__fini(&o->files);
	dso_roots__fini(&o->roots);
	free(o);
}

/* Events are nearly in time order; a late one counts as current. */
static void advance_time(struct dso_opener *o, uint64_t time)
{
	o->clock.now = max_u64(o->clock.now, time);
	dso_roots__tick(&o->roots);
}

/* ---- mappings -------------------------------------------------------------------------------- */

/* Mappings without an answer here wait. */
static int see(struct dso_opener *o, struct mmap_event *event, pid_t parent,
	       mapping_answer_fn answer, void *context)
{
	const bool moved = dso_waits__may_search_moved(&o->waits, event);
	struct root_id root;
	uint32_t file;

	if (!moved && dso_files__complete_memory(&o->files, event))
		return answer(context, event);
	root = dso_roots__of_event(&o->roots, event);
	if (!moved && dso_files__complete_known(&o->files, event, root, &file))
		return dso_files__answer_event(&o->files, event, file, answer, context);
	return dso_waits__add_mapping(&o->waits, &(struct waiting_event){event, answer, context},
				      parent, root, moved);
}

int dso_opener__see(struct dso_opener *o, struct mmap_event *event, pid_t parent,
		    mapping_answer_fn answer, void *context)
{
	o->events++;
	event->file = 0;
	advance_time(o, event->header.time);
	return see(o, event, parent, answer, context) ?: dso_waits__take_error(&o->waits);
}

int dso_opener__pass(struct dso_opener *o, struct event_header *event, event_push_fn push,
		     void *context)
{
	return dso_waits__pass(&o->waits, event, push, context);
}

uint64_t dso_opener__pending_since(const struct dso_opener *o)
{
	return dso_waits__since(&o->waits);
}

/* ---- readers --------------------------------------------------------------------------------- */

static int pass_on(struct dso_opener *o)
{
	dso_waits__pass_on(&o->waits);
	return dso_waits__take_error(&o->waits);
}

int dso_opener__step(struct dso_opener *o)
{
	if (o->waits.readers)
		helper_pool__step(o->waits.readers);
	return pass_on(o);
}

int dso_opener__settle(struct dso_opener *o, uint64_t patience)
{
	if (o->waits.readers && helper_pool__waiting(o->waits.readers))
		helper_pool__settle(o->waits.readers, patience);
	return pass_on(o);
}

int dso_opener__finish(struct dso_opener *o, uint64_t patience)
{
	int err = dso_opener__settle(o, patience), later;

	if (o->waits.readers)
		helper_pool__end(o->waits.readers);
	later = pass_on(o);
	return err ? err : later;
}

/* ---- files ----------------------------------------------------------------------------------- */

int dso_opener__request(struct dso_opener *o, uint64_t number, const struct file_request *request)
{
	struct file_answer located;
	uint32_t file;
	int err;

	advance_time(o, monotonic_ns());
	located = dso_files__locate(&o->files, number, &file);
	if (located.fd == -EAGAIN) {
		err = dso_waits__add_request(&o->waits, number, file, request);
		if (err != -ENOENT)
			return err ? err : dso_waits__take_error(&o->waits);
		located.fd = -ENOENT;
	}
	return dso_files__answer(&o->files, file, located, request);
}

void dso_opener__note_process(struct dso_opener *o, pid_t pid)
{
	advance_time(o, monotonic_ns());
	dso_roots__note(&o->roots, pid);
}

int dso_opener__root_of(struct dso_opener *o, pid_t pid, const struct process_times *times,
			uint32_t *user)
{
	advance_time(o, monotonic_ns());
	return dso_roots__fd(&o->roots, dso_roots__of_process(&o->roots, pid, times, user));
}

/* ---- files of a replay ----------------------------------------------------------------------- */

/* A library by a name like "/x/app.apk!/lib/libx.so". */
static int open_in_archive(struct dso_opener *o, const struct mmap_event *mapping, uint64_t *number)
{
	const char *mark = strstr(mapping->path, ARCHIVE_MARK);
	struct mmap_event_space outer;
	struct dso_file *archive;
	uint32_t file;
	int err;

	if (!mark)
		return -ENOENT;
	outer.event = *mapping;
	outer.event.header.flags &= ~EVENT_BUILD_ID;
	snprintf(outer.event.path, mark - mapping->path + 1, "%s", mapping->path);
	err = dso_waits__adopt_own(&o->waits, &outer.event, &file);
	if (err)
		return err;
	archive = &o->files.files.data[file];
	if (!archive->archive || archive->fd < 0)
		return -ENOENT;
	return dso_archives__add_by_name(
		&o->files.archives, &(struct open_archive){file, archive->fd, &archive->readings},
		outer.event.path, mark + strlen(ARCHIVE_MARK), number);
}

/* A library in an archive may have another build-id than the recorded one. */
static bool has_build_id(struct dso_opener *o, uint64_t number, const struct build_id *id)
{
	const struct dso_member *member = dso_archives__numbered(&o->files.archives, number);

	return member && (!id->size || build_id_equal(&member->build_id, id));
}

/* Below our own root: the owner does not matter, because the user named the recording. */
static int find_file(struct dso_opener *o, const struct mmap_event *mapping, uint64_t *number)
{
	const struct build_id id = mapping_build_id(mapping);
	uint32_t file;
	int err;

	if (file_search__is_hopeless(mapping->path) || file_search__is_nameless(mapping->path) ||
	    (!id.size && !mapping->inode))
		return -ENOENT;
	err = dso_waits__adopt_own(&o->waits, mapping, &file);
	if (err == -ENOENT || err == -ENOTDIR) {
		err = open_in_archive(o, mapping, number);
		return err || has_build_id(o, *number, &id) ? err : -ENOENT;
	}
	if (!err)
		*number = o->files.files.data[file].number;
	return err;
}

/* A vDSO without a recorded build-id may be of another kernel, or of a 32-bit process. */
static int find_vdso(struct dso_opener *o, const struct build_id *id, uint64_t *number)
{
	uint32_t file = dso_files__vdso(&o->files);
	const struct dso_file *vdso = file == HASHMAP_NONE ? NULL : &o->files.files.data[file];

	if (!vdso || !id->size || !build_id_equal(id, &vdso->build_id))
		return -ENOENT;
	*number = vdso->number;
	return 0;
}

int dso_opener__find(struct dso_opener *o, struct mmap_event *event)
{
	const struct build_id id = mapping_build_id(event);
	uint64_t number = 0;
	int err;

	advance_time(o, monotonic_ns());
	err = strcmp(event->path, VDSO_NAME) ? find_file(o, event, &number)
					     : find_vdso(o, &id, &number);
	if (!err)
		event->file = number;
	return err;
}

/* ---- files that are open --------------------------------------------------------------------- */

static uint32_t open_file(const struct dso_opener *o, uint64_t number)
{
	uint32_t file = dso_files__numbered(&o->files, number);

	return file != HASHMAP_NONE && o->files.files.data[file].fd >= 0 ? file : HASHMAP_NONE;
}

bool dso_opener__is_deleted(struct dso_opener *o, uint64_t number)
{
	uint32_t file = open_file(o, number);
	struct statx st;

	/* what is known already: its file system need not answer */
	return file != HASHMAP_NONE &&
	       !statx(o->files.files.data[file].fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		      STATX_NLINK, &st) &&
	       st.stx_nlink == 0;
}

void dso_opener__release(struct dso_opener *o, uint64_t number)
{
	uint32_t file = open_file(o, number);

	if (file != HASHMAP_NONE)
		dso_files__close(&o->files, file);
}

void dso_opener__stats(const struct dso_opener *o, struct dso_opener_stats *stats)
{
	*stats = (struct dso_opener_stats){
		.files = o->files.order.count,
		.fds = o->files.open.count + o->roots.order.count,
		.fd_limit = o->files.open.max,
		.roots = o->roots.order.count,
		.opens = o->waits.opens,
		.evicted = o->files.evicted,
		.forgotten = o->files.forgotten,
		.events = o->events,
	};
}
