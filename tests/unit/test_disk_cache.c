/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages of files in a program that keeps none, and room on the disk. What is read and written is in test_symbol_cache and test_table_cache. */
#include <sys/vfs.h>
#include <linux/magic.h>

#include "unit.h"
#include "base/cleanup.h"
#include "base/disk_cache.h"
#include "base/io.h"
#include "base/minmax.h"

#include "unit/tools.h"

#define SIZE (1u << 20)
#define PAGE 4096u

/* On a disk, which /tmp may not be. */
static void make_directory(void)
{
	snprintf(scratch, sizeof(scratch), "/var/tmp/disk-cache-XXXXXX");
	assert_true(mkdtemp(scratch));
}

static bool is_in_memory(void)
{
	struct statfs fs;

	return statfs(scratch, &fs) || fs.f_type == TMPFS_MAGIC ||
	       fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

static struct disk_cache *open_cache(uint64_t limit, uint64_t file_limit)
{
	const struct disk_cache_kind kind = {
		.directory = "x", .suffix = ".x", .limit = limit, .file_limit = file_limit};
	struct disk_cache *c = disk_cache__open_at(&kind, scratch);

	assert_non_null(c);
	return c;
}

/* How many pages of the file are in memory. */
static size_t resident_pages(const char *path)
{
	unsigned char pages[SIZE / PAGE + 2] = {};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t count = 0, size;
	struct stat st;
	void *map;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	size = st.st_size;
	map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(mincore(map, size, pages), 0);
	for (size_t i = 0; i < (size + PAGE - 1) / PAGE; i++)
		count += pages[i] & 1;
	munmap(map, size);
	close(fd);
	return count;
}

static void write_to_disk(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fsync(fd), 0);
}

TEST(pages_of_cache_files_are_dropped_on_request)
{
	char first[128], second[128], *data;
	struct disk_cache *c;
	size_t size;
	void *read;

	if (is_in_memory())
		skip();
	data = calloc(1, SIZE);
	scratch_path("first.x", first, sizeof(first));
	scratch_path("second.x", second, sizeof(second));
	c = open_cache(64u << 20, 8u << 20);
	/* a program that ends soon leaves them for the next one */
	assert_int_equal(disk_cache__write(c, "first.x", data, SIZE), 0);
	write_to_disk(first);
	assert_int_equal(disk_cache__write(c, "second.x", data, SIZE), 0);
	assert_true(resident_pages(first) > SIZE / PAGE / 2);

	io_keep_no_pages();
	assert_int_equal(disk_cache__read(c, "first.x", &read, &size), 0);
	assert_int_equal(size, SIZE);
	free(read);
	assert_true(resident_pages(first) < SIZE / PAGE / 2);
	assert_int_equal(disk_cache__write(c, "second.x", data, SIZE), 0);
	write_to_disk(second);
	assert_int_equal(disk_cache__write(c, "first.x", data, SIZE), 0);
	assert_true(resident_pages(second) < SIZE / PAGE / 2);
	disk_cache__free(c);
	free(data);
}

/* A file of a hundred bytes takes a block, and that is what the limit is of. */
TEST(small_files_count_as_whole_blocks)
{
	struct disk_cache *c = open_cache(16 * PAGE, PAGE);
	char name[16], path[128];
	struct stat st = {};
	size_t left = 0;

	for (int i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "%d.x", i);
		assert_int_equal(disk_cache__write(c, name, "text", 5), 0);
	}
	disk_cache__free(c);
	for (int i = 0; i < 64; i++) {
		snprintf(path, sizeof(path), "%s/%d.x", scratch, i);
		left += !stat(path, &st);
	}
	if (st.st_blocks * 512 < PAGE)
		skip(); /* a file system that keeps small files elsewhere */
	assert_in_range(left, 12, 16);
}

/* What was written is there, also if nothing can be evicted for it. */
TEST(a_write_succeeds_if_the_directory_cannot_be_listed)
{
	struct disk_cache *c = open_cache(PAGE, PAGE);
	uid_t user = geteuid();
	char path[128];
	int err;

	scratch_path("a.x", path, sizeof(path));
	if (!user) {
		assert_int_equal(chown(scratch, 12345, 12345), 0);
		assert_int_equal(seteuid(12345), 0);
	}
	chmod(scratch, 0300);
	err = disk_cache__write(c, "a.x", "text", 5);
	assert_int_equal(seteuid(user), 0);
	assert_int_equal(err, 0);
	assert_int_equal(chmod(scratch, 0700), 0);
	assert_int_equal(access(path, F_OK), 0);
	disk_cache__free(c);
}

struct large_read {
	size_t there;	    /* bytes of the file's begin that are in memory before */
	size_t start, step; /* read from `start` to the end, in steps */
};

/*
 * The number of pages in memory after such a read, at best: whether a page is there is seen by a
 * read that does not wait, and a fast disk may have brought it by then.
 */
static size_t pages_after(const char *path, int fd, const char *data, const struct large_read *r)
{
	_cleanup_free_ char *read = malloc(SIZE);
	size_t least = SIZE / PAGE;

	assert_non_null(read);
	for (int try = 0; try < 20; try++) {
		io_drop_pages(fd, 0, 0);
		assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0);
		for (size_t at = 0; at < r->there; at += PAGE)
			assert_int_equal(pread_full(fd, read, PAGE, at), PAGE);
		assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_NORMAL), 0);
		for (size_t at = r->start, size; at < SIZE; at += size) {
			size = min_u64(SIZE - at, r->step);
			assert_int_equal(pread_full(fd, read + at, size, at), size);
		}
		assert_memory_equal(read + r->start, data + r->start, SIZE - r->start);
		least = min_u64(least, resident_pages(path));
	}
	return least;
}

/* Pages that were there may be others' and stay; those that a large read had to get do not. */
TEST(a_large_read_leaves_only_pages_that_were_resident)
{
	static const struct large_read AT_ONCE = {.start = 5, .step = SIZE},
				       HALF = {SIZE / 2, SIZE / 4, SIZE},
				       TABLE = {.step = SIZE / 16};
	_cleanup_close_ int fd = open_scratch("large", O_RDWR | O_CREAT);
	_cleanup_free_ char *data = malloc(SIZE);
	char path[128];

	scratch_path("large", path, sizeof(path));
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (char)(i / PAGE + i);
	assert_int_equal(write_full(fd, data, SIZE), 0);
	write_to_disk(path);
	if (is_in_memory())
		skip();
	io_keep_no_pages();
	assert_int_equal(resident_pages(path), SIZE / PAGE);
	assert_true(pages_after(path, fd, data, &AT_ONCE) < 4);
	assert_in_range(pages_after(path, fd, data, &HALF), SIZE / PAGE / 2 - 1,
			SIZE / PAGE / 2 + 1);
	assert_true(pages_after(path, fd, data, &TABLE) < SIZE / PAGE / 4);
}

EACH_TEST_WITH(make_directory, remove_scratch);
