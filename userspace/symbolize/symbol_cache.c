/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The directory of the symbol cache.
 *
 * Everything in it is reached from one descriptor: of a directory that is ours and that nobody else
 * can write to, so no name in it can be swapped under our hands, whatever happens to the path that
 * led there. Files are opened without following links and looked at before they are read; one that
 * is not as we left it is deleted, and the answers are made anew.
 *
 * A file is written under another name and renamed: two processes that write the same one leave
 * one of the two, whole. The loser's answers are missing, no more.
 *
 * The time of last modification is the time of last use. When the files of all modules together
 * take more than the limit, the ones that were used longest ago go, until a quarter of it is free.
 */
#include "symbolize/symbol_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/vec.h"
#include "symbolize/symbol_image.h"

#define ROOT_DIRECTORY	"/var/cache"
#define DIRECTORY	"sysprof"
#define SUFFIX		".symbols"
#define TEMPORARY	".writing-"
#define TEMPORARY_AGE	3600 /* seconds after which its writer is surely gone */
#define DIRECTORY_FILES (1u << 20)
#define NAME_SIZE	(2 * SYMBOL_IMAGE_BUILD_ID_MAX + 1 + 16 + sizeof(SUFFIX))

/* Answers to be written, of one key. */
struct pending {
	struct symbol_image_id id;
	struct symbol_answers *answers;
};

struct symbol_cache {
	int directory;
	uint64_t limit;
	bool counted; /* `total` is known */
	uint64_t total;
	VEC(struct pending) pending;
	size_t last; /* the pending one that was used last */
};

struct cached_file {
	char name[NAME_SIZE];
	uint64_t size;
	struct timespec used;
};

struct file_list {
	VEC(struct cached_file) files;
	uint64_t total;
};

/* ---- the directory --------------------------------------------------------------------------- */

static bool is_ours(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* A directory of ours below `parent`, made if it is not there. Negative errno: it is not ours. */
static int open_own(int parent, const char *name)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (mkdirat(parent, name, 0700) && errno != EEXIST)
		return -errno;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	return is_ours(&st) ? steal_fd(fd) : -EPERM;
}

/* What holds the caches of all programs of this user, without a slash at its end. */
static int cache_home(char *path, size_t size)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int length;

	if (geteuid() == 0)
		length = snprintf(path, size, "%s", ROOT_DIRECTORY);
	else if (cache && cache[0] == '/')
		length = snprintf(path, size, "%s", cache);
	else if (home && home[0] == '/')
		length = snprintf(path, size, "%s/.cache", home);
	else
		return -ENOENT;
	if (length < 0 || (size_t)length >= size)
		return -ENAMETOOLONG;
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	return 0;
}

static struct symbol_cache *new_cache(int directory, uint64_t limit)
{
	struct symbol_cache *c = calloc(1, sizeof(*c));

	if (!c) {
		close(directory);
		return NULL;
	}
	c->directory = directory;
	c->limit = limit;
	return c;
}

struct symbol_cache *symbol_cache__open(void)
{
	_cleanup_close_ int home = -1, own = -1;
	char path[PATH_MAX];
	int directory;

	if (cache_home(path, sizeof(path)))
		return NULL;
	home = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (home < 0)
		return NULL;
	own = open_own(home, DIRECTORY);
	if (own < 0)
		return NULL;
	directory = open_own(own, "symbols");
	return directory < 0 ? NULL : new_cache(directory, SYMBOL_CACHE_LIMIT);
}

struct symbol_cache *symbol_cache__open_at(const char *path, uint64_t limit)
{
	int directory = open_own(AT_FDCWD, path);

	return directory < 0 ? NULL : new_cache(directory, limit);
}

void symbol_cache__free(struct symbol_cache *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->pending.count; i++)
		symbol_answers__free(c->pending.data[i].answers);
	vec_free(&c->pending);
	close(c->directory);
	free(c);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* false: nothing can be kept under such a key. */
static bool id_of_key(const struct symbol_cache_key *key, struct symbol_image_id *id)
{
	*id = (struct symbol_image_id){.debug_id = key->debug_id,
				       .build_id_size = key->build_id_size};
	if (!key->build_id_size || key->build_id_size > sizeof(id->build_id))
		return false;
	memcpy(id->build_id, key->build_id, key->build_id_size);
	return true;
}

