/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A source is that of its program if its MD5 is the one that the compiler wrote down. Without one, a
 * file that was changed after the program is another one. Of a program whose times are unknown (a copy
 * in memory) none is taken for the same.
 */
#include "symbolize/sources.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "base/order.h"
#include "base/strtab.h"

#define SOURCE_SIZE_MAX (2u << 20)
#define SOURCES_MAX	1024u	    /* that are tried */
#define SOURCES_SIZE	(16u << 20) /* of all that are passed on */

void wanted_sources__fini(struct wanted_sources *w)
{
	vec_free(&w->list);
}

int wanted_sources__add(struct wanted_sources *w, struct symbolizer_job *job,
			const struct debug_file_request *request, const void *events, size_t size)
{
	int err = 0;

	for (size_t at = 0; at < size && !err;) {
		const struct source_event *e = (const void *)((const char *)events + at);
		struct wanted_source source = {.job = job, .request = *request};

		at += e->header.size;
		if (e->header.type != EVENT_SOURCE || e->offset)
			continue;
		source.samples = e->header.time;
		source.number = w->list.count;
		source.path = e->data;
		source.has_md5 = e->count == MD5_SIZE;
		if (source.has_md5)
			memcpy(source.md5, e->data + e->path_size, MD5_SIZE);
		err = vec_push(&w->list, source);
	}
	return err;
}

DEFINE_ORDER(compare_sources, struct wanted_source, DESCENDING(samples) ?: ASCENDING(number));

/* Where the file is. True: below a directory of our root that the user has named. */
static bool map_path(const struct symbolizer_options *options, const char *path,
		     char mapped[PATH_MAX])
{
	for (size_t i = 0; i < SOURCE_MAPS_MAX && options->source_maps[i].from; i++) {
		const struct source_map *map = &options->source_maps[i];
		size_t length = map->from_length;

		if (strncmp(path, map->from, length) || (path[length] && path[length] != '/') ||
		    strstr(path, "/../"))
			continue;
		return snprintf(mapped, PATH_MAX, "%s%s", map->to, path + length) < PATH_MAX;
	}
	snprintf(mapped, PATH_MAX, "%s", path);
	return false;
}

static enum source_state judge(const struct wanted_source *s, int fd, const char *text, size_t size)
{
	struct stat source, program;
	uint8_t digest[MD5_SIZE];

	if (s->has_md5) {
		md5(text, size, digest);
		return memcmp(digest, s->md5, MD5_SIZE) ? SOURCE_CHANGED : SOURCE_UNCHANGED;
	}
	if (s->job->dso.copied_for || fstat(fd, &source) || fstat(s->job->dso.fd, &program))
		return SOURCE_CHANGED;
	return source.st_mtim.tv_sec > program.st_mtim.tv_sec ||
			       (source.st_mtim.tv_sec == program.st_mtim.tv_sec &&
				source.st_mtim.tv_nsec > program.st_mtim.tv_nsec)
		       ? SOURCE_CHANGED
		       : SOURCE_PLAUSIBLE;
}

/* 0, also if it cannot be read or has no room; negative errno. */
static int read_source(const struct wanted_source *s, struct file_finder *finder,
		       const struct symbolizer_options *options, size_t *room)
{
	char path[PATH_MAX];
	struct debug_file_request request = s->request;
	struct symbolizer_source source = {.path = s->path};
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *text = NULL;
	ssize_t got;

	if (map_path(options, s->path, path))
		request.root_fd = -1;
	else if (request.root_fd < 0)
		return 0;
	request.path = path;
	fd = file_finder__open_source(finder, &request, SOURCE_SIZE_MAX);
	log_debug(LOG_SYMBOLS, "source %s: %s", path, fd < 0 ? strerror(-fd) : "open");
	if (fd < 0)
		return 0;
	text = malloc(SOURCE_SIZE_MAX);
	if (!text)
		return -ENOMEM;
	got = pread_full(fd, text, SOURCE_SIZE_MAX, 0);
	if (got <= 0 || (size_t)got > *room || memchr(text, '\0', got))
		return 0;
	source.text = text;
	source.size = got;
	source.state = judge(s, fd, text, got);
	*room -= source.size;
	return s->job->source(s->job->context, &source);
}

int wanted_sources__read(struct wanted_sources *w, struct file_finder *finder,
			 const struct symbolizer_options *options)
{
	struct strtab *done = strtab__new();
	size_t room = SOURCES_SIZE;
	int err = done ? 0 : -ENOMEM;

	vec_sort(&w->list, compare_sources);
	for (size_t i = 0; i < w->list.count && i < SOURCES_MAX && !err; i++) {
		const struct wanted_source *s = &w->list.data[i];
		size_t known = strtab__count(done);

		if (strtab__intern(done, s->path) < 0)
			err = -ENOMEM;
		else if (strtab__count(done) > known)
			err = read_source(s, finder, options, &room);
	}
	strtab__free(done);
	return err;
}
