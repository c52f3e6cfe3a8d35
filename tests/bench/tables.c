/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tables FILE…: builds the unwind table of each, as a recording does. Tells "rows N bytes N ns N" a
 * line: the table's size, and the fastest of three times.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "unwind/unwind_table.h"

#define LIMIT (64u << 20)

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

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct unwind_table_image image;
		uint64_t best = UINT64_MAX, rows = 0;
		size_t size = 0;

		for (int round = 0; round < 3; round++) {
			uint64_t took = build(argv[i], &image);

			best = took < best ? took : best;
			rows = image.rows;
			size = image.size;
			unwind_table_image__fini(&image);
		}
		printf("rows %" PRIu64 " bytes %zu ns %" PRIu64 "\n", rows, size, best);
	}
	return 0;
}
