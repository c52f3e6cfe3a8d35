/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *   head        magic, lengths, times, hash of itself, the rows and the strings
 *   states      a byte a request, which changes and is in no hash
 *   rows        of each request: sizes, sums, hash of its body
 *   strings     path, type and encoding of each request
 *   bodies
 *
 * In memory it has the same bytes. A file has exactly the length in its head, so a truncated one is
 * recognized when it is opened. A body is compared with its hash when it is read. Another layout
 * has another magic: files of other versions are not ours.
 */
#include "agent/spool_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/spool.h"
#include "base/cleanup.h"
#include "base/hashmap.h"
#include "base/io.h"

#define MAGIC	     "SYSWIN1\n"
#define REQUESTS_MAX 65536
#define STRING_MAX   4096
#define STRINGS_MAX  (4u << 20)
#define BODY_MAX     (1u << 30)

struct row {
	uint64_t size, hash; /* of the body */
	uint64_t samples, cpu_ns;
	uint32_t series;
	uint32_t path_size, type_size, encoding_size; /* with their NULs, one behind the other */
};

struct spool_file {
	int fd; /* -1: in memory */
	struct spool_head head;
	uint8_t *bytes; /* those before the bodies; in memory all */
};

static size_t rows_offset(const struct spool_head *head)
{
	return sizeof(*head) + head->count;
}

static size_t strings_offset(const struct spool_head *head)
{
	return rows_offset(head) + head->count * sizeof(struct row);
}

static size_t bodies_offset(const struct spool_head *head)
{
	return strings_offset(head) + head->strings_size;
}

static struct row row_at(const struct spool_file *f, size_t i)
{
	struct row row;

	memcpy(&row, f->bytes + rows_offset(&f->head) + i * sizeof(row), sizeof(row));
	return row;
}

static uint64_t hash_of(const struct spool_file *f)
{
	struct spool_head h = f->head;
	uint64_t parts[3];

	h.hash = 0;
	parts[0] = hash_stable(&h, sizeof(h));
	parts[1] = hash_stable(f->bytes + rows_offset(&h), h.count * sizeof(struct row));
	parts[2] = hash_stable(f->bytes + strings_offset(&h), h.strings_size);
	return hash_stable(parts, sizeof(parts));
}

void spool_file__free(struct spool_file *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	free(f->bytes);
	free(f);
}

