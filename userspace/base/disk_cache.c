/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every file is opened relative to one descriptor of the directory. The directory is ours and not
 * writable by others, so its names cannot be swapped, whatever happens to its path. Files are
 * opened without following links and checked before use; the content of a bad one is made again.
 *
 * A file is written under another name and renamed: of two concurrent writers one file remains,
 * whole.
 *
 * The modification time is the time of last use. If all files exceed the limit, the least recently
 * used are deleted until a quarter of it is free.
 */
#include "base/disk_cache.h"

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
#include "base/gzip.h"
#include "base/io.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/suffix.h"
#include "base/vec.h"

#define ROOT_DIRECTORY	"/var/cache"
#define DIRECTORY	"sysprof"
#define TEMPORARY	".writing-"
#define TEMPORARY_AGE	3600 /* seconds after which its writer is surely gone */
#define DIRECTORY_FILES (1u << 20)
#define MAGIC		"sysprofC"
#define LIMIT_PARTS                                                                                \
	16 /* of the limit: the directory is listed once a part that is written, on average */

/* The head of each file. */
struct file_header {
	char magic[8];
	uint32_t header_size;
	uint32_t crc; /* of everything behind this field */
	uint64_t maker;
	uint64_t size; /* behind the header */
	char name[DISK_CACHE_NAME_SIZE];
};

#define CRC_START (offsetof(struct file_header, crc) + sizeof(uint32_t))

struct disk_cache {
	struct disk_cache_kind kind;
	int directory;
	int written;  /* the last file, whose pages go when the disk has them; -1: none */
	bool counted; /* `total` is known */
	uint64_t total;
};

struct cached_file {
	char name[DISK_CACHE_NAME_SIZE];
	uint64_t size;
	struct timespec used;
};

struct file_list {
	const struct disk_cache_kind *kind;
	VEC(struct cached_file) files;
	uint64_t total;
};

/* ---- the directory --------------------------------------------------------------------------- */

/* A directory of ours below `parent`, made if it is not there. Negative errno: it is not ours. */
static int open_own(int parent, const char *name)
{
	if (mkdirat(parent, name, 0700) && errno != EEXIST)
		return -errno;
	return open_own_directory(parent, name);
}

/* The directory of the caches of all programs of this user, without a slash at its end. */
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

static struct disk_cache *new_cache(const struct disk_cache_kind *kind, int directory)
{
	struct disk_cache *c = calloc(1, sizeof(*c));

	if (!c) {
		close(directory);
		return NULL;
	}
	c->kind = *kind;
	c->directory = directory;
	c->written = -1;
	return c;
}

struct disk_cache *disk_cache__open(const struct disk_cache_kind *kind)
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
	directory = open_own(own, kind->directory);
	return directory < 0 ? NULL : new_cache(kind, directory);
}

struct disk_cache *disk_cache__open_at(const struct disk_cache_kind *kind, const char *path)
{
	int directory = open_own(AT_FDCWD, path);

	return directory < 0 ? NULL : new_cache(kind, directory);
}

void disk_cache__free(struct disk_cache *c)
{
	if (!c)
		return;
	cleanup_close(&c->written);
	close(c->directory);
	free(c);
}

static void drop_written(struct disk_cache *c)
{
	io_drop_pages(c->written, 0, 0);
	cleanup_close(&c->written);
	c->written = -1;
}

/* ---- files ----------------------------------------------------------------------------------- */

void disk_cache__delete(struct disk_cache *c, const char *name)
{
	unlinkat(c->directory, name, 0);
}

static bool is_usable(const struct disk_cache *c, int fd, struct stat *st)
{
	return !fstat(fd, st) && S_ISREG(st->st_mode) && only_writable_by(st, geteuid()) &&
	       (uint64_t)st->st_size > sizeof(struct file_header) &&
	       (uint64_t)st->st_size - sizeof(struct file_header) <= c->kind.file_limit;
}

static struct file_header header_of(const struct disk_cache *c, const char *name, size_t size)
{
	struct file_header h = {.header_size = sizeof(h), .maker = c->kind.maker, .size = size};

	memcpy(h.magic, MAGIC, sizeof(h.magic));
	snprintf(h.name, sizeof(h.name), "%s", name);
	return h;
}

static uint32_t crc_of(const struct file_header *h, const void *data)
{
	uint32_t crc = crc32_update(0, (const char *)h + CRC_START, sizeof(*h) - CRC_START);

	return crc32_update(crc, data, h->size);
}

