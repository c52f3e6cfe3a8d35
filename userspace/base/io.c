/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole reads and writes, through EINTR and short ones. */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/minmax.h"

#define READ_STEP  4096
#define LINES_STEP (64u * 1024)
#define LARGE_READ (16u * 1024)
#define DROP_STEP  (1u << 20) /* bytes that are read before they are dropped */
#define PAGE	   4096	      /* where pages are larger, the first and the last one stay */

static bool keeps_no_pages;

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

int memory_with(const char *name, const void *data, size_t size)
{
	_cleanup_close_ int fd = memfd_create(name, MFD_CLOEXEC);
	return (fd < 0 ? -errno : write_full(fd, data, size)) ?: steal_fd(fd);
}

/* From the file's position on if `offset` is -1. */
static ssize_t read_all(int fd, char *data, size_t size, off_t offset)
{
	size_t done = 0;

	while (done < size) {
		ssize_t got = offset < 0 ? read(fd, data + done, size - done)
					 : pread(fd, data + done, size - done, offset + done);

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

void io_keep_no_pages(void)
{
	keeps_no_pages = true;
}

void io_drop_pages(int fd, uint64_t start, uint64_t size)
{
	uint64_t first = start / PAGE * PAGE;

	/* pages that are not on the disk stay, and are written soon */
	if (keeps_no_pages && fd >= 0)
		(void)posix_fadvise(fd, (off_t)first,
				    size ? (off_t)align_up(start + size - first, PAGE) : 0,
				    POSIX_FADV_DONTNEED);
}

/* Bytes in memory from `offset` on; -EAGAIN: none; -EOPNOTSUPP: not known for this file. */
static ssize_t read_present(int fd, void *data, size_t size, off_t offset)
{
	const struct iovec to = {.iov_base = data, .iov_len = size};
	ssize_t got = preadv2(fd, &to, 1, offset, RWF_NOWAIT);

	return got < 0 ? -errno : got;
}

/*
 * Pages that a process is the first to read are charged to its control group and stay: with debug
 * information, more than all else. So they are dropped, from the first that was not in memory on,
 * and in reads that continue the last one, because the kernel reads ahead.
 */
static ssize_t read_large(int fd, char *data, size_t size, off_t offset)
{
	static _Thread_local struct {
		int fd;
		off_t end; /* 0: there was none */
	} last;
	bool goes_on = last.end && last.fd == fd && last.end == offset;
	ssize_t present = goes_on ? -EAGAIN : read_present(fd, data, size, offset), got = 0;
	size_t done = present < 0 ? 0 : present;

	last.end = 0;
	if (present < 0 && present != -EAGAIN)
		return read_all(fd, data, size, offset);
	for (size_t step; done < size; done += got) {
		step = min_u64(size - done, DROP_STEP);
		got = read_all(fd, data + done, step, offset + (off_t)done);
		if (got <= 0)
			break;
		io_drop_pages(fd, offset + done, got);
		last.fd = fd;
		last.end = offset + (off_t)done + got;
	}
	return got < 0 ? got : (ssize_t)done;
}

ssize_t pread_full(int fd, void *data, size_t size, uint64_t offset)
{
	if (offset > INT64_MAX || size > INT64_MAX - offset)
		return -EOVERFLOW;
	return (keeps_no_pages && size >= LARGE_READ ? read_large : read_all)(fd, data, size,
									      (off_t)offset);
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
	return read_all(fd, data, size, -1);
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
	ssize_t got = fd < 0 ? -errno : read_full(fd, buffer, size);
	const char *newline;

	if (got < 0)
		return got;
	newline = memchr(buffer, '\n', got);
	if (newline)
		got = newline - buffer;
	if ((size_t)got == size)
		return -EFBIG;
	buffer[got] = '\0';
	return 0;
}

struct line_buffer {
	char *data;
	size_t used, size;
};

/* Passes on the whole lines that are there; the rest is moved to the front. */
static int take_lines(struct line_buffer *b, line_fn take, void *context)
{
	char *line = b->data, *end = b->data + b->used, *newline;
	int err = 0;

	while (!err && (newline = memchr(line, '\n', end - line))) {
		err = take(context, line, newline - line);
		line = newline + 1;
	}
	b->used = end - line;
	memmove(b->data, line, b->used);
	return err;
}

static int make_line_room(struct line_buffer *b, size_t longest)
{
	size_t size = b->size ? b->size * 2 : LINES_STEP;
	char *grown;

	if (b->used < b->size)
		return 0;
	if (b->size >= longest) {
		b->used = 0;
		return 0;
	}
	grown = realloc(b->data, size);
	if (!grown)
		return -ENOMEM;
	b->data = grown;
	b->size = size;
	return 0;
}

int read_lines(int fd, size_t longest, line_fn take, void *context)
{
	struct line_buffer b = {};
	int err;

	while (!(err = make_line_room(&b, longest))) {
		ssize_t got = read(fd, b.data + b.used, b.size - b.used);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			err = got < 0 ? -errno : 0;
			break;
		}
		b.used += got;
		err = take_lines(&b, take, context);
		if (err)
			break;
	}
	free(b.data);
	return err;
}

int open_own_directory(int dirfd, const char *path)
{
	_cleanup_close_ int fd = openat(dirfd, path,
					O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	return only_writable_by(&st, geteuid()) ? steal_fd(fd) : -EPERM;
}

int finish_temporary(int dirfd, int fd, const char *temporary, const char *name, int err)
{
	if (close(fd) && !err)
		err = -errno;
	if (!err && renameat(dirfd, temporary, dirfd, name))
		err = -errno;
	if (err)
		unlinkat(dirfd, temporary, 0);
	return err;
}

int file_stamp__read(int fd, struct file_stamp *stamp)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*stamp = (struct file_stamp){
		.device = st.st_dev,
		.inode = st.st_ino,
		.size = st.st_size,
		.changed = st.st_ctim.tv_sec,
		.changed_ns = st.st_ctim.tv_nsec,
	};
	return 0;
}
