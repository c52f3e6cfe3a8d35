/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/diffing_windows.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/spool.h"
#include "agent/spool_file.h"
#include "agent/spool_profiles.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/order.h"
#include "base/suffix.h"
#include "base/vec.h"
#include "cli/diffing.h"
#include "cli/inputs.h"
#include "compare/merged.h"

#define SUFFIX	    "Z.pb.gz"
#define WINDOWS_MAX 200000 /* files that are listed */
#define TEXT_SIZE   32

struct found_window {
	uint64_t start; /* ns since the epoch */
	char *path;
	bool is_waiting; /* in a spool */
};
struct found_windows {
	struct found_window *data;
	size_t count, capacity;
};

static void found_windows__fini(struct found_windows *w)
{
	vec_free_with(w, window, free(window->path));
}

/* "20261122T161404.123456789Z.pb.gz" */
static bool parse_name(const char *name, uint64_t *start)
{
	static const char shape[] = "00000000T000000.000000000" SUFFIX;
	struct tm tm = {};
	time_t seconds;

	if (strlen(name) != sizeof(shape) - 1)
		return false;
	for (size_t i = 0; shape[i]; i++)
		if (shape[i] == '0' ? name[i] < '0' || name[i] > '9' : name[i] != shape[i])
			return false;
	if (!strptime(name, "%Y%m%dT%H%M%S", &tm))
		return false;
	seconds = timegm(&tm);
	*start = (uint64_t)seconds * NS_PER_SECOND + strtoull(name + 16, NULL, 10);
	return seconds > 0;
}

DEFINE_ORDER(compare_windows, struct found_window, ASCENDING(start));

/* A file that was sent meanwhile, or is no window, is skipped. */
static int open_waiting(const char *path, struct spool_file **file)
{
	int err = spool_file__open(AT_FDCWD, path, file);

	return err == -ENOENT || err == -EBADMSG ? 0 : err;
}

/* "00000000000000000017-00000001795754044123.win" */
static bool is_waiting_name(const char *name)
{
	return strlen(name) == 45 && has_suffix(name, ".win") &&
	       strspn(name, "0123456789-") == strlen(name) - 4;
}

