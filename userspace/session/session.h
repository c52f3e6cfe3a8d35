/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One recording from open to a finished profile, live or replayed. Used by record, check and convert, and by
 * anything that watches a machine continuously.
 *
 *   session__open     loads and opens everything; nothing is sampled
 *   session__start    reads what exists, waits for the targets' unwind tables, starts the ticks
 *   session__step     waits for events and processes them
 *   session__rotate   ends the window: later events belong to the next one
 *   session__stop     stops the ticks and processes the remaining events
 *   session__symbolize, session__finish   the last window, or the only one
 *
 * Windows follow each other without a gap, and add up: each sample is in exactly one window, and CPU time,
 * sample accounting and lives of all windows together equal those of one long recording of the same stream.
 * A window that was rotated out is finished in the background and passed to options.finished.
 *
 * Threads and processes, and what they own:
 *
 *   collector         the thread that calls session__*(): sources (live/), queue, world, the open
 *                     window, the recording file, mapped files, unwind tables and their cache
 *   finisher          session/finisher: closed windows, the contents of JIT files, the symbolizer;
 *                     calls options.finished
 *   children          the JIT watcher, which reads perf maps and jitdumps of processes (jitwatch/jit_tail), its
 *                     keeper, and its child that requests a JVM's map (jitwatch/jvm_requests); sandboxed readers of ELF
 *                     and DWARF (symbolize/sealed); COMMAND is the caller's
 *
 * Threads hand over closed windows and copies of events: never an object that two of them change. All
 * functions are called by the collector, but for session__wait_fds' readers.
 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include <stdbool.h>
#include <sys/types.h>

#include <sysprof/profile.h>
#include <sysprof/symbolizer.h>

#include "base/log.h"
#include "session/finisher.h"
#include "live/live.h"
#include "stream/recording_file.h"
#include "unwind/unwind_feed.h"

struct session;

struct session_options {
	struct live_options live;
	bool table_cache; /* use the on-disk cache of unwind tables */
	struct recording_writer
		*writer; /* also writes the stream to a file; NULL: does not; not owned */
	bool symbolize;	 /* symbolize the windows that are rotated out */
	struct symbolizer_options symbols; /* of these */
	bool full_names;		   /* as in finisher_options */
	uint64_t
		jit_memory; /* bytes of perf maps' and jitdumps' contents, half of it for one user; 0: the default */
	window_finished_fn finished; /* called by the finisher, see session/finisher.h */
	void *context;
};

/* 0 or negative errno with `failure` filled, as all functions here that take one. */
int session__open(const struct session_options *options, struct session **session,
		  struct failure *failure);
/* Stops first if necessary. `s` may be NULL. */
void session__free(struct session *s);

/* The held COMMAND: a target from its next execve on. After open and before start. */
int session__add_command(struct session *s, pid_t pid, struct failure *failure);

/*
 * `await_tables`: build the unwind tables of running processes first, so that their first stacks are
 * complete. Waits at most one second, or until `cancel` (-1: none) is readable.
 */
int session__start(struct session *s, bool await_tables, int cancel, struct failure *failure);

/* The recording: what is known is written up to here. 0 or negative errno of the file. */
void session__set_writer(struct session *s, struct recording_writer *writer);

/* Once the descriptor is readable session__step() returns, until it is closed. -1 is fine. 0 or negative errno. */
int session__watch(struct session *s, int fd);

/*
 * Waits until there are events, a watched descriptor is readable, or `until` (CLOCK_MONOTONIC ns) has
 * passed. Then processes the events.
 */
int session__step(struct session *s, uint64_t until, struct failure *failure);

/*
 * Ends the open window now. One of the next steps closes it, when all earlier events have arrived. 0, or
 * -EAGAIN if the previous window is not closed yet or the finisher is too far behind: the window goes on.
 */
int session__rotate(struct session *s);