static void file_name(const struct symbol_image_id *id, char name[NAME_SIZE])
{
	char *at = name;

	for (size_t i = 0; i < id->build_id_size; i++)
		at += snprintf(at, 3, "%02x", id->build_id[i]);
	snprintf(at, name + NAME_SIZE - at, "-%016llx" SUFFIX, (unsigned long long)id->debug_id);
}

/* All bytes of a file of ours. -EBADMSG: something else has its name. */
static int read_file(int directory, const char *name, void **data, size_t *size)
{
	_cleanup_close_ int fd = openat(directory, name,
					O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	_cleanup_free_ char *bytes = NULL;
	struct stat st;
	ssize_t got;

	if (fd < 0)
		return errno == ENOENT || errno == ENOMEM || errno == EMFILE || errno == ENFILE
			       ? -errno
			       : -EBADMSG;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !is_ours(&st) || st.st_size <= 0 ||
	    (uint64_t)st.st_size > SYMBOL_CACHE_FILE_LIMIT)
		return -EBADMSG;
	bytes = malloc(st.st_size);
	if (!bytes)
		return -ENOMEM;
	got = pread_full(fd, bytes, st.st_size, 0);
	if (got != st.st_size)
		return got < 0 ? got : -EBADMSG;
	futimens(fd, NULL); /* used just now */
	*data = steal_ptr(bytes);
	*size = st.st_size;
	return 0;
}

/* What is known of a module. -ENOENT: nothing, or what there was has been thrown away; -ENOMEM. */
static int load_image(struct symbol_cache *c, const struct symbol_image_id *id,
		      struct symbol_image **image)
{
	char name[NAME_SIZE];
	void *data = NULL;
	size_t size = 0;
	int err;

	file_name(id, name);
	err = read_file(c->directory, name, &data, &size);
	if (!err)
		err = symbol_image__open(data, size, id, image);
	if (err == -EBADMSG)
		unlinkat(c->directory, name, 0);
	return !err || err == -ENOMEM ? err : -ENOENT;
}

/* A file with a name that nobody guesses; for root as well, O_EXCL follows no link. */
static int open_temporary(int directory, char *name, size_t size)
{
	unsigned long long number;
	int fd;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		return -EAGAIN;
	snprintf(name, size, TEMPORARY "%016llx", number);
	fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static int write_file(int directory, const char *name, const void *data, size_t size)
{
	char temporary[64];
	int fd = open_temporary(directory, temporary, sizeof(temporary));
	int err;

	if (fd < 0)
		return fd;
	err = write_full(fd, data, size);
	if (close(fd) && !err)
		err = -errno;
	if (!err && renameat(directory, temporary, directory, name))
		err = -errno;
	if (err)
		unlinkat(directory, temporary, 0);
	return err;
}

/* ---- the limit ------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && !strcmp(text + length - end_length, end);
}

/* Note a file of the cache, remove what a writer that was killed left behind. */
static int note_file(int directory, const char *name, struct file_list *list)
{
	struct cached_file file;
	struct stat st;

	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	if (!strncmp(name, TEMPORARY, strlen(TEMPORARY))) {
		if (time(NULL) - st.st_mtim.tv_sec > TEMPORARY_AGE)
			unlinkat(directory, name, 0);
		return 0;
	}
	if (!ends_with(name, SUFFIX) || strlen(name) >= sizeof(file.name) ||
	    list->files.count >= DIRECTORY_FILES)
		return 0;
	file = (struct cached_file){.size = st.st_size, .used = st.st_mtim};
	memcpy(file.name, name, strlen(name) + 1);
	list->total += file.size;
	return vec_push(&list->files, file);
}

static int list_files(int directory, struct file_list *list)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
	_cleanup_closedir_ DIR *entries = NULL;

	if (fd < 0)
		return -errno;
	entries = fdopendir(fd);
	if (!entries) {
		err = -errno;
		close(fd);
		return err;
	}
	for (struct dirent *e; !err && (e = readdir(entries));)
		err = note_file(directory, e->d_name, list);
	return err;
}

