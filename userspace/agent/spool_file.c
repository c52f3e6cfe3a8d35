/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *   head        magic, lengths, times, hash of itself, the rows and the strings
 *   states      a byte a request, which changes and is in no hash
 *   rows        of each request: sizes, sums, hash of its body
 *   strings     path, type and encoding of each request
 *   bodies
 *
 * A file has exactly the length in its head, so a truncated one is recognized when it is opened. A body is compared
 * with its hash when it is read. A change of this layout changes the magic: files of another version are not ours.
 */
#include "agent/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hashmap.h"
#include "base/io.h"

#define MAGIC	     "SYSWIN1\n"
#define REQUESTS_MAX 65536
#define STRING_MAX   4096
#define STRINGS_MAX  (4u << 20)
#define BODY_MAX     (1u << 30)

struct head {
	char magic[8];
	uint64_t hash; /* of head, rows and strings, while this is 0 */
	uint64_t file_size;
	uint64_t number, start, end;
	uint32_t count;	       /* of requests */
	uint32_t strings_size; /* bytes */
};

struct row {
	uint64_t size, hash; /* of the body */
	uint64_t samples, cpu_ns;
	uint32_t series;
	uint32_t path_size, type_size, encoding_size; /* with their NULs, one behind the other */
};

struct spool_file {
	int fd;
	struct head head;
	uint8_t *states;
	struct row *rows;
	char *strings;
	uint64_t bodies; /* offset of the first */
};

/* ---- writing --------------------------------------------------------------------------------- */

static uint64_t strings_size(const struct sink_request *r)
{
	return strlen(r->path) + strlen(r->content_type) + strlen(r->content_encoding) + 3;
}

static uint64_t hash_head(const struct head *head, const struct row *rows, const char *strings)
{
	struct head h = *head;
	uint64_t parts[3];

	h.hash = 0;
	parts[0] = hash_stable(&h, sizeof(h));
	parts[1] = hash_stable(rows, h.count * sizeof(*rows));
	parts[2] = hash_stable(strings, h.strings_size);
	return hash_stable(parts, sizeof(parts));
}

uint64_t spool_file__size(const struct sealed_window *w)
{
	uint64_t size = sizeof(struct head) + w->request_count * (sizeof(struct row) + 1);

	for (size_t i = 0; i < w->request_count; i++)
		size += strings_size(&w->requests[i]) + w->requests[i].size;
	return size;
}

static uint32_t put_string(char *strings, size_t *at, const char *text)
{
	size_t size = strlen(text) + 1;

	memcpy(strings + *at, text, size);
	*at += size;
	return size;
}

static void fill_rows(const struct sealed_window *w, struct row *rows, char *strings)
{
	size_t at = 0;

	for (size_t i = 0; i < w->request_count; i++) {
		const struct sink_request *r = &w->requests[i];

		rows[i] = (struct row){
			.size = r->size,
			.hash = hash_stable(r->size ? r->body : "", r->size),
			.samples = r->samples,
			.cpu_ns = r->cpu_ns,
			.series = r->series,
		};
		rows[i].path_size = put_string(strings, &at, r->path);
		rows[i].type_size = put_string(strings, &at, r->content_type);
		rows[i].encoding_size = put_string(strings, &at, r->content_encoding);
	}
}

static bool is_too_large(const struct sealed_window *w, uint64_t strings)
{
	if (w->request_count > REQUESTS_MAX || strings > STRINGS_MAX)
		return true;
	for (size_t i = 0; i < w->request_count; i++)
		if (w->requests[i].size > BODY_MAX || strings_size(&w->requests[i]) > STRING_MAX)
			return true;
	return false;
}

static int write_window(int fd, const struct sealed_window *w, const uint8_t *states)
{
	_cleanup_free_ struct row *rows = calloc(w->request_count + 1, sizeof(*rows));
	_cleanup_free_ char *strings = NULL;
	struct head head = {.magic = MAGIC,
			    .file_size = spool_file__size(w),
			    .number = w->number,
			    .start = w->start_realtime,
			    .end = w->end_realtime};
	uint64_t size = 0;
	int err;

	for (size_t i = 0; i < w->request_count; i++)
		size += strings_size(&w->requests[i]);
	if (is_too_large(w, size))
		return -E2BIG;
	strings = malloc(size + 1);
	if (!rows || !strings)
		return -ENOMEM;
	head.count = w->request_count;
	head.strings_size = size;
	fill_rows(w, rows, strings);
	head.hash = hash_head(&head, rows, strings);
	err = write_full(fd, &head, sizeof(head));
	if (!err)
		err = write_full(fd, states, head.count);
	if (!err)
		err = write_full(fd, rows, head.count * sizeof(*rows));
	if (!err)
		err = write_full(fd, strings, size);
	for (size_t i = 0; i < w->request_count && !err; i++)
		err = write_full(fd, w->requests[i].body,
				 w->requests[i].size); /* NULL: of no bytes */
	return err;
}

int spool_file__write(int directory, const char *temporary, const char *name,
		      const struct sealed_window *w, const uint8_t *states)
{
	int fd = openat(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0600);
	int err;

	if (fd < 0)
		return -errno;
	err = write_window(fd, w, states);
	if (!err && fsync(fd))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	if (!err && renameat(directory, temporary, directory, name))
		err = -errno;
	if (err) {
		unlinkat(directory, temporary, 0);
		return err;
	}
	if (!fsync(directory))
		return 0;
	err = -errno;
	unlinkat(directory, name, 0);
	return err;
}

