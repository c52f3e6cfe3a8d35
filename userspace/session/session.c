/* SPDX-License-Identifier: BSD-2-Clause */
/* The collector's side: sources, unwinder and windows, put together. */
#include "session/session.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clocks.h"
#include "live/capture/bpf_session_cpus.h"
#include "live/capture/bpf_session_unwind.h"
#include "live/open.h"
#include "live/pace.h"
#include "live/targets.h"
#include "live/windows.h"
#include "session/image_gate.h"
#include "session/settling.h"
#include "session/unwinding.h"
#include "unwind/build.h"
#include "unwind/unwind_feed_files.h"
#include "window/windows.h"
#include "world/image_table.h"
#include "world/process_table.h"

#define BACKLOG_NS	2000000000ull /* the first tick waits for events from /proc at most */
#define ANNOUNCE_MS	5	      /* between two steps while waiting */
#define FLUSH_INTERVAL	250000000ull  /* ns: maximum age of a chunk of the recording */
#define WAITING_WINDOWS 4	      /* closed windows at which rotation has to wait */

struct session {
	struct live *live;
	struct live_shared shared;    /* the stream's */
	struct helper_pool *builders; /* of unwind tables */
	_Atomic int64_t large;	      /* builders and readers of large files, if counted */
	struct unwinding *unwinding;  /* NULL: no unwind tables */
	struct windows *windows;
	struct image_gate gate;
	struct recording_writer *writer; /* not owned */
	uint64_t flushed;		 /* last flush, CLOCK_MONOTONIC ns */
	uint64_t rotating;		 /* the window that is to end; 0: none */
};

/* ---- on the way out of the queue ------------------------------------------------------------- */

