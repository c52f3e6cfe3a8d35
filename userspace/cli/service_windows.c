/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/service_windows.h"

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
#include "cli/inputs.h"

#define SUFFIX	    "Z.pb.gz"
#define WINDOWS_MAX 200000 /* files that are listed */
#define TEXT_SIZE   32

struct found_window {
	uint64_t start; /* ns since the epoch */
	char *path;
	bool is_waiting; /* in a spool */
};
struct service_windows {
	struct found_window *data;
	size_t count, capacity;
};

void service_windows__free(struct service_windows *w)
{
	if (!w)
		return;
	vec_free_with(w, window, free(window->path));
	free(w);
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

static int add_name(struct service_windows *windows, const char *directory, const char *name)
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

static int list_directory(const char *directory, struct service_windows *windows,
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
static int list_spools(const char *directory, struct service_windows *windows,
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

static int list_windows(const char *directory, struct service_windows *windows,
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
		"they are written by: sysprof agent --sink dir:%s; a spool no longer has windows that were sent",
		directory);
}

int service_windows__list(const char *directory, struct service_windows **windows,
			  struct failure *failure)
{
	struct service_windows *w = calloc(1, sizeof(*w));
	int err = w ? list_windows(directory, w, failure)
		    : fail(failure, -ENOMEM, "cannot read %s: out of memory", directory);

	return finish_new(err, w, service_windows__free, windows);
}

static void time_text(uint64_t ns, char text[TEXT_SIZE])
{
	time_t seconds = (time_t)(ns / NS_PER_SECOND);
	struct tm tm = {};

	gmtime_r(&seconds, &tm);
	strftime(text, TEXT_SIZE, "%Y-%m-%d %H:%M:%SZ", &tm);
}

int name_span(const char *service, const struct time_span *span, char **name)
{
	char from[TEXT_SIZE], until[TEXT_SIZE];

	time_text(span->from, from);
	time_text(span->until, until);
	return asprintf(name, "%s, %s to %s", service, from, until) < 0 ? -ENOMEM : 0;
}

/* ---- profiles of a window -------------------------------------------------------------------- */

/* Windows that are passed on. */
struct passing {
	const char *service;
	take_window_fn take;
	void *context;
	struct failure *failure;
	struct service_window window;
	uint64_t windows, samples;
};

static uint64_t count_samples(const struct profile *p, const char *process)
{
	uint64_t sum = 0;

	for (size_t i = 1; i < p->thread_count; i++) {
		struct process_id id = p->threads[i].process;

		if (!process || !strcmp(profile__string(p, p->processes[id.v].name), process))
			sum += p->threads[i].samples[SAMPLE_CPU].tick_sum;
	}
	return sum;
}

static int pass(struct passing *s, const struct profile *p)
{
	int err = s->take(s->context, &s->window, p, s->failure);

	s->samples += p ? count_samples(p, s->window.process) : 0;
	s->window.is_more = true;
	return err;
}

static int pass_file(struct passing *s)
{
	const struct input_options options = {.process = s->service};
	struct input input = {};
	int err = input__open(s->window.path, &options, &input);

	if (err)
		return fail(s->failure, err, "stopped: the window %s cannot be read",
			    s->window.path);
	s->window.process = s->service;
	s->window.length = input.profile->end - input.profile->start;
	err = input.profile->untimed
		      ? pass(s, input.profile)
		      : fail(s->failure, -EINVAL, "%s is no window of an agent: it has times",
			     s->window.path);
	input__close(&input);
	return err;
}

/* ---- of a spool ------------------------------------------------------------------------------ */

static int pass_pprof(void *context, const void *pprof, size_t size)
{
	struct passing *s = context;
	struct input input = {};
	int err = input__read(s->window.path, pprof, size, &input);

	if (err)
		return fail(s->failure, err, "stopped: the window %s cannot be read",
			    s->window.path);
	err = pass(s, input.profile);
	input__close(&input);
	return err;
}

static int pass_requests(struct passing *s, const struct spool_file *file)
{
	int err = 0;

	for (size_t i = 0; i < spool_file__head(file)->count && !err; i++) {
		struct sink_request request = {};

		err = spool_file__read(file, i, &request)
			      ?: sink_request__profiles(&request, s->service, pass_pprof, s);
		sink_request__fini(&request);
		if (err == -EPROTONOSUPPORT)
			return fail(s->failure, err,
				    "cannot read %s: requests of that kind are not read",
				    s->window.path);
		if (err && !s->failure->what[0])
			return fail(s->failure, err, "cannot read %s: it is damaged",
				    s->window.path);
	}
	return err;
}

/* A service that did not run may be in none of the requests. */
static int pass_waiting(struct passing *s)
{
	struct spool_file *file = NULL;
	int err = open_waiting(s->window.path, &file);

	if (err)
		return fail(s->failure, err, "cannot read %s: %s", s->window.path, strerror(-err));
	if (!file)
		return 0;
	s->window.process = NULL;
	s->window.length = spool_file__head(file)->end - spool_file__head(file)->start;
	err = pass_requests(s, file);
	if (!err && !s->window.is_more)
		err = pass(s, NULL);
	spool_file__free(file);
	return err;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static int check_span(const struct service_windows *all, const struct passing *s,
		      const struct time_span *span)
{
	char first[TEXT_SIZE], last[TEXT_SIZE];
	_cleanup_free_ char *name = NULL;

	if (s->samples)
		return 0;
	if (name_span(s->service, span, &name)) {
		name = NULL;
		return fail(s->failure, -ENOMEM, "out of memory");
	}
	if (s->windows)
		return fail(s->failure, -ENODATA, "no sample of the service %s (%s)", s->service,
			    name);
	time_text(all->data[0].start, first);
	time_text(all->data[all->count - 1].start, last);
	return fail(s->failure, -ENODATA,
		    "there is no window of %s; the first one is of %s, the last of %s", name, first,
		    last);
}

int service_windows__each(const struct service_windows *w, const char *service,
			  const struct time_span *span, take_window_fn take, void *context,
			  struct failure *failure)
{
	struct passing s = {
		.service = service, .take = take, .context = context, .failure = failure};
	int err = 0;

	for (size_t i = 0; i < w->count && !err; i++) {
		const struct found_window *found = &w->data[i];

		if (found->start < span->from || found->start >= span->until)
			continue;
		s.window = (struct service_window){.path = found->path, .start = found->start};
		err = found->is_waiting ? pass_waiting(&s) : pass_file(&s);
		s.windows += s.window.is_more;
	}
	return err ? err : check_span(w, &s, span);
}