/* ---- reading --------------------------------------------------------------------------------- */

void spool_file__free(struct spool_file *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	free(f->states);
	free(f->rows);
	free(f->strings);
	free(f);
}

static void cleanup_file(struct spool_file **f)
{
	spool_file__free(*f);
}

/* Strings of their length with one NUL each, and lengths that add up. */
static bool rows_are_sound(const struct spool_file *f)
{
	uint64_t strings = 0, bodies = 0;

	for (size_t i = 0; i < f->head.count; i++) {
		const struct row *r = &f->rows[i];
		const uint32_t sizes[] = {r->path_size, r->type_size, r->encoding_size};

		for (size_t j = 0; j < 3; j++) {
			if (!sizes[j] || sizes[j] > STRING_MAX ||
			    sizes[j] > f->head.strings_size - strings ||
			    strnlen(f->strings + strings, sizes[j]) != sizes[j] - 1)
				return false;
			strings += sizes[j];
		}
		if (r->size > BODY_MAX)
			return false;
		bodies += r->size;
	}
	return strings == f->head.strings_size && f->bodies + bodies == f->head.file_size;
}

static int read_head(struct spool_file *f)
{
	struct head *h = &f->head;
	struct stat st;
	uint64_t at = sizeof(*h);
	int err;

	if (fstat(f->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		return -EPERM;
	err = pread_exactly(f->fd, h, sizeof(*h), 0);
	if (err)
		return err;
	if (memcmp(h->magic, MAGIC, sizeof(h->magic)) || h->count > REQUESTS_MAX ||
	    h->strings_size > STRINGS_MAX || h->file_size != (uint64_t)st.st_size)
		return -EBADMSG;
	f->states = malloc(h->count + 1);
	f->rows = calloc(h->count + 1, sizeof(*f->rows));
	f->strings = malloc(h->strings_size + 1);
	if (!f->states || !f->rows || !f->strings)
		return -ENOMEM;
	err = pread_exactly(f->fd, f->states, h->count, at);
	at += h->count;
	if (!err)
		err = pread_exactly(f->fd, f->rows, h->count * sizeof(*f->rows), at);
	at += h->count * sizeof(*f->rows);
	if (!err)
		err = pread_exactly(f->fd, f->strings, h->strings_size, at);
	f->bodies = at + h->strings_size;
	if (err)
		return err;
	return hash_head(h, f->rows, f->strings) == h->hash && rows_are_sound(f) ? 0 : -EBADMSG;
}

int spool_file__open(int directory, const char *name, struct spool_file **file)
{
	_cleanup_(cleanup_file) struct spool_file *f = calloc(1, sizeof(*f));
	const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
	int err;

	if (!f)
		return -ENOMEM;
	f->fd = openat(directory, name, O_RDWR | flags);
	if (f->fd < 0 && (errno == EROFS || errno == EACCES))
		f->fd = openat(directory, name, O_RDONLY | flags);
	if (f->fd < 0)
		return errno == ELOOP || errno == EISDIR || errno == ENXIO ? -EPERM : -errno;
	err = read_head(f);
	if (err)
		return err;
	*file = steal_ptr(f);
	return 0;
}

uint64_t spool_file__start(const struct spool_file *f)
{
	return f->head.start;
}

uint64_t spool_file__end(const struct spool_file *f)
{
	return f->head.end;
}

uint64_t spool_file__bytes(const struct spool_file *f)
{
	return f->head.file_size;
}

size_t spool_file__count(const struct spool_file *f)
{
	return f->head.count;
}

uint8_t spool_file__state(const struct spool_file *f, size_t i)
{
	return f->states[i];
}

int spool_file__set_state(struct spool_file *f, size_t i, uint8_t state)
{
	if (f->states[i] == state)
		return 0;
	f->states[i] = state;
	for (;;) {
		ssize_t written = pwrite(f->fd, &state, 1, sizeof(struct head) + i);

		if (written == 1)
			return 0;
		if (written >= 0 || errno != EINTR)
			return written < 0 ? -errno : -EIO;
	}
}

/* Where its strings and its body are. */
static void find_request(const struct spool_file *f, size_t index, const char **strings,
			 uint64_t *body)
{
	*strings = f->strings;
	*body = f->bodies;
	for (size_t i = 0; i < index; i++) {
		const struct row *r = &f->rows[i];

		*strings += r->path_size + r->type_size + r->encoding_size;
		*body += r->size;
	}
}

int spool_file__read(const struct spool_file *f, size_t i, struct sink_request *request)
{
	_cleanup_(sink_request__fini) struct sink_request r = {};
	const struct row *row = &f->rows[i];
	const char *strings;
	uint64_t at;
	int err;

	find_request(f, i, &strings, &at);
	r = (struct sink_request){
		.path = strdup(strings),
		.content_type = strdup(strings + row->path_size),
		.content_encoding = strdup(strings + row->path_size + row->type_size),
		.body = malloc(row->size + 1),
		.size = row->size,
		.samples = row->samples,
		.cpu_ns = row->cpu_ns,
		.series = row->series,
	};
	if (!r.path || !r.content_type || !r.content_encoding || !r.body)
		return -ENOMEM;
	err = pread_exactly(f->fd, r.body, r.size, at);
	if (err)
		return err;
	if (hash_stable(r.body, r.size) != row->hash)
		return -EBADMSG;
	*request = r;
	r = (struct sink_request){};
	return 0;
}
