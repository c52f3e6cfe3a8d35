/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files are "NUMBER-MILLISECONDS.win", twenty digits each; the number gives the order, because
 * clocks are set back. The directory is ours alone (0700) and reached through one descriptor; the
 * process that uses it locks ".lock" in it. Files with other names, links and torn windows are left
 * as they are, and counted. A temporary file of a killed process is removed.
 *
 * Only the index grows in memory, by 40 bytes a window. A window that is being sent is in no index:
 * nothing drops it, and it is put back in front.
 *
 * If the disk fails, the window stays in memory; each new window tries the disk first, and takes
 * those in memory with it. Of too many in memory the oldest goes. Windows on disk stay, because the
 * room that they leave may not become ours.
 *
 * `turn` orders the threads that change anything, also while the disk works; `lock` is for numbers.
 */
#include "agent/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/spool_file.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/parse.h"
#include "base/vec.h"

#define LOCK_NAME  ".lock"
#define TEMPORARY  ".writing"
#define NAME_SIZE  64
#define NUMBER_MAX (UINT64_MAX / 2) /* of a file that is there: numbers go on from it */
#define NS_PER_MS  UINT64_C(1000000)

struct entry {
	uint64_t number, milliseconds; /* its name */
	uint64_t start;		       /* ns since the epoch */
	uint64_t bytes;
	struct spool_file *memory; /* NULL: on disk */
};

struct spool {
	char *path; /* NULL: in memory */
	uint64_t limit, age;
	pthread_mutex_t turn;
	int directory, lock_fd;
	bool listed, left;
	uint64_t next;
	VEC(struct entry) entries; /* by number */
	bool is_taken;
	struct entry taken;	    /* its number may change, */
	struct spool_window window; /* and this is as it was when it was taken */
	pthread_mutex_t lock;
	struct spool_stats stats;
};

/* ---- names ----------------------------------------------------------------------------------- */

static void name_of(const struct entry *e, char name[NAME_SIZE])
{
	snprintf(name, NAME_SIZE, "%020" PRIu64 "-%020" PRIu64 ".win", e->number, e->milliseconds);
}

/* Is it a name that name_of() gives? */
static bool parse_name(const char *name, struct entry *e)
{
	char number[21], milliseconds[21], again[NAME_SIZE];

	if (strlen(name) != 45)
		return false;
	memcpy(number, name, 20);
	memcpy(milliseconds, name + 21, 20);
	number[20] = milliseconds[20] = '\0';
	if (parse_u64(number, 0, NUMBER_MAX, &e->number) ||
	    parse_u64(milliseconds, 0, UINT64_MAX, &e->milliseconds))
		return false;
	name_of(e, again);
	return !strcmp(name, again);
}

/* ---- the index ------------------------------------------------------------------------------- */

static void entry__fini(struct entry *e)
{
	spool_file__free(e->memory);
	e->memory = NULL;
}

static void publish(struct spool *s)
{
	uint64_t bytes = 0;
	const struct entry *taken = s->is_taken ? &s->taken : NULL;
	const struct entry *oldest = taken ? taken : s->entries.count ? s->entries.data : NULL;

	for (size_t i = 0; i < s->entries.count; i++)
		bytes += s->entries.data[i].bytes;
	pthread_mutex_lock(&s->lock);
	s->stats.windows = s->entries.count + (taken ? 1 : 0);
	s->stats.bytes = bytes + (taken ? taken->bytes : 0);
	s->stats.oldest = oldest ? oldest->start : 0;
	pthread_mutex_unlock(&s->lock);
}

static void count(struct spool *s, uint64_t *counter)
{
	pthread_mutex_lock(&s->lock);
	++*counter;
	pthread_mutex_unlock(&s->lock);
}

static void set_error(struct spool *s, int err)
{
	pthread_mutex_lock(&s->lock);
	if (err && s->stats.error != err)
		log_debug(LOG_AGENT, "spool %s: %s", s->path, strerror(-err));
	s->stats.error = err;
	pthread_mutex_unlock(&s->lock);
}

static void remove_entry(struct spool *s, size_t i)
{
	memmove(&s->entries.data[i], &s->entries.data[i + 1],
		(--s->entries.count - i) * sizeof(*s->entries.data));
}