static void cleanup_file(struct spool_file **f)
{
	spool_file__free(*f);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* 0, -E2BIG. */
static int measure(const struct sealed_window *w, struct spool_head *head)
{
	uint64_t strings = 0, bodies = 0;

	*head = (struct spool_head){.number = w->number,
				    .start = w->start_realtime,
				    .end = w->end_realtime,
				    .count = w->request_count};
	memcpy(head->magic, MAGIC, sizeof(head->magic));
	if (w->request_count > REQUESTS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < w->request_count; i++) {
		const struct sink_request *r = &w->requests[i];
		size_t size = strlen(r->path) + strlen(r->content_type) +
			      strlen(r->content_encoding) + 3;

		strings += size;
		bodies += r->size;
		if (size > STRING_MAX || strings > STRINGS_MAX || r->size > BODY_MAX)
			return -E2BIG;
	}
	head->strings_size = strings;
	head->file_size = bodies_offset(head) + bodies;
	return 0;
}

static void *put(void *at, const void *data, size_t size)
{
	return size ? mempcpy(at, data, size) : at;
}

static void fill(struct spool_file *f, const struct sealed_window *w)
{
	uint8_t *rows = f->bytes + rows_offset(&f->head);
	uint8_t *strings = f->bytes + strings_offset(&f->head);
	uint8_t *bodies = f->bytes + bodies_offset(&f->head);

	memset(f->bytes + sizeof(f->head), REQUEST_UNSENT, f->head.count);
	for (size_t i = 0; i < w->request_count; i++) {
		const struct sink_request *r = &w->requests[i];
		const struct row row = {
			.size = r->size,
			.hash = hash_stable(r->size ? r->body : "", r->size),
			.samples = r->samples,
			.cpu_ns = r->cpu_ns,
			.series = r->series,
			.path_size = strlen(r->path) + 1,
			.type_size = strlen(r->content_type) + 1,
			.encoding_size = strlen(r->content_encoding) + 1,
		};

		rows = put(rows, &row, sizeof(row));
		strings = put(strings, r->path, row.path_size);
		strings = put(strings, r->content_type, row.type_size);
		strings = put(strings, r->content_encoding, row.encoding_size);
		bodies = put(bodies, r->body, r->size);
	}
	f->head.hash = hash_of(f);
	put(f->bytes, &f->head, sizeof(f->head));
}

int spool_file__pack(const struct sealed_window *w, struct spool_file **file)
{
	_cleanup_(cleanup_file) struct spool_file *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->fd = -1;
	err = measure(w, &f->head);
	if (err)
		return err;
	f->bytes = malloc(f->head.file_size);
	if (!f->bytes)
		return -ENOMEM;
	fill(f, w);
	*file = steal_ptr(f);
	return 0;
}

int spool_file__save(const struct spool_file *f, int directory, const char *temporary,
		     const char *name)
{
	int fd = openat(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0600);
	int err;

	if (fd < 0)
		return -errno;
	err = write_full(fd, f->bytes, f->head.file_size);
	if (!err && fsync(fd))
		err = -errno;
	err = finish_temporary(directory, fd, temporary, name, err);
	if (err || !fsync(directory))
		return err;
	err = -errno;
	unlinkat(directory, name, 0);
	return err;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Strings of their length with one NUL each, and lengths that add up. */
static bool rows_are_sound(const struct spool_file *f)
{
	const char *text = (const char *)f->bytes + strings_offset(&f->head);
	uint64_t strings = 0, bodies = 0;

	for (size_t i = 0; i < f->head.count; i++) {
		const struct row r = row_at(f, i);
		const uint32_t sizes[] = {r.path_size, r.type_size, r.encoding_size};

		for (size_t j = 0; j < 3; j++) {
			if (!sizes[j] || sizes[j] > STRING_MAX ||
			    sizes[j] > f->head.strings_size - strings ||
			    strnlen(text + strings, sizes[j]) != sizes[j] - 1)
				return false;
			strings += sizes[j];
		}
		if (r.size > BODY_MAX)
			return false;
		bodies += r.size;
	}
	return strings == f->head.strings_size &&
	       bodies_offset(&f->head) + bodies == f->head.file_size;
}

static int read_head(struct spool_file *f)
{
	struct spool_head *h = &f->head;
	struct stat st;
	int err;

	if (fstat(f->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || !only_writable_by(&st, geteuid()))
		return -EPERM;
	err = pread_exactly(f->fd, h, sizeof(*h), 0);
	if (err)
		return err;
	if (memcmp(h->magic, MAGIC, sizeof(h->magic)) || h->count > REQUESTS_MAX ||
	    h->strings_size > STRINGS_MAX || h->file_size != (uint64_t)st.st_size)
		return -EBADMSG;
	f->bytes = malloc(bodies_offset(h));
	if (!f->bytes)
		return -ENOMEM;
	return pread_exactly(f->fd, f->bytes, bodies_offset(h), 0)
		       ?: (hash_of(f) == h->hash && rows_are_sound(f) ? 0 : -EBADMSG);
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

const struct spool_head *spool_file__head(const struct spool_file *f)
{
	return &f->head;
}

uint8_t spool_file__state(const struct spool_file *f, size_t i)
{
	return f->bytes[sizeof(f->head) + i];
}

void spool_file__set_state(struct spool_file *f, size_t i, uint8_t state)
{
	size_t at = sizeof(f->head) + i;
	ssize_t written = 1;

	if (f->bytes[at] == state)
		return;
	f->bytes[at] = state;
	while (f->fd >= 0 && (written = pwrite(f->fd, &state, 1, at)) < 0 && errno == EINTR)
		;
	if (written != 1) /* after a restart the request is sent again: the same bytes */
		log_debug(LOG_AGENT, "spool: progress is not kept: %s",
			  strerror(written < 0 ? errno : EIO));
}

/* Where its strings and its body are. */
static struct row find_request(const struct spool_file *f, size_t index, const char **strings,
			       uint64_t *body)
{
	*strings = (const char *)f->bytes + strings_offset(&f->head);
	*body = bodies_offset(&f->head);
	for (size_t i = 0; i < index; i++) {
		const struct row r = row_at(f, i);

		*strings += r.path_size + r.type_size + r.encoding_size;
		*body += r.size;
	}
	return row_at(f, index);
}

int spool_file__read(const struct spool_file *f, size_t i, struct sink_request *request)
{
	_cleanup_(sink_request__fini) struct sink_request r = {};
	const char *strings;
	uint64_t at;
	const struct row row = find_request(f, i, &strings, &at);
	int err = 0;

	r = (struct sink_request){
		.path = strdup(strings),
		.content_type = strdup(strings + row.path_size),
		.content_encoding = strdup(strings + row.path_size + row.type_size),
		.body = malloc(row.size + 1),
		.size = row.size,
		.samples = row.samples,
		.cpu_ns = row.cpu_ns,
		.series = row.series,
	};
	if (!r.path || !r.content_type || !r.content_encoding || !r.body)
		return -ENOMEM;
	if (f->fd < 0)
		memcpy(r.body, f->bytes + at, r.size);
	else
		err = pread_exactly(f->fd, r.body, r.size, at);
	if (err)
		return err;
	if (hash_stable(r.body, r.size) != row.hash)
		return -EBADMSG;
	*request = r;
	r = (struct sink_request){};
	return 0;
}