/*
 * So many ticks a second and CPU (> 0), from the next rotation on: every window has one rate, and its books are exact.
 * Samples weigh CPU time, so sums do not depend on it.
 */
void session__set_hz(struct session *s, unsigned int hz);
/* The rate now. */
unsigned int session__hz(const struct session *s);

/* As live__look_at_waits() and live__set_visits(). */
void session__look_at_waits(struct session *s);
void session__set_visits(struct session *s, unsigned int hz, unsigned int budget);

/* Work that a session may leave out, to cost less. All of it is allowed at the start. */
struct session_allowance {
	bool new_files; /* else files that were not read before are put off, see symbolizer_options */
	bool rare_names; /* else names and lines in few samples are put off, likewise */
	bool debug_info; /* else names are from symbol tables, and lines only where the symbol cache has them */
	bool table_builds; /* else unwind tables are read from the cache or not at all, and no stacks are copied */
	bool jit_histories; /* else perf maps and jitdumps are read later, when it is allowed again */
	bool early_ticks;   /* else new processes and missing mappings are looked at less soon */
};
/* From now on; of windows that are being finished already, some. */
void session__allow(struct session *s, const struct session_allowance *allowance);
/* Addresses whose names were put off so far, all windows together. */
uint64_t session__put_off(const struct session *s);
/* symbolizer__limit_readers(), with the next window. */
void session__limit_readers(struct session *s, size_t bytes);

/* Which control groups are wanted (options.live.group_wanted) has changed. 0 or negative errno. */
int session__judge_groups(struct session *s);

int session__stop(struct session *s, struct failure *failure);

/* Symbolizes the last window; the symbols are passed to the writer, too. */
int session__symbolize(struct session *s, const struct symbolizer_options *options,
		       struct symbolizer_counts *counts, struct failure *failure);
/* Finishes the last window. *profile is valid as long as the session. */
int session__finish(struct session *s, const struct profile **profile, struct failure *failure);

/* ---- replay ---------------------------------------------------------------------------------- */

struct replay_options {
	struct symbolizer_options
		symbols; /* for a recording without symbols, because it was cut short */
	bool full_names; /* as in finisher_options */
	/* NULL: all windows of the recording are merged into one. */
	window_finished_fn finished;
	void *context;
};

/* Reads a recording file into a finished profile (of its last window). The caller frees the session. */
int session__replay(const char *path, const struct replay_options *options,
		    struct session **session, const struct profile **profile,
		    struct recording_summary *summary, struct failure *failure);

/* ---- statistics ------------------------------------------------------------------------------ */

struct session_stats {
	struct live_stats live;
	struct bpf_session_stats kernel;
	struct unwind_feed_stats tables; /* all zero without unwind tables */
	uint64_t windows;		 /* begun */
	size_t waiting_windows;		 /* closed, and not finished yet */
	size_t threads;			 /* of the open window */
	size_t processes_known, threads_known, images_known;
	uint64_t mappings_left;	       /* that were not kept: there were too many */
	uint64_t longest_rotation;     /* that the rings were held up for, ns */
	uint64_t longest_rotation_cpu; /* CPU time of it */
};
void session__stats(struct session *s, struct session_stats *stats);

/* Bytes of BPF maps and rings. */
size_t session__kernel_memory(const struct session *s);
/* As bpf_session__run_statistics(): session__programs() has run times while it is open. Needs no session. */
int session__run_statistics(int fd);

/* Samples lost so far, for all reasons in the books. */
uint64_t session__lost(const struct session *s);
/* CPU time that the targets have used since the start, from /proc, ns. */
uint64_t session__target_cpu(const struct session *s);
/* -t: have all those threads ended? False without. */
bool session__threads_ended(struct session *s);
/* For -v. */
const struct bpf_session_info *session__kernel_info(const struct session *s);
size_t session__programs(const struct session *s, struct bpf_program_info *programs, size_t max);

#endif