static void drop_entry(struct spool *s, size_t i, uint64_t *counter)
{
	struct entry *e = &s->entries.data[i];
	char name[NAME_SIZE];

	name_of(e, name);
	if (!e->memory && s->directory >= 0)
		unlinkat(s->directory, name, 0);
	entry__fini(e);
	remove_entry(s, i);
	count(s, counter);
}

/* Adding never fails where room was made. */
static int insert_entry(struct spool *s, const struct entry *e)
{
	size_t at = s->entries.count;
	int err = vec_push(&s->entries, *e);

	if (err)
		return err;
	while (at && s->entries.data[at - 1].number > e->number) {
		s->entries.data[at] = s->entries.data[at - 1];
		at--;
	}
	s->entries.data[at] = *e;
	return 0;
}

static void drop_old(struct spool *s)
{
	uint64_t now = realtime_ns();

	for (size_t i = 0; i < s->entries.count;) {
		const struct entry *e = &s->entries.data[i];

		if (e->start < now && now - e->start > s->age)
			drop_entry(s, i, &s->stats.too_old);
		else
			i++;
	}
}

/* Makes room for `bytes` and one window; drops the oldest. -ENOSPC: more than the limit. */
static int make_room(struct spool *s, uint64_t bytes)
{
	uint64_t all = s->is_taken ? s->taken.bytes : 0;

	for (size_t i = 0; i < s->entries.count; i++)
		all += s->entries.data[i].memory ? 0 : s->entries.data[i].bytes;
	if (bytes > s->limit)
		return -ENOSPC;
	for (size_t i = 0; i < s->entries.count;) {
		const struct entry *e = &s->entries.data[i];

		if (all + bytes <= s->limit && s->entries.count < SPOOL_WINDOWS_MAX)
			break;
		if (e->memory) {
			i++;
			continue;
		}
		all -= e->bytes;
		drop_entry(s, i, &s->stats.no_room);
	}
	return 0;
}

/* ---- the directory --------------------------------------------------------------------------- */

static void close_directory(struct spool *s)
{
	if (s->directory >= 0)
		close(s->directory);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	s->directory = s->lock_fd = -1;
}

/* With those that it is in. Errors show when it is opened. */
static void make_directory(const char *path)
{
	_cleanup_free_ char *copy = strdup(path);

	if (!copy || !mkdir(path, 0700) || errno != ENOENT)
		return;
	for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(copy, 0700);
		*slash = '/';
	}
	mkdir(path, 0700);
}

/* A lock of this process, which ends with it; children that are still there do not have it. */
static int lock_directory(int directory)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	_cleanup_close_ int fd = openat(
		directory, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno == ELOOP || errno == ENXIO ? -EPERM : -errno;
	if (fcntl(fd, F_SETLK, &lock))
		return errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
	return steal_fd(fd);
}

/* 0 too if it is skipped. */
static int note_file(struct spool *s, const char *name)
{
	struct spool_file *file;
	struct entry e = {};
	int err;

	if (!strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, LOCK_NAME))
		return 0;
	if (!strcmp(name, TEMPORARY) && !unlinkat(s->directory, name, 0))
		return 0;
	if (!parse_name(name, &e)) {
		count(s, &s->stats.strange);
		return 0;
	}
	s->next = max_u64(s->next, e.number + 1); /* of a torn one too: its name stays taken */
	err = spool_file__open(s->directory, name, &file);
	if (err == -ENOMEM)
		return err;
	if (err) {
		count(s, &s->stats.strange);
		return 0;
	}
	e.start = spool_file__head(file)->start;
	e.bytes = spool_file__head(file)->file_size;
	spool_file__free(file);
	return vec_push(&s->entries, e);
}

DEFINE_ORDER(compare_numbers, struct entry, ASCENDING(number));

/* Those in memory came while the directory could not be opened: they are newer than all files. */
static void renumber(struct spool *s, size_t count)
{
	if (s->is_taken)
		s->taken.number = s->next++;
	for (size_t i = 0; i < count; i++)
		s->entries.data[i].number = s->next++;
}

static int list_directory(struct spool *s)
{
	size_t in_memory = s->entries.count;
	_cleanup_closedir_ DIR *entries = open_names(s->directory, ".");
	int err = entries ? 0 : -errno;

	for (struct dirent *e; !err && (e = readdir(entries));)
		err = note_file(s, e->d_name);
	renumber(s, in_memory);
	vec_sort(&s->entries, compare_numbers);
	s->listed = true;
	make_room(s, 0);
	drop_old(s);
	return err;
}

