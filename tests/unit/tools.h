/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For unit tests that make files: a scratch directory, commands in it (the machine's own compiler and
 * binutils), whole files. To be included after cmocka.h.
 */
#ifndef TESTS_UNIT_TOOLS_H
#define TESTS_UNIT_TOOLS_H

#include <ftw.h>

static char scratch[64];

static inline void make_scratch(void)
{
	snprintf(scratch, sizeof(scratch), "/tmp/sysprof-unit.XXXXXX");
	assert_true(mkdtemp(scratch));
}

static inline int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static inline void remove_scratch(void)
{
	assert_int_equal(nftw(scratch, remove_entry, 32, FTW_DEPTH | FTW_PHYS | FTW_MOUNT), 0);
}

/* Run a shell command in the scratch directory; what it prints shows if it fails. */
__attribute__((format(printf, 1, 2))) static inline void run(const char *format, ...)
{
	char command[4096];
	va_list arguments;
	int length = snprintf(command, sizeof(command), "cd %s && exec 2>&1; set -e; ", scratch);

	va_start(arguments, format);
	vsnprintf(command + length, sizeof(command) - length, format, arguments);
	va_end(arguments);
	if (system(command))
		fail_msg("failed: %s", command);
}

/* 0 or the command's status. */
static inline int has_tool(const char *name)
{
	char command[256];

	snprintf(command, sizeof(command), "command -v %s >/dev/null 2>&1", name);
	return !system(command);
}

static inline void scratch_path(const char *name, char *path, size_t size)
{
	snprintf(path, size, "%s/%s", scratch, name);
}

static inline int open_scratch(const char *name, int flags)
{
	char path[512];
	int fd;

	scratch_path(name, path, sizeof(path));
	fd = open(path, flags | O_CLOEXEC, 0600);
	if (fd < 0)
		fail_msg("cannot open %s", path);
	return fd;
}

static inline void write_scratch(const char *name, const void *data, size_t size)
{
	int fd = open_scratch(name, O_WRONLY | O_CREAT | O_TRUNC);

	assert_int_equal(write(fd, data, size), (ssize_t)size);
	close(fd);
}

/* The whole of a file; the caller frees. */
static inline void *read_path(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *data;

	if (fd < 0)
		fail_msg("cannot open %s", path);
	assert_int_equal(fstat(fd, &st), 0);
	data = malloc(st.st_size + 1);
	assert_non_null(data);
	assert_int_equal(read(fd, data, st.st_size), st.st_size);
	close(fd);
	*size = st.st_size;
	return data;
}

static inline unsigned char *read_scratch(const char *name, size_t *size)
{
	char path[512];

	scratch_path(name, path, sizeof(path));
	return read_path(path, size);
}

/* A new file, whatever was there. */
static inline void replace_path(const char *path, const void *data, size_t size)
{
	int fd;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), (ssize_t)size);
	close(fd);
}

#endif
