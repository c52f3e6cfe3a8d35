/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file is never accepted by its name alone: its build-id must be that of the mapping or, if the
 * mapping has none, its inode. (Not its device: stat and maps differ on overlayfs and btrfs.) These
 * are tried in order: the path below the process's root; the mapping itself, by map_files, which
 * also works for deleted and replaced files; and, if the process has ended, the path below its
 * parent's root and ours, where only the administrator's files count.
 *
 * A descriptor of a file that a user's program serves is a trap: fstat, read, even close can sleep
 * for ever. Such a file is copied into memory, and the copy is passed on.
 */
#include "files/file_search.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/proc_task.h"
#include "elf/elf_build_id.h"
#include "files/owner_copy.h"
#include "files/zip.h"
#include "tenants/file_system.h"
#include "tenants/pool.h"
#include "tenants/tenant_open.h"

#define FILE_SIZE_MAX (8ULL << 30)

bool file_search__read_build_id(int fd, uint64_t base, struct build_id *id)
{
	uint8_t bytes[BUILD_ID_SIZE];
	int size = elf_read_build_id(fd, base, bytes, sizeof(bytes));

	build_id_set(id, bytes, size > 0 ? size : 0);
	id->left = size == -EFBIG;
	return size > 0 || size == -ENOENT || id->left;
}

/* The last two mean that perf could not determine the name. */
bool file_search__is_nameless(const char *path)
{
	return !strncmp(path, "/memfd:", 7) || !strcmp(path, "//toolong") ||
	       !strcmp(path, "//enomem");
}

static bool begins_with(const char *path, const char *beginning)
{
	return !strncmp(path, beginning, strlen(beginning));
}

bool file_search__is_hopeless(const char *path)
{
	if (path[0] != '/' || (path[1] == '/' && !file_search__is_nameless(path)))
		return true;
	return begins_with(path, "/dev/zero") || begins_with(path, "/SYSV") ||
	       begins_with(path, "/anon_hugepage");
}

/* ---- what is looked for ---------------------------------------------------------------------- */

struct build_id mapping_build_id(const struct mmap_event *event)
{
	struct build_id id = {};

	if (event->header.flags & EVENT_BUILD_ID)
		build_id_set(&id, event->build_id, event->build_id_size);
	return id;
}

struct file_numbers mapping_numbers(const struct mmap_event *event)
{
	return (struct file_numbers){event->major, event->minor, event->inode,
				     event->inode_generation};
}

bool mapping_has_path(const struct mmap_event *event, const char *path)
{
	size_t length = mapping_path_length(event->path);

	return !strncmp(path, event->path, length) && !path[length];
}

void build_id_report(const struct build_id *id, struct mmap_event *event)
{
	if (id->size == 0)
		return;
	event->build_id_size = id->size;
	memcpy(event->build_id, id->bytes, sizeof(event->build_id));
	event->header.flags |= EVENT_BUILD_ID;
}

/* ---- reasons --------------------------------------------------------------------------------- */

static enum file_state state_of_error(int err)
{
	switch (err) {
	case -EACCES:
	case -EPERM:
		return FILE_STATE_DENIED;
	case -EMFILE:
	case -ENFILE:
		return FILE_STATE_NO_FDS;
	case -ENOTSUP:
	case -EISDIR:
		return FILE_STATE_NOT_REGULAR;
	case -EFBIG:
		return FILE_STATE_TOO_BIG;
	case -ESTALE:
		return FILE_STATE_REPLACED;
	default:
		return FILE_STATE_MISSING;
	}
}

/* Notes why an attempt failed; of several reasons the last one in `order` is kept. */
static int note_failure(struct file_finding *finding, int err)
{
	static const enum file_state order[] = {FILE_STATE_MISSING, FILE_STATE_DENIED,
						FILE_STATE_NO_FDS,  FILE_STATE_NOT_REGULAR,
						FILE_STATE_TOO_BIG, FILE_STATE_REPLACED};
	enum file_state now = state_of_error(err);
	size_t new_rank = 0, old_rank = 0;

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		if (order[i] == now)
			new_rank = i;
		if (order[i] == finding->state)
			old_rank = i;
	}
	if (!finding->err || new_rank > old_rank) {
		finding->err = err;
		finding->state = now;
	}
	return err;
}

