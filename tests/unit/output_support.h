/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests that write files: each has a directory of its own and runs in it. */
#ifndef TESTS_UNIT_OUTPUT_SUPPORT_H
#define TESTS_UNIT_OUTPUT_SUPPORT_H

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <zlib.h>

#include "unit.h"
#include "base/clocks.h"
#include "base/gzip.h"
#include "base/io.h"
#include "base/output_file.h"

static char directory[] = "/tmp/sysprof-test-io-XXXXXX", previous_directory[PATH_MAX];

static inline void enter_directory(void)
{
	strcpy(directory + strlen(directory) - 6, "XXXXXX");
	assert_true(getcwd(previous_directory, PATH_MAX) && mkdtemp(directory));
	assert_int_equal(chdir(directory), 0);
}

static inline void leave_directory(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", directory);
	assert_false(chdir(previous_directory) || system(command));
}

AT_START(leave_sudo) /* the tests themselves may run under sudo */
{
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

static inline void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static inline void expect_text(const char *path, const char *expected)
{
	char *data;
	size_t size;

	assert_int_equal(read_file_at(AT_FDCWD, path, 1 << 20, &data, &size), 0);
	assert_int_equal(size, strlen(expected));
	assert_string_equal(data, expected);
	free(data);
}

static inline int count_entries(const char *path)
{
	DIR *d = opendir(path);
	int count = 0;

	assert_non_null(d);
	while (readdir(d))
		count++;
	closedir(d);
	return count - 2;
}

static inline void put(const char *path, const char *text)
{
	struct output_file *f;

	assert_int_equal(output_file__open(path, &f), 0);
	fputs(text, output_file__stream(f));
	assert_int_equal(output_file__commit(f), 0);
}

#endif
