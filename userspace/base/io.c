/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole reads and writes, through EINTR and short ones. */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define READ_STEP 4096

int write_full(int fd, const void *data, size_t size)
{
	const char *p = data;

	while (size) {
		ssize_t written = write(fd, p, size);

		if (written < 0 &&
		    errno == EAGAIN) { /* a pipe that another process made non-blocking */
			struct pollfd wait = {.fd = fd, .events = POLLOUT};

			if (poll(&wait, 1, -1) < 0 && errno != EINTR)
				return -errno;
			continue;
		}
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		p += written;
		size -= written;
	}
	return 0;
}

ssize_t pread_full(int fd, void *data, size_t size, uint64_t offset)
{
	size_t done = 0;

	if (offset > INT64_MAX || size > INT64_MAX - offset)
		return -EOVERFLOW;
	while (done < size) {
		ssize_t got = pread(fd, (char *)data + done, size - done, offset + done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		done += got;
	}
	return done;
}

int pread_exactly(int fd, void *data, size_t size, uint64_t offset)
{
	ssize_t got = pread_full(fd, data, size, offset);

	if (got < 0)
		return (int)got;
	return (size_t)got == size ? 0 : -EBADMSG;
}

ssize_t read_full(int fd, void *data, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t got = read(fd, (char *)data + done, size - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		done += got;
	}
	return done;
}

int read_file_at(int dirfd, const char *path, size_t limit, char **data, size_t *size)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	_cleanup_free_ char *text = NULL;
	size_t used = 0, capacity = 0;

	if (fd < 0)
		return -errno;
	for (;;) {
		size_t next = capacity ? capacity * 2 : READ_STEP;
		char *grown;
		ssize_t got;

		if (limit < SIZE_MAX - 2 && next > limit + 2)
			next = limit + 2; /* one byte more than allowed, and the NUL */
		grown = realloc(text, next);
		if (!grown)
			return -ENOMEM;
		text = grown;
		capacity = next;
		got = read_full(fd, text + used, capacity - 1 - used);
		if (got < 0)
			return got;
		used += got;
		if (used > limit)
			return -EFBIG;
		if (used < capacity - 1)
			break;
	}
	text[used] = '\0';
	*data = steal_ptr(text);
	*size = used;
	return 0;
}

DIR *open_names(int dirfd, const char *path)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = fd < 0 ? NULL : fdopendir(fd);

	if (names)
		fd = -1; /* closedir() closes it */
	return names;
}

int read_line(const char *path, char *buffer, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	_cleanup_free_ char *text = NULL;
	const char *newline;
	ssize_t got;

	if (fd < 0)
		return -errno;
	if (!size)
		return -EFBIG;
	text = malloc(size);
	if (!text)
		return -ENOMEM;
	got = read_full(fd, text, size);
	if (got < 0)
		return got;
	newline = memchr(text, '\n', got);
	if (newline)
		got = newline - text;
	if ((size_t)got == size)
		return -EFBIG;
	memcpy(buffer, text, got);
	buffer[got] = '\0';
	return 0;
}