/* ---- one attempt ----------------------------------------------------------------------------- */

/* Does the process or thread still have a file of that name there, which may be deleted since? */
static bool is_still_mapped(const struct mmap_event *m, uint32_t task)
{
	const size_t length = strlen(m->path);
	char name[EVENT_PATH_MAX];

	return !tenant_mapped_name((pid_t)task, m->start, m->start + m->length, name,
				   sizeof(name)) &&
	       !strncmp(name, m->path, length) &&
	       (!name[length] || mapping_path_length(name) == length);
}

/*
 * Mappings and stat disagree about inodes on overlayfs, so the name has to do, unless it is of a
 * record and they agree about the device: then a program has executed another file of this name.
 */
static bool is_mapped_as_seen(const struct mmap_event *m, const struct stat *st)
{
	bool has_device = major(st->st_dev) == m->major && minor(st->st_dev) == m->minor;

	return (m->header.flags & EVENT_FROM_PROC || !has_device) &&
	       (is_still_mapped(m, m->pid) || (m->tid != m->pid && is_still_mapped(m, m->tid)));
}

/* Is this opened file right? Notes what it is. 0 or -ESTALE. */
static int identify(const struct file_question *q, int fd, const struct stat *st, bool mapped,
		    struct file_finding *finding)
{
	const struct mmap_event *m = &q->mapping.event;
	const struct build_id wanted = mapping_build_id(m);

	if (!wanted.size && st->st_ino != m->inode && !(mapped && is_mapped_as_seen(m, st)))
		return -ESTALE;
	finding->elf = file_search__read_build_id(fd, 0, &finding->build_id);
	finding->archive = !finding->elf && zip_is_archive(fd);
	if (wanted.size && !build_id_equal(&wanted, &finding->build_id))
		return -ESTALE;
	finding->device = st->st_dev;
	finding->inode = st->st_ino;
	finding->size = st->st_size;
	finding->modified = st->st_mtim;
	finding->changed = st->st_ctim;
	return 0;
}

/* Takes the descriptor; returns one to pass on, or negative errno. */
static int judge(const struct file_question *q, int opened, const struct stat *st, bool mapped,
		 struct file_finding *finding)
{
	const pid_t pid = (pid_t)q->mapping.event.pid;
	_cleanup_close_ int fd = opened;
	int err = identify(q, fd, st, mapped, finding);

	if (err)
		return err;
	finding->shared = only_writable_by(st, 0) && file_system__is_administrators(fd, pid);
	err = file_system__make_safe(&fd, pid, q->copy_max, &finding->copied);
	finding->copy_too_big = err == -EFBIG;
	return err ? err : steal_fd(fd);
}

static int try_path(const struct file_question *q, int root, const char *path,
		    struct file_finding *finding)
{
	struct stat st;
	int fd = tenant_open(root, path, 0, FILE_SIZE_MAX, &st);

	return fd < 0 ? fd : judge(q, fd, &st, false, finding);
}

/* The path as it is, and, if no file has that very name, without " (deleted)". */
static int try_below(const struct file_question *q, int root, struct file_finding *finding)
{
	const char *path = q->mapping.event.path;
	size_t length = mapping_path_length(path);
	char shorter[EVENT_PATH_MAX];
	int fd = try_path(q, root, path, finding);

	finding->shortened = false;
	if (fd == -ENOENT && path[length]) {
		memcpy(shorter, path, length);
		shorter[length] = '\0';
		fd = try_path(q, root, shorter, finding);
		finding->shortened = true;
	}
	return fd < 0 ? note_failure(finding, fd) : fd;
}

/* A file that only its user can open. */
static int try_as_owner(const struct file_question *q, struct file_finding *finding)
{
	const struct mmap_event *m = &q->mapping.event;
	_cleanup_close_ int fd = -1;
	struct stat st;
	int err;

	fd = owner_copy__of_mapping((pid_t)m->pid, m->start, m->start + m->length, q->copy_max, &st,
				    &finding->copied);
	finding->copy_too_big = fd == -EFBIG;
	finding->shared = false;
	err = fd < 0 ? fd : identify(q, fd, &st, true, finding);
	return err ? err : steal_fd(fd);
}