static int open_directory(struct spool *s)
{
	int err;

	if (s->directory >= 0)
		return 0;
	make_directory(s->path);
	s->directory = open_own_directory(AT_FDCWD, s->path);
	if (s->directory < 0)
		return s->directory;
	s->lock_fd = lock_directory(s->directory);
	err = s->lock_fd < 0 ? s->lock_fd : 0;
	if (!err && !s->listed)
		err = list_directory(s);
	if (err)
		close_directory(s);
	return err;
}

/* ---- from the disk to memory, and back ------------------------------------------------------- */

static int write_entry(struct spool *s, struct entry *e)
{
	char name[NAME_SIZE];
	int err = make_room(s, e->bytes);

	if (err)
		return err;
	name_of(e, name);
	unlinkat(s->directory, TEMPORARY, 0);
	err = spool_file__save(e->memory, s->directory, TEMPORARY, name);
	if (!err)
		entry__fini(e);
	return err;
}

/* The directory was deleted, or replaced: it is made again, once. */
static int write_or_reopen(struct spool *s, struct entry *e)
{
	int err = (s->left ? -ECANCELED : open_directory(s)) ?: write_entry(s, e);

	if (err != -ENOENT)
		return err;
	close_directory(s);
	return open_directory(s) ?: write_entry(s, e);
}

/* Moves those in memory to disk, while it takes them. The directory is open, so numbers stay. */
static void move_to_disk(struct spool *s)
{
	for (size_t i = 0; i < s->entries.count; i++) {
		struct entry e = s->entries.data[i];
		int err;

		if (!e.memory)
			continue;
		err = write_or_reopen(s, &e);
		if (err == -ENOSPC && e.bytes > s->limit)
			continue;
		if (err)
			return;
		/* room that was made for it has moved it to the front */
		for (i = 0; s->entries.data[i].number != e.number;)
			i++;
		s->entries.data[i] = e;
	}
}

static void bound_memory(struct spool *s)
{
	size_t found = 0;

	for (size_t i = s->entries.count; i-- > 0;)
		if (s->entries.data[i].memory && ++found > SPOOL_MEMORY_WINDOWS)
			drop_entry(s, i, &s->stats.no_room);
}

/* ---- putting --------------------------------------------------------------------------------- */

static int put_entry(struct spool *s, struct entry *e)
{
	int err = vec_reserve(&s->entries, s->entries.count + 1), opened = 0;

	if (err)
		return err;
	if (s->path && !s->left)
		opened = open_directory(s); /* and learn which numbers there are */
	e->number = s->next++;
	if (s->path) {
		err = opened ? opened : write_or_reopen(s, e);
		set_error(s, err);
	}
	if (err == -ENOSPC && e->bytes > s->limit) {
		set_error(s, 0); /* not the disk's fault */
		return err;
	}
	return insert_entry(s, e);
}