/* An event_stage_fn. */
static int stage_event(void *session, const struct event_header **event)
{
	struct session *s = session;

	image_gate__pass(&s->gate, event);
	return s->unwinding ? unwinding__settle(s->unwinding, event) : 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int new_windows(const struct session_options *options, struct session *s)
{
	struct windows_options windows = {
		.requests = s->shared.requests,
		.split = true,
		.arguments = options->arguments,
		.blank_code = options->blank_code,
		.sources = options->live.sources,
		.finisher =
			{
				.threaded = true,
				.symbolize = options->symbolize,
				.symbols = options->symbols,
				.full_names = options->full_names,
				.jit_memory = options->jit_memory,
				.jit_text = options->jit_text,
				.finished = options->finished,
				.context = options->context,
			},
	};

	if (options->symbols.remember)
		windows.finisher.symbols.large_children = &s->large;
	return windows__new(&windows, &s->windows);
}

static int new_unwinding(const struct session_options *options, struct session *s)
{
	struct unwind_memory memory;
	const struct unwinding_options unwinding = {
		.memory = &memory,
		.max_depth = options->live.session.max_depth,
		.cache = options->table_cache,
		.readers = s->shared.readers,
		.builders = s->builders,
		.small = options->symbols.remember,
		.large_children = options->symbols.remember ? &s->large : NULL,
		.tasks = s->shared.tasks,
		.books = s->shared.books,
	};
	int err;

	if (!bpf_session__unwind_memory(s->shared.kernel, &memory))
		return 0;
	err = unwinding__new(&unwinding, windows__world(s->windows), s->shared.opener,
			     &s->unwinding);
	if (err)
		return err;
	windows__set_forgetting(s->windows, unwinding__forget_image, s->unwinding);
	return live__watch(s->live, unwind_feed__fd(s->unwinding->feed), LIVE_WAKE_TABLES);
}

int session__open(const struct session_options *options, struct session **session,
		  struct failure *failure)
{
	struct session *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return fail(failure, -ENOMEM, "cannot start: out of memory");
	/* fork helpers while there is little memory and one thread */
	err = helper_pool__new(&builder_options, &s->builders);
	err = err ? fail(failure, err, "cannot start: %s", strerror(-err))
		  : live__open(&options->live, &s->live, failure);
	if (err)
		goto err_out;
	s->shared = live__shared(s->live);
	err = new_windows(options, s) ?: new_unwinding(options, s);
	if (err) {
		fail(failure, err, "cannot start: %s", strerror(-err));
		goto err_out;
	}
	s->gate.world = windows__world(s->windows);
	s->gate.books = s->shared.books;
	world__count_in(s->gate.world, s->gate.books);
	live__set_stage(s->live, stage_event, s);
	windows__set_files(s->windows, s->shared.opener, WINDOW_FILES_LIVE);
	session__set_writer(s, options->writer);
	*session = s;
	return 0;
err_out:
	session__free(s);
	return err;
}

void session__free(struct session *s)
{
	if (!s)
		return;
	/* answers requests for files without a file, while the queue still exists */
	if (s->live)
		dso_opener__finish(s->shared.opener, 0);
	unwinding__free(s->unwinding);
	windows__free(s->windows);
	live__free(s->live);
	helper_pool__free(s->builders);
	free(s);
}

size_t session__find_named(struct session *s)
{
	return live__find_named(s->live);
}

int session__add_command(struct session *s, pid_t pid, struct failure *failure)
{
	return live__add_command(s->live, pid, failure);
}

void session__set_writer(struct session *s, struct recording_writer *writer)
{
	s->writer = writer;
	windows__set_writer(s->windows, writer);
}

/* ---- the stream ------------------------------------------------------------------------------ */

static int sink_event(void *session, const struct event_header *event)
{
	struct session *s = session;
	int err = windows__event(s->windows, event);

	return err || !s->unwinding ? err : unwinding__recorded(s->unwinding, event);
}

static int update_tables(struct session *s)
{
	return s->unwinding ? unwinding__update(s->unwinding) : 0;
}

static int flush_recording(struct session *s)
{
	uint64_t now = monotonic_ns();

	if (!s->writer || now < s->flushed + FLUSH_INTERVAL)
		return 0;
	s->flushed = now;
	return recording_writer__flush(s->writer);
}

/* ---- starting -------------------------------------------------------------------------------- */

static int await_tables(struct session *s, uint64_t patience, int cancel)
{
	uint64_t until = monotonic_ns() + patience;
	struct pollfd wake[] = {
		{.fd = unwind_feed__fd(s->unwinding->feed), .events = POLLIN},
		{.fd = cancel, .events = POLLIN},
	};
	int err;

	/* events from /proc */
	poll(NULL, 0, ANNOUNCE_MS);
	err = live__announce(s->live, sink_event, s) ?: unwinding__prepare(s->unwinding);
	while (!err && unwind_feed__is_building(s->unwinding->feed) && monotonic_ns() < until) {
		if (poll(wake, 2, ANNOUNCE_MS) > 0 && wake[1].revents)
			break;
		err = update_tables(s) ?: live__announce(s->live, sink_event, s);
	}
	return err ? err : update_tables(s);
}

/*
 * Records events that precede the first tick: the kernel's symbols (17 ms) and all of /proc (a
 * second for some 100,000 mappings). Otherwise the first tick would be late and samples copied. The
 * recording has no name before its first flush, so a failed start does not replace an older one.
 */
static int take_backlog(struct session *s, int cancel)
{
	uint64_t until = monotonic_ns() + BACKLOG_NS;
	struct pollfd wake = {.fd = cancel, .events = POLLIN};
	int err;

	err = live__announce(s->live, sink_event, s);
	while (!err && live__is_behind(s->live) && monotonic_ns() < until && poll(&wake, 1, 0) <= 0)
		err = live__announce(s->live, sink_event, s);
	return err;
}

int session__start(struct session *s, uint64_t patience, int cancel, struct failure *failure)
{
	int err = live__begin(s->live, failure);

	if (err)
		return err;
	err = take_backlog(s, cancel);
	if (err)
		return fail(failure, err, "cannot read the processes in /proc: %s", strerror(-err));
	if (patience && s->unwinding) {
		/* the CPU that a held COMMAND would use */
		if (patience == SESSION_COMMAND_TABLES_NS)
			helper_pool__set_at_once(s->builders, builder_options.most);
		err = await_tables(s, patience, cancel);
		helper_pool__set_at_once(s->builders, builder_options.at_once);
		if (err)
			return fail(failure, err, "cannot build the targets' unwind tables: %s",
				    strerror(-err));
	}
	/* the first flush names the file in 4 to 7 ms: not while the first tables are made */
	s->flushed = monotonic_ns();
	return live__start(s->live, failure);
}

/* ---- running --------------------------------------------------------------------------------- */

int session__watch(struct session *s, int fd)
{
	return live__watch(s->live, fd, LIVE_WAKE_OTHER);
}

int session__step(struct session *s, uint64_t until, struct failure *failure)
{
	int err;

	live__wait(s->live, until);
	err = update_tables(s);
	if (!err && !live__is_due(s->live))
		return 0;
	if (!err)
		err = live__tick(s->live, sink_event, s) ?: update_tables(s) ?: flush_recording(s);
	return err ? fail(failure, err, "recording stopped: %s", strerror(-err)) : 0;
}

int session__rotate(struct session *s)
{
	uint64_t number = windows__stats(s->windows).windows;
	int err;

	if (s->rotating == number ||
	    finisher__waiting(windows__finisher(s->windows)) >= WAITING_WINDOWS)
		return -EAGAIN;
	if (finisher__wants_modules(windows__finisher(s->windows)))
		live__want_modules(s->live);
	err = live__end_window(s->live);
	if (!err)
		s->rotating = number;
	return err;
}

void session__set_hz(struct session *s, unsigned int hz)
{
	live__set_hz(s->live, hz);
}

void session__look_at_waits(struct session *s)
{
	live__look_at_waits(s->live);
}

void session__set_visits(struct session *s, unsigned int hz, unsigned int budget)
{
	live__set_visits(s->live, hz, budget);
}

unsigned int session__hz(const struct session *s)
{
	return live__hz(s->live);
}

void session__allow(struct session *s, const struct session_allowance *allowance)
{
	finisher__save_symbols(windows__finisher(s->windows), !allowance->debug_info,
			       !allowance->new_files, !allowance->rare_names);
	if (s->unwinding)
		unwind_feed__set_cached_only(s->unwinding->feed, !allowance->table_builds);
	bpf_session__copy_stacks(s->shared.kernel, allowance->table_builds);
	live__pause_jit(s->live, !allowance->jit_histories);
	live__save_ticks(s->live, !allowance->early_ticks);
}

uint64_t session__put_off(const struct session *s)
{
	return finisher__put_off(windows__finisher(s->windows));
}

int session__judge_groups(struct session *s)
{
	return live__judge_groups(s->live);
}

int session__stop(struct session *s, struct failure *failure)
{
	int err;

	if (s->unwinding)
		unwind_feed__end(s->unwinding->feed);
	err = live__stop(s->live, sink_event, s);
	return err ? fail(failure, err, "cannot read the last samples: %s", strerror(-err)) : 0;
}

/* ---- the last window ------------------------------------------------------------------------- */

int session__symbolize(struct session *s, const struct symbolizer_options *options,
		       struct symbolizer_counts *counts, struct failure *failure)
{
	return windows__symbolize(s->windows, options, counts, failure);
}

int session__finish(struct session *s, const struct profile **profile, struct failure *failure)
{
	return windows__finish(s->windows, profile, failure);
}

/* ---- statistics ------------------------------------------------------------------------------ */

void session__stats(struct session *s, struct session_stats *stats)
{
	struct windows_stats windows = windows__stats(s->windows);
	struct world *world = windows__world(s->windows);
	struct process_table_counts known = process_table__counts(world__processes(world));

	*stats = (struct session_stats){
		.windows = windows.windows,
		.waiting_windows = finisher__waiting(windows__finisher(s->windows)),
		.threads = windows.threads,
		.processes_known = known.processes,
		.threads_known = known.threads,
		.images_known = image_table__count(world__images(world)),
		.mappings_left = world__stats(world).refused_mappings +
				 world__stats(world).dropped_mappings,
		.refused_children = bpf_session__refused_children(s->shared.kernel),
		.longest_rotation = windows.longest_close,
		.longest_rotation_cpu = windows.longest_close_cpu,
	};
	live__stats(s->live, &stats->live);
	if (s->unwinding)
		unwinding__stats(s->unwinding, &stats->tables);
}

size_t session__kernel_memory(const struct session *s)
{
	return bpf_session__memory(s->shared.kernel);
}

int session__run_statistics(int fd)
{
	return bpf_session__run_statistics(fd);
}

uint64_t session__lost(const struct session *s)
{
	struct bpf_session *kernel = s->shared.kernel;
	struct books_event books;
	uint64_t lost = 0;

	for (uint32_t i = 0; i < bpf_session__info(kernel)->cpus; i++) {
		bpf_session__books(kernel, i, &books);
		lost += books.count[BOOK_RING_FULL] + books.count[BOOK_REENTRY] +
			books.count[BOOK_INTERNAL] + books.count[BOOK_NOT_RUN];
	}
	return lost;
}

uint64_t session__target_cpu(const struct session *s)
{
	return live__target_cpu(s->live);
}

bool session__threads_ended(struct session *s)
{
	return live__threads_ended(s->live);
}

const struct bpf_session_info *session__kernel_info(const struct session *s)
{
	return bpf_session__info(s->shared.kernel);
}

size_t session__programs(const struct session *s, struct bpf_program_info *programs, size_t max)
{
	return bpf_session__programs(s->shared.kernel, programs, max);
}
