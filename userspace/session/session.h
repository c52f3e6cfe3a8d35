/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One recording from open to a finished profile, live or replayed: what record, check and convert use,
 * and whatever is to watch a machine for long.
 *
 *   session__open     loads and opens everything; nothing is sampled
 *   session__start    takes down what exists, waits for the targets' unwind tables, starts the ticks
 *   session__step     waits for something to come, and takes it in
 *   session__rotate   ends the window: what comes from now on is in the next one
 *   session__stop     stops the ticks, and takes in the rest
 *   session__symbolize, session__finish   the last window, or the only one
 *
 * Windows follow each other without a gap, and add up: each sample is in one of them, and CPU time, sample
 * accounting and lives of all of them together are those of one long recording of the same stream. A window
 * that was rotated out is finished in the background, and handed to options.finished.
 *
 * Who runs, and what they own:
 *
 *   collector         the thread that calls session__*(): sources (session/live), queue, world, the open
 *                     window, the recording file, mapped files, the kernel's unwind tables
 *   finisher          session/finisher: closed windows, what JIT files have told, the symbolizer;
 *                     calls options.finished
 *   table builder     unwind/table_builder: the file that it reads, the tables that it makes
 *   JIT watcher       jitwatch/jit_tail: perf maps and jitdumps of processes
 *   children          sandboxed readers of ELF and DWARF (symbolize/sealed), one that asks a JVM for its
 *                     map (jitwatch/jvm_attach); COMMAND is the caller's
 *
 * What passes between threads is a closed window, a table, a copy of an event: never something that two
 * of them change. All calls are the collector's, but for session__wait_fds' readers.
 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include <poll.h>
#include <stdbool.h>
#include <sys/types.h>

#include <sysprof/profile.h>
#include <sysprof/symbolizer.h>

#include "base/log.h"
#include "session/finisher.h"
#include "session/live.h"
#include "stream/recording_file.h"
#include "unwind/unwind_feed.h"

struct session;

struct session_options {
	struct live_options live;
	bool table_cache; /* unwind tables of former recordings are used, and some kept */
	struct recording_writer
		*writer; /* the stream goes there as well, NULL: nowhere; not owned */
	bool symbolize;	 /* windows that are rotated out */
	struct symbolizer_options symbols; /* of these */
	window_finished_fn finished;	   /* called by the finisher, see session/finisher.h */
	void *context;
};

/* 0 or negative errno, with `failure` filled, as everything here that takes one. */
int session__open(const struct session_options *options, struct session **session,
		  struct failure *failure);
/* NULL is fine; idempotent stop included. */
void session__free(struct session *s);

/* COMMAND, which is held: a target from its next execve on. After open and before start. */
int session__add_command(struct session *s, pid_t pid, struct failure *failure);

/*
 * `await_tables`: the first stacks of processes that run already are to be whole, so their tables are
 * built first, for a second at most, or until `cancel` (-1: none) is readable.
 */
int session__start(struct session *s, bool await_tables, int cancel, struct failure *failure);

/* The recording: what is known is written up to here. 0 or negative errno of the file. */
void session__set_writer(struct session *s, struct recording_writer *writer);

/*
 * Until something has come, one of `others` (7 at most) is readable, or `until` (CLOCK_MONOTONIC ns) is
 * over; then takes in what is there.
 */
int session__step(struct session *s, struct pollfd *others, size_t count, uint64_t until,
		  struct failure *failure);

/*
 * The open window ends now; it is closed by one of the next steps, when everything from before has come.
 * 0; -EAGAIN: the one before is not closed yet, or the finisher is too far behind: the window goes on.
 */
int session__rotate(struct session *s);

int session__stop(struct session *s, struct failure *failure);

/* Names for the last window, told to the writer too. */
int session__symbolize(struct session *s, const struct symbolizer_options *options,
		       struct symbolizer_counts *counts, struct failure *failure);
/* The last window, finished: valid as long as the session. */
int session__finish(struct session *s, const struct profile **profile, struct failure *failure);

/* ---- replay ---------------------------------------------------------------------------------- */

struct replay_options {
	struct symbolizer_options
		symbols; /* where the recording has none, because it was cut short */
	/* NULL: windows of the recording are one. */
	window_finished_fn finished;
	void *context;
};

/* A recording, from its file to a finished profile (of its last window); the caller frees the session. */
int session__replay(const char *path, const struct replay_options *options,
		    struct session **session, const struct profile **profile,
		    struct recording_summary *summary, struct failure *failure);

/* ---- how it goes ----------------------------------------------------------------------------- */

struct session_stats {
	struct live_stats live;
	struct bpf_session_stats kernel;
	struct unwind_feed_stats tables; /* all zero where none are kept */
	uint64_t windows;		 /* begun */
	size_t waiting_windows;		 /* closed, and not finished yet */
	size_t threads;			 /* of the open window */
	size_t processes_known, threads_known, images_known;
	uint64_t finisher_cpu;	       /* ns */
	uint64_t longest_rotation;     /* that the rings were held up for, ns */
	uint64_t longest_rotation_cpu; /* CPU time of it */
};
void session__stats(struct session *s, struct session_stats *stats);

/* Samples that were lost so far, of all reasons of the sample accounting. */
uint64_t session__lost(const struct session *s);
/* CPU that the targets have used since the start, as far as /proc tells, ns. */
uint64_t session__target_cpu(const struct session *s);
/* For -v. */
const struct bpf_session_info *session__kernel_info(const struct session *s);
size_t session__programs(const struct session *s, struct bpf_program_info *programs, size_t max);

#endif
