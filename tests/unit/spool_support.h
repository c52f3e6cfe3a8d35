/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows whose bytes follow from their numbers, a spool for them, and what is in its directory. */
#ifndef TESTS_UNIT_SPOOL_SUPPORT_H
#define TESTS_UNIT_SPOOL_SUPPORT_H

#include <dirent.h>

#include "unit.h"
#include "agent/spool.h"
#include "agent/spool_file.h"
#include "base/clocks.h"

#include "unit/tools.h"

#define NS_PER_SECOND UINT64_C(1000000000)
#define MEGABYTE      (1u << 20)

static char directory[128];

/* ---- windows --------------------------------------------------------------------------------- */

static inline char *copy(const char *text)
{
	char *c = strdup(text);

	assert_non_null(c);
	return c;
}

/* Request `i` of window `number`: its bytes follow from the two. */
static inline void fill_body(char *body, size_t size, uint64_t number, size_t i)
{
	for (size_t at = 0; at < size; at++)
		body[at] = (number * 131 + i * 31 + at * 7 + (at >> 8)) & 0xff;
}

static inline struct sealed_window make_window(uint64_t number, size_t requests, size_t size)
{
	struct sealed_window w = {.number = number,
				  .start_realtime = realtime_ns(),
				  .end_realtime = realtime_ns() + 1,
				  .request_count = requests};

	w.requests = calloc(requests + 1, sizeof(*w.requests));
	assert_non_null(w.requests);
	for (size_t i = 0; i < requests; i++) {
		struct sink_request *r = &w.requests[i];
		char path[64];

		snprintf(path, sizeof(path), "/push/%lu/%zu", (unsigned long)number, i);
		*r = (struct sink_request){.path = copy(path),
					   .content_type = copy("application/proto"),
					   .content_encoding = copy(i % 2 ? "gzip" : ""),
					   .body = malloc(size + 1),
					   .size = size,
					   .samples = number + 1,
					   .cpu_ns = number * 1000 + i,
					   .series = i + 1};
		assert_non_null(r->body);
		fill_body(r->body, size, number, i);
	}
	return w;
}

static inline struct spool *open_spool(uint64_t bytes, uint64_t age)
{
	const struct spool_options options = {.directory = directory, .bytes = bytes, .age = age};
	struct failure failure = {};
	struct spool *s;

	if (spool__new(&options, &s, &failure))
		fail_msg("%s", failure.what);
	return s;
}

static inline int put(struct spool *s, uint64_t number, size_t requests, size_t size)
{
	struct sealed_window w = make_window(number, requests, size);
	int err = spool__put(s, &w);

	assert_null(w.requests); /* taken, whatever happened */
	assert_int_equal(w.request_count, 0);
	return err;
}

static inline struct spool_stats stats_of(struct spool *s)
{
	struct spool_stats stats;

	spool__stats(s, &stats);
	return stats;
}

static inline uint64_t number_of(struct spool_window *w)
{
	struct sink_request r;
	uint64_t number;

	assert_int_equal(spool_file__read(w->file, 0, &r), 0);
	number = r.samples - 1;
	sink_request__fini(&r);
	return number;
}

static inline void check_request(struct spool_window *w, size_t i, uint64_t number, size_t size)
{
	char *body = malloc(size + 1), path[64];
	struct sink_request r;

	assert_int_equal(spool_file__read(w->file, i, &r), 0);
	snprintf(path, sizeof(path), "/push/%lu/%zu", (unsigned long)number, i);
	assert_string_equal(r.path, path);
	assert_string_equal(r.content_type, "application/proto");
	assert_string_equal(r.content_encoding, i % 2 ? "gzip" : "");
	assert_int_equal(r.samples, number + 1);
	assert_int_equal(r.cpu_ns, number * 1000 + i);
	assert_int_equal(r.series, i + 1);
	assert_int_equal(r.size, size);
	fill_body(body, size, number, i);
	assert_memory_equal(r.body, body, size);
	free(body);
	sink_request__fini(&r);
}

/* The oldest is this one; it is taken out. */
static inline void expect_next(struct spool *s, uint64_t number, size_t requests, size_t size)
{
	struct spool_window *w;

	assert_int_equal(spool__take(s, &w), 0);
	assert_int_equal(spool_file__head(w->file)->count, requests);
	for (size_t i = 0; i < requests; i++)
		check_request(w, i, number, size);
	spool__give_back(s, w, true);
}

static inline void expect_empty(struct spool *s)
{
	struct spool_window *w;

	assert_int_equal(spool__take(s, &w), -ENOENT);
	assert_int_equal(stats_of(s).windows, 0);
	assert_int_equal(stats_of(s).bytes, 0);
	assert_int_equal(stats_of(s).oldest, 0);
}

/* Files in it, without the lock. `name`: the last one. */
static inline size_t count_files(char *name)
{
	DIR *d = opendir(directory);
	size_t count = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
		    strcmp(e->d_name, ".lock")) {
			count++;
			if (name)
				strcpy(name, e->d_name);
		}
	closedir(d);
	return count;
}

static inline void path_in(const char *name, char path[512])
{
	snprintf(path, 512, "%s/%s", directory, name);
}

static inline void fresh_directory(void)
{
	static int count;

	snprintf(directory, sizeof(directory), "%s/spool.%d", scratch, count++);
}

/* Not O_TRUNC, after which some file systems wait for the disk. */
static inline void write_bytes(const char *path, const void *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(write(fd, data, size), size);
	close(fd);
}

#endif
