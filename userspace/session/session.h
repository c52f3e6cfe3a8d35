/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A live recording from open to a finished profile.
 *
 *   session__open     loads and opens everything; nothing is sampled
 *   session__start    reads /proc, waits for the targets' unwind tables, starts the ticks
 *   session__step     waits for events and processes them
 *   session__rotate   ends the window: later events belong to the next one
 *   session__stop     stops the ticks and processes the remaining events
 *   session__symbolize, session__finish   the last window, or the only one
 *
 * Windows follow each other without a gap. Each sample is in exactly one. The sums of CPU time,
 * sample accounting and lives equal those of one long recording. A window that was rotated out is
 * finished in the background and passed to options.finished.
 *
 * Threads and processes, and what they own:
 *
 *   collector         the thread that calls session__*(): sources (live/), queue, world, the open
 *                     window, the recording file, mapped files, unwind tables and their cache
 *   finisher          window/finisher: closed windows, the contents of JIT files, the symbolizer;
 *                     calls options.finished
 *   children          helpers (tenants/classes.h): readers, builders, JIT watchers, readers of ELF
 *                     and DWARF; COMMAND is the caller's
 *
 * Threads exchange closed windows and copies of events, never an object that both change. The
 * collector calls all functions.
 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include <stdbool.h>
#include <sys/types.h>

#include <sysprof/profile.h>
#include <sysprof/symbolizer.h>

#include "base/log.h"
#include "live/live.h"
#include "unwind/unwind_feed.h"
#include "window/finisher.h"

struct session;

struct session_options {
	struct live_options live;
	bool table_cache; /* use the on-disk cache of unwind tables */
	struct recording_writer
		*writer; /* also writes the stream to a file; NULL: no file; not owned */
	bool symbolize;	 /* symbolize windows that are rotated out */
	struct symbolizer_options symbols; /* of these */
	bool full_names;		   /* as in finisher_options */
	bool arguments;			   /* as in windows_options, as is the next */
	bool blank_code;
	bool jit_text;	     /* as in finisher_options */
	uint64_t jit_memory; /* bytes of JIT files in memory, half for one user; 0: default */
	window_finished_fn finished; /* called by the finisher, see window/finisher.h */
	void *context;
};

/* 0 or negative errno with `failure` filled, as of all functions here with a `failure`. */
int session__open(const struct session_options *options, struct session **session,
		  struct failure *failure);
/* Stops first if necessary. `s` may be NULL. */
void session__free(struct session *s);

/* The held COMMAND: a target from its next execve on. After open and before start. */
int session__add_command(struct session *s, pid_t pid, struct failure *failure);

/* As live__find_named(): after open and before start. */
size_t session__find_named(struct session *s);

/*
 * Reads events of /proc for two seconds at most. Then waits for `patience` ns at most for the
 * unwind tables of running processes, so that first stacks are complete; later ones are built while
 * it records. Both end once `cancel` (-1: none) is readable.
 */
#define SESSION_TABLES_NS	  1000000000ull
#define SESSION_COMMAND_TABLES_NS 250000000ull
int session__start(struct session *s, uint64_t patience, int cancel, struct failure *failure);

/* Writes the stream to this recording from now on; NULL: to none. */
void session__set_writer(struct session *s, struct recording_writer *writer);

/* Until `fd` is closed, session__step() returns when it is readable. -1 is fine. 0 or -errno. */
int session__watch(struct session *s, int fd);

/*
 * Waits for events, a watched descriptor or `until` (CLOCK_MONOTONIC ns), then processes the
 * events.
 */
int session__step(struct session *s, uint64_t until, struct failure *failure);

/*
 * Ends the open window now. A later step closes it, when all earlier events have arrived. 0;
 * -EAGAIN: the window goes on; the previous one is not closed, or the finisher is far behind.
 */
int session__rotate(struct session *s);

/*
 * Ticks per second and CPU (> 0), from the next rotation on: a window has one rate, so its books
 * are exact. Samples weigh CPU time, so sums do not depend on the rate.
 */
void session__set_hz(struct session *s, unsigned int hz);
unsigned int session__hz(const struct session *s);

/* As live__look_at_waits() and live__set_visits(). */
void session__look_at_waits(struct session *s);
void session__set_visits(struct session *s, unsigned int hz, unsigned int budget);

/* Work that a session may leave out to cost less. All is allowed at the start. */
struct session_allowance {
	bool new_files;	    /* else files not read before are deferred, see symbolizer_options */
	bool rare_names;    /* else names and lines in few samples are deferred */
	bool debug_info;    /* else names from symbol tables, lines only from the symbol cache */
	bool table_builds;  /* else unwind tables from the cache only, and no copies of stacks */
	bool jit_histories; /* else perf maps and jitdumps are read when allowed again */
	bool early_ticks;   /* else new processes and missing mappings are handled later */
};
/* From now on, and for some of the windows that are being finished. */
void session__allow(struct session *s, const struct session_allowance *allowance);
/* Addresses in all windows whose names were deferred. */
uint64_t session__put_off(const struct session *s);

/* Call when options.live.group_wanted would answer differently. 0 or negative errno. */
int session__judge_groups(struct session *s);

int session__stop(struct session *s, struct failure *failure);

/* Symbolizes the last window. If it is the only one, the writer gets the symbols, too. */
int session__symbolize(struct session *s, const struct symbolizer_options *options,
		       struct symbolizer_counts *counts, struct failure *failure);
/* Finishes the last window. The session owns *profile. */
int session__finish(struct session *s, const struct profile **profile, struct failure *failure);

/* ---- statistics ------------------------------------------------------------------------------ */

struct session_stats {
	struct live_stats live;
	struct unwind_feed_stats tables; /* all zero without unwind tables */
	uint64_t windows;		 /* begun */
	size_t waiting_windows;		 /* closed, but not finished */
	size_t threads;			 /* of the open window */
	size_t processes_known, threads_known, images_known;
	uint64_t refused_children;     /* not sampled, because there were too many */
	uint64_t mappings_left;	       /* mappings not kept because there were too many */
	uint64_t longest_rotation;     /* ns that closing a window held up the rings at most */
	uint64_t longest_rotation_cpu; /* its CPU time */
};
void session__stats(struct session *s, struct session_stats *stats);

/* Bytes of BPF maps and rings. */
size_t session__kernel_memory(const struct session *s);
/* bpf_session__run_statistics(): while it is open, session__programs() has run times. */
int session__run_statistics(int fd);

/* Samples lost so far, for all reasons in the books. */
uint64_t session__lost(const struct session *s);
/* CPU time that the targets have used since the start, from /proc, ns. */
uint64_t session__target_cpu(const struct session *s);
/* -t: all those threads have ended. False without -t. */
bool session__threads_ended(struct session *s);
/* For -v. */
const struct bpf_session_info *session__kernel_info(const struct session *s);
size_t session__programs(const struct session *s, struct bpf_program_info *programs, size_t max);

#endif