static int compare_use(const void *a, const void *b)
{
	const struct timespec *x = &((const struct cached_file *)a)->used;
	const struct timespec *y = &((const struct cached_file *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* Bring the directory below its limit, and find out how much is in it. */
static int tidy(struct symbol_cache *c)
{
	struct file_list list = {};
	int err = list_files(c->directory, &list);

	if (!err && list.total > c->limit) {
		qsort(list.files.data, list.files.count, sizeof(*list.files.data), compare_use);
		for (size_t i = 0; i < list.files.count && list.total > c->limit / 4 * 3; i++)
			if (!unlinkat(c->directory, list.files.data[i].name, 0))
				list.total -= list.files.data[i].size;
	}
	if (!err) {
		c->total = list.total;
		c->counted = true;
	}
	vec_free(&list.files);
	return err;
}

/* What was written is counted even if it replaced something: the count is corrected by tidying. */
static int keep_limit(struct symbol_cache *c, size_t written)
{
	c->total += written;
	return c->counted && c->total <= c->limit ? 0 : tidy(c);
}

/* ---- answers --------------------------------------------------------------------------------- */

int symbol_cache__read(struct symbol_cache *c, const struct symbol_cache_key *key,
		       const uint64_t *addresses, size_t count, unsigned char *known,
		       symbol_sink_fn sink, void *context)
{
	struct symbol_image_id id;
	struct symbol_image *image;
	int err = 0;

	memset(known, 0, count);
	if (!id_of_key(key, &id))
		return 0;
	err = load_image(c, &id, &image);
	if (err)
		return 0; /* it is a cache: what it cannot tell is found out again */
	for (size_t i = 0; i < count && !err; i++) {
		struct symbol_result result;

		if (symbol_image__find(image, addresses[i], &result))
			continue;
		known[i] = 1;
		err = sink(context, i, &result);
	}
	symbol_image__free(image);
	return err;
}

static bool same_id(const struct symbol_image_id *a, const struct symbol_image_id *b)
{
	return a->debug_id == b->debug_id && a->build_id_size == b->build_id_size &&
	       !memcmp(a->build_id, b->build_id, a->build_id_size);
}

/* NULL: nothing was added under this key. */
static struct pending *find_pending(struct symbol_cache *c, const struct symbol_image_id *id)
{
	if (c->last < c->pending.count && same_id(&c->pending.data[c->last].id, id))
		return &c->pending.data[c->last];
	for (size_t i = 0; i < c->pending.count; i++) {
		if (same_id(&c->pending.data[i].id, id)) {
			c->last = i;
			return &c->pending.data[i];
		}
	}
	return NULL;
}

static struct pending *new_pending(struct symbol_cache *c, const struct symbol_image_id *id)
{
	struct pending pending = {.id = *id,
				  .answers = symbol_answers__new(SYMBOL_CACHE_FILE_LIMIT)};

	if (!pending.answers)
		return NULL;
	if (vec_push(&c->pending, pending)) {
		symbol_answers__free(pending.answers);
		return NULL;
	}
	c->last = c->pending.count - 1;
	return &c->pending.data[c->last];
}

int symbol_cache__add(struct symbol_cache *c, const struct symbol_cache_key *key, uint64_t address,
		      const struct symbol_result *result)
{
	struct symbol_image_id id;
	struct pending *pending;
	int err;

	if (!id_of_key(key, &id))
		return 0;
	pending = find_pending(c, &id);
	if (!pending)
		pending = new_pending(c, &id);
	if (!pending)
		return -ENOMEM;
	err = symbol_answers__add(pending->answers, address, result);
	return err == -EFBIG ? 0 : err; /* the cache is full, the answer is right all the same */
}

static int write_answers(struct symbol_cache *c, const struct symbol_image_id *id,
			 struct symbol_answers *answers)
{
	_cleanup_free_ void *data = NULL;
	struct symbol_image *old;
	char name[NAME_SIZE];
	size_t size;
	int err = load_image(c, id, &old);

	if (!err) {
		err = symbol_image__merge(old, answers);
		symbol_image__free(old);
	}
	if (err && err != -ENOENT)
		return err;
	err = symbol_answers__encode(answers, id, &data, &size);
	if (err)
		return err;
	file_name(id, name);
	err = write_file(c->directory, name, data, size);
	return err ? err : keep_limit(c, size);
}

int symbol_cache__commit(struct symbol_cache *c, const struct symbol_cache_key *key)
{
	struct symbol_image_id id;
	struct pending *pending;
	int err;

	if (!id_of_key(key, &id))
		return 0;
	pending = find_pending(c, &id);
	if (!pending)
		return 0;
	err = write_answers(c, &id, pending->answers);
	symbol_answers__free(pending->answers);
	*pending = c->pending.data[--c->pending.count];
	return err;
}