static int try_mapped(const struct file_question *q, struct file_finding *finding)
{
	const struct mmap_event *m = &q->mapping.event;
	const uint64_t end = m->start + m->length;
	struct stat st;
	int fd = tenant_open_mapped((pid_t)m->pid, m->start, end, FILE_SIZE_MAX, &st);

	if (fd < 0 && m->tid != m->pid)
		fd = tenant_open_mapped((pid_t)m->tid, m->start, end, FILE_SIZE_MAX, &st);
	if (fd >= 0)
		fd = judge(q, fd, &st, true, finding);
	else if (fd == -EACCES)
		fd = try_as_owner(q, finding);
	return fd < 0 ? note_failure(finding, fd) : fd;
}

/* Memory whose bytes do not come in time counts as late: the process is read again then. */
static int find_moved(const struct file_question *q, struct file_finding *finding)
{
	struct file_question mapped = *q;
	struct mmap_event *m = &mapped.mapping.event;
	struct stat st;
	int fd = moved_text__find((pid_t)m->pid, m->start, m->start + m->length, &finding->moved,
				  &st);

	if (fd >= 0) {
		m->inode = st.st_ino; /* its contents have just been compared */
		fd = judge(&mapped, fd, &st, true, finding);
	}
	if (fd >= 0) {
		finding->state = FILE_STATE_RIGHT;
		finding->root = SEARCH_MAPPED;
		return fd;
	}
	finding->err = fd;
	finding->state = fd == -EAGAIN ? FILE_STATE_LATE : FILE_STATE_NONE;
	return -1;
}

/* A descriptor, or -1. */
static int found_by(struct file_finding *finding, enum search_root root, int fd)
{
	finding->err = 0;
	finding->state = FILE_STATE_RIGHT;
	finding->root = root;
	return fd;
}

int file_search__find(const struct file_question *q, const int roots[SEARCH_ROOTS],
		      struct file_finding *finding)
{
	bool named = !file_search__is_nameless(q->mapping.event.path);
	int fd = -1;

	*finding = (struct file_finding){};
	if (q->moved)
		return find_moved(q, finding);
	if (named && roots[SEARCH_PROCESS] >= 0)
		fd = try_below(q, roots[SEARCH_PROCESS], finding);
	if (fd >= 0)
		return found_by(finding, SEARCH_PROCESS, fd);
	if ((pid_t)q->mapping.event.pid > 0)
		fd = try_mapped(q, finding);
	if (fd >= 0)
		return found_by(finding, SEARCH_MAPPED, fd);
	/* a process that lives has no such file elsewhere */
	for (int i = SEARCH_PARENT; i < SEARCH_ROOTS && named && roots[SEARCH_PROCESS] < 0; i++) {
		fd = roots[i] >= 0 ? try_below(q, roots[i], finding) : -1;
		if (fd >= 0 && i == SEARCH_OWN && !finding->shared) {
			/* it may have the inode of another file system's */
			close(fd);
			fd = note_failure(finding, -ESTALE);
		}
		if (fd >= 0)
			return found_by(finding, i, fd);
	}
	if (!finding->err)
		note_failure(finding, -ENOENT);
	return -1;
}

/* ---- in a reader ----------------------------------------------------------------------------- */

size_t file_question__size(const struct file_question *question)
{
	return offsetof(struct file_question, mapping.event.path) +
	       strlen(question->mapping.event.path) + 1;
}

size_t file_finding__size(const struct file_finding *finding)
{
	return offsetof(struct file_finding, moved.path) + strlen(finding->moved.path) + 1;
}

void file_search__serve(struct helper_job *job)
{
	struct file_question question = {};
	struct file_finding *finding = job->answer;
	int roots[SEARCH_ROOTS], fd;
	size_t used = 0;

	memcpy(&question, job->request,
	       job->request_size < sizeof(question) ? job->request_size : sizeof(question));
	for (int i = 0; i < SEARCH_ROOTS; i++)
		roots[i] = question.has_root[i] && used < job->fd_count ? job->fds[used++] : -1;
	fd = file_search__find(&question, roots, finding);
	job->answer_size = file_finding__size(finding);
	if (fd >= 0)
		job->answer_fds[job->answer_fd_count++] = fd;
}
