/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tables DIRECTORY FILE…: builds the unwind table of each, as a recording does; then writes it to a cache
 * in DIRECTORY and reads it from there. Prints "rows N bytes N ns N write N read N" a line: the table's
 * size, and how long that takes, the fastest of three times. Read 0: it is not kept.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "unwind/table_cache.h"
#include "unwind/unwind_table.h"

#define LIMIT  (64u << 20)
#define ROUNDS 3

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t build(const char *path, struct unwind_table_image *image)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	uint64_t begin = now(), took;
	struct elf_file *file;

	err = elf_file__open(fd, &file);
	if (!err)
		err = unwind_table__build(file, LIMIT, image);
	took = now() - begin;
	if (err) {
		fprintf(stderr, "%s: %s\n", path, strerror(-err));
		exit(1);
	}
	elf_file__free(file);
	close(fd);
	return took;
}

static struct table_cache *cache;

/* False: such a table is not kept. */
static bool write_to_cache(const char *path, const struct unwind_table_image *image, uint64_t *took)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t begin = now();
	struct file_stamp stamp;
	bool wrote = false;

	if (!file_stamp__read(fd, &stamp)) {
		table_cache__keep(cache, fd, &stamp, image);
		wrote = table_cache__write(cache);
	}
	*took = now() - begin;
	close(fd);
	return wrote;
}

static uint64_t read_from_cache(const char *path, const struct unwind_table_image *built)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct unwind_table_image image;
	uint64_t begin = now(), took;
	int err = table_cache__read(cache, fd, LIMIT, &image);

	took = now() - begin;
	if (err || image.size != built->size || memcmp(image.bytes, built->bytes, built->size)) {
		fprintf(stderr, "%s: its table does not come back from the cache\n", path);
		exit(1);
	}
	unwind_table_image__fini(&image);
	close(fd);
	return took;
}

static void keep_smaller(uint64_t *best, uint64_t value)
{
	if (!*best || value < *best)
		*best = value;
}

static void measure(const char *path)
{
	uint64_t best = 0, wrote = 0, read = 0, took, rows = 0;
	struct unwind_table_image image;
	size_t size = 0;

	for (int round = 0; round < ROUNDS; round++) {
		keep_smaller(&best, build(path, &image));
		if (write_to_cache(path, &image, &took)) {
			keep_smaller(&wrote, took);
			keep_smaller(&read, read_from_cache(path, &image));
		}
		rows = image.rows;
		size = image.size;
		unwind_table_image__fini(&image);
	}
	printf("rows %" PRIu64 " bytes %zu ns %" PRIu64 " write %" PRIu64 " read %" PRIu64 "\n",
	       rows, size, best, wrote, read);
}

int main(int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		cache = table_cache__open(argv[1], TABLE_CACHE_LIMIT,
					  true); /* each may write 64 MB */
		if (!cache) {
			fprintf(stderr, "%s: no cache can be had there\n", argv[1]);
			return 1;
		}
		measure(argv[i]);
		table_cache__free(cache);
	}
	return 0;
}
