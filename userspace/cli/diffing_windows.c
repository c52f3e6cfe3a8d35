/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Spans of time of a service, out of the files that an agent writes into a directory (--sink dir:). A file is a window,
 * named by its beginning; a span is what a file is to other comparisons, and its windows are blocks of its time.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "cli/diffing.h"
#include "cli/inputs.h"
#include "compare/merged.h"

#define SECOND	    UINT64_C(1000000000)
#define SUFFIX	    "Z.pb.gz"
#define WINDOWS_MAX 200000 /* files that are looked at */
#define TEXT_SIZE   32

struct found_window {
	uint64_t start; /* ns since the epoch */
	char *path;
};
struct found_windows {
	struct found_window *data;
	size_t count, capacity;
};

static void found_windows__fini(struct found_windows *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->data[i].path);
	vec_free(w);
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
	*start = (uint64_t)seconds * SECOND + strtoull(name + 16, NULL, 10);
	return seconds > 0;
}

static int compare_windows(const void *a, const void *b)
{
	const struct found_window *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int add_name(struct found_windows *windows, const char *directory, const char *name)
{
	struct found_window window;

	if (!parse_name(name, &window.start))
		return 0;
	if (windows->count == WINDOWS_MAX)
		return -E2BIG;
	if (asprintf(&window.path, "%s/%s", directory, name) < 0)
		return -ENOMEM;
	if (!vec_push(windows, window))
		return 0;
	free(window.path);
	return -ENOMEM;
}

static int list_windows(const char *directory, struct found_windows *windows,
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
	if (err)
		return fail(failure, err, "cannot read the windows in %s: %s", directory,
			    err == -E2BIG ? "too many files" : strerror(-err));
	if (windows->count) {
		qsort(windows->data, windows->count, sizeof(*windows->data), compare_windows);
		return 0;
	}
	fail(failure, -ENOENT, "%s has no windows of an agent", directory);
	return fail_remedy(failure, -ENOENT, "they are written by: sysprof agent --sink dir:%s",
			   directory);
}

static void time_text(uint64_t ns, char text[TEXT_SIZE])
{
	time_t seconds = (time_t)(ns / SECOND);
	struct tm tm = {};

	gmtime_r(&seconds, &tm);
	strftime(text, TEXT_SIZE, "%Y-%m-%d %H:%M:%SZ", &tm);
}

/* What a span is called in the output: "shop, 2026-11-26 10:00:00Z to 2026-11-26 11:00:00Z" */
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
	const struct replay_options replay = {};
	struct input input = {};
	int err = input__open(window->path, &replay, &input);

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

static int take_span(const struct given_option *o, enum compare_side side)
{
	struct diffing *d = o->fields;
	struct timespec now;

	if (d->span_count[side] == DIFFING_SPANS_MAX)
		return fail(o->failure, -E2BIG, "more than %d spans of time", DIFFING_SPANS_MAX);
	clock_gettime(CLOCK_REALTIME, &now);
	return parse_time_span(o->value, (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec,
			       &d->spans[side][d->span_count[side]++]);
}

int diffing__take_old_span(const struct given_option *o)
{
	return take_span(o, COMPARE_OLD);
}

int diffing__take_new_span(const struct given_option *o)
{
	return take_span(o, COMPARE_NEW);
}