static int add_name(struct found_windows *windows, const char *directory, const char *name)
{
	struct found_window window = {.is_waiting = is_waiting_name(name)};
	_cleanup_free_ char *path = NULL;
	struct spool_file *file = NULL;
	int err = 0;

	if (!window.is_waiting && !parse_name(name, &window.start))
		return 0;
	if (windows->count == WINDOWS_MAX)
		return -E2BIG;
	if (asprintf(&path, "%s/%s", directory, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (window.is_waiting) {
		err = open_waiting(path, &file);
		if (!file)
			return err;
		window.start = spool_file__head(file)->start;
		spool_file__free(file);
	}
	window.path = path;
	if (vec_push(windows, window))
		return -ENOMEM;
	path = NULL;
	return 0;
}

static int list_directory(const char *directory, struct found_windows *windows,
			  struct failure *failure)
{
	DIR *dir = opendir(directory);
	const struct dirent *entry;
	int err = 0;

	if (!dir)
		return fail(failure, -errno, "cannot open the directory %s: %s", directory,
			    strerror(errno));
	while (!err && (entry = readdir(dir)))
		err = add_name(windows, directory, entry->d_name);
	closedir(dir);
	if (err == -EPERM)
		return fail(
			failure, err,
			"cannot read the spool %s: it belongs to another user, or others may write to it",
			directory);
	if (err)
		return fail(failure, err, "cannot read the windows in %s: %s", directory,
			    err == -E2BIG ? "too many files" : strerror(-err));
	return 0;
}

/* Below the directory of --spool each sink has one of its own, "pyroscope-0123456789abcdef". */
static bool is_spool_name(const char *name)
{
	const char *dash = strchr(name, '-');

	return dash && strlen(dash) == 17 && strspn(dash + 1, "0123456789abcdef") == 16;
}

/* All sinks have the same windows, so only one spool may have any. */
static int list_spools(const char *directory, struct found_windows *windows,
		       struct failure *failure)
{
	DIR *dir = opendir(directory);
	const struct dirent *entry;
	size_t used = 0;
	int err = 0;

	while (dir && !err && (entry = readdir(dir))) {
		_cleanup_free_ char *path = NULL;
		size_t before = windows->count;

		if (!is_spool_name(entry->d_name))
			continue;
		err = asprintf(&path, "%s/%s", directory, entry->d_name) < 0
			      ? -ENOMEM
			      : list_directory(path, windows, failure);
		used += windows->count > before;
		if (!err && used > 1)
			err = fail(failure, -EINVAL,
				   "%s has the spools of several sinks: name one, as in %s",
				   directory, path);
	}
	if (dir)
		closedir(dir);
	return err;
}

static int list_windows(const char *directory, struct found_windows *windows,
			struct failure *failure)
{
	int err = list_directory(directory, windows, failure);

	if (!err && !windows->count)
		err = list_spools(directory, windows, failure);
	if (err)
		return err;
	if (windows->count) {
		qsort(windows->data, windows->count, sizeof(*windows->data), compare_windows);
		return 0;
	}
	fail(failure, -ENOENT, "%s has no windows of an agent", directory);
	return fail_remedy(
		failure, -ENOENT,
		"they are written by: sysprof agent --sink dir:%s; of a spool, what has been sent is gone",
		directory);
}

static void time_text(uint64_t ns, char text[TEXT_SIZE])
{
	time_t seconds = (time_t)(ns / NS_PER_SECOND);
	struct tm tm = {};

	gmtime_r(&seconds, &tm);
	strftime(text, TEXT_SIZE, "%Y-%m-%d %H:%M:%SZ", &tm);
}

/* The name of a span in the output: "shop, 2026-11-26 10:00:00Z to 2026-11-26 11:00:00Z" */
static int name_span(const char *service, const struct time_span *span, char **name)
{
	char from[TEXT_SIZE], until[TEXT_SIZE];

	time_text(span->from, from);
	time_text(span->until, until);
	return asprintf(name, "%s, %s to %s", service, from, until) < 0 ? -ENOMEM : 0;
}

static int add_window(struct comparison *c, enum compare_side side, const char *name,
		      const struct found_window *window, const struct merged_window *where,
		      struct failure *failure)
{
	const struct input_options options = {};
	struct input input = {};
	int err = input__open(window->path, &options, &input);

	if (err)
		return fail(failure, err, "cannot compare without %s", window->path);
	if (input.profile->untimed)
		err = comparison__add_window(c, side, name, input.profile, where, failure);
	else
		err = fail(failure, -EINVAL, "%s is no window of an agent: it has times",
			   window->path);
	input__close(&input);
	return err;
}

/* ---- of a spool ------------------------------------------------------------------------------ */

/* A window whose profiles are taken. */
struct taking {
	struct comparison *c;
	enum compare_side side;
	const char *name, *path;
	struct merged_window where;
	struct failure *failure;
	bool is_empty; /* so far */
};

static int take_profile(void *context, const void *pprof, size_t size)
{
	struct taking *t = context;
	struct input input = {};
	int err = input__read(t->path, pprof, size, &input);

	if (err)
		return fail(t->failure, err, "cannot compare without %s", t->path);
	err = comparison__add_window(t->c, t->side, t->name, input.profile, &t->where, t->failure);
	t->where.is_first = t->is_empty = false;
	t->where.is_more = true;
	input__close(&input);
	return err;
}

static int take_requests(struct taking *t, const struct spool_file *file, const char *service)
{
	int err = 0;

	for (size_t i = 0; i < spool_file__head(file)->count && !err; i++) {
		struct sink_request request = {};

		err = spool_file__read(file, i, &request)
			      ?: sink_request__profiles(&request, service, take_profile, t);
		sink_request__fini(&request);
		if (err == -EPROTONOSUPPORT)
			return fail(t->failure, err,
				    "cannot read %s: requests of that kind are not read", t->path);
		if (err && !t->failure->what[0])
			return fail(t->failure, err, "cannot read %s: it is damaged", t->path);
	}
	return err;
}

/* t->where.is_first: of a new file. A service that did not run may be in none of the requests. */
static int add_waiting_window(struct taking *t, const char *service)
{
	struct spool_file *file = NULL;
	int err = open_waiting(t->path, &file);

	if (err)
		return fail(t->failure, err, "cannot read %s: %s", t->path, strerror(-err));
	if (!file)
		return 0;
	t->where.process = NULL;
	t->where.length = spool_file__head(file)->end - spool_file__head(file)->start;
	err = take_requests(t, file, service);
	if (!err && t->is_empty)
		err = comparison__add_window(t->c, t->side, t->name, NULL, &t->where, t->failure);
	t->where.is_first = false;
	spool_file__free(file);
	return err;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static int check_span(const struct comparison *c, const struct found_windows *all,
		      const char *service, const char *name, bool has_windows,
		      struct failure *failure)
{
	char first[TEXT_SIZE], last[TEXT_SIZE];

	if (has_windows && comparison__file(c, comparison__file_count(c) - 1)->samples)
		return 0;
	if (has_windows)
		return fail(failure, -ENODATA, "cannot compare: no sample of the service %s (%s)",
			    service, name);
	time_text(all->data[0].start, first);
	time_text(all->data[all->count - 1].start, last);
	return fail(
		failure, -ENODATA,
		"cannot compare: there is no window of %s; the first one is of %s, the last of %s",
		name, first, last);
}

static int add_span(struct comparison *c, enum compare_side side, const struct found_windows *all,
		    const char *service, const struct time_span *span, struct failure *failure)
{
	struct merged_window where = {
		.process = service, .span = span->until - span->from, .is_first = true};
	_cleanup_free_ char *name = NULL;
	int err = name_span(service, span, &name);

	if (err)
		return fail(failure, err, "cannot compare: out of memory");
	for (size_t i = 0; i < all->count && !err; i++) {
		if (all->data[i].start < span->from || all->data[i].start >= span->until)
			continue;
		where.offset = all->data[i].start - span->from;
		if (all->data[i].is_waiting) {
			struct taking t = {
				c, side, name, all->data[i].path, where, failure, .is_empty = true};

			err = add_waiting_window(&t, service);
			where.is_first = t.where.is_first;
			continue;
		}
		err = add_window(c, side, name, &all->data[i], &where, failure);
		where.is_first = false;
	}
	return err ? err : check_span(c, all, service, name, !where.is_first, failure);
}

int diffing__add_windows(struct comparison *c, const struct diffing *d, struct failure *failure)
{
	struct found_windows windows = {};
	int err = list_windows(d->files[COMPARE_OLD][0], &windows, failure);

	for (int side = 0; side < COMPARE_SIDES; side++)
		for (size_t i = 0; i < d->span_count[side] && !err; i++)
			err = add_span(c, (enum compare_side)side, &windows, d->service,
				       &d->spans[side][i], failure);
	found_windows__fini(&windows);
	return err;
}

/* The row's `min` is the side. */
int diffing__take_span(const struct given_option *o)
{
	enum compare_side side = (enum compare_side)o->row->min;
	struct diffing *d = o->fields;

	if (d->span_count[side] == DIFFING_SPANS_MAX)
		return fail(o->failure, -E2BIG, "more than %d spans of time", DIFFING_SPANS_MAX);
	return parse_time_span(o->value, realtime_ns(), &d->spans[side][d->span_count[side]++]);
}
