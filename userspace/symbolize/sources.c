/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A source is that of its program if its MD5 is the one that the compiler wrote down. Without one, what a
 * server has for its build-id is the same, and a file that was changed after the program is another one, of
 * several after one of them. Of a program whose times are unknown (a copy in memory) none is taken for the
 * same.
 */
#include "symbolize/sources.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/file_url.h"
#include "base/io.h"
#include "base/log.h"
#include "base/map.h"
#include "base/minmax.h"
#include "base/order.h"
#include "tenants/tenant_user.h"

#define SOURCE_SIZE_MAX (2u << 20)
#define SOURCES_MAX	1024u	    /* that are tried */
#define SOURCES_SIZE	(16u << 20) /* of all that are passed on */
#define FETCHES_MAX	256u	    /* for which a server may be queried */

void wanted_sources__fini(struct wanted_sources *w)
{
	vec_free_with(&w->list, source, free(source->decoded));
}

int wanted_sources__add(struct wanted_sources *w, struct symbolizer_job *job,
			const struct debug_file_request *request,
			const struct debug_writers *writers, const void *events, size_t size)
{
	int err = 0;

	for (size_t at = 0; at < size && !err;) {
		const struct source_event *e = (const void *)((const char *)events + at);
		struct wanted_source source = {
			.job = job, .request = *request, .reader = debug_writers__reader(writers)};

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

int wanted_sources__add_script(struct wanted_sources *w, struct symbolizer_job *job,
			       const struct symbolizer_script *script)
{
	struct wanted_source source = {
		.job = job,
		.samples = script->samples,
		.number = w->list.count,
		.request = {.elf_fd = -1, .root_fd = script->root_fd, .user = script->user},
		.reader = script->user == TENANT_UNKNOWN ? 0 : script->user,
		.path = script->path,
		.started = script->started,
		.is_script = true,
	};
	int err;

	if (is_file_url(script->path)) {
		source.decoded = file_url_path(script->path);
		if (!source.decoded)
			return -ENOMEM;
	}
	err = vec_push(&w->list, source);
	if (err)
		free(source.decoded);
	return err;
}

DEFINE_ORDER(compare_sources, struct wanted_source, DESCENDING(samples) ?: ASCENDING(number));

static const char *file_of(const struct wanted_source *s)
{
	return s->decoded ?: s->path;
}

/* Is it below a directory of our root that the user has named? */
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
	return false;
}

/* Of a path in a root, for modules or for scripts. */
struct source_result {
	const char *path;
	int root_fd; /* -1: unknown, or our own by --source-map */
	bool is_script;
	int result;    /* IS_READ or an enum source_loss */
	uint32_t last; /* of its requests, 1 + its place */
	const struct symbolizer_job *job;
};

static uint64_t hash_result(const struct source_result *r)
{
	return hash_combine(hash_string(r->path), (uint64_t)r->root_fd << 1 | r->is_script);
}

static bool equal_results(const struct source_result *a, const struct source_result *b)
{
	return a->root_fd == b->root_fd && a->is_script == b->is_script &&
	       !strcmp(a->path, b->path);
}

DEFINE_MAP_OF(result_map, struct source_result, hash_result, equal_results);

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

static bool same_build(const struct debug_file_request *a, const struct debug_file_request *b)
{
	return a->build_id_size && a->build_id_size == b->build_id_size &&
	       !memcmp(a->build_id, b->build_id, a->build_id_size);
}

/* `fetched`: a server has sent it for this one; else NULL. */
static enum source_state judge(const struct wanted_source *s, const struct stat *source,
			       const uint8_t digest[static MD5_SIZE],
			       const struct wanted_source *fetched)
{
	struct stat program;

	if (s->has_md5)
		return memcmp(digest, s->md5, MD5_SIZE) ? SOURCE_CHANGED : SOURCE_UNCHANGED;
	if (fetched)
		return same_build(&s->request, &fetched->request) ? SOURCE_UNCHANGED
								  : SOURCE_CHANGED;
	if (s->is_script)
		program.st_mtim = (struct timespec){(time_t)(s->started / UINT64_C(1000000000)),
						    (long)(s->started % UINT64_C(1000000000))};
	else if (s->job->dso.copied_for || fstat(s->job->dso.fd, &program))
		return SOURCE_CHANGED;
	return is_later(&source->st_mtim, &program.st_mtim) ? SOURCE_CHANGED : SOURCE_PLAUSIBLE;
}

/* For that of the modules or processes for which it is the worst. */
static enum source_state judge_all(const struct wanted_sources *w, const struct source_result *r,
				   int fd, const char *text, size_t size,
				   const struct wanted_source *fetched)
{
	enum source_state state = SOURCE_UNCHANGED;
	uint8_t digest[MD5_SIZE];
	struct stat source;

	if (fstat(fd, &source))
		return SOURCE_CHANGED;
	md5(text, size, digest);
	for (uint32_t i = r->last; i; i = w->list.data[i - 1].before)
		state = max_u64(state, judge(&w->list.data[i - 1], &source, digest, fetched));
	return state;
}

#define IS_READ (-1)

static int loss_of(int err)
{
	static const struct {
		int err;
		enum source_loss loss;
	} losses[] = {
		{-ENOENT, SOURCE_LOSS_ABSENT},	  {-ENOTDIR, SOURCE_LOSS_ABSENT},
		{-EACCES, SOURCE_LOSS_FORBIDDEN}, {-EPERM, SOURCE_LOSS_FORBIDDEN},
		{-ELOOP, SOURCE_LOSS_LINK},	  {-ENOTSUP, SOURCE_LOSS_NO_FILE},
		{-EFBIG, SOURCE_LOSS_LARGE},	  {-EILSEQ, SOURCE_LOSS_BINARY},
		{-ESRCH, SOURCE_LOSS_GONE},	  {-ETIMEDOUT, SOURCE_LOSS_LIMIT},
		{-EDQUOT, SOURCE_LOSS_LIMIT},	  {-ENOSPC, SOURCE_LOSS_LIMIT},
	};

	for (size_t i = 0; i < sizeof(losses) / sizeof(*losses); i++)
		if (losses[i].err == err)
			return losses[i].loss;
	return SOURCE_LOSS_OTHER;
}

/* The file, or why there is none. `mapped`: its place in our root, or NULL. */
static int open_source(const struct wanted_source *s, struct file_finder *finder,
		       const char *mapped, size_t *fetches, bool *is_fetched)
{
	struct debug_file_request request = s->request;
	int fd;

	request.path = mapped ?: file_of(s);
	if (mapped)
		request.root_fd = -1;
	else if (request.root_fd < 0)
		return -ESRCH;
	request.debuginfod &= !mapped && !s->is_script && *fetches < FETCHES_MAX;
	*fetches += request.debuginfod;
	fd = file_finder__open_source(finder, &request, s->reader, SOURCE_SIZE_MAX, is_fetched);
	log_debug(LOG_SYMBOLS, "source %s: %s", request.path, fd < 0 ? strerror(-fd) : "open");
	return fd;
}

/* The size of its text, which the caller frees; or why there is none. */
static ssize_t read_text(int fd, size_t room, char **text)
{
	_cleanup_free_ char *read = malloc(SOURCE_SIZE_MAX);
	ssize_t got;

	if (!read)
		return -ENOMEM;
	got = pread_full(fd, read, SOURCE_SIZE_MAX, 0);
	if (got <= 0)
		return got ? got : -ENOTSUP;
	if (memchr(read, '\0', got))
		return -EILSEQ;
	if ((size_t)got > room)
		return -ENOSPC;
	*text = steal_ptr(read);
	return got;
}

struct source_limits {
	size_t room;	/* bytes */
	size_t fetches; /* for which a server was queried, if there was no file */
};

/* 0 or negative errno. */
static int read_source(const struct wanted_sources *w, const struct wanted_source *s,
		       struct file_finder *finder, const char *mapped, struct source_limits *left,
		       struct source_result *result)
{
	struct symbolizer_source source = {.root_fd = result->root_fd, .path = s->path};
	bool is_fetched = false;
	_cleanup_close_ int fd = open_source(s, finder, mapped, &left->fetches, &is_fetched);
	_cleanup_free_ char *text = NULL;
	ssize_t got = fd < 0 ? fd : read_text(fd, left->room, &text);

	result->result = got < 0 ? loss_of((int)got) : IS_READ;
	if (got < 0)
		return got == -ENOMEM ? -ENOMEM : 0;
	source.text = text;
	source.size = got;
	source.state = judge_all(w, result, fd, text, got, is_fetched ? s : NULL);
	left->room -= source.size;
	return s->job->source(s->job->context, &source);
}

static struct source_result result_of(const struct wanted_source *s, const char *mapped)
{
	return (struct source_result){.path = s->path,
				      .root_fd = mapped ? -1 : s->request.root_fd,
				      .is_script = s->is_script,
				      .result = SOURCE_LOSS_LIMIT,
				      .job = s->job};
}

static int collect_results(struct wanted_sources *w, const struct symbolizer_options *options,
			   struct result_map *results)
{
	for (size_t i = 0; i < w->list.count; i++) {
		struct wanted_source *s = &w->list.data[i];
		char path[PATH_MAX];
		const struct source_result wanted =
			result_of(s, map_path(options, file_of(s), path) ? path : NULL);
		struct source_result *r = result_map__need(results, &wanted, NULL);

		if (!r)
			return -ENOMEM;
		s->before = r->last;
		r->last = (uint32_t)i + 1;
	}
	return 0;
}

int wanted_sources__read(struct wanted_sources *w, struct file_finder *finder,
			 const struct symbolizer_options *options,
			 size_t left[static SOURCE_LOSS_COUNT])
{
	struct result_map results = {};
	struct source_limits limits = {.room = SOURCES_SIZE};
	int err;

	vec_sort(&w->list, compare_sources);
	err = collect_results(w, options, &results);
	for (size_t i = 0; i < w->list.count && i < SOURCES_MAX && !err; i++) {
		const struct wanted_source *s = &w->list.data[i];
		char path[PATH_MAX];
		const char *mapped = map_path(options, file_of(s), path) ? path : NULL;
		const struct source_result wanted = result_of(s, mapped);
		struct source_result *r = result_map__find(&results, &wanted);

		if (r->result != IS_READ)
			err = read_source(w, s, finder, mapped, &limits, r);
	}
	for (size_t i = 0; i < results.count && !err; i++) {
		const struct source_result *r = &results.data[i];

		if (r->result == IS_READ)
			continue;
		left[r->result]++;
		err = r->job->source(
			r->job->context,
			&(struct symbolizer_source){.root_fd = r->root_fd, .path = r->path});
	}
	result_map__fini(&results);
	return err;
}