int spool__put(struct spool *s, struct sealed_window *w)
{
	struct entry e = {.start = w->start_realtime, .milliseconds = w->end_realtime / NS_PER_MS};
	int err = spool_file__pack(w, &e.memory);

	sealed_window__fini(w);
	pthread_mutex_lock(&s->turn);
	drop_old(s);
	if (!err) {
		e.bytes = spool_file__head(e.memory)->file_size;
		err = put_entry(s, &e);
	}
	if (err) {
		entry__fini(&e);
		count(s, &s->stats.no_room);
	} else if (s->path && !e.memory) {
		move_to_disk(s);
	}
	bound_memory(s);
	publish(s);
	pthread_mutex_unlock(&s->turn);
	return err;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static int open_entry(struct spool *s, const struct entry *e, struct spool_file **file)
{
	char name[NAME_SIZE];

	*file = e->memory;
	if (e->memory)
		return 0;
	name_of(e, name);
	return spool_file__open(s->directory, name, file);
}

/* The first that can be opened; those before it are gone, or are no windows any more. */
static int take_first(struct spool *s)
{
	bool usable = s->path && !open_directory(s);

	for (size_t i = 0; i < s->entries.count;) {
		struct spool_file *file;
		int err;

		s->taken = s->entries.data[i];
		if (!s->taken.memory && !usable) {
			i++; /* it may come back */
			continue;
		}
		err = open_entry(s, &s->taken, &file);
		if (err == -ENOMEM || err == -EMFILE || err == -ENFILE)
			return -ENOMEM;
		remove_entry(s, i);
		if (!err) {
			s->window = (struct spool_window){s->taken.number, s->taken.memory, file};
			return 0;
		}
		count(s, &s->stats.strange);
	}
	return -ENOENT;
}

int spool__take(struct spool *s, struct spool_window **window)
{
	int err;

	pthread_mutex_lock(&s->turn);
	drop_old(s);
	err = s->left ? -ENOENT : take_first(s);
	s->is_taken = !err;
	publish(s);
	pthread_mutex_unlock(&s->turn);
	*window = &s->window;
	return err;
}

/* Under `turn`. `kept`: the index has what is in memory. */
static void end_window(struct spool *s, bool kept)
{
	s->is_taken = false;
	if (!s->taken.memory || !kept)
		spool_file__free(s->window.file);
	bound_memory(s);
	publish(s);
}

void spool__give_back(struct spool *s, struct spool_window *w, bool done)
{
	char name[NAME_SIZE];
	bool kept;

	pthread_mutex_lock(&s->turn);
	name_of(&s->taken, name);
	if (done && !w->in_memory && s->directory >= 0)
		unlinkat(s->directory, name, 0);
	kept = !done && !insert_entry(s, &s->taken);
	if (!done && !kept)
		count(s, &s->stats.no_room);
	end_window(s, kept);
	pthread_mutex_unlock(&s->turn);
}

void spool__set_aside(struct spool *s, struct spool_window *w)
{
	(void)w;
	pthread_mutex_lock(&s->turn);
	count(s, &s->stats.strange);
	end_window(s, false);
	pthread_mutex_unlock(&s->turn);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool is_wrong(int err)
{
	return err == -EBUSY || err == -EPERM || err == -ELOOP || err == -ENOTDIR || err == -ENOMEM;
}

static int fail_directory(int err, const char *path, struct failure *failure)
{
	if (err == -EBUSY) {
		fail(failure, err, "another agent uses the spool directory %s", path);
		return fail_remedy(failure, err, "give each agent a spool directory of its own");
	}
	if (err == -EPERM) {
		fail(failure, err, "the spool directory %s can be written to by others", path);
		return fail_remedy(failure, err, "chown and chmod 0700 it, or choose another one");
	}
	return fail(failure, err, "the spool directory %s: %s", path,
		    err == -ELOOP ? "a symbolic link" : strerror(-err));
}

int spool__new(const struct spool_options *o, struct spool **spool, struct failure *failure)
{
	struct spool *s = calloc(1, sizeof(*s));
	int err = 0;

	if (!s)
		return -ENOMEM;
	s->directory = s->lock_fd = -1;
	s->limit = o->bytes;
	s->age = o->age;
	s->next = 1;
	pthread_mutex_init(&s->turn, NULL);
	pthread_mutex_init(&s->lock, NULL);
	if (o->directory) {
		s->path = strdup(o->directory);
		err = s->path ? open_directory(s) : -ENOMEM;
		set_error(s, err);
	}
	if (is_wrong(err)) {
		spool__free(s);
		return fail_directory(err, o->directory, failure);
	}
	publish(s);
	*spool = s;
	return 0;
}

void spool__leave(struct spool *s)
{
	if (pthread_mutex_trylock(&s->turn))
		return; /* the disk hangs: this process ends without it */
	s->left = true;
	close_directory(s);
	pthread_mutex_unlock(&s->turn);
}

void spool__free(struct spool *s)
{
	if (!s)
		return;
	if (s->path && !s->left && !open_directory(s))
		move_to_disk(s);
	close_directory(s);
	vec_free_with(&s->entries, entry, entry__fini(entry));
	pthread_mutex_destroy(&s->turn);
	pthread_mutex_destroy(&s->lock);
	free(s->path);
	free(s);
}

void spool__stats(struct spool *s, struct spool_stats *stats)
{
	pthread_mutex_lock(&s->lock);
	*stats = s->stats;
	pthread_mutex_unlock(&s->lock);
}
