/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables are not stored:
 *
 * - If they are sparse: almost all is index and not read faster (chromium's has 77 bytes a row).
 * - If the file changed less than two seconds ago: it may change again with the same time, or be
 *   one that a build makes, runs once and deletes.
 * - If the file has no name: it will not be opened again.
 * - If the device number is of no device (major number 0). Another file system may get it after an
 *   unmount or a reboot, perhaps a user's own: an overlay of FUSE, or a network file system, where
 *   others decide inode and time. Such files are not read either. btrfs has only such numbers, but
 *   keeps inodes and times itself.
 * - If the file is on FUSE: a user's program decides inode and time, also when there is a device.
 *
 * Profiled users decide which files are read, so writes are bounded: 64 MB at once, 1 MB a second
 * in the long run. So is the memory that waits to be written. After a failed write, as on a full
 * disk, caching stops.
 */
#include "unwind/table_cache.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/disk_cache.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/vec.h"
#include "tenants/quota.h"
#include "unwind/table_maker.h"
#include "unwind/unwind_table_check.h"

#define SUFFIX		 ".table"
#define FILE_LIMIT	 (UINT64_C(64) << 20)
#define KEPT_BYTES_A_ROW 32
#define WRITTEN_LEAST	 4096 /* a block of the disk */
#define FRESH_SECONDS	 2
#define SECOND_NS	 1000000000u
#define UNWRITTEN_MAX	 (UINT64_C(16) << 20)

struct unwritten {
	char name[DISK_CACHE_NAME_SIZE];
	void *data;
	size_t size;
};

struct table_cache {
	struct disk_cache *files;
	VEC(struct unwritten) unwritten;
	uint64_t unwritten_size;
	bool any_device;
	bool failed; /* a write has */
	struct meter writes;
};

struct table_cache *table_cache__open(const char *path, uint64_t limit, bool any_device)
{
	const struct disk_cache_kind kind = {
		.directory = "unwind-tables",
		.suffix = SUFFIX,
		.limit = limit,
		.file_limit = FILE_LIMIT,
		/* the Makefile's hash of the sources: a change of them invalidates old files */
		.maker = TABLE_MAKER,
	};
	struct table_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->any_device = any_device;
	c->files = path ? disk_cache__open_at(&kind, path) : disk_cache__open(&kind);
	if (c->files)
		return c;
	free(c);
	return NULL;
}

static void forget_unwritten(struct table_cache *c)
{
	for (size_t i = 0; i < c->unwritten.count; i++)
		free(c->unwritten.data[i].data);
	c->unwritten.count = 0;
	c->unwritten_size = 0;
}

void table_cache__free(struct table_cache *c)
{
	if (!c)
		return;
	forget_unwritten(c);
	vec_free(&c->unwritten);
	disk_cache__free(c->files);
	free(c);
}

static void file_name(const struct file_stamp *stamp, char name[DISK_CACHE_NAME_SIZE])
{
	snprintf(name, DISK_CACHE_NAME_SIZE,
		 "%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64 SUFFIX, stamp->device,
		 stamp->inode, stamp->size, (uint64_t)stamp->changed, (uint64_t)stamp->changed_ns);
}

bool table_cache__is_stable(uint64_t device, unsigned int file_system)
{
	return file_system != FUSE_SUPER_MAGIC &&
	       (major(device) || file_system == BTRFS_SUPER_MAGIC);
}

/* Does the stamp identify the file as long as it does not change? */
static bool is_known(const struct table_cache *c, int fd, const struct file_stamp *stamp)
{
	struct statfs system;

	if (c->any_device)
		return true;
	return !fstatfs(fd, &system) && table_cache__is_stable(stamp->device, system.f_type);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The image's bytes come first, so decoding needs no copy of them. */
int table_cache__encode(const struct unwind_table_image *image, void **data, size_t *size)
{
	struct unwind_table_image last = *image;
	char *bytes = malloc(image->size + sizeof(last));

	if (!bytes)
		return -ENOMEM;
	last.bytes = NULL;
	memcpy(bytes, image->bytes, image->size);
	memcpy(bytes + image->size, &last, sizeof(last));
	*data = bytes;
	*size = image->size + sizeof(last);
	return 0;
}

int table_cache__decode(void *data, size_t size, size_t limit, struct unwind_table_image *image)
{
	_cleanup_free_ char *bytes = data;
	struct unwind_table_image read;

	if (size <= sizeof(read))
		return -EBADMSG;
	size -= sizeof(read);
	memcpy(&read, bytes + size, sizeof(read));
	read.bytes = bytes;
	if (read.size != size)
		return -EBADMSG;
	if (size > limit)
		return -EFBIG;
	if (unwind_table_image__check(&read))
		return -EBADMSG;
	bytes = NULL;
	*image = read;
	return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

int table_cache__read(struct table_cache *c, int fd, size_t limit, struct unwind_table_image *image)
{
	char name[DISK_CACHE_NAME_SIZE];
	struct file_stamp stamp;
	size_t size;
	void *data;
	int err;

	if (file_stamp__read(fd, &stamp) || !is_known(c, fd, &stamp))
		return -ENOENT;
	file_name(&stamp, name);
	err = disk_cache__read(c->files, name, &data, &size)
		      ?: table_cache__decode(data, size, limit, image);
	if (err == -EBADMSG) {
		log_debug(LOG_UNWIND, "cache: %s deleted: damaged, or of another version", name);
		disk_cache__delete(c->files, name);
	}
	return !err || err == -ENOMEM || err == -EFBIG ? err : -ENOENT;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool is_worth_keeping(const struct unwind_table_image *image)
{
	return image->size / KEPT_BYTES_A_ROW <= image->rows;
}

/* Will the stamp identify this file later? */
static bool is_lasting(const struct table_cache *c, int fd, const struct file_stamp *stamp)
{
	int64_t now = (int64_t)(realtime_ns() / SECOND_NS);
	struct file_stamp after;
	struct stat st;

	if (file_stamp__read(fd, &after) || memcmp(&after, stamp, sizeof(after)))
		return false;
	if (fstat(fd, &st) || !st.st_nlink)
		return false;
	return stamp->changed < now - FRESH_SECONDS && is_known(c, fd, stamp);
}

static bool may_write(struct table_cache *c, size_t size)
{
	return (!c->unwritten.count || c->unwritten_size + size <= UNWRITTEN_MAX) &&
	       meter__spend(&c->writes, &quota_row(QUOTA_TABLE_CACHE)->all,
			    max_u64(size, WRITTEN_LEAST), monotonic_ns());
}

void table_cache__keep(struct table_cache *c, int fd, const struct file_stamp *stamp,
		       const struct unwind_table_image *image)
{
	struct unwritten unwritten;

	if (c->failed || !is_worth_keeping(image) || !is_lasting(c, fd, stamp) ||
	    !may_write(c, image->size))
		return;
	file_name(stamp, unwritten.name);
	if (table_cache__encode(image, &unwritten.data, &unwritten.size))
		return;
	if (vec_push(&c->unwritten, unwritten)) {
		free(unwritten.data);
		return;
	}
	c->unwritten_size += unwritten.size;
}

bool table_cache__write(struct table_cache *c)
{
	struct unwritten *last;

	if (!c->unwritten.count)
		return false;
	last = &c->unwritten.data[--c->unwritten.count];
	c->unwritten_size -= last->size;
	c->failed = disk_cache__write(c->files, last->name, last->data, last->size) < 0;
	log_debug(LOG_UNWIND, "cache: %s %s, %zu bytes", last->name,
		  c->failed ? "not written; caching stops" : "written", last->size);
	free(last->data);
	if (c->failed)
		forget_unwritten(c);
	return true;
}