static int read_file(int fd, struct file_header *expected, void **data)
{
	_cleanup_free_ void *bytes = malloc(expected->size + 1);
	struct file_header header;
	int err = bytes ? pread_exactly(fd, &header, sizeof(header), 0) : -ENOMEM;

	if (!err)
		err = pread_exactly(fd, bytes, expected->size, sizeof(header));
	if (err)
		return err;
	expected->crc = crc_of(expected, bytes);
	if (memcmp(&header, expected, sizeof(header)))
		return -EBADMSG;
	*data = steal_ptr(bytes);
	return 0;
}

int disk_cache__read(struct disk_cache *c, const char *name, void **data, size_t *size)
{
	_cleanup_close_ int fd = openat(c->directory, name,
					O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct file_header header;
	struct stat st;
	int err;

	if (fd < 0 && (errno == ENOENT || errno == ENOMEM || errno == EMFILE || errno == ENFILE))
		return -errno;
	if (fd < 0 || !is_usable(c, fd, &st))
		return -EBADMSG;
	futimens(fd, NULL); /* used just now */
	*size = st.st_size - sizeof(header);
	header = header_of(c, name, *size);
	err = read_file(fd, &header, data);
	io_drop_pages(fd, 0, 0);
	return err;
}

/* A file with an unpredictable name. O_EXCL follows no link, not even for root. */
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

static int write_file(struct disk_cache *c, const struct file_header *header, const void *data)
{
	char temporary[64];
	int fd = open_temporary(c->directory, temporary, sizeof(temporary));
	int err;

	if (fd < 0)
		return fd;
	err = write_full(fd, header, sizeof(*header)) ?: write_full(fd, data, header->size);
	if (!err) {
		drop_written(c);
		io_drop_pages(fd, 0, 0); /* they are being written */
		c->written = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	}
	return finish_temporary(c->directory, fd, temporary, header->name, err);
}

/* ---- the limit ------------------------------------------------------------------------------- */

/* Most files of symbols have some hundred bytes and take one block. */
#define BLOCK 4096u

static uint64_t size_on_disk(const struct stat *st)
{
	return max_u64((uint64_t)st->st_size, (uint64_t)st->st_blocks * 512);
}

/* Lists a file of the cache; removes temporary files of killed writers. */
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
	if (!has_suffix(name, list->kind->suffix) || strlen(name) >= sizeof(file.name) ||
	    list->files.count >= DIRECTORY_FILES)
		return 0;
	file = (struct cached_file){.size = size_on_disk(&st), .used = st.st_mtim};
	memcpy(file.name, name, strlen(name) + 1);
	list->total += file.size;
	return vec_push(&list->files, file);
}

static int list_files(int directory, struct file_list *list)
{
	_cleanup_closedir_ DIR *entries = open_names(directory, ".");
	int err = entries ? 0 : -errno;

	for (struct dirent *e; !err && (e = readdir(entries));)
		err = note_file(directory, e->d_name, list);
	return err;
}

DEFINE_ORDER(compare_use, struct cached_file, ASCENDING(used.tv_sec) ?: ASCENDING(used.tv_nsec));

/* Deletes files until the directory is below its limit, and sums their sizes. */
static void tidy_directory(struct disk_cache *c)
{
	struct file_list list = {.kind = &c->kind};
	uint64_t limit = c->kind.limit;
	int err = list_files(c->directory, &list);

	if (!err && list.total > limit) {
		qsort(list.files.data, list.files.count, sizeof(*list.files.data), compare_use);
		for (size_t i = 0; i < list.files.count && list.total > limit / 4 * 3; i++)
			if (!unlinkat(c->directory, list.files.data[i].name, 0))
				list.total -= list.files.data[i].size;
	}
	if (!err) {
		c->total = list.total;
		c->counted = true;
	}
	vec_free(&list.files);
}

/*
 * Is it time to list the directory (50 ms for 40,000 files), after `size` more bytes? Decided at
 * random, in proportion to the bytes: programs that write little would list it in each run.
 */
static bool is_time_to_tidy(const struct disk_cache *c, uint64_t size)
{
	uint64_t part = c->kind.limit / LIMIT_PARTS, number;

	if (c->counted)
		return c->total > c->kind.limit;
	if (size >= part || getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		return true;
	return number % part < size;
}

int disk_cache__write(struct disk_cache *c, const char *name, const void *data, size_t size)
{
	struct file_header header = header_of(c, name, size);
	uint64_t on_disk = align_up(sizeof(header) + size, BLOCK);
	int err;

	header.crc = crc_of(&header, data);
	err = write_file(c, &header, data);
	if (err)
		return err;
	/* counted even if it replaced a file: tidying corrects the count */
	c->total += on_disk;
	if (is_time_to_tidy(c, on_disk))
		tidy_directory(c);
	return 0;
}
